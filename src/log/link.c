/* What a program that lacks bide-log does not find: bide/detail/beside.h. */
#include "bide/detail/beside.h"

const char bide_link_with_lbide_log_ = 0;

/* What a program that lacks bide-http2 does not find: bide/detail/beside.h. */
#include "bide/detail/beside.h"

const char bide_link_with_lbide_http2_ = 0;

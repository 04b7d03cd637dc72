/* The symbol that the linker names if a program lacks bide-log: bide/detail/beside.h. */
#include "bide/detail/beside.h"

const char bide_link_with_lbide_log_ = 0;

/* The symbol that the linker names if a program lacks bide-http: bide/detail/beside.h. */
#include "bide/detail/beside.h"

const char bide_link_with_lbide_http_ = 0;

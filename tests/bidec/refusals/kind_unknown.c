/*
 * says: own is no kind: declare a type of that name, whose first member is bide_frame frame
 */
#include <bide/async.h>

async_kind(own) int f(void); /* HERE */

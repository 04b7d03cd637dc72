/*
 * says: a break stands in a loop
 */
#include <bide/async.h>

async int f(void)
{
    break; /* HERE */
}

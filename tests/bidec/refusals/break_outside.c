/*
 * says: break outside of a loop
 */
#include <bide/async.h>

async int f(void)
{
    break; /* HERE */
}

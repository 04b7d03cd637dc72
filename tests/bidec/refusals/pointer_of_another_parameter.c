/*
 * says: incompatible.*pointer
 */
#include <bide/async.h>

async_created int f(int n)
{
    return n;
}

async_pointer(int, long) p(void)
{
    return async_pointer_to(f); /* HERE */
}

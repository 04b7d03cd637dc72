/*
 * says: too few arguments to function
 */
#include <bide/async.h>

async_created int f(int n)
{
    return n;
}

async int g(async_pointer(int, int, int) p)
{
    return await async_call(p, 1); /* HERE */
}

/*
 * says: f is async: a pointer at it is async_pointer_to\(f\)
 */
#include <bide/async.h>

async_created int f(int n)
{
    return n;
}

async int g(void)
{
    async_pointer(int, int) p = f; /* HERE */
    return await async_call(p, 1);
}

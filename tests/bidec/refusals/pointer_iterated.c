/*
 * says: async_for takes a call of an async_generator
 */
#include <bide/async.h>

async_created int f(int n)
{
    return n;
}

async int g(async_pointer(int, int) p)
{
    async_for (int n, async_call(p, 1)) /* HERE */
        return n;
    return 0;
}

/*
 * says: async_call takes a pointer, and f is a function: await f\(...\)
 */
#include <bide/async.h>

async_created int f(int n)
{
    return n;
}

async int g(void)
{
    return await async_call(f, 1); /* HERE */
}

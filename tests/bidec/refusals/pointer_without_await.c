/*
 * says: async_call is awaited or spawned: await async_call\(pointer, ...\)
 */
#include <bide/async.h>

async_created int f(int n)
{
    return n;
}

async int g(async_pointer(int, int) p)
{
    return async_call(p, 1); /* HERE */
}

/*
 * says: async_call is used in g, which is a plain function
 */
#include <bide/async.h>

async_created int f(int n)
{
    return n;
}

int g(async_pointer(int, int) p)
{
    return async_call(p, 1); /* HERE */
}

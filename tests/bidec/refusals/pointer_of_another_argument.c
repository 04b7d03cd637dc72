/*
 * says: incompatible (type|pointer)
 */
#include <bide/async.h>

async_created int f(int n)
{
    return n;
}

async int g(async_pointer(int, char *) p)
{
    struct { int n; } s = {1};
    return await async_call(p, s); /* HERE */
}

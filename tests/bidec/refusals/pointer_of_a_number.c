/*
 * says: called object .* is not a function
 */
#include <bide/async.h>

async_created int f(int n)
{
    return n;
}

async int g(int n)
{
    return await async_call(n, 1); /* HERE */
}

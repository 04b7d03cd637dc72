/*
 * says: async_call takes a pointer at an async function, and its arguments
 */
#include <bide/async.h>

async_created int f(int n)
{
    return n;
}

async int g(void)
{
    return await async_call(); /* HERE */
}

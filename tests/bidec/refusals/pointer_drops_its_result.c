/*
 * says: all\(\) drops the result of async_call: store it through a pointer, or cast the call to void
 */
#include <bide/async.h>

async_created int f(int n)
{
    return n;
}

async int g(async_pointer(long, int) p)
{
    return await all(async_call(p, 1), async_call(p, 2)); /* HERE */
}

/*
 * says: all\(\) starts its operations together
 */
#include <bide/async.h>

async int f(int n)
{
    return n;
}

async int g(void)
{
    return await all(f(1), f(await f(2))); /* HERE */
}

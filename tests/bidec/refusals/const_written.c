/*
 * says: assignment of read-only|cannot assign|read-only
 */
#include <bide/async.h>

async int f(void)
{
    return 1;
}

async int g(void)
{
    const int x = await f();
    x = 2; /* HERE */
    return x;
}

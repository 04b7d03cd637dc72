/*
 * says: f is a generator: iterate it with async_for
 */
#include <bide/async.h>

generator(int) int f(void)
{
    yield 1;
    return 0;
}

async int g(void)
{
    return await f(); /* HERE */
}

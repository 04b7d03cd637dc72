/*
 * says: f is a generator: iterate it with async_for, or start it with async_f
 */
#include <bide/async.h>

generator(int) void f(void)
{
    yield 1;
}

async int g(void)
{
    f(); /* HERE */
    return 0;
}

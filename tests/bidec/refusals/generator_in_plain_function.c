/*
 * says: f is a generator: iterate it with async_for
 */
#include <bide/async.h>

generator(int) void f(void)
{
    yield 1;
}

void g(void)
{
    f(); /* HERE */
}

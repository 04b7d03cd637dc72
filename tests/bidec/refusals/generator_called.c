/*
 * says: f is async: iterate it with async_for
 */
#include <bide/async.h>

async_generator(int) void f(void)
{
    yield 1;
}

void g(void)
{
    f(); /* HERE */
}

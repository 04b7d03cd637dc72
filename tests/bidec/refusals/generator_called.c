/*
 * says: f is async: take its values by async_for
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

/*
 * says: f is a generator: iterate it with async_for
 */
#include <bide/async.h>

async_generator(int) void f(void)
{
    yield 1;
}

async void g(void)
{
    await f(); /* HERE */
}

/*
 * says: f is a generator: async_for takes its values
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

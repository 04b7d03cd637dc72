/*
 * says: the variable of async_for must be
 */
#include <bide/async.h>

async_generator(int) void f(void)
{
    yield 1;
}

async void g(void)
{
    async_for (int i[2], f()) /* HERE */
        ;
}

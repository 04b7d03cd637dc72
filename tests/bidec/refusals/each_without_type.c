/*
 * says: async_for begins with the declaration of a variable
 */
#include <bide/async.h>

async_generator(int) void f(void)
{
    yield 1;
}

async void g(void)
{
    int i;
    async_for (i, f()) /* HERE */
        ;
}

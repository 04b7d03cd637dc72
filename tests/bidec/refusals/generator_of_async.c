/*
 * says: g is a generator\(...\), and may iterate only those
 */
#include <bide/async.h>

async_generator(int) void f(void)
{
    yield 1;
}

generator(int) void g(void)
{
    async_for (int one, f()) /* HERE */
        yield one;
}

/*
 * says: async_for is used in sum, which is a plain function
 */
#include <bide/async.h>

async_generator(int) void f(void)
{
    yield 1;
}

int sum(void);
int sum(void)
{
    int n = 0;
    async_for (int one, f()) /* HERE */
        n += one;
    return n;
}

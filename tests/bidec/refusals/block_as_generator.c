/*
 * says: an async block is no generator: iterate an async_generator
 */
#include <bide/async.h>

async int g(void)
{
    int sum = 0;
    async_for (int i, async_block({ return 1; })) /* HERE */
        sum += i;
    return sum;
}

/*
 * says: async_capture stands at the beginning of an async block
 */
#include <bide/async.h>

async int g(int n)
{
    return await async_block({
        int one = 1;
        async_capture int other = n; /* HERE */
        return one + other;
    });
}

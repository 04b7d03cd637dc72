/*
 * says: a capture needs a value: async_capture int n = count;
 */
#include <bide/async.h>

async int g(void)
{
    return await async_block({
        async_capture int n; /* HERE */
        return n;
    });
}

/*
 * says: 'n' is a variable of g, which may end before this block
 */
#include <bide/async.h>

async int g(int number)
{
    return await async_block({
        async_capture int n = number;
        return await async_block({ return n; }); /* HERE */
    });
}

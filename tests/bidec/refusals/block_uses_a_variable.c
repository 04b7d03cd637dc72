/*
 * says: 'n' is a variable of g, which may end before this block: begin the block with a copy of it, or of a pointer, async_capture ... = n;
 */
#include <bide/async.h>

async int g(int n)
{
    return await async_block({
        async_capture int other = n;
        return other + n; /* HERE */
    });
}

/*
 * says: the frame of g is not known here: define it before it is awaited, or declare it async_sized..... or async_created
 */
#include <bide/async.h>

async int g(int n)
{
    return await async_block({
        async_capture int n = n;
        return await g(n - 1); /* HERE */
    });
}

/*
 * says: async_pointer_to takes the name of an async function, and f is none
 */
#include <bide/async.h>

int f(int n);

async int g(void)
{
    async_pointer(int, int) p = async_pointer_to(f); /* HERE */
    return await async_call(p, 1);
}

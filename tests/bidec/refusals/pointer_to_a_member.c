/*
 * says: f has no frame of its own, which a call by a pointer needs: declare it async_created
 */
#include <bide/async.h>

async int f(int n)
{
    return n;
}

static async_pointer(int, int) const p = async_pointer_to(f); /* HERE */

async int g(void)
{
    return await async_call(p, 1);
}

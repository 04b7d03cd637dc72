/*
 * says: select_any\(\) takes operations that can be attempted without waiting, or undone
 */
#include <bide/async.h>

async_created int f(int n)
{
    return n;
}

async int g(async_pointer(int, int) p)
{
    size_t which;
    return await select_any(&which, async_call(p, 1)); /* HERE */
}

/*
 * says: 'local' is declared in g, and this block is a function of its own: declare it outside of functions
 */
#include <bide/async.h>

async int g(int n)
{
    struct local {
        int n;
    } one = {n};
    return one.n + await async_block({
        return sizeof(struct local); /* HERE */
    });
}

/*
 * says: .*(pointer|incompatible)
 */
#include <bide/async.h>

struct a {
    int n;
};

async int g(struct a a)
{
    return await async_block({
        async_capture int *n = a; /* HERE */
        return *n;
    });
}

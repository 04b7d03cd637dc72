/*
 * says: local labels
 */
#include <bide/async.h>

async int f(void)
{
    {
        __label__ out; /* HERE */
        goto out;
    out:;
    }
    return 0;
}

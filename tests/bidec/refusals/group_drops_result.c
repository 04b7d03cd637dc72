/*
 * says: all\(\) drops the result of total: store it through a pointer, or cast the call to void
 */
#include <bide/async.h>
#include <bide/bide.h>

async long total(long n)
{
    return n;
}

async int f(void)
{
    int status = await all((void)total(1), bide_sleep_for(1));
    if (status < 0)
        return status;
    return await all(bide_sleep_for(1), total(2)); /* HERE */
}

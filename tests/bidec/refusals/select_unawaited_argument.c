/*
 * says: f is async: await it, or start it
 */
#include <bide/async.h>
#include <bide/sleep.h>

async int f(int n)
{
    return n;
}

async int g(void)
{
    int status;
    async_select (status) {
        when (bide_sleep_for((uint64_t)f(1))) /* HERE */
            return 1;
    }
    return status;
}

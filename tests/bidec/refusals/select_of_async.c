/*
 * says: when\(\) takes operations that can be attempted without waiting, or undone; use any\(\)
 */
#include <bide/async.h>

async int f(int n)
{
    return n;
}

async int g(void)
{
    int status;
    async_select (status) {
        when (f(1)) /* HERE */
            return 1;
    }
    return status;
}

/*
 * says: the length of 'buffer' is not constant
 */
#include <bide/async.h>

async int f(void)
{
    return 1;
}

async int g(int n)
{
    char buffer[n]; /* HERE */
    buffer[0] = 0;
    return await f() + buffer[0];
}

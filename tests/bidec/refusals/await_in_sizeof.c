/*
 * says: await is not allowed in sizeof
 */
#include <bide/async.h>

async int f(void)
{
    return 1;
}

async int g(void)
{
    return sizeof(await f()); /* HERE */
}

/*
 * says: await is not allowed in _Generic
 */
#include <bide/async.h>

async int f(void)
{
    return 1;
}

async int g(void)
{
    return _Generic(await f(), int: 1, default: 2); /* HERE */
}

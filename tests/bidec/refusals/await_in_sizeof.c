/*
 * says: an await cannot stand in sizeof
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

/*
 * says: await takes a call of an async function
 */
#include <bide/async.h>

static int f(void)
{
    return 1;
}

async int g(void)
{
    return await f(); /* HERE */
}

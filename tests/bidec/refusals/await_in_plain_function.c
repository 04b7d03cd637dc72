/*
 * says: await is used in start, which is a plain function: declare that async, or run
 */
#include <bide/async.h>
#include <bide/sleep.h>

async int f(void)
{
    return 1;
}

int start(void);
int start(void)
{
    return await f(); /* HERE */
}

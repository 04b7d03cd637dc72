/*
 * says: f is async: await it, or start it with async_f
 */
#include <bide/async.h>
#include <stdio.h>

async int f(void)
{
    return 1;
}

async int g(void)
{
    printf("%d", f()); /* HERE */
    return await f();
}

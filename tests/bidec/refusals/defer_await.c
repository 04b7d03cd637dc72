/*
 * says: a deferred statement cannot await
 */
#include <bide/async.h>

async int f(void)
{
    return 1;
}

async int g(void)
{
    defer await f(); /* HERE */
    return 0;
}

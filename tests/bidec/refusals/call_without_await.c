/*
 * says: f is async: await it
 */
#include <bide/async.h>

async int f(int x)
{
    return x;
}

async int g(void)
{
    return f(1); /* HERE */
}

/*
 * says: f takes 2 arguments, not 1
 */
#include <bide/async.h>

async int f(int n, int m)
{
    return n + m;
}

async int g(int n)
{
    return await f(n); /* HERE */
}

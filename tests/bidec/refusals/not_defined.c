/*
 * says: the frame of f is not known here
 */
#include <bide/async.h>

async int f(int n);

async int g(int n)
{
    return await f(n - 1); /* HERE */
}

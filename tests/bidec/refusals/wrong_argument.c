/*
 * says: incompatible|passing argument
 */
#include <bide/async.h>

async int f(const char *text)
{
    return text[0];
}

async int g(int *n)
{
    return await f(n); /* HERE */
}

/*
 * says: the length of 'lines' is not constant
 */
#include <bide/async.h>

async int f(void)
{
    return 1;
}

async int g(int n)
{
    struct lines { /* HERE */
        char text[n];
    } lines;
    return await f() + (int)sizeof lines;
}

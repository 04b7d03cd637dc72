/*
 * says: is the length of the rows of
 */
#include <bide/async.h>

async int g(void)
{
    return 1;
}

async int f(int n, int a[n][n]) /* HERE */
{
    n++;
    return a[await g()][n];
}

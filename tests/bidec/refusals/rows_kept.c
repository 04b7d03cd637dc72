/*
 * says: a pointer at rows whose length is not constant cannot be kept
 */
#include <bide/async.h>

async int g(void)
{
    return 1;
}

async int f(int n, int a[n][n])
{
    return (a + 1)[await g()][n]; /* HERE */
}

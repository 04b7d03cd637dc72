/*
 * says: the type of .b. depends on a length that is not constant
 */
#include <bide/async.h>

async int g(void)
{
    return 1;
}

async int f(int n, int a[n][n])
{
    char b[sizeof *a]; /* HERE */
    b[0] = (char)await g();
    return b[0] + a[0][0];
}

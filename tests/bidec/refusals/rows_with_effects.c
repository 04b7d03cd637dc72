/*
 * says: the length of the rows of 'a' has a side effect: give them a length that is a parameter
 */
#include <bide/async.h>

int *x;

async int f(char a[2][(*x)++]) /* HERE */
{
    return a[0][0];
}

/*
 * says: no arguments without a name
 */
#include <bide/async.h>

async int f(int n, ...) /* HERE */
{
    return n;
}

/*
 * says: cannot be variadic
 */
#include <bide/async.h>

async int f(int n, ...) /* HERE */
{
    return n;
}

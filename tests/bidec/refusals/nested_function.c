/*
 * says: nested functions are not supported
 */
#include <bide/async.h>

async int f(void)
{
    int g(void) { return 1; } /* HERE */
    return g();
}

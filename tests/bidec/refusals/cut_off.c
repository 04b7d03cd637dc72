/*
 * says: is not closed|expected
 */
#include <bide/async.h>

async int f(void)
{
    return (1; /* HERE */
}

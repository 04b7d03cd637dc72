/*
 * says: unknown type name 'unknown'
 */
#include <bide/async.h>

async int f(unknown x) /* HERE */
{
    return 0;
}

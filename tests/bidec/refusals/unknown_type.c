/*
 * says: 'unknown' is no type
 */
#include <bide/async.h>

async int f(unknown x) /* HERE */
{
    return 0;
}

/*
 * says: is not allowed in a deferred statement
 */
#include <bide/async.h>

async int g(void)
{
    defer {
        return 1; /* HERE */
    }
    return 0;
}

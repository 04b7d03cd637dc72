/*
 * says: a deferred statement cannot leave
 */
#include <bide/async.h>

async int g(void)
{
    defer {
        return 1; /* HERE */
    }
    return 0;
}

/*
 * says: when.. takes operations that can be attempted without waiting, or undone; use any.. to wait for the first of several functions
 */
#include <bide/async.h>

async int g(void)
{
    try async_select () {
        when (async_block({ return 1; })) /* HERE */
            return 1;
    }
    return 0;
}

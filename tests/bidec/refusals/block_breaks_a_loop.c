/*
 * says: break outside of a loop
 */
#include <bide/async.h>

async int g(void)
{
    for (;;) {
        await async_block({
            break; /* HERE */
        });
    }
}

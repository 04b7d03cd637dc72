/*
 * says: an async block is begun by await, by spawn.., or by an operation that is awaited and takes it
 */
#include <bide/async.h>

async int g(void)
{
    return async_block({ return 1; }); /* HERE */
}

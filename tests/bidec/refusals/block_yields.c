/*
 * says: yield is allowed only in an async_generator, a generator or a recursive_generator
 */
#include <bide/async.h>

async_generator(int) int g(void)
{
    return await async_block({
        yield 1; /* HERE */
        return 1;
    });
}

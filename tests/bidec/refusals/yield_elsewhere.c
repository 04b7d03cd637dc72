/*
 * says: only an async_generator yields
 */
#include <bide/async.h>

async int f(void)
{
    yield 1; /* HERE */
    return 0;
}

/*
 * says: yield is allowed only in an async_generator
 */
#include <bide/async.h>

async int f(void)
{
    yield 1; /* HERE */
    return 0;
}

/*
 * says: f cannot be called by a pointer: it is a generator
 */
#include <bide/async.h>

generator(int) void f(int n)
{
    yield n;
}

static async_pointer(void, int) const p = async_pointer_to(f); /* HERE */

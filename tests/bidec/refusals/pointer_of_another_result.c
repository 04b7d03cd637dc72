/*
 * says: incompatible.*pointer
 */
#include <bide/async.h>

async_created int f(int n)
{
    return n;
}

struct table {
    async_pointer(long, int) handle;
};

struct table table = {async_pointer_to(f)}; /* HERE */

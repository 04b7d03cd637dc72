/*
 * says: f is async: a pointer at it is async_pointer_to\(f\)
 */
#include <bide/async.h>

async_created int f(int n)
{
    return n;
}

static const struct {
    int f;
    async_pointer(int, int) handle;
} table[] = {{.f = 1, .handle = f}}; /* HERE */

/*
 * says: f is declared further down: declare it in front of this
 */
#include <bide/async.h>

static async_pointer(int, int) const p = async_pointer_to(f); /* HERE */

async_created int f(int n)
{
    return n;
}


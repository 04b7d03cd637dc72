/*
 * says: f awaits itself: its frame would have to contain itself
 */
#include <bide/async.h>

async int f(int n)
{
    return n == 0 ? 0 : await f(n - 1); /* HERE */
}

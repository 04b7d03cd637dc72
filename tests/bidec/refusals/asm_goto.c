/*
 * says: asm goto is not allowed
 */
#include <bide/async.h>

async int f(void)
{
    __asm__ goto("" : : : : out); /* HERE */
out:
    return 0;
}

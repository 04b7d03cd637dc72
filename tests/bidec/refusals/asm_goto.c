/*
 * says: asm goto cannot stand
 */
#include <bide/async.h>

async int f(void)
{
    __asm__ goto("" : : : : out); /* HERE */
out:
    return 0;
}

/*
 * says: the address of a label
 */
#include <bide/async.h>

async int f(void)
{
    void *where = &&out; /* HERE */
    goto *where;
out:
    return 0;
}

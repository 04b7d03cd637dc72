/*
 * says: alloca's memory is gone
 */
#include <bide/async.h>

#include <alloca.h>

async int f(void)
{
    char *memory = alloca(10); /* HERE */
    return memory != 0;
}

/*
 * says: is not closed|the file ends|should stand
 */
#include <bide/async.h>

async int f(void)
{
    return (1; /* HERE */
}

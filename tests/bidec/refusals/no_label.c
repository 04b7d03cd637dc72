/*
 * says: there is no label 'away'
 */
#include <bide/async.h>

async int f(void)
{
    goto away; /* HERE */
}

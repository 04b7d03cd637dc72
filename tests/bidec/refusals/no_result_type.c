/*
 * says: an async function needs a return type
 */
#include <bide/async.h>

async f(void) /* HERE */
{
    return 0;
}

/*
 * says: an async function says what it returns
 */
#include <bide/async.h>

async f(void) /* HERE */
{
    return 0;
}

/*
 * says: await takes a call of an async function, or a bide_awaiter \*
 */
#include <bide/async.h>
#include <bide/bide.h>

int declared(int n);

async int f(void)
{
    return await all(bide_sleep_for(1), declared(1)); /* HERE */
}

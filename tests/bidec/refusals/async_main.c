/*
 * says: main cannot be async: write a plain main, which runs an async function with bide_sync_wait
 */
#include <bide/async.h>

async int main(void) /* HERE */
{
    return 0;
}

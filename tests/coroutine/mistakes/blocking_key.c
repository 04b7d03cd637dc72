/*
 * The first of two blocking calls with one key still waits.
 * told: run
 * says: an operation is used again while it waits: bide_mutex_lock, first used \(.*blocking_key.c:21\), main,
 */
#include "mistakes.h"

#include "bide/spawn.h"

static bide_mutex mutex;
static bide_mutex_waiter holder, key;

int main(void)
{
    static bide_spawned spawned;
    bide_mutex_init(&mutex);
    if (!bide_mutex_try_lock(&holder, &mutex))
        return 1;
    /* the line that is said */

    bide_spawn(&spawned, &bide_default_context, bide_mutex_lock(&key, &mutex));
    return bide_mutex_lock_blocking(&key, &mutex, BIDE_FOREVER); // HERE
}

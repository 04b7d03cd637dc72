/*
 * Setting the event is the last thing that is done with a bide_spawned, and bide_event_set touches
 * nothing of the event once its waiters can see it set.
 */
#include "bide/spawn.h"

static void spawned_ended(bide_root *root)
{
    bide_event_set(&bide_container_of(root, bide_spawned, root)->ended);
}

void bide_spawn(bide_spawned *spawned, const bide_context *context, bide_awaiter *awaiter)
{
    bide_event_init(&spawned->ended, false);
    bide_root_begin(&spawned->root, context, awaiter, spawned_ended);
}

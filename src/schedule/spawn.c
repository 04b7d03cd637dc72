/*
 * Spawned coroutines: roots whose end sets an event. Any thread may wait for it.
 *
 * Setting the event is the last use of a bide_spawned, and bide_event_set does not touch the event
 * after its waiters can see it set. So a waiter may free it.
 */
#include "bide/spawn.h"

#include "../coroutine/flights.h"
#include "../coroutine/roots.h"

#undef bide_spawn

static void spawned_ended(bide_root *root)
{
    bide_event_set(&bide_container_of(root, bide_spawned, root)->ended);
}

void bide_spawn(bide_spawned *spawned, const bide_context *context, bide_awaiter *awaiter)
{
    bide_event_init(&spawned->ended, false);
    bide_root_start(&spawned->root, context, awaiter, spawned_ended);
}

void bide_spawn_checked_(bide_spawned *spawned, const bide_context *context, bide_awaiter *awaiter,
                         const char *what, const char *function, const char *file, unsigned line)
{
    if (BIDE_UNLIKELY(bide_roots_have_(&spawned->root)))
        bide_misuse_(what, function, file, line);
    bide_check_given_(awaiter, function, file, line);
#if BIDE_FLIGHTS_
    bide_flights_attach_(awaiter, &spawned->root.frame, function, file, line);
#endif
    bide_spawn(spawned, context, awaiter);
}

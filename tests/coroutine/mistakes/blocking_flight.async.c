/*
 * A thread blocks for an operation that an async function waits for already.
 * told: run
 * says: an operation is used again while it waits: bide_event_wait, first used by first \(.*blocking_flight.async.c:16\), main,
 */
#include "mistakes.h"

#include "bide/async.h"
#include "bide/spawn.h"

static bide_event event;
static bide_event_waiter wait;

async void first(void)
{
    await bide_event_wait(&wait, &event);
}

int main(void)
{
    static bide_spawned spawned;
    static struct async_first x;
    bide_event_init(&event, false);
    bide_spawn(&spawned, &bide_default_context, async_first(&x));
    bide_sync_wait(bide_event_wait(&wait, &event)); // HERE
    return 0;
}

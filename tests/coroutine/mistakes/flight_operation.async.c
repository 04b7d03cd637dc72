/*
 * The struct of an operation is used by a second coroutine while the first still waits.
 * told: run
 * says: an operation is used again while it waits: bide_event_wait, first used by first \(.*flight_operation.async.c:16\), second,
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

async void second(void)
{
    await bide_event_wait(&wait, &event); // HERE
}

int main(void)
{
    static bide_spawned spawned[2];
    static struct async_first x;
    static struct async_second y;
    bide_event_init(&event, false);
    bide_spawn(&spawned[0], &bide_default_context, async_first(&x));
    bide_spawn(&spawned[1], &bide_default_context, async_second(&y));
    return 0;
}

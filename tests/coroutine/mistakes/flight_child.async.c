/*
 * The frame of a child is used again while the child still runs for another coroutine.
 * told: run
 * says: a coroutine is awaited again before it has ended: child, first used by first \(.*flight_child.async.c:22\), second,
 */
#include "mistakes.h"

#include "bide/async.h"
#include "bide/spawn.h"

static bide_event event;

async void child(void)
{
    await bide_event_wait(&event);
}

static struct async_child frame;

async void first(void)
{
    await async_child(&frame);
}

async void second(void)
{
    await async_child(&frame); // HERE
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

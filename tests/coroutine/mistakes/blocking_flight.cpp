/*
 * A thread blocks for an operation that a coroutine waits for already.
 * told: run
 * says: an operation is used again while it waits: bide_event_wait, first used by body \(.*blocking_flight.cpp:19\), blocks,
 */
#include "mistakes.h"

#include "bide/spawn.h"

struct x {
    bide_task task;
    bide_event event;
    bide_event_waiter wait;
};

bide_coroutine(body)
{
    bide_begin(body, x *self);
    bide_await(bide_event_wait(&self->wait, &self->event));
    bide_end();
}

static void blocks(struct x *x)
{
    bide_sync_wait(bide_event_wait(&x->wait, &x->event)); // HERE
}

int main()
{
    static bide_spawned spawned;
    static struct x x;
    bide_event_init(&x.event, false);
    bide_spawn(&spawned, &bide_default_context, bide_task_init(&x.task, &body));
    blocks(&x);
    return 0;
}

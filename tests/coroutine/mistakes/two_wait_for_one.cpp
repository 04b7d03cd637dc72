/*
 * Two coroutines wait at once for what one may wait for.
 * told: run
 * says: two wait at once on an event for one, second,
 */
#include "mistakes.h"

#include "bide/single_consumer_event.h"
#include "bide/spawn.h"

static bide_single_consumer_event event;

struct x {
    bide_task task;
    bide_single_consumer_event_waiter wait;
};

bide_coroutine(first)
{
    bide_begin(first, x *self);
    bide_await(bide_single_consumer_event_wait(&self->wait, &event));
    bide_end();
}

bide_coroutine(second)
{
    bide_begin(second, x *self);
    bide_await(bide_single_consumer_event_wait(&self->wait, &event)); // HERE
    bide_end();
}

int main()
{
    static bide_spawned spawned[2];
    static struct x x[2];
    bide_single_consumer_event_init(&event, false);
    bide_spawn(&spawned[0], &bide_default_context, bide_task_init(&x[0].task, &first));
    bide_spawn(&spawned[1], &bide_default_context, bide_task_init(&x[1].task, &second));
    return 0;
}

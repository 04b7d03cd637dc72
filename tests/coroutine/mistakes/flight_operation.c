/*
 * The struct of an operation is used by a second coroutine while the first still waits.
 * told: run
 * says: an operation is used again while it waits: bide_event_wait, first used by first \(.*flight_operation.c:23\), second,
 */
#include "mistakes.h"

#include "bide/spawn.h"

static bide_event event;
static bide_event_waiter wait;

struct x {
    bide_task task;
};

bide_coroutine(first)
{
    bide_begin(first, struct x * self);
    (void)self;
    /* the line that is said */

    bide_await(bide_event_wait(&wait, &event));
    bide_end();
}

bide_coroutine(second)
{
    bide_begin(second, struct x * self);
    (void)self;
    bide_await(bide_event_wait(&wait, &event)); // HERE
    bide_end();
}

int main(void)
{
    static bide_spawned spawned[2];
    static struct x x[2];
    bide_event_init(&event, false);
    bide_spawn(&spawned[0], &bide_default_context, bide_task_init(&x[0].task, &first));
    bide_spawn(&spawned[1], &bide_default_context, bide_task_init(&x[1].task, &second));
    return 0;
}

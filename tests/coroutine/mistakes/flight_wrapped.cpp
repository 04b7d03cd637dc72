/*
 * Behind a wrapper an operation is used that another coroutine waits for, also behind a wrapper.
 * told: run
 * says: an operation is used again while it waits: bide_event_wait, first used by first \(.*flight_wrapped.cpp:26\), second,
 */
#include "mistakes.h"

#include "bide/spawn.h"
#include "bide/then.h"
#include "bide/with_stop.h"

static bide_event event;
static bide_event_waiter wait;

struct x {
    bide_task task;
    bide_with_stop_operation stoppable;
    bide_then_operation then;
};

bide_coroutine(first)
{
    bide_begin(first, x *self);
    /* the line that is said */

    bide_await(bide_with_stop(&self->stoppable, NULL, bide_event_wait(&wait, &event)));
    bide_end();
}

static int nothing(void *argument, int status)
{
    (void)argument;
    return status;
}

bide_coroutine(second)
{
    bide_begin(second, x *self);
    bide_await(bide_then(&self->then, bide_event_wait(&wait, &event), nothing, NULL)); // HERE
    bide_end();
}

int main()
{
    static bide_spawned spawned[2];
    static struct x x[2];
    bide_event_init(&event, false);
    bide_spawn(&spawned[0], &bide_default_context, bide_task_init(&x[0].task, &first));
    bide_spawn(&spawned[1], &bide_default_context, bide_task_init(&x[1].task, &second));
    return 0;
}

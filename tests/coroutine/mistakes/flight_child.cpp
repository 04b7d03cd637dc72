/*
 * The frame of a child is used again while the child still runs for another coroutine.
 * told: run
 * says: a coroutine is awaited again before it has ended: child_body, first used by first \(.*flight_child.cpp:36\), second,
 */
#include "mistakes.h"

#include "bide/spawn.h"

static bide_event event;

struct child {
    bide_task task;
    bide_event_waiter wait;
};

static struct child child;

bide_coroutine(child_body)
{
    bide_begin(child_body, struct child *self);
    bide_await(bide_event_wait(&self->wait, &event));
    bide_end();
}

struct x {
    bide_task task;
};

bide_coroutine(first)
{
    bide_begin(first, x *self);
    (void)self;
    /* the line that is said */

    bide_await(bide_task_init(&child.task, &child_body));
    bide_end();
}

bide_coroutine(second)
{
    bide_begin(second, x *self);
    (void)self;
    bide_await(bide_task_init(&child.task, &child_body)); // HERE
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

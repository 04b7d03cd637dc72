/*
 * One task is given to two bide_spawned.
 * told: run
 * says: a coroutine is awaited again before it has ended: body, first used \(.*flight_spawned.c:31\), main,
 */
#include "mistakes.h"

#include "bide/spawn.h"

struct x {
    bide_task task;
    bide_event *event;
    bide_event_waiter wait;
};

bide_coroutine(body)
{
    bide_begin(body, struct x * self);
    bide_await(bide_event_wait(&self->wait, self->event));
    bide_end();
}

int main(void)
{
    static bide_event event;
    static bide_spawned spawned[2];
    static struct x x = {.event = &event};
    bide_event_init(&event, false);
    /* the line that is said */

    bide_spawn(&spawned[0], &bide_default_context, bide_task_init(&x.task, &body));
    bide_spawn(&spawned[1], &bide_default_context, bide_task_init(&x.task, &body)); // HERE
    return 0;
}

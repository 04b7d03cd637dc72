/*
 * A bide_spawned is used again while what it runs has not ended.
 * told: run
 * says: a bide_spawned is used again before what it runs ended: &spawned, main,
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
    static bide_spawned spawned;
    static struct x x[2] = {{.event = &event}, {.event = &event}};
    bide_event_init(&event, false);
    bide_spawn(&spawned, &bide_default_context, bide_task_init(&x[0].task, &body));
    bide_event_set(&event);
    bide_event_reset(&event);
    bide_spawn(&spawned, &bide_default_context, bide_task_init(&x[1].task, &body));
    bide_spawn(&spawned, &bide_default_context, bide_task_init(&x[0].task, &body)); // HERE
    return 0;
}

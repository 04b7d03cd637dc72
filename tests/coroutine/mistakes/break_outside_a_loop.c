/*
 * bide_try_or_break where there is no loop.
 * told: error
 * says: continue
 */
#include "mistakes.h"

struct x {
    bide_task task;
    bide_event *event;
    bide_event_waiter wait;
};

bide_coroutine(body)
{
    bide_begin(body, struct x * self);
    bide_try_or_break(bide_event_wait(&self->wait, self->event)); // HERE
    bide_end();
}

int main(void)
{
    struct x x = {0};
    return bide_sync_wait(bide_task_init(&x.task, &body));
}

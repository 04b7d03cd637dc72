/*
 * A body without bide_end.
 * told: error
 * says: bide_end_is_missing_
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
    bide_await(bide_event_wait(&self->wait, self->event));
}

int main(void)
{
    struct x x = {0};
    return bide_sync_wait(bide_task_init(&x.task, &body));
}

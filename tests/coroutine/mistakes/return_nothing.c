/*
 * A body returns nothing.
 * told: error
 * with: -Werror=return-type
 * says: non-void function|function returning non-void|no value, in function returning
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
    return; // HERE
    bide_end();
}

int main(void)
{
    struct x x = {0};
    return bide_sync_wait(bide_task_init(&x.task, &body));
}

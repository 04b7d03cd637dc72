/*
 * The operation is a local variable of the body.
 * told: run
 * says: what is awaited is a local variable of the body, body, 
 */
#include "mistakes.h"

struct x {
    bide_task task;
    bide_event event;
};

bide_coroutine(body)
{
    bide_begin(body, struct x * self);
    bide_event_waiter wait;
    bide_await(bide_event_wait(&wait, &self->event)); // HERE
    bide_end();
}

int main(void)
{
    struct x x = {0};
    bide_event_init(&x.event, false);
    return bide_sync_wait(bide_task_init(&x.task, &body));
}

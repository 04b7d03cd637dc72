/*
 * An operation is awaited that was never made: its struct is zero.
 * told: run
 * says: what is awaited was never initialised, body, 
 */
#include "mistakes.h"

struct x {
    bide_task task;
    bide_event event;
    bide_event_waiter wait;
};

bide_coroutine(body)
{
    bide_begin(body, struct x * self);
    bide_await(&self->wait.listed.awaiter); // HERE
    bide_end();
}

int main(void)
{
    struct x x = {0};
    bide_event_init(&x.event, false);
    return bide_sync_wait(bide_task_init(&x.task, &body));
}

/*
 * NULL stands where a function is needed.
 * told: run
 * says: NULL is given for a function: bide_then, body, 
 */
#include "mistakes.h"

#include "bide/then.h"

struct x {
    bide_task task;
    bide_event event;
    bide_event_waiter wait;
    bide_then_operation then;
};

bide_coroutine(body)
{
    bide_begin(body, struct x * self);
    bide_event_init(&self->event, true);
    bide_await(bide_then(&self->then, bide_event_wait(&self->wait, &self->event), NULL, self)); // HERE
    bide_end();
}

int main(void)
{
    static struct x x;
    return bide_sync_wait(bide_task_init(&x.task, &body));
}

/*
 * One operation is given to two branches.
 * told: run
 * says: an operation is used again while it waits: bide_event_wait, first used by body \(.*flight_branches.c:24\), body,
 */
#include "mistakes.h"

#include "bide/when.h"

struct x {
    bide_task task;
    bide_event event;
    bide_event_waiter wait;
    bide_awaiter *operation;
    bide_when_of(2) both;
};

bide_coroutine(body)
{
    bide_begin(body, struct x * self);
    bide_event_init(&self->event, false);
    self->operation = bide_event_wait(&self->wait, &self->event);
    /* the line that is said */
    bide_await(bide_when_all_of(&self->both, self->operation, self->operation)); // HERE
    bide_end();
}

int main(void)
{
    static struct x x;
    return bide_sync_wait(bide_task_init(&x.task, &body));
}

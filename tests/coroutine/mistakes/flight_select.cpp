/*
 * One operation is two cases of a select.
 * told: run
 * says: an operation is used again while it waits: bide_event_wait, first used by body \(.*flight_select.cpp:25\), body,
 */
#include "mistakes.h"

#include "bide/auto_event.h"
#include "bide/select.h"

struct x {
    bide_task task;
    bide_event event;
    bide_event_waiter wait;
    bide_select_of(2) any;
};

bide_coroutine(body)
{
    bide_begin(body, x *self);
    bide_event_init(&self->event, false);
    self->any.random = 1;
    bide_awaiter *wait; /* not initialised: a resumed body jumps past this line */
    wait = bide_event_wait(&self->wait, &self->event);
    bide_await(bide_select_any_of(&self->any, wait, wait)); // HERE
    bide_end();
}

int main()
{
    static struct x x;
    return bide_sync_wait(bide_task_init(&x.task, &body));
}

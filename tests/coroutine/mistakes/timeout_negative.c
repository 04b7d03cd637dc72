/*
 * A wait has a timeout that is negative.
 * told: run
 * says: a duration is negative: &self->limited, body, 
 */
#include "mistakes.h"

#include "bide/deadline.h"

struct x {
    bide_task task;
    bide_event event;
    bide_event_waiter wait;
    bide_with_deadline_operation limited;
    int seconds;
};

bide_coroutine(body)
{
    bide_begin(body, struct x * self);
    bide_event_init(&self->event, false);
    self->seconds = -1;
    bide_await(bide_with_timeout(&self->limited, BIDE_SECONDS(self->seconds), bide_event_wait(&self->wait, &self->event))); // HERE
    bide_end();
}

int main(void)
{
    static struct x x;
    return bide_sync_wait(bide_task_init(&x.task, &body));
}

/*
 * A duration is given for the time of a deadline.
 * told: run
 * says: a deadline lies before the process began: is it a duration .bide_with_timeout, bide_sleep_for.., body, 
 */
#include "mistakes.h"

#include "bide/deadline.h"

struct x {
    bide_task task;
    bide_deadline deadline;
    int error;
};

bide_coroutine(body)
{
    bide_begin(body, struct x * self);
    self->error = bide_deadline_init(&self->deadline, bide_this_context(), BIDE_SECONDS(2)); // HERE
    bide_return(self->error);
    bide_end();
}

int main(void)
{
    static struct x x;
    bide_clock_began_ = BIDE_SECONDS(1000); /* (this platform has no clock) */
    return bide_sync_wait(bide_task_init(&x.task, &body));
}

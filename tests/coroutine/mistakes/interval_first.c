/*
 * A duration is given for the time of the first tick of an interval.
 * told: run
 * says: a deadline lies before the process began: is it a duration .bide_with_timeout, bide_sleep_for.., body, 
 */
#include "mistakes.h"

#include "bide/interval.h"

struct x {
    bide_task task;
    bide_interval every;
};

bide_coroutine(body)
{
    bide_begin(body, struct x * self);
    bide_interval_init(&self->every, BIDE_SECONDS(2), BIDE_SECONDS(2), BIDE_MISSED_SKIP);
    bide_await(bide_interval_tick(&self->every)); // HERE
    bide_end();
}

int main(void)
{
    static struct x x;
    bide_clock_began_ = BIDE_SECONDS(1000); /* (this platform has no clock) */
    return bide_sync_wait(bide_task_init(&x.task, &body));
}

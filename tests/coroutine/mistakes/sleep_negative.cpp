/*
 * A coroutine sleeps for a negative number of milliseconds.
 * told: run
 * says: a duration is negative: &self->sleep, body, 
 */
#include "mistakes.h"

#include "bide/sleep.h"

struct x {
    bide_task task;
    bide_sleep sleep;
    int milliseconds;
};

bide_coroutine(body)
{
    bide_begin(body, x *self);
    self->milliseconds = -20;
    bide_await(bide_sleep_for(&self->sleep, BIDE_MILLISECONDS(self->milliseconds))); // HERE
    bide_end();
}

int main()
{
    static struct x x;
    return bide_sync_wait(bide_task_init(&x.task, &body));
}

/*
 * A barging mutex is unlocked by a key that is zero: it has locked none.
 * told: run
 * says: a barging mutex is unlocked by a waiter that has not locked it: &self->lock, body, 
 */
#include "mistakes.h"

#include "bide/barging_mutex.h"

struct x {
    bide_task task;
    bide_barging_mutex_waiter lock;
};

bide_coroutine(body)
{
    bide_begin(body, struct x * self);
    bide_barging_mutex_unlock(&self->lock); // HERE
    bide_end();
}

int main(void)
{
    static struct x x;
    return bide_sync_wait(bide_task_init(&x.task, &body));
}

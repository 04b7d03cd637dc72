/*
 * A reader upgrades that has not locked it to do so.
 * told: run
 * says: a reader-writer lock is upgraded by a waiter that has not locked it to do so: &self->lock, body, 
 */
#include "mistakes.h"

#include "bide/rw_lock.h"

struct x {
    bide_task task;
    bide_rw_lock rw;
    bide_rw_lock_waiter lock;
};

bide_coroutine(body)
{
    bide_begin(body, struct x * self);
    bide_await(bide_rw_lock_read(&self->lock, &self->rw));
    bide_await(bide_rw_lock_upgrade(&self->lock)); // HERE
    bide_end();
}

int main(void)
{
    static struct x x;
    bide_rw_lock_init(&x.rw);
    return bide_sync_wait(bide_task_init(&x.task, &body));
}

/*
 * A reader-writer lock is unlocked by a key that is zero: it has locked none.
 * told: run
 * says: a reader-writer lock is unlocked by a waiter that has not locked it: &self->lock, body, 
 */
#include "mistakes.h"

#include "bide/rw_lock.h"

struct x {
    bide_task task;
    bide_rw_lock_waiter lock;
};

bide_coroutine(body)
{
    bide_begin(body, struct x * self);
    bide_rw_lock_unlock(&self->lock); // HERE
    bide_end();
}

int main(void)
{
    static struct x x;
    return bide_sync_wait(bide_task_init(&x.task, &body));
}

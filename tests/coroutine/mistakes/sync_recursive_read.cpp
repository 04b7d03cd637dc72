/*
 * A reader reads again with the key by which it reads already: one of the two would be lost.
 * told: run
 * says: a key that holds a reader-writer lock is used for another lock: &self->key, body, 
 */
#include "mistakes.h"

#include "bide/rw_lock.h"

struct x {
    bide_task task;
    bide_rw_lock lock;
    bide_rw_lock_waiter key;
};

bide_coroutine(body)
{
    bide_begin(body, x *self);
    bide_await(bide_rw_lock_write(&self->key, &self->lock));
    bide_rw_lock_downgrade(&self->key);
    bide_rw_lock_unlock(&self->key);
    bide_await(bide_rw_lock_read(&self->key, &self->lock));
    bide_await(bide_rw_lock_read(&self->key, &self->lock)); // HERE
    bide_end();
}

int main()
{
    static struct x x;
    bide_rw_lock_init(&x.lock);
    return bide_sync_wait(bide_task_init(&x.task, &body));
}

/*
 * A mutex is unlocked that is not locked: the body is named, not its step.
 * told: run
 * says: a mutex is unlocked by a waiter that has not locked it: .*, body, 
 */
#include "mistakes.h"

struct x {
    bide_task task;
    bide_mutex mutex;
    bide_mutex_waiter lock;
};

bide_coroutine(body)
{
    bide_begin(body, struct x * self);
    bide_mutex_unlock(&self->lock); // HERE
    bide_end();
}

int main(void)
{
    struct x x = {0};
    bide_mutex_init(&x.mutex);
    x.lock.mutex = &x.mutex;
    return bide_sync_wait(bide_task_init(&x.task, &body));
}

/*
 * One key for two mutexes: the first cannot be unlocked any more.
 * told: run
 * says: a mutex is unlocked by a waiter that has not locked it: &self->lock, body, 
 */
#include "mistakes.h"

struct x {
    bide_task task;
    bide_mutex first, second;
    bide_mutex_waiter lock;
};

bide_coroutine(body)
{
    bide_begin(body, struct x * self);
    bide_await(bide_mutex_lock(&self->lock, &self->first));
    bide_await(bide_mutex_lock(&self->lock, &self->second));
    bide_mutex_unlock(&self->lock);
    bide_mutex_unlock(&self->lock); // HERE
    bide_end();
}

int main(void)
{
    static struct x x;
    bide_mutex_init(&x.first);
    bide_mutex_init(&x.second);
    return bide_sync_wait(bide_task_init(&x.task, &body));
}

/*
 * More permits are waited for than a semaphore can ever have.
 * told: run
 * says: more permits are wanted than a semaphore can have, bide_semaphore_acquire_many, 
 */
#include "mistakes.h"

#include "bide/semaphore.h"

struct x {
    bide_task task;
    bide_semaphore semaphore;
    bide_semaphore_waiter permits;
};

bide_coroutine(body)
{
    bide_begin(body, struct x * self);
    bide_await(
        bide_semaphore_acquire_many(&self->permits, &self->semaphore, BIDE_SEMAPHORE_MAX + 1));
    bide_end();
}

int main(void)
{
    static struct x x;
    bide_semaphore_init(&x.semaphore, 3);
    return bide_sync_wait(bide_task_init(&x.task, &body));
}

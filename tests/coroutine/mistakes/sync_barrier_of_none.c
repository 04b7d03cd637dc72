/*
 * A barrier without parties, at which nobody may arrive.
 * told: run
 * says: a barrier has no parties, or too many: &self->barrier, body, 
 */
#include "mistakes.h"

#include "bide/cyclic_barrier.h"

struct x {
    bide_task task;
    bide_cyclic_barrier barrier;
};

bide_coroutine(body)
{
    bide_begin(body, struct x * self);
    bide_cyclic_barrier_init(&self->barrier, 0); // HERE
    bide_end();
}

int main(void)
{
    static struct x x;
    return bide_sync_wait(bide_task_init(&x.task, &body));
}

/*
 * A latch is counted down once too often.
 * told: run
 * says: a latch is counted down below zero: &self->latch, body, 
 */
#include "mistakes.h"

#include "bide/latch.h"

struct x {
    bide_task task;
    bide_latch latch;
};

bide_coroutine(body)
{
    bide_begin(body, struct x * self);
    bide_latch_count_down(&self->latch);
    bide_latch_count_down(&self->latch); // HERE
    bide_end();
}

int main(void)
{
    static struct x x;
    bide_latch_init(&x.latch, 1);
    return bide_sync_wait(bide_task_init(&x.task, &body));
}

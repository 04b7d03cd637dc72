#include <bide/bide.h>
#include <stdio.h>

struct adder {
    bide_task task;
    long *sum; /* without a lock: one coroutine of a strand runs at a time */
    int i;
    bide_schedule_operation yield;
};

bide_coroutine(adder_body)
{
    bide_begin(adder_body, struct adder * self);
    for (self->i = 0; self->i < 1000; self->i++) {
        ++*self->sum;
        bide_try(bide_schedule(&self->yield, bide_this_context()->scheduler));
    }
    bide_end();
}

int main(void)
{
    long sum = 0;
    bide_thread_pool *pool;
    bide_strand strand;
    struct adder adders[4];
    bide_spawned spawned[4];
    if (bide_thread_pool_create(&pool, 2) != 0)
        return 1;
    bide_strand_init(&strand, bide_thread_pool_scheduler(pool));
    for (int i = 0; i < 4; i++)
        bide_spawn(&spawned[i], &strand.context, bide_call(&adders[i], &adder_body, sum = &sum));
    for (int i = 0; i < 4; i++)
        bide_event_wait_blocking(&spawned[i].ended, BIDE_FOREVER);
    bide_strand_destroy(&strand);
    bide_thread_pool_destroy(pool);
    printf("%ld\n", sum);
}

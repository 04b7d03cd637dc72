#include <bide/async.h>
#include <bide/bide.h>
#include <stdio.h>

async int add(long *sum) /* without a lock: one coroutine of a strand runs at a time */
{
    for (int i = 0; i < 1000; i++) {
        ++*sum;
        try await bide_schedule(bide_this_context()->scheduler);
    }
    return 0;
}

int main(void)
{
    long sum = 0;
    bide_thread_pool *pool;
    bide_strand strand;
    async_frame(add) adders[4];
    bide_spawned spawned[4];
    if (bide_thread_pool_create(&pool, 2) != 0)
        return 1;
    bide_strand_init(&strand, bide_thread_pool_scheduler(pool));
    for (int i = 0; i < 4; i++)
        bide_spawn(&spawned[i], &strand.context, async_add(&adders[i], &sum));
    for (int i = 0; i < 4; i++)
        bide_event_wait_blocking(&spawned[i].ended, BIDE_FOREVER);
    bide_strand_destroy(&strand);
    bide_thread_pool_destroy(pool);
    printf("%ld\n", sum);
}

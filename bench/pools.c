/* Runs the parties of a benchmark on a thread pool, which is created once for each size. */
#include "pools.h"

#include "bench.h"

#include "bide/sync_wait.h"

bide_thread_pool *bench_pool(unsigned threads)
{
    static bide_thread_pool *pools[BENCH_POOL_THREADS + 1];
    if (pools[threads] == NULL && bide_thread_pool_create(&pools[threads], threads) != 0)
        bench_fail("pool", "no pool can be made");
    return pools[threads];
}

void bench_pool_run(bench_party *parties, size_t count, unsigned threads)
{
    bide_context context = {.scheduler = bide_thread_pool_scheduler(bench_pool(threads))};
    for (size_t i = 0; i < count; i++)
        bide_spawn(&parties[i].spawned, &context, parties[i].awaiter);
    for (size_t i = 0; i < count; i++) {
        bide_event_waiter wait;
        if (bide_sync_wait(bide_event_wait(&wait, &parties[i].spawned.ended)) != 0)
            bench_fail("pool", "a wait has failed");
    }
}

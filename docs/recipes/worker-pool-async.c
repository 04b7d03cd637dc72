#include <bide/async.h>
#include <bide/bide.h>
#include <stdio.h>

typedef bide_channel(int) jobs;

async long work(jobs *jobs)
{
    long sum = 0;
    int job;
    while (await bide_channel_recv(jobs, &job) == 0)
        sum += job;
    return sum; /* closed and empty */
}

int main(void)
{
    bide_channel_slot(int) memory[4];
    jobs jobs;
    bide_thread_pool *pool;
    async_frame(work) workers[3];
    bide_spawned spawned[3];
    bide_channel_init(&jobs, memory, 4);
    if (bide_thread_pool_create(&pool, 2) != 0)
        return 1;
    bide_context context = {.scheduler = bide_thread_pool_scheduler(pool)};
    for (int i = 0; i < 3; i++)
        bide_spawn(&spawned[i], &context, async_work(&workers[i], &jobs));
    for (int job = 1; job <= 100; job++)
        bide_channel_send_blocking(&jobs, &job, BIDE_FOREVER);
    bide_channel_close(&jobs);
    bide_thread_pool_shutdown(pool, BIDE_FOREVER, NULL); /* until all have ended */
    printf("%ld\n", workers[0].result + workers[1].result + workers[2].result);
}

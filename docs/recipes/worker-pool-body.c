#include <bide/bide.h>
#include <stdio.h>

typedef bide_channel(int) jobs;

struct worker {
    bide_task task;
    jobs *jobs;
    bide_channel_waiter recv;
    int job, sum;
};

bide_coroutine(worker_body)
{
    bide_begin(worker_body, struct worker * self);
    for (;; self->sum += self->job)
        bide_try_or_break(bide_channel_recv(&self->recv, self->jobs, &self->job));
    bide_end(); /* closed and empty */
}

int main(void)
{
    bide_channel_slot(int) memory[4];
    jobs jobs;
    bide_thread_pool *pool;
    struct worker workers[3];
    bide_spawned spawned[3];
    bide_channel_init(&jobs, memory, 4);
    if (bide_thread_pool_create(&pool, 2) != 0)
        return 1;
    bide_context context = {.scheduler = bide_thread_pool_scheduler(pool)};
    for (int i = 0; i < 3; i++)
        bide_spawn(&spawned[i], &context,
                   bide_call(&workers[i], &worker_body, jobs = &jobs, sum = 0));
    for (int job = 1; job <= 100; job++)
        bide_channel_send_blocking(&jobs, &job, BIDE_FOREVER);
    bide_channel_close(&jobs);
    bide_thread_pool_shutdown(pool, BIDE_FOREVER, NULL); /* until all have ended */
    printf("%d\n", workers[0].sum + workers[1].sum + workers[2].sum);
}

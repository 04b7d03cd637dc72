#include <bide/bide.h>
#include <stdio.h>

struct job {
    bide_task task;
    bide_semaphore *limit;
    int *running, *most;
    bide_semaphore_waiter permit;
    bide_sleep sleep;
};

bide_coroutine(job_body)
{
    bide_begin(job_body, struct job * self);
    bide_try(bide_semaphore_acquire(&self->permit, self->limit));
    if (++*self->running > *self->most)
        *self->most = *self->running;
    bide_await(bide_sleep_for(&self->sleep, BIDE_MILLISECONDS(1)));
    --*self->running;
    bide_semaphore_release(self->limit, 1);
    bide_end();
}

int main(void)
{
    bide_semaphore limit;
    int running = 0, most = 0;
    struct job jobs[5];
    bide_branch branches[5];
    bide_when all;
    bide_semaphore_init(&limit, 2);
    for (int i = 0; i < 5; i++)
        bide_branch_init(&branches[i], bide_call(&jobs[i], &job_body, limit = &limit,
                                                 running = &running, most = &most));
    int status = bide_sync_wait(bide_when_all(&all, branches, 5));
    printf("%d: at most %d at a time\n", status, most);
}

#include <bide/async.h>
#include <bide/bide.h>
#include <stdio.h>

async int job(bide_semaphore *limit, int *running, int *most)
{
    bide_semaphore_waiter permit;
    try await bide_semaphore_acquire(&permit, limit);
    defer bide_semaphore_release(limit, 1);
    if (++*running > *most)
        *most = *running;
    await bide_sleep_for(BIDE_MILLISECONDS(1));
    --*running;
    return 0;
}

async int jobs(bide_semaphore *limit, int *running, int *most)
{
    bide_scope scope;
    bide_scope_init(&scope, bide_this_frame());
    defer bide_scope_destroy(&scope);
    for (int i = 0; i < 5; i++)
        if (spawn(&scope, job(limit, running, most)) < 0)
            return -ENOMEM;
    return await bide_scope_join(&scope);
}

int main(void)
{
    bide_semaphore limit;
    int running = 0, most = 0;
    async_frame(jobs) frame;
    bide_semaphore_init(&limit, 2);
    int status = bide_sync_wait(async_jobs(&frame, &limit, &running, &most));
    printf("%d: at most %d at a time\n", status, most);
}

/*
 * A call that sometimes fails and sometimes hangs: it is retried with a timeout, with a doubled
 * delay each time.
 */
#include <bide/async.h>
#include <bide/deadline.h>
#include <bide/run_loop.h>
#include <bide/sleep.h>
#include <stdio.h>

static const uint64_t millisecond = 1000000;

/* The first attempt fails, the second hangs, the third succeeds. */
async int call(int attempt)
{
    if (attempt == 1)
        return -ECONNREFUSED;
    return await bide_sleep_for(attempt == 2 ? 10000 * millisecond : millisecond);
}

async int with_retries(int max_attempts)
{
    uint64_t pause = millisecond;
    for (int attempt = 1;; attempt++, pause *= 2) {
        uint64_t deadline = bide_now(bide_this_context()) + 1000 * millisecond;
        int status = await bide_with_deadline(deadline, call(attempt));
        printf("attempt %d: %s\n", attempt,
               status == 0            ? "done"
               : status == -ETIMEDOUT ? "too late"
                                      : "refused");
        if (status == 0 || attempt == max_attempts)
            return status;
        if ((status = await bide_sleep_for(pause)) < 0)
            return status;
    }
}

async int main_task(void)
{
    printf("of 5: %d\n", await with_retries(5));
    printf("of 1: %d\n", await with_retries(1) == -ECONNREFUSED);
    return 0;
}

int main(void)
{
    async_frame(main_task) frame;
    bide_run_loop loop;
    bide_run_loop_init(&loop);
    int status = bide_run_loop_wait(&loop, async_main_task(&frame));
    bide_run_loop_destroy(&loop);
    return -status;
}

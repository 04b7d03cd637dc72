/* A call that fails now and then, and now and then hangs: it is tried again, each time after twice as long. */
#include <bide/async.h>
#include <bide/deadline.h>
#include <bide/run_loop.h>
#include <bide/sleep.h>
#include <stdio.h>

static const uint64_t millisecond = 1000000;

/* Its first attempt fails, the second hangs, the third succeeds. */
async int call(int attempt)
{
    if (attempt == 1)
        return -ECONNREFUSED;
    return await bide_sleep_for(attempt == 2 ? 10000 * millisecond : millisecond);
}

async int with_retries(int max)
{
    uint64_t pause = millisecond;
    for (int attempt = 1;; attempt++, pause *= 2) {
        uint64_t deadline = bide_now(bide_this_context()) + 1000 * millisecond;
        int status = await bide_with_deadline(deadline, call(attempt));
        printf("attempt %d: %s\n", attempt,
               status == 0            ? "done"
               : status == -ETIMEDOUT ? "too late"
                                      : "refused");
        if (status == 0 || attempt == max)
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

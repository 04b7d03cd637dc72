/*
 * A call that sometimes fails and sometimes hangs: it is retried with a timeout, with a doubled
 * delay each time.
 */
#include <bide/async.h>
#include <bide/deadline.h>
#include <bide/loop.h>
#include <bide/sleep.h>
#include <stdio.h>

/* The first attempt fails, the second hangs, the third succeeds. */
async int call(int attempt)
{
    if (attempt == 1)
        return -ECONNREFUSED;
    return await bide_sleep_for(attempt == 2 ? BIDE_SECONDS(10) : BIDE_MILLISECONDS(1));
}

async int with_retries(int max_attempts)
{
    uint64_t pause = BIDE_MILLISECONDS(1);
    for (int attempt = 1;; attempt++, pause *= 2) {
        int status = await bide_with_timeout(BIDE_SECONDS(1), call(attempt));
        printf("attempt %d: %s\n", attempt,
               status == 0            ? "done"
               : status == -ETIMEDOUT ? "too late"
                                      : "refused");
        if (status == 0 || attempt == max_attempts)
            return status;
        try await bide_sleep_for(pause);
    }
}

async int main(void)
{
    printf("of 5: %d\n", await with_retries(5));
    printf("of 1: %d\n", await with_retries(1) == -ECONNREFUSED);
    return 0;
}

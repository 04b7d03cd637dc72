#include <bide/async.h>
#include <bide/bide.h>
#include <stdio.h>

/* Fails twice. */
static int attempt(int *calls)
{
    return ++*calls < 3 ? -EAGAIN : 0;
}

async int retry(int tries)
{
    int calls = 0, status;
    for (uint64_t pause = BIDE_MILLISECONDS(1);; pause *= 2) { /* doubles after each failure */
        status = attempt(&calls);
        if (status != -EAGAIN || --tries == 0)
            break;
        printf("failed: waits %u ms\n", (unsigned)(pause / BIDE_MILLISECONDS(1)));
        try await bide_sleep_for(pause);
    }
    printf("%d after %d calls\n", status, calls);
    return status;
}

int main(void)
{
    async_frame(retry) frame;
    return bide_sync_wait(async_retry(&frame, 5)) != 0;
}

#include <bide/async.h>
#include <bide/bide.h>
#include <stdio.h>

async int run_clock(void)
{
    bide_interval every;
    uint64_t now = bide_now(bide_this_context());
    bide_interval_init(&every, now, BIDE_MILLISECONDS(2), BIDE_MISSED_SKIP);
    for (int ticks = 1; ticks <= 3; ticks++) {
        try await bide_interval_tick(&every); /* the first comes at once */
        printf("tick %d\n", ticks);
    }
    return 0;
}

int main(void)
{
    async_frame(run_clock) frame;
    return bide_sync_wait(async_run_clock(&frame)) != 0;
}

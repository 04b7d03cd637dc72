#include <bide/bide.h>
#include <stdio.h>

struct clock {
    bide_task task;
    bide_interval every;
    int ticks;
};

bide_coroutine(clock_body)
{
    bide_begin(clock_body, struct clock * self);
    bide_interval_init(&self->every, bide_now(bide_this_context()), BIDE_MILLISECONDS(2),
                       BIDE_MISSED_SKIP);
    for (self->ticks = 1; self->ticks <= 3; self->ticks++) {
        bide_try(bide_interval_tick(&self->every)); /* the first comes at once */
        printf("tick %d\n", self->ticks);
    }
    bide_end();
}

int main(void)
{
    struct clock clock;
    return bide_sync_wait(bide_task_init(&clock.task, &clock_body)) != 0;
}

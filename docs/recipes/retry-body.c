#include <bide/bide.h>
#include <stdio.h>

/* Fails twice. */
static int attempt(int *calls)
{
    return ++*calls < 3 ? -EAGAIN : 0;
}

struct retry {
    bide_task task;
    int calls, status, tries;
    uint64_t pause; /* nanoseconds: doubles after each failure */
    bide_sleep sleep;
};

bide_coroutine(retry_body)
{
    bide_begin(retry_body, struct retry * self);
    for (self->tries = 5, self->pause = BIDE_MILLISECONDS(1);; self->pause *= 2) {
        self->status = attempt(&self->calls);
        if (self->status != -EAGAIN || --self->tries == 0)
            break;
        printf("failed: waits %u ms\n", (unsigned)(self->pause / BIDE_MILLISECONDS(1)));
        bide_try(bide_sleep_for(&self->sleep, self->pause));
    }
    printf("%d after %d calls\n", self->status, self->calls);
    bide_end();
}

int main(void)
{
    struct retry retry = {.calls = 0};
    return bide_sync_wait(bide_task_init(&retry.task, &retry_body)) != 0;
}

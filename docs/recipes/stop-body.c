#include <bide/bide.h>
#include <stdio.h>

struct waiter {
    bide_task task;
    bide_sleep sleep;
};

bide_coroutine(waiter_body)
{
    bide_begin(waiter_body, struct waiter * self);
    puts("starts");
    bide_try(bide_sleep_for(&self->sleep, BIDE_SECONDS(3600)));
    puts("not reached");
    bide_finally();
    puts("cleans up"); /* however it ends */
    bide_end();
}

int main(void)
{
    bide_stop_source stop;
    bide_spawned spawned;
    struct waiter waiter;
    bide_stop_source_init(&stop);
    bide_context context = bide_default_context;
    context.stop = &stop;
    bide_spawn(&spawned, &context, bide_task_init(&waiter.task, &waiter_body));
    bide_stop_request(&stop); /* on any thread */
    bide_event_wait_blocking(&spawned.ended, BIDE_FOREVER);
    puts(spawned.root.status == -ECANCELED ? "stopped" : "ended");
}

#include <bide/async.h>
#include <bide/bide.h>
#include <stdio.h>

async int wait_long(void)
{
    puts("starts");
    defer puts("cleans up"); /* however it ends */
    try await bide_sleep_for(BIDE_SECONDS(3600));
    puts("not reached");
    return 0;
}

int main(void)
{
    bide_stop_source stop;
    bide_spawned spawned;
    async_frame(wait_long) waiter;
    bide_stop_source_init(&stop);
    bide_context context = bide_default_context;
    context.stop = &stop;
    bide_spawn(&spawned, &context, async_wait_long(&waiter));
    bide_stop_request(&stop); /* on any thread */
    bide_event_wait_blocking(&spawned.ended, BIDE_FOREVER);
    puts(spawned.root.status == -ECANCELED ? "stopped" : "ended");
}

#include <bide/async.h>
#include <bide/bide.h>
#include <stdio.h>

async int add(int *sum)
{
    int read = *sum; /* the mistake: others run before it is written */
    try await bide_schedule(bide_this_context()->scheduler);
    *sum = read + 1;
    return 0;
}

async int both(int *sum)
{
    return await all(add(sum), add(sum));
}

static int two_adders(bide_sim_loop *loop, void *argument)
{
    async_frame(both) frame;
    int sum = 0;
    (void)argument;
    int status = bide_sim_loop_wait(loop, async_both(&frame, &sum));
    return status < 0 ? status : sum == 2 ? 0 : -EINVAL;
}

int main(void)
{
    puts(bide_sim_loop_explore(two_adders, 1000) != 0 ? "a seed finds it" : "not found");
}

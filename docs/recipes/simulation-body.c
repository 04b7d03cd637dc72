#include <bide/bide.h>
#include <stdio.h>

struct adder {
    bide_task task;
    int *sum, read;
    bide_schedule_operation yield;
};

bide_coroutine(adder_body)
{
    bide_begin(adder_body, struct adder * self);
    self->read = *self->sum; /* the mistake: others run before it is written */
    bide_try(bide_schedule(&self->yield, bide_this_context()->scheduler));
    *self->sum = self->read + 1;
    bide_end();
}

static int two_adders(bide_sim_loop *loop, void *argument)
{
    struct adder one, two;
    bide_when_of(2) both;
    int sum = 0;
    (void)argument;
    int status =
        bide_sim_loop_wait(loop, bide_when_all_of(&both, bide_call(&one, &adder_body, sum = &sum),
                                                  bide_call(&two, &adder_body, sum = &sum)));
    return status < 0 ? status : sum == 2 ? 0 : -EINVAL;
}

int main(void)
{
    puts(bide_sim_loop_explore(two_adders, 1000) != 0 ? "a seed finds it" : "not found");
}

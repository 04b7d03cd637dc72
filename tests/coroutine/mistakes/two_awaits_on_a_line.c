/*
 * An await on the line of another, in standard C.
 * told: error
 * says: NOT_IN_A_SWITCH_AND_ONE_A_LINE_
 * only: 1
 */
#include "mistakes.h"

struct x {
    bide_task task;
    bide_awaiter *awaiter;
};

bide_coroutine(body)
{
    bide_begin(body, struct x * self);
    // clang-format off
    for (;;) { bide_await(self->awaiter); bide_await(self->awaiter); } // HERE
    // clang-format on
    bide_end();
}

int main(void)
{
    struct x x = {0};
    return bide_sync_wait(bide_task_init(&x.task, &body));
}

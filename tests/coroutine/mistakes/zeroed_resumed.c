/*
 * A coroutine is resumed that was never made: its frame is zero.
 * told: run
 * says: a coroutine is resumed that was never initialised
 */
#include "mistakes.h"

struct x {
    bide_task task;
};

bide_coroutine(body)
{
    bide_begin(body, struct x * self);
    puts(self != NULL ? "it runs" : "");
    bide_end();
}

int main(void)
{
    struct x x = {0};
    bide_resume(&x.task.frame);
    bide_await_later(bide_task_init(&x.task, &body));
    return 0;
}

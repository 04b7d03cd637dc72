/*
 * A body without bide_begin that awaits nothing.
 * told: error
 * says: bide_begin_is_missing_
 */
#include "mistakes.h"

struct x {
    bide_task task;
    bide_event *event;
    bide_event_waiter wait;
};

bide_coroutine(body)
{
    puts("no await");
    bide_end(); // HERE
}

int main(void)
{
    struct x x = {0};
    return bide_sync_wait(bide_task_init(&x.task, &body));
}

/*
 * An await directly inside a switch of the body's own, in standard C.
 * told: error
 * says: NOT_IN_A_SWITCH_AND_ONE_A_LINE_
 * only: 1
 */
#include "mistakes.h"

struct x {
    bide_task task;
    bide_event *event;
    bide_event_waiter wait;
    int i;
};

bide_coroutine(body)
{
    bide_begin(body, struct x * self);
    switch (self->i) {
    case 1:
        bide_await(bide_event_wait(&self->wait, self->event)); // HERE
        break;
    default:
        break;
    }
    bide_end();
}

int main(void)
{
    struct x x = {0};
    return bide_sync_wait(bide_task_init(&x.task, &body));
}

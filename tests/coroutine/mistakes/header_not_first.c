/*
 * The header is not the first member of the frame.
 * told: error
 * says: bide_header_must_be_first_in_the_frame_
 */
#include "mistakes.h"

struct x {
    const char *name;
    bide_task task;
    bide_event *event;
    bide_event_waiter wait;
};

bide_coroutine(body)
{
    bide_begin(body, struct x * self); // HERE
    bide_await(bide_event_wait(&self->wait, self->event));
    bide_end();
}

int main(void)
{
    struct x x = {0};
    return bide_sync_wait(bide_task_init(&x.task, &body));
}

/*
 * A child is awaited that was never made: its frame is zero.
 * told: run
 * says: what is awaited was never initialised, body, 
 */
#include "mistakes.h"

struct child {
    bide_task task;
    bide_event *event;
    bide_event_waiter wait;
};

bide_coroutine(child_body)
{
    bide_begin(child_body, struct child * self);
    bide_await(bide_event_wait(&self->wait, self->event));
    bide_end();
}

struct x {
    bide_task task;
    struct child child;
};

bide_coroutine(body)
{
    bide_begin(body, struct x * self);
    bide_await(&self->child.task.frame.awaiter); // HERE
    bide_await(bide_task_init(&self->child.task, &child_body));
    bide_end();
}

int main(void)
{
    struct x x = {0};
    return bide_sync_wait(bide_task_init(&x.task, &body));
}

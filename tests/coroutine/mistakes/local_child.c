/*
 * A child is a local variable of the body.
 * told: run
 * says: what is awaited is a local variable of the body, body, 
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
    bide_event event;
};

bide_coroutine(body)
{
    bide_begin(body, struct x * self);
    struct child child = {.event = &self->event};
    bide_await(bide_task_init(&child.task, &child_body)); // HERE
    bide_end();
}

int main(void)
{
    struct x x = {0};
    bide_event_init(&x.event, false);
    return bide_sync_wait(bide_task_init(&x.task, &body));
}

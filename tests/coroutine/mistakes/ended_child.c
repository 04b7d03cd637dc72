/*
 * A child is awaited again that has ended.
 * told: run
 * says: a coroutine was awaited that had ended already: child_body .*\.c:[0-9]+\), body, 
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
    struct child child;
};

bide_coroutine(body)
{
    bide_begin(body, struct x * self);
    self->child.event = &self->event;
    bide_await(bide_task_init(&self->child.task, &child_body));
    bide_await(&self->child.task.frame.awaiter); // HERE
    bide_end();
}

int main(void)
{
    struct x x = {0};
    bide_event_init(&x.event, true);
    return bide_sync_wait(bide_task_init(&x.task, &body));
}

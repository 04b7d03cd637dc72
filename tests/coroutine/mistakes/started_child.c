/*
 * A child is awaited by another while the first waits for it.
 * told: run
 * says: a coroutine was awaited that had started already: child_body .*\.c:[0-9]+\), body, 
 */
#include "mistakes.h"

#include "bide/extend/root.h"

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

static void ended(bide_root *root)
{
    (void)root;
}

struct x {
    bide_task task;
    struct child *child;
};

bide_coroutine(body)
{
    bide_begin(body, struct x * self);
    bide_await(&self->child->task.frame.awaiter); // HERE
    bide_end();
}

int main(void)
{
    static bide_event event;
    static struct child child = {.event = &event};
    static bide_root roots[2];
    struct x one = {.child = &child}, two = {.child = &child};
    bide_event_init(&event, false);
    bide_await_later(bide_task_init(&child.task, &child_body));
    bide_root_start(&roots[0], &bide_default_context, bide_task_init(&one.task, &body), ended);
    bide_root_start(&roots[1], &bide_default_context, bide_task_init(&two.task, &body), ended);
    return 0;
}

/*
 * A local that is initialised before an await would be lost at it: in C++ that does not compile.
 * told: error
 * says: jump to case label|cannot jump from switch statement to this case label
 * says: bide_await|HERE
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
    bide_begin(body, x * self);
    int i = self->i;
    bide_await(bide_event_wait(&self->wait, self->event)); // HERE
    self->i = i;
    bide_end();
}

int main()
{
    x frame = {};
    return bide_sync_wait(bide_task_init(&frame.task, &body));
}

/*
 * A coroutine ends with a scope that it has not joined.
 * told: run
 * says: a coroutine ended with a scope that it had not joined, body,
 */
#include "mistakes.h"

#include "bide/scope.h"

struct x {
    bide_task task;
    bide_event event;
    bide_event_waiter wait;
    bide_scope scope;
    bide_branch branch;
};

bide_coroutine(body)
{
    bide_begin(body, x *self);
    bide_event_init(&self->event, false);
    bide_scope_init(&self->scope, bide_this_frame());
    bide_scope_spawn(&self->scope, &self->branch, bide_event_wait(&self->wait, &self->event));
    bide_end();
}

int main()
{
    static struct x x;
    return bide_sync_wait(bide_task_init(&x.task, &body));
}

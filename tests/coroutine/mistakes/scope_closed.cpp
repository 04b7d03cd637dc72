/*
 * Something is spawned into a scope that was joined.
 * told: run
 * says: something is spawned into a scope that bide_scope_init has not opened, or that was joined: &self->scope, body,
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
    bide_await(bide_scope_join(&self->scope));
    bide_scope_spawn(&self->scope, &self->branch, bide_event_wait(&self->wait, &self->event)); // HERE
    bide_end();
}

int main()
{
    static struct x x;
    return bide_sync_wait(bide_task_init(&x.task, &body));
}

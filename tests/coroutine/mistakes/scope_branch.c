/*
 * A branch of a scope is used again while what it runs has not ended.
 * told: run
 * says: a bide_branch is used again before what it ran ended: &self->branch, body,
 */
#include "mistakes.h"

#include "bide/scope.h"

struct x {
    bide_task task;
    bide_event event;
    bide_event_waiter waits[2];
    bide_scope scope;
    bide_branch branch;
};

bide_coroutine(body)
{
    bide_begin(body, struct x * self);
    bide_event_init(&self->event, false);
    bide_scope_init(&self->scope, bide_this_frame());
    bide_scope_spawn(&self->scope, &self->branch, bide_event_wait(&self->waits[0], &self->event));
    bide_scope_spawn(&self->scope, &self->branch, bide_event_wait(&self->waits[1], &self->event)); // HERE
    bide_await(bide_scope_join(&self->scope));
    bide_end();
}

int main(void)
{
    static struct x x;
    return bide_sync_wait(bide_task_init(&x.task, &body));
}

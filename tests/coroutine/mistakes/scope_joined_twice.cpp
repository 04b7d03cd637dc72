/*
 * A scope is joined twice.
 * told: run
 * says: a scope is joined that is not open: &self->scope, body,
 */
#include "mistakes.h"

#include "bide/scope.h"

struct x {
    bide_task task;
    bide_scope scope;
};

bide_coroutine(body)
{
    bide_begin(body, x *self);
    bide_scope_init(&self->scope, bide_this_frame());
    bide_await(bide_scope_join(&self->scope));
    bide_await(bide_scope_join(&self->scope)); // HERE
    bide_end();
}

int main()
{
    static struct x x;
    return bide_sync_wait(bide_task_init(&x.task, &body));
}

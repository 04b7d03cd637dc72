/*
 * A scope is joined that was never opened.
 * told: run
 * says: a scope is joined that was never opened: &self->scope, body,
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
    bide_await(bide_scope_join(&self->scope)); // HERE
    bide_end();
}

int main()
{
    static struct x x;
    return bide_sync_wait(bide_task_init(&x.task, &body));
}

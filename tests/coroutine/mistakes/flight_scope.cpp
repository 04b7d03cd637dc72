/*
 * One task is given to two branches of a scope.
 * told: run
 * says: a coroutine is awaited again before it has ended: child_body, first used \(.*flight_scope.cpp:34\), body,
 */
#include "mistakes.h"

#include "bide/scope.h"

struct child {
    bide_task task;
};

bide_coroutine(child_body)
{
    bide_begin(child_body, struct child *self);
    (void)self;
    bide_end();
}

struct x {
    bide_task task;
    bide_scope scope;
    bide_branch branches[2];
    struct child child;
};

bide_coroutine(body)
{
    bide_begin(body, x *self);
    bide_scope_init(&self->scope, bide_this_frame());
    /* the line that is said */

    bide_scope_spawn(&self->scope, &self->branches[0], bide_task_init(&self->child.task, &child_body));
    bide_scope_spawn(&self->scope, &self->branches[1],                   // HERE
                     bide_task_init(&self->child.task, &child_body));    // HERE by clang
    bide_await(bide_scope_join(&self->scope));
    bide_end();
}

int main()
{
    static struct x x;
    return bide_sync_wait(bide_task_init(&x.task, &body));
}

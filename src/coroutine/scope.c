/*
 * Scopes: a group of branches that grows while it runs. The owner is counted until it joins, so the
 * count cannot reach 0 before. A coroutine that may spawn is counted too. The owner's thread opens and
 * joins; any counted coroutine spawns. The argument: branch.h.
 */
#include "bide/scope.h"

#include "open_scopes.h"

#include "bide/coroutine.h"
#include "bide/errors.h"
#include "bide/extend/wrapper.h"
#include "bide/handle.h"

void bide_scope_init_(bide_scope *scope, bide_frame *owner, bool debug)
{
    scope->context = *owner->context;
    bide_branch_group_init_(&scope->group, 1, BIDE_DECIDED_BY_ERROR, &scope->context,
                            &scope->awaiter);
    bide_branch_group_attach_(&scope->group, &scope->context);
    scope->owner = debug ? owner : NULL;
    if (debug)
        bide_open_scopes_add_(scope);
}

void bide_frame_ends_(const bide_frame *frame, const bide_coroutine_code *code)
{
    if (bide_open_scopes_has_(frame))
        bide_platform.misuse("a coroutine ended with a scope that it had not joined", code->name,
                             code->file, bide_frame_point(frame)->line);
}

void bide_scope_spawn_in(bide_scope *scope, bide_branch *branch, const bide_context *context,
                         bide_awaiter *awaiter, void (*ended)(bide_branch *branch))
{
    bide_scheduler *scheduler = context->scheduler;
    /* relaxed: the caller is counted itself, so the count cannot reach 0 in the meantime. */
    bide_atomic_fetch_add(&scope->group.running, 1, relaxed);
    bide_branch_init(branch, awaiter);
    bide_branch_prepare_(branch, &scope->group, 0, context);
    branch->ended = ended;
    scheduler->post(scheduler, &branch->frame.awaiter, &branch->frame.awaiter);
}

void bide_scope_spawn(bide_scope *scope, bide_branch *branch, bide_awaiter *awaiter)
{
    bide_scope_spawn_in(scope, branch, &scope->context, awaiter, NULL);
}

/* Ready if all branches have ended: then no other thread counts. */
static bool join_ready(bide_awaiter *awaiter)
{
    bide_scope *scope = bide_container_of(awaiter, bide_scope, awaiter);
    /* acquire: branch.h, 1. */
    if (bide_atomic_load(&scope->group.running, acquire) != 1)
        return false;
    bide_branch_group_end_(&scope->group);
    return true;
}

static bide_frame *join_suspend(bide_awaiter *awaiter, bide_frame *frame)
{
    bide_scope *scope = bide_container_of(awaiter, bide_scope, awaiter);
    if (!bide_branch_group_count_down_(&scope->group))
        return NULL;
    bide_branch_group_end_(&scope->group);
    return frame;
}

static int join_resume(bide_awaiter *awaiter)
{
    bide_scope *scope = bide_container_of(awaiter, bide_scope, awaiter);
    if (scope->owner != NULL)
        bide_open_scopes_remove_(scope);
    scope->owner = NULL;
    scope->group.joined = NULL; /* no branch is left to read it */
    /* relaxed: branch.h, 2. */
    return -(int)bide_atomic_load(&scope->group.decided, relaxed);
}

/* The branches are found by their sources. */
static bide_frame *join_coroutine(bide_awaiter *awaiter)
{
    bide_scope *scope = bide_container_of(awaiter, bide_scope, awaiter);
    bide_stop_source *child = scope->group.stop.first_child;
    return child != NULL ? &bide_container_of(child, bide_branch, stop)->frame : NULL;
}

/* The owner is destroyed, and with it the scope's branches. */
static void join_release(bide_awaiter *awaiter)
{
    bide_branch_group_end_(&bide_container_of(awaiter, bide_scope, awaiter)->group);
    join_resume(awaiter);
}

bide_awaiter *bide_scope_join(bide_scope *scope)
{
    static const bide_wrapper_ops ops = {
        .ops = BIDE_WRAPPER_OPS(join_ready, join_suspend, join_resume, "bide_scope_join"),
        .coroutine = join_coroutine,
        .release = join_release,
    };
    scope->awaiter.ops = &ops.ops;
    return &scope->awaiter;
}

void bide_scope_destroy(bide_scope *scope)
{
    bide_frame *branch;
    if (scope->group.joined == NULL)
        return;
    while ((branch = join_coroutine(&scope->awaiter)) != NULL)
        bide_destroy(branch);
    join_release(&scope->awaiter);
}

/*
 * Scopes: a group of branches that grows while it runs. The owner is counted until it joins, so the
 * count cannot reach 0 before. A coroutine that may spawn is counted too. The owner's thread opens and
 * joins; any counted coroutine spawns. The argument: branch.h.
 *
 * The group's source is below the one in which the scope was opened. A join may wait in another one,
 * below a deadline for example. Then it waits behind that source's gate (stop.md), and a request on
 * the source becomes a request on the group's: branch.h, 4.
 */
#include "bide/scope.h"

#include "flights.h"
#include "open_scopes.h"
#include "roots.h"

#include "bide/coroutine.h"
#include "bide/errors.h"
#include "bide/extend/wrapper.h"
#include "bide/handle.h"

#undef bide_scope_spawn
#undef bide_scope_spawn_in
#undef bide_scope_join

void bide_scope_init_(bide_scope *scope, bide_frame *owner, bool debug)
{
    scope->context = *owner->context;
    bide_branch_group_init_(&scope->group, 1, BIDE_DECIDED_BY_ERROR, &scope->context,
                            &scope->awaiter);
    bide_branch_group_attach_(&scope->group, &scope->context);
    scope->is_gated = false;
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

static bide_frame *join_count_down(bide_awaiter *awaiter, bide_frame *frame)
{
    bide_scope *scope = bide_container_of(awaiter, bide_scope, awaiter);
    if (!bide_branch_group_count_down_(&scope->group))
        return NULL;
    bide_branch_group_end_(&scope->group);
    return frame;
}

/* The join goes on waiting, until the branches have ended. The awaiter's frame is the gate. */
static void join_cancel(bide_awaiter *awaiter)
{
    bide_scope *scope = bide_container_of(awaiter, bide_scope, awaiter);
    bide_stop_request_with(&scope->group.stop, bide_stop_reason(awaiter->frame->context->stop));
}

static bide_frame *join_suspend(bide_awaiter *awaiter, bide_frame *frame)
{
    static const bide_awaiter_ops gated = {.suspend = join_count_down, .cancel = join_cancel};
    bide_scope *scope = bide_container_of(awaiter, bide_scope, awaiter);
    bide_stop_source *source = frame->context->stop;
    const bide_awaiter_ops *ops = awaiter->ops;
    if (source == NULL || source == scope->group.stop.parent)
        return join_count_down(awaiter, frame);
    scope->is_gated = true;
    bide_frame *next = bide_stop_suspend_in_(source, awaiter, &gated, frame);
    if (next != frame || awaiter->ops == ops)
        return next;
    /* It was requested before, and nothing was started. */
    scope->is_gated = false;
    awaiter->ops = ops;
    bide_stop_request_with(&scope->group.stop, bide_stop_reason(source));
    return join_count_down(awaiter, frame);
}

static int join_resume(bide_awaiter *awaiter)
{
    bide_scope *scope = bide_container_of(awaiter, bide_scope, awaiter);
    if (scope->owner != NULL)
        bide_open_scopes_remove_(scope);
    scope->owner = NULL;
    scope->is_gated = false;
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
    bide_scope *scope = bide_container_of(awaiter, bide_scope, awaiter);
    if (scope->is_gated)
        bide_stop_discard_(awaiter->frame); /* the gate, or the frame behind it */
    bide_branch_group_end_(&scope->group);
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

/* ---- Misuse ---- */

/*
 * Whether it was neither joined nor destroyed, and was opened; in zeroed memory it was not. Callers that
 * may spawn are counted, so nobody closes it meanwhile.
 */
static bool scope_is_open(bide_scope *scope)
{
    return scope->group.joined == &scope->awaiter &&
           bide_atomic_load(&scope->group.running, relaxed) != 0;
}

void bide_scope_spawn_checked_(bide_scope *scope, bide_branch *branch, const bide_context *context,
                               bide_awaiter *awaiter, void (*ended)(bide_branch *branch),
                               const char *reused, const char *what, const char *function,
                               const char *file, unsigned line)
{
    if (BIDE_UNLIKELY(!scope_is_open(scope)))
        bide_misuse_(what, function, file, line);
    bide_check_given_(awaiter, function, file, line);
#if BIDE_FLIGHTS_
    if (BIDE_UNLIKELY(bide_flights_have_(&branch->frame)))
        bide_misuse_(reused, function, file, line);
    bide_flights_attach_(awaiter, &branch->frame, function, file, line);
#else
    (void)reused;
#endif
    bide_scope_spawn_in(scope, branch, context != NULL ? context : &scope->context, awaiter, ended);
}

bide_awaiter *bide_scope_join_checked_(bide_scope *scope, const char *what, const char *function,
                                       const char *file, unsigned line)
{
    if (BIDE_UNLIKELY(!scope_is_open(scope)))
        bide_misuse_(what, function, file, line);
    return bide_scope_join(scope);
}

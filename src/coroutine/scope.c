/*
 * Scopes: a group of branches that grows while it runs. The owner is counted until it joins, so the
 * count cannot reach 0 before. A coroutine that may spawn is counted too. The owner's thread opens and
 * joins; any counted coroutine spawns. The argument: branch.h.
 *
 * The group's source is below the one in which the scope was opened. A join may wait in another one,
 * below a deadline for example. Then it waits behind that source's gate (stop.md), and a request on
 * the source becomes a request on the group's: branch.h, 4.
 *
 * A scope with options keeps accounts, under its lock. A branch:
 *
 *     spawned --no room--> held --another has ended--> begun --> finished --next--> the user's
 *        +----room------------------------------------^
 *
 * Whoever takes the lock is counted in the group, or is the owner, or is in `cancel` of a next, whose
 * gate is shut meanwhile. So the scope stays while the lock is held. Held branches are counted in
 * `running`: the join waits for them. A branch frees its room before it counts down, and posts the
 * one that gets the room.
 */
#include "bide/scope.h"

#include "flights.h"
#include "internal.h"
#include "lock.h"
#include "open_scopes.h"
#include "roots.h"

#include "bide/coroutine.h"
#include "bide/errors.h"
#include "bide/extend/wrapper.h"
#include "bide/handle.h"

#undef bide_scope_spawn
#undef bide_scope_spawn_in
#undef bide_scope_join

static void scope_init(bide_scope *scope, bide_frame *owner, bide_decision decision, bool debug)
{
    scope->context = *owner->context;
    bide_branch_group_init_(&scope->group, 1, decision, &scope->context, &scope->awaiter);
    bide_branch_group_attach_(&scope->group, &scope->context);
    scope->is_gated = false;
    scope->owner = debug ? owner : NULL;
    if (debug)
        bide_open_scopes_add_(scope);
}

void bide_scope_init_(bide_scope *scope, bide_frame *owner, bool debug)
{
    scope_init(scope, owner, BIDE_DECIDED_BY_ERROR, debug);
}

void bide_scope_init_with_(bide_scope *scope, bide_frame *owner, const bide_scope_options *options,
                           bool debug)
{
    scope_init(scope, owner, options->spares ? BIDE_DECIDED_SPARING : BIDE_DECIDED_BY_ERROR, debug);
    scope->group.is_kept = options->collects || options->max_running != 0;
    scope->collects = options->collects;
    scope->max_running = options->max_running != 0 ? options->max_running : SIZE_MAX;
    scope->has_begun = scope->uncollected = 0;
    scope->held = scope->finished = (bide_awaiter_chain){NULL, NULL};
    scope->waits = NULL;
    bide_atomic_init(&scope->lock, LOCK_FREE);
}

void bide_frame_ends_(const bide_frame *frame, const bide_coroutine_code *code)
{
    if (bide_open_scopes_has_(frame))
        bide_platform.misuse("a coroutine ended with a scope that it had not joined", code->name,
                             code->file, bide_frame_point(frame)->line);
}

/* ---- Accounts of branches ---- */

static bide_branch *branch_of(bide_awaiter *awaiter)
{
    return bide_container_of(awaiter, bide_branch, frame.awaiter);
}

static bide_branch *scope_take_first(bide_awaiter_chain *chain)
{
    bide_awaiter *first = bide_awaiter_chain_take(chain);
    return first != NULL ? branch_of(first) : NULL;
}

static void scope_append(bide_awaiter_chain *chain, bide_branch *branch)
{
    branch->frame.awaiter.link = NULL;
    bide_awaiter_chain_append(chain, &branch->frame.awaiter, &branch->frame.awaiter);
}

static bool scope_collects(const bide_scope *scope, const bide_branch *branch)
{
    return scope->collects && branch->ended == NULL;
}

/* A new branch begins, or is held: then other threads may have begun it when this returns. */
static bool scope_has_room(bide_scope *scope, bide_branch *branch)
{
    lock_take(&scope->lock);
    bool has_room = scope->has_begun < scope->max_running;
    scope->uncollected += scope_collects(scope, branch);
    if (has_room) {
        scope->has_begun++;
    } else {
        bide_branch_hold_(branch);
        scope_append(&scope->held, branch);
    }
    lock_free(&scope->lock);
    return has_room;
}

/* Under the lock. NULL: the next waits, unless all were returned. */
static bide_branch *scope_collect(bide_scope *scope)
{
    bide_branch *branch = scope_take_first(&scope->finished);
    if (branch != NULL)
        scope->uncollected--;
    return branch;
}

void bide_scope_branch_ended_(bide_branch *branch)
{
    bide_scope *scope = bide_container_of(branch->group, bide_scope, group);
    bide_awaiter *waits = NULL;
    lock_take(&scope->lock);
    bide_branch *begins = scope_take_first(&scope->held);
    if (begins == NULL)
        scope->has_begun--;
    if (scope_collects(scope, branch)) {
        scope_append(&scope->finished, branch);
        waits = scope->waits;
        scope->waits = NULL;
        if (waits != NULL)
            bide_container_of(waits, bide_scope_next_operation, awaiter)->taken =
                scope_collect(scope);
    }
    lock_free(&scope->lock);
    if (begins != NULL)
        bide_branch_begin_(begins);
    if (waits != NULL)
        bide_wake_one(waits);
}

static bide_scope_next_operation *next_of(bide_awaiter *awaiter)
{
    return bide_container_of(awaiter, bide_scope_next_operation, awaiter);
}

/* Whether it has a branch, or there will be none. */
static bool next_ends(bide_awaiter *awaiter, bool or_waits)
{
    bide_scope_next_operation *next = next_of(awaiter);
    bide_scope *scope = next->scope;
    lock_take(&scope->lock);
    next->taken = scope_collect(scope);
    bool ends = next->taken != NULL || scope->uncollected == 0;
    bool is_second = scope->waits != NULL;
    if (!ends && or_waits)
        scope->waits = awaiter;
    lock_free(&scope->lock);
    if (BIDE_UNLIKELY(is_second))
        bide_misuse_("two waits for the next one of a scope", "bide_scope_next", __FILE__,
                     __LINE__);
    return ends;
}

static bool next_ready(bide_awaiter *awaiter)
{
    return next_ends(awaiter, false);
}

static bide_frame *next_suspend(bide_awaiter *awaiter, bide_frame *frame)
{
    return next_ends(awaiter, true) ? frame : NULL;
}

static int next_resume(bide_awaiter *awaiter)
{
    bide_scope_next_operation *next = next_of(awaiter);
    if (next->taken == NULL)
        return -ENOENT;
    *next->branch = next->taken;
    return 0;
}

/* False: a branch that ended has taken it off. */
static bool next_leave(bide_awaiter *awaiter)
{
    bide_scope *scope = next_of(awaiter)->scope;
    lock_take(&scope->lock);
    bool leaves = scope->waits == awaiter;
    if (leaves)
        scope->waits = NULL;
    lock_free(&scope->lock);
    return leaves;
}

static void next_cancel(bide_awaiter *awaiter)
{
    if (next_leave(awaiter)) {
        bide_awaiter_finish_cancelled(awaiter);
        bide_wake_one(awaiter);
    }
}

/* What it has is the first again. */
static bool next_withdraw(bide_awaiter *awaiter)
{
    bide_scope_next_operation *next = next_of(awaiter);
    bide_scope *scope = next->scope;
    if (next_leave(awaiter))
        return true;
    if (next->taken != NULL) {
        bide_awaiter *first = &next->taken->frame.awaiter;
        lock_take(&scope->lock);
        bide_awaiter_chain_prepend(&scope->finished, first);
        scope->uncollected++;
        lock_free(&scope->lock);
        next->taken = NULL;
    }
    return false;
}

bide_awaiter *bide_scope_next(bide_scope_next_operation *next, bide_scope *scope,
                              bide_branch **branch)
{
    static const bide_awaiter_ops ops = {
        .ready = next_ready,
        .suspend = next_suspend,
        .resume = next_resume,
        .cancel = next_cancel,
        .withdraw = next_withdraw,
        .name = "bide_scope_next",
        .undo = BIDE_UNDO_WITHDRAW,
    };
    if (BIDE_UNLIKELY(!scope->group.is_kept || !scope->collects))
        bide_misuse_("a scope that does not collect has no next one", "bide_scope_next", __FILE__,
                     __LINE__);
    next->awaiter.ops = &ops;
    next->scope = scope;
    next->taken = NULL;
    next->branch = branch;
    return &next->awaiter;
}

/* ---- Spawn and join ---- */

void bide_scope_spawn_in(bide_scope *scope, bide_branch *branch, const bide_context *context,
                         bide_awaiter *awaiter, void (*ended)(bide_branch *branch))
{
    /* relaxed: the caller is counted itself, so the count cannot reach 0 in the meantime. */
    bide_atomic_fetch_add(&scope->group.running, 1, relaxed);
    bide_branch_init(branch, awaiter);
    bide_branch_prepare_(branch, &scope->group, 0, context);
    branch->ended = ended;
    if (BIDE_LIKELY(!scope->group.is_kept) || scope_has_room(scope, branch))
        bide_branch_begin_(branch);
}

void bide_scope_spawn(bide_scope *scope, bide_branch *branch, bide_awaiter *awaiter)
{
    bide_scope_spawn_in(scope, branch, &scope->context, awaiter, NULL);
}

/* Ready if all branches have ended: then no other thread counts. */
static bool join_ready(bide_awaiter *awaiter)
{
    bide_scope *scope = bide_container_of(awaiter, bide_scope, awaiter);
    if (scope->group.joined == NULL) /* again */
        return true;
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
        .ops = {.ready = join_ready,
                .suspend = join_suspend,
                .resume = join_resume,
                .withdraw = bide_wrapper_withdraw_,
                .name = "bide_scope_join",
                .undo = BIDE_UNDO_WITHDRAW}, /* it takes nothing: another join ends with the same */
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
    if (BIDE_UNLIKELY(scope->context.scheduler == NULL)) /* it was never opened */
        bide_misuse_(what, function, file, line);
    return bide_scope_join(scope);
}

/*
 * Structured cancellation: a request on a stop source cancels the waits under it, once and for
 * good. Floor: coroutine.
 *
 *     bide_stop_source_init(&stop);
 *     bide_context context = {.scheduler = scheduler, .stop = &stop};
 *     bide_spawn(&spawned, &context, serve(&server));         // its waits are under `stop`
 *
 *     bide_stop_request(&stop);                               // any thread: they end with -ECANCELED
 *
 * Sources form trees: a request reaches the source and all sources attached below it. A coroutine
 * finds its source in its context (bide_context.stop). A stop callback runs on a request
 * (stop_callback.h).
 *
 * A source belongs to one chain of coroutines that await each other, so at most one wait is under
 * way in it. To run several chains at once, give each a source of its own, attached to the source
 * of its context; roots (spawn, sync_wait, bide_run_loop_wait) do. Two waits at once in one source
 * are misuse, which is detected if it is seen. A coroutine without a source (NULL) is never
 * cancelled, and pays a look at that pointer when it suspends.
 *
 * The effect of a request on a coroutine:
 *   - The operation that it waits for ends with the reason, -ECANCELED or -ETIMEDOUT, unless it
 *     completes first, or cannot be cancelled (each operation says so). It ends exactly once, and
 *     loses nothing: either the coroutine has its result, or the operation took nothing.
 *   - Each later wait that is not ready ends at once with the reason.
 *   - Ready operations still complete, except at a give-way: there an operation that can be
 *     cancelled is not begun, and ends with the reason. So a coroutine whose awaits are always
 *     ready meets the request at its first await after it gave way: after 200 us of ready
 *     operations, or BIDE_BUDGET of them (16384), or up to 15 fewer. It meets it again after
 *     another BIDE_BUDGET, whatever time they take. Each wait of bide_when_all,
 *     bide_when_any, bide_resume_on and bide_schedule_on is a give-way for what it begins.
 *     bide_schedule ends with the reason, and has moved.
 *   - Operations that must not end like this run in bide_with_stop(operation, NULL, inner).
 *   - Otherwise the coroutine is undisturbed: it may ask (bide_stop_requested), clean up, and
 *     return. So must one that computes, or awaits only children that await nothing.
 *
 * While coroutines whose awaits are always ready hold a thread, its timers get their turn at the
 * give-ways; also under the inline scheduler in bide_sync_wait, where nothing else does. With
 * BIDE_BUDGET 0, as in freestanding builds, only bide_schedule and the like yield.
 *
 * Why it is correct: docs/internals/stop.md. The numbers below refer to that.
 */
#ifndef BIDE_STOP_H
#define BIDE_STOP_H

#include "bide/frame.h"

BIDE_EXTERN_C_BEGIN

enum {
    BIDE_STOP_REQUESTED_ = 1,
    BIDE_STOP_TIMED_OUT_ = 2,
    BIDE_STOP_WAITING_ = 4,
    BIDE_STOP_CANCELLING_ = 8,
    BIDE_STOP_ENDED_ = 16,
    BIDE_STOP_CUT_ = 32,
    BIDE_STOP_LEAVING_ = 64
};

struct bide_stop_source {
    bide_atomic(uint32_t) word;
    bide_atomic(uint32_t) lock; /* of `first_child`, and of the children's `next` and `before` */
    bide_stop_source *first_child;

    /* of the thread that attaches and detaches it */
    bide_stop_source *parent; /* or NULL */
    bide_stop_source *next;
    bide_stop_source **before; /* what points at it */

    /* of the starter; while CANCELLING, of the request */
    bide_frame
        gate; /* its awaiter's frame is the waiting coroutine, its link what that waits for */
    void (*cancel)(bide_awaiter *awaiter);

    union {
        bide_stop_source *next_cancelling; /* of the request, until it calls `cancel` */
        bide_awaiter *next_leaving; /* LEAVING: the next that was named, as its list has it */
    };
};

/*
 * Makes a source without a parent. The memory may be freed when nothing runs in a context that has
 * it, nothing is attached to it, it is detached if it was attached, and no request on it is under
 * way.
 * Threads: before it is shared. Progress: wait-free.
 */
BIDE_INLINE void bide_stop_source_init(bide_stop_source *source)
{
    bide_atomic_init(&source->word, 0);
    bide_atomic_init(&source->lock, 0);
    source->first_child = NULL;
    source->parent = NULL;
}

/*
 * Makes `source` a child of `parent`, which must outlive its being one: requests on the parent
 * reach it from now on. If the parent was asked already, so is the source, with the same reason,
 * before this returns. A source has one parent at a time.
 * Threads: any. Suspends: never. Progress: blocks while another thread attaches to `parent`,
 * detaches from it, or walks through it with a request.
 */
void bide_stop_source_attach(bide_stop_source *source, bide_stop_source *parent);

/*
 * Undoes it: after this nothing of the parent refers to the source. Does nothing if it has no
 * parent.
 * Threads: one at a time. Suspends: never. Progress: blocks as bide_stop_source_attach does.
 */
void bide_stop_source_detach(bide_stop_source *source);

/*
 * Asks `source`, and all attached below it, to stop: see above for what that does. Sources that
 * were asked already are left as they are. Cancelled coroutines do not run on the caller's stack
 * while a coroutine is running on it.
 * Threads: any, but not in a signal handler or an interrupt, because it wakes coroutines: let those
 * interrupt a blocking call (bide_blocking_interrupt), or raise a flag that a thread looks at.
 * Suspends: never. Progress: blocks while another thread attaches, detaches or walks there; linear
 * in the sources, however many other waiters there are beside the cancelled ones.
 */
void bide_stop_request(bide_stop_source *source);

/*
 * The same; waits end with `reason`, -ECANCELED or -ETIMEDOUT. The first reason stays.
 * Threads: as bide_stop_request. Suspends: never. Progress: as bide_stop_request.
 */
void bide_stop_request_with(bide_stop_source *source, int reason);

/*
 * Whether it was asked to stop. NULL never is. Writes made before the request are then visible.
 * Threads: any. Progress: wait-free.
 */
BIDE_INLINE bool bide_stop_requested(bide_stop_source *source)
{
    /* acquire: partner is the request's release, 4. */
    return source != NULL && (bide_atomic_load(&source->word, acquire) & BIDE_STOP_REQUESTED_) != 0;
}

/*
 * The status that waits in `source` end with: 0 while it was not asked, -ECANCELED or -ETIMEDOUT.
 * Writes made before the request are then visible. NULL is never asked.
 * Threads: any. Errors: -ECANCELED, -ETIMEDOUT (the reason). Progress: wait-free.
 */
int bide_stop_reason(bide_stop_source *source);

/* ---- For authors of operations that can be cancelled ---- */

/*
 * Was the coroutine that waits for `awaiter` asked to stop? The operation was started and has not
 * ended.
 * Threads: the operation's holder's. Progress: wait-free.
 */
bool bide_awaiter_is_cancelled(bide_awaiter *awaiter);

/*
 * Makes an operation end with the reason, instead of what its own `resume` would say; it is then to
 * be woken. From `cancel`, or whenever bide_awaiter_is_cancelled. Its own memory is not changed but
 * for awaiter->ops.
 * Threads: the operation's holder's. Progress: wait-free.
 */
void bide_awaiter_finish_cancelled(bide_awaiter *awaiter);

/*
 * Makes an operation end with -EPIPE, because what it waits for was closed. As above otherwise.
 * Threads: the operation's holder's. Progress: wait-free.
 */
void bide_awaiter_finish_closed(bide_awaiter *awaiter);

/*
 * For `cancel`: the operation is about to be named to another thread, which is to remove it. It
 * stays until that thread has said bide_awaiter_has_left_, and cancel has returned. False: it has
 * no source, and cannot be named.
 */
bool bide_awaiter_leaves_(bide_awaiter *awaiter);

/* Where a list of named operations keeps the next one. The holder of that list uses it. */
bide_awaiter **bide_awaiter_next_leaving_(bide_awaiter *awaiter);

/*
 * The remover is done with it: it was removed, and its end was set, or it was not there.
 * True: it has ended meanwhile, and the remover wakes it, as it is. False: it is not touched
 * any more, unless it is the remover's to wake because it was removed.
 */
bool bide_awaiter_has_left_(bide_awaiter *awaiter);

/*
 * In the suspend of an operation, by its frame: is it the gate of a source? Then the coroutine does
 * not go on before suspend has returned, whoever ends the operation: 1.
 */
bool bide_stop_holds_(const bide_frame *frame);

/*
 * For an operation that has not begun, of a coroutine whose source was asked: ends it with the
 * reason, if it can be cancelled; its `ready` then returns true. False: it cannot. A coroutine
 * cannot, because its body may have things to do; but one can that is an operation: it has a
 * `ready`.
 */
bool bide_stop_cut_(bide_awaiter *awaiter, bide_stop_source *source);

/*
 * For the `cancel` of an operation that has a `ready`, and otherwise waits in a coroutine of its
 * own, under the same source: what that awaits is cancelled instead.
 */
void bide_cancel_inside_(bide_awaiter *awaiter);

BIDE_INLINE bool bide_yield_point_ready_(bide_awaiter *awaiter)
{
    (void)awaiter;
    return true;
}

BIDE_INLINE int bide_yield_point_resume_(bide_awaiter *awaiter)
{
    (void)awaiter;
    return 0;
}

BIDE_INLINE bool bide_yield_point_withdraw_(bide_awaiter *awaiter)
{
    (void)awaiter;
    return false;
}

/*
 * Makes an operation that is always ready: it costs one of the budget, and yields if that is
 * spent, or ends with the reason. For a coroutine that is an operation, and attempts others instead
 * of awaiting them.
 */
BIDE_MUST_AWAIT
BIDE_INLINE bide_awaiter *bide_yield_point_init_(bide_awaiter *awaiter)
{
    __extension__ static const bide_awaiter_ops ops = {
        .ready = bide_yield_point_ready_,
        .suspend = NULL,
        .resume = bide_yield_point_resume_,
        .cancel = bide_cancel_inside_,
        .withdraw = bide_yield_point_withdraw_,
        .name = "(yields)",
        .attempt = NULL,
        .undo = BIDE_UNDO_NONE,
    };
    awaiter->ops = &ops;
    return awaiter;
}

/*
 * A suspended coroutine is destroyed: its source lets go of the wait. Not while a request is under
 * way.
 */
void bide_stop_discard_(bide_frame *frame);

/* bide_stop_suspend_ in a source that need not be that of the frame's context. */
bide_frame *bide_stop_suspend_in_(bide_stop_source *source, bide_awaiter *awaiter,
                                  const bide_awaiter_ops *ops, bide_frame *frame);

BIDE_EXTERN_C_END

#endif

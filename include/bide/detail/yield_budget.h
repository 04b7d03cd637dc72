/*
 * The budget after which a coroutine yields, a part of bide/frame.h, which includes it: a coroutine whose operations are
 * always ready would hold its thread for ever, and would never notice that it was asked to stop. Floor: coroutine.
 *
 * Each operation that ends without suspending costs its thread one of BIDE_BUDGET, which is also a time: 200 us
 * (BIDE_BUDGET_TIME_; how it is kept without reading the clock for each: frame.c). The await that would spend the last
 * one, or comes later, is a give-way:
 *
 *   1. If the coroutine was asked to stop, an operation that can be cancelled is not begun: it ends with the reason.
 *      It took nothing, so nothing is lost.
 *   2. Otherwise it is performed, if it is ready.
 *   3. The coroutine is posted to its scheduler behind the ready ones, with the operation that has ended, and continues
 *      with its result when its turn comes. If it was asked to stop in the meantime, and does not know it by 1, its
 *      next await is a give-way too.
 *
 * So a coroutine that was asked to stop meets that at its first await after a give-way, or at the next give-way. Then it
 * has a full budget again, for its cleaning up: BIDE_BUDGET operations, whatever time they take.
 *
 * Two cases do not yield: a coroutine of the inline scheduler, which has nothing else to run (but lets the thread keep
 * time: inline_timers.h); and an operation without a `withdraw`, because it may be a constant: the next operation
 * yields instead. The budget is refilled when it is spent, and by a bide_resume that is not inside another. Each thread
 * has its own.
 *
 * While the coroutine is posted its awaiter's `frame` is marked: it is the frame's address, plus 1, or plus 3 if it
 * knows of the request. bide_resume removes the mark. So a scheduler passes `frame` to bide_resume, and does nothing
 * else with it. The operation was ready, and has no record of a suspension. With the frame itself it would look
 * suspended (bide_awaiter_suspended).
 */
#ifndef BIDE_DETAIL_YIELD_BUDGET_H
#define BIDE_DETAIL_YIELD_BUDGET_H

/* The rest of the thread's budget, less 1. */
extern BIDE_THREAD_LOCAL int32_t bide_budget_;

/* Counts an operation that has ended without suspending. Returns true if the budget is spent. */
BIDE_INLINE bool bide_budget_spent_(void)
{
#if BIDE_BUDGET > 0
    return BIDE_UNLIKELY(--bide_budget_ < 0);
#else
    return false;
#endif
}

/* How the operation has ended with which a coroutine yields; the mark of a posted one. */
typedef enum bide_yields_ {
    BIDE_YIELDS_SUSPENDED_ = 0, /* in its `suspend`, which has returned the frame */
    BIDE_YIELDS_READY_ = 1,     /* it was ready */
    BIDE_YIELDS_TOLD_ = 3       /* by the reason for which the coroutine was asked to stop */
} bide_yields_;

/*
 * For a spent budget: `frame` would continue from `here` with the result of `awaiter`. Returns true if the frame was
 * posted; it must not be touched then. Returns false if it continues.
 */
BIDE_COLD bool bide_yield_budget_(bide_frame *frame, bide_awaiter *awaiter, const bide_point *here,
                                  bide_yields_ how);

/*
 * An await of `awaiter`, which has not been looked at, for a spent budget. Returns true if `frame` was suspended or
 * posted, and *next runs next. Returns false if the operation has ended, and the frame continues.
 */
BIDE_COLD bool bide_await_spent_(bide_frame *frame, bide_awaiter *awaiter, const bide_point *here,
                                 bide_frame **next);

/* The same for a frame that is saved: bide_frame_await_by_. */
BIDE_COLD bide_frame *bide_frame_await_spent_(bide_frame *frame, bide_awaiter *awaiter,
                                              const bide_frame *by);

/* Whether `frame` is posted because it yielded at `awaiter`, which was ready. */
BIDE_INLINE bool bide_budget_yielded_(const bide_frame *frame, const bide_awaiter *awaiter)
{
    return ((uintptr_t)awaiter->frame & ~(uintptr_t)2) == (uintptr_t)frame + 1;
}

#endif

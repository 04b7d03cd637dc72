/*
 * The budget after which a coroutine yields, a part of bide/frame.h, which includes it: a coroutine whose operations are
 * always ready would hold its thread for ever. Floor: coroutine.
 *
 * Each operation that ends without suspending costs its thread one of BIDE_BUDGET. When the budget is spent, the
 * coroutine is posted to its scheduler behind the ready ones, with the operation that has just ended, and continues with
 * its result when its turn comes. Two cases do not yield: a coroutine of the inline scheduler, which has nothing else to
 * run; and an operation without a `withdraw`, because it may be a constant: the next operation yields instead. The
 * budget is refilled when it is spent, and by a bide_resume that is not inside another. Each thread has its own.
 *
 * While the coroutine is posted its awaiter's `frame` is marked: it is the frame's address, plus 1. bide_resume removes
 * the mark. So a scheduler passes `frame` to bide_resume, and does nothing else with it. The operation was ready, and
 * has no record of a suspension. With the frame itself it would look suspended (bide_awaiter_suspended).
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

/*
 * For a spent budget: `frame` would continue from `here` with the result of `awaiter`, which was
 * ready, or whose suspend has returned the frame. Returns true if the frame was posted; it must not
 * be touched then. Returns false if it continues.
 */
BIDE_COLD bool bide_yield_budget_(bide_frame *frame, bide_awaiter *awaiter, const bide_point *here,
                                  bool was_ready);

/* Whether `frame` is posted because it yielded at `awaiter`, which was ready. */
BIDE_INLINE bool bide_budget_yielded_(const bide_frame *frame, const bide_awaiter *awaiter)
{
    return (uintptr_t)awaiter->frame == (uintptr_t)frame + 1;
}

#endif

/*
 * A latch: counts down to zero, once, and its waiters wait for that. Floor: sync.
 *
 *     bide_latch done;                          // on the waiter's stack, for one
 *     bide_latch_init(&done, 3);
 *     ... start three tasks, each of which calls bide_latch_count_down(&done) ...
 *     bide_try(bide_latch_wait(&self->wait, &done));
 *
 * Any thread may count down and wait. Counting down is one atomic operation, except for the last,
 * which wakes the waiters.
 *
 * Why it is correct: it is a count, and an event (event.h) that the last to count down sets. A waiter
 * looks at the event alone.
 *
 * 1. Counting down releases, and the last to count down acquires all those releases (a release
 *    sequence of read-modify-writes) before it sets the event. So writes from before each are
 *    visible after the wait.
 * 2. No wait ends before the event is set. Then all others have counted down, and touch nothing
 *    afterwards; and the last one touches nothing after the set, by the event's rule. So the memory
 *    may be freed right after a wait.
 *
 * Source: std::latch of C++20.
 */
#ifndef BIDE_LATCH_H
#define BIDE_LATCH_H

#include "bide/event.h"

BIDE_EXTERN_C_BEGIN

typedef struct bide_latch {
    bide_atomic(uint32_t) count;
    bide_event zero; /* set when the count is */
} bide_latch;

/* One wait. The caller's memory until the wait has ended. */
typedef struct bide_latch_waiter {
    bide_event_waiter wait; /* at the head: it is the awaiter */
} bide_latch_waiter;

/*
 * Makes a latch that is to be counted down `count` times. The memory may be freed when every wait on it
 * has ended and it is zero; so right after the last wait.
 * Threads: before it is shared. Progress: wait-free.
 */
BIDE_INLINE void bide_latch_init(bide_latch *latch, uint32_t count)
{
    bide_atomic_init(&latch->count, count);
    bide_event_init(&latch->zero, count == 0);
}

BIDE_INLINE void bide_latch_count_down_(bide_latch *latch, uint32_t count, const char *what,
                                        const char *function, const char *file, unsigned line)
{
    /* release: 1, and partner is the acquire of the last to count down. */
    uint32_t before = bide_atomic_fetch_sub(&latch->count, count, acq_rel);
    if (BIDE_UNLIKELY(before < count))
        bide_misuse_(what, function, file, line);
    else if (before == count && count != 0)
        bide_event_set(&latch->zero);
}

/*
 * Counts down by `count`; the last to count down wakes the waiters, each on its own scheduler, but
 * not on the caller's stack while a coroutine is running on it. Touches nothing afterwards. Below
 * zero is misuse.
 * Threads: any. Suspends: never. Progress: wait-free, except for the last, which is lock-free and
 * linear in the waiters.
 */
#define bide_latch_count_down_many(latch, count) \
    bide_latch_count_down_(latch, count, BIDE_MISUSE_("a latch is counted down below zero", #latch))

/*
 * The same by one.
 * Threads: any. Suspends: never. Progress: as bide_latch_count_down_many.
 */
#define bide_latch_count_down(latch) bide_latch_count_down_many(latch, 1)

/*
 * Is it zero? What was written before it was counted down is then visible.
 * Threads: any. Progress: wait-free.
 */
BIDE_INLINE bool bide_latch_try_wait(bide_latch *latch)
{
    return bide_event_is_set(&latch->zero);
}

/*
 * Waits until it is zero. `waiter` must stay until the wait has ended. A latch whose wait was cut
 * short is still counted down by others, and must stay until they have done.
 * Threads: any. Errors: -EPIPE (closed before it was zero), -ECANCELED, -ETIMEDOUT. Suspends: if it
 * is neither zero nor closed. Cancel-safe: yes. Progress: lock-free.
 */
BIDE_MUST_AWAIT
BIDE_INLINE bide_awaiter *bide_latch_wait(bide_latch_waiter *waiter, bide_latch *latch)
{
    __extension__ static const bide_awaiter_ops ops = {
        .ready = bide_event_ready_,
        .suspend = bide_event_suspend_,
        .resume = bide_event_resume_,
        .cancel = bide_event_cancel_,
        .withdraw = bide_event_withdraw_,
        .name = "bide_latch_wait",
        .attempt = NULL,
        .undo = BIDE_UNDO_WITHDRAW,
    };
    waiter->wait.listed.awaiter.ops = &ops;
    waiter->wait.event = &latch->zero;
    return &waiter->wait.listed.awaiter;
}

BIDE_MUST_AWAIT
BIDE_INLINE bide_awaiter *bide_latch_arrive_and_wait_(bide_latch_waiter *waiter, bide_latch *latch,
                                                      const char *what, const char *function,
                                                      const char *file, unsigned line)
{
    bide_awaiter *awaiter = bide_latch_wait(waiter, latch);
    bide_latch_count_down_(latch, 1, what, function, file, line);
    return awaiter;
}

/*
 * Counts down by one, at once, and is a wait as above, which is to be awaited. The latch stays
 * until that has ended, so it is none whose memory goes with another's wait.
 * Threads: any. Errors: as bide_latch_wait. Suspends: if it is neither zero nor closed.
 * Cancel-safe: no, it has been counted down. Progress: as bide_latch_count_down_many.
 */
#define bide_latch_arrive_and_wait(waiter, latch) BIDE_LATCH_ARRIVE_AND_WAIT_(waiter, latch)
#define BIDE_LATCH_ARRIVE_AND_WAIT_(waiter, latch) \
    bide_latch_arrive_and_wait_(waiter, latch,     \
                                BIDE_MISUSE_("a latch is counted down below zero", #latch))

/*
 * The wait for a plain thread, which it blocks until `deadline` at most: see
 * bide_event_wait_blocking.
 * Threads: any but that of a loop (sync_wait.h). Errors: as bide_latch_wait; -ETIMEDOUT (the
 * deadline has come). Progress: blocks.
 */
BIDE_INLINE int bide_latch_wait_blocking(bide_latch *latch, uint64_t deadline)
{
    bide_latch_waiter waiter;
    return bide_sync_wait_until(bide_latch_wait(&waiter, latch), deadline);
}

#define bide_latch_wait_blocking(...) BIDE_BLOCKS_(bide_latch_wait_blocking(__VA_ARGS__))

/*
 * Closes it: if it is not zero, waits end with -EPIPE, now and later, whatever is counted down
 * afterwards. More than once is once.
 * Threads: any. Suspends: never. Progress: as bide_event_close.
 */
BIDE_INLINE void bide_latch_close(bide_latch *latch)
{
    bide_event_close(&latch->zero);
}

/*
 * The end of its life. Does nothing; if BIDE_DEBUG is 1 it reports misuse if a wait is
 * under way.
 * Threads: any. Progress: wait-free.
 */
#define bide_latch_destroy(latch)                                  \
    BIDE_END_OF_LIFE_(bide_event_destroy_checked_, &(latch)->zero, \
                      "a latch is destroyed while it is waited for", #latch)

BIDE_EXTERN_C_END

#endif

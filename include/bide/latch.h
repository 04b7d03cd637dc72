/*
 * A latch: counts down to zero, once; who waits, waits for that. Floor: sync.
 *
 *     bide_latch done;                          // on the stack of whoever waits
 *     bide_latch_init(&done, 3);
 *     ... three are begun, each of which says bide_latch_count_down(&done) ...
 *     bide_try(bide_latch_wait(&self->wait, &done));
 *
 * It is a count, and an event (event.h) that whoever makes the count zero sets. Who waits looks at the event alone:
 *
 * 1. Counting down releases, and the last to count down acquires all those releases (a release sequence of
 *    read-modify-writes) before it sets the event. So what was written before each is seen after the wait.
 * 2. No wait ends before the event is set; then all others have counted down, and touch nothing afterwards, and the
 *    last one touches nothing after the set, by the event's rule. So the memory may go right after a wait.
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

/* One wait. The caller's, for the time of the wait. */
typedef struct bide_latch_waiter {
    bide_event_waiter wait; /* at the head: it is the awaiter */
} bide_latch_waiter;

/* Makes a latch that is to be counted down `count` times. Before it is shared. The memory may go when every wait on it
 * has ended and it is zero; right after the last wait. */
BIDE_INLINE void bide_latch_init(bide_latch *latch, uint32_t count)
{
    bide_atomic_init(&latch->count, count);
    bide_event_init(&latch->zero, count == 0);
}

BIDE_INLINE void bide_latch_count_down_(bide_latch *latch, uint32_t count, const char *what,
                                        const char *function, const char *file, unsigned line)
{
    /* release: 1, and partner is the last one's acquire. */
    uint32_t before = bide_atomic_fetch_sub(&latch->count, count, acq_rel);
    if (BIDE_UNLIKELY(before < count))
        bide_misuse_(what, function, file, line);
    else if (before == count && count != 0)
        bide_event_set(&latch->zero);
}

/*
 * Counts down by `count`; whoever makes it zero wakes all who wait, each on its own scheduler. Touches nothing
 * afterwards. Below zero is misuse. Any thread; does not suspend, and does not run them on the caller's stack while a
 * coroutine is running on it. Wait-free but for the one who makes it zero, who is lock-free, and linear in the waiters.
 */
#define bide_latch_count_down_many(latch, count) \
    bide_latch_count_down_(latch, count, BIDE_MISUSE_("a latch is counted down below zero", #latch))

/* The same by one. */
#define bide_latch_count_down(latch) bide_latch_count_down_many(latch, 1)

/* Is it zero? What was written before it was counted down is then visible. Any thread; wait-free. */
BIDE_INLINE bool bide_latch_try_wait(bide_latch *latch)
{
    return bide_event_is_set(&latch->zero);
}

/*
 * Waits until it is zero. `waiter` is the caller's until the wait has ended. Ends with 0; or with -EPIPE if it was
 * closed before it was zero, or, cut short, with -ECANCELED or -ETIMEDOUT (stop.h): a latch whose wait was cut short is
 * still counted down by others, and must stay until they have done. Any thread; suspends if it is neither zero nor
 * closed; lock-free.
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

/* Counts down by one, at once, and is a wait as above, which is to be awaited: the latch stays until that has ended, so
 * it is none that another's wait lets go. */
#define bide_latch_arrive_and_wait(waiter, latch) \
    bide_latch_arrive_and_wait_(waiter, latch,    \
                                BIDE_MISUSE_("a latch is counted down below zero", #latch))

/* The wait for a plain thread, until `deadline`: see bide_event_wait_blocking. */
BIDE_INLINE int bide_latch_wait_blocking(bide_latch *latch, uint64_t deadline)
{
    bide_latch_waiter waiter;
    return bide_sync_wait_until(bide_latch_wait(&waiter, latch), deadline);
}

/*
 * Closes it: if it is not zero, who waits, now and later, ends with -EPIPE, whatever is counted down afterwards. More
 * than once is once. As bide_event_close.
 */
BIDE_INLINE void bide_latch_close(bide_latch *latch)
{
    bide_event_close(&latch->zero);
}

/* Its memory is about to go. Does nothing but tell, where BIDE_DEBUG is 1, if somebody waits. */
#define bide_latch_destroy(latch)       \
    bide_event_destroy_(&(latch)->zero, \
                        BIDE_MISUSE_("a latch is destroyed that is waited on", #latch))

BIDE_EXTERN_C_END

#endif

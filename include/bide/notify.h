/*
 * Wakes coroutines and threads that wait for something to change: one of them, or all that wait at
 * that moment. First come, first served. Floor: sync.
 *
 *     for (;;) {
 *         bide_awaiter *changed = bide_notify_wait(&self->wait, &notify);   // it begins here
 *         if (the awaited condition holds)
 *             break;
 *         bide_try(changed);
 *     }
 *
 *     one    ends the wait of the first in line; without waiters it is remembered, once, and a second
 *            one ends all waits that have begun
 *     all    ends all waits that have begun; nothing is remembered
 *
 * Any thread may notify and wait. A wait begins when bide_notify_wait is called, not when it is
 * awaited: so the loop above sees each change that is made before all are notified. A notification
 * of one is not lost either: if the wait that it would end is cancelled at the same time, or its
 * coroutine is destroyed before it runs, the next in line gets it. And if several waiters have
 * begun and looked, and are not in line yet, when as many are notified one by one, then each of
 * them ends.
 *
 * There may be one notification too many. While another thread ends waits, notifications are
 * counted, and processed only when that is done. Then two waits that begin at that moment may both
 * end, if one was notified twice while nothing waited; and a waiter that ended because all were
 * notified may leave a notification of one behind. So check again after a wait, as above.
 */
#ifndef BIDE_NOTIFY_H
#define BIDE_NOTIFY_H

#include "bide/sync_wait.h"
#include "bide/extend/waiter_queue.h"

BIDE_EXTERN_C_BEGIN

typedef struct bide_notify {
    bide_waiter_queue queue;
} bide_notify;

/* One wait. The caller's memory until the wait has ended. */
typedef struct bide_notify_waiter {
    bide_queue_waiter
        waiter; /* at the head: it is the awaiter; wants: the phase in which it has begun */
} bide_notify_waiter;

extern const bide_waiter_queue_ops bide_notify_ops_;

/* The target of a waiter that no phase ends, in place of the phase in which it has begun. */
#define BIDE_NOTIFY_NO_PHASE_ UINT32_MAX

BIDE_INLINE bool bide_notify_is_due_(const bide_queue_waiter *waiter, uintptr_t state)
{
    return bide_queue_is_past(state, BIDE_QUEUE_PHASE_BITS_BELOW, waiter->wants) &&
           waiter->wants != BIDE_NOTIFY_NO_PHASE_;
}

/*
 * Makes a notify. The memory may be freed when nobody waits and nobody will use it. It may go at once
 * after a wait, whoever ended it, because notifying touches nothing once another can have been
 * woken by it and there are no more waiters.
 * Threads: before it is shared. Progress: wait-free.
 */
BIDE_INLINE void bide_notify_init(bide_notify *notify)
{
    bide_waiter_queue_init(&notify->queue, 0);
}

/*
 * Ends the wait of the first in line, which is woken on its scheduler; without a waiter it is
 * remembered, and the next wait passes. If one is remembered already, waits that have begun and are
 * not in line yet end too. Does nothing if the notify is closed. The wait that ends sees what was
 * written before. Its coroutine does not run on the caller's stack while a coroutine is running on
 * it.
 * Threads: any. Suspends: never. Progress: lock-free.
 */
void bide_notify_one(bide_notify *notify);

/*
 * Ends all waits that have begun, in the order in which they came; is not remembered. As
 * bide_notify_one otherwise. A wait that has begun and is not awaited until very many such calls
 * later, 2^13 where a word has 32 bits, may miss them. Notifying one counts as such a call if one
 * is remembered.
 * Threads: any. Suspends: never. Progress: lock-free, linear in the waiters.
 */
void bide_notify_all(bide_notify *notify);

/*
 * Takes what is remembered for the next wait. False: nothing is, or waiters are in line.
 * Threads: any. Progress: lock-free.
 */
BIDE_INLINE bool bide_notify_try_wait(bide_notify *notify)
{
    /* relaxed: what is found is compared by what follows. */
    uintptr_t state = bide_atomic_load(&notify->queue.state, relaxed);
    while ((state & (BIDE_QUEUE_ONE - 1) & ~(uintptr_t)BIDE_QUEUE_CLOSED_) == 0 &&
           bide_queue_number(state) != 0) {
        /* acquire: partner is the notifier's release. */
        if (bide_atomic_compare_exchange(&notify->queue.state, &state, state - BIDE_QUEUE_ONE,
                                         acquire, relaxed))
            return true;
        bide_atomic_retry();
    }
    return false;
}

BIDE_INLINE int bide_notify_resume_(bide_awaiter *awaiter)
{
    (void)awaiter;
    return 0;
}

/* Withdraws a wait that has taken a notification of one: the next waiter has it. */
bool bide_notify_pass_on_(bide_awaiter *awaiter);

/*
 * How such a wait has ended. A wait that ended by notifying all, by the close, or by cancellation
 * has taken nothing.
 */
__extension__ static const bide_awaiter_ops bide_notify_had_one_ = {
    .ready = NULL,
    .suspend = NULL,
    .resume = bide_notify_resume_,
    .cancel = NULL,
    .withdraw = bide_notify_pass_on_,
    .name = "bide_notify_wait",
    .attempt = NULL,
    .undo = BIDE_UNDO_WITHDRAW,
};

BIDE_INLINE bool bide_notify_ready_(bide_awaiter *awaiter)
{
    bide_queue_waiter *waiter = (bide_queue_waiter *)(void *)awaiter;
    /* acquire: partner is the release of notifying all. */
    uintptr_t state = bide_atomic_load(&waiter->queue->state, acquire);
    if (bide_notify_is_due_(waiter, state))
        return true;
    if (!bide_notify_try_wait(bide_container_of(waiter->queue, bide_notify, queue)))
        return false;
    awaiter->ops = &bide_notify_had_one_;
    return true;
}

BIDE_INLINE bide_frame *bide_notify_suspend_(bide_awaiter *awaiter, bide_frame *frame)
{
    return bide_waiter_queue_suspend((bide_queue_waiter *)(void *)awaiter, &bide_notify_ops_,
                                     frame);
}

BIDE_INLINE void bide_notify_cancel_(bide_awaiter *awaiter)
{
    bide_waiter_queue_cancel((bide_queue_waiter *)(void *)awaiter, &bide_notify_ops_);
}

bool bide_notify_withdraw_(bide_awaiter *awaiter);

/*
 * Begins a wait, which is then to be awaited, or forgotten. `waiter` must stay until the wait has
 * ended. A cancelled wait has taken nothing.
 * Threads: any. Errors: -EPIPE (closed, and nothing is left), -ECANCELED, -ETIMEDOUT. Suspends: if
 * there was no notification. Cancel-safe: yes. Progress: lock-free.
 */
BIDE_MUST_AWAIT
BIDE_INLINE bide_awaiter *bide_notify_wait(bide_notify_waiter *waiter, bide_notify *notify)
{
    __extension__ static const bide_awaiter_ops ops = {
        .ready = bide_notify_ready_,
        .suspend = bide_notify_suspend_,
        .resume = bide_notify_resume_,
        .cancel = bide_notify_cancel_,
        .withdraw = bide_notify_withdraw_,
        .name = "bide_notify_wait",
        .attempt = NULL,
        .undo = BIDE_UNDO_WITHDRAW,
    };
    waiter->waiter.awaiter.ops = &ops;
    waiter->waiter.queue = &notify->queue;
    /* acquire: partner is the release of notifying all; the caller, about to look, sees why. */
    waiter->waiter.wants = bide_queue_phase(bide_atomic_load(&notify->queue.state, acquire));
    return &waiter->waiter.awaiter;
}

/*
 * The same for a plain thread, which it blocks until `deadline` at most: see
 * bide_event_wait_blocking.
 * Threads: any but that of a loop (sync_wait.h). Errors: as bide_notify_wait; -ETIMEDOUT (the
 * deadline has come). Progress: blocks.
 */
BIDE_INLINE int bide_notify_wait_blocking(bide_notify *notify, uint64_t deadline)
{
    bide_notify_waiter waiter;
    return bide_sync_wait_until(bide_notify_wait(&waiter, notify), deadline);
}

#define bide_notify_wait_blocking(...) BIDE_BLOCKS_(bide_notify_wait_blocking(__VA_ARGS__))

/*
 * Closes the notify: waits end with -EPIPE, now and later; but if one is remembered, one wait still
 * passes. Notifying does nothing from then on. More than once is once.
 * Threads: any. Suspends: never. Progress: lock-free, linear in the waiters.
 */
void bide_notify_close(bide_notify *notify);

BIDE_INLINE void bide_notify_destroy_checked_(bide_notify *notify, const char *what,
                                              const char *function, const char *file, unsigned line)
{
    if (!bide_waiter_queue_is_idle(&notify->queue))
        bide_misuse_(what, function, file, line);
}

/*
 * The end of its life. Does nothing; if BIDE_DEBUG is 1 it reports misuse if a wait is
 * under way.
 * Threads: any. Progress: wait-free.
 */
#define bide_notify_destroy(notify)                           \
    BIDE_END_OF_LIFE_(bide_notify_destroy_checked_, (notify), \
                      "a notify is destroyed while it is waited for", #notify)

/*
 * Why it is correct: it is a waiter queue; waiter_queue.md has the argument. Its value is the number
 * of waits that may end, at most 1 except while a server is at work; and a phase, which notifying
 * all adds 1 to, and notifying one that cannot be remembered. A waiter that has begun before that
 * finds its phase past when it comes to the line.
 *
 * Source: Tokio's Notify, where a notification that cannot be remembered is lost. Its notify_last
 * is not here: a line has no end to leave by.
 */

BIDE_EXTERN_C_END

#endif

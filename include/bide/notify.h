/*
 * Wakes coroutines (and threads) that wait for something to change: one of them, or all who wait at that moment.
 * First come, first served. Floor: sync.
 *
 *     for (;;) {
 *         bide_awaiter *changed = bide_notify_wait(&self->wait, &notify);   // the wait begins here
 *         if (what is waited for is there)
 *             break;
 *         bide_try(changed);
 *     }
 *
 *     one    ends the wait of the first in line; if nobody waits, it is remembered for the next, once
 *     all    ends the waits of all that have begun; nothing is remembered
 *
 * A wait begins when bide_notify_wait is called, not when it is awaited: so in the loop above, whoever first makes the
 * change and then notifies all does not go unheard. That one is notified is not lost either: if the wait that it would
 * end is cut short at the same time, or its coroutine is destroyed before it runs, the next in line has it. The other
 * way round there may be one more than needed: while another thread is ending waits, what comes is counted, and settled
 * only when it has done. Then, where one is notified twice although nobody waits, and two waits begin, all in that
 * moment, both may end; and who was notified with all may leave behind the one who was notified alone. So look again
 * after a wait, as above.
 *
 * The value of its waiter queue is the number of waits that may end, at most 1 but while somebody serves; and a phase,
 * that notifying all adds 1 to. The argument is the queue's (waiter_queue.h).
 *
 * Source: Tokio's Notify. Its notify_last is not here: a line has no end to leave by.
 */
#ifndef BIDE_NOTIFY_H
#define BIDE_NOTIFY_H

#include "bide/sync_wait.h"
#include "bide/extend/waiter_queue.h"

BIDE_EXTERN_C_BEGIN

typedef struct bide_notify {
    bide_waiter_queue queue;
} bide_notify;

/* One wait. The caller's, for the time of the wait. */
typedef struct bide_notify_waiter {
    bide_queue_waiter
        waiter; /* at the head: it is the awaiter; wants: the phase in which it has begun */
} bide_notify_waiter;

extern const bide_queue_rules bide_notify_rules_;

/*
 * Makes one. Before it is shared. The memory may go when nobody waits and nobody will use it; also at once after a
 * wait, whoever ended it: to notify touches nothing once another can have been woken by it and nobody waits any more.
 */
BIDE_INLINE void bide_notify_init(bide_notify *notify)
{
    bide_waiter_queue_init(&notify->queue, 0);
}

/*
 * Ends the wait of the first in line, who is woken on its scheduler; or is remembered, and the next wait passes. Does
 * nothing if it is closed. What was written before is visible to whom it lets pass. Any thread; does not suspend, and
 * does not run the other on the caller's stack while a coroutine is running on it. Lock-free.
 */
void bide_notify_one(bide_notify *notify);

/*
 * Ends all waits that have begun, in the order in which they came; is not remembered. As bide_notify_one otherwise;
 * linear in the waiters. (A wait that has begun and is not awaited until very many such calls later, 2^13 where a word
 * has 32 bits, may miss them.)
 */
void bide_notify_all(bide_notify *notify);

/* Takes what is remembered for the next wait. False: nothing is, or others are in line. Any thread; lock-free. */
BIDE_INLINE bool bide_notify_try_wait(bide_notify *notify)
{
    /* relaxed: what is found is compared by what follows. */
    uintptr_t state = bide_atomic_load(&notify->queue.state, relaxed);
    while ((state & (BIDE_QUEUE_ONE - 1) & ~(uintptr_t)BIDE_QUEUE_CLOSED_) == 0 &&
           bide_queue_number(state) != 0) {
        /* acquire: partner is the release of whoever has notified. */
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

/* The withdraw of a wait that has had what one is notified for: the next has it. */
bool bide_notify_pass_on_(bide_awaiter *awaiter);

/* How such a wait has ended. (One that was notified with all, or was closed, or cut short, has had nothing.) */
__extension__ static const bide_awaiter_ops bide_notify_had_one_ = {
    .ready = NULL,
    .suspend = NULL,
    .resume = bide_notify_resume_,
    .cancel = NULL,
    .withdraw = bide_notify_pass_on_,
    .name = "bide_notify_wait",
};

BIDE_INLINE bool bide_notify_ready_(bide_awaiter *awaiter)
{
    bide_queue_waiter *waiter = (bide_queue_waiter *)(void *)awaiter;
    /* acquire: partner is the release of whoever has notified all. */
    uintptr_t state = bide_atomic_load(&waiter->queue->state, acquire);
    if (bide_queue_is_past(state, BIDE_QUEUE_PHASE_BITS_BELOW, waiter->wants))
        return true;
    if (!bide_notify_try_wait(bide_container_of(waiter->queue, bide_notify, queue)))
        return false;
    awaiter->ops = &bide_notify_had_one_;
    return true;
}

BIDE_INLINE bide_frame *bide_notify_suspend_(bide_awaiter *awaiter, bide_frame *frame)
{
    return bide_waiter_queue_suspend((bide_queue_waiter *)(void *)awaiter, &bide_notify_rules_,
                                     frame);
}

BIDE_INLINE void bide_notify_cancel_(bide_awaiter *awaiter)
{
    bide_waiter_queue_cancel((bide_queue_waiter *)(void *)awaiter, &bide_notify_rules_);
}

bool bide_notify_withdraw_(bide_awaiter *awaiter);

/*
 * Begins a wait, which is then to be awaited (or forgotten). `waiter` is the caller's until it has ended. Ends with 0;
 * or with -EPIPE if it was closed and nothing is left, or, cut short, with -ECANCELED or -ETIMEDOUT (stop.h): then it
 * took nothing. Any thread; suspends if nobody has notified; lock-free.
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
    };
    waiter->waiter.awaiter.ops = &ops;
    waiter->waiter.queue = &notify->queue;
    /* acquire: partner is the release of whoever has notified all: the caller, who will look now, sees why. */
    waiter->waiter.wants = bide_queue_phase(bide_atomic_load(&notify->queue.state, acquire));
    return &waiter->waiter.awaiter;
}

/* The same for a plain thread, until `deadline`: see bide_event_wait_blocking. */
BIDE_INLINE int bide_notify_wait_blocking(bide_notify *notify, uint64_t deadline)
{
    bide_notify_waiter waiter;
    return bide_sync_wait_until(bide_notify_wait(&waiter, notify), deadline);
}

/*
 * Closes it: who waits, now and later, ends with -EPIPE; but if one is remembered, one wait still passes. To notify
 * does nothing from then on. Any thread, more than once; does not suspend; lock-free.
 */
void bide_notify_close(bide_notify *notify);

BIDE_INLINE void bide_notify_destroy_checked_(bide_notify *notify, const char *what,
                                              const char *function, const char *file, unsigned line)
{
    if (!bide_waiter_queue_is_idle(&notify->queue))
        bide_misuse_(what, function, file, line);
}

/* Its memory is about to go. Does nothing but tell, where BIDE_DEBUG is 1, if somebody waits. */
#if BIDE_DEBUG
#define bide_notify_destroy(notify)        \
    bide_notify_destroy_checked_((notify), \
                                 BIDE_MISUSE_("a notify is destroyed that is waited on", #notify))
#else
#define bide_notify_destroy(notify) ((void)(notify))
#endif

BIDE_EXTERN_C_END

#endif

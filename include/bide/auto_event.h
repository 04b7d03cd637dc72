/*
 * An auto-reset event: a set lets one wait pass; of those who wait it is the first in line, and if nobody waits it is
 * remembered, once. Floor: sync.
 *
 *     not set, nobody waits   --set->   set        --wait->  not set
 *     not set, some wait      --set->   not set, and the first has passed
 *
 * So n sets while n wait let all n pass. Set twice while nobody waits is set once; but sets that come while another
 * thread hands one to a waiter are counted until that is done, and if two waits begin in that moment, both may pass.
 *
 * It is a notify (notify.h) that never notifies all. Where only one ever waits, single_consumer_event.h has one that is
 * smaller.
 *
 * Source: cppcoro's async_auto_reset_event; the word is Windows'.
 */
#ifndef BIDE_AUTO_EVENT_H
#define BIDE_AUTO_EVENT_H

#include "bide/notify.h"

BIDE_EXTERN_C_BEGIN

typedef struct bide_auto_event {
    bide_notify notify;
} bide_auto_event;

/* One wait. The caller's, for the time of the wait. */
typedef struct bide_auto_event_waiter {
    bide_notify_waiter wait; /* at the head: it is the awaiter */
} bide_auto_event_waiter;

/*
 * Makes an event, set or not. Before it is shared. The memory may go when nobody waits and nobody will use it; also at
 * once after a wait, whoever has set it: setting touches nothing once that wait can have ended, unless others wait.
 */
BIDE_INLINE void bide_auto_event_init(bide_auto_event *event, bool set)
{
    bide_waiter_queue_init(&event->notify.queue, set ? BIDE_QUEUE_ONE : 0);
}

/*
 * Lets one wait pass. Does nothing if it is closed. What was written before is visible to whom it lets pass. Any
 * thread; does not suspend, and does not run the other on the caller's stack while a coroutine is running on it.
 * Lock-free.
 */
BIDE_INLINE void bide_auto_event_set(bide_auto_event *event)
{
    bide_notify_one(&event->notify);
}

/*
 * Forgets a set that is remembered; does nothing if it is not set, or closed. What was written before that set is then
 * visible. Any thread, but not what interrupts one that uses the event (a signal handler, an interrupt): it waits while
 * another thread hands out a set, for what is left of it.
 */
void bide_auto_event_reset(bide_auto_event *event);

/* Takes a set that is remembered. False: none is, or others are in line. Any thread; lock-free. */
BIDE_INLINE bool bide_auto_event_try_wait(bide_auto_event *event)
{
    return bide_notify_try_wait(&event->notify);
}

/*
 * Waits for a set, and takes it, in the order in which they came. `waiter` is the caller's until the wait has ended.
 * Ends with 0; or with -EPIPE if it was closed and no set is left, or, cut short, with -ECANCELED or -ETIMEDOUT
 * (stop.h): then it took none, and a set that comes at the same time is the next one's. Any thread; suspends if it is
 * not set; lock-free.
 */
BIDE_MUST_AWAIT
BIDE_INLINE bide_awaiter *bide_auto_event_wait(bide_auto_event_waiter *waiter,
                                               bide_auto_event *event)
{
    __extension__ static const bide_awaiter_ops ops = {
        .ready = bide_notify_ready_,
        .suspend = bide_notify_suspend_,
        .resume = bide_notify_resume_,
        .cancel = bide_notify_cancel_,
        .withdraw = bide_notify_withdraw_,
        .name = "bide_auto_event_wait",
    };
    waiter->wait.waiter.awaiter.ops = &ops;
    waiter->wait.waiter.queue = &event->notify.queue;
    waiter->wait.waiter.wants = 0; /* the phase, which stays */
    return &waiter->wait.waiter.awaiter;
}

/* The same for a plain thread, until `deadline`: see bide_event_wait_blocking. */
BIDE_INLINE int bide_auto_event_wait_blocking(bide_auto_event *event, uint64_t deadline)
{
    bide_auto_event_waiter waiter;
    return bide_sync_wait_until(bide_auto_event_wait(&waiter, event), deadline);
}

/*
 * Closes it: who waits, now and later, ends with -EPIPE; but if it is set, one wait still passes. Set and reset do
 * nothing from then on. Any thread, more than once; does not suspend; lock-free.
 */
BIDE_INLINE void bide_auto_event_close(bide_auto_event *event)
{
    bide_notify_close(&event->notify);
}

/* Its memory is about to go. Does nothing but tell, where BIDE_DEBUG is 1, if somebody waits. */
#if BIDE_DEBUG
#define bide_auto_event_destroy(event)             \
    bide_notify_destroy_checked_(&(event)->notify, \
                                 BIDE_MISUSE_("an event is destroyed that is waited on", #event))
#else
#define bide_auto_event_destroy(event) ((void)(event))
#endif

BIDE_EXTERN_C_END

#endif

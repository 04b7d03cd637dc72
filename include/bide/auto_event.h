/*
 * An auto-reset event: a set lets one wait pass, that of the first waiter in line; without waiters
 * it is remembered, once. Floor: sync.
 *
 *     bide_try(bide_auto_event_wait(&self->wait, &event));
 *     ...
 *     bide_auto_event_set(&event);                            // any thread: one waiter resumes
 *
 *     not set, no waiters     --set->   set        --wait->  not set
 *     not set, waiters        --set->   not set, and the first has passed
 *
 * Any thread may set, reset, wait and close. While there are n waiters, n sets let all of them pass.
 * Without waiters, two sets are remembered as one. There is one exception: sets that come while
 * another thread hands a set to a waiter are counted until that is done, so more than one wait that
 * begins at that moment may pass.
 *
 * If there is only ever one waiter, single_consumer_event.h has a smaller event.
 *
 * Why it is correct: it is a notify (notify.h) whose waits no phase ends.
 *
 * Source: cppcoro's async_auto_reset_event; the name comes from Windows.
 */
#ifndef BIDE_AUTO_EVENT_H
#define BIDE_AUTO_EVENT_H

#include "bide/notify.h"

BIDE_EXTERN_C_BEGIN

typedef struct bide_auto_event {
    bide_notify notify;
} bide_auto_event;

/* One wait. The caller's memory until the wait has ended. */
typedef struct bide_auto_event_waiter {
    bide_notify_waiter wait; /* at the head: it is the awaiter */
} bide_auto_event_waiter;

/*
 * Makes an event, set or not. The memory may be freed when there is no waiter and no call will come. The
 * last waiter may let it go at once when its wait has ended, though the call that set it has not
 * returned: setting touches nothing once that wait can have ended.
 * Threads: before it is shared. Progress: wait-free.
 */
BIDE_INLINE void bide_auto_event_init(bide_auto_event *event, bool set)
{
    bide_waiter_queue_init(&event->notify.queue, set ? BIDE_QUEUE_ONE : 0);
}

/*
 * Lets one wait pass, which sees what was written before. Does nothing if the event is closed. The
 * woken coroutine does not run on the caller's stack while a coroutine is running on it.
 * Threads: any. Suspends: never. Progress: lock-free.
 */
BIDE_INLINE void bide_auto_event_set(bide_auto_event *event)
{
    bide_notify_one(&event->notify);
}

/*
 * Forgets a set that is remembered. Writes made before that set are then visible. Does nothing
 * if the event is not set, or closed.
 * Threads: any, but not in a signal handler or an interrupt that may have cut into another call on
 * the event.
 * Progress: blocks while another thread hands out a set, for what is left of that.
 */
void bide_auto_event_reset(bide_auto_event *event);

/*
 * Takes a set that is remembered. False: there is none, or waiters are in line.
 * Threads: any. Progress: lock-free.
 */
BIDE_INLINE bool bide_auto_event_try_wait(bide_auto_event *event)
{
    return bide_notify_try_wait(&event->notify);
}

/*
 * Waits for a set, and takes it, in the order in which the waiters came. `waiter` must stay until
 * the wait has ended. A cancelled wait has taken no set, and one that comes at the same
 * time is the next waiter's.
 * Threads: any. Errors: -EPIPE (closed, and no set is left), -ECANCELED, -ETIMEDOUT. Suspends: if
 * it is not set. Cancel-safe: yes. Progress: lock-free.
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
        .attempt = NULL,
        .undo = BIDE_UNDO_WITHDRAW,
    };
    waiter->wait.waiter.awaiter.ops = &ops;
    waiter->wait.waiter.queue = &event->notify.queue;
    waiter->wait.waiter.wants = BIDE_NOTIFY_NO_PHASE_;
    return &waiter->wait.waiter.awaiter;
}

/*
 * The same for a plain thread, which it blocks until `deadline` at most: see
 * bide_event_wait_blocking.
 * Threads: any but that of a loop (sync_wait.h). Errors: as bide_auto_event_wait; -ETIMEDOUT (the
 * deadline has come). Progress: blocks.
 */
BIDE_INLINE int bide_auto_event_wait_blocking(bide_auto_event *event, uint64_t deadline)
{
    bide_auto_event_waiter waiter;
    return bide_sync_wait_until(bide_auto_event_wait(&waiter, event), deadline);
}

#define bide_auto_event_wait_blocking(...) BIDE_BLOCKS_(bide_auto_event_wait_blocking(__VA_ARGS__))

/*
 * Closes the event: waits end with -EPIPE, now and later; but if it is set, one wait still passes.
 * Set and reset do nothing from then on. More than once is once.
 * Threads: any. Suspends: never. Progress: lock-free, linear in the waiters.
 */
BIDE_INLINE void bide_auto_event_close(bide_auto_event *event)
{
    bide_notify_close(&event->notify);
}

/*
 * The end of its life. Does nothing; if BIDE_DEBUG is 1 it reports misuse if a wait is
 * under way.
 * Threads: any. Progress: wait-free.
 */
#define bide_auto_event_destroy(event)                                \
    BIDE_END_OF_LIFE_(bide_notify_destroy_checked_, &(event)->notify, \
                      "an event is destroyed while it is waited for", #event)

BIDE_EXTERN_C_END

#endif

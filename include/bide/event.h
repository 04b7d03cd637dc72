/*
 * A manual-reset event: coroutines wait until it is set; once set it stays so until it is reset.
 * One word. Floor: sync.
 *
 *     not set, waiters...  --set-->   set               everybody who waits is woken, oldest first
 *     set                  --reset->  not set
 *     not set, waiters...  --close->  closed            everybody who waits ends with -EPIPE
 *     set                  --close->  set for good
 *
 * To close it says that nobody will set it any more, so to wait for that is an error; but what it has announced stays
 * true, so who comes to a set event still passes, even where the close has overtaken him. Both ends are for good, so
 * that whoever tears something down closes its events and need not stop first who sets and resets them.
 *
 * Source: the asynchronous manual-reset event of Lewis Baker's article on operator co_await.
 */
#ifndef BIDE_EVENT_H
#define BIDE_EVENT_H

#include "bide/stop.h"
#include "bide/sync_wait.h"
#include "bide/extend/waiter_list.h"

BIDE_EXTERN_C_BEGIN

/* The states are those of its list of waiters: SHUT is "set", SHUT_FOR_GOOD "set for good". */
typedef struct bide_event {
    bide_waiter_list waiters;
} bide_event;

/* One wait. The caller's, for the time of the wait. */
typedef struct bide_event_waiter {
    bide_listed listed; /* the head */
    bide_event *event;
} bide_event_waiter;

/*
 * Makes an event, set or not. Before it is shared. The memory may go when nobody waits and nobody calls
 * any of these on it; in particular right after the wait that its set or close has ended: these do not touch the
 * event once the waiters can see that it is set, or closed. (Another's wait that is being cut short is under way until
 * it has ended.)
 */
BIDE_INLINE void bide_event_init(bide_event *event, bool set)
{
    bide_waiter_list_init(&event->waiters, set);
}

/* Is it set? What was written before the set is then visible. Any thread; wait-free. */
BIDE_INLINE bool bide_event_is_set(bide_event *event)
{
    /* acquire: partner is set's release; without it the caller might miss what the event announces. */
    return bide_waiter_list_word_is_set(bide_atomic_load(&event->waiters.word, acquire));
}

/*
 * Sets it, and wakes all who wait, in the order in which they came, each on its own scheduler. Does
 * nothing if it is set already, or closed. Any thread; does not suspend, and does not run them on the caller's
 * stack while a coroutine is running on it. Lock-free, and linear in the waiters.
 */
void bide_event_set(bide_event *event);

/*
 * Makes it not set; does nothing if it is not set, or set for good. Who waits afterwards waits for the next set. What
 * was written before the sets that it undoes is then visible: so who waits, resets, and then takes all that was
 * announced misses nothing. It gives no order to those who see that it is not set. Any thread; lock-free.
 */
BIDE_INLINE void bide_event_reset(bide_event *event)
{
    bide_waiter_list_reopen(&event->waiters);
}

/*
 * Closes it: if it is set, it stays so; if not, who waits, now and later, ends with -EPIPE. Set and reset do nothing
 * from then on. More than once is once. What was written before the close is visible to whom it ends. Any thread; does
 * not suspend, and runs nobody on the caller's stack while a coroutine is running on it. Linear in the waiters; blocks
 * while another thread removes a wait that is cut short.
 */
void bide_event_close(bide_event *event);

/* The end of its life: does nothing, but where misuse is looked for (BIDE_DEBUG) says so if somebody waits. */
#define bide_event_destroy(event) \
    bide_event_destroy_(event, BIDE_MISUSE_("an event is destroyed that is waited on", #event))

BIDE_INLINE void bide_event_destroy_(bide_event *event, const char *what, const char *where,
                                     const char *file, unsigned line)
{
#if BIDE_DEBUG
    if (!bide_waiter_list_word_is_idle(bide_atomic_load(&event->waiters.word, relaxed)))
        bide_misuse_(what, where, file, line);
#else
    (void)event, (void)what, (void)where, (void)file, (void)line;
#endif
}

BIDE_INLINE bool bide_event_ready_(bide_awaiter *awaiter)
{
    return bide_event_is_set(((bide_event_waiter *)(void *)awaiter)->event);
}

BIDE_INLINE bide_frame *bide_event_suspend_(bide_awaiter *awaiter, bide_frame *frame)
{
    bide_event_waiter *waiter = (bide_event_waiter *)(void *)awaiter;
    uintptr_t refused;
    /* release: see waiter_list.h, 3. Once pushed, neither awaiter, frame nor event is touched. */
    bide_waiter_list_push_unless(&waiter->event->waiters, &waiter->listed, release, refused);
    if (refused == 0)
        return NULL;
    if (BIDE_UNLIKELY(refused == BIDE_LIST_CLOSED))
        bide_awaiter_end_closed(awaiter);
    return frame;
}

BIDE_INLINE int bide_event_resume_(bide_awaiter *awaiter)
{
    (void)awaiter;
    return 0;
}

BIDE_INLINE void bide_event_cancel_(bide_awaiter *awaiter)
{
    bide_event_waiter *waiter = (bide_event_waiter *)(void *)awaiter;
    bide_waiter_list_cancel(&waiter->event->waiters, &waiter->listed);
}

BIDE_INLINE bool bide_event_withdraw_(bide_awaiter *awaiter)
{
    bide_event_waiter *waiter = (bide_event_waiter *)(void *)awaiter;
    return bide_waiter_list_withdraw(&waiter->event->waiters, &waiter->listed);
}

/*
 * Waits until `event` is set. `waiter` is the caller's until the wait has ended. Ends with 0, or with -EPIPE if it is
 * closed before it is set, or, cut short, with -ECANCELED or -ETIMEDOUT (stop.h). Any thread; suspends if it is neither
 * set nor closed; lock-free.
 */
BIDE_MUST_AWAIT
BIDE_INLINE bide_awaiter *bide_event_wait(bide_event_waiter *waiter, bide_event *event)
{
    __extension__ static const bide_awaiter_ops ops = {
        .ready = bide_event_ready_,
        .suspend = bide_event_suspend_,
        .resume = bide_event_resume_,
        .cancel = bide_event_cancel_,
        .withdraw = bide_event_withdraw_,
        .name = "bide_event_wait",
    };
    waiter->listed.awaiter.ops = &ops;
    waiter->event = event;
    return &waiter->listed.awaiter;
}

/*
 * The same for a plain thread, until `deadline` (nanoseconds of bide_platform.now(), or BIDE_FOREVER): returns what the
 * wait ends with, -ETIMEDOUT when the deadline has come. See bide_sync_wait_until. Blocks.
 */
BIDE_INLINE int bide_event_wait_blocking(bide_event *event, uint64_t deadline)
{
    bide_event_waiter waiter;
    return bide_sync_wait_until(bide_event_wait(&waiter, event), deadline);
}

BIDE_EXTERN_C_END

#endif

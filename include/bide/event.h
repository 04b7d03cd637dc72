/*
 * A manual-reset event: coroutines and threads wait until it is set; it stays set until it is
 * reset. One word. Floor: sync.
 *
 *     bide_event ready;
 *     bide_event_init(&ready, false);
 *
 *     bide_try(bide_event_wait(&self->wait, &ready));     // in any number of coroutines
 *
 *     bide_event_set(&ready);                             // any thread: all of them resume
 *
 *     not set, waiters...  --set-->   set               every waiter is woken, the oldest first
 *     set                  --reset->  not set
 *     not set, waiters...  --close->  closed            every waiter ends with -EPIPE
 *     set                  --close->  set for good
 *
 * Any thread may set, reset, wait and close. Without waiters, setting and resetting take no lock and no
 * system call.
 *
 * Closing means that the event will not be set any more, so waiting is an error. An event that was set
 * stays set: a wait on it passes, even if the close has overtaken it. Both final states are permanent,
 * so teardown closes the events, and need not first stop the threads that set and reset them.
 *
 * Why it is correct: it is a waiter list (docs/internals/waiter_list.md); src/sync/event.c has the
 * event's own part.
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

/* One wait. The caller's memory until the wait has ended. */
typedef struct bide_event_waiter {
    bide_listed listed; /* the head */
    bide_event *event;
} bide_event_waiter;

/*
 * Makes an event, set or not. The memory may be freed when no wait is under way and no call on the event
 * either. It may be freed at once after the wait that the event's set or close has ended, because neither
 * touches the event once waiters can see that it is set or closed. A wait that is being cancelled
 * is under way until it has ended.
 * Threads: before it is shared. Progress: wait-free.
 */
BIDE_INLINE void bide_event_init(bide_event *event, bool set)
{
    bide_waiter_list_init(&event->waiters, set);
}

/*
 * Is it set? Then what was written before the set is visible.
 * Threads: any. Progress: wait-free.
 */
BIDE_INLINE bool bide_event_is_set(bide_event *event)
{
    /* acquire: partner is set's release; without it the caller might miss what was announced. */
    return bide_waiter_list_word_is_set(bide_atomic_load(&event->waiters.word, acquire));
}

/*
 * Sets the event and wakes every waiter, in the order in which they came, each on its own
 * scheduler. Does nothing if the event is set already, or closed. Woken coroutines do not run on
 * the caller's stack while a coroutine is running on it.
 * Threads: any. Suspends: never. Progress: lock-free, linear in the waiters.
 */
void bide_event_set(bide_event *event);

/*
 * Makes the event not set: waits that begin afterwards wait for the next set. Does nothing if it is
 * not set, or set for good. Writes made before the sets that it undoes are then visible, so a
 * coroutine that waits, resets, and then takes all that was announced misses nothing. A look that
 * finds the event not set is ordered by nothing.
 * Threads: any. Progress: lock-free.
 */
BIDE_INLINE void bide_event_reset(bide_event *event)
{
    bide_waiter_list_reopen(&event->waiters);
}

/*
 * Closes the event. If it is set it stays so; if not, every wait ends with -EPIPE, now and later.
 * Set and reset do nothing from then on, nor does another close. A wait that ends by the close sees
 * what was written before it. Woken coroutines do not run on the caller's stack while a coroutine
 * is running on it.
 * Threads: any. Suspends: never. Progress: blocks while another thread removes a wait that is cut
 * short; linear in the waiters.
 */
void bide_event_close(bide_event *event);

BIDE_INLINE void bide_event_destroy_checked_(bide_event *event, const char *what,
                                             const char *function, const char *file, unsigned line)
{
    if (!bide_waiter_list_word_is_idle(bide_atomic_load(&event->waiters.word, relaxed)))
        bide_misuse_(what, function, file, line);
}

/*
 * The end of its life. Does nothing; if BIDE_DEBUG is 1 it reports misuse if a wait is under
 * way.
 * Threads: any. Progress: wait-free.
 */
#define bide_event_destroy(event)                           \
    BIDE_END_OF_LIFE_(bide_event_destroy_checked_, (event), \
                      "an event is destroyed while it is waited for", #event)

BIDE_INLINE bool bide_event_ready_(bide_awaiter *awaiter)
{
    return bide_event_is_set(((bide_event_waiter *)(void *)awaiter)->event);
}

BIDE_INLINE bide_frame *bide_event_suspend_(bide_awaiter *awaiter, bide_frame *frame)
{
    bide_event_waiter *waiter = (bide_event_waiter *)(void *)awaiter;
    uintptr_t refused;
    /* release: see waiter_list.md, 3. Once pushed, neither awaiter, frame nor event is touched. */
    bide_waiter_list_push_unless(&waiter->event->waiters, &waiter->listed, release, refused);
    if (refused == 0)
        return NULL;
    if (BIDE_UNLIKELY(refused == BIDE_LIST_CLOSED))
        bide_awaiter_finish_closed(awaiter);
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
 * Waits until `event` is set. `waiter` must stay until the wait has ended.
 * Threads: any. Errors: -EPIPE (closed before it was set), -ECANCELED, -ETIMEDOUT. Suspends: if it
 * is neither set nor closed. Cancel-safe: yes. Progress: lock-free.
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
        .attempt = NULL,
        .undo = BIDE_UNDO_WITHDRAW,
    };
    waiter->listed.awaiter.ops = &ops;
    waiter->event = event;
    return &waiter->listed.awaiter;
}

/*
 * The same for a plain thread, which it blocks until `deadline` at most: nanoseconds of
 * bide_platform.now(), or BIDE_FOREVER. See bide_sync_wait_until.
 * Threads: any but that of a loop (sync_wait.h). Errors: as bide_event_wait; -ETIMEDOUT (the
 * deadline has come). Progress: blocks.
 */
BIDE_INLINE int bide_event_wait_blocking(bide_event *event, uint64_t deadline)
{
    bide_event_waiter waiter;
    return bide_sync_wait_until(bide_event_wait(&waiter, event), deadline);
}

#define bide_event_wait_blocking(...) BIDE_BLOCKS_(bide_event_wait_blocking(__VA_ARGS__))

BIDE_EXTERN_C_END

#endif

/*
 * Events for one waiter at a time. One word and no list, so setting, waiting and cancelling are a
 * compare-exchange each. Floor: sync.
 *
 *     bide_single_consumer_event         manual reset: a set lasts until the reset
 *     bide_single_consumer_auto_event    a set lets one wait pass: the one under way, or the next
 *
 *     bide_single_consumer_event ready;
 *     bide_single_consumer_event_init(&ready, false);
 *
 *     bide_try(bide_single_consumer_event_wait(&self->wait, &ready));    // one coroutine at a time
 *
 *     bide_single_consumer_event_set(&ready);                            // any thread
 *
 * Any thread may set, reset, look and close. At most one wait is under way at a time; a second wait
 * is misuse, and detected.
 *
 * Set and reset do nothing when the event is closed. Waits then end with -EPIPE, as those for a
 * bide_event do; a set from before the close stays valid.
 */
#ifndef BIDE_SINGLE_CONSUMER_EVENT_H
#define BIDE_SINGLE_CONSUMER_EVENT_H

#include "bide/stop.h"
#include "bide/sync_wait.h"

BIDE_EXTERN_C_BEGIN

/* The word of both kinds. */
typedef struct bide_single_consumer_word_ {
    bide_atomic(uintptr_t) word;
} bide_single_consumer_word_;

#define BIDE_SINGLE_NOT_SET_      ((uintptr_t)0)
#define BIDE_SINGLE_SET_          ((uintptr_t)1)
#define BIDE_SINGLE_CLOSED_       ((uintptr_t)2)
#define BIDE_SINGLE_SET_FOR_GOOD_ ((uintptr_t)3)

typedef struct bide_single_consumer_event {
    bide_single_consumer_word_ state;
} bide_single_consumer_event;

typedef struct bide_single_consumer_auto_event {
    bide_single_consumer_word_ state;
} bide_single_consumer_auto_event;

/* One wait. The caller's memory until the wait has ended. */
typedef struct bide_single_consumer_event_waiter {
    bide_awaiter awaiter;
    bide_single_consumer_word_ *state;
} bide_single_consumer_event_waiter;

typedef bide_single_consumer_event_waiter bide_single_consumer_auto_event_waiter;

/* ---- What both do ---- */

/* Whether a wait is under way. */
BIDE_INLINE bool bide_single_consumer_is_waiter_(uintptr_t word)
{
    return word > BIDE_SINGLE_SET_FOR_GOOD_;
}

BIDE_INLINE bide_single_consumer_word_ *bide_single_consumer_of_(bide_awaiter *awaiter)
{
    return ((bide_single_consumer_event_waiter *)(void *)awaiter)->state;
}

/* Two waits are under way at once. */
BIDE_COLD void bide_single_consumer_misused_(const bide_awaiter *awaiter);

/*
 * Sets it; `then` is what the word becomes where a wait is under way. False: it is closed, and
 * nothing was done; this orders nothing.
 */
BIDE_INLINE bool bide_single_consumer_set_(bide_single_consumer_word_ *state, uintptr_t then)
{
    uintptr_t word = BIDE_SINGLE_NOT_SET_;
    uintptr_t set = BIDE_SINGLE_SET_;
    /* release: 2, partners: the acquires of waits that find it set. acquire: 3, partner: enlist. */
    while (!bide_atomic_compare_exchange(&state->word, &word, set, acq_rel, relaxed)) {
        if (word == BIDE_SINGLE_CLOSED_ || word == BIDE_SINGLE_SET_FOR_GOOD_)
            return false;
        set = bide_single_consumer_is_waiter_(word) ? then : BIDE_SINGLE_SET_;
    }
    if (bide_single_consumer_is_waiter_(word))
        bide_wake_one((bide_awaiter *)word);
    return true;
}

void bide_single_consumer_close_(bide_single_consumer_word_ *state);

/* Enlists: true. False: *found is SET, CLOSED or SET_FOR_GOOD. */
BIDE_INLINE bool bide_single_consumer_enlist_(bide_awaiter *awaiter, uintptr_t *found)
{
    *found = BIDE_SINGLE_NOT_SET_;
    /* release: 3, partner is the acquire of set and close. acquire: 2, partner is their release. */
    if (bide_atomic_compare_exchange(&bide_single_consumer_of_(awaiter)->word, found,
                                     (uintptr_t)awaiter, release, acquire))
        return true;
    if (BIDE_UNLIKELY(bide_single_consumer_is_waiter_(*found)))
        bide_single_consumer_misused_(awaiter);
    return false;
}

BIDE_INLINE int bide_single_consumer_resume_(bide_awaiter *awaiter)
{
    (void)awaiter;
    return 0;
}

BIDE_INLINE bool bide_single_consumer_withdraw_(bide_awaiter *awaiter)
{
    uintptr_t word = (uintptr_t)awaiter;
    /* relaxed: 4. */
    return bide_atomic_compare_exchange(&bide_single_consumer_of_(awaiter)->word, &word,
                                        BIDE_SINGLE_NOT_SET_, relaxed, relaxed);
}

BIDE_INLINE void bide_single_consumer_cancel_(bide_awaiter *awaiter)
{
    if (bide_single_consumer_withdraw_(awaiter)) {
        bide_awaiter_finish_cancelled(awaiter);
        bide_wake_one(awaiter);
    }
}

BIDE_MUST_AWAIT
BIDE_INLINE bide_awaiter *bide_single_consumer_wait_(bide_single_consumer_event_waiter *waiter,
                                                     bide_single_consumer_word_ *state,
                                                     const bide_awaiter_ops *ops)
{
    waiter->awaiter.ops = ops;
    waiter->state = state;
    return &waiter->awaiter;
}

BIDE_INLINE void bide_single_consumer_destroy_checked_(bide_single_consumer_word_ *state,
                                                       const char *what, const char *function,
                                                       const char *file, unsigned line)
{
    if (bide_single_consumer_is_waiter_(bide_atomic_load(&state->word, relaxed)))
        bide_misuse_(what, function, file, line);
}

/* ---- Manual reset ---- */

/*
 * Makes an event, set or not. The memory may be freed when no wait is under way and no call on the event
 * either. It may be freed at once after the wait that the event's set or close has ended.
 * Threads: before it is shared. Progress: wait-free.
 */
BIDE_INLINE void bide_single_consumer_event_init(bide_single_consumer_event *event, bool set)
{
    bide_atomic_init(&event->state.word, set ? BIDE_SINGLE_SET_ : BIDE_SINGLE_NOT_SET_);
}

/*
 * Is it set? Then what was written before the set is visible.
 * Threads: any. Progress: wait-free.
 */
BIDE_INLINE bool bide_single_consumer_event_is_set(bide_single_consumer_event *event)
{
    /* acquire: 2, partner is set's release. */
    uintptr_t word = bide_atomic_load(&event->state.word, acquire);
    return word == BIDE_SINGLE_SET_ || word == BIDE_SINGLE_SET_FOR_GOOD_;
}

/*
 * Sets the event and wakes the waiter, on its own scheduler. Does nothing if the event is closed. A
 * woken coroutine does not run on the caller's stack while a coroutine is running on it.
 * Threads: any. Suspends: never. Progress: lock-free.
 */
BIDE_INLINE void bide_single_consumer_event_set(bide_single_consumer_event *event)
{
    bide_single_consumer_set_(&event->state, BIDE_SINGLE_SET_);
}

/*
 * Makes the event not set; does nothing if it is not set, or closed. Writes made before the
 * sets that it undoes are then visible, as with bide_event_reset.
 * Threads: any. Progress: wait-free.
 */
BIDE_INLINE void bide_single_consumer_event_reset(bide_single_consumer_event *event)
{
    uintptr_t word = BIDE_SINGLE_SET_;
    /* acquire: 2, partner is set's release. */
    bide_atomic_compare_exchange(&event->state.word, &word, BIDE_SINGLE_NOT_SET_, acquire, relaxed);
}

/*
 * Closes the event. If it is set it stays so; if not, every wait ends with -EPIPE, now and later.
 * Set and reset do nothing from then on, nor does another close. A woken coroutine does not run on
 * the caller's stack while a coroutine is running on it.
 * Threads: any. Suspends: never. Progress: lock-free.
 */
BIDE_INLINE void bide_single_consumer_event_close(bide_single_consumer_event *event)
{
    bide_single_consumer_close_(&event->state);
}

/*
 * The end of its life. Does nothing; if BIDE_DEBUG is 1 it reports misuse if a wait is under
 * way.
 * Threads: any. Progress: wait-free.
 */
#define bide_single_consumer_event_destroy(event)                             \
    BIDE_END_OF_LIFE_(bide_single_consumer_destroy_checked_, &(event)->state, \
                      "an event is destroyed while it is waited for", #event)

BIDE_INLINE bool bide_single_consumer_event_ready_(bide_awaiter *awaiter)
{
    return bide_single_consumer_event_is_set(
        (bide_single_consumer_event *)(void *)bide_single_consumer_of_(awaiter));
}

BIDE_INLINE bide_frame *bide_single_consumer_event_suspend_(bide_awaiter *awaiter,
                                                            bide_frame *frame)
{
    uintptr_t found;
    /* Once enlisted, neither awaiter, frame nor event is touched. */
    if (bide_single_consumer_enlist_(awaiter, &found))
        return NULL;
    if (found == BIDE_SINGLE_CLOSED_)
        bide_awaiter_finish_closed(awaiter);
    return frame;
}

/*
 * Waits until `event` is set. `waiter` must stay until the wait has ended.
 * Threads: any, one wait at a time. Errors: -EPIPE (closed before it was set), -ECANCELED,
 * -ETIMEDOUT. Suspends: if it is neither set nor closed. Cancel-safe: yes. Progress: wait-free.
 */
BIDE_MUST_AWAIT
BIDE_INLINE bide_awaiter *bide_single_consumer_event_wait(bide_single_consumer_event_waiter *waiter,
                                                          bide_single_consumer_event *event)
{
    __extension__ static const bide_awaiter_ops ops = {
        .ready = bide_single_consumer_event_ready_,
        .suspend = bide_single_consumer_event_suspend_,
        .resume = bide_single_consumer_resume_,
        .cancel = bide_single_consumer_cancel_,
        .withdraw = bide_single_consumer_withdraw_,
        .name = "bide_single_consumer_event_wait",
        .attempt = NULL,
        .undo = BIDE_UNDO_WITHDRAW,
    };
    return bide_single_consumer_wait_(waiter, &event->state, &ops);
}

/*
 * The same for a plain thread, which it blocks until `deadline` at most: see
 * bide_event_wait_blocking.
 * Threads: any, one wait at a time, but not that of a loop (sync_wait.h). Errors: as
 * bide_single_consumer_event_wait; -ETIMEDOUT (the deadline has come). Progress: blocks.
 */
BIDE_INLINE int bide_single_consumer_event_wait_blocking(bide_single_consumer_event *event,
                                                         uint64_t deadline)
{
    bide_single_consumer_event_waiter waiter;
    return bide_sync_wait_until(bide_single_consumer_event_wait(&waiter, event), deadline);
}

#define bide_single_consumer_event_wait_blocking(...) \
    BIDE_BLOCKS_(bide_single_consumer_event_wait_blocking(__VA_ARGS__))

/* ---- Auto-reset ---- */

/*
 * Makes an event, set or not. Its memory may go as that of a bide_single_consumer_event.
 * Threads: before it is shared. Progress: wait-free.
 */
BIDE_INLINE void bide_single_consumer_auto_event_init(bide_single_consumer_auto_event *event,
                                                      bool set)
{
    bide_atomic_init(&event->state.word, set ? BIDE_SINGLE_SET_ : BIDE_SINGLE_NOT_SET_);
}

/*
 * Lets one wait pass: wakes the waiter, on its own scheduler, or is remembered for the next wait.
 * Two sets before that are one set, but what was written before either is then visible. Does
 * nothing if the event is closed. A woken coroutine does not run on the caller's stack while a
 * coroutine is running on it.
 * Threads: any. Suspends: never. Progress: lock-free.
 */
BIDE_INLINE void bide_single_consumer_auto_event_set(bide_single_consumer_auto_event *event)
{
    bide_single_consumer_set_(&event->state, BIDE_SINGLE_NOT_SET_);
}

BIDE_INLINE bool bide_single_consumer_take_(bide_single_consumer_word_ *state)
{
    uintptr_t word = bide_atomic_load(&state->word, relaxed);
    while (word == BIDE_SINGLE_SET_ || word == BIDE_SINGLE_SET_FOR_GOOD_) {
        /* acquire: 2, partner is set's release. */
        if (bide_atomic_compare_exchange(&state->word, &word,
                                         word == BIDE_SINGLE_SET_ ? BIDE_SINGLE_NOT_SET_
                                                                  : BIDE_SINGLE_CLOSED_,
                                         acquire, relaxed))
            return true;
    }
    return false;
}

/*
 * Takes the set that is remembered, if one is: true. Writes made before it are then visible.
 * Threads: any, but not while another thread waits. Progress: lock-free.
 */
BIDE_INLINE bool bide_single_consumer_auto_event_try_wait(bide_single_consumer_auto_event *event)
{
    return bide_single_consumer_take_(&event->state);
}

/*
 * Closes the event: every wait ends with -EPIPE, now and later; but if it is set, one wait still
 * passes. Set does nothing from then on, nor does another close. A woken coroutine does not run on
 * the caller's stack while a coroutine is running on it.
 * Threads: any. Suspends: never. Progress: lock-free.
 */
BIDE_INLINE void bide_single_consumer_auto_event_close(bide_single_consumer_auto_event *event)
{
    bide_single_consumer_close_(&event->state);
}

/*
 * The end of its life. Does nothing; if BIDE_DEBUG is 1 it reports misuse if a wait is under
 * way.
 * Threads: any. Progress: wait-free.
 */
#define bide_single_consumer_auto_event_destroy(event) bide_single_consumer_event_destroy(event)

BIDE_INLINE bool bide_single_consumer_auto_event_ready_(bide_awaiter *awaiter)
{
    return bide_single_consumer_take_(bide_single_consumer_of_(awaiter));
}

BIDE_INLINE bide_frame *bide_single_consumer_auto_event_suspend_(bide_awaiter *awaiter,
                                                                 bide_frame *frame)
{
    uintptr_t found;
    /* Once enlisted, neither awaiter, frame nor event is touched. */
    while (!bide_single_consumer_enlist_(awaiter, &found)) {
        if (found == BIDE_SINGLE_CLOSED_) {
            bide_awaiter_finish_closed(awaiter);
            return frame;
        }
        if (bide_single_consumer_auto_event_ready_(awaiter))
            return frame;
    }
    return NULL;
}

bool bide_single_consumer_auto_event_withdraw_(bide_awaiter *awaiter);

/*
 * Waits for a set, and takes it. `waiter` must stay until the wait has ended.
 * Threads: any, one wait at a time. Errors: -EPIPE (closed, and no set is left), -ECANCELED,
 * -ETIMEDOUT. Suspends: if it is neither set nor closed. Cancel-safe: yes, it took no set.
 * Progress: lock-free.
 */
BIDE_MUST_AWAIT
BIDE_INLINE bide_awaiter *
bide_single_consumer_auto_event_wait(bide_single_consumer_auto_event_waiter *waiter,
                                     bide_single_consumer_auto_event *event)
{
    __extension__ static const bide_awaiter_ops ops = {
        .ready = bide_single_consumer_auto_event_ready_,
        .suspend = bide_single_consumer_auto_event_suspend_,
        .resume = bide_single_consumer_resume_,
        .cancel = bide_single_consumer_cancel_,
        .withdraw = bide_single_consumer_auto_event_withdraw_,
        .name = "bide_single_consumer_auto_event_wait",
        .attempt = NULL,
        .undo = BIDE_UNDO_WITHDRAW,
    };
    return bide_single_consumer_wait_(waiter, &event->state, &ops);
}

/*
 * The same for a plain thread, which it blocks until `deadline` at most: see
 * bide_event_wait_blocking.
 * Threads: any, one wait at a time, but not that of a loop (sync_wait.h). Errors: as
 * bide_single_consumer_auto_event_wait; -ETIMEDOUT (the deadline has come). Progress: blocks.
 */
BIDE_INLINE int
bide_single_consumer_auto_event_wait_blocking(bide_single_consumer_auto_event *event,
                                              uint64_t deadline)
{
    bide_single_consumer_auto_event_waiter waiter;
    return bide_sync_wait_until(bide_single_consumer_auto_event_wait(&waiter, event), deadline);
}

#define bide_single_consumer_auto_event_wait_blocking(...) \
    BIDE_BLOCKS_(bide_single_consumer_auto_event_wait_blocking(__VA_ARGS__))

/*
 * Why it is correct:
 *
 *     word   NOT_SET (0)        SET (1)
 *            pointer            not set, and this operation waits
 *            CLOSED (2)         it was not set when it was closed
 *            SET_FOR_GOOD (3)   it was set when it was closed
 *
 *                         manual reset                    auto-reset
 *     set                 NOT_SET, SET -> SET             NOT_SET, SET -> SET
 *                         pointer -> SET, and wakes       pointer -> NOT_SET, and wakes
 *     reset               SET -> NOT_SET
 *     wait that finds it  leaves it                       SET -> NOT_SET,
 *       set                                               SET_FOR_GOOD -> CLOSED
 *     wait                NOT_SET -> pointer              NOT_SET -> pointer
 *     cancelled           pointer -> NOT_SET              pointer -> NOT_SET
 *     close               NOT_SET -> CLOSED               NOT_SET -> CLOSED
 *                         pointer -> CLOSED, and wakes    pointer -> CLOSED, and wakes
 *                         SET -> SET_FOR_GOOD             SET -> SET_FOR_GOOD: one more wait passes
 *
 * 1. All change one word. So for each wait either the set finds it there, or the wait finds what
 *    the set has left: no wake-up is lost, and none doubled. A wait is taken off the word once: by
 *    the set, the close, or its own being cancelled. The taker ends it. So nothing that is handed
 *    to it is lost by that.
 * 2. set and close release. Their partners are the wait or look that finds the word so, the reset,
 *    and the waiter that is woken. So what was written before is seen by each wait that ends
 *    because of it. A set also releases where it is set already, for then the later set announces
 *    something too.
 * 3. The wait releases its awaiter and the frame behind it, and set and close acquire that.
 * 4. To be cancelled needs no order: the canceller has the operation by the order of its source
 *    (stop.h).
 * 5. ABA: a pointer says that this operation waits now, whenever it came, and its node is acquired
 *    with it.
 * 6. The exchange of a set or a close is the last thing that it does to the event.
 *
 * Source: single_consumer_event and single_consumer_async_auto_reset_event of cppcoro.
 */

BIDE_EXTERN_C_END

#endif

/*
 * Events for one waiter at a time: one word, no list, so that to set, to wait and to give up are a compare-exchange
 * each. Floor: sync.
 *
 *     bide_single_consumer_event               manual reset: once set it stays so until it is reset
 *     bide_single_consumer_auto_reset_event    a set lets one wait pass: the one under way, or the next
 *
 *     word   NOT_SET (0)        SET (1)
 *            pointer            not set, and this operation waits
 *            CLOSED (2)         it was not set when it was closed
 *            SET_FOR_GOOD (3)   it was set when it was closed
 *
 *                        manual reset                        auto-reset
 *     set                NOT_SET, SET -> SET                 NOT_SET, SET -> SET
 *                        pointer -> SET, and wakes           pointer -> NOT_SET, and wakes
 *     reset              SET -> NOT_SET
 *     who finds it set   leaves it                           SET -> NOT_SET, SET_FOR_GOOD -> CLOSED
 *     wait               NOT_SET -> pointer                  NOT_SET -> pointer
 *     cut short          pointer -> NOT_SET                  pointer -> NOT_SET
 *     close              NOT_SET -> CLOSED                   NOT_SET -> CLOSED
 *                        pointer -> CLOSED, and wakes        pointer -> CLOSED, and wakes
 *                        SET -> SET_FOR_GOOD                 SET -> SET_FOR_GOOD: one more wait passes
 *
 * Set and reset do nothing when it is closed. Who waits then ends with -EPIPE, as bide_event's waiters do.
 *
 * Threads: set, reset, is_set and close from any; one at a time waits, and that there are two is caught as misuse when
 * the second comes while the first waits.
 *
 * 1. All change one word, so for each wait either the set finds it there, or the wait finds what the set has left: no
 *    wake-up is lost, and none doubled. A wait is taken off the word once: by the set, the close, or its own being
 *    cut short, and whoever took it ends it. So nothing that is handed to it is lost by that.
 * 2. set and close release (partner: who finds the word so, resets it, or is woken), so what was written before is seen
 *    by who ends because of it; also where it is set already, for then the later set announces something too.
 * 3. The wait releases its awaiter and the frame behind it, and set and close acquire that.
 * 4. To be cut short needs no order: who cancels has the operation by the order of its source (stop.h).
 * 5. ABA: a pointer says that this operation waits now, whenever it came, and its node is acquired with it.
 *
 * The set's (the close's) exchange is the last that it does to the event.
 *
 * Source: single_consumer_event and single_consumer_async_auto_reset_event of cppcoro.
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

typedef struct bide_single_consumer_auto_reset_event {
    bide_single_consumer_word_ state;
} bide_single_consumer_auto_reset_event;

/* One wait. The caller's, for the time of the wait. */
typedef struct bide_single_consumer_event_waiter {
    bide_awaiter awaiter;
    bide_single_consumer_word_ *state;
} bide_single_consumer_event_waiter;

typedef bide_single_consumer_event_waiter bide_single_consumer_auto_reset_event_waiter;

/* ---- What both do ---- */

/* Does somebody wait? */
BIDE_INLINE bool bide_single_consumer_is_waiter_(uintptr_t word)
{
    return word > BIDE_SINGLE_SET_FOR_GOOD_;
}

BIDE_INLINE bide_single_consumer_word_ *bide_single_consumer_of_(bide_awaiter *awaiter)
{
    return ((bide_single_consumer_event_waiter *)(void *)awaiter)->state;
}

/* Two wait at once. */
BIDE_COLD void bide_single_consumer_misused_(void);

/* `then`: what the word becomes where somebody waits. False: it is closed, and nothing was done; this orders nothing. */
BIDE_INLINE bool bide_single_consumer_set_(bide_single_consumer_word_ *state, uintptr_t then)
{
    uintptr_t word = BIDE_SINGLE_NOT_SET_;
    uintptr_t set = BIDE_SINGLE_SET_;
    /* release: 2, partners are the acquires of who finds it set. acquire: 3, partner is enlist's release. */
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
        bide_single_consumer_misused_();
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
        bide_awaiter_end_canceled(awaiter);
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

BIDE_INLINE void bide_single_consumer_destroy_(bide_single_consumer_word_ *state, const char *what,
                                               const char *where, const char *file, unsigned line)
{
#if BIDE_DEBUG
    if (bide_single_consumer_is_waiter_(bide_atomic_load(&state->word, relaxed)))
        bide_misuse_(what, where, file, line);
#else
    (void)state, (void)what, (void)where, (void)file, (void)line;
#endif
}

/* ---- Manual reset ---- */

/*
 * Makes an event, set or not. Before it is shared. The memory may go when nobody waits and nobody calls any of these on
 * it; in particular right after the wait that its set or close has ended.
 */
BIDE_INLINE void bide_single_consumer_event_init(bide_single_consumer_event *event, bool set)
{
    bide_atomic_init(&event->state.word, set ? BIDE_SINGLE_SET_ : BIDE_SINGLE_NOT_SET_);
}

/* Is it set? What was written before the set is then visible. Any thread; wait-free. */
BIDE_INLINE bool bide_single_consumer_event_is_set(bide_single_consumer_event *event)
{
    /* acquire: 2, partner is set's release. */
    uintptr_t word = bide_atomic_load(&event->state.word, acquire);
    return word == BIDE_SINGLE_SET_ || word == BIDE_SINGLE_SET_FOR_GOOD_;
}

/*
 * Sets it, and wakes who waits, on its own scheduler. Does nothing if it is closed. Any thread; does not suspend, and
 * does not run anybody on the caller's stack while a coroutine is running on it. Lock-free.
 */
BIDE_INLINE void bide_single_consumer_event_set(bide_single_consumer_event *event)
{
    bide_single_consumer_set_(&event->state, BIDE_SINGLE_SET_);
}

/* Makes it not set; does nothing if it is not set, or closed. What was written before the sets that it undoes is then
 * visible, as with bide_event_reset. Any thread; wait-free. */
BIDE_INLINE void bide_single_consumer_event_reset(bide_single_consumer_event *event)
{
    uintptr_t word = BIDE_SINGLE_SET_;
    /* acquire: 2, partner is set's release. */
    bide_atomic_compare_exchange(&event->state.word, &word, BIDE_SINGLE_NOT_SET_, acquire, relaxed);
}

/*
 * Closes it: if it is set, it stays so; if not, who waits, now and later, ends with -EPIPE. Set and reset do nothing
 * from then on. More than once is once. Any thread; does not suspend; as set otherwise.
 */
BIDE_INLINE void bide_single_consumer_event_close(bide_single_consumer_event *event)
{
    bide_single_consumer_close_(&event->state);
}

/* The end of its life: does nothing, but where misuse is looked for (BIDE_DEBUG) says so if somebody waits. */
#define bide_single_consumer_event_destroy(event) \
    bide_single_consumer_destroy_(                \
        &(event)->state, BIDE_MISUSE_("an event is destroyed while it is waited for", #event))

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
        bide_awaiter_end_closed(awaiter);
    return frame;
}

/*
 * Waits until `event` is set. `waiter` is the caller's until the wait has ended. Ends with 0, or with -EPIPE if it is
 * closed before it is set, or, cut short, with -ECANCELED or -ETIMEDOUT (stop.h). Any thread, one wait at a time;
 * suspends if it is neither set nor closed; wait-free.
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
    };
    return bide_single_consumer_wait_(waiter, &event->state, &ops);
}

/* The same for a plain thread, until `deadline`: see bide_event_wait_blocking. */
BIDE_INLINE int bide_single_consumer_event_wait_blocking(bide_single_consumer_event *event,
                                                         uint64_t deadline)
{
    bide_single_consumer_event_waiter waiter;
    return bide_sync_wait_until(bide_single_consumer_event_wait(&waiter, event), deadline);
}

/* ---- Auto-reset ---- */

/* As bide_single_consumer_event_init. */
BIDE_INLINE void
bide_single_consumer_auto_reset_event_init(bide_single_consumer_auto_reset_event *event, bool set)
{
    bide_atomic_init(&event->state.word, set ? BIDE_SINGLE_SET_ : BIDE_SINGLE_NOT_SET_);
}

/*
 * Lets one wait pass: wakes who waits, on its own scheduler, or is remembered for the next. Set twice before that is
 * set once; but what was written before either is then visible. Does nothing if it is closed. As
 * bide_single_consumer_event_set otherwise.
 */
BIDE_INLINE void
bide_single_consumer_auto_reset_event_set(bide_single_consumer_auto_reset_event *event)
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

/* Takes the set that is remembered, if one is: true. What was written before it is then visible. Any thread, but not
 * while another waits; lock-free. */
BIDE_INLINE bool
bide_single_consumer_auto_reset_event_try_wait(bide_single_consumer_auto_reset_event *event)
{
    return bide_single_consumer_take_(&event->state);
}

/*
 * Closes it: who waits, now and later, ends with -EPIPE; but if it is set, one wait still passes. Set does nothing from
 * then on. As bide_single_consumer_event_close otherwise.
 */
BIDE_INLINE void
bide_single_consumer_auto_reset_event_close(bide_single_consumer_auto_reset_event *event)
{
    bide_single_consumer_close_(&event->state);
}

/* As bide_single_consumer_event_destroy. */
#define bide_single_consumer_auto_reset_event_destroy(event) \
    bide_single_consumer_event_destroy(event)

BIDE_INLINE bool bide_single_consumer_auto_reset_event_ready_(bide_awaiter *awaiter)
{
    return bide_single_consumer_take_(bide_single_consumer_of_(awaiter));
}

BIDE_INLINE bide_frame *bide_single_consumer_auto_reset_event_suspend_(bide_awaiter *awaiter,
                                                                       bide_frame *frame)
{
    uintptr_t found;
    /* Once enlisted, neither awaiter, frame nor event is touched. */
    while (!bide_single_consumer_enlist_(awaiter, &found)) {
        if (found == BIDE_SINGLE_CLOSED_) {
            bide_awaiter_end_closed(awaiter);
            return frame;
        }
        if (bide_single_consumer_auto_reset_event_ready_(awaiter))
            return frame;
    }
    return NULL;
}

BIDE_INLINE bool bide_single_consumer_auto_reset_event_withdraw_(bide_awaiter *awaiter)
{
    if (bide_single_consumer_withdraw_(awaiter))
        return true;
    /* The set was handed over, to nobody. */
    bide_single_consumer_set_(bide_single_consumer_of_(awaiter), BIDE_SINGLE_NOT_SET_);
    return false;
}

/*
 * Waits for a set, and takes it. `waiter` is the caller's until the wait has ended. Ends with 0, or with -EPIPE if it
 * is closed and no set is left, or, cut short, with -ECANCELED or -ETIMEDOUT (stop.h): then it took none. Any thread,
 * one wait at a time; suspends if it is neither set nor closed; lock-free.
 */
BIDE_MUST_AWAIT
BIDE_INLINE bide_awaiter *
bide_single_consumer_auto_reset_event_wait(bide_single_consumer_auto_reset_event_waiter *waiter,
                                           bide_single_consumer_auto_reset_event *event)
{
    __extension__ static const bide_awaiter_ops ops = {
        .ready = bide_single_consumer_auto_reset_event_ready_,
        .suspend = bide_single_consumer_auto_reset_event_suspend_,
        .resume = bide_single_consumer_resume_,
        .cancel = bide_single_consumer_cancel_,
        .withdraw = bide_single_consumer_auto_reset_event_withdraw_,
        .name = "bide_single_consumer_auto_reset_event_wait",
        .attempt = NULL,
    };
    return bide_single_consumer_wait_(waiter, &event->state, &ops);
}

/* The same for a plain thread, until `deadline`: see bide_event_wait_blocking. */
BIDE_INLINE int
bide_single_consumer_auto_reset_event_wait_blocking(bide_single_consumer_auto_reset_event *event,
                                                    uint64_t deadline)
{
    bide_single_consumer_auto_reset_event_waiter waiter;
    return bide_sync_wait_until(bide_single_consumer_auto_reset_event_wait(&waiter, event),
                                deadline);
}

BIDE_EXTERN_C_END

#endif

/*
 * Timers of the inline scheduler: the threads that keep time for coroutines of no loop and no pool.
 * See inline_timers.c.
 */
#ifndef BIDE_COROUTINE_INLINE_TIMERS_H
#define BIDE_COROUTINE_INLINE_TIMERS_H

#include "bide/stop.h"
#include "bide/extend/timer.h"

/* The states of the word that a keeper sleeps on. */
enum { BIDE_KEEPER_AWAKE_, BIDE_KEEPER_PARKED_ };

/* The timers of one thread that keeps time. */
typedef struct bide_timekeeper_ {
    /* under the lock */
    bide_awaiter *first; /* a tree (timer_tree.h) */
    bide_atomic(uint32_t) *
        sleeps_on; /* the word that holds PARKED while its thread sleeps; NULL: it does not */
    /* the thread's own */
    bool used; /* whether a timer may be set */
} bide_timekeeper_;

/*
 * Makes the calling thread the keeper of the timers that are set on it, until it leaves. Returns
 * false, and does nothing, if it is a keeper already. Leaving hands over the timers that are left.
 */
bool bide_keep_time_(bide_timekeeper_ *timekeeper);
void bide_stop_keeping_time_(bide_timekeeper_ *timekeeper);

/*
 * The calling thread, a keeper, is about to sleep on `word`, and must be woken for timers that other
 * threads set: AWAKE becomes PARKED, and the reverse for an earlier timer. Returns the time of the
 * earliest timer, until which it may sleep. It must unpark before the word's memory is freed.
 */
uint64_t bide_timekeeper_park_(bide_atomic(uint32_t) * word);
void bide_timekeeper_unpark_(void);

/* Runs the timers that are due at `now`, and the coroutines that they wake inline, on this thread. */
void bide_timekeeper_run_due_(uint64_t now);

/*
 * A wait of the calling thread that has a deadline, and whose coroutines run on this thread: a give-way
 * requests a stop when it is late. On the thread's stack, between these two.
 */
typedef struct bide_limited_wait_ {
    uint64_t deadline;
    bide_stop_source *stop;
    struct bide_limited_wait_ *outer;
} bide_limited_wait_;

void bide_limited_wait_begin_(bide_limited_wait_ *wait, bide_stop_source *stop, uint64_t deadline);
void bide_limited_wait_end_(bide_limited_wait_ *wait);

/*
 * A coroutine gives way on this thread: requests the stops that are due, by its waits and by its timers.
 * Coroutines whose sleep is over are posted.
 */
void bide_look_at_clock_(void);

/*
 * Starts a thread that calls bide_serve_timers_, and returns 0 or a negative errno. NULL: the system
 * has no threads. Set at the program's start.
 */
extern int (*bide_start_timer_service_)(void);

/* The body of that thread: returns when the service was stopped. */
void bide_serve_timers_(void);

/*
 * At the program's end: stops the service if it sleeps and runs no coroutine. Then its thread can be
 * joined.
 */
bool bide_end_timer_service_(void);

/* bide_inline_scheduler's (frame.c). */
int bide_inline_set_timer_(bide_scheduler *scheduler, bide_timer *timer);
bool bide_inline_clear_timer_(bide_scheduler *scheduler, bide_timer *timer);

/* Around a fork; in the child the service is gone, but for the child of its own thread. */
void bide_inline_timers_before_fork_(void);
void bide_inline_timers_after_fork_(void);
void bide_inline_timers_in_child_(void);

#if BIDE_CHECK
/* For scenarios: the model checker abandons an execution anywhere, and begins the next. And the end
 * of the service wherever it is, after the coroutine that it runs. */
void bide_inline_timers_begin_anew_(void);
void bide_end_timer_service_anyhow_(void);
#endif

#endif

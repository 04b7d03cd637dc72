/*
 * Timers of the inline scheduler: who keeps time for coroutines that belong to no loop and no pool.
 * See inline_timers.c.
 */
#ifndef BIDE_COROUTINE_INLINE_TIMERS_H
#define BIDE_COROUTINE_INLINE_TIMERS_H

#include "bide/extend/timer.h"

/* What a thread that keeps time does with the word it sleeps on. */
enum { BIDE_KEEPER_AWAKE_, BIDE_KEEPER_PARKED_ };

/* The timers of one thread that keeps time. */
typedef struct bide_timer_keeper_ {
    /* under the lock */
    bide_awaiter *first; /* a tree (timer_tree.h) */
    bide_atomic(uint32_t) *
        sleeps_on; /* the word that holds PARKED while its thread sleeps; NULL: it does not */
    /* the thread's own */
    bool used; /* may there be any? */
} bide_timer_keeper_;

/*
 * Makes the calling thread keep time, until it leaves, for what sets timers on it. False, and
 * nothing is done: it does so already, further out. Leaving hands on what is left, if anything.
 */
bool bide_keep_time_(bide_timer_keeper_ *keeper);
void bide_stop_keeping_time_(bide_timer_keeper_ *keeper);

/*
 * The calling thread, which keeps time, is about to sleep on `word`, and has to be woken for what
 * other threads set: AWAKE becomes PARKED, and the other way round when there is something to look
 * at. Returns when the earliest timer is due, until when it may sleep. Before the word goes, if it
 * has parked: unpark.
 */
uint64_t bide_keeper_park_(bide_atomic(uint32_t) * word);
void bide_keeper_unpark_(void);

/* Runs those that are due at `now`, and what is woken inline by that, on the calling thread. */
void bide_keeper_run_due_(uint64_t now);

/*
 * Where there are threads: starts one that calls bide_serve_timers_, and returns 0 or a negative
 * errno. NULL: there are none. Set at the program's begin.
 */
extern int (*bide_start_timer_service_)(void);

/* The body of that thread: returns when it has been ended. */
void bide_serve_timers_(void);

/*
 * At the program's end: ends the service if it sleeps and runs no coroutine. Then its thread can be
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
/* For scenarios: the model checker leaves an execution anywhere, and begins the next. And the end of
 * the service wherever it is, when it has run what it runs. */
void bide_inline_timers_begin_anew_(void);
void bide_end_timer_service_anyhow_(void);
#endif

#endif

/*
 * Counts of turns, by task: how often each task ran, how often it was woken, and for how long it was busy.
 * Floor: monitor.
 *
 * Each thread counts the turns that it runs, in a table of its own record (inspect/observer.h), under the
 * record's lock. A look takes these tables away, and adds them up. So a count covers the time since the
 * look before, of any connection.
 */
#ifndef BIDE_MONITOR_TURN_COUNTS_H
#define BIDE_MONITOR_TURN_COUNTS_H

#include "../inspect/observer.h"

typedef struct turn_count {
    const void *task; /* the outermost frame; NULL: free */
    uint64_t runs;    /* turns that have started */
    uint64_t wakes;   /* ... of these, after a wait */
    uint64_t busy;    /* nanoseconds */
} turn_count;

/* The sums of a look: the monitor's thread alone. All zero: empty. */
typedef struct turn_sums {
    turn_count *counts; /* a hash table */
    size_t room;
    uint64_t runs; /* all of them; also of tasks that have ended, or for which there was no room */
    uint64_t period; /* nanoseconds that the counts cover; 0: no turns are watched */
} turn_sums;

/* Of an observer's user: `turn` and `turn_ends` of the outermost turn of a thread; `now` is its end. */
void bide_turn_counts_begin_(observed_thread *thread, const observed_turn *turn);
void bide_turn_counts_end_(observed_thread *thread, const observed_turn *turn, uint64_t now);

/* Forgets what all threads have counted, and starts a new period. Under `bide_observer_lock_`. */
void bide_turn_counts_clear_(void);

/* Takes all counts, and starts a new period. A turn that runs counts as busy up to now. */
void bide_turn_counts_take_(turn_sums *sums);

void bide_turn_counts_add_(turn_count *to, const turn_count *more);

/* The counts of the task with this outermost frame; NULL: it has not run. */
const turn_count *bide_turn_counts_of_(const turn_sums *sums, const void *task);

void bide_turn_counts_free_(turn_sums *sums);

#endif

/*
 * The library's one observer (observe.h): it keeps a record of each thread, and passes on what the
 * threads report to its users: a trace, a watch over turns, the monitor. Floor: inspect.
 *
 * A user is a constant table of functions. The observer calls them on the reporting thread, under
 * the lock of that thread's record; a user that needs nothing of a kind leaves its function NULL.
 */
#ifndef BIDE_INSPECT_OBSERVER_H
#define BIDE_INSPECT_OBSERVER_H

#include "../coroutine/observe.h"

#include <pthread.h>
#include <sys/types.h>

enum { OBSERVED_DEPTH = 8, OBSERVED_NAME = 16 };

/* A turn: the coroutine that was resumed, and its task. Constants of the program, and addresses. */
typedef struct observed_turn {
    const bide_point *point; /* where the coroutine was suspended */
    const char *waited_for;  /* the operation's name; NULL: the coroutine starts, or is no user's */
    const void *task;        /* the outermost frame */
    uint64_t began;
} observed_turn;

typedef struct trace_block trace_block;
typedef struct turn_table turn_table;

typedef struct observed_thread observed_thread;
struct observed_thread {
    observed_thread *next; /* in the list of all records; constant */
    pthread_mutex_t lock;  /* of all the members below */
    bool in_use;           /* by a live thread */
    bool is_asleep;        /* the thread has reported that it sleeps */
    bool is_reported;      /* the outermost turn was reported as long while it ran */
    pid_t id;
    char name[OBSERVED_NAME];
    unsigned depth;                      /* turns that run, one inside another */
    observed_turn turns[OBSERVED_DEPTH]; /* the outer ones of these */
    trace_block *block;                  /* being filled; NULL: none */
    uint32_t marks;                      /* added to blocks so far */
    observed_turn longest;               /* the monitor's: of the turns since its last report */
    uint64_t longest_time;               /* nanoseconds; 0: there was no turn */
    turn_table *counted;                 /* the monitor's (turn_counts.h); NULL: nothing yet */
    uint64_t counted_until;              /* of the outermost turn, what is in the table */
};

typedef struct observer_user {
    /* A turn starts, and ends: `thread->depth` counts it before the call, and no more, respectively.
     * Turns deeper than OBSERVED_DEPTH are left out. */
    void (*turn)(observed_thread *thread, const observed_turn *turn);
    void (*turn_ends)(observed_thread *thread, const observed_turn *turn);

    /* The others are those of bide_observer_. */
    void (*task)(observed_thread *thread, const bide_root *root);
    void (*task_ends)(observed_thread *thread, const bide_root *root);
    void (*operation)(observed_thread *thread, const bide_awaiter *operation, int fd);
    void (*operation_ends)(observed_thread *thread, const bide_awaiter *operation, size_t count,
                           int status);
    void (*thread)(observed_thread *thread, bide_observed_ what);
} observer_user;

/*
 * Registers a user, and removes it. Under `bide_observer_lock_`. When bide_observer_stop_ has returned no thread
 * is in a function of that user, and none will call one.
 */
extern pthread_mutex_t bide_observer_lock_;
bool bide_observer_is_active_(const observer_user *user);
void bide_observer_start_(const observer_user *user);
void bide_observer_stop_(const observer_user *user);

/* The records of all threads that were ever observed. Under `bide_observer_lock_`. */
observed_thread *bide_observer_threads_(void);

#endif

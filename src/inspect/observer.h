/*
 * The one observer (observe.h): what it keeps of each thread, for a trace and for a watch over
 * turns. Floor: schedule.
 */
#ifndef BIDE_INSPECT_OBSERVER_H
#define BIDE_INSPECT_OBSERVER_H

#include "../coroutine/observe.h"

#include <pthread.h>
#include <sys/types.h>

enum { OBSERVED_DEPTH = 8, OBSERVED_NAME = 16 };

/* A turn: what was resumed, and for whom. Constants of the program, and addresses. */
typedef struct observed_turn {
    const bide_point *point; /* where the coroutine stood that goes on */
    const char *waited_for;  /* by name; NULL: it begins, or was not written by a user */
    const void *task;        /* the outermost frame */
    uint64_t began;
} observed_turn;

typedef struct trace_block trace_block;

typedef struct observed_thread observed_thread;
struct observed_thread {
    observed_thread *next; /* of all that there were; constant */
    pthread_mutex_t lock;  /* of what follows */
    bool in_use;           /* by a thread that lives */
    bool is_asleep;        /* and was seen to fall asleep */
    bool is_reported;      /* the turn at the bottom was, while it went on */
    pid_t id;
    char name[OBSERVED_NAME];
    unsigned depth;                      /* turns that run, one inside the other */
    observed_turn turns[OBSERVED_DEPTH]; /* of those, the outer ones */
    trace_block *block;                  /* being filled; NULL: none */
    uint32_t marks;                      /* that were added to blocks */
    observed_turn longest;               /* of those that have ended since somebody asked */
    uint64_t longest_time;               /* nanoseconds; 0: none has */
};

/* What wants to know. */
enum { OBSERVE_TRACE = 1, OBSERVE_TURNS = 2, OBSERVE_LONGEST = 4 };

/*
 * Begins and ends to want it. They are called one at a time, under `bide_observer_lock_`. When the end has
 * returned no thread is in a function of that user any more, and none will be.
 */
extern pthread_mutex_t bide_observer_lock_;
bool bide_observer_is_active_(unsigned user);
void bide_observer_start_(unsigned user);
void bide_observer_stop_(unsigned user);

/* All threads that were observed, ever. Under `bide_observer_lock_`. */
observed_thread *bide_observer_threads_(void);

/* ---- What the users do, on the thread itself, under its lock ---- */

void bide_trace_turn_(observed_thread *thread, const observed_turn *turn);
void bide_trace_turn_ends_(observed_thread *thread, const observed_turn *turn);
void bide_trace_task_(observed_thread *thread, const bide_root *root, bool ends);
void bide_trace_operation_(observed_thread *thread, const bide_awaiter *operation, int fd);
void bide_trace_operation_ends_(observed_thread *thread, const bide_awaiter *operation, size_t count,
                          int status);
void bide_trace_thread_(observed_thread *thread, bide_observed_ what);
void bide_stall_detector_run_ended_(observed_thread *thread, const observed_turn *turn);

#endif

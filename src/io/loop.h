/*
 * A loop, as its back ends and the pool of loops know it, and the table of functions that a back
 * end of a loop is.
 *
 *     loop.c --bide_back_end_--> epoll.c, poll.c --> readiness.c --> offload.c --> operation.c
 *                          `---> uring.c -------------------------^
 *
 * A back end includes this file and calls no function of loop.c.
 */
#ifndef BIDE_IO_LOOP_H
#define BIDE_IO_LOOP_H

#include "operation.h"

#include "bide/loop.h"

#include "../base/thread_sanitizer.h"
#include "../schedule/registry.h"
#include "../schedule/run_loop_events.h"

#include <pthread.h>

/*
 * The largest number of completions that a back end takes before the coroutines that they wake run.
 * Those then find their memory in the cache, and the first of many does not wait for the calls of
 * the last.
 */
enum { LOOP_TURN = 16 };

/* The threads of a file pool that the library creates, and those in place of calls that wait. */
enum { MAX_FILE_THREADS = 4, SPARE_FILE_THREADS = 252 };

/*
 * The time at which a loop that sleeps until `deadline` wakes without a post. Its sleep is bounded under
 * ThreadSanitizer: thread_sanitizer.h.
 */
BIDE_INLINE uint64_t bide_loop_wake_time_(uint64_t deadline)
{
    uint64_t soon = BIDE_UNDER_TSAN_ ? bide_platform.now() + BIDE_TSAN_SLEEP_MAX_ : BIDE_FOREVER;
    return deadline < soon ? deadline : soon;
}

/* A back end of a loop. Each has one constant table, and keeps its own state in bide_loop. */
typedef struct bide_back_end_ {
    const char *name;
    bide_loop_kind kind;
    const bide_io_table *operations;

    /* enter is not used: loop.c has its own. */
    const struct bide_run_loop_events_ *events;

    /*
     * Creates its state, after the loop's io was initialised; 0 or a negative errno. `entries`: the
     * length of its queue, if it has one.
     */
    int (*create)(bide_loop *loop, unsigned entries);

    /*
     * Frees its state. `is_own` is false in a child of fork: there it closes descriptors, and
     * changes nothing that the parent shares.
     */
    void (*destroy)(bide_loop *loop, bool is_own);

    /*
     * An operation that the file pool had has left its line: the next of the line begins. NULL: only
     * operations that need no order go to the file pool.
     */
    void (*continue_line)(bide_loop *loop, bide_descriptor *descriptor, int direction);

    /* The loop is about to run for the first time, on this thread. NULL: nothing. */
    void (*start_on_thread)(bide_loop *loop);

    const struct bide_poller_ *poller; /* if it goes by readiness (readiness.h); or NULL */
} bide_back_end_;

/* create of the first two may return -ENOSYS */
extern const bide_back_end_ bide_uring_, bide_epoll_, bide_poll_back_end_;

struct bide_loop {
    bide_run_loop run; /* at the head: aligned */
    bide_io io;
    bide_loop_back_end back_end;         /* the name and the reason of the choice */
    const bide_back_end_ *ops;           /* its functions */
    struct bide_run_loop_events_ events; /* those of `ops`, with loop.c's enter */
    bide_loop_stats counts;
    bool has_run;
    pthread_t thread; /* that it runs on */

    /* for the monitor, which has the kernel read them */
    bide_registry_ live;
    int thread_number;
    bool is_run;    /* its thread is in it */
    bool is_asleep; /* in the kernel */

    bide_blocking *files; /* the file pool; NULL: not needed so far */
    bool owns_files;
    struct loop_epoll *epoll; /* the state of its back end: one of these */
    struct loop_uring *uring;
    struct loop_poll *poll;
};

BIDE_INLINE bide_loop *loop_of(bide_io *io)
{
    return bide_container_of(io, bide_loop, io);
}

/* A snapshot of a loop that runs. */
typedef struct loop_seen {
    uint32_t number;
    int thread;    /* 0: none yet */
    char name[64]; /* of its context; or empty */
    const char *back_end;
    bool is_run;
    bool is_asleep;
    bide_loop_stats counts;
} loop_seen;

/*
 * Takes a snapshot. Any thread that holds the registry of live objects (live.h) and may read memory
 * through the kernel. False: it cannot be read.
 */
bool bide_loop_note_events_(const bide_registry_ *live, loop_seen *seen);

#endif

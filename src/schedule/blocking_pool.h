/* A pool for blocking calls, between blocking.c and blocking_call.c. Floor: schedule. */
#ifndef BIDE_SCHEDULE_BLOCKING_POOL_H
#define BIDE_SCHEDULE_BLOCKING_POOL_H

#include "bide/blocking.h"

#include <pthread.h>

enum { BLOCKING_NAME_SIZE = 16 }; /* as in the system */

/* A thread of a pool, or memory for one. */
typedef struct bide_blocking_thread_ {
    pthread_t thread;
    bide_blocking *blocking;
    struct bide_blocking_thread_ *next; /* in `unused` */
    bide_blocking_call *call;           /* the interruptible call that it makes, or NULL */
} blocking_thread;

struct bide_blocking {
    pthread_mutex_t lock;
    pthread_cond_t condition;
    bide_awaiter_chain calls; /* to be made, oldest first */
    size_t queued;            /* calls in `calls` */
    unsigned alive;
    unsigned idle; /* threads on the condition, of those alive */
    bool ending;
    pthread_cond_t ended;        /* a thread has ended */
    blocking_thread *unused;     /* former threads */
    blocking_thread *to_join;    /* ended and not joined, or NULL */
    unsigned used;               /* of `threads`: the later ones were never used */
    pthread_cond_t to_interrupt; /* there is something to send, or the pool ends */
    pthread_t interrupter;
    bool has_interrupter; /* from the start of the first thread on, if there is a signal */

    /* constant */
    char name[BLOCKING_NAME_SIZE]; /* or empty */
    unsigned max, min;             /* of threads */
    uint64_t idle_time;
    int interrupt_signal;
    int interrupt_fd;
    blocking_thread threads[]; /* `max` of them */
};

/* Makes a call on the calling thread, uninterruptibly; `argument` is the bide_blocking_call. */
void bide_blocking_make_here_(void *argument);

/*
 * Makes sure that a thread takes the call that was just queued, or returns a negative errno (2). Under
 * the lock.
 */
int bide_blocking_find_thread_(bide_blocking *blocking);

#endif

/*
 * A pool for blocking calls, between blocking.c and blocking_call.c. Floor: schedule.
 *
 * Queued calls are linked both ways, so that a call is removed in constant time: forward by the
 * awaiters' `link`, as a chain, backward by `at.before`.
 */
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
    uint64_t began;                     /* its call, if there are spare threads */
    bool is_calling;
    bool is_slow; /* its call takes long: another thread may be alive in its place (7) */
} blocking_thread;

struct bide_blocking {
    pthread_mutex_t lock;
    pthread_cond_t condition;
    bide_awaiter_chain calls; /* to be made, oldest first */
    size_t queued;            /* calls in `calls` */
    unsigned alive;
    unsigned idle; /* threads on the condition, of those alive */
    unsigned slow; /* threads whose calls take long, of those alive */
    bool ending;
    pthread_cond_t ended;        /* a thread has ended */
    blocking_thread *unused;     /* former threads */
    blocking_thread *to_join;    /* ended and not joined, or NULL */
    unsigned used;               /* of `threads`: the later ones were never used */
    pthread_cond_t to_supervise; /* for the supervisor: something has changed, or the pool ends */
    pthread_t supervisor;
    bool has_supervisor; /* from the start of the first thread on, if it has something to do */
    bool is_watched;     /* the supervisor will look for slow calls at some time */

    /* constant */
    char name[BLOCKING_NAME_SIZE]; /* or empty */
    unsigned max, min;             /* of threads */
    size_t stack_size;             /* of the threads that make calls; 0: the library's default */
    unsigned spare;                /* more than `max`, in place of slow ones */
    uint64_t idle_time;
    bool is_for_good; /* it is never destroyed */
    uint32_t generation; /* of the process that has its threads (fork.h) */
    int interrupt_signal;
    int interrupt_fd;
    blocking_thread threads[]; /* `max` of them, and the spare ones */
};

/* Makes a call on the calling thread, uninterruptibly; `argument` is the bide_blocking_call. */
void bide_blocking_make_here_(void *argument);

/* Appends a call, of which the lock's holder alone knows. Under the lock. */
BIDE_INLINE void bide_blocking_enqueue_(bide_blocking *blocking, bide_blocking_call *call)
{
    bide_awaiter *last = blocking->calls.first != NULL ? blocking->calls.last : NULL;
    bide_assert(!call->is_queued);
    call->at.before = last != NULL ? bide_container_of(last, bide_blocking_call, awaiter) : NULL;
    call->is_queued = true;
    call->awaiter.link = NULL;
    bide_awaiter_chain_append(&blocking->calls, &call->awaiter, &call->awaiter);
    blocking->queued++;
}

/* Removes a call that is queued. Under the lock. */
BIDE_INLINE void bide_blocking_dequeue_(bide_blocking *blocking, bide_blocking_call *call)
{
    bide_blocking_call *before = call->at.before;
    bide_awaiter *next = call->awaiter.link;
    bide_assert(call->is_queued && blocking->queued != 0);
    if (before != NULL)
        before->awaiter.link = next;
    else
        blocking->calls.first = next;
    if (next != NULL)
        bide_container_of(next, bide_blocking_call, awaiter)->at.before = before;
    else
        blocking->calls.last = before != NULL ? &before->awaiter : NULL;
    call->is_queued = false;
    call->at.thread = NULL;
    blocking->queued--;
}

/*
 * Makes sure that a thread takes the call that was just queued, or returns a negative errno (2). Under
 * the lock.
 */
int bide_blocking_find_thread_(bide_blocking *blocking);

#endif

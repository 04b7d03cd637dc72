/*
 * The workers of a thread pool, for what runs on them beside coroutines that are posted: what a
 * worker consists of, and how those who make work tell of it. The whole argument is in worker.c.
 *
 * For another kind of work on the same threads:
 *
 *     bide_pool_worker *self = bide_pool_this_worker_();      // NULL: no thread of a pool
 *     ... put work where other workers find it, on self ...
 *     bide_pool_tell_(self->pool);                            // after it has been put there
 *
 * and a table of functions that is set once for the pool (bide_pool_set_extra_): workers ask it
 * when the coroutines have run out, and before they sleep.
 */
#ifndef BIDE_SCHEDULE_POOL_WORKER_H
#define BIDE_SCHEDULE_POOL_WORKER_H

#include "run_queue.h"
#include "slot.h"

#include "../registry.h"

#include "bide/detail/join_deque.h"
#include "bide/extend/fence.h"
#include "bide/extend/timer.h"
#include "bide/thread_pool.h"

#include <pthread.h>

typedef struct bide_pool_worker bide_pool_worker;

/* How many turns a worker takes until it looks at what is injected, and at the clock. */
enum { BIDE_POOL_LOOK_TURNS_ = BIDE_CHECK ? 3 : 61 };

/* Another kind of work. Constant once it is set. */
typedef struct bide_pool_extra {
    /*
     * Finds one piece of it, the worker's own or another's, and runs it. False: there was none.
     * It calls bide_pool_found_(worker) when it has found one, before it runs it.
     */
    bool (*run)(bide_pool_worker *worker);

    /*
     * Is there any that another worker could take? Called by a worker that is about to sleep, after
     * the heavy fence whose partner is the light one of bide_pool_tell_.
     */
    bool (*is_there)(bide_thread_pool *pool);
} bide_pool_extra;

/*
 * What the workers sleep in, where that is more than a word: each has a loop with input and output.
 * Constant. All but `wake` are called on the worker's own thread.
 */
typedef struct bide_pool_driver bide_pool_driver;
struct bide_pool_driver {
    void (*enter)(bide_pool_driver *driver, unsigned worker);
    void (*leave)(bide_pool_driver *driver, unsigned worker);

    /* Posts to the pool what has come; does not sleep. */
    void (*look)(bide_pool_driver *driver, unsigned worker);

    /* Sleeps until something has come, or `wake`, or `deadline`; not while there is something. */
    void (*sleep)(bide_pool_driver *driver, unsigned worker, uint64_t deadline);

    /* Posts to the pool what the sleep has found. */
    void (*take)(bide_pool_driver *driver, unsigned worker);

    /* Ends the worker's sleep, or its next one. Under the pool's lock. */
    void (*wake)(bide_pool_driver *driver, unsigned worker);

    /* The threads have gone. */
    void (*destroy)(bide_pool_driver *driver);
};

struct bide_pool_worker {
    /* The owner's; thieves read and take. */
    BIDE_ALIGNAS(128) bide_run_queue_ queue;

    /* The hand-off slot: the coroutine that was woken last by the one that runs; NULL: empty.
     */
    BIDE_ALIGNAS(128) bide_pool_slot_ slot;
    bide_atomic(size_t) turns;    /* writer: the owner; how often it has taken something to run */
    bide_atomic(uint32_t) parked; /* PARKED while it is in the set of the idle */

    /* The owner's alone. */
    bide_thread_pool *pool; /* constant */
    unsigned index;         /* constant: the place in bide_thread_pool.workers */
    unsigned processor;     /* constant: where it stays, if workers are placed */
    bide_atomic(int) thread; /* its number in the system, for the monitor; 0: not begun */
    unsigned until_look;    /* turns until it looks around */
    unsigned streak;        /* how often in a row the slot was taken */
    bool is_searching;      /* is it counted among those who search? */
    uint32_t random;        /* where it begins to steal */

    /* The second halves of its joins (bide/detail/join_deque.h). */
    bide_join_deque_ join;

    /* Stacks of frames without frames, for what is forked here (fork.c). The owner's alone. */
    struct stack *stacks;
    unsigned stack_count;

    /* Under the pool's lock. */
    bide_pool_worker *next_idle;

    /* Counts; writer: the owner, relaxed. */
    bide_atomic(size_t) steals;
    bide_atomic(size_t) sleeps;
    bide_atomic(size_t) longest; /* nanoseconds */

    /* What `turns` was when a keeper looked last; a hint. One that has just been woken may still
     * be at it beside the next. */
    bide_atomic(size_t) seen_turns;
};

struct bide_thread_pool {
    bide_scheduler scheduler;

    /* Constant. */
    unsigned count;
    bool may_look;
    bool are_turns_timed;
    bide_pool_worker *workers;
    pthread_t *threads;
    void *memory; /* of the workers, unaligned */
    bide_thread_pool_hooks hooks;
    char name[16]; /* of the threads; empty: none */
    bool are_placed;
    bide_pool_driver *driver; /* or NULL */
    bide_live_ live;

    bide_atomic(const bide_pool_extra *) extra; /* or NULL: none yet */
    bide_atomic(uint32_t) begun;                /* how many threads have an index */
    bide_atomic(uint32_t) calls;                /* how many are in bide_call_in */

    /* Written when a worker falls idle or stops to be, read by all who make work. Two counts: how
     * many search, and how many sleep. */
    BIDE_ALIGNAS(128) bide_atomic(uint32_t) idle;
    bide_atomic(uint32_t) watched; /* does the keeper look at slots? */

    /* Timers. `has_timers` is a hint to those who do not have their lock. */
    bide_atomic(uint32_t) has_timers;
    pthread_mutex_t timers_lock;
    bide_timers timers;

    /* What is posted from outside, and what rings do not hold. */
    BIDE_ALIGNAS(128) bide_atomic(uint32_t) is_injected; /* a hint to those without the lock */
    pthread_mutex_t lock;
    bide_awaiter_chain injected; /* oldest first */
    bide_pool_worker *first_idle;
    bide_pool_worker *keeper; /* of those that sleep, the one that keeps the time */
    bool ending;
};

/*
 * The worker whose thread this is; NULL: no pool's.
 * Threads: any. Progress: wait-free.
 */
bide_pool_worker *bide_pool_this_worker_(void);

/*
 * The same if it is of this pool; NULL otherwise.
 * Threads: any. Progress: wait-free.
 */
bide_pool_worker *bide_pool_worker_of_(const bide_thread_pool *pool);

/* How many workers search or sleep, by the word `idle`. */
enum { BIDE_POOL_SEARCHES_ = 1, BIDE_POOL_SLEEPS_ = 1 << 14 };

BIDE_INLINE uint32_t bide_pool_searching_(uint32_t idle)
{
    return idle % BIDE_POOL_SLEEPS_;
}

BIDE_INLINE uint32_t bide_pool_sleeping_(uint32_t idle)
{
    return idle / BIDE_POOL_SLEEPS_;
}

/* Wakes a worker that sleeps, unless one searches. */
void bide_pool_wake_(bide_thread_pool *pool);

/*
 * There is new work that any worker may take: to be called after it has been put where they look,
 * by one of the pool's workers. Wakes one if some sleep and none searches.
 * Threads: the pool's own. Progress: wait-free, unless one is woken.
 */
BIDE_INLINE void bide_pool_tell_(bide_thread_pool *pool)
{
    bide_atomic_fence_light(); /* partner: the heavy fence of those who are about to sleep */
    uint32_t idle = bide_atomic_load(&pool->idle, relaxed);
    if (BIDE_UNLIKELY(bide_pool_sleeping_(idle) != 0 && bide_pool_searching_(idle) == 0))
        bide_pool_wake_(pool);
}

/*
 * The worker has found something to run: it searches no more, and others are woken for what it
 * leaves.
 * Threads: the worker's.
 */
void bide_pool_stop_searching_(bide_pool_worker *worker);

BIDE_INLINE void bide_pool_found_(bide_pool_worker *worker)
{
    if (BIDE_UNLIKELY(worker->is_searching))
        bide_pool_stop_searching_(worker);
}

/*
 * Runs one thing: what the next turn of the worker's loop would, or other work. For a worker that
 * waits for work of its own to be done elsewhere, and helps meanwhile. False: there was nothing.
 * Never sleeps. The stack grows by what is run.
 * Threads: the worker's.
 */
bool bide_pool_run_one_(bide_pool_worker *worker);

/*
 * Posts to the scheduler of the pool, on one of its own threads: behind all that is queued there.
 * Threads: the worker's. Progress: wait-free, unless the ring is full or a worker is woken.
 */
void bide_pool_push_(bide_pool_worker *worker, bide_awaiter *first, bide_awaiter *last);

/*
 * Gives the pool its other kind of work, once; the same again does nothing.
 * Threads: any. Progress: wait-free.
 */
void bide_pool_set_extra_(bide_thread_pool *pool, const bide_pool_extra *extra);

/* ---- Between thread_pool.c and worker.c ---- */

/* A pool of `threads` workers whose threads have not begun; NULL: no memory. And its end. */
bide_thread_pool *bide_pool_make_(unsigned threads);
void bide_pool_free_(bide_thread_pool *pool);

/* Puts one into the worker's slot; what stood there goes to the ring. The worker's. */
void bide_pool_hand_over_(bide_pool_worker *worker, bide_awaiter *awaiter);

/* As bide_thread_pool_create_with, for a pool that has a driver and another `io`; or NULL twice. */
int bide_pool_create_(bide_thread_pool **created, const bide_thread_pool_options *options,
                      bide_pool_driver *driver, bide_io *(*io)(bide_scheduler *scheduler));

/* What a worker's thread runs, until the pool ends. */
void bide_pool_work_(bide_pool_worker *worker);

/* Tells the workers that the pool ends. */
void bide_pool_end_(bide_thread_pool *pool);

/* The scheduler's functions. */
void bide_pool_post_(bide_scheduler *scheduler, bide_awaiter *first, bide_awaiter *last);
void bide_pool_post_last_(bide_scheduler *scheduler, bide_awaiter *awaiter);
bool bide_pool_is_idle_(bide_scheduler *scheduler);
bool bide_pool_take_back_(bide_scheduler *scheduler, bide_awaiter *awaiter);
int bide_pool_set_timer_(bide_scheduler *scheduler, bide_timer *timer);
bool bide_pool_clear_timer_(bide_scheduler *scheduler, bide_timer *timer);

#endif

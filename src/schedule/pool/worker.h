/*
 * The workers of a thread pool, for the pool's own files and for other kinds of work on its threads:
 * what a worker consists of, and how a thread announces new work. The argument is in worker.c.
 *
 * Another kind of work on the same threads:
 *
 *     bide_pool_worker *self = bide_pool_this_worker_();      // NULL: not a thread of a pool
 *     ... put work where other workers find it, on self ...
 *     bide_pool_tell_(self->pool);                            // after it is there
 *
 * and a table of functions, set once for the pool (bide_pool_set_deque_hooks_): workers call it when
 * they are out of coroutines, and before they sleep.
 */
#ifndef BIDE_SCHEDULE_POOL_WORKER_H
#define BIDE_SCHEDULE_POOL_WORKER_H

#include "run_queue.h"
#include "slot.h"

#include "../look_pace.h"
#include "../registry.h"
#include "../spin_pace.h"
#include "../../coroutine/blocked_thread.h"
#include "../../coroutine/short_lock.h"

#include "bide/detail/join_deque.h"
#include "bide/extend/fence.h"
#include "bide/extend/timer.h"
#include "bide/thread_pool.h"

#include "../../system/pthreads.h"

typedef struct bide_pool_worker bide_pool_worker;

/*
 * Turns between two maintenances of a worker, at most, if the options do not say: injected coroutines,
 * timers, the driver.
 */
enum { BIDE_POOL_MAINTENANCE_TURNS_ = BIDE_CHECK ? 3 : 128 };

/* Another kind of work: the halves on the workers' deques (join.c). Constant. */
typedef struct bide_pool_deque_hooks {
    /*
     * Finds one piece, the worker's own or another's, and runs it. False: there was none. Calls
     * bide_pool_found_(worker) after it has found one, before it runs it.
     */
    bool (*run)(bide_pool_worker *worker);

    /*
     * Whether another worker could take any. Called by a worker that is about to sleep, after the
     * heavy fence whose partner is the light one of bide_pool_tell_.
     */
    bool (*has_work)(bide_thread_pool *pool);
} bide_pool_deque_hooks;

/*
 * The place where workers sleep, if it is more than a word: each has a loop with input and output.
 * Constant. All functions but `wake` and `destroy` are called on the worker's own thread.
 */
typedef struct bide_pool_driver bide_pool_driver;
struct bide_pool_driver {
    void (*enter)(bide_pool_driver *driver, unsigned worker);
    void (*leave)(bide_pool_driver *driver, unsigned worker);

    /* Posts to the pool what events wake; does not sleep. */
    void (*look)(bide_pool_driver *driver, unsigned worker);

    /* Sleeps until an event, or `wake`, or `deadline`; returns at once if there is an event. */
    void (*sleep)(bide_pool_driver *driver, unsigned worker, uint64_t deadline);

    /* Posts to the pool what the events of the sleep wake. */
    void (*take)(bide_pool_driver *driver, unsigned worker);

    /* Ends the worker's current sleep, or its next one. Under the pool's lock. */
    void (*wake)(bide_pool_driver *driver, unsigned worker);

    /* After the threads were joined. */
    void (*destroy)(bide_pool_driver *driver);
};

struct bide_pool_worker {
    /* The owner's; thieves take from it. */
    BIDE_ALIGNAS(128) bide_run_queue_ queue;

    /* The coroutine that the running one has woken last; NULL: none. Filled by the owner. */
    BIDE_ALIGNAS(128) bide_pool_slot_ lifo_slot;
    bide_atomic(size_t) turns;    /* writer: the owner; coroutines that it has run */
    bide_atomic(uint32_t) parked; /* PARKED while it is in the idle set (parking.c) */

    /* The owner's alone. */
    bide_thread_pool *pool;         /* constant */
    struct bide_pool_wheel *wheel;  /* constant: where it sets timers */
    unsigned index;                 /* constant: in bide_thread_pool.workers */
    unsigned processor;             /* constant: pinned to it, if workers are placed */
    bide_atomic(int) thread;        /* the system's number, for the monitor; 0: not started */
    unsigned maintenance_countdown; /* turns until the next maintenance */
    unsigned maintenance_turns;     /* from one to the next (look_pace.h) */
    uint64_t maintained;            /* when the last one was; 0: it was out of work since */
    uint64_t looked;                /* when the driver was due the last time */
    uint32_t due_end;               /* the ring's end when due timers were last moved to it */
    uint32_t injected_end;          /* the same for injected coroutines */
    unsigned lifo_polls;            /* coroutines taken from the slot in a row */
    bool is_searching;              /* counted in `idle` as searching */
    bool halts;                     /* it may have to stop: see shutdown.c and spare.c */
    unsigned regions;               /* that it is in, one in the other (spare.c) */
    uint32_t random;                /* where stealing starts */
    bide_spin_pace_ pace;           /* how often it looks for work before it sleeps */

    /* The second halves of its joins (bide/detail/join_deque.h). */
    bide_join_deque_ join;

    /* Stacks of the frames that were forked here (fork.c). The owner's alone. */
    struct fork_stack *stacks;
    unsigned stack_count;

    /* Under the pool's lock. */
    bide_pool_worker *next_idle;

    /* 1: it is the timekeeper. Under the pool's lock; the worker reads it under that of each wheel (timers.c, 2). */
    bide_atomic(uint32_t) keeps_time;

    /* Statistics; writer: the owner, relaxed. */
    bide_atomic(size_t) steals;
    bide_atomic(size_t) sleeps;
    bide_atomic(size_t) longest; /* nanoseconds */
    bide_atomic(size_t) deep_joins;

    /* `turns` at the timekeeper's last watch; a hint. A former timekeeper, just woken, may still write
     * it beside the next one. */
    bide_atomic(size_t) seen_turns;
};

/* Wheels of a pool, at most: the timekeeper looks at all of them. */
enum { BIDE_POOL_WHEELS_BITS_ = 2, BIDE_POOL_WHEELS_MAX_ = 1 << BIDE_POOL_WHEELS_BITS_ };

/* The timers that one worker has set, or some workers if there are many (timers.c). */
typedef struct bide_pool_wheel {
    /* When the earliest comes; a hint to threads without the lock, which read it at each look. Written under it. */
    BIDE_ALIGNAS(128) bide_atomic(uint64_t) next;

    /* Under the lock. */
    BIDE_ALIGNAS(128) bide_short_lock_ lock;
    uint64_t kept; /* when the timekeeper looks at them next, or later; BIDE_FOREVER: it does not */
    bide_timers timers;
} bide_pool_wheel;

struct bide_thread_pool {
    bide_scheduler scheduler;

    /* Constant. */
    unsigned count;  /* of its workers, without the spare ones */
    unsigned places; /* with them: they come last in `workers` */
    bool may_spin;
    bool are_turns_timed;
    bide_pool_worker *workers;
    pthread_t *threads;
    void *memory; /* of the workers, unaligned */
    bide_thread_pool_hooks hooks;
    char name[16]; /* of the threads; empty: none */
    bool are_placed;
    size_t stack_size;        /* of the threads; 0: the library's default */
    unsigned look_turns_max;  /* turns between two maintenances of a worker, at most */
    uint32_t generation;      /* of the process that has its threads (fork.h) */
    bide_pool_driver *driver; /* or NULL */
    bide_registry_ live;

    /* Workers that block (blocked_thread.h). */
    struct {
        bide_blocked_pool_ functions;  /* constant */
        bide_atomic(uint32_t) workers; /* that do now */
        bide_atomic(uint32_t) changes; /* how often one has begun or ended to */
    } blocked;

    bide_atomic(const bide_pool_deque_hooks *) deque_hooks; /* or NULL: none yet */
    bide_atomic(uint32_t) begun;                            /* threads that have an index */
    bide_atomic(uint32_t) calls;                            /* threads inside bide_call_in */
    bide_atomic(uint32_t) ended;                            /* threads that have ended */
    bide_atomic(uint32_t) halted;                           /* 1: nothing more runs (shutdown.c) */
    bool is_shut_down, is_joined; /* of the thread that shuts it down, or destroys it */

    /* Two counts, of searching and of sleeping workers. Written by workers that fall idle or are
     * woken, read by all threads that make work. */
    BIDE_ALIGNAS(128) bide_atomic(uint32_t) idle;
    bide_atomic(uint32_t) watched; /* 1: the timekeeper watches the slots */

    /* Timers (timers.c). Constant. */
    unsigned wheel_count;
    bide_pool_wheel *wheels;

    /* Of the threads that are not the pool's, while they set a timer or clear one. */
    BIDE_ALIGNAS(128) pthread_mutex_t outside_lock;

    /* Coroutines that were posted from outside, or that rings had no room for. */
    BIDE_ALIGNAS(128) bide_atomic(uint32_t) is_injected; /* a hint to threads without the lock */
    pthread_mutex_t lock;
    bide_awaiter_chain injected; /* oldest first */
    bide_awaiter *passed;        /* before `injected`: chain_cursor.h */
    bide_pool_worker *first_idle;
    bide_pool_worker *timekeeper; /* one of the idle set, or NULL */
    bool ending;
    bool is_over; /* all its threads end: nothing runs any more, or it is halted */

    /* Regions, and the spare workers (spare.c). Under the lock; the atomics are hints to threads without. */
    bide_pool_worker *first_dormant;
    bide_atomic(uint32_t) blocking; /* workers that are in a region */
    bide_atomic(
        uint32_t) acting; /* spare workers that are not dormant; never fewer than `blocking` */
    bide_atomic(size_t) stand_ins; /* regions so far */
};

/*
 * The worker of the calling thread; NULL: it is no pool's thread.
 * Threads: any. Progress: wait-free.
 */
bide_pool_worker *bide_pool_this_worker_(void);

/*
 * The worker of the calling thread if it is of this pool; NULL otherwise.
 * Threads: any. Progress: wait-free.
 */
bide_pool_worker *bide_pool_worker_of_(const bide_thread_pool *pool);

/* The two counts of the word `idle`. */
enum { BIDE_POOL_SEARCHES_ = 1, BIDE_POOL_SLEEPS_ = 1 << 14 };

BIDE_INLINE uint32_t bide_pool_searching_(uint32_t idle)
{
    return idle % BIDE_POOL_SLEEPS_;
}

BIDE_INLINE uint32_t bide_pool_sleeping_(uint32_t idle)
{
    return idle / BIDE_POOL_SLEEPS_;
}

/* Sets `blocked` up. Before the pool is shared. */
void bide_pool_init_blocked_(bide_thread_pool *pool);

/* Wakes a sleeping worker, unless one searches. Any thread. */
void bide_pool_wake_(bide_thread_pool *pool);

/*
 * Announces new work that any worker may take, after it was put where they look. Wakes a worker if
 * some sleep and none searches.
 * Threads: the pool's own. Progress: wait-free, unless one is woken.
 */
BIDE_INLINE void bide_pool_tell_(bide_thread_pool *pool)
{
    bide_atomic_fence_light(); /* partner: the heavy fence of a worker about to sleep */
    uint32_t idle = bide_atomic_load(&pool->idle, relaxed);
    if (BIDE_UNLIKELY(bide_pool_sleeping_(idle) != 0 && bide_pool_searching_(idle) == 0))
        bide_pool_wake_(pool);
}

/*
 * The worker has found something to run: it stops searching, and wakes another worker if there is
 * more.
 * Threads: the worker's.
 */
void bide_pool_stop_searching_(bide_pool_worker *worker);

BIDE_INLINE void bide_pool_found_(bide_pool_worker *worker)
{
    if (BIDE_UNLIKELY(worker->is_searching))
        bide_pool_stop_searching_(worker);
}

/*
 * Runs one coroutine, as the next turn of the worker's loop would, or a piece of the other kind of
 * work. For a worker that helps while it waits for its own work to be done elsewhere. False: there
 * was nothing, in its own ring and those of `victims` others, of all at most. Never sleeps. The stack
 * grows by what is run.
 * Threads: the worker's.
 */
bool bide_pool_run_one_(bide_pool_worker *worker, unsigned victims);

/*
 * Posts to the pool from one of its own threads: to the end of the worker's ring.
 * Threads: the worker's. Progress: wait-free, unless the ring is full or a worker is woken.
 */
void bide_pool_push_(bide_pool_worker *worker, bide_awaiter *first, bide_awaiter *last);

/*
 * Gives the pool its other kind of work. The same hooks again do nothing.
 * Threads: any. Progress: wait-free.
 */
void bide_pool_set_deque_hooks_(bide_thread_pool *pool, const bide_pool_deque_hooks *hooks);

/* ---- Between the files of the pool: thread_pool.c ---- */

/* A pool of `threads` workers, and `spares` dormant ones, whose threads were not started; NULL: no memory. */
bide_thread_pool *bide_pool_make_(unsigned threads, unsigned spares);
void bide_pool_free_(bide_thread_pool *pool);

/* Sets the reserve of the stack that joins of the worker leave, for the calling thread, which is the worker's. */
void bide_pool_measure_stack_(bide_pool_worker *worker);

/* Joins the threads, if that was not done yet. */
void bide_pool_join_(bide_thread_pool *pool);

/* As bide_thread_pool_create_with, for a pool that has a driver and another `io`; or NULL twice. */
int bide_pool_create_(bide_thread_pool **created, const bide_thread_pool_options *options,
                      bide_pool_driver *driver, bide_io *(*io)(bide_scheduler *scheduler));

/* ---- worker.c; all but the scheduler's functions on the worker's thread ---- */

/* The body of a worker's thread. True: the worker, a spare one, is dormant now. False: the pool ends. */
bool bide_pool_work_(bide_pool_worker *worker);

/* The calling thread, which is the worker's, posts to it from now on; NULL: as from outside. */
void bide_pool_post_here_(bide_pool_worker *worker);

/* The calling thread is the worker's from now on; NULL: no worker's. One thread at a time. */
void bide_pool_enter_(bide_pool_worker *worker);

/* The worker is out of work of its own: how long turns are is not known. */
void bide_pool_forget_pace_(bide_pool_worker *worker);

/* Appends what `first` to `last` link to what is injected. Under the lock; the caller wakes a sleeper. */
void bide_pool_inject_(bide_thread_pool *pool, bide_awaiter *first, bide_awaiter *last);

/* Puts a coroutine into the worker's slot; the previous one goes to the ring. */
void bide_pool_hand_over_(bide_pool_worker *worker, bide_awaiter *awaiter);

void bide_pool_run_(bide_pool_worker *worker, bide_awaiter *awaiter);

/* The scheduler's functions. */
void bide_pool_post_(bide_scheduler *scheduler, bide_awaiter *first, bide_awaiter *last);
void bide_pool_post_last_(bide_scheduler *scheduler, bide_awaiter *awaiter);
bool bide_pool_is_idle_(bide_scheduler *scheduler);
bool bide_pool_take_back_(bide_scheduler *scheduler, bide_awaiter *awaiter);

/* ---- search.c; on the worker's thread ---- */

/*
 * Takes half of another worker's ring: returns the oldest, pushes the others. Looks at `max` rings, from
 * a random one on. NULL: nothing.
 */
bide_awaiter *bide_pool_steal_(bide_pool_worker *worker, unsigned max);

/* Takes the coroutine in the slot of `victim`. NULL: none. */
bide_awaiter *bide_pool_steal_slot_(bide_pool_worker *worker, bide_pool_worker *victim);

/* How many coroutines are in its slot and its ring; to other threads than its own, a hint. */
size_t bide_pool_count_ready_(bide_pool_worker *worker);

/* Whether a ring, or a deque, has work that another worker could take. After a heavy fence. */
bool bide_pool_has_work_(bide_thread_pool *pool);

/* Looks for something to run, for a while, and runs it. False: there was nothing. */
bool bide_pool_search_(bide_pool_worker *worker);

/* ---- parking.c ---- */

/* Releases the pool's lock, and wakes `worker`, which was taken from the idle set; or NULL. */
void bide_pool_unlock_and_wake_(bide_thread_pool *pool, bide_pool_worker *worker);

/* Takes a worker from the idle set, unless one searches. NULL: none. Under the lock. */
bide_pool_worker *bide_pool_pop_sleeper_(bide_thread_pool *pool);

/* A slot is filled, and nobody watches. */
void bide_pool_request_watch_(bide_thread_pool *pool);

/*
 * Makes the timekeeper look at the timers and slots again; if there is none, appoints one. Returns the worker to
 * be woken, or NULL. Under the lock.
 */
bide_pool_worker *bide_pool_kick_timekeeper_(bide_thread_pool *pool);

/* Sleeps until woken. False: the pool ends, and there is nothing left to run. */
bool bide_pool_sleep_(bide_pool_worker *worker);

/* Makes all workers return from bide_pool_work_ when they are out of work. */
void bide_pool_end_(bide_thread_pool *pool);

/* The same at once, whatever they have. Under the lock. */
void bide_pool_end_all_(bide_thread_pool *pool);

/* ---- timers.c ---- */

/* Makes the wheels, for which there is memory. Before the pool is shared. */
void bide_pool_init_wheels_(bide_thread_pool *pool);

/* When the earliest timer of the pool comes, or BIDE_FOREVER. A hint while threads set and clear timers. */
uint64_t bide_pool_next_timer_(bide_thread_pool *pool);

/* Pushes the coroutines whose timers are due at `now`. False: there were none. */
bool bide_pool_push_due_timers_(bide_pool_worker *worker, uint64_t now);

/* The same, but returns the first of them instead, for the worker to run it. NULL: there were none. */
bide_awaiter *bide_pool_take_due_timers_(bide_pool_worker *worker, uint64_t now);

/* Until when the timekeeper may sleep: it notes that in all wheels, unless it was dismissed meanwhile. */
uint64_t bide_pool_keep_timers_(bide_pool_worker *timekeeper);

/* From here on nobody looks at the timers at the time that the timekeeper has noted. Under the pool's lock. */
void bide_pool_dismiss_timekeeper_(bide_pool_worker *timekeeper);

/* Waits until no thread outside sets a timer, or clears one. Of the destruction, after the threads are joined. */
void bide_pool_await_outside_(bide_thread_pool *pool);

/* A wheel that has a timer; NULL: none is set. While no thread uses the pool. */
const bide_timers *bide_pool_find_timers_(bide_thread_pool *pool);

/* The scheduler's functions. */
int bide_pool_set_timer_(bide_scheduler *scheduler, bide_timer *timer);
bool bide_pool_clear_timer_(bide_scheduler *scheduler, bide_timer *timer);

/* ---- spare.c ---- */

/* Makes all spare workers dormant. Before the pool is shared. */
void bide_pool_init_spares_(bide_thread_pool *pool);

/* A hint: it is a spare worker, and more act than there are regions. */
BIDE_INLINE bool bide_pool_is_spared_(const bide_pool_worker *worker)
{
    const bide_thread_pool *pool = worker->pool;
    return worker->index >= pool->count &&
           bide_atomic_load(&pool->acting, relaxed) > bide_atomic_load(&pool->blocking, relaxed);
}

/* Makes the worker dormant, which is out of its turn and does not search. False: it is needed. The worker's thread. */
bool bide_pool_retire_(bide_pool_worker *worker);

/* Sleeps while the worker is dormant. False: the pool has ended. The worker's thread. */
bool bide_pool_await_region_(bide_pool_worker *worker);

/* Ends the dormant workers. Under the lock. */
void bide_pool_end_dormant_(bide_thread_pool *pool);

/* Whether the calling worker, which is out of work, ends. Under the lock. */
bool bide_pool_is_ending_(bide_thread_pool *pool);

/* ---- shutdown.c ---- */

/* The last thing that a thread of the pool does. */
void bide_pool_note_end_(bide_thread_pool *pool);

/* How many coroutines are in slots, rings, and injected. A hint while threads of the pool run. */
size_t bide_pool_count_all_ready_(bide_thread_pool *pool);

#endif

/*
 * The thread pool: one queue under one lock.
 *
 * Everything in `state` is read and written under `lock`, except `work`: a thread that looks for
 * work reads that without the lock, as a hint. Whatever it reads, it takes the lock before it acts
 * on it. So the lock orders everything, frames included, and `work` is relaxed.
 *
 * A thread without work is in one of two states: looking (at most one at a time, for a while) or
 * sleeping on the condition. Both end under the lock with another look at the queue, so no post is
 * missed. A poster that finds a thread looking wakes nobody; otherwise it wakes one sleeper. A
 * thread that takes from the queue and leaves something there wakes the next.
 *
 * Timers stand under the lock too. Of the threads without work one at most, the keeper, sleeps
 * until the earliest is due, on a condition of its own. While a timer is set no thread sleeps on
 * the other condition unless there is a keeper, or a thread that looks and will be one. So:
 *   - the thread that sets the earliest wakes the keeper, for it to sleep less, or makes a sleeper
 *     the keeper;
 *   - the keeper, when it goes off with work, has another sleeper take its place. When no thread is
 *     without work, they look at the clock between coroutines, once in so many.
 */
#define _GNU_SOURCE
#include "bide/thread_pool.h"

#include "left.h"
#include "../system/processors.h"
#include "../system/threads.h"

#include "bide/extend/timer.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

/* How many coroutines may be resumed before a pool that has timers looks at the clock. */
enum { TURNS = 32 };

struct bide_thread_pool {
    bide_scheduler scheduler;
    pthread_mutex_t lock;
    pthread_cond_t condition;
    bide_awaiter_chain queue; /* oldest first */
    unsigned sleeping;        /* except the keeper */
    bool has_keeper;
    pthread_cond_t keeper;
    bide_timers timers;
    unsigned turns; /* resumptions until a thread looks at the clock */
    bool looking;
    bool may_look; /* constant */
    bool ending;
    bide_atomic(uint32_t) work; /* is there something in the queue? */
    unsigned count;             /* constant */
    pthread_t threads[];
};

/* The pool whose thread this is. */
static BIDE_THREAD_LOCAL const bide_thread_pool *own_pool;

/* There is something for a thread to do. A thread that looks will see it. */
static void wake_one(bide_thread_pool *pool)
{
    if (pool->looking)
        return;
    if (pool->sleeping > 0)
        pthread_cond_signal(&pool->condition);
    else if (pool->has_keeper)
        pthread_cond_signal(&pool->keeper);
}

static void post(bide_scheduler *scheduler, bide_awaiter *first, bide_awaiter *last)
{
    bide_thread_pool *pool = bide_container_of(scheduler, bide_thread_pool, scheduler);
    pthread_mutex_lock(&pool->lock);
    bide_awaiter_chain_append(&pool->queue, first, last);
    bide_atomic_store(&pool->work, 1, relaxed);
    wake_one(pool); /* under the lock: afterwards the pool may be gone */
    pthread_mutex_unlock(&pool->lock);
}

/* (`work` is a hint: see above) */
static bool idle(bide_scheduler *scheduler)
{
    bide_thread_pool *pool = bide_container_of(scheduler, bide_thread_pool, scheduler);
    return bide_atomic_load(&pool->work, relaxed) == 0;
}

static bool take_back(bide_scheduler *scheduler, bide_awaiter *awaiter)
{
    bide_thread_pool *pool = bide_container_of(scheduler, bide_thread_pool, scheduler);
    pthread_mutex_lock(&pool->lock);
    bool found = bide_awaiter_chain_remove(&pool->queue, awaiter);
    pthread_mutex_unlock(&pool->lock);
    return found;
}

static int set_timer(bide_scheduler *scheduler, bide_timer *timer)
{
    bide_thread_pool *pool = bide_container_of(scheduler, bide_thread_pool, scheduler);
    pthread_mutex_lock(&pool->lock);
    if (bide_timers_insert(&pool->timers, timer)) {
        if (pool->has_keeper)
            pthread_cond_signal(&pool->keeper);
        else
            wake_one(pool);
    }
    pthread_mutex_unlock(&pool->lock);
    return 0;
}

static bool clear_timer(bide_scheduler *scheduler, bide_timer *timer)
{
    bide_thread_pool *pool = bide_container_of(scheduler, bide_thread_pool, scheduler);
    pthread_mutex_lock(&pool->lock);
    bool cleared = bide_timers_remove(&pool->timers, timer);
    pthread_mutex_unlock(&pool->lock);
    return cleared;
}

/* With other threads it would depend on what those do. */
static bool runs_here_only(bide_scheduler *scheduler)
{
    const bide_thread_pool *pool = bide_container_of(scheduler, bide_thread_pool, scheduler);
    return pool == own_pool && pool->count == 1;
}

/* With the lock held: queues what is due at `now`. */
static void take_due(bide_thread_pool *pool, uint64_t now)
{
    bide_timers_take_due(&pool->timers, now, &pool->queue);
    if (pool->queue.first != NULL)
        bide_atomic_store(&pool->work, 1, relaxed);
}

/* Looks for work for a while, until `deadline` at most. */
static void look(bide_thread_pool *pool, uint64_t deadline)
{
    for (int i = 0; i < BIDE_POOL_LOOKS_ && bide_atomic_load(&pool->work, relaxed) == 0; i++) {
        if (deadline != BIDE_FOREVER && bide_platform.now() >= deadline)
            break;
        bide_cpu_relax();
    }
}

/* Sleeps as the keeper until `deadline`. Returns whether it has come. */
static bool keep_time(bide_thread_pool *pool, uint64_t deadline)
{
    /* What lies beyond a time_t of 32 bits is looked at again when it ends. */
    uint64_t seconds = deadline / 1000000000u;
    uint64_t most = sizeof(time_t) < 8 ? INT32_MAX : INT64_MAX;
    struct timespec time = {(time_t)(seconds < most ? seconds : most),
                            (long)(deadline % 1000000000u)};
    pool->has_keeper = true;
    int error = pthread_cond_timedwait(&pool->keeper, &pool->lock, &time);
    pool->has_keeper = false;
    return error == ETIMEDOUT && seconds <= most;
}

/* Waits, with the lock held, until there is something in the queue or the pool is to end. */
static void await_work(bide_thread_pool *pool)
{
    if (pool->may_look && !pool->looking) {
        uint64_t deadline = pool->has_keeper ? BIDE_FOREVER : bide_timers_next(&pool->timers);
        pool->looking = true;
        pthread_mutex_unlock(&pool->lock);
        look(pool, deadline);
        pthread_mutex_lock(&pool->lock);
        pool->looking = false;
    }
    while (pool->queue.first == NULL && !pool->ending) {
        uint64_t deadline = bide_timers_next(&pool->timers);
        if (deadline != BIDE_FOREVER && !pool->has_keeper) {
            if (keep_time(pool, deadline))
                take_due(pool, deadline);
        } else {
            pool->sleeping++;
            pthread_cond_wait(&pool->condition, &pool->lock);
            pool->sleeping--;
        }
    }
}

/*
 * With the lock held: takes a coroutine to be resumed, and has others do what is left. NULL: the
 * pool ends.
 */
static bide_awaiter *take(bide_thread_pool *pool)
{
    if (pool->queue.first == NULL || --pool->turns == 0) {
        pool->turns = TURNS;
        if (pool->timers.first != NULL)
            take_due(pool, bide_platform.now());
    }
    if (pool->queue.first == NULL)
        await_work(pool);
    bide_awaiter *awaiter = bide_awaiter_chain_take(&pool->queue);
    if (awaiter == NULL)
        return NULL;
    bool has_more = pool->queue.first != NULL;
    if (!has_more)
        bide_atomic_store(&pool->work, 0, relaxed);
    if (has_more || (pool->timers.first != NULL && !pool->has_keeper))
        wake_one(pool);
    return awaiter;
}

static void *worker(void *argument)
{
    bide_thread_pool *pool = argument;
    own_pool = pool;
    pthread_mutex_lock(&pool->lock);
    for (;;) {
        bide_awaiter *awaiter = take(pool);
        if (awaiter == NULL)
            break;
        pthread_mutex_unlock(&pool->lock);
        bide_resume(awaiter->frame);
        pthread_mutex_lock(&pool->lock);
    }
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

static void end(void *argument)
{
    bide_thread_pool *pool = argument;
    pthread_mutex_lock(&pool->lock);
    pool->ending = true;
    pthread_cond_broadcast(&pool->condition);
    pthread_cond_signal(&pool->keeper);
    pthread_mutex_unlock(&pool->lock);
}

static void free_pool(bide_thread_pool *pool)
{
    pthread_cond_destroy(&pool->keeper);
    pthread_cond_destroy(&pool->condition);
    pthread_mutex_destroy(&pool->lock);
    free(pool);
}

/*
 * Makes the condition of the keeper, which goes by the clock of bide_platform.now(). There is no
 * keeper yet.
 */
static void init_keeper(bide_thread_pool *pool)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&pool->keeper, &attributes);
    pthread_condattr_destroy(&attributes);
    pool->has_keeper = false;
    bide_timers_init(&pool->timers);
    pool->turns = TURNS;
}

int bide_thread_pool_create(bide_thread_pool **created, unsigned threads)
{
    unsigned processors = bide_processors_();
    if (threads == 0)
        threads = processors;
    if (threads > BIDE_THREADS_MOST_)
        return -EINVAL;
    bide_thread_pool *pool = malloc(sizeof *pool + threads * sizeof pool->threads[0]);
    if (pool == NULL)
        return -ENOMEM;
    pool->scheduler.post = post;
    pool->scheduler.one_thread = false;
    pool->scheduler.idle = processors > 1 ? idle : NULL;
    pool->scheduler.take_back = take_back;
    pool->scheduler.set_timer = set_timer;
    pool->scheduler.clear_timer = clear_timer;
    pool->scheduler.runs_here_only = runs_here_only;
    bide_atomic_init(&pool->scheduler.patience, BIDE_PATIENCE_MOST);
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->condition, NULL);
    pool->queue.first = NULL;
    init_keeper(pool);
    pool->sleeping = 0;
    pool->looking = false;
    pool->may_look = processors > 1;
    pool->ending = false;
    bide_atomic_init(&pool->work, 0);
    pool->count = threads;
    int error = bide_threads_start_(pool->threads, threads, worker, pool, end);
    if (error != 0) {
        free_pool(pool);
        return error;
    }
    *created = pool;
    return 0;
}

void bide_thread_pool_destroy(bide_thread_pool *pool)
{
    if (bide_threads_have_this_(pool->threads, pool->count))
        bide_platform.misuse("a thread pool is destroyed on one of its threads", __func__, __FILE__,
                             __LINE__);
    end(pool);
    bide_threads_join_(pool->threads, pool->count);
    bide_tell_what_is_left_(&pool->scheduler, &pool->timers,
                            "a thread pool is destroyed while a timer of it is set",
                            "a thread pool is destroyed while a task of it waits");
    free_pool(pool);
}

bide_scheduler *bide_thread_pool_scheduler(bide_thread_pool *pool)
{
    return &pool->scheduler;
}

unsigned bide_thread_pool_threads(const bide_thread_pool *pool)
{
    return pool->count;
}

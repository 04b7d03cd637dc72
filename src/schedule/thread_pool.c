/*
 * The thread pool: one queue under one lock.
 *
 * Everything in `state` is read and written under `lock`, but for `work`, which a thread that looks for
 * work reads without it as a hint: whatever it reads, it takes the lock before it acts on it. So the
 * lock orders everything, frames included, and `work` is relaxed.
 *
 * A thread without work is in one of two states: looking (at most one at a time, for a while) or sleeping on
 * the condition. Both end under the lock with another look at the queue, so no post is missed: a poster
 * that finds a thread looking wakes nobody; otherwise it wakes one sleeper; and whoever takes from the
 * queue and leaves something there wakes the next.
 */
#define _GNU_SOURCE
#include "bide/thread_pool.h"

#include "processors.h"
#include "threads.h"

#include <errno.h>
#include <stdlib.h>

/* See run_loop.c for how long it pays to look. */
enum { SPINS = BIDE_CHECK ? 1 : 1024 };

struct bide_thread_pool {
    bide_scheduler scheduler;
    pthread_mutex_t lock;
    pthread_cond_t condition;
    bide_awaiter_chain queue; /* oldest first */
    unsigned sleeping;
    bool looking;
    bool may_look; /* constant */
    bool ending;
    bide_atomic(uint32_t) work; /* is there something in the queue? */
    unsigned count;             /* constant */
    pthread_t threads[];
};

static void post(bide_scheduler *scheduler, bide_awaiter *first, bide_awaiter *last)
{
    bide_thread_pool *pool = bide_container_of(scheduler, bide_thread_pool, scheduler);
    pthread_mutex_lock(&pool->lock);
    bide_awaiter_chain_append(&pool->queue, first, last);
    bide_atomic_store(&pool->work, 1, relaxed);
    /* Under the lock: afterwards the pool may be gone. */
    if (!pool->looking && pool->sleeping > 0)
        pthread_cond_signal(&pool->condition);
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

/* Waits, with the lock held, until there is something in the queue or the pool is to end. */
static void await_work(bide_thread_pool *pool)
{
    if (pool->may_look && !pool->looking) {
        pool->looking = true;
        pthread_mutex_unlock(&pool->lock);
        for (int i = 0; i < SPINS && bide_atomic_load(&pool->work, relaxed) == 0; i++)
            bide_cpu_relax();
        pthread_mutex_lock(&pool->lock);
        pool->looking = false;
    }
    while (pool->queue.first == NULL && !pool->ending) {
        pool->sleeping++;
        pthread_cond_wait(&pool->condition, &pool->lock);
        pool->sleeping--;
    }
}

static void *worker(void *argument)
{
    bide_thread_pool *pool = argument;
    pthread_mutex_lock(&pool->lock);
    for (;;) {
        if (pool->queue.first == NULL)
            await_work(pool);
        bide_awaiter *awaiter = bide_awaiter_chain_take(&pool->queue);
        if (awaiter == NULL)
            break; /* the pool ends */
        if (pool->queue.first == NULL)
            bide_atomic_store(&pool->work, 0, relaxed);
        else if (!pool->looking && pool->sleeping > 0)
            pthread_cond_signal(&pool->condition);
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
    pthread_mutex_unlock(&pool->lock);
}

static void free_pool(bide_thread_pool *pool)
{
    pthread_cond_destroy(&pool->condition);
    pthread_mutex_destroy(&pool->lock);
    free(pool);
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
    pool->scheduler.idle = processors > 1 ? idle : NULL;
    pool->scheduler.take_back = take_back;
    bide_atomic_init(&pool->scheduler.patience, BIDE_PATIENCE_MOST);
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->condition, NULL);
    pool->queue.first = NULL;
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
    end(pool);
    bide_threads_join_(pool->threads, pool->count);
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

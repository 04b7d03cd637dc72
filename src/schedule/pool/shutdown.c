/*
 * The shutdown of a pool with a deadline.
 *
 *     RUNNING --all has ended--> ENDING --threads end--> ENDED
 *        |                                                 ^
 *        +--deadline--> HALTED --turns and threads end-----+
 *
 *     ENDING   `ending`, as bide_thread_pool_destroy sets it: a worker ends its thread when it is out of work
 *     HALTED   `ending` and `halted`: a worker also ends its thread after its next look, and leaves what is ready
 *              where it is
 *
 * 1. A pool is done if, at one moment under its lock, all workers are in the idle set, but for spare ones that are
 *    dormant, no timer is set, and no task of the pool lives. The ring, the slot and the deque of a worker that is in the
 *    idle set, or dormant, are empty. A thread that injects
 *    takes a worker out of the set in the same critical section, if none is awake; so nothing is injected. So nothing
 *    of the pool runs or is ready, and nothing is left whose end could start anything. A task ends in a turn of the
 *    pool; but a branch of a scope may have moved elsewhere, and ends there. So the shutdown looks again now and
 *    then, and nobody wakes it.
 * 2. `ended` counts the threads that have ended. Each increments it last, with release; the shutdown reads it with
 *    acquire. So once it has read the number of workers, it sees all that the coroutines have done, and what is
 *    left in the workers' rings.
 * 3. `halted` is relaxed: nothing else is concluded from it. A worker reads it at each look, so it ends after so many
 *    turns. If it is out of work, it would sleep, and ends because of `ending`.
 */
#define _GNU_SOURCE
#include "worker.h"

#include "../../coroutine/roots.h"
#include "../../system/fork.h"

#include <errno.h>

/* Nanoseconds: between two looks at whether all has ended, at first and at most; and for turns to end in. */
enum { SHUTDOWN_PAUSE_MIN = 50000, SHUTDOWN_PAUSE_MAX = 10000000, SHUTDOWN_HALT_TIME = 100000000 };

/* 1 */
static bool shutdown_is_done(bide_thread_pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    uint32_t idle = bide_atomic_load(&pool->idle, relaxed);
    uint32_t workers = pool->count + bide_atomic_load(&pool->acting, relaxed);
    bool is_done = bide_pool_sleeping_(idle) == workers &&
                   bide_pool_next_timer_(pool) == BIDE_FOREVER &&
                   bide_roots_count_(&pool->scheduler, 1) == 0;
    pthread_mutex_unlock(&pool->lock);
    return is_done;
}

/* False: the deadline has passed before. */
static bool shutdown_await_tasks(bide_thread_pool *pool, uint64_t deadline)
{
    bide_atomic(uint32_t) nobody_wakes;
    bide_atomic_init(&nobody_wakes, 0);
    for (uint64_t pause = SHUTDOWN_PAUSE_MIN; !shutdown_is_done(pool);
         pause = pause < SHUTDOWN_PAUSE_MAX / 2 ? 2 * pause : SHUTDOWN_PAUSE_MAX) {
        uint64_t now = bide_platform.now();
        bool is_last = now >= deadline || deadline - now <= pause;
        if (now >= deadline ||
            (bide_platform.wait(&nobody_wakes, 0, is_last ? deadline : now + pause) != 0 &&
             is_last))
            return shutdown_is_done(pool);
    }
    return true;
}

/* To ENDING or HALTED. Returns until when the threads may take. */
static uint64_t shutdown_end(bide_thread_pool *pool, uint64_t deadline)
{
    if (!shutdown_await_tasks(pool, deadline))
        bide_atomic_store(&pool->halted, 1, relaxed); /* 3 */
    bide_pool_end_(pool);
    uint64_t grace = bide_platform.now() + SHUTDOWN_HALT_TIME;
    return grace > deadline ? grace : deadline;
}

/* Returns how many threads have not ended. */
static unsigned shutdown_await_threads(bide_thread_pool *pool, uint64_t deadline)
{
    uint32_t ended;
    /* acquire: 2; partner is the release in bide_pool_note_end_ */
    while ((ended = bide_atomic_load(&pool->ended, acquire)) != pool->places) {
        if (bide_platform.wait(&pool->ended, ended, deadline) != 0)
            break;
    }
    return pool->places - ended;
}

void bide_pool_note_end_(bide_thread_pool *pool)
{
    /* release: 2 */
    bide_atomic_fetch_add(&pool->ended, 1, release);
    bide_platform.wake(&pool->ended, UINT32_MAX);
}

size_t bide_pool_count_all_ready_(bide_thread_pool *pool)
{
    size_t count = 0;
    for (unsigned i = 0; i < pool->places; i++)
        count += bide_pool_count_ready_(&pool->workers[i]);
    pthread_mutex_lock(&pool->lock);
    for (const bide_awaiter *awaiter = pool->injected.first; awaiter != NULL;
         awaiter = awaiter->link)
        count++;
    pthread_mutex_unlock(&pool->lock);
    return count;
}

int bide_thread_pool_shutdown(bide_thread_pool *pool, uint64_t deadline,
                              bide_thread_pool_remaining *remaining)
{
    bide_thread_pool_remaining none;
    if (remaining == NULL)
        remaining = &none;
    if (bide_is_inherited_(pool->generation))
        bide_misuse_("a thread pool is shut down in a child of the process that created it",
                     __func__, __FILE__, __LINE__);
    if (bide_pool_worker_of_(pool) != NULL)
        bide_misuse_("a thread pool is shut down on one of its threads", __func__, __FILE__,
                     __LINE__);
    if (!pool->is_shut_down)
        deadline = shutdown_end(pool, deadline);
    pool->is_shut_down = true;
    remaining->threads = shutdown_await_threads(pool, deadline);
    if (remaining->threads == 0)
        bide_pool_join_(pool);
    remaining->tasks = bide_roots_count_(&pool->scheduler, SIZE_MAX);
    remaining->ready = bide_pool_count_all_ready_(pool);
    remaining->has_timers = bide_pool_next_timer_(pool) != BIDE_FOREVER;
    bool is_none = remaining->threads == 0 && remaining->tasks == 0 && remaining->ready == 0 &&
                   !remaining->has_timers;
    return is_none ? 0 : -ETIMEDOUT;
}

/*
 * The sleeping workers of a thread pool: the idle set and the timekeeper. The
 * argument, and the numbers that comments refer to, are in worker.c.
 *
 * The idle set is a list under the pool's lock. A worker is in it exactly while its word `parked` has
 * WORKER_PARKED. A worker is removed by the thread that wakes it, which then counts it as searching, or
 * removes itself. The timekeeper is one of the set, or NULL.
 *
 *     parked   0 --falls asleep--> WORKER_PARKED --kick--> WORKER_PARKED + WORKER_KICK --woken, or leaves--> 0
 */
#define _GNU_SOURCE
#include "worker.h"

#include "../../coroutine/observe.h"

#include <errno.h>

enum {
    WORKER_PARKED = 1,
    WORKER_KICK = 2
}; /* of `parked`; kicks are counted above the first bit */

/* ---- The idle set; under the lock ---- */

void bide_pool_unlock_and_wake_(bide_thread_pool *pool, bide_pool_worker *worker)
{
    bool has_driver = pool->driver != NULL;
    if (worker != NULL && has_driver)
        pool->driver->wake(pool->driver, worker->index); /* 7 */
    pthread_mutex_unlock(&pool->lock);
    if (worker != NULL && !has_driver)
        bide_platform.wake(&worker->parked, 1);
}

static void idle_insert(bide_thread_pool *pool, bide_pool_worker *worker)
{
    worker->next_idle = pool->first_idle;
    pool->first_idle = worker;
    bide_atomic_store(&worker->parked, WORKER_PARKED, relaxed);
    uint32_t idle = bide_atomic_fetch_add(
        &pool->idle, (uint32_t)BIDE_POOL_SLEEPS_ - (worker->is_searching ? BIDE_POOL_SEARCHES_ : 0),
        relaxed);
    bide_assert(bide_pool_sleeping_(idle) < pool->places);
    bide_assert(!worker->is_searching || bide_pool_searching_(idle) != 0);
    (void)idle;
}

/* The worker counts as searching from here on, and has to be woken. */
static void idle_remove(bide_thread_pool *pool, bide_pool_worker *worker)
{
    bide_pool_worker **place = &pool->first_idle;
    while (*place != worker) {
        bide_assert(*place != NULL);
        place = &(*place)->next_idle;
    }
    *place = worker->next_idle;
    if (pool->timekeeper == worker) {
        pool->timekeeper = NULL;
        bide_pool_dismiss_timekeeper_(worker);
    }
    uint32_t idle = bide_atomic_fetch_add(
        &pool->idle, (uint32_t)BIDE_POOL_SEARCHES_ - BIDE_POOL_SLEEPS_, relaxed);
    bide_assert(bide_pool_sleeping_(idle) != 0);
    (void)idle;
    bide_atomic_store(&worker->parked, 0, relaxed);
}

/* Removes the last that fell asleep, but the timekeeper only if it is alone; NULL: none sleeps. */
static bide_pool_worker *idle_pop(bide_thread_pool *pool)
{
    bide_pool_worker *worker = pool->first_idle;
    if (worker == NULL)
        return NULL;
    if (worker == pool->timekeeper && worker->next_idle != NULL)
        worker = worker->next_idle;
    idle_remove(pool, worker);
    return worker;
}

bide_pool_worker *bide_pool_pop_sleeper_(bide_thread_pool *pool)
{
    /* relaxed: 4, by the lock; or 3 */
    return bide_pool_searching_(bide_atomic_load(&pool->idle, relaxed)) == 0 ? idle_pop(pool)
                                                                             : NULL;
}

bide_pool_worker *bide_pool_kick_timekeeper_(bide_thread_pool *pool)
{
    bide_pool_worker *timekeeper = pool->timekeeper;
    if (timekeeper == NULL)
        return bide_pool_pop_sleeper_(pool);
    uint32_t parked = bide_atomic_load(&timekeeper->parked, relaxed);
    bide_assert((parked & WORKER_PARKED) != 0);
    /* release: 5; partner is the timekeeper's load */
    bide_atomic_store(&timekeeper->parked, parked + WORKER_KICK, release);
    return timekeeper;
}

BIDE_COLD void bide_pool_wake_(bide_thread_pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    bide_pool_worker *worker = bide_pool_pop_sleeper_(pool);
    bide_pool_unlock_and_wake_(pool, worker);
}

BIDE_COLD void bide_pool_request_watch_(bide_thread_pool *pool)
{
    bide_pool_worker *worker = NULL;
    pthread_mutex_lock(&pool->lock);
    if (bide_atomic_load(&pool->watched, relaxed) == 0 && pool->first_idle != NULL) {
        bide_atomic_store(&pool->watched, 1, relaxed);
        worker = bide_pool_kick_timekeeper_(pool);
    }
    bide_pool_unlock_and_wake_(pool, worker);
}

/* ---- The timekeeper ---- */

static bool is_any_slot_filled(bide_thread_pool *pool)
{
    for (unsigned i = 0; i < pool->places; i++) {
        if (!bide_pool_slot_is_empty_(&pool->workers[i].lifo_slot))
            return true;
    }
    return false;
}

/* Of a worker that was the timekeeper when it fell asleep. If it has been woken meanwhile, it does not sleep. */
static uint64_t timekeeper_deadline(bide_pool_worker *worker)
{
    bide_thread_pool *pool = worker->pool;
    uint64_t deadline = bide_pool_keep_timers_(worker);
    if (bide_atomic_load(&pool->watched, relaxed) != 0) {
        uint64_t next_watch = bide_platform.now() + BIDE_POOL_WATCH_;
        if (next_watch < deadline)
            deadline = next_watch;
    }
    return deadline;
}

/* A worker that has not been woken ends its sleep; if it has been woken meanwhile, nothing. */
static void leave_idle_set(bide_pool_worker *worker)
{
    bide_thread_pool *pool = worker->pool;
    pthread_mutex_lock(&pool->lock);
    if ((bide_atomic_load(&worker->parked, relaxed) & WORKER_PARKED) != 0)
        idle_remove(pool, worker);
    pthread_mutex_unlock(&pool->lock);
    worker->is_searching = true;
}

/*
 * Pushes a coroutine to the timekeeper's ring that was in a slot at the previous watch already, and
 * whose worker has made no progress; true if there was one. Stops watching if no slot is filled and
 * no worker has run anything since.
 */
static bool timekeeper_watch_slots(bide_pool_worker *timekeeper)
{
    bide_thread_pool *pool = timekeeper->pool;
    bool is_needed = false;
    for (unsigned i = 0; i < pool->places; i++) {
        bide_pool_worker *victim = &pool->workers[i];
        size_t turns = bide_atomic_load(&victim->turns, relaxed);
        bool is_filled = !bide_pool_slot_is_empty_(&victim->lifo_slot);
        bool has_stalled = turns == bide_atomic_load(&victim->seen_turns, relaxed);
        bide_atomic_store(&victim->seen_turns, turns, relaxed);
        is_needed |= is_filled || !has_stalled;
        if (!is_filled || !has_stalled)
            continue;
        bide_awaiter *awaiter = bide_pool_steal_slot_(timekeeper, victim);
        if (awaiter != NULL) {
            leave_idle_set(timekeeper);
            bool is_pushed = bide_run_queue_push_(&timekeeper->queue, awaiter);
            bide_assert(is_pushed); /* the ring of a worker that sleeps is empty */
            (void)is_pushed;
            return true;
        }
    }
    if (is_needed)
        return false;
    bide_atomic_store(&pool->watched, 0, relaxed);
    bide_atomic_fence_heavy(); /* 5; partner: the light fence of a worker that fills a slot */
    if (is_any_slot_filled(pool))
        bide_pool_request_watch_(pool); /* by now another worker may be the timekeeper */
    return false;
}

/* At the timekeeper's deadline. True: it has something to do, and sleeps no more. */
static bool timekeeper_work(bide_pool_worker *timekeeper, uint64_t deadline)
{
    bide_thread_pool *pool = timekeeper->pool;
    if (deadline != BIDE_FOREVER && bide_pool_next_timer_(pool) <= deadline) {
        leave_idle_set(timekeeper);
        bide_pool_push_due_timers_(timekeeper, deadline);
        return true;
    }
    return bide_atomic_load(&pool->watched, relaxed) != 0 && timekeeper_watch_slots(timekeeper);
}

/* ---- Sleeping ---- */

static void sleep_in_driver(bide_pool_worker *worker, bool is_timekeeper)
{
    bide_pool_driver *driver = worker->pool->driver;
    /* acquire: as in sleep_on_word */
    while ((bide_atomic_load(&worker->parked, acquire) & WORKER_PARKED) != 0) {
        uint64_t deadline = is_timekeeper ? timekeeper_deadline(worker) : BIDE_FOREVER;
        driver->sleep(driver, worker->index, deadline);
        if (!is_timekeeper || bide_platform.now() < deadline) {
            leave_idle_set(worker);
            break;
        }
        if (timekeeper_work(worker, deadline))
            break;
    }
    driver->take(driver, worker->index);
}

static void sleep_on_word(bide_pool_worker *worker, bool is_timekeeper)
{
    for (;;) {
        /* acquire: 5; partner is the release of the kick: it sees `watched` */
        uint32_t parked = bide_atomic_load(&worker->parked, acquire);
        if ((parked & WORKER_PARKED) == 0)
            return;
        uint64_t deadline = is_timekeeper ? timekeeper_deadline(worker) : BIDE_FOREVER;
        if (bide_platform.wait(&worker->parked, parked, deadline) == -ETIMEDOUT &&
            timekeeper_work(worker, deadline))
            return;
    }
}

bool bide_pool_sleep_(bide_pool_worker *worker)
{
    bide_thread_pool *pool = worker->pool;
    bide_assert(worker == bide_pool_this_worker_());
    pthread_mutex_lock(&pool->lock);
    if (pool->injected.first != NULL || bide_pool_is_ending_(pool)) {
        bool is_end = pool->injected.first == NULL;
        if (is_end && worker->is_searching)
            bide_atomic_fetch_sub(&pool->idle, BIDE_POOL_SEARCHES_, relaxed);
        if (is_end)
            worker->is_searching = false;
        pthread_mutex_unlock(&pool->lock);
        return !is_end;
    }
    bool is_timekeeper = pool->timekeeper == NULL;
    if (is_timekeeper) {
        pool->timekeeper = worker;
        bide_atomic_store(&worker->keeps_time, 1, relaxed);
    }
    idle_insert(pool, worker);
    pthread_mutex_unlock(&pool->lock);
    worker->is_searching = false;
    bide_atomic_fence_heavy(); /* 1, 5; partners: the light fences of tell and hand_over */
    if (bide_pool_has_work_(pool)) {
        leave_idle_set(worker);
        return true;
    }
    if (bide_atomic_load(&pool->watched, relaxed) == 0 && is_any_slot_filled(pool))
        bide_pool_request_watch_(pool);
    bide_atomic_store(&worker->sleeps, bide_atomic_load(&worker->sleeps, relaxed) + 1, relaxed);
    if (pool->hooks.before_sleep != NULL)
        pool->hooks.before_sleep(pool->hooks.argument, worker->index);
    BIDE_OBSERVE_(thread, (BIDE_OBSERVED_SLEEP));
    if (pool->driver != NULL)
        sleep_in_driver(worker, is_timekeeper);
    else
        sleep_on_word(worker, is_timekeeper);
    BIDE_OBSERVE_(thread, (BIDE_OBSERVED_WAKE));
    worker->is_searching = true;
    if (pool->hooks.after_wake != NULL)
        pool->hooks.after_wake(pool->hooks.argument, worker->index);
    return true;
}

/* (Woken under the lock: with spare workers they may fall asleep again.) */
static void wake_idle(bide_thread_pool *pool)
{
    while (pool->first_idle != NULL) {
        bide_pool_worker *worker = pool->first_idle;
        idle_remove(pool, worker);
        if (pool->driver != NULL)
            pool->driver->wake(pool->driver, worker->index);
        else
            bide_platform.wake(&worker->parked, 1);
    }
    bide_assert(pool->timekeeper == NULL);
}

void bide_pool_end_all_(bide_thread_pool *pool)
{
    pool->is_over = true;
    wake_idle(pool);
    bide_pool_end_dormant_(pool);
}

void bide_pool_end_(bide_thread_pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    pool->ending = true;
    if (pool->places == pool->count || bide_atomic_load(&pool->halted, relaxed) != 0)
        bide_pool_end_all_(pool);
    else
        wake_idle(pool); /* the last that falls asleep ends all: D of spare.c */
    pthread_mutex_unlock(&pool->lock);
}

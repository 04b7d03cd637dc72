/*
 * The searching worker of a thread pool: it steals from the rings of other workers, and from slots
 * whose workers have stalled. The argument, and the numbers that comments refer to, are in worker.c.
 */
#define _GNU_SOURCE
#include "worker.h"

#include "../../coroutine/observe.h"

/* ---- Stealing ---- */

static void note_steal(bide_pool_worker *worker)
{
    bide_atomic_store(&worker->steals, bide_atomic_load(&worker->steals, relaxed) + 1, relaxed);
    BIDE_OBSERVE_(thread, (BIDE_OBSERVED_STEAL));
}

bide_awaiter *bide_pool_steal_(bide_pool_worker *worker, unsigned max)
{
    bide_thread_pool *pool = worker->pool;
    worker->random = worker->random * 1664525 + 1013904223;
    unsigned at = (worker->random >> 8) % pool->places;
    for (unsigned i = 0; i < max; i++, at = at + 1 == pool->places ? 0 : at + 1) {
        bide_pool_worker *victim = &pool->workers[at];
        if (victim == worker || bide_run_queue_is_empty_(&victim->queue))
            continue;
        bide_awaiter *awaiter = bide_run_queue_steal_(&worker->queue, &victim->queue);
        if (awaiter != NULL) {
            note_steal(worker);
            return awaiter;
        }
    }
    return NULL;
}

bide_awaiter *bide_pool_steal_slot_(bide_pool_worker *worker, bide_pool_worker *victim)
{
    bide_awaiter *awaiter = bide_pool_slot_steal_(&victim->lifo_slot);
    if (awaiter != NULL)
        note_steal(worker);
    return awaiter;
}

/* Runs a coroutine from a slot whose worker has been busy with one coroutine for a while. */
static bool steal_stalled_slot(bide_pool_worker *worker)
{
    bide_thread_pool *pool = worker->pool;
    for (unsigned i = 0; i < pool->places; i++) {
        bide_pool_worker *victim = &pool->workers[i];
        if (victim == worker || bide_pool_slot_is_empty_(&victim->lifo_slot))
            continue;
        size_t turns = bide_atomic_load(&victim->turns, relaxed);
        for (unsigned j = 0; j < BIDE_POOL_STILL_PAUSES_; j++)
            bide_cpu_relax();
        if (bide_atomic_load(&victim->turns, relaxed) != turns)
            continue;
        bide_awaiter *awaiter = bide_pool_steal_slot_(worker, victim);
        if (awaiter != NULL) {
            bide_pool_run_(worker, awaiter);
            return true;
        }
    }
    return false;
}

/* ---- Workers that block ---- */

static bide_thread_pool *pool_of_blocked(bide_blocked_pool_ *functions)
{
    return bide_container_of(functions, bide_thread_pool, blocked.functions);
}

static void pool_blocked_begins(bide_blocked_pool_ *functions)
{
    bide_thread_pool *pool = pool_of_blocked(functions);
    bide_atomic_fetch_add(&pool->blocked.workers, 1, relaxed);
    bide_atomic_fetch_add(&pool->blocked.changes, 1, relaxed);
}

static void pool_blocked_ends(bide_blocked_pool_ *functions)
{
    bide_thread_pool *pool = pool_of_blocked(functions);
    bide_atomic_fetch_sub(&pool->blocked.workers, 1, relaxed);
    bide_atomic_fetch_add(&pool->blocked.changes, 1, relaxed);
}

static uint32_t pool_blocked_changes(bide_blocked_pool_ *functions)
{
    return bide_atomic_load(&pool_of_blocked(functions)->blocked.changes, relaxed);
}

static bool pool_has_due_timer(bide_thread_pool *pool)
{
    uint64_t next = bide_pool_next_timer_(pool);
    return next != BIDE_FOREVER && next <= bide_platform.now();
}

/* (All accesses are relaxed: nothing is concluded from one look, and a worker that waits for a period
 * sees the others' counts of before.) */
static bool pool_blocked_is_stuck(bide_blocked_pool_ *functions)
{
    bide_thread_pool *pool = pool_of_blocked(functions);
    if (bide_atomic_load(&pool->blocked.workers, relaxed) !=
        pool->count + bide_atomic_load(&pool->acting, relaxed))
        return false;
    if (bide_atomic_load(&pool->is_injected, relaxed) != 0 || bide_pool_has_work_(pool))
        return true;
    for (unsigned i = 0; i < pool->places; i++) {
        if (!bide_pool_slot_is_empty_(&pool->workers[i].lifo_slot))
            return true;
    }
    return pool_has_due_timer(pool);
}

void bide_pool_init_blocked_(bide_thread_pool *pool)
{
    pool->blocked.functions = (bide_blocked_pool_){pool_blocked_begins, pool_blocked_ends,
                                                   pool_blocked_changes, pool_blocked_is_stuck};
    bide_atomic_init(&pool->blocked.workers, 0);
    bide_atomic_init(&pool->blocked.changes, 0);
}

/* ---- Searching ---- */

size_t bide_pool_count_ready_(bide_pool_worker *worker)
{
    uint32_t head = bide_atomic_load(&worker->queue.head, relaxed);
    uint32_t count = bide_atomic_load(&worker->queue.tail, relaxed) - head;
    if (count > BIDE_RUN_QUEUE_SIZE_) /* (the two are of different times) */
        count = BIDE_RUN_QUEUE_SIZE_;
    return count + !bide_pool_slot_is_empty_(&worker->lifo_slot);
}

bool bide_pool_has_work_(bide_thread_pool *pool)
{
    for (unsigned i = 0; i < pool->places; i++) {
        if (!bide_run_queue_is_empty_(&pool->workers[i].queue))
            return true;
    }
    const bide_pool_deque_hooks *hooks = bide_atomic_load(&pool->deque_hooks, acquire);
    return hooks != NULL && hooks->has_work(pool);
}

BIDE_COLD void bide_pool_stop_searching_(bide_pool_worker *worker)
{
    bide_thread_pool *pool = worker->pool;
    bide_assert(worker->is_searching);
    worker->is_searching = false;
    /* release: 3; partner is the heavy fence of a worker that searches on and then goes to sleep: it
     * sees what is in this worker's ring */
    uint32_t idle = bide_atomic_fetch_sub(&pool->idle, BIDE_POOL_SEARCHES_, release);
    bide_assert(bide_pool_searching_(idle) != 0);
    if (bide_pool_searching_(idle) != 1 || bide_pool_sleeping_(idle) == 0)
        return;
    if (bide_pool_sleeping_(idle) + 1 < pool->places)
        bide_atomic_fence_heavy(); /* 3; partner: the light fence of bide_pool_tell_ */
    bool has_work = bide_pool_has_work_(pool);
    bide_pool_worker *woken = NULL;
    pthread_mutex_lock(&pool->lock);
    bool needs_timekeeper =
        pool->timekeeper == NULL && (bide_pool_next_timer_(pool) != BIDE_FOREVER ||
                                     bide_atomic_load(&pool->watched, relaxed) != 0);
    if (has_work || pool->injected.first != NULL || needs_timekeeper)
        woken = bide_pool_pop_sleeper_(pool);
    bide_pool_unlock_and_wake_(pool, woken);
}

/* Counts the worker as searching, unless enough workers search already. */
static bool start_searching(bide_pool_worker *worker)
{
    bide_thread_pool *pool = worker->pool;
    if (worker->is_searching)
        return true;
    uint32_t searching = bide_pool_searching_(bide_atomic_load(&pool->idle, relaxed));
    if (searching != 0 && (2 * searching >= pool->count || searching >= BIDE_POOL_SLEEPS_ / 2))
        return false;
    bide_atomic_fetch_add(&pool->idle, BIDE_POOL_SEARCHES_, relaxed);
    worker->is_searching = true;
    return true;
}

static void note_spin(bide_pool_worker *worker, uint32_t polls, bool paid)
{
    bide_spin_pace_note_(&worker->pace, polls, paid, BIDE_POOL_SPINS_MIN_, BIDE_POOL_SPINS_MAX_);
}

bool bide_pool_search_(bide_pool_worker *worker)
{
    bide_thread_pool *pool = worker->pool;
    if (!start_searching(worker))
        return false;
    uint64_t deadline = bide_pool_next_timer_(pool);
    uint32_t polls =
        bide_spin_pace_looks_(&worker->pace, BIDE_POOL_SPINS_MIN_, BIDE_POOL_SPINS_MAX_);
    bool adapts = pool->driver == NULL;
    unsigned victims =
        pool->places < BIDE_POOL_SPIN_VICTIMS_ ? pool->places : (unsigned)BIDE_POOL_SPIN_VICTIMS_;
    if (pool->driver != NULL) {
        pool->driver->look(pool->driver, worker->index);
        polls = 1; /* new work comes from the system */
        victims = pool->places;
    }
    for (uint32_t i = 0; i < polls; i++) {
        if (bide_pool_run_one_(worker, victims)) {
            if (adapts && i != 0)
                note_spin(worker, polls, true);
            return true;
        }
        if (deadline != BIDE_FOREVER && i % BIDE_POOL_SPINS_PER_CLOCK_ == 0) {
            uint64_t now = bide_platform.now();
            if (now >= deadline && bide_pool_push_due_timers_(worker, now))
                return true;
        }
        bide_cpu_relax();
    }
    if (adapts)
        note_spin(worker, polls, false);
    return steal_stalled_slot(worker);
}

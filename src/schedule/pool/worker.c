/*
 * The workers of a thread pool: where ready coroutines are kept, how a worker picks the next one,
 * and what it does when there is none.
 *
 * A ready coroutine is in one of these places:
 *
 *     a worker's LIFO slot   it was woken last by the coroutine that runs on that worker. It runs
 *                            next, because what the two share is in the cache; after LIFO_POLLS
 *                            coroutines in a row from the slot it goes to the end of the ring
 *     a worker's ring        it was woken there earlier, or has yielded (run_queue.h)
 *     `injected`             it was posted from outside the pool, or a ring was full; under the lock
 *
 * A worker takes from its slot, its ring, `injected`, and the other workers' rings, in that order.
 * Once in `look_turns_max` turns, or more often if they are long (look_pace.h), it looks at
 * what is injected and at the timers. It runs the oldest injected coroutine and the timer that is due
 * first, and moves the others to the end of its ring. While these are there, later ones go behind them.
 *
 *     running --nothing of its own--> searching --nothing anywhere--> sleeping --woken--> searching
 *        ^                                |
 *        +-------------found--------------+
 *
 * This file has the running worker, search.c the searching one, parking.c the sleeping one, and timers.c
 * the pool's timers.
 *
 * `idle` counts the searching and the sleeping workers, in one word. A thread that makes work
 * wakes a sleeper, which then searches, unless some worker searches already. The number of sleepers
 * changes only under the lock.
 *
 * No wake-up is lost: while a coroutine is in a ring or injected, at least one worker that could run
 * it is awake.
 *
 * 1. A worker that pushes to its ring, or fills it with stolen or injected coroutines, passes a light
 *    fence and then reads `idle` (bide_pool_tell_). (A searching worker that has found something
 *    follows 3 instead.) A worker that is about to sleep changes `idle`, passes a heavy fence, and
 *    then checks all rings. The two fences order each other: either the pusher reads that change of
 *    `idle`, or a later one, or the sleeper sees what was pushed.
 * 2. Suppose the pusher reads that nobody sleeps. Every worker that goes to sleep later sees what was
 *    pushed, by 1, and stays awake.
 * 3. Suppose the pusher reads that some worker searches. Consider the later change of `idle` after
 *    which no worker searches. If a worker made it that goes to sleep, it sees what was pushed, by 1.
 *    If a worker made it that has found something (bide_pool_stop_searching_), and nobody sleeps, see
 *    2. If somebody sleeps, that worker passes a heavy fence, checks the rings, and wakes another
 *    worker for their content. It skips the fence if all others sleep, since then only itself could
 *    have pushed.
 * 4. An outside thread injects under the lock, and reads `idle` under it too. A worker checks
 *    `injected` under the lock before it counts itself as a sleeper under it, and after it has been
 *    the last to search while somebody sleeps. So 1 to 3 hold with the lock in place of the fences.
 * 5. A coroutine in a slot runs when the worker's current coroutine suspends. If that takes long,
 *    another worker may steal it. A filled slot alone wakes nobody, since then two coroutines
 *    that wake each other would run on two processors. Instead, while a slot is filled, no worker
 *    sleeps unless the timekeeper watches: it wakes now and then and steals from a slot whose worker
 *    has made no progress. A worker that fills a slot passes a light fence and reads `watched` and
 *    `idle`; if some sleep and nobody watches it requests a watch. The timekeeper that stops
 *    watching, and each worker that falls asleep, passes a heavy fence and checks the slots. So one
 *    of the two sees the other.
 *
 * At most one sleeping worker is the timekeeper: it sleeps until the earliest timer is due.
 *
 * 6. No timer is missed: see timers.c.
 * 7. A post from outside may be what kept the pool alive: the posted coroutine may run at once and
 *    cause the pool's destruction. So after it has released the lock, the poster uses nothing of the
 *    pool but the address that a worker sleeps on. A driver's `wake` uses more, and is called under
 *    the lock.
 * 8. No ready coroutine starves, if the turns of at least one worker end (and those of the worker in
 *    whose ring it is, or some worker is out of work). Let L be the turns between two looks of a
 *    worker; it is 2 at least.
 *    - Injected: each look moves the oldest to the ring or, if that is full, runs it at once. The ring
 *      may be full at every look. So a coroutine with k injected before it is in a ring, or runs, within
 *      (k + 1) L turns of any one worker. Only the order of the injections counts: later ones go behind it.
 *      If none that was injected is in the ring, the look runs the oldest at once. So with k = 0 it runs
 *      within L turns then, however many others are in the ring.
 *    - A due timer: a look moves all timers that are due to the ring, whichever worker has set them. If the
 *      ring is full, or no timer is in it, the look runs the first at once; those that find no room are
 *      injected.
 *    - In a ring: at most BIDE_RUN_QUEUE_SIZE_ - 1 are before it. For each of these at most LIFO_POLLS
 *      run from the slot, and in L turns at most two by a look. If a coroutine is woken while the ring is
 *      full, the older half of the ring is injected with it, and counts as such from then on: so the
 *      bound holds as long as no more are woken than there is room for. One that yields with a full ring
 *      is injected alone.
 *    - In the slot: it runs next, or after the two of a look, or goes to the end of the ring.
 *    A coroutine that does not suspend delays no ready coroutine of the pool.
 *
 * Workers of a pool with a driver sleep in the driver, whose `wake` ends the current sleep or the
 * next one. A worker that has received an event leaves the idle set before it posts the coroutines
 * that the event wakes, so these posts do not find it asleep.
 */
#define _GNU_SOURCE
#include "worker.h"

#include "fork_stacks.h"

#include "../../coroutine/chain_cursor.h"
#include "../../coroutine/internal.h"
#include "../../coroutine/observe.h"
#include "../../system/fork.h"

enum { LIFO_POLLS = 3, INJECTED_BATCH = BIDE_CHECK ? 2 : 32 };

static BIDE_THREAD_LOCAL bide_pool_worker *this_worker;

/* The same, but NULL while it blocks in a region (spare.c): then it posts as a thread outside does. */
static BIDE_THREAD_LOCAL bide_pool_worker *this_poster;

bide_pool_worker *bide_pool_this_worker_(void)
{
    return this_worker;
}

bide_pool_worker *bide_pool_worker_of_(const bide_thread_pool *pool)
{
    bide_pool_worker *worker = this_worker;
    return worker != NULL && worker->pool == pool ? worker : NULL;
}

/* The worker to which the calling thread posts; NULL: it posts from outside. */
static bide_pool_worker *pool_poster_of(const bide_thread_pool *pool)
{
    bide_pool_worker *worker = this_poster;
    return worker != NULL && worker->pool == pool ? worker : NULL;
}

/* ---- Making work ---- */

void bide_pool_inject_(bide_thread_pool *pool, bide_awaiter *first, bide_awaiter *last)
{
    bide_awaiter_chain_append(&pool->injected, first, last);
    bide_atomic_store(&pool->is_injected, 1, relaxed);
}

/* The ring is full. One coroutine is injected with half of the ring, several without. */
static BIDE_COLD void pool_overflow(bide_pool_worker *worker, bide_awaiter *first,
                                    bide_awaiter *last)
{
    bide_thread_pool *pool = worker->pool;
    bide_awaiter_chain chain = {NULL, NULL};
    if (first == last && !bide_run_queue_take_half_(&worker->queue, &chain) &&
        bide_run_queue_push_(&worker->queue, first))
        return;
    bide_awaiter_chain_append(&chain, first, last);
    pthread_mutex_lock(&pool->lock);
    bide_pool_inject_(pool, chain.first, chain.last);
    pthread_mutex_unlock(&pool->lock);
}

void bide_pool_push_(bide_pool_worker *worker, bide_awaiter *first, bide_awaiter *last)
{
    for (bide_awaiter *next; first != NULL; first = next) {
        next = first == last ? NULL : first->link; /* once pushed it may run elsewhere */
        if (BIDE_UNLIKELY(!bide_run_queue_push_(&worker->queue, first))) {
            pool_overflow(worker, first, last);
            break;
        }
    }
    bide_pool_tell_(worker->pool);
}

void bide_pool_hand_over_(bide_pool_worker *worker, bide_awaiter *awaiter)
{
    bide_thread_pool *pool = worker->pool;
    bide_awaiter *before = bide_pool_slot_put_(&worker->lifo_slot, awaiter);
    if (BIDE_UNLIKELY(before != NULL)) {
        bide_pool_push_(worker, before, before);
        return;
    }
    bide_atomic_fence_light(); /* 5; partner: the heavy fence of a sleeper, or of the timekeeper */
    if (BIDE_UNLIKELY(bide_atomic_load(&pool->watched, relaxed) == 0 &&
                      bide_pool_sleeping_(bide_atomic_load(&pool->idle, relaxed)) != 0))
        bide_pool_request_watch_(pool);
}

/* By a thread that is not of the pool. */
static void pool_post_from_outside(bide_thread_pool *pool, bide_awaiter *first, bide_awaiter *last)
{
    if (BIDE_UNLIKELY(bide_is_inherited_(pool->generation))) /* (its lock may be held for ever) */
        bide_misuse_(
            "a coroutine is posted to a thread pool in a child of the process that created it",
            __func__, __FILE__, __LINE__);
    pthread_mutex_lock(&pool->lock);
    bide_pool_inject_(pool, first, last);
    bide_pool_worker *woken = bide_pool_pop_sleeper_(pool);
    bide_pool_unlock_and_wake_(pool, woken); /* 7 */
}

void bide_pool_post_(bide_scheduler *scheduler, bide_awaiter *first, bide_awaiter *last)
{
    bide_thread_pool *pool = bide_container_of(scheduler, bide_thread_pool, scheduler);
    bide_pool_worker *worker = pool_poster_of(pool);
    if (worker == NULL)
        pool_post_from_outside(pool, first, last);
    else if (first == last)
        bide_pool_hand_over_(worker, first);
    else
        bide_pool_push_(worker, first, last);
}

void bide_pool_post_last_(bide_scheduler *scheduler, bide_awaiter *awaiter)
{
    bide_thread_pool *pool = bide_container_of(scheduler, bide_thread_pool, scheduler);
    bide_pool_worker *worker = pool_poster_of(pool);
    if (worker == NULL ||
        !bide_run_queue_push_(&worker->queue, awaiter)) /* (of a full ring none moves: 8) */
        pool_post_from_outside(pool, awaiter, awaiter);
    else
        bide_pool_tell_(pool);
}

/* ---- Taking work ---- */

/*
 * Moves a batch of injected coroutines to the end of the ring. If `takes_oldest`, returns the oldest
 * instead, which needs no room (8). NULL: there was none.
 */
static bide_awaiter *worker_take_injected(bide_pool_worker *worker, bool takes_oldest)
{
    bide_thread_pool *pool = worker->pool;
    pthread_mutex_lock(&pool->lock);
    bide_chain_rewind_(&pool->injected, &pool->passed);
    bide_awaiter *oldest = takes_oldest ? pool->injected.first : NULL;
    if (oldest != NULL)
        pool->injected.first = oldest->link;
    for (unsigned i = 0; i < INJECTED_BATCH && pool->injected.first != NULL; i++) {
        bide_awaiter *first = pool->injected.first;
        bide_awaiter *next = first->link; /* once pushed it may run elsewhere */
        if (!bide_run_queue_push_(&worker->queue, first))
            break;
        pool->injected.first = next;
        worker->injected_end = bide_run_queue_end_(&worker->queue);
    }
    if (pool->injected.first == NULL)
        bide_atomic_store(&pool->is_injected, 0, relaxed);
    pthread_mutex_unlock(&pool->lock);
    return oldest;
}

BIDE_INLINE void worker_end_turn(bide_pool_worker *worker)
{
    if (BIDE_UNLIKELY(bide_is_inherited_(worker->pool->generation)))
        bide_misuse_("a coroutine of a thread pool has suspended, or ended, in a child of the "
                     "process that created it",
                     __func__, __FILE__, __LINE__);
#if BIDE_DEBUG
    if (BIDE_UNLIKELY(worker->regions != 0))
        bide_misuse_(
            "a coroutine has suspended, or ended, in a region in which its thread may block",
            "bide_blocking_here_begin", __FILE__, __LINE__);
#endif
    bide_fork_task_leave_(worker);
}

static void worker_run(bide_pool_worker *worker, bide_awaiter *awaiter)
{
    bide_thread_pool *pool = worker->pool;
    bide_pool_found_(worker);
    bide_atomic_store(&worker->turns, bide_atomic_load(&worker->turns, relaxed) + 1, relaxed);
    if (BIDE_LIKELY(!pool->are_turns_timed)) {
        bide_resume(awaiter->frame);
        worker_end_turn(worker);
        return;
    }
    uint64_t begin = bide_platform.now();
    bide_resume(awaiter->frame);
    worker_end_turn(worker);
    size_t time = (size_t)(bide_platform.now() - begin);
    if (time > bide_atomic_load(&worker->longest, relaxed))
        bide_atomic_store(&worker->longest, time, relaxed);
}

void bide_pool_forget_pace_(bide_pool_worker *worker)
{
    enum { FIRST = BIDE_CHECK ? BIDE_POOL_MAINTENANCE_TURNS_ : BIDE_LOOK_FIRST_ };
    unsigned max = worker->pool->look_turns_max;
    unsigned first = FIRST < max ? (unsigned)FIRST : max;
    worker->maintenance_turns = first;
    if (worker->maintenance_countdown >
        first) /* (it comes, however often the worker is out of work) */
        worker->maintenance_countdown = first;
    worker->maintained = 0;
}

/* Sets the next maintenance; true: the driver is due. (That may be a call of the system: not after a few short turns.) */
static bool worker_keep_pace(bide_pool_worker *worker, uint64_t now)
{
    unsigned turns = worker->maintenance_turns;
    uint64_t time = worker->maintained != 0 ? now - worker->maintained : 0;
    if (worker->maintained != 0)
        worker->maintenance_turns = bide_look_turns_(turns, worker->pool->look_turns_max, time);
    /* (at least 2: between two looks, each of which may run an injected coroutine, one of the ring runs; 8) */
    worker->maintenance_countdown = worker->maintenance_turns > 1 ? worker->maintenance_turns : 2;
    worker->maintained = now;
    /* (by a time of its own: a worker may be out of work between any two maintenances) */
    if (now - worker->looked < BIDE_LOOK_TIME_ / 4)
        return false;
    worker->looked = now;
    return true;
}

/*
 * Whether a look runs what it finds at once: not if others of its kind, which it would overtake, are in the
 * ring, where they end at `end`. If the ring is full there is no choice (8).
 */
static bool worker_runs_at_once(bide_pool_worker *worker, uint32_t end)
{
    return bide_run_queue_is_past_(&worker->queue, end) ||
           bide_run_queue_room_(&worker->queue) == 0;
}

/*
 * Returns a coroutine that runs before those of the slot and the ring (8); NULL: none. If there are two, a
 * due timer's and an injected one, it runs the first itself, before it takes the second: while the first
 * runs, the other is where all find it.
 */
static BIDE_NOINLINE bide_awaiter *worker_maintenance(bide_pool_worker *worker)
{
    bide_thread_pool *pool = worker->pool;
    bide_awaiter *due = NULL;
    uint64_t now = bide_platform.now();
    worker->halts = bide_atomic_load(&pool->halted, relaxed) != 0 || bide_pool_is_spared_(worker);
    if (worker_keep_pace(worker, now) && pool->driver != NULL)
        pool->driver->look(pool->driver, worker->index);
    if (bide_pool_next_timer_(pool) <= now) { /* (of all wheels: 8) */
        if (worker_runs_at_once(worker, worker->due_end))
            due = bide_pool_take_due_timers_(worker, now);
        else
            bide_pool_push_due_timers_(worker, now);
    }
    if (bide_atomic_load(&pool->is_injected, relaxed) == 0)
        return due;
    if (due != NULL)
        bide_pool_run_(worker, due);
    bide_awaiter *injected =
        worker_take_injected(worker, worker_runs_at_once(worker, worker->injected_end));
    bide_pool_tell_(pool);
    return injected;
}

/* From the worker's own slot and ring, or what its maintenance gives; NULL: nothing. */
static bide_awaiter *worker_take_own(bide_pool_worker *worker)
{
    bide_awaiter *awaiter;
    if (BIDE_UNLIKELY(--worker->maintenance_countdown == 0) &&
        (awaiter = worker_maintenance(worker)) != NULL)
        return awaiter;
    awaiter = bide_pool_slot_take_(&worker->lifo_slot);
    if (awaiter != NULL) {
        if (worker->lifo_polls < LIFO_POLLS || bide_run_queue_is_empty_(&worker->queue)) {
            worker->lifo_polls++;
            return awaiter;
        }
        bide_pool_push_(worker, awaiter, awaiter);
    }
    worker->lifo_polls = 0;
    return worker->pool->places == 1 ? bide_run_queue_take_alone_(&worker->queue)
                                     : bide_run_queue_take_(&worker->queue);
}

bool bide_pool_run_one_(bide_pool_worker *worker, unsigned victims)
{
    bide_thread_pool *pool = worker->pool;
    bide_assert(worker == this_worker);
    bide_awaiter *awaiter = worker_take_own(worker);
    if (awaiter == NULL) {
        bide_pool_forget_pace_(worker);
        if (bide_atomic_load(&pool->is_injected, relaxed) != 0)
            awaiter = worker_take_injected(worker, true);
        if (awaiter == NULL)
            awaiter = bide_pool_steal_(worker, victims);
        /* The others that came with it are in this ring only now: a worker that looked earlier may
         * be asleep. */
        if (!worker->is_searching && !bide_run_queue_is_empty_(&worker->queue))
            bide_pool_tell_(pool);
        if (awaiter == NULL) {
            /* Last: the owner runs the halves on its deque in time without this worker, but not the
             * coroutines in its ring.
             * acquire: partner is the release of bide_pool_set_deque_hooks_ */
            const bide_pool_deque_hooks *hooks = bide_atomic_load(&pool->deque_hooks, acquire);
            return hooks != NULL && hooks->run(worker);
        }
    }
    worker_run(worker, awaiter);
    return true;
}

/* (worker_run is a function of its own, so that the compiler may inline it above) */
void bide_pool_run_(bide_pool_worker *worker, bide_awaiter *awaiter)
{
    worker_run(worker, awaiter);
}

void bide_pool_set_deque_hooks_(bide_thread_pool *pool, const bide_pool_deque_hooks *hooks)
{
    /* release: partner is the load in bide_pool_run_one_ */
    if (bide_atomic_load(&pool->deque_hooks, relaxed) != hooks)
        bide_atomic_store(&pool->deque_hooks, hooks, release);
}

/* ---- Forks ---- */

#if !BIDE_CHECK

/*
 * The forking thread was a worker's, or it was none: it may have its coroutine's code to run, and there is no pool to post
 * to. If it waits, no thread of the pool is blocked.
 */
static void worker_in_child(bool was_alone)
{
    (void)was_alone;
    bide_pool_post_here_(NULL);
    bide_pool_here_set_(NULL);
}

static const bide_fork_handlers_ worker_fork_handlers = {BIDE_FORK_SCHEDULE_, NULL, NULL,
                                                         worker_in_child};

__attribute__((constructor)) static void worker_register(void)
{
    static bide_fork_registration_ registration = {&worker_fork_handlers, NULL};
    bide_fork_register_(&registration);
}

#endif

/* ---- The worker's thread ---- */

void bide_pool_post_here_(bide_pool_worker *worker)
{
    this_poster = worker;
}

void bide_pool_enter_(bide_pool_worker *worker)
{
    this_worker = worker;
    bide_pool_post_here_(worker != NULL && worker->regions == 0 ? worker : NULL);
    bide_join_here_ = worker != NULL ? &worker->join : NULL;
    bide_pool_here_set_(worker != NULL ? &worker->pool->blocked.functions : NULL);
}

/* Of a spare worker that may not be needed any more. True: it is dormant. */
static BIDE_COLD bool worker_retires(bide_pool_worker *worker)
{
    bide_pool_found_(worker);
    worker->halts = false;
    return bide_pool_retire_(worker);
}

bool bide_pool_work_(bide_pool_worker *worker)
{
    bool retires = false;
    bide_assert(this_worker == NULL);
    bide_pool_enter_(worker);
    worker->halts = false;
    while (!retires) {
        if (bide_pool_run_one_(worker, worker->pool->places) || bide_pool_search_(worker)) {
            if (BIDE_LIKELY(!worker->halts))
                continue;
            bide_pool_found_(worker);
            if (bide_atomic_load(&worker->pool->halted, relaxed) != 0)
                break;
            retires = worker_retires(worker);
            continue;
        }
        retires = bide_pool_is_spared_(worker) && worker_retires(worker);
        if (!retires && !bide_pool_sleep_(worker))
            break;
    }
    bide_assert(!worker->is_searching);
    bide_pool_enter_(NULL);
    return retires;
}

/* ---- The scheduler's other functions ---- */

bool bide_pool_is_idle_(bide_scheduler *scheduler)
{
    bide_thread_pool *pool = bide_container_of(scheduler, bide_thread_pool, scheduler);
    bide_pool_worker *worker = pool_poster_of(pool);
    return bide_atomic_load(&pool->is_injected, relaxed) == 0 &&
           (worker == NULL || (bide_pool_slot_is_empty_(&worker->lifo_slot) &&
                               bide_run_queue_is_empty_(&worker->queue)));
}

/*
 * Searches another worker's ring as a thief; the coroutines before it are injected. (Workers that
 * could run `awaiter` meanwhile are busy, or the caller may not take it back.)
 */
static bool pool_take_back_from_other(bide_pool_worker *victim, const bide_awaiter *awaiter)
{
    bide_thread_pool *pool = victim->pool;
    bide_awaiter_chain others = {NULL, NULL};
    bide_pool_worker *woken = NULL;
    bool found = false;
    if (!bide_run_queue_has_(&victim->queue, awaiter))
        return false;
    while (!found && !bide_run_queue_is_empty_(&victim->queue)) {
        bide_awaiter *taken = bide_run_queue_steal_one_(&victim->queue);
        found = taken == awaiter;
        if (taken == NULL || found)
            continue;
        taken->link = NULL;
        bide_awaiter_chain_append(&others, taken, taken);
    }
    if (others.first == NULL)
        return found;
    pthread_mutex_lock(&pool->lock);
    bide_pool_inject_(pool, others.first, others.last);
    woken = bide_pool_pop_sleeper_(pool);
    bide_pool_unlock_and_wake_(pool, woken);
    return found;
}

/* Searches the caller's own ring, whose order stays. */
static bool pool_take_back_from_own(bide_pool_worker *worker, const bide_awaiter *awaiter)
{
    bide_awaiter_chain others = {NULL, NULL};
    bool found = false;
    if (!bide_run_queue_has_(&worker->queue, awaiter))
        return false;
    for (bide_awaiter *taken; (taken = bide_run_queue_take_(&worker->queue)) != NULL;) {
        found |= taken == awaiter;
        if (taken == awaiter)
            continue;
        taken->link = NULL;
        bide_awaiter_chain_append(&others, taken, taken);
    }
    if (others.first != NULL)
        bide_pool_push_(worker, others.first, others.last);
    return found;
}

static bool pool_take_back_injected(bide_thread_pool *pool, bide_awaiter *awaiter)
{
    pthread_mutex_lock(&pool->lock);
    bool found = bide_chain_remove_(&pool->injected, &pool->passed, awaiter);
    if (pool->injected.first == NULL)
        bide_atomic_store(&pool->is_injected, 0, relaxed);
    pthread_mutex_unlock(&pool->lock);
    return found;
}

bool bide_pool_take_back_(bide_scheduler *scheduler, bide_awaiter *awaiter)
{
    bide_thread_pool *pool = bide_container_of(scheduler, bide_thread_pool, scheduler);
    if (BIDE_UNLIKELY(bide_is_inherited_(pool->generation))) /* (its lock may be held for ever) */
        bide_misuse_("a woken coroutine of a thread pool is destroyed in a child of the process "
                     "that created it",
                     __func__, __FILE__, __LINE__);
    bide_pool_worker *own = pool_poster_of(pool);
    for (unsigned i = 0; i < pool->places; i++) {
        bide_pool_worker *worker = &pool->workers[i];
        if (bide_pool_slot_remove_(&worker->lifo_slot, awaiter))
            return true;
        if (worker == own ? pool_take_back_from_own(worker, awaiter)
                          : pool_take_back_from_other(worker, awaiter))
            return true;
    }
    return pool_take_back_injected(pool, awaiter);
}

/*
 * What the workers of a thread pool do.
 *
 * A coroutine that is ready is in one of these places:
 *
 *     a worker's slot     was woken last by the coroutine that runs there: it runs next, where what
 *                         the two share is in the cache, unless that was so SLOT_TURNS times in a
 *                         row; then it goes to the ring's end
 *     a worker's ring     was woken there before that, or let others run first (run_queue.h)
 *     `injected`          was posted from outside, or found a ring full; under the lock
 *
 * A worker takes from its slot, its ring, `injected`, and the other workers' rings, in that order.
 * Once in BIDE_POOL_LOOK_TURNS_ turns it moves what is injected to the end of its ring, and looks at
 * the clock.
 *
 *     runs --nothing of its own--> searches --nothing anywhere--> sleeps --woken--> searches
 *       ^                              |
 *       +-----------found--------------+
 *
 * `idle` counts those who search and those who sleep, in one word. Who makes work wakes a sleeper,
 * which searches then, unless one searches already. Only modifications of `idle` under the lock
 * change the number of sleepers.
 *
 * Why no wake-up is lost: while there is something in a ring or injected, not every worker that
 * could take it sleeps.
 *
 * 1. A worker that pushes to its ring, or fills it with what it has stolen or what was injected,
 *    passes a light fence and then reads `idle` (bide_pool_tell_); one that searches does what 3
 *    says instead, when it has found something.
 *    A worker that is about to sleep changes `idle`, passes a heavy fence, and then looks at all
 *    rings. The two fences order each other. So either the first reads the change, or what comes
 *    after it, or the second sees what was pushed.
 * 2. The first reads no sleeper: whoever sleeps later sees what was pushed, by 1, and does not.
 * 3. The first reads that somebody searches. Consider the change of `idle` that comes after what it
 *    read and leaves nobody who searches. Made by a worker that goes to sleep: it sees what was
 *    pushed, by 1. Made by one that has found something (bide_pool_stop_searching_): if nobody
 *    sleeps then, 2. Otherwise it passes a heavy fence, looks at the rings, and wakes another for
 *    what is there. It leaves that out if all others sleep, since then nobody but itself had a ring
 *    to push to.
 * 4. What is injected from outside is injected under the lock, and `idle` is read under it too. A
 *    worker looks at what is injected under the lock before it counts itself as a sleeper under it,
 *    and after it has been the last to search, if somebody sleeps. So it is as in 1 to 3, by the
 *    lock.
 * 5. What is in the slot of a worker is taken by that worker when its coroutine suspends. If that
 *    takes long it is another's to take. To wake one for each would make two coroutines that wake
 *    each other run on two processors, and so the slot wakes nobody. But while there is something
 *    in a slot, no worker sleeps without one that watches: the keeper, who wakes now and then, and
 *    takes what has stood in a slot since the last time. Who fills a slot passes a light fence and
 *    reads `watched` and `idle`; if some sleep and none watches it calls for one. The keeper that
 *    stops watching, and each worker that falls asleep, passes a heavy fence and looks at the
 *    slots, so that again one of the two sees the other.
 *
 * Why nobody starves: a coroutine in a ring has at most BIDE_RUN_QUEUE_SIZE_ before it, and each of
 * these lets at most SLOT_TURNS others run from the slot, and as many as were injected come behind
 * it. What is injected comes to a ring's end when all that was injected before it has, some at a
 * look. A coroutine that does not suspend keeps nothing from being run but what is not ready.
 *
 * Timers have a lock of their own. Of the workers that sleep one at most is the keeper: it sleeps
 * until the earliest timer is due.
 *
 * 6. No timer is missed. The thread that sets the earliest has put it among the timers, and said
 *    so in `has_timers`, before it takes the lock and looks for a keeper. If there is one, it pokes
 *    it, by a store that releases: the keeper's next look at its word acquires that. If not, and
 *    some sleep, it wakes one, or one searches. That one falls asleep as the keeper, under the lock
 *    and so after that; or it finds something to run, sees `has_timers` under the lock, and wakes
 *    another. If none sleeps the workers look at the clock, some turns apart.
 * 7. A post from outside may be the last thing that keeps the pool: what is posted may run at once,
 *    and somebody may destroy the pool then. So a poster uses nothing of it once it has freed the
 *    lock, but the address that a worker sleeps on. A driver's `wake` uses more, and is called
 *    under the lock.
 *
 * A pool with a driver sleeps in that. Its `wake` ends the sleep that is, or the next. A worker that
 * something has come for leaves the set of the idle by itself, before it posts what that has woken;
 * so the posts do not find it asleep.
 */
#define _GNU_SOURCE
#include "worker.h"

#include "fork_stacks.h"

#include "../../coroutine/internal.h"
#include "../../coroutine/observe.h"

#include <errno.h>

enum { PARKED = 1, POKE = 2 }; /* of `parked`; pokes are counted above the first bit */

enum { SLOT_TURNS = 3, BATCH = BIDE_CHECK ? 2 : 32 };

static BIDE_THREAD_LOCAL bide_pool_worker *this_worker;

bide_pool_worker *bide_pool_this_worker_(void)
{
    return this_worker;
}

bide_pool_worker *bide_pool_worker_of_(const bide_thread_pool *pool)
{
    bide_pool_worker *worker = this_worker;
    return worker != NULL && worker->pool == pool ? worker : NULL;
}

/* ---- The idle; under the lock ---- */

/* Frees the lock, and wakes a worker, if not NULL. */
static void unlock_and_wake(bide_thread_pool *pool, bide_pool_worker *worker)
{
    bool has_driver = pool->driver != NULL;
    if (worker != NULL && has_driver)
        pool->driver->wake(pool->driver, worker->index); /* 7 */
    pthread_mutex_unlock(&pool->lock);
    if (worker != NULL && !has_driver)
        bide_platform.wake(&worker->parked, 1);
}

/* Takes one that sleeps off the list; it searches from here on, and is to be woken. */
static void leave(bide_thread_pool *pool, bide_pool_worker *worker)
{
    bide_pool_worker **place = &pool->first_idle;
    while (*place != worker)
        place = &(*place)->next_idle;
    *place = worker->next_idle;
    if (pool->keeper == worker)
        pool->keeper = NULL;
    bide_atomic_fetch_add(&pool->idle, (uint32_t)BIDE_POOL_SEARCHES_ - BIDE_POOL_SLEEPS_, relaxed);
    bide_atomic_store(&worker->parked, 0, relaxed);
}

/* Takes the one that fell asleep last, the keeper only if it is alone; NULL: none sleeps. */
static bide_pool_worker *take_sleeper(bide_thread_pool *pool)
{
    bide_pool_worker *worker = pool->first_idle;
    if (worker == NULL)
        return NULL;
    if (worker == pool->keeper && worker->next_idle != NULL)
        worker = worker->next_idle;
    leave(pool, worker);
    return worker;
}

/* The same unless one searches. */
static bide_pool_worker *take_sleeper_if_needed(bide_thread_pool *pool)
{
    /* relaxed: 4, by the lock; or 3 */
    return bide_pool_searching_(bide_atomic_load(&pool->idle, relaxed)) == 0 ? take_sleeper(pool)
                                                                             : NULL;
}

/* Has the keeper look at the timers and the slots again; if there is none, makes one. */
static bide_pool_worker *poke_keeper(bide_thread_pool *pool)
{
    bide_pool_worker *keeper = pool->keeper;
    if (keeper == NULL)
        return take_sleeper_if_needed(pool);
    uint32_t parked = bide_atomic_load(&keeper->parked, relaxed);
    /* release: 6; partner is the keeper's load */
    bide_atomic_store(&keeper->parked, parked + POKE, release);
    return keeper;
}

BIDE_COLD void bide_pool_wake_(bide_thread_pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    bide_pool_worker *worker = take_sleeper_if_needed(pool);
    unlock_and_wake(pool, worker);
}

/* Something is in a slot, and nobody watches. */
static BIDE_COLD void call_watcher(bide_thread_pool *pool)
{
    bide_pool_worker *worker = NULL;
    pthread_mutex_lock(&pool->lock);
    if (bide_atomic_load(&pool->watched, relaxed) == 0 && pool->first_idle != NULL) {
        bide_atomic_store(&pool->watched, 1, relaxed);
        worker = poke_keeper(pool);
    }
    unlock_and_wake(pool, worker);
}

/* ---- Making work ---- */

/* With the lock. */
static void inject(bide_thread_pool *pool, bide_awaiter *first, bide_awaiter *last)
{
    bide_awaiter_chain_append(&pool->injected, first, last);
    bide_atomic_store(&pool->is_injected, 1, relaxed);
}

/* The ring is full: one goes with half of the ring, several by themselves. */
static BIDE_COLD void overflow(bide_pool_worker *worker, bide_awaiter *first, bide_awaiter *last)
{
    bide_thread_pool *pool = worker->pool;
    bide_awaiter_chain chain = {NULL, NULL};
    if (first == last && !bide_run_queue_take_half_(&worker->queue, &chain) &&
        bide_run_queue_push_(&worker->queue, first))
        return;
    bide_awaiter_chain_append(&chain, first, last);
    pthread_mutex_lock(&pool->lock);
    inject(pool, chain.first, chain.last);
    pthread_mutex_unlock(&pool->lock);
}

void bide_pool_push_(bide_pool_worker *worker, bide_awaiter *first, bide_awaiter *last)
{
    for (bide_awaiter *next; first != NULL; first = next) {
        next = first == last ? NULL : first->link; /* once pushed it may run elsewhere */
        if (BIDE_UNLIKELY(!bide_run_queue_push_(&worker->queue, first))) {
            overflow(worker, first, last);
            break;
        }
    }
    bide_pool_tell_(worker->pool);
}

void bide_pool_hand_over_(bide_pool_worker *worker, bide_awaiter *awaiter)
{
    bide_thread_pool *pool = worker->pool;
    bide_awaiter *before = bide_pool_slot_put_(&worker->slot, awaiter);
    if (BIDE_UNLIKELY(before != NULL)) {
        bide_pool_push_(worker, before, before);
        return;
    }
    bide_atomic_fence_light(); /* 5; partner: the heavy fence of who sleeps or stops watching */
    if (BIDE_UNLIKELY(bide_atomic_load(&pool->watched, relaxed) == 0 &&
                      bide_pool_sleeping_(bide_atomic_load(&pool->idle, relaxed)) != 0))
        call_watcher(pool);
}

/* From a thread that is none of the pool's. */
static void post_from_outside(bide_thread_pool *pool, bide_awaiter *first, bide_awaiter *last)
{
    pthread_mutex_lock(&pool->lock);
    inject(pool, first, last);
    bide_pool_worker *woken = take_sleeper_if_needed(pool);
    unlock_and_wake(pool, woken); /* 7 */
}

void bide_pool_post_(bide_scheduler *scheduler, bide_awaiter *first, bide_awaiter *last)
{
    bide_thread_pool *pool = bide_container_of(scheduler, bide_thread_pool, scheduler);
    bide_pool_worker *worker = bide_pool_worker_of_(pool);
    if (worker == NULL)
        post_from_outside(pool, first, last);
    else if (first == last)
        bide_pool_hand_over_(worker, first);
    else
        bide_pool_push_(worker, first, last);
}

void bide_pool_post_last_(bide_scheduler *scheduler, bide_awaiter *awaiter)
{
    bide_thread_pool *pool = bide_container_of(scheduler, bide_thread_pool, scheduler);
    bide_pool_worker *worker = bide_pool_worker_of_(pool);
    if (worker == NULL)
        post_from_outside(pool, awaiter, awaiter);
    else
        bide_pool_push_(worker, awaiter, awaiter);
}

/* ---- Timers ---- */

static uint64_t next_timer(bide_thread_pool *pool)
{
    pthread_mutex_lock(&pool->timers_lock);
    uint64_t next = bide_timers_next(&pool->timers);
    pthread_mutex_unlock(&pool->timers_lock);
    return next;
}

/* With the lock of the timers. */
static void note_timers(bide_thread_pool *pool)
{
    uint32_t has = bide_timers_next(&pool->timers) != BIDE_FOREVER;
    if (bide_atomic_load(&pool->has_timers, relaxed) != has)
        bide_atomic_store(&pool->has_timers, has, relaxed);
}

int bide_pool_set_timer_(bide_scheduler *scheduler, bide_timer *timer)
{
    bide_thread_pool *pool = bide_container_of(scheduler, bide_thread_pool, scheduler);
    bide_pool_worker *woken = NULL;
    pthread_mutex_lock(&pool->timers_lock);
    bool is_earliest = bide_timers_insert(&pool->timers, timer);
    note_timers(pool);
    pthread_mutex_unlock(&pool->timers_lock);
    if (!is_earliest)
        return 0;
    pthread_mutex_lock(&pool->lock); /* 6 */
    woken = poke_keeper(pool);
    unlock_and_wake(pool, woken);
    return 0;
}

bool bide_pool_clear_timer_(bide_scheduler *scheduler, bide_timer *timer)
{
    bide_thread_pool *pool = bide_container_of(scheduler, bide_thread_pool, scheduler);
    pthread_mutex_lock(&pool->timers_lock);
    bool cleared = bide_timers_remove(&pool->timers, timer);
    note_timers(pool);
    pthread_mutex_unlock(&pool->timers_lock);
    return cleared;
}

/* Takes those that are due at `now` to the worker's ring. Were there any? */
static bool take_due(bide_pool_worker *worker, uint64_t now)
{
    bide_thread_pool *pool = worker->pool;
    bide_awaiter_chain due = {NULL, NULL};
    pthread_mutex_lock(&pool->timers_lock);
    bide_timers_take_due(&pool->timers, now, &due);
    note_timers(pool);
    pthread_mutex_unlock(&pool->timers_lock);
    if (due.first != NULL)
        bide_pool_push_(worker, due.first, due.last);
    return due.first != NULL;
}

/* ---- Taking work ---- */

/* Moves some of what is injected to the end of the ring. */
static void take_injected(bide_pool_worker *worker)
{
    bide_thread_pool *pool = worker->pool;
    pthread_mutex_lock(&pool->lock);
    for (unsigned i = 0; i < BATCH && pool->injected.first != NULL; i++) {
        bide_awaiter *first = pool->injected.first;
        bide_awaiter *next = first->link; /* once pushed it may run elsewhere */
        if (!bide_run_queue_push_(&worker->queue, first))
            break;
        pool->injected.first = next;
    }
    if (pool->injected.first == NULL)
        bide_atomic_store(&pool->is_injected, 0, relaxed);
    pthread_mutex_unlock(&pool->lock);
}

/* Once in so many turns. */
static BIDE_NOINLINE void look_around(bide_pool_worker *worker)
{
    bide_thread_pool *pool = worker->pool;
    worker->until_look = BIDE_POOL_LOOK_TURNS_;
    if (pool->driver != NULL)
        pool->driver->look(pool->driver, worker->index);
    if (bide_atomic_load(&pool->is_injected, relaxed) != 0) {
        take_injected(worker);
        bide_pool_tell_(pool);
    }
    if (bide_atomic_load(&pool->has_timers, relaxed) != 0) {
        uint64_t now = bide_platform.now();
        if (now >= next_timer(pool))
            take_due(worker, now);
    }
}

/* From its own places; NULL: there is nothing. */
static bide_awaiter *take_own(bide_pool_worker *worker)
{
    if (BIDE_UNLIKELY(--worker->until_look == 0))
        look_around(worker);
    bide_awaiter *awaiter = bide_pool_slot_take_(&worker->slot);
    if (awaiter != NULL) {
        if (worker->streak < SLOT_TURNS || bide_run_queue_is_empty_(&worker->queue)) {
            worker->streak++;
            return awaiter;
        }
        bide_pool_push_(worker, awaiter, awaiter);
    }
    worker->streak = 0;
    return worker->pool->count == 1 ? bide_run_queue_take_alone_(&worker->queue)
                                    : bide_run_queue_take_(&worker->queue);
}

static void note_steal(bide_pool_worker *worker)
{
    bide_atomic_store(&worker->steals, bide_atomic_load(&worker->steals, relaxed) + 1, relaxed);
    BIDE_OBSERVE_(thread, (BIDE_OBSERVED_STEAL));
}

/* From another's ring. */
static bide_awaiter *steal(bide_pool_worker *worker)
{
    bide_thread_pool *pool = worker->pool;
    worker->random = worker->random * 1664525 + 1013904223;
    unsigned at = (worker->random >> 8) % pool->count;
    for (unsigned i = 0; i < pool->count; i++, at = at + 1 == pool->count ? 0 : at + 1) {
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

/* From another's slot. */
static bide_awaiter *steal_slot(bide_pool_worker *worker, bide_pool_worker *victim)
{
    bide_awaiter *awaiter = bide_pool_slot_steal_(&victim->slot);
    if (awaiter != NULL)
        note_steal(worker);
    return awaiter;
}

static void run(bide_pool_worker *worker, bide_awaiter *awaiter)
{
    bide_thread_pool *pool = worker->pool;
    bide_pool_found_(worker);
    bide_atomic_store(&worker->turns, bide_atomic_load(&worker->turns, relaxed) + 1, relaxed);
    if (BIDE_LIKELY(!pool->are_turns_timed)) {
        bide_resume(awaiter->frame);
        bide_fork_task_leave_(worker);
        return;
    }
    uint64_t begin = bide_platform.now();
    bide_resume(awaiter->frame);
    bide_fork_task_leave_(worker);
    size_t time = (size_t)(bide_platform.now() - begin);
    if (time > bide_atomic_load(&worker->longest, relaxed))
        bide_atomic_store(&worker->longest, time, relaxed);
}

bool bide_pool_run_one_(bide_pool_worker *worker)
{
    bide_thread_pool *pool = worker->pool;
    bide_awaiter *awaiter = take_own(worker);
    if (awaiter == NULL) {
        if (bide_atomic_load(&pool->is_injected, relaxed) != 0) {
            take_injected(worker);
            awaiter = bide_run_queue_take_(&worker->queue);
        }
        if (awaiter == NULL)
            awaiter = steal(worker);
        /* What came with it is in this ring only now, and whoever has looked meanwhile sleeps. */
        if (!worker->is_searching && !bide_run_queue_is_empty_(&worker->queue))
            bide_pool_tell_(pool);
        if (awaiter == NULL) {
            /* Last, because what is there runs in time without this worker, and coroutines in the
             * ring of a worker that is busy with it do not.
             * acquire: partner is the release of bide_pool_set_extra_ */
            const bide_pool_extra *extra = bide_atomic_load(&pool->extra, acquire);
            return extra != NULL && extra->run(worker);
        }
    }
    run(worker, awaiter);
    return true;
}

void bide_pool_set_extra_(bide_thread_pool *pool, const bide_pool_extra *extra)
{
    /* release: partner is the load in run_one */
    if (bide_atomic_load(&pool->extra, relaxed) != extra)
        bide_atomic_store(&pool->extra, extra, release);
}

/* ---- Searching ---- */

/* Is there anything that another worker could take, but what is injected? After a heavy fence. */
static bool is_work_in_rings(bide_thread_pool *pool)
{
    for (unsigned i = 0; i < pool->count; i++) {
        if (!bide_run_queue_is_empty_(&pool->workers[i].queue))
            return true;
    }
    const bide_pool_extra *extra = bide_atomic_load(&pool->extra, acquire);
    return extra != NULL && extra->is_there(pool);
}

static bool is_anything_in_slots(bide_thread_pool *pool)
{
    for (unsigned i = 0; i < pool->count; i++) {
        if (!bide_pool_slot_is_empty_(&pool->workers[i].slot))
            return true;
    }
    return false;
}

BIDE_COLD void bide_pool_stop_searching_(bide_pool_worker *worker)
{
    bide_thread_pool *pool = worker->pool;
    worker->is_searching = false;
    /* release: 3; partner is the heavy fence of one that searches on and goes to sleep then: it sees
     * what is in this worker's ring */
    uint32_t idle = bide_atomic_fetch_sub(&pool->idle, BIDE_POOL_SEARCHES_, release);
    if (bide_pool_searching_(idle) != 1 || bide_pool_sleeping_(idle) == 0)
        return;
    if (bide_pool_sleeping_(idle) + 1 < pool->count)
        bide_atomic_fence_heavy(); /* 3; partner: the light fence of bide_pool_tell_ */
    bool is_work = is_work_in_rings(pool);
    bide_pool_worker *woken = NULL;
    pthread_mutex_lock(&pool->lock);
    bool needs_keeper =
        pool->keeper == NULL && (bide_atomic_load(&pool->has_timers, relaxed) != 0 ||
                                 bide_atomic_load(&pool->watched, relaxed) != 0);
    if (is_work || pool->injected.first != NULL || needs_keeper)
        woken = take_sleeper_if_needed(pool);
    unlock_and_wake(pool, woken);
}

/* Counts the worker among those who search, unless they are many already. */
static bool begin_to_search(bide_pool_worker *worker)
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

/* Takes what stands in a slot while the slot's owner is busy with one coroutine. */
static bool run_what_stands_still(bide_pool_worker *worker)
{
    bide_thread_pool *pool = worker->pool;
    for (unsigned i = 0; i < pool->count; i++) {
        bide_pool_worker *victim = &pool->workers[i];
        if (victim == worker || bide_pool_slot_is_empty_(&victim->slot))
            continue;
        size_t turns = bide_atomic_load(&victim->turns, relaxed);
        for (unsigned j = 0; j < BIDE_POOL_STILL_PAUSES_; j++)
            bide_cpu_relax();
        if (bide_atomic_load(&victim->turns, relaxed) != turns)
            continue;
        bide_awaiter *awaiter = steal_slot(worker, victim);
        if (awaiter != NULL) {
            run(worker, awaiter);
            return true;
        }
    }
    return false;
}

/* Looks for something to run, for a while, and runs it. False: there was nothing. */
static bool search(bide_pool_worker *worker)
{
    bide_thread_pool *pool = worker->pool;
    if (!begin_to_search(worker))
        return false;
    uint64_t deadline = BIDE_FOREVER;
    if (bide_atomic_load(&pool->has_timers, relaxed) != 0)
        deadline = next_timer(pool);
    int looks = pool->may_look ? BIDE_POOL_SPINS_ : 0;
    if (pool->driver != NULL) {
        pool->driver->look(pool->driver, worker->index);
        looks = 1; /* what is to come comes from the system */
    }
    for (int i = 0; i < looks; i++) {
        if (bide_pool_run_one_(worker))
            return true;
        if (deadline != BIDE_FOREVER) {
            uint64_t now = bide_platform.now();
            if (now >= deadline && take_due(worker, now))
                return true;
        }
        bide_cpu_relax();
    }
    return run_what_stands_still(worker);
}

/* ---- Sleeping ---- */

/* The keeper sleeps until then. */
static uint64_t keepers_deadline(bide_thread_pool *pool)
{
    uint64_t deadline = BIDE_FOREVER;
    if (bide_atomic_load(&pool->has_timers, relaxed) != 0)
        deadline = next_timer(pool);
    if (bide_atomic_load(&pool->watched, relaxed) != 0) {
        uint64_t next_look = bide_platform.now() + BIDE_POOL_WATCH_;
        if (next_look < deadline)
            deadline = next_look;
    }
    return deadline;
}

/* Returns whether it was still in the set of the idle; it is not now. It searches. */
static bool leave_by_itself(bide_pool_worker *worker)
{
    bide_thread_pool *pool = worker->pool;
    pthread_mutex_lock(&pool->lock);
    bool was_there = (bide_atomic_load(&worker->parked, relaxed) & PARKED) != 0;
    if (was_there)
        leave(pool, worker);
    pthread_mutex_unlock(&pool->lock);
    worker->is_searching = true;
    return was_there;
}

/*
 * The keeper's: puts into its ring what has stood in a slot since the last time. If no slot is
 * filled, and nothing has run meanwhile, it watches no longer.
 */
static bool watch(bide_pool_worker *keeper)
{
    bide_thread_pool *pool = keeper->pool;
    bool is_needed = false;
    for (unsigned i = 0; i < pool->count; i++) {
        bide_pool_worker *victim = &pool->workers[i];
        size_t turns = bide_atomic_load(&victim->turns, relaxed);
        bool is_filled = !bide_pool_slot_is_empty_(&victim->slot);
        bool stands_still = turns == bide_atomic_load(&victim->seen_turns, relaxed);
        bide_atomic_store(&victim->seen_turns, turns, relaxed);
        is_needed |= is_filled || !stands_still;
        if (!is_filled || !stands_still)
            continue;
        bide_awaiter *awaiter = steal_slot(keeper, victim);
        if (awaiter != NULL) {
            leave_by_itself(keeper);
            bide_run_queue_push_(&keeper->queue, awaiter); /* it is empty */
            return true;
        }
    }
    if (is_needed)
        return false;
    bide_atomic_store(&pool->watched, 0, relaxed);
    bide_atomic_fence_heavy(); /* 5; partner: the light fence of who fills a slot */
    if (is_anything_in_slots(pool))
        call_watcher(pool); /* which may be another by now */
    return false;
}

/* The keeper's deadline has come. Has it something to do? Then it sleeps no more. */
static bool keep(bide_pool_worker *keeper, uint64_t deadline)
{
    bide_thread_pool *pool = keeper->pool;
    if (bide_atomic_load(&pool->has_timers, relaxed) != 0 && next_timer(pool) <= deadline) {
        leave_by_itself(keeper);
        take_due(keeper, deadline);
        return true;
    }
    return bide_atomic_load(&pool->watched, relaxed) != 0 && watch(keeper);
}

/* The same in a driver. */
static void wait_in_driver(bide_pool_worker *worker, bool is_keeper)
{
    bide_pool_driver *driver = worker->pool->driver;
    /* acquire: as below */
    while ((bide_atomic_load(&worker->parked, acquire) & PARKED) != 0) {
        uint64_t deadline = is_keeper ? keepers_deadline(worker->pool) : BIDE_FOREVER;
        driver->sleep(driver, worker->index, deadline);
        if (!is_keeper || bide_platform.now() < deadline) {
            leave_by_itself(worker);
            break;
        }
        if (keep(worker, deadline))
            break;
    }
    driver->take(driver, worker->index);
}

static void wait_to_be_woken(bide_pool_worker *worker, bool is_keeper)
{
    if (worker->pool->driver != NULL) {
        wait_in_driver(worker, is_keeper);
        return;
    }
    for (;;) {
        /* acquire: 6; partner is the poke's release */
        uint32_t parked = bide_atomic_load(&worker->parked, acquire);
        if ((parked & PARKED) == 0)
            return;
        uint64_t deadline = is_keeper ? keepers_deadline(worker->pool) : BIDE_FOREVER;
        if (bide_platform.wait(&worker->parked, parked, deadline) == -ETIMEDOUT &&
            keep(worker, deadline))
            return;
    }
}

/* False: the pool ends, and there is nothing left to run. */
static bool sleep_until_woken(bide_pool_worker *worker)
{
    bide_thread_pool *pool = worker->pool;
    pthread_mutex_lock(&pool->lock);
    if (pool->injected.first != NULL || pool->ending) {
        bool is_end = pool->injected.first == NULL;
        if (is_end && worker->is_searching)
            bide_atomic_fetch_sub(&pool->idle, BIDE_POOL_SEARCHES_, relaxed);
        pthread_mutex_unlock(&pool->lock);
        return !is_end;
    }
    bool is_keeper = pool->keeper == NULL;
    if (is_keeper)
        pool->keeper = worker;
    worker->next_idle = pool->first_idle;
    pool->first_idle = worker;
    bide_atomic_store(&worker->parked, PARKED, relaxed);
    bide_atomic_fetch_add(
        &pool->idle, (uint32_t)BIDE_POOL_SLEEPS_ - (worker->is_searching ? BIDE_POOL_SEARCHES_ : 0),
        relaxed);
    pthread_mutex_unlock(&pool->lock);
    worker->is_searching = false;
    bide_atomic_fence_heavy(); /* 1, 5; partners: the light fences of tell and hand_over */
    if (is_work_in_rings(pool)) {
        leave_by_itself(worker);
        return true;
    }
    if (bide_atomic_load(&pool->watched, relaxed) == 0 && is_anything_in_slots(pool))
        call_watcher(pool);
    bide_atomic_store(&worker->sleeps, bide_atomic_load(&worker->sleeps, relaxed) + 1, relaxed);
    if (pool->hooks.before_sleep != NULL)
        pool->hooks.before_sleep(pool->hooks.argument, worker->index);
    BIDE_OBSERVE_(thread, (BIDE_OBSERVED_SLEEP));
    wait_to_be_woken(worker, is_keeper);
    BIDE_OBSERVE_(thread, (BIDE_OBSERVED_WAKE));
    worker->is_searching = true;
    if (pool->hooks.after_wake != NULL)
        pool->hooks.after_wake(pool->hooks.argument, worker->index);
    return true;
}

void bide_pool_work_(bide_pool_worker *worker)
{
    this_worker = worker;
    bide_join_here_ = &worker->join;
    for (;;) {
        if (bide_pool_run_one_(worker) || search(worker))
            continue;
        if (!sleep_until_woken(worker))
            break;
    }
    this_worker = NULL;
    bide_join_here_ = NULL;
}

void bide_pool_end_(bide_thread_pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    pool->ending = true;
    bide_pool_worker *first = NULL;
    while (pool->first_idle != NULL) {
        bide_pool_worker *worker = pool->first_idle;
        leave(pool, worker);
        worker->next_idle = first;
        first = worker;
        if (pool->driver != NULL)
            pool->driver->wake(pool->driver, worker->index);
    }
    bool has_driver = pool->driver != NULL;
    pthread_mutex_unlock(&pool->lock);
    if (has_driver)
        return;
    for (bide_pool_worker *next; first != NULL; first = next) {
        next = first->next_idle;
        bide_platform.wake(&first->parked, 1);
    }
}

/* ---- The scheduler's other functions ---- */

bool bide_pool_is_idle_(bide_scheduler *scheduler)
{
    bide_thread_pool *pool = bide_container_of(scheduler, bide_thread_pool, scheduler);
    bide_pool_worker *worker = bide_pool_worker_of_(pool);
    return bide_atomic_load(&pool->is_injected, relaxed) == 0 &&
           (worker == NULL ||
            (bide_pool_slot_is_empty_(&worker->slot) && bide_run_queue_is_empty_(&worker->queue)));
}

/*
 * Looks for it in the ring of another worker, as a thief: what else is there is injected. Those
 * that could run what is taken out here are busy, or it would be wrong to want it back.
 */
static bool take_back_from_other(bide_pool_worker *victim, const bide_awaiter *awaiter)
{
    bide_thread_pool *pool = victim->pool;
    bide_awaiter_chain others = {NULL, NULL};
    bide_pool_worker *woken = NULL;
    bool found = false;
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
    inject(pool, others.first, others.last);
    woken = take_sleeper_if_needed(pool);
    unlock_and_wake(pool, woken);
    return found;
}

/* The same in the caller's own ring, whose order stays. */
static bool take_back_from_own(bide_pool_worker *worker, const bide_awaiter *awaiter)
{
    bide_awaiter_chain others = {NULL, NULL};
    bool found = false;
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

static bool take_back_injected(bide_thread_pool *pool, bide_awaiter *awaiter)
{
    pthread_mutex_lock(&pool->lock);
    bool found = bide_awaiter_chain_remove(&pool->injected, awaiter);
    if (pool->injected.first == NULL)
        bide_atomic_store(&pool->is_injected, 0, relaxed);
    pthread_mutex_unlock(&pool->lock);
    return found;
}

bool bide_pool_take_back_(bide_scheduler *scheduler, bide_awaiter *awaiter)
{
    bide_thread_pool *pool = bide_container_of(scheduler, bide_thread_pool, scheduler);
    bide_pool_worker *own = bide_pool_worker_of_(pool);
    for (unsigned i = 0; i < pool->count; i++) {
        bide_pool_worker *worker = &pool->workers[i];
        if (bide_pool_slot_remove_(&worker->slot, awaiter))
            return true;
        if (worker == own ? take_back_from_own(worker, awaiter)
                          : take_back_from_other(worker, awaiter))
            return true;
    }
    return take_back_injected(pool, awaiter);
}

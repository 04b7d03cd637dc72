/*
 * Regions in which a worker of a pool blocks, and the spare workers that stand in for it.
 *
 * A spare worker has a place in `workers`, behind the others, with a ring, a slot and a deque of its own. Its thread
 * sleeps while it is dormant. A worker that begins a region moves what is ready on it to `injected`, and wakes a spare
 * one, which works like any other from then on. When the region has ended, one spare worker too many acts: the first
 * that is out of work, or that looks, becomes dormant again.
 *
 *     DORMANT --a region begins--> ACTS --no region needs it--> DORMANT
 *        |                           |
 *        +---------------------------+--the pool ends--> ENDS
 *
 *     parked   DORMANT or ENDS; 0 while it acts, or what it is in the idle set (parking.c)
 *
 * The numbers in parentheses are those of worker.c. Under the pool's lock:
 *
 * A. acting - blocking is the number of spare workers too many, and never negative: a region that finds none too many
 *    wakes a dormant one, or fails. So `count` workers at least are in no region, and not dormant: the workers that the
 *    argument of worker.c speaks of. A blocked worker is awake to it, as in any turn; but what it would do when its turn
 *    has ended, a spare one does in its place, now.
 * B. A worker that blocks keeps nothing that is ready. The coroutines of its slot and its ring are injected when its
 *    region begins. In the region its thread posts like a thread outside the pool. A spare worker that becomes dormant
 *    injects what it has. Each of these is a post from outside in the sense of (4): it takes a sleeper, unless a worker
 *    searches, or wakes the spare one, which looks for what is injected before it sleeps. On a blocked worker's deque
 *    halves of joins and forked parents may stay; idle workers steal them, as they do in any turn.
 * C. A worker that becomes dormant does not search: it has stopped as one does that has found something (3), with the
 *    heavy fence, and has waked another for what there is, or for the timers. It falls asleep in no other sense. All that
 *    could rely on it being awake rely on the worker whose region has ended too: that one sleeps only after it
 *    has looked (1, 2), and it is in its turn or later.
 * D. While the pool ends, no worker ends its thread as long as one of them is in a turn (bide_pool_is_ending_): it may
 *    begin a region still, and wait there for what is posted. So they sleep, and spare ones that act go on acting. The
 *    last that would fall asleep finds all others in the idle set, or dormant: nothing runs any more, and nothing is
 *    ready. It ends them all. If the pool is halted, nothing more runs, and all end.
 * E. `parked` is relaxed: a spare worker that was woken concludes nothing from it, and takes the lock before it takes
 *    what was injected. One that reads an old value waits on the word, whose value has changed.
 *
 * `blocking` and `acting` are read without the lock to see whether there may be one too many (bide_pool_is_spared_). One
 * that acts too long does no harm.
 */
#include "worker.h"

#include "../../system/fork.h"

#include <errno.h>

#undef bide_blocking_here

enum { SPARE_DORMANT = 1, SPARE_ENDS = 3 }; /* of `parked` */

/* ---- Under the lock ---- */

static void spare_make_dormant(bide_pool_worker *spare)
{
    bide_thread_pool *pool = spare->pool;
    bide_atomic_store(&spare->parked, SPARE_DORMANT, relaxed);
    spare->next_idle = pool->first_dormant;
    pool->first_dormant = spare;
}

/* One that acts from now on, and has to be woken; NULL: none is dormant. */
static bide_pool_worker *spare_take_dormant(bide_thread_pool *pool)
{
    bide_pool_worker *spare = pool->first_dormant;
    if (spare == NULL)
        return NULL;
    pool->first_dormant = spare->next_idle;
    bide_atomic_store(&spare->parked, 0, relaxed); /* E */
    bide_atomic_fetch_add(&pool->acting, 1, relaxed);
    return spare;
}

/* B. False: there was nothing. */
static bool spare_inject_all(bide_pool_worker *worker)
{
    bide_awaiter_chain all = {NULL, NULL};
    bide_awaiter *awaiter = bide_pool_slot_take_(&worker->lifo_slot);
    while (awaiter != NULL || (awaiter = bide_run_queue_take_(&worker->queue)) != NULL) {
        awaiter->link = NULL;
        bide_awaiter_chain_append(&all, awaiter, awaiter);
        awaiter = NULL;
    }
    if (all.first != NULL)
        bide_pool_inject_(worker->pool, all.first, all.last);
    return all.first != NULL;
}

/* The calling worker is awake. */
static bool is_another_awake(bide_thread_pool *pool)
{
    uint32_t workers = pool->count + bide_atomic_load(&pool->acting, relaxed);
    return bide_pool_sleeping_(bide_atomic_load(&pool->idle, relaxed)) + 1 != workers;
}

bool bide_pool_is_ending_(bide_thread_pool *pool)
{
    if (!pool->ending || pool->is_over)
        return pool->ending;
    if (is_another_awake(pool)) /* D */
        return false;
    bide_assert(bide_atomic_load(&pool->blocking, relaxed) == 0);
    bide_pool_end_all_(pool);
    return true;
}

void bide_pool_end_dormant_(bide_thread_pool *pool)
{
    while (pool->first_dormant != NULL) {
        bide_pool_worker *spare = pool->first_dormant;
        pool->first_dormant = spare->next_idle;
        bide_atomic_store(&spare->parked, SPARE_ENDS, relaxed); /* E */
        bide_platform.wake(&spare->parked, 1);
    }
}

/* ---- Workers ---- */

void bide_pool_init_spares_(bide_thread_pool *pool)
{
    pool->first_dormant = NULL;
    bide_atomic_init(&pool->blocking, 0);
    bide_atomic_init(&pool->acting, 0);
    bide_atomic_init(&pool->stand_ins, 0);
    for (unsigned i = pool->places; i > pool->count; i--)
        spare_make_dormant(&pool->workers[i - 1]);
}

bool bide_pool_await_region_(bide_pool_worker *worker)
{
    uint32_t parked;
    while ((parked = bide_atomic_load(&worker->parked, relaxed)) == SPARE_DORMANT)
        bide_platform.wait(&worker->parked, parked, BIDE_FOREVER);
    return parked != SPARE_ENDS;
}

bool bide_pool_retire_(bide_pool_worker *worker)
{
    bide_thread_pool *pool = worker->pool;
    bide_pool_worker *woken = NULL;
    bide_assert(!worker->is_searching && worker->regions == 0);
    pthread_mutex_lock(&pool->lock);
    bool retires = bide_pool_is_spared_(worker) && !pool->ending;
    if (retires) {
        if (spare_inject_all(worker))
            woken = bide_pool_pop_sleeper_(pool);
        spare_make_dormant(worker);
        bide_atomic_fetch_sub(&pool->acting, 1, relaxed);
    }
    bide_pool_unlock_and_wake_(pool, woken);
    return retires;
}

/* ---- Regions ---- */

/* False: all spare workers act already. */
static bool region_begin(bide_pool_worker *worker)
{
    bide_thread_pool *pool = worker->pool;
    bide_pool_worker *woken = NULL;
    pthread_mutex_lock(&pool->lock);
    bool is_one_too_many =
        bide_atomic_load(&pool->acting, relaxed) > bide_atomic_load(&pool->blocking, relaxed);
    bool has_spare = is_one_too_many || (woken = spare_take_dormant(pool)) != NULL;
    if (has_spare) {
        spare_inject_all(worker);
        bide_atomic_fetch_add(&pool->blocking, 1, relaxed);
        bide_atomic_fetch_add(&pool->stand_ins, 1, relaxed);
        if (is_one_too_many)
            woken = bide_pool_pop_sleeper_(pool);
    }
    bide_pool_unlock_and_wake_(pool, woken);
    return has_spare;
}

static void region_end(bide_thread_pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    uint32_t blocking = bide_atomic_fetch_sub(&pool->blocking, 1, relaxed);
    bide_assert(blocking != 0);
    (void)blocking;
    pthread_mutex_unlock(&pool->lock);
}

int bide_blocking_here_begin(bide_blocking_region *region)
{
    bide_pool_worker *worker = bide_pool_this_worker_();
    region->worker = NULL;
    if (worker == NULL || worker->pool->places == worker->pool->count ||
        bide_is_inherited_(worker->pool->generation))
        return -ENOTSUP;
    if (worker->regions == 0) {
        if (!region_begin(worker))
            return -EAGAIN;
        bide_pool_post_here_(NULL);
    }
    worker->regions++;
    region->worker = worker;
    return 0;
}

void bide_blocking_here_end(bide_blocking_region *region)
{
    bide_pool_worker *worker = region->worker;
    if (worker == NULL)
        return;
    if (worker != bide_pool_this_worker_() || worker->regions == 0)
        bide_misuse_("a region ends that does not run here", __func__, __FILE__, __LINE__);
    region->worker = NULL;
    if (--worker->regions != 0)
        return;
    if (bide_is_inherited_(worker->pool->generation))
        return;
    bide_pool_post_here_(worker);
    region_end(worker->pool);
}

int bide_blocking_here(void (*function)(void *argument), void *argument)
{
    bide_blocking_region region;
    int status = bide_blocking_here_begin(&region);
    function(argument);
    bide_blocking_here_end(&region);
    return status;
}

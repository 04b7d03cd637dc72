/*
 * The timers of a thread pool: a wheel for each worker, up to BIDE_POOL_WHEELS_MAX_; more workers share them. Each
 * wheel has a lock of its own.
 *
 * A worker sets its timers in its own wheel; a thread outside the pool in the first. `number` of a timer says in which
 * wheel it is, so any thread clears it, under that wheel's lock. Of equal times those of one wheel keep their order;
 * between wheels there is none.
 *
 * A worker that runs looks at all wheels at each maintenance. So timers of a worker whose turn takes long are run by
 * the others, within the event interval. It takes all that are due, and runs them in the order of their times. The
 * timekeeper, a sleeping worker (parking.c), sleeps until the earliest of all wheels.
 *
 * No timer is missed. `kept` of a wheel is the time at which the timekeeper looks at it next, or a later one;
 * BIDE_FOREVER if there is no timekeeper, or it has not looked yet. The numbers of the pool's other arguments are in
 * worker.c.
 *
 * 1. The timekeeper takes the lock of each wheel in turn, before it sleeps. It sleeps until the earliest time that it
 *    found, and notes in each wheel the earliest up to there. So what it notes is never before the end of its sleep.
 * 2. The thread that dismisses the timekeeper, because it is woken or leaves, clears `keeps_time` and then sets `kept`
 *    of each wheel to BIDE_FOREVER. If the timekeeper has not noticed, and takes a wheel's lock later, it sees that
 *    `keeps_time` is 0, and notes nothing. So a time that is noted was noted by the present timekeeper.
 * 3. A thread sets a timer, for `kept` or later. It does nothing more. If the timekeeper is not dismissed, it looks at
 *    the wheel in time, by 1 and 2. If it is dismissed, the dismissing thread takes the wheel's lock after this thread,
 *    and the former timekeeper takes the pool's lock after that. So it sees `next`, or a later value. It falls asleep as
 *    the timekeeper, or beside a later one, which looks at the wheel after the timer was there. Or it finds something
 *    to run, sees `next` under the pool's lock, and wakes another worker if there is no timekeeper (worker.c, 3).
 * 4. A thread sets a timer that is not the earliest of its wheel. An earlier one is there, for which 3, 5 or 6 hold.
 *    The timekeeper that looks at the wheel for that one looks at this one too. Clearing the earlier one does not
 *    change `kept`: the timekeeper looks too early then, and once more.
 * 5. A thread sets the earliest, before `kept`, and some worker sleeps. It takes the pool's lock, and kicks the
 *    timekeeper, which looks at all wheels before it sleeps again. If there is no timekeeper, the thread wakes a
 *    worker, or one searches. That worker sees `next` as the one of 3 does.
 * 6. A thread sets the earliest, before `kept`, and reads in `idle`, after it has released the wheel's lock, that no
 *    worker sleeps. Suppose a timekeeper has looked at this wheel before the timer was there. It was inserted in the
 *    idle set before that, so this thread reads that change of `idle` or a later one; so that timekeeper was removed
 *    from the set. All that are inserted later, and the timekeeper among them, look at the wheel after the timer was
 *    there.
 *
 * So a deadline that is set and cleared again and again kicks the timekeeper once a deadline, not each time.
 *
 * 7. A wheel's lock is a short one, which its last holder still reads when another may hold it. A worker is joined
 *    before the wheels are freed. A thread outside may set the timer whose coroutine has the pool destroyed. So it
 *    holds `outside_lock` from before the timer is there until it has kicked the timekeeper. The destruction takes
 *    that lock once. It is a mutex of such threads alone: a worker never waits for one that waits for a wheel.
 */
#define _GNU_SOURCE
#include "worker.h"

#include "../../coroutine/internal.h"
#include "../../system/fork.h"

enum { WHEEL_SHIFT = 64 - BIDE_POOL_WHEELS_BITS_ };

void bide_pool_init_wheels_(bide_thread_pool *pool)
{
    for (unsigned i = 0; i < pool->wheel_count; i++) {
        bide_pool_wheel *wheel = &pool->wheels[i];
        bide_atomic_init(&wheel->next, BIDE_FOREVER);
        bide_short_lock_init_(&wheel->lock);
        wheel->kept = BIDE_FOREVER;
        bide_timers_init(&wheel->timers);
        wheel->timers.inserted = (uint64_t)i << WHEEL_SHIFT;
    }
    for (unsigned i = 0; i < pool->places; i++)
        pool->workers[i].wheel = &pool->wheels[i % pool->wheel_count];
}

const bide_timers *bide_pool_find_timers_(bide_thread_pool *pool)
{
    for (unsigned i = 0; i < pool->wheel_count; i++) {
        if (pool->wheels[i].timers.first != NULL)
            return &pool->wheels[i].timers;
    }
    return NULL;
}

/* Of one that is set nowhere the number may be another scheduler's. */
static bide_pool_wheel *wheel_of_timer(bide_thread_pool *pool, const bide_timer *timer)
{
    unsigned index = (unsigned)(timer->number >> WHEEL_SHIFT);
    return &pool->wheels[index < pool->wheel_count ? index : 0];
}

/* Under the wheel's lock. */
static void wheel_note_next(bide_pool_wheel *wheel)
{
    uint64_t next = bide_timers_next(&wheel->timers);
    if (bide_atomic_load(&wheel->next, relaxed) != next)
        bide_atomic_store(&wheel->next, next, relaxed);
}

uint64_t bide_pool_next_timer_(bide_thread_pool *pool)
{
    uint64_t earliest = BIDE_FOREVER;
    for (unsigned i = 0; i < pool->wheel_count; i++) {
        uint64_t next = bide_atomic_load(&pool->wheels[i].next, relaxed);
        if (next < earliest)
            earliest = next;
    }
    return earliest;
}

/* True: the timekeeper does not look at this wheel in time, unless it is kicked. */
static bool wheel_insert(bide_pool_wheel *wheel, bide_timer *timer)
{
    bide_short_lock_take_(&wheel->lock);
    bool is_kept = timer->time >= wheel->kept; /* (once it is inserted it may be posted) */
    bool is_earliest = bide_timers_insert(&wheel->timers, timer);
    wheel_note_next(wheel);
    bide_short_lock_free_(&wheel->lock);
    return is_earliest && !is_kept;
}

static bool wheel_remove(bide_pool_wheel *wheel, bide_timer *timer)
{
    bide_short_lock_take_(&wheel->lock);
    bool removed = bide_timers_remove(&wheel->timers, timer);
    wheel_note_next(wheel);
    bide_short_lock_free_(&wheel->lock);
    return removed;
}

static BIDE_COLD void pool_kick(bide_thread_pool *pool)
{
    pthread_mutex_lock(&pool->lock); /* 5 */
    bide_pool_worker *woken = bide_pool_kick_timekeeper_(pool);
    bide_pool_unlock_and_wake_(pool, woken);
}

/* True: the timekeeper has to be kicked. (relaxed: 6) */
static bool pool_insert(bide_thread_pool *pool, bide_pool_wheel *wheel, bide_timer *timer)
{
    return wheel_insert(wheel, timer) &&
           bide_pool_sleeping_(bide_atomic_load(&pool->idle, relaxed)) != 0;
}

static BIDE_COLD void pool_set_outside(bide_thread_pool *pool, bide_timer *timer)
{
    if (BIDE_UNLIKELY(bide_is_inherited_(pool->generation))) /* (the locks may be held for ever) */
        bide_misuse_("a timer of a thread pool is set in a child of the process that created it",
                     __func__, __FILE__, __LINE__);
    pthread_mutex_lock(&pool->outside_lock); /* 7 */
    if (pool_insert(pool, &pool->wheels[0], timer))
        pool_kick(pool);
    pthread_mutex_unlock(&pool->outside_lock);
}

static BIDE_COLD bool pool_clear_outside(bide_thread_pool *pool, bide_timer *timer)
{
    if (BIDE_UNLIKELY(bide_is_inherited_(pool->generation)))
        bide_misuse_(
            "a timer of a thread pool is cleared in a child of the process that created it",
            __func__, __FILE__, __LINE__);
    pthread_mutex_lock(&pool->outside_lock); /* 7 */
    bool cleared = wheel_remove(wheel_of_timer(pool, timer), timer);
    pthread_mutex_unlock(&pool->outside_lock);
    return cleared;
}

void bide_pool_await_outside_(bide_thread_pool *pool)
{
    pthread_mutex_lock(&pool->outside_lock); /* 7 */
    pthread_mutex_unlock(&pool->outside_lock);
}

int bide_pool_set_timer_(bide_scheduler *scheduler, bide_timer *timer)
{
    bide_thread_pool *pool = bide_container_of(scheduler, bide_thread_pool, scheduler);
    const bide_pool_worker *worker = bide_pool_worker_of_(pool);
    if (BIDE_UNLIKELY(worker == NULL || bide_is_inherited_(pool->generation)))
        pool_set_outside(pool, timer);
    else if (pool_insert(pool, worker->wheel, timer))
        pool_kick(pool);
    return 0;
}

bool bide_pool_clear_timer_(bide_scheduler *scheduler, bide_timer *timer)
{
    bide_thread_pool *pool = bide_container_of(scheduler, bide_thread_pool, scheduler);
    if (BIDE_UNLIKELY(bide_pool_worker_of_(pool) == NULL || bide_is_inherited_(pool->generation)))
        return pool_clear_outside(pool, timer);
    return wheel_remove(wheel_of_timer(pool, timer), timer);
}

/* ---- Timers that are due ---- */

static void wheel_take_due(bide_pool_wheel *wheel, uint64_t now, bide_awaiter_chain *due)
{
    if (bide_atomic_load(&wheel->next, relaxed) > now)
        return;
    bide_short_lock_take_(&wheel->lock);
    bide_timers_take_due(&wheel->timers, now, due);
    wheel_note_next(wheel);
    bide_short_lock_free_(&wheel->lock);
}

/*
 * Both have the earliest first, and so has the result; of equal times those of `one` come first. The timers are set
 * nowhere, and not posted yet, so their times stay.
 */
static bide_awaiter_chain due_merge(bide_awaiter_chain one, bide_awaiter_chain other)
{
    bide_awaiter_chain merged = {NULL, NULL};
    if (one.first == NULL)
        return other;
    bide_awaiter **end = &merged.first;
    while (one.first != NULL && other.first != NULL) {
        bool is_other = bide_timer_time_(other.first) < bide_timer_time_(one.first);
        bide_awaiter_chain *from = is_other ? &other : &one;
        *end = from->first;
        end = &from->first->link;
        from->first = *end;
    }
    *end = one.first != NULL ? one.first : other.first;
    merged.last = one.first != NULL ? one.last : other.last;
    return merged;
}

static bide_awaiter_chain pool_take_due_timers(bide_thread_pool *pool, uint64_t now)
{
    bide_awaiter_chain due = {NULL, NULL};
    for (unsigned i = 0; i < pool->wheel_count; i++) {
        bide_awaiter_chain of_wheel = {NULL, NULL};
        wheel_take_due(&pool->wheels[i], now, &of_wheel);
        if (of_wheel.first != NULL)
            due = due_merge(due, of_wheel);
    }
    return due;
}

static void worker_push_timers(bide_pool_worker *worker, bide_awaiter *first, bide_awaiter *last)
{
    bide_pool_push_(worker, first, last);
    worker->due_end = bide_run_queue_end_(&worker->queue);
}

bool bide_pool_push_due_timers_(bide_pool_worker *worker, uint64_t now)
{
    bide_awaiter_chain due = pool_take_due_timers(worker->pool, now);
    if (due.first != NULL)
        worker_push_timers(worker, due.first, due.last);
    return due.first != NULL;
}

bide_awaiter *bide_pool_take_due_timers_(bide_pool_worker *worker, uint64_t now)
{
    bide_awaiter_chain due = pool_take_due_timers(worker->pool, now);
    bide_awaiter *first = due.first;
    if (first != due.last)
        worker_push_timers(worker, first->link, due.last);
    return first;
}

/* ---- The timekeeper ---- */

uint64_t bide_pool_keep_timers_(bide_pool_worker *timekeeper)
{
    bide_thread_pool *pool = timekeeper->pool;
    uint64_t deadline = bide_pool_next_timer_(pool); /* (only so that no wheel is noted too late) */
    for (unsigned i = 0; i < pool->wheel_count; i++) {
        bide_pool_wheel *wheel = &pool->wheels[i];
        bide_short_lock_take_(&wheel->lock);
        uint64_t next = bide_timers_next(&wheel->timers);
        if (next < deadline)
            deadline = next;
        if (bide_atomic_load(&timekeeper->keeps_time, relaxed) != 0) /* relaxed: 2 */
            wheel->kept = deadline;
        bide_short_lock_free_(&wheel->lock);
    }
    return deadline;
}

void bide_pool_dismiss_timekeeper_(bide_pool_worker *timekeeper)
{
    bide_thread_pool *pool = timekeeper->pool;
    bide_atomic_store(&timekeeper->keeps_time, 0, relaxed); /* relaxed: 2 */
    for (unsigned i = 0; i < pool->wheel_count; i++) {
        bide_short_lock_take_(&pool->wheels[i].lock);
        pool->wheels[i].kept = BIDE_FOREVER;
        bide_short_lock_free_(&pool->wheels[i].lock);
    }
}

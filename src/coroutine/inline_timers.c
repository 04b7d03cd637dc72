/*
 * Timers of the inline scheduler. Its coroutines run on whichever thread wakes them, so a thread
 * has to wait for the time, and then runs them:
 *
 *     a keeper      a thread inside bide_sync_wait, for all timers that are set on that thread
 *                   meanwhile. It sleeps until its operation has ended or the earliest of them is
 *                   due. So what begins under a bide_sync_wait and waits for times only stays on
 *                   one thread, and no other thread is made.
 *     the service   a thread of the process, for timers that are set on threads that keep no time,
 *                   and for those that a keeper leaves. It is started when the first of them is
 *                   set.
 *
 * All of these stand under one lock, for a few instructions at a time: any thread may clear a
 * timer, and does not know whose it is. Programs that have a great many timers have a loop or a
 * pool for them, each with its own lock.
 *
 * 1. A timer is in one tree at most. The lock orders setting, clearing, and being taken when it is
 *    due. So clearing it returns true, or it was taken and is posted, but not both.
 * 2. No timer is missed. Its keeper's thread reads the earliest time, and makes its word PARKED,
 *    under one hold of the lock. A timer that comes to be the earliest after that finds
 *    `sleeps_on`: PARKED becomes AWAKE, and the thread is woken, or sleeps not at all, because the
 *    platform's wait compares the word. Then it reads the earliest time again.
 * 3. `sleeps_on` is used under the lock only, and its thread takes it back under the lock before
 *    the word goes.
 * 4. The word has other uses (sync_wait.c: that the wait has ended). All of them are exchanges, or
 *    fail where they find another value.
 * 5. The order of equal times is that of their setting, because they have their numbers from one
 *    count, under the lock. So it survives that a tree is handed on.
 *
 * A keeper that leaves with timers set hands its tree to the service. If no thread can be started
 * for that, it stays, and keeps time, until one can be, or until nothing is left: a wait that ends
 * late, rather than a timer that is lost. Where there are no threads at all the tree stays where
 * the service's would be; the next keeper takes it over.
 *
 * Forks: the child has no service. What that had stays set, as a pool's timers do, but never comes:
 * it can be cleared.
 */
#include "inline_timers.h"

#include "internal.h"
#include "lock.h"
#include "short_lock.h"
#include "timer_tree.h"

#include "bide/errors.h"

enum { AWAKE = BIDE_KEEPER_AWAKE_, PARKED = BIDE_KEEPER_PARKED_ };

/* How long a keeper that has to stay waits before it asks for a thread again. */
#define RETRY_AFTER UINT64_C(20000000)

/* The keeper that the calling thread is. */
static BIDE_THREAD_LOCAL bide_timer_keeper_ *here;

int (*bide_start_timer_service_)(void);

static bide_short_lock_ lock;

/* Under the lock. */
static uint64_t inserted;
static bide_timer_keeper_ service;
static bool ending;
static bide_atomic(uint32_t) is_left; /* where there are no threads: is there anything? */
static bide_awaiter *abandoned;       /* a tree: in a child, what its parent's service had */

/* Whether the service's thread is there, and the lock under which it is started. */
static bide_atomic(uint32_t) starting; /* LOCK_FREE */
static bide_atomic(uint32_t) is_served;
static bide_atomic(uint32_t) service_word;

/* ---- Trees that change hands, with the lock held ---- */

/* There is an earlier timer: its thread looks again. */
static void rouse(bide_timer_keeper_ *keeper)
{
    bide_atomic(uint32_t) *word = keeper->sleeps_on;
    uint32_t parked = PARKED;
    /* relaxed: nothing is handed over by the word; what it is told of stands under the lock. */
    if (word != NULL && bide_atomic_compare_exchange(word, &parked, AWAKE, relaxed, relaxed))
        bide_platform.wake(word, 1);
}

/* Moves a whole tree. */
static void hand_on(bide_awaiter **from, bide_awaiter **to)
{
    bide_awaiter *root = *from;
    *from = NULL;
    if (root != NULL)
        tree_add(to, timer_of(root));
}

/* ---- The service ---- */

/* Sees to it that there is one. */
static int need_service(void)
{
    int error = 0;
    if (bide_start_timer_service_ == NULL)
        return -ENOTSUP;
    /* relaxed, here and below: what it does with a timer is ordered by the lock. */
    if (BIDE_LIKELY(bide_atomic_load(&is_served, relaxed) != 0))
        return 0;
    lock_take(&starting);
    if (bide_atomic_load(&is_served, relaxed) == 0) {
        error = bide_start_timer_service_();
        bide_atomic_store(&is_served, error == 0, relaxed);
    }
    lock_free(&starting);
    return error;
}

void bide_serve_timers_(void)
{
    here = &service;
    service.used = true;
    for (;;) {
        uint64_t next = bide_keeper_park_(&service_word);
        bide_short_lock_take_(&lock);
        bool ends = ending;
        bide_short_lock_free_(&lock);
        if (ends)
            break;
        if (bide_platform.wait(&service_word, PARKED, next) == -ETIMEDOUT)
            bide_keeper_run_due_(next);
    }
    bide_keeper_unpark_();
    here = NULL;
}

/* It runs a coroutine while it sleeps on no word, or, where that one blocks, on another. */
bool bide_end_timer_service_(void)
{
    bide_short_lock_take_(&lock);
    bool ends = service.sleeps_on == &service_word;
    if (ends) {
        ending = true;
        rouse(&service);
    }
    bide_short_lock_free_(&lock);
    return ends;
}

/* ---- Keepers ---- */

bool bide_keep_time_(bide_timer_keeper_ *keeper)
{
    if (here != NULL)
        return false;
    keeper->first = NULL;
    keeper->sleeps_on = NULL;
    keeper->used = false;
    here = keeper;
    /* relaxed: only a look. */
    if (BIDE_UNLIKELY(bide_atomic_load(&is_left, relaxed) != 0)) {
        bide_short_lock_take_(&lock);
        hand_on(&service.first, &keeper->first);
        keeper->used = keeper->first != NULL;
        bide_atomic_store(&is_left, 0, relaxed);
        bide_short_lock_free_(&lock);
    }
    return true;
}

uint64_t bide_keeper_park_(bide_atomic(uint32_t) * word)
{
    uint32_t awake = AWAKE;
    uint64_t next = BIDE_FOREVER;
    if (here->used)
        bide_short_lock_take_(&lock);
    /* relaxed: as in `rouse`. */
    bide_atomic_compare_exchange(word, &awake, PARKED, relaxed, relaxed);
    if (here->used) {
        here->sleeps_on = word;
        next = bide_timer_time_(here->first);
        bide_short_lock_free_(&lock);
    }
    return next;
}

void bide_keeper_unpark_(void)
{
    if (!here->used)
        return;
    bide_short_lock_take_(&lock);
    here->sleeps_on = NULL;
    bide_short_lock_free_(&lock);
}

void bide_keeper_run_due_(uint64_t now)
{
    bide_awaiter_chain due = {NULL, NULL};
    bide_short_lock_take_(&lock);
    here->sleeps_on = NULL;
    if (here != &service || !ending)
        tree_take_due(&here->first, now, &due);
    bide_short_lock_free_(&lock);
    bide_run_chain_(&due);
}

/* Until the service can take what is left, or nothing is. */
static void stay(void)
{
    bide_atomic(uint32_t) word;
    bide_atomic_init(&word, AWAKE);
    while (need_service() != 0) {
        uint64_t next = bide_keeper_park_(&word);
        bide_keeper_unpark_();
        if (next == BIDE_FOREVER)
            return;
        uint64_t retry = bide_platform.now() + RETRY_AFTER;
        if (bide_platform.wait(&word, PARKED, next < retry ? next : retry) == -ETIMEDOUT &&
            next <= retry)
            bide_keeper_run_due_(next);
    }
}

void bide_stop_keeping_time_(bide_timer_keeper_ *keeper)
{
    if (BIDE_UNLIKELY(keeper->used)) {
        bide_short_lock_take_(&lock);
        bool comes = bide_timer_time_(keeper->first) != BIDE_FOREVER;
        bide_short_lock_free_(&lock);
        if (comes && bide_start_timer_service_ != NULL)
            stay();
        bide_short_lock_take_(&lock);
        if (comes && bide_start_timer_service_ == NULL)
            bide_atomic_store(&is_left, 1, relaxed);
        hand_on(&keeper->first, &service.first);
        rouse(&service);
        bide_short_lock_free_(&lock);
    }
    here = NULL;
}

/* ---- The scheduler's two functions ---- */

int bide_inline_set_timer_(bide_scheduler *scheduler, bide_timer *timer)
{
    bide_timer_keeper_ *keeper = here;
    (void)scheduler;
    if (keeper == NULL) {
        int error = need_service();
        if (error != 0)
            return error;
        keeper = &service;
    }
    timer->child = NULL;
    if (keeper == here)
        keeper->used = true;
    bide_short_lock_take_(&lock);
    timer->number = inserted++;
    if (tree_add(&keeper->first, timer) && keeper != here)
        rouse(keeper); /* 2 */
    bide_short_lock_free_(&lock);
    return 0;
}

bool bide_inline_clear_timer_(bide_scheduler *scheduler, bide_timer *timer)
{
    (void)scheduler;
    bide_short_lock_take_(&lock);
    bool cleared = timer->place != NULL; /* 1 */
    if (cleared)
        tree_remove(timer);
    bide_short_lock_free_(&lock);
    return cleared;
}

/* ---- Forks ---- */

void bide_inline_timers_before_fork_(void)
{
    lock_take(&starting);
    bide_short_lock_take_(&lock);
}

void bide_inline_timers_after_fork_(void)
{
    bide_short_lock_free_(&lock);
    lock_free(&starting);
}

void bide_inline_timers_in_child_(void)
{
    bide_short_lock_init_(&lock);
    bide_atomic_init(&starting, LOCK_FREE);
    if (here == &service)
        return;
    hand_on(&service.first, &abandoned);
    service.sleeps_on = NULL;
    bide_atomic_init(&service_word, AWAKE);
    bide_atomic_init(&is_served, 0);
}

#if BIDE_CHECK

void bide_inline_timers_begin_anew_(void)
{
    service = (bide_timer_keeper_){NULL, NULL, false};
    abandoned = NULL;
    ending = false;
}

void bide_end_timer_service_anyhow_(void)
{
    bide_short_lock_take_(&lock);
    ending = true;
    rouse(&service);
    bide_short_lock_free_(&lock);
}

#endif

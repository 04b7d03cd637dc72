/*
 * Timers of the inline scheduler. Its coroutines run on the thread that wakes them, so a thread has
 * to wait for the time, and then runs them:
 *
 *     a keeper      a thread inside bide_sync_wait, for all timers that are set on that thread in
 *                   the meantime. It sleeps until its operation has ended or the earliest timer is
 *                   due. So coroutines under a bide_sync_wait that wait for times only stay on one
 *                   thread, and no other thread is started.
 *     the service   a thread of the process, for timers that are set on threads without a keeper,
 *                   and for timers that a keeper leaves. It is started when the first is set.
 *
 * One lock protects them all, for a few instructions at a time: any thread may clear a timer, and
 * does not know its keeper. Programs that have a great many timers use a loop or a pool, each with
 * its own lock.
 *
 * 1. A timer is in one tree at most. The lock orders setting, clearing, and being taken when it is
 *    due. So clearing it returns true, or it was taken and is posted, but not both.
 * 2. No timer is missed. Its keeper's thread reads the earliest time, and makes its word PARKED,
 *    under one hold of the lock. A timer that comes to be the earliest after that finds
 *    `sleeps_on`: PARKED becomes AWAKE, and the thread is woken, or does not sleep, because the
 *    platform's wait compares the word. Then it reads the earliest time again.
 * 3. `sleeps_on` is used under the lock only, and its thread takes it back under the lock before
 *    the word's memory is freed.
 * 4. The word has other uses (sync_wait.c: that the wait has ended). All of them are exchanges, or
 *    fail where they find another value.
 * 5. The order of equal times is that of their setting, because they have their numbers from one
 *    count, under the lock. So it survives that a tree is handed on.
 *
 * A keeper that leaves with timers set hands its tree to the service. If no thread can be started, it
 * stays, and keeps time, until one can be, or until no timer is left: a late end of a wait is better
 * than a lost timer. On a system without threads the tree stays in the place of the service's; the
 * next keeper takes it over.
 *
 * Forks: the child has no service. The service's timers stay set, as a pool's do, but never fire:
 * they can be cleared.
 */
#include "inline_timers.h"

#include "internal.h"
#include "lock.h"
#include "short_lock.h"
#include "timer_tree.h"

#include "bide/errors.h"

enum { KEEPER_AWAKE = BIDE_KEEPER_AWAKE_, KEEPER_PARKED = BIDE_KEEPER_PARKED_ };

/* The pause before a keeper that has to stay tries to start a thread again. */
#define RETRY_AFTER UINT64_C(20000000)

/* The keeper that the calling thread is. */
static BIDE_THREAD_LOCAL bide_timekeeper_ *here;

int (*bide_start_timer_service_)(void);

static bide_short_lock_ lock;

/* Under the lock. */
static uint64_t inserted;
static bide_timekeeper_ service;
static bool service_ending;
static bide_atomic(uint32_t) is_left; /* without threads: whether a tree is left */
static bide_awaiter *abandoned;       /* a tree: in a child, the timers of its parent's service */

/* Whether the service's thread exists, and the lock under which it is started. */
static bide_atomic(uint32_t) starting; /* LOCK_FREE */
static bide_atomic(uint32_t) is_served;
static bide_atomic(uint32_t) service_word;

/* ---- Trees that change hands, with the lock held ---- */

/* There is an earlier timer: the keeper's thread looks again. */
static void timekeeper_wake(bide_timekeeper_ *timekeeper)
{
    bide_atomic(uint32_t) *word = timekeeper->sleeps_on;
    uint32_t parked = KEEPER_PARKED;
    /* relaxed: the word publishes nothing; the lock protects the timers. */
    if (word != NULL && bide_atomic_compare_exchange(word, &parked, KEEPER_AWAKE, relaxed, relaxed))
        bide_platform.wake(word, 1);
}

/* Moves a whole tree. */
static void move_tree(bide_awaiter **from, bide_awaiter **to)
{
    bide_awaiter *root = *from;
    *from = NULL;
    if (root != NULL)
        tree_add(to, timer_of(root));
}

/* ---- The service ---- */

static int need_service(void)
{
    int error = 0;
    if (bide_start_timer_service_ == NULL)
        return -ENOTSUP;
    /* relaxed, here and below: the lock orders its work with timers. */
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
        uint64_t next = bide_timekeeper_park_(&service_word);
        bide_short_lock_take_(&lock);
        bool ends = service_ending;
        bide_short_lock_free_(&lock);
        if (ends)
            break;
        if (bide_platform.wait(&service_word, KEEPER_PARKED, next) == -ETIMEDOUT)
            bide_timekeeper_run_due_(next);
    }
    bide_timekeeper_unpark_();
    here = NULL;
}

/* The service runs a coroutine if it sleeps on no word, or on that coroutine's. */
bool bide_end_timer_service_(void)
{
    bide_short_lock_take_(&lock);
    bool ends = service.sleeps_on == &service_word;
    if (ends) {
        service_ending = true;
        timekeeper_wake(&service);
    }
    bide_short_lock_free_(&lock);
    return ends;
}

/* ---- Keepers ---- */

bool bide_keep_time_(bide_timekeeper_ *timekeeper)
{
    if (here != NULL)
        return false;
    timekeeper->first = NULL;
    timekeeper->sleeps_on = NULL;
    timekeeper->used = false;
    here = timekeeper;
    /* relaxed: only a hint. */
    if (BIDE_UNLIKELY(bide_atomic_load(&is_left, relaxed) != 0)) {
        bide_short_lock_take_(&lock);
        move_tree(&service.first, &timekeeper->first);
        timekeeper->used = timekeeper->first != NULL;
        bide_atomic_store(&is_left, 0, relaxed);
        bide_short_lock_free_(&lock);
    }
    return true;
}

uint64_t bide_timekeeper_park_(bide_atomic(uint32_t) * word)
{
    uint32_t awake = KEEPER_AWAKE;
    uint64_t next = BIDE_FOREVER;
    if (here->used)
        bide_short_lock_take_(&lock);
    /* relaxed: as in timekeeper_wake. */
    bide_atomic_compare_exchange(word, &awake, KEEPER_PARKED, relaxed, relaxed);
    if (here->used) {
        here->sleeps_on = word;
        next = bide_timer_time_(here->first);
        bide_short_lock_free_(&lock);
    }
    return next;
}

void bide_timekeeper_unpark_(void)
{
    if (!here->used)
        return;
    bide_short_lock_take_(&lock);
    here->sleeps_on = NULL;
    bide_short_lock_free_(&lock);
}

void bide_timekeeper_run_due_(uint64_t now)
{
    bide_awaiter_chain due = {NULL, NULL};
    bide_short_lock_take_(&lock);
    here->sleeps_on = NULL;
    if (here != &service || !service_ending)
        tree_take_due(&here->first, now, &due);
    bide_short_lock_free_(&lock);
    bide_run_chain_(&due);
}

/* ---- A give-way of the inline scheduler ---- */

static BIDE_THREAD_LOCAL bide_limited_wait_ *limited_waits; /* the innermost */

void bide_limited_wait_begin_(bide_limited_wait_ *wait, bide_stop_source *stop, uint64_t deadline)
{
    wait->deadline = deadline;
    wait->stop = stop;
    wait->outer = limited_waits;
    limited_waits = wait;
}

void bide_limited_wait_end_(bide_limited_wait_ *wait)
{
    limited_waits = wait->outer;
}

static bool only_asks_to_stop(const bide_frame *frame)
{
    const bide_coroutine_code *code = bide_frame_point(frame)->code;
    return code != NULL && code->type != NULL && *code->type == &bide_asks_to_stop_;
}

/*
 * A coroutine whose operations are always ready keeps this thread, which keeps time. Deadlines that are
 * due request their stops. Coroutines whose sleep is over resume when this one suspends.
 */
void bide_look_at_clock_(void)
{
    bide_awaiter_chain due = {NULL, NULL};
    bool keeps = here != NULL && here->used;
    if (!keeps && limited_waits == NULL)
        return;
    uint64_t now = bide_platform.now();
    for (bide_limited_wait_ *wait = limited_waits; wait != NULL; wait = wait->outer) {
        if (now < wait->deadline)
            continue;
        wait->deadline = BIDE_FOREVER;
        bide_stop_request_with(wait->stop, -ETIMEDOUT);
    }
    if (!keeps)
        return;
    bide_short_lock_take_(&lock);
    if (here != &service || !service_ending)
        tree_take_due(&here->first, now, &due);
    bide_short_lock_free_(&lock);
    for (bide_awaiter *awaiter; (awaiter = bide_awaiter_chain_take(&due)) != NULL;) {
        if (only_asks_to_stop(awaiter->frame))
            bide_frame_step(awaiter->frame, 0);
        else
            bide_wake_one(awaiter);
    }
}

/* ---- Keepers that leave ---- */

/* Keeps time until the service can take the tree, or until no timer is left. */
static void timekeeper_wait(void)
{
    bide_atomic(uint32_t) word;
    bide_atomic_init(&word, KEEPER_AWAKE);
    while (need_service() != 0) {
        uint64_t next = bide_timekeeper_park_(&word);
        bide_timekeeper_unpark_();
        if (next == BIDE_FOREVER)
            return;
        uint64_t retry = bide_platform.now() + RETRY_AFTER;
        if (bide_platform.wait(&word, KEEPER_PARKED, next < retry ? next : retry) == -ETIMEDOUT &&
            next <= retry)
            bide_timekeeper_run_due_(next);
    }
}

void bide_stop_keeping_time_(bide_timekeeper_ *timekeeper)
{
    if (BIDE_UNLIKELY(timekeeper->used)) {
        bide_short_lock_take_(&lock);
        bool comes = bide_timer_time_(timekeeper->first) != BIDE_FOREVER;
        bide_short_lock_free_(&lock);
        if (comes && bide_start_timer_service_ != NULL)
            timekeeper_wait();
        bide_short_lock_take_(&lock);
        if (comes && bide_start_timer_service_ == NULL)
            bide_atomic_store(&is_left, 1, relaxed);
        move_tree(&timekeeper->first, &service.first);
        timekeeper_wake(&service);
        bide_short_lock_free_(&lock);
    }
    here = NULL;
}

/* ---- The scheduler's two functions ---- */

int bide_inline_set_timer_(bide_scheduler *scheduler, bide_timer *timer)
{
    bide_timekeeper_ *timekeeper = here;
    (void)scheduler;
    if (timekeeper == NULL) {
        int error = need_service();
        if (error != 0)
            return error;
        timekeeper = &service;
    }
    timer->child = NULL;
    if (timekeeper == here)
        timekeeper->used = true;
    bide_short_lock_take_(&lock);
    timer->number = inserted++;
    if (tree_add(&timekeeper->first, timer) && timekeeper != here)
        timekeeper_wake(timekeeper); /* 2 */
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
    move_tree(&service.first, &abandoned);
    service.sleeps_on = NULL;
    bide_atomic_init(&service_word, KEEPER_AWAKE);
    bide_atomic_init(&is_served, 0);
}

#if BIDE_CHECK

void bide_inline_timers_begin_anew_(void)
{
    service = (bide_timekeeper_){NULL, NULL, false};
    abandoned = NULL;
    service_ending = false;
}

void bide_end_timer_service_anyhow_(void)
{
    bide_short_lock_take_(&lock);
    service_ending = true;
    timekeeper_wake(&service);
    bide_short_lock_free_(&lock);
}

#endif

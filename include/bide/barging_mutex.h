/*
 * A mutex that is not handed over: unlocking frees it and wakes the first in line, which competes
 * for it with whatever comes meanwhile (barges in). Floor: sync.
 *
 *     bide_try(bide_barging_mutex_lock(&self->lock, &mutex));
 *     ...
 *     bide_barging_mutex_unlock(&self->lock);
 *
 * Any thread may lock. Take mutex.h where order or the longest wait matters, or a section may
 * suspend; and this one where sections are short and there are many of them.
 *
 * The reason is this. A mutex that is handed over (mutex.h) belongs to a waiter that does not run
 * yet, for as long as it takes to wake it: thousands of cycles, while a section lasts tens. All
 * others that want it meanwhile get in line too, so once there is a line there is one for good (a
 * convoy). Here a running thread takes the mutex at once, so that throughput stays what it is
 * without a line. The price is fairness: latecomers pass waiters. That is bounded twice:
 *   - A woken waiter that has lost goes back to the front of the line, and after
 *     BIDE_BARGING_LOSSES losses it is handed the mutex at the next unlock, before anybody else.
 *   - When BIDE_BARGING_PASSES lockings have passed a woken waiter, however long its scheduler
 *     takes to run it, the last of them leaves the mutex to that waiter.
 *
 * Why it is right: it is a waiter queue whose value is four bits; waiter_queue.h has the queue's
 * argument.
 *
 *     LOCKED       it is held
 *     PENDING      a waiter was woken and is on its way to compete: no other needs to be
 *     HANDS_OVER   the first in line, or the waiter that is about to be, has lost so often that the
 *                  mutex is handed to it
 *     RESERVED     (only beside PENDING) the pending waiter was passed so often that the mutex is
 *                  its own when it comes
 *
 *     take         neither LOCKED, HANDS_OVER, RESERVED, SERVING nor CLOSED -> LOCKED. The fast
 *                  way, also while there are waiters. The pending waiter takes PENDING and
 *                  RESERVED off with it, and RESERVED does not keep it from that
 *     unlock       LOCKED -> not. If a waiter is PENDING: it was passed; too often: + RESERVED.
 *                  If none is, and there are waiters: serves
 *     serve        not LOCKED, not PENDING: the first in line goes on: + PENDING, or,
 *                  HANDS_OVER -> LOCKED
 *     lose         the pending waiter could not take it: the last time + HANDS_OVER; enlists; then
 *                  as giving up
 *     give up      the pending waiter is asked to stop, or finds it closed, or is destroyed:
 *                  - PENDING, - RESERVED, and serves
 *
 * 1. No waiter is forgotten: while one is in line, and no server is at work, the mutex is LOCKED or
 *    a waiter is PENDING. Each of these ends by a put that serves, unless it ends by another
 *    waiter's becoming so.
 * 2. PENDING belongs to one coroutine, from its admission until it has taken the mutex, is in line
 *    again, or has given up. So at most one goes to the front at a time; it keeps PENDING until it
 *    is enlisted.
 * 3. HANDS_OVER is set by the pending waiter, before it enlists. So whenever the mutex is neither
 *    PENDING nor LOCKED, that waiter is the first in line, and the server gives it the mutex; or it
 *    has left the line, and has taken HANDS_OVER off (leave).
 * 4. RESERVED comes with PENDING and goes with it, so it always belongs to a waiter that is on its
 *    way. Since the mutex is not LOCKED beside it, that waiter is all there is to wait for.
 * 5. A waiter in line is passed a bounded number of times, whatever the schedulers do. Each
 *    unlocking while it is there finds a waiter PENDING, and counts (`passed`), or makes one so, or
 *    hands the mutex over. `passed` is counted from one taking by a waiter to the next. In between
 *    PENDING comes anew only after a loss, of which each waiter has a bounded number, or after a
 *    giving up. So a coroutine that relocks without suspending is eventually suspended, so that
 *    others on its scheduler run.
 * 6. Nobody takes the mutex while a server is at work. So what the server finds possible stays so,
 *    as the queue asks (5 and 7 in waiter_queue.h), and the holder may free the mutex: no server is
 *    left.
 *
 * Source: the wakes that compete are those of Go's sync.Mutex and of WebKit's ParkingLot; the
 * hand-over after losses is the former's starvation mode.
 */
#ifndef BIDE_BARGING_MUTEX_H
#define BIDE_BARGING_MUTEX_H

#include "bide/sync_wait.h"
#include "bide/extend/waiter_queue.h"

BIDE_EXTERN_C_BEGIN

enum {
    BIDE_BARGING_LOCKED_ = BIDE_QUEUE_ONE,
    BIDE_BARGING_PENDING_ = 2 * BIDE_QUEUE_ONE,
    BIDE_BARGING_HANDS_OVER_ = 4 * BIDE_QUEUE_ONE,
    BIDE_BARGING_RESERVED_ = 8 * BIDE_QUEUE_ONE,

    /* in none of these may it be taken */
    BIDE_BARGING_TAKEN_ = BIDE_BARGING_LOCKED_ | BIDE_BARGING_HANDS_OVER_ | BIDE_BARGING_RESERVED_ |
                          BIDE_QUEUE_SERVING_ | BIDE_QUEUE_CLOSED_,

    /* How often a woken waiter may find the mutex taken before it is handed to it. */
    BIDE_BARGING_LOSSES = BIDE_CHECK ? 1 : 4,

    /* How often it may be locked and unlocked before woken waiters, until it is left to one of
     * them. */
    BIDE_BARGING_PASSES = BIDE_CHECK ? 2 : 64
};

typedef struct bide_barging_mutex_waiter bide_barging_mutex_waiter;

typedef struct bide_barging_mutex {
    bide_waiter_queue queue;
    bide_barging_mutex_waiter *holder; /* the last to lock it; the holder reads and writes it */
    uint32_t passed;                   /* how often since a waiter has had it; of the holder */
} bide_barging_mutex;

/* One locking. The caller's memory until the wait has failed, or the mutex is unlocked. */
struct bide_barging_mutex_waiter {
    bide_awaiter awaiter;
    bide_barging_mutex *mutex;
    int status;
    bool has_it;
    bool is_pending;
    bide_frame frame;       /* waits in line, competes, and waits again */
    bide_queue_waiter wait; /* `wants` is how often it has lost */
};

/*
 * Makes a free mutex. The memory may go when it is free and has no waiters. The next holder may
 * also free it at once after an unlock, because unlocking touches nothing once another can have the
 * mutex.
 * Threads: before it is shared. Progress: wait-free.
 */
BIDE_INLINE void bide_barging_mutex_init(bide_barging_mutex *mutex)
{
    bide_waiter_queue_init(&mutex->queue, 0);
    mutex->holder = NULL;
    mutex->passed = 0;
}

/*
 * Takes it if it is not held, also past waiters; takes `without` off, which does not keep the
 * caller from it.
 */
BIDE_INLINE bool bide_barging_mutex_take_(bide_waiter_queue *queue, uintptr_t state,
                                          uintptr_t without)
{
    /* acquire: partner is unlock's release; what was done under the lock before is seen. */
    for (bool again = false; !bide_atomic_compare_exchange(
             &queue->state, &state, (state | BIDE_BARGING_LOCKED_) & ~without, acquire, relaxed);
         again = true) {
        if (again)
            bide_atomic_retry();
        if ((state & BIDE_BARGING_TAKEN_ & ~without) != 0)
            return false;
    }
    return true;
}

/*
 * Takes it if it is not held, also past waiters. False: it is held, or a waiter is being handed it,
 * or it is closed.
 * Threads: any. Progress: lock-free.
 */
BIDE_INLINE bool bide_barging_mutex_try_lock(bide_barging_mutex_waiter *waiter,
                                             bide_barging_mutex *mutex)
{
    waiter->mutex = mutex;
    if (!bide_barging_mutex_take_(&mutex->queue, 0, 0))
        return false;
    mutex->holder = waiter;
    return true;
}

BIDE_INLINE bool bide_barging_mutex_ready_(bide_awaiter *awaiter)
{
    bide_barging_mutex_waiter *waiter = (bide_barging_mutex_waiter *)(void *)awaiter;
    waiter->status = 0;
    return bide_barging_mutex_take_(&waiter->mutex->queue, 0, 0);
}

bide_frame *bide_barging_mutex_suspend_(bide_awaiter *awaiter, bide_frame *frame);

BIDE_INLINE int bide_barging_mutex_resume_(bide_awaiter *awaiter)
{
    bide_barging_mutex_waiter *waiter = (bide_barging_mutex_waiter *)(void *)awaiter;
    if (BIDE_LIKELY(waiter->status == 0))
        waiter->mutex->holder = waiter;
    return waiter->status;
}

bool bide_barging_mutex_withdraw_(bide_awaiter *awaiter);

/*
 * Locks `mutex`: takes it if it is not held, or else waits in line until it has got it. `waiter`
 * must stay until the mutex is unlocked. If it ends with 0 the caller holds the mutex; otherwise
 * not, and the next in line is woken instead.
 * Threads: any. Errors: -EPIPE (closed), -ECANCELED, -ETIMEDOUT. Suspends: if it is not free.
 * Cancel-safe: yes. Progress: lock-free.
 */
BIDE_MUST_AWAIT
BIDE_INLINE bide_awaiter *bide_barging_mutex_lock(bide_barging_mutex_waiter *waiter,
                                                  bide_barging_mutex *mutex)
{
    __extension__ static const bide_awaiter_ops ops = {
        .ready = bide_barging_mutex_ready_,
        .suspend = bide_barging_mutex_suspend_,
        .resume = bide_barging_mutex_resume_,
        .cancel = NULL,
        .withdraw = bide_barging_mutex_withdraw_,
        .name = "bide_barging_mutex_lock",
        .attempt = NULL,
    };
    waiter->awaiter.ops = &ops;
    waiter->mutex = mutex;
    return &waiter->awaiter;
}

/*
 * The same for a plain thread, which it blocks until `deadline` at most: nanoseconds of
 * bide_platform.now(), or BIDE_FOREVER. See bide_sync_wait_until.
 * Threads: any. Errors: as bide_barging_mutex_lock; -ETIMEDOUT (the deadline has come). Progress:
 * blocks.
 */
BIDE_INLINE int bide_barging_mutex_lock_blocking(bide_barging_mutex_waiter *waiter,
                                                 bide_barging_mutex *mutex, uint64_t deadline)
{
    return bide_sync_wait_until(bide_barging_mutex_lock(waiter, mutex), deadline);
}

/*
 * Is it locked? The answer is out of date at once, except for the holder. Gives no order.
 * Threads: any. Progress: wait-free.
 */
BIDE_INLINE bool bide_barging_mutex_is_locked(bide_barging_mutex *mutex)
{
    return (bide_atomic_load(&mutex->queue.state, relaxed) & BIDE_BARGING_LOCKED_) != 0;
}

/* The rest of unlock: it has waiters, or it is closed. */
void bide_barging_mutex_unlock_slow_(bide_barging_mutex *mutex, uintptr_t state);

BIDE_INLINE void bide_barging_mutex_unlock_(bide_barging_mutex_waiter *waiter)
{
    bide_barging_mutex *mutex = waiter->mutex;
    uintptr_t state = BIDE_BARGING_LOCKED_;
    /* release: partners are the acquires of the next holder. */
    if (BIDE_UNLIKELY(
            !bide_atomic_compare_exchange(&mutex->queue.state, &state, 0, release, relaxed)))
        bide_barging_mutex_unlock_slow_(mutex, state);
}

BIDE_INLINE void bide_barging_mutex_unlock_checked_(bide_barging_mutex_waiter *waiter,
                                                    const char *what, const char *function,
                                                    const char *file, unsigned line)
{
    if (BIDE_UNLIKELY(!bide_barging_mutex_is_locked(waiter->mutex) ||
                      waiter->mutex->holder != waiter))
        bide_misuse_(what, function, file, line);
    else
        bide_barging_mutex_unlock_(waiter);
}

/*
 * Unlocks what was locked with `waiter`. If it has waiters, and none has been woken already, the
 * first is, on its scheduler, but not on the caller's stack while a coroutine is running on it. To
 * unlock what this waiter has not locked is misuse, which is caught where BIDE_DEBUG is 1.
 * Threads: any, on behalf of the holder. Suspends: never. Progress: lock-free.
 */
#if BIDE_DEBUG
#define bide_barging_mutex_unlock(waiter) \
    bide_barging_mutex_unlock_checked_(   \
        (waiter),                         \
        BIDE_MISUSE_("a barging mutex is unlocked by a waiter that has not locked it", #waiter))
#else
#define bide_barging_mutex_unlock(waiter) bide_barging_mutex_unlock_(waiter)
#endif

/*
 * Closes it: waiters end with -EPIPE, and so do later lockings. The holder unlocks it as
 * ever. More than once is once.
 * Threads: any. Suspends: never. Progress: lock-free, linear in the waiters.
 */
void bide_barging_mutex_close(bide_barging_mutex *mutex);

BIDE_INLINE void bide_barging_mutex_destroy_checked_(bide_barging_mutex *mutex, const char *what,
                                                     const char *function, const char *file,
                                                     unsigned line)
{
    if (BIDE_QUEUE_VALUE(bide_atomic_load(&mutex->queue.state, relaxed)) != 0 ||
        !bide_waiter_queue_is_idle(&mutex->queue))
        bide_misuse_(what, function, file, line);
}

/*
 * The end of its life. Does nothing; where BIDE_DEBUG is 1 it tells of misuse if the mutex is
 * locked or waited for.
 * Threads: any. Progress: wait-free.
 */
#define bide_barging_mutex_destroy(mutex)                           \
    BIDE_END_OF_LIFE_(bide_barging_mutex_destroy_checked_, (mutex), \
                      "a barging mutex is destroyed while it is in use", #mutex)

BIDE_EXTERN_C_END

#endif

/*
 * A mutex that is not handed over: unlocking frees it and wakes the first in line, which competes
 * for it with the coroutines that arrive in the meantime (they barge in). Floor: sync.
 *
 *     bide_try(bide_barging_mutex_lock(&self->lock, &mutex));
 *     ...
 *     bide_barging_mutex_unlock(&self->lock);
 *
 * Any thread may lock; the holder unlocks, on any thread. Use mutex.h if order or the longest wait
 * matters, or if a section may suspend. Use this one if sections are short and frequent: a running
 * coroutine takes the mutex at once, instead of queueing behind a waiter that does not run yet. So
 * throughput under contention stays what it is without a line.
 *
 * The price is fairness: latecomers pass waiters. That is bounded twice:
 *   - A woken waiter that has lost returns to the front of the line. After BIDE_BARGING_LOSSES
 *     losses it is handed the mutex at the next unlock, before any other coroutine.
 *   - When BIDE_BARGING_PASSES lockings have passed a woken waiter, however long its scheduler
 *     takes to run it, the last of them leaves the mutex to that waiter.
 *
 * Why it is correct: docs/internals/barging_mutex.md. The numbers below refer to that.
 */
#ifndef BIDE_BARGING_MUTEX_H
#define BIDE_BARGING_MUTEX_H

#include "bide/stop.h"
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
 * Makes a free mutex. The memory may be freed when it is free and has no waiters. The next holder may
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
BIDE_KEY_SCOPED(bide_barging_mutex_unlock);
BIDE_MUST_AWAIT
BIDE_INLINE bide_awaiter *bide_barging_mutex_lock(bide_barging_mutex_waiter *waiter,
                                                  bide_barging_mutex *mutex)
{
    __extension__ static const bide_awaiter_ops ops = {
        .ready = bide_barging_mutex_ready_,
        .suspend = bide_barging_mutex_suspend_,
        .resume = bide_barging_mutex_resume_,
        .cancel = bide_cancel_inside_,
        .withdraw = bide_barging_mutex_withdraw_,
        .name = "bide_barging_mutex_lock",
        .attempt = NULL,
        .undo = BIDE_UNDO_WITHDRAW,
    };
    waiter->awaiter.ops = &ops;
    waiter->mutex = mutex;
    return &waiter->awaiter;
}

/*
 * The same for a plain thread, which it blocks until `deadline` at most: nanoseconds of
 * bide_platform.now(), or BIDE_FOREVER. See bide_sync_wait_until.
 * Threads: any but that of a loop (sync_wait.h). Errors: as bide_barging_mutex_lock; -ETIMEDOUT
 * (the deadline has come). Progress: blocks.
 */
BIDE_INLINE int bide_barging_mutex_lock_blocking(bide_barging_mutex_waiter *waiter,
                                                 bide_barging_mutex *mutex, uint64_t deadline)
{
    return bide_sync_wait_until(bide_barging_mutex_lock(waiter, mutex), deadline);
}

#define bide_barging_mutex_lock_blocking(...) \
    BIDE_BLOCKS_(bide_barging_mutex_lock_blocking(__VA_ARGS__))

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
    if (BIDE_UNLIKELY(waiter->mutex == NULL || !bide_barging_mutex_is_locked(waiter->mutex) ||
                      waiter->mutex->holder != waiter))
        bide_misuse_(what, function, file, line);
    else
        bide_barging_mutex_unlock_(waiter);
}

/*
 * Unlocks what was locked with `waiter`. If it has waiters, and none has been woken already, the
 * first is, on its scheduler, but not on the caller's stack while a coroutine is running on it. To
 * unlock what this waiter has not locked is misuse, which is detected if BIDE_DEBUG is 1.
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
 * The end of its life. Does nothing; if BIDE_DEBUG is 1 it reports misuse if the mutex is
 * locked or waited for.
 * Threads: any. Progress: wait-free.
 */
#define bide_barging_mutex_destroy(mutex)                           \
    BIDE_END_OF_LIFE_(bide_barging_mutex_destroy_checked_, (mutex), \
                      "a barging mutex is destroyed while it is in use", #mutex)

BIDE_EXTERN_C_END

#endif

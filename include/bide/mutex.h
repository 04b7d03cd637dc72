/*
 * A mutex for coroutines and threads, first come, first served: unlocking hands it to the
 * longest-waiting waiter. A waiting coroutine is suspended, and its thread runs others.
 * Floor: sync.
 *
 *     bide_try(bide_mutex_lock(&self->lock, &mutex));
 *     ...
 *     bide_mutex_unlock(&self->lock);
 *
 *     free --lock--> locked --unlock--> free, or locked by the first in line
 *
 * The holder is identified by its waiter: `lock` above is the key, which unlock takes, on any thread.
 * The key must not move in the meantime. Any thread may lock. Locking a free mutex and unlocking one
 * without waiters is one atomic operation each. barging_mutex.h has a mutex that is not handed over,
 * and compares the two.
 *
 * Why it is correct: it is a waiter queue whose value is 1 while the mutex is locked; waiter_queue.h
 * has the argument.
 *
 * Source: cppcoro's async_mutex; the key is that of the queue lock of Mellor-Crummey and Scott.
 */
#ifndef BIDE_MUTEX_H
#define BIDE_MUTEX_H

#include "bide/sync_wait.h"
#include "bide/extend/waiter_queue.h"

BIDE_EXTERN_C_BEGIN

typedef struct bide_mutex_waiter bide_mutex_waiter;

typedef struct bide_mutex {
    bide_waiter_queue queue;
    bide_mutex_waiter *holder; /* the last to lock it; the holder reads and writes it */
} bide_mutex;

/* One locking. The caller's memory until the wait has failed, or the mutex is unlocked. */
struct bide_mutex_waiter {
    bide_queue_waiter waiter; /* at the head: it is the awaiter */
    bide_mutex *mutex;
};

extern const bide_waiter_queue_ops bide_mutex_ops_;

/*
 * Makes a free mutex. The memory may be freed when it is free and has no waiters. The next holder may
 * also free it at once after an unlock, because unlocking touches nothing once another can have the
 * mutex.
 * Threads: before it is shared. Progress: wait-free.
 */
BIDE_INLINE void bide_mutex_init(bide_mutex *mutex)
{
    bide_waiter_queue_init(&mutex->queue, 0);
    mutex->holder = NULL;
}

/*
 * Takes the mutex if it is free and nobody waits. False: it is not free, or it is closed.
 * Threads: any. Progress: wait-free.
 */
BIDE_INLINE bool bide_mutex_try_lock(bide_mutex_waiter *waiter, bide_mutex *mutex)
{
    uintptr_t state = 0;
    waiter->mutex = mutex;
    /* acquire: partner is unlock's release; what was done under the lock before is seen. */
    if (!bide_atomic_compare_exchange(&mutex->queue.state, &state, BIDE_QUEUE_ONE, acquire,
                                      relaxed))
        return false;
    mutex->holder = waiter;
    return true;
}

BIDE_INLINE bool bide_mutex_ready_(bide_awaiter *awaiter)
{
    bide_mutex_waiter *waiter = (bide_mutex_waiter *)(void *)awaiter;
    uintptr_t state = 0;
    return bide_atomic_compare_exchange(&waiter->mutex->queue.state, &state, BIDE_QUEUE_ONE,
                                        acquire, relaxed); /* as try_lock */
}

BIDE_INLINE bide_frame *bide_mutex_suspend_(bide_awaiter *awaiter, bide_frame *frame)
{
    bide_mutex_waiter *waiter = (bide_mutex_waiter *)(void *)awaiter;
    waiter->waiter.queue = &waiter->mutex->queue;
    return bide_waiter_queue_suspend(&waiter->waiter, &bide_mutex_ops_, frame);
}

BIDE_INLINE int bide_mutex_resume_(bide_awaiter *awaiter)
{
    bide_mutex_waiter *waiter = (bide_mutex_waiter *)(void *)awaiter;
    waiter->mutex->holder = waiter;
    return 0;
}

BIDE_INLINE void bide_mutex_cancel_(bide_awaiter *awaiter)
{
    bide_waiter_queue_cancel((bide_queue_waiter *)(void *)awaiter, &bide_mutex_ops_);
}

/* A mutex that was handed to a destroyed coroutine goes to the next waiter. */
bool bide_mutex_withdraw_(bide_awaiter *awaiter);

/*
 * Locks `mutex`: waits until it is handed over, in the order in which the waiters came. `waiter`
 * must stay until the mutex is unlocked. If it ends with 0 the caller holds the mutex, otherwise
 * not: a hand-over that came before the wait was cancelled counts, a later one goes to the next
 * waiter.
 * Threads: any. Errors: -EPIPE (closed), -ECANCELED, -ETIMEDOUT. Suspends: if it is not free.
 * Cancel-safe: yes. Progress: lock-free.
 */
BIDE_KEY_SCOPED(bide_mutex_unlock);
BIDE_MUST_AWAIT
BIDE_INLINE bide_awaiter *bide_mutex_lock(bide_mutex_waiter *waiter, bide_mutex *mutex)
{
    __extension__ static const bide_awaiter_ops ops = {
        .ready = bide_mutex_ready_,
        .suspend = bide_mutex_suspend_,
        .resume = bide_mutex_resume_,
        .cancel = bide_mutex_cancel_,
        .withdraw = bide_mutex_withdraw_,
        .name = "bide_mutex_lock",
        .attempt = NULL,
        .undo = BIDE_UNDO_WITHDRAW,
    };
    waiter->waiter.awaiter.ops = &ops;
    waiter->mutex = mutex;
    return &waiter->waiter.awaiter;
}

/*
 * The same for a plain thread, which it blocks until `deadline` at most: nanoseconds of
 * bide_platform.now(), or BIDE_FOREVER. See bide_sync_wait_until.
 * Threads: any but that of a loop (sync_wait.h). Errors: as bide_mutex_lock; -ETIMEDOUT (the
 * deadline has come). Progress: blocks.
 */
BIDE_INLINE int bide_mutex_lock_blocking(bide_mutex_waiter *waiter, bide_mutex *mutex,
                                         uint64_t deadline)
{
    return bide_sync_wait_until(bide_mutex_lock(waiter, mutex), deadline);
}

#define bide_mutex_lock_blocking(...) BIDE_BLOCKS_(bide_mutex_lock_blocking(__VA_ARGS__))

/*
 * Is it locked? The answer is out of date at once, except for the holder. Gives no order.
 * Threads: any. Progress: wait-free.
 */
BIDE_INLINE bool bide_mutex_is_locked(bide_mutex *mutex)
{
    return BIDE_QUEUE_VALUE(bide_atomic_load(&mutex->queue.state, relaxed)) != 0;
}

/* The rest of unlock: it has waiters, or it is closed. */
void bide_mutex_unlock_slow_(bide_mutex *mutex, uintptr_t state);

BIDE_INLINE void bide_mutex_unlock_(bide_mutex_waiter *waiter)
{
    bide_mutex *mutex = waiter->mutex;
    /* The first guess is that nobody waits; a look at a word that was just modified costs more than
     * it saves. */
    uintptr_t state = BIDE_QUEUE_ONE;
    /* release: partners are the acquires of the next holder. */
    if (BIDE_UNLIKELY(
            !bide_atomic_compare_exchange(&mutex->queue.state, &state, 0, release, relaxed)))
        bide_mutex_unlock_slow_(mutex, state);
}

BIDE_INLINE void bide_mutex_unlock_checked_(bide_mutex_waiter *waiter, const char *what,
                                            const char *function, const char *file, unsigned line)
{
    if (BIDE_UNLIKELY(waiter->mutex == NULL || !bide_mutex_is_locked(waiter->mutex) ||
                      waiter->mutex->holder != waiter))
        bide_misuse_(what, function, file, line);
    else
        bide_mutex_unlock_(waiter);
}

/*
 * Unlocks what was locked with `waiter`. If it has waiters, the first in line holds the mutex from
 * now on, and is woken. It resumes on its scheduler, but not on the caller's stack while a
 * coroutine is running on it. Unlocking a mutex that this waiter has not locked is misuse, which is
 * detected if BIDE_DEBUG is 1.
 * Threads: any, on behalf of the holder. Suspends: never. Progress: lock-free.
 */
#if BIDE_DEBUG
#define bide_mutex_unlock(waiter) \
    bide_mutex_unlock_checked_(   \
        (waiter), BIDE_MISUSE_("a mutex is unlocked by a waiter that has not locked it", #waiter))
#else
#define bide_mutex_unlock(waiter) bide_mutex_unlock_(waiter)
#endif

/*
 * Closes the mutex: waiters end with -EPIPE, and so do later lockings. The holder unlocks
 * it as ever. More than once is once.
 * Threads: any. Suspends: never. Progress: lock-free, linear in the waiters.
 */
void bide_mutex_close(bide_mutex *mutex);

BIDE_INLINE void bide_mutex_destroy_checked_(bide_mutex *mutex, const char *what,
                                             const char *function, const char *file, unsigned line)
{
    if (bide_mutex_is_locked(mutex) || !bide_waiter_queue_is_idle(&mutex->queue))
        bide_misuse_(what, function, file, line);
}

/*
 * The end of its life. Does nothing; if BIDE_DEBUG is 1 it reports misuse if the mutex is
 * locked or waited for.
 * Threads: any. Progress: wait-free.
 */
#define bide_mutex_destroy(mutex)                           \
    BIDE_END_OF_LIFE_(bide_mutex_destroy_checked_, (mutex), \
                      "a mutex is destroyed while it is in use", #mutex)

BIDE_EXTERN_C_END

#endif

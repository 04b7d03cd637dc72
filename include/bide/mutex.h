/*
 * A mutex for coroutines (and threads): first come, first served; who unlocks it hands it to who waits longest. While
 * it waits a coroutine is suspended, and its thread does other things. Floor: sync.
 *
 *     bide_try(bide_mutex_lock(&self->lock, &mutex));
 *     ...
 *     bide_mutex_unlock(&self->lock);
 *
 *     free --lock--> locked --unlock--> free, or locked by the first in line
 *
 * Whoever holds it is known by its waiter: `lock` above is the key, which unlock takes. It stays where it is meanwhile.
 * A barging mutex, which hands nothing over, is in barging_mutex.h; what each is good for is said there.
 *
 * The value of its waiter queue is 1 while it is locked. The argument is the queue's (waiter_queue.h).
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
    bide_mutex_waiter *holder; /* who has locked it last; of the holder */
} bide_mutex;

/* One locking. The caller's, from the beginning of the wait until it has failed, or the mutex is unlocked. */
struct bide_mutex_waiter {
    bide_queue_waiter waiter; /* at the head: it is the awaiter */
    bide_mutex *mutex;
};

extern const bide_queue_rules bide_mutex_rules_;

/*
 * Makes a mutex that is free. Before it is shared. The memory may go when it is free and nobody waits; also at once
 * after an unlock, by whoever locked it next: unlocking touches nothing once another can have it.
 */
BIDE_INLINE void bide_mutex_init(bide_mutex *mutex)
{
    bide_waiter_queue_init(&mutex->queue, 0);
    mutex->holder = NULL;
}

/* Takes it if it is free and nobody waits. False: it is not, or is closed. Any thread; wait-free. */
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
    return bide_waiter_queue_suspend(&waiter->waiter, &bide_mutex_rules_, frame);
}

BIDE_INLINE int bide_mutex_resume_(bide_awaiter *awaiter)
{
    bide_mutex_waiter *waiter = (bide_mutex_waiter *)(void *)awaiter;
    waiter->mutex->holder = waiter;
    return 0;
}

BIDE_INLINE void bide_mutex_cancel_(bide_awaiter *awaiter)
{
    bide_waiter_queue_cancel((bide_queue_waiter *)(void *)awaiter, &bide_mutex_rules_);
}

/* What was handed over to one who is destroyed goes to the next. */
bool bide_mutex_withdraw_(bide_awaiter *awaiter);

/*
 * Locks `mutex`: waits until it is handed over, in the order in which they came. `waiter` is the caller's until the
 * mutex is unlocked. Ends with 0, and the caller has it; or with -EPIPE if it was closed, or, cut short, with
 * -ECANCELED or -ETIMEDOUT (stop.h), and has it not: a hand-over that came first counts, one that comes later goes to
 * the next. Any thread; suspends if it is not free; lock-free.
 */
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
    };
    waiter->waiter.awaiter.ops = &ops;
    waiter->mutex = mutex;
    return &waiter->waiter.awaiter;
}

/*
 * The same for a plain thread, until `deadline` (nanoseconds of bide_platform.now(), or BIDE_FOREVER): returns what the
 * wait ends with, -ETIMEDOUT when the deadline has come. See bide_sync_wait_until. Blocks.
 */
BIDE_INLINE int bide_mutex_lock_blocking(bide_mutex_waiter *waiter, bide_mutex *mutex,
                                         uint64_t deadline)
{
    return bide_sync_wait_until(bide_mutex_lock(waiter, mutex), deadline);
}

/* Is it locked? Out of date at once, but for who holds it. Any thread; wait-free; gives no order. */
BIDE_INLINE bool bide_mutex_is_locked(bide_mutex *mutex)
{
    return BIDE_QUEUE_VALUE(bide_atomic_load(&mutex->queue.state, relaxed)) != 0;
}

/* The rest of unlock: somebody waits, or it is closed. */
void bide_mutex_unlock_slow_(bide_mutex *mutex, uintptr_t state);

BIDE_INLINE void bide_mutex_unlock_(bide_mutex_waiter *waiter)
{
    bide_mutex *mutex = waiter->mutex;
    /* The first guess is that nobody waits; a look at a word that was just modified costs more than it saves. */
    uintptr_t state = BIDE_QUEUE_ONE;
    /* release: partners are the acquires of whoever locks it next. */
    if (BIDE_UNLIKELY(
            !bide_atomic_compare_exchange(&mutex->queue.state, &state, 0, release, relaxed)))
        bide_mutex_unlock_slow_(mutex, state);
}

BIDE_INLINE void bide_mutex_unlock_checked_(bide_mutex_waiter *waiter, const char *what,
                                            const char *function, const char *file, unsigned line)
{
    if (BIDE_UNLIKELY(!bide_mutex_is_locked(waiter->mutex) || waiter->mutex->holder != waiter))
        bide_misuse_(what, function, file, line);
    else
        bide_mutex_unlock_(waiter);
}

/*
 * Unlocks what was locked with `waiter`; if somebody waits, it is his from now on, and he is woken on his scheduler.
 * Any thread (but one at a time, as the holder). Does not suspend, and does not run the other on the caller's stack
 * while a coroutine is running on it. Lock-free. To unlock what this waiter has not locked is misuse, which is caught
 * where BIDE_DEBUG is 1.
 */
#if BIDE_DEBUG
#define bide_mutex_unlock(waiter) \
    bide_mutex_unlock_checked_(   \
        (waiter), BIDE_MISUSE_("a mutex is unlocked that this has not locked", #waiter))
#else
#define bide_mutex_unlock(waiter) bide_mutex_unlock_(waiter)
#endif

/*
 * Closes it: who waits, and who locks it later, ends with -EPIPE. Who holds it unlocks it as ever. Any thread, more
 * than once; does not suspend; lock-free.
 */
void bide_mutex_close(bide_mutex *mutex);

BIDE_INLINE void bide_mutex_destroy_checked_(bide_mutex *mutex, const char *what,
                                             const char *function, const char *file, unsigned line)
{
    if (bide_mutex_is_locked(mutex) || !bide_waiter_queue_is_idle(&mutex->queue))
        bide_misuse_(what, function, file, line);
}

/* Its memory is about to go. Does nothing but tell, where BIDE_DEBUG is 1, if it is locked or waited for. */
#if BIDE_DEBUG
#define bide_mutex_destroy(mutex)        \
    bide_mutex_destroy_checked_((mutex), \
                                BIDE_MISUSE_("a mutex is destroyed that is in use", #mutex))
#else
#define bide_mutex_destroy(mutex) ((void)(mutex))
#endif

BIDE_EXTERN_C_END

#endif

/*
 * A semaphore: a number of permits that are taken and given back. First come, first served, also by
 * waiters that want many: a later one that wants fewer waits behind them. Floor: sync.
 *
 *     bide_semaphore_init(&connections, 20);
 *
 *     bide_try(bide_semaphore_acquire(&self->permit, &connections));
 *     ...
 *     bide_semaphore_release(&connections, 1);
 *
 * Any thread may acquire and release, and permits need not be released by their taker. While nobody
 * waits, each is one atomic operation.
 *
 * Why it is correct: it is a waiter queue whose value is the number of free permits; waiter_queue.h
 * has the argument.
 *
 * Source: Edsger W. Dijkstra, "Cooperating sequential processes", 1965; several permits at a time
 * as in Tokio's.
 */
#ifndef BIDE_SEMAPHORE_H
#define BIDE_SEMAPHORE_H

#include "bide/sync_wait.h"
#include "bide/extend/waiter_queue.h"

BIDE_EXTERN_C_BEGIN

/* The greatest number of permits: 2^27 - 1, on every machine. */
#define BIDE_SEMAPHORE_MAX (UINT32_MAX / BIDE_QUEUE_ONE)

typedef struct bide_semaphore {
    bide_waiter_queue queue;
} bide_semaphore;

/* One wait. The caller's memory until the wait has ended. */
typedef struct bide_semaphore_waiter {
    bide_queue_waiter waiter; /* at the head: it is the awaiter */
} bide_semaphore_waiter;

extern const bide_waiter_queue_ops bide_semaphore_ops_;

/* Reports misuse: more than BIDE_SEMAPHORE_MAX permits can neither be free nor be acquired. */
BIDE_COLD void bide_semaphore_too_many_(const char *what, const char *function);

/*
 * Makes a semaphore with so many free permits; more than BIDE_SEMAPHORE_MAX are misuse. The memory
 * may go when nobody waits and nobody will use it. It may be freed at once after a wait, whoever released
 * what that wait took, because releasing touches nothing once another can have the permits.
 * Threads: before it is shared. Progress: wait-free.
 */
BIDE_INLINE void bide_semaphore_init(bide_semaphore *semaphore, uint32_t permits)
{
    if (BIDE_UNLIKELY(permits > BIDE_SEMAPHORE_MAX))
        bide_semaphore_too_many_("a semaphore has too many permits", "bide_semaphore_init");
    bide_waiter_queue_init(&semaphore->queue, (uintptr_t)permits * BIDE_QUEUE_ONE);
}

/*
 * How many permits are free. The answer is out of date at once. Gives no order.
 * Threads: any. Progress: wait-free.
 */
BIDE_INLINE uint32_t bide_semaphore_available(bide_semaphore *semaphore)
{
    return (uint32_t)(bide_atomic_load(&semaphore->queue.state, relaxed) / BIDE_QUEUE_ONE);
}

/*
 * Takes `permits` if so many are free and nobody waits; more than BIDE_SEMAPHORE_MAX never are.
 * False: it has taken none, or the semaphore is closed.
 * Threads: any. Progress: lock-free.
 */
BIDE_INLINE bool bide_semaphore_try_acquire(bide_semaphore *semaphore, uint32_t permits)
{
    /* In a word of 32 bits they would be a small number again. */
    if (BIDE_UNLIKELY(permits > BIDE_SEMAPHORE_MAX))
        return false;
    uintptr_t wanted = (uintptr_t)permits * BIDE_QUEUE_ONE;
    /* relaxed: what is found is compared by what follows. */
    uintptr_t state = bide_atomic_load(&semaphore->queue.state, relaxed);
    while (BIDE_QUEUE_VALUE(state) == state && state >= wanted) {
        /* acquire: partner is the release of whoever gave them back. */
        if (bide_atomic_compare_exchange_weak(&semaphore->queue.state, &state, state - wanted,
                                              acquire, relaxed))
            return true;
        bide_atomic_retry();
    }
    return false;
}

BIDE_INLINE bool bide_semaphore_ready_(bide_awaiter *awaiter)
{
    bide_queue_waiter *waiter = (bide_queue_waiter *)(void *)awaiter;
    return bide_semaphore_try_acquire(bide_container_of(waiter->queue, bide_semaphore, queue),
                                      waiter->wants);
}

BIDE_INLINE bide_frame *bide_semaphore_suspend_(bide_awaiter *awaiter, bide_frame *frame)
{
    return bide_waiter_queue_suspend((bide_queue_waiter *)(void *)awaiter, &bide_semaphore_ops_,
                                     frame);
}

BIDE_INLINE int bide_semaphore_resume_(bide_awaiter *awaiter)
{
    (void)awaiter;
    return 0;
}

BIDE_INLINE void bide_semaphore_cancel_(bide_awaiter *awaiter)
{
    bide_waiter_queue_cancel((bide_queue_waiter *)(void *)awaiter, &bide_semaphore_ops_);
}

/* Permits that were handed to a destroyed coroutine go to the next waiter. */
bool bide_semaphore_withdraw_(bide_awaiter *awaiter);

/* None are wanted, or more than there can be: misuse. Makes an operation that ends with -EINVAL. */
BIDE_MUST_AWAIT
BIDE_COLD bide_awaiter *bide_semaphore_refuse_(bide_semaphore_waiter *waiter, uint32_t permits);

/*
 * Takes `permits`: waits until so many are free, and earlier waiters have had theirs. `waiter` must
 * stay until the wait has ended. If it ends with 0 the caller has them all, otherwise none: permits
 * that were handed over before the wait was cancelled count, later ones go to the next waiter. To
 * wait for more than BIDE_SEMAPHORE_MAX, which would be for ever, is misuse. So is to wait for 0, which
 * is detected where it is awaited if BIDE_DEBUG is 1 in the library, and ends with -EINVAL otherwise.
 * Threads: any. Errors: -EPIPE (closed), -EINVAL (0 permits), -ECANCELED, -ETIMEDOUT. Suspends: if they
 * cannot be had at once. Cancel-safe: yes. Progress: lock-free.
 */
BIDE_MUST_AWAIT
BIDE_INLINE bide_awaiter *bide_semaphore_acquire_many(bide_semaphore_waiter *waiter,
                                                      bide_semaphore *semaphore, uint32_t permits)
{
    __extension__ static const bide_awaiter_ops ops = {
        .ready = bide_semaphore_ready_,
        .suspend = bide_semaphore_suspend_,
        .resume = bide_semaphore_resume_,
        .cancel = bide_semaphore_cancel_,
        .withdraw = bide_semaphore_withdraw_,
        .name = "bide_semaphore_acquire",
        .attempt = NULL,
        .undo = BIDE_UNDO_WITHDRAW,
    };
    if (BIDE_UNLIKELY(permits - 1 >= BIDE_SEMAPHORE_MAX))
        return bide_semaphore_refuse_(waiter, permits);
    waiter->waiter.awaiter.ops = &ops;
    waiter->waiter.queue = &semaphore->queue;
    waiter->waiter.wants = permits;
    return &waiter->waiter.awaiter;
}

/*
 * The same for one permit.
 * Threads: any. Errors: as bide_semaphore_acquire_many. Suspends: if it cannot be had at once.
 * Cancel-safe: yes. Progress: lock-free.
 */
BIDE_MUST_AWAIT
BIDE_INLINE bide_awaiter *bide_semaphore_acquire(bide_semaphore_waiter *waiter,
                                                 bide_semaphore *semaphore)
{
    return bide_semaphore_acquire_many(waiter, semaphore, 1);
}

/*
 * As acquire_many, for a plain thread, which it blocks until `deadline` at most: nanoseconds of
 * bide_platform.now(), or BIDE_FOREVER. See bide_sync_wait_until.
 * Threads: any but that of a loop (sync_wait.h). Errors: as bide_semaphore_acquire_many; -ETIMEDOUT
 * (the deadline has come). Progress: blocks.
 */
BIDE_INLINE int bide_semaphore_acquire_blocking(bide_semaphore *semaphore, uint32_t permits,
                                                uint64_t deadline)
{
    bide_semaphore_waiter waiter;
    return bide_sync_wait_until(bide_semaphore_acquire_many(&waiter, semaphore, permits), deadline);
}

#define bide_semaphore_acquire_blocking(...) \
    BIDE_BLOCKS_(bide_semaphore_acquire_blocking(__VA_ARGS__))

/*
 * Gives `permits` back, or adds new ones. Wakes the waiters that now have what they want, in the
 * order in which they came, but not on the caller's stack while a coroutine is running on it. More
 * than BIDE_SEMAPHORE_MAX free permits are misuse.
 * Threads: any. Suspends: never. Progress: lock-free, linear in the waiters that it wakes.
 */
void bide_semaphore_release(bide_semaphore *semaphore, uint32_t permits);

/*
 * Closes the semaphore: waits end with -EPIPE, now and later, and nothing can be acquired any more.
 * More than once is once.
 * Threads: any. Suspends: never. Progress: lock-free, linear in the waiters.
 */
void bide_semaphore_close(bide_semaphore *semaphore);

BIDE_INLINE void bide_semaphore_destroy_checked_(bide_semaphore *semaphore, const char *what,
                                                 const char *function, const char *file,
                                                 unsigned line)
{
    if (!bide_waiter_queue_is_idle(&semaphore->queue))
        bide_misuse_(what, function, file, line);
}

/*
 * The end of its life. Does nothing; if BIDE_DEBUG is 1 it reports misuse if a wait is
 * under way.
 * Threads: any. Progress: wait-free.
 */
#define bide_semaphore_destroy(semaphore)                           \
    BIDE_END_OF_LIFE_(bide_semaphore_destroy_checked_, (semaphore), \
                      "a semaphore is destroyed while it is waited for", #semaphore)

BIDE_EXTERN_C_END

#endif

/*
 * A lock for short times, on the platform's futex. Floor: coroutine.
 *
 *     word   FREE (0)    HELD (1)    CONTENDED (2): held, and a waiter may sleep
 *
 * 1. Taking it acquires, freeing it releases: its holder sees the work of earlier holders.
 * 2. No sleeper is forgotten: it has stored CONTENDED, and stores it again when it takes the lock,
 *    because there may be others; freeing a CONTENDED lock wakes one.
 * 3. After the exchange that frees it only the address is used, so the memory may be freed by then.
 *
 * Source: Ulrich Drepper, Futexes Are Tricky, mutex2.
 */
#ifndef BIDE_COROUTINE_LOCK_H
#define BIDE_COROUTINE_LOCK_H

#include "bide/platform.h"

enum { LOCK_FREE, LOCK_HELD, LOCK_CONTENDED };

static inline void lock_take(bide_atomic(uint32_t) * lock)
{
    uint32_t found = LOCK_FREE;
    /* acquire, here and below: partner is lock_free's release, 1. */
    if (BIDE_LIKELY(bide_atomic_compare_exchange(lock, &found, LOCK_HELD, acquire, relaxed)))
        return;
    while (bide_atomic_exchange(lock, LOCK_CONTENDED, acquire) != LOCK_FREE)
        bide_platform.wait(lock, LOCK_CONTENDED, BIDE_FOREVER);
}

static inline void lock_free(bide_atomic(uint32_t) * lock)
{
    /* release: partner is lock_take's acquire. */
    if (BIDE_UNLIKELY(bide_atomic_exchange(lock, LOCK_FREE, release) == LOCK_CONTENDED))
        bide_platform.wake(lock, 1);
}

#endif

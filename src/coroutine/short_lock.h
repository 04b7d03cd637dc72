/*
 * A lock for a few instructions that run very often. Without contention, taking and freeing it is one
 * locked instruction; the futex lock (lock.h) takes two. A thread that finds it held polls for a while
 * and then sleeps, so that the holder gets to run whatever the two threads' priorities are. The lock's
 * memory must stay: another thread may hold the lock while `free` still reads it. Not from a signal
 * handler, which could interrupt the holder. Floor: coroutine.
 *
 *     held       0 <-> 1
 *     sleepers   the number of threads that sleep until it is freed, or are about to
 *
 * Why it is correct:
 *
 * 1. Taking acquires and freeing releases: the holder sees the work of earlier holders.
 * 2. No sleeper is forgotten. It counts itself in `sleepers`, passes the heavy fence X, and then
 *    sleeps only while `held` is 1. The holder that has stored that 1 will free the lock: it stores
 *    0, passes the light fence L, and reads `sleepers`. L and X order each other. If L came first,
 *    the sleeper would see the 0, or a later value; it sees the 1 before it. So X comes
 *    first, and the holder sees the count, and wakes.
 * 3. A sleeper that was woken may find that another thread has taken the lock before it. It is
 *    still counted, so that holder wakes again when it frees the lock, by 2. Waking one at a time is
 *    enough.
 *
 * The model checker has a scenario of its own for the lock (BIDE_SHORT_LOCK defined as 1). Code that
 * uses the lock is checked with a lock of the checker's instead, which obeys 1, because this one has
 * too many executions.
 */
#ifndef BIDE_COROUTINE_SHORT_LOCK_H
#define BIDE_COROUTINE_SHORT_LOCK_H

#include "bide/detail/tuning.h"
#include "bide/extend/fence.h"
#include "bide/platform.h"

#ifndef BIDE_SHORT_LOCK
#define BIDE_SHORT_LOCK (!BIDE_CHECK)
#endif

#if BIDE_SHORT_LOCK

typedef struct bide_short_lock_ {
    bide_atomic(uint32_t) held;
    bide_atomic(uint32_t) sleepers;
} bide_short_lock_;

/* Before the lock is shared. */
BIDE_INLINE void bide_short_lock_init_(bide_short_lock_ *lock)
{
    bide_atomic_init(&lock->held, 0);
    bide_atomic_init(&lock->sleepers, 0);
}

BIDE_COLD static void bide_short_lock_wait_(bide_short_lock_ *lock)
{
    for (int i = 0; i < BIDE_SHORT_SPINS_; i++) {
        bide_cpu_relax();
        /* relaxed: only a hint. acquire: 1, partner is the store of free. */
        if (bide_atomic_load(&lock->held, relaxed) == 0 &&
            bide_atomic_exchange(&lock->held, 1, acquire) == 0)
            return;
    }
    bide_atomic_fetch_add(&lock->sleepers, 1, relaxed);        /* relaxed: 2, by the fence */
    bide_atomic_fence_heavy();                                 /* X; partner: L */
    while (bide_atomic_exchange(&lock->held, 1, acquire) != 0) /* 1, likewise */
        bide_platform.wait(&lock->held, 1, BIDE_FOREVER);
    bide_atomic_fetch_sub(&lock->sleepers, 1, relaxed); /* relaxed: only a count */
}

BIDE_INLINE void bide_short_lock_take_(bide_short_lock_ *lock)
{
    if (BIDE_UNLIKELY(bide_atomic_exchange(&lock->held, 1, acquire) != 0)) /* 1, likewise */
        bide_short_lock_wait_(lock);
}

BIDE_INLINE void bide_short_lock_free_(bide_short_lock_ *lock)
{
    bide_atomic_store(&lock->held, 0, release); /* 1, partners are the exchanges */
    bide_atomic_fence_light();                  /* L; partner: X */
    if (BIDE_UNLIKELY(bide_atomic_load(&lock->sleepers, relaxed) != 0))
        bide_platform.wake(&lock->held, 1);
}

#else

#include "bide/check_pthread.h"

typedef pthread_mutex_t bide_short_lock_;

BIDE_INLINE void bide_short_lock_init_(bide_short_lock_ *lock)
{
    pthread_mutex_init(lock, NULL);
}

BIDE_INLINE void bide_short_lock_take_(bide_short_lock_ *lock)
{
    pthread_mutex_lock(lock);
}

BIDE_INLINE void bide_short_lock_free_(bide_short_lock_ *lock)
{
    pthread_mutex_unlock(lock);
}

#endif

#endif

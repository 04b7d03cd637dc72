/*
 * A lock for a few instructions that are run very often: to take it and free it is one locked instruction, where the
 * futex's (lock.h) takes two. Who finds it held looks for a while and then lets other threads run. Not from a signal
 * handler: it could interrupt the holder. Floor: coroutine.
 *
 *     held   0 <-> 1
 *
 * 1. Taking acquires and releasing releases: who holds it sees what those before it did under it.
 */
#ifndef BIDE_COROUTINE_SPIN_LOCK_H
#define BIDE_COROUTINE_SPIN_LOCK_H

#include "bide/platform.h"

enum { BIDE_SPIN_LOOKS_ = BIDE_CHECK ? 1 : 64 };

typedef struct bide_spin_lock_ {
    bide_atomic(uint32_t) held;
} bide_spin_lock_;

BIDE_COLD static void bide_spin_lock_wait_(bide_spin_lock_ *lock)
{
    do {
        uint32_t looks = 0;
        /* relaxed: only a hint, the exchange acquires */
        while (bide_atomic_load(&lock->held, relaxed) != 0) {
            bide_cpu_relax();
            if (++looks % BIDE_SPIN_LOOKS_ == 0)
                bide_platform.yield();
        }
    } while (bide_atomic_exchange(&lock->held, 1, acquire) !=
             0); /* 1: partner is the store of free */
}

BIDE_INLINE void bide_spin_lock_take_(bide_spin_lock_ *lock)
{
    if (BIDE_UNLIKELY(bide_atomic_exchange(&lock->held, 1, acquire) != 0)) /* 1: likewise */
        bide_spin_lock_wait_(lock);
}

BIDE_INLINE void bide_spin_lock_free_(bide_spin_lock_ *lock)
{
    bide_atomic_store(&lock->held, 0, release); /* 1: partner is the exchange */
}

#endif

/*
 * What several senders of a broadcast or a watch have in common: one at a time writes and publishes,
 * under a lock; each wakes waiters when it has freed the lock. Why it is correct: the pages of the two.
 */
#ifndef BIDE_QUEUE_SENDERS_H
#define BIDE_QUEUE_SENDERS_H

#include "../coroutine/lock.h"

#include "bide/sequence_barrier.h"

/*
 * The holder of the lock has written what `sequence` leads to: publishes it, frees the lock, and wakes
 * the waiters. A coroutine that runs meanwhile may send.
 */
static inline void senders_publish(bide_atomic(uint32_t) * lock, bide_sequence_barrier *barrier,
                                   bide_sequence sequence)
{
    /* release: 2, partners are the acquires of `published`. N of waiter_list.md. */
    bide_atomic_store(&barrier->published, sequence, release);
    lock_free(lock);
    uintptr_t word = bide_biased_list_peek(&barrier->waiters);
    if (BIDE_UNLIKELY(word > BIDE_LIST_SHUT))
        bide_sequence_barrier_wake_(barrier, word);
}

#endif

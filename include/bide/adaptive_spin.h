/*
 * Adaptive spinning: look again after a microsecond before waiting, if that has paid off lately.
 * Floor: sync.
 *
 *     bide_adaptive_spin spin;                                // a member of the frame, all zeros
 *
 *     bide_spin_until(&self->spin, bide_sequence_barrier_last_published(barrier) != self->known);
 *     bide_await(bide_sequence_barrier_wait_until_published(&self->wait, barrier, ...));
 *
 * It is for a consumer of a fast publisher on another thread. If that consumer waits for each number,
 * it is woken for each number: it enlists, it is woken, and cache lines travel both ways. After a spin
 * it finds many numbers at once. So spinning raises throughput, and may delay a number by a
 * microsecond. Use it where throughput matters more than the latency of each number.
 *
 * A spin pays off if the condition holds after it. Then the next wait spins too. After n spins in a
 * row that did not pay off, the next 2^n - 1 waits do not spin: 1, then 3, up to 63. If spinning never
 * pays off, because the publisher is slow or runs on the same thread, it costs a microsecond in 64
 * waits.
 *
 * A bide_adaptive_spin belongs to one waiter, at one place where it waits. One thread at a time uses
 * it. bide_spin_until never suspends. Waiting after it is correct whatever it returns.
 *
 * Source: the adaptive mutexes; the wait strategies of the disruptor.
 */
#ifndef BIDE_ADAPTIVE_SPIN_H
#define BIDE_ADAPTIVE_SPIN_H

#include "bide/atomic.h"
#include "bide/detail/tuning.h"

BIDE_EXTERN_C_BEGIN

/*
 * The memory of one waiter, for one place where it waits. It belongs to the waiter, and is all
 * zeros at first. One thread at a time.
 */
typedef struct bide_adaptive_spin {
    uint8_t vain; /* how often in a row it was in vain, up to 6 */
    uint8_t skip; /* so many times it is left out now */
} bide_adaptive_spin;

/*
 * True if `condition`, an expression that may be evaluated twice, is true, at once or after a spin;
 * the second look is taken only after a spin. `condition` is one that does not suspend:
 * _last_published, _is_published, _is_set and the like. Waiting is right afterwards, whatever is
 * returned. Its effect is in bench/RESULTS.md, "ring".
 * Threads: the waiter's. Suspends: never. Progress: blocks for a microsecond.
 */
#define bide_spin_until(spin, condition) \
    bide_spin_says_((condition) || (bide_spin_begin_(spin) && bide_spin_end_((spin), (condition))))

/* So that the result may go unused. */
BIDE_INLINE bool bide_spin_says_(bool holds)
{
    return holds;
}

/* Is it worth it? If so it is done. */
BIDE_INLINE bool bide_spin_begin_(bide_adaptive_spin *spin)
{
    if (spin->skip != 0) {
        spin->skip--;
        return false;
    }
    for (int i = 0; i < BIDE_SPIN_PAUSES; i++)
        bide_cpu_relax();
    return true;
}

BIDE_INLINE bool bide_spin_end_(bide_adaptive_spin *spin, bool paid)
{
    if (paid)
        spin->vain = 0;
    else if (spin->vain < 6)
        spin->vain++;
    spin->skip = (uint8_t)((1U << spin->vain) - 1);
    return paid;
}

BIDE_EXTERN_C_END

#endif

/*
 * Spinning a while before one waits, where that pays. Floor: sync.
 *
 *     bide_spin_until(&self->spin, bide_sequence_barrier_last_published(barrier) != self->known);
 *     bide_await(bide_sequence_barrier_wait_until_published(&self->wait, barrier, ...));
 *
 * Where a publisher in another thread is hot, a consumer that waits for each number gets it at
 * once. Both sides pay for that: the consumer enlists, it is woken, and the cache lines go across
 * and back, for one number. If it looks away for a microsecond first, it finds many. That is worth
 * it where throughput counts, not where each number is to be read at once. So the consumer says so,
 * before it waits.
 *
 * It is adaptive: a consumer that has spun in vain spins again only after it has waited without it
 * once, then three times, and so on up to 63. So where it never pays, as where the publisher runs
 * on the same thread, or seldom publishes, it costs a microsecond in 64 waits; and where nothing is
 * published nobody spins. Once it has paid, it is done each time again.
 *
 * Source: the adaptive mutexes; the wait strategies of the disruptor.
 */
#ifndef BIDE_ADAPTIVE_SPIN_H
#define BIDE_ADAPTIVE_SPIN_H

#include "bide/atomic.h"
#include "bide/detail/tuning.h"

BIDE_EXTERN_C_BEGIN

/*
 * What one waiter remembers, for one place where it waits. Its own, all zeros to begin with; one
 * thread at a time.
 */
typedef struct bide_adaptive_spin {
    uint8_t vain; /* how often in a row it was in vain, up to 6 */
    uint8_t skip; /* so many times it is left out now */
} bide_adaptive_spin;

/*
 * True if `condition`, an expression that may be evaluated twice, is true, at once or after a spin;
 * the second look is taken only after a spin. `condition` is one that does not suspend:
 * _last_published, _is_published, _is_set and the like. To wait is right afterwards, whatever is
 * returned. What it gives: bench/RESULTS.md, "ring".
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

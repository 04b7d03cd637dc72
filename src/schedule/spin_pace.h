/*
 * How often a thread looks for work before it sleeps. Looking costs processor time, and sleeping costs a wake, which
 * takes as long as some hundred looks. So the number is adapted to whether looking has paid, between `min` and `max`:
 *
 *     twice as many after looking has paid; half as many after it was in vain
 *     at the least: `max` for once, after a number of sleeps, which is doubled each time that this was in vain too
 *
 * Without these trials two threads that wake each other would sleep for ever once both looked least: a wake takes longer
 * than that, so looking would never pay. With them one looks for long enough now and then, then both do. If it never pays,
 * as where both are on one processor, it is a trial in BIDE_SPIN_SLEEPS_TO_TRY_MAX_ sleeps.
 *
 * Of one thread. Zero looks stay zero. `event`.
 */
#ifndef BIDE_SCHEDULE_SPIN_PACE_H
#define BIDE_SCHEDULE_SPIN_PACE_H

#include "bide/detail/tuning.h"
#include "bide/run_loop.h"

BIDE_INLINE void bide_spin_pace_init_(bide_spin_pace_ *pace, uint32_t spins)
{
    pace->spins = spins;
    pace->sleeps_to_trial = pace->trial_interval = BIDE_SPIN_SLEEPS_TO_TRY_;
}

/* How often to look now. */
BIDE_INLINE uint32_t bide_spin_pace_looks_(const bide_spin_pace_ *pace, uint32_t min, uint32_t max)
{
    return pace->spins == min && pace->sleeps_to_trial == 0 ? max : pace->spins;
}

/* It has looked `looks` times, as bide_spin_pace_looks_ said, or has found something before. */
BIDE_INLINE void bide_spin_pace_note_(bide_spin_pace_ *pace, uint32_t looks, bool paid,
                                      uint32_t min, uint32_t max)
{
    bool is_trial = looks != pace->spins;
    if (is_trial && paid) {
        pace->spins = max;
        pace->trial_interval = BIDE_SPIN_SLEEPS_TO_TRY_;
    } else if (is_trial) {
        if (pace->trial_interval < BIDE_SPIN_SLEEPS_TO_TRY_MAX_)
            pace->trial_interval *= 2;
        pace->sleeps_to_trial = pace->trial_interval;
    } else if (paid) {
        if (pace->spins < max)
            pace->spins *= 2;
    } else if (pace->spins > min) {
        pace->spins /= 2;
        pace->sleeps_to_trial = pace->trial_interval;
    } else if (pace->spins != 0) {
        pace->sleeps_to_trial--;
    }
}

#endif

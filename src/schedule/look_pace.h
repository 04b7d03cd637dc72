/*
 * How many turns a scheduler runs between two looks at the clock, its timers, and the work of others. Reading the clock
 * for each turn would cost as much as a short turn, so the number is adapted to the measured length of turns:
 *
 *     4 at first; twice as many after a look that came early; fewer after one that came late; never more than `max`
 *
 * While turns are as long as those before the last look, a look comes at most BIDE_LOOK_TIME_ and a turn after the one
 * before. If they suddenly become longer, one look comes late: up to `max` turns after the one before. The next ones
 * come in time again.
 *
 * Of one thread.
 */
#ifndef BIDE_SCHEDULE_LOOK_PACE_H
#define BIDE_SCHEDULE_LOOK_PACE_H

#include "bide/detail/tuning.h"
#include "bide/frame.h"

/* The number when it is not known how long turns are, as after a sleep. */
enum { BIDE_LOOK_FIRST_ = 4 };

/* The number for the next look; this one came `time` after the one before, which was `turns` turns ago. */
BIDE_INLINE uint32_t bide_look_turns_(uint32_t turns, uint32_t max, uint64_t time)
{
    if (time <= BIDE_LOOK_TIME_ / 4)
        return turns <= max / 2 ? 2 * turns : max;
    for (; time > BIDE_LOOK_TIME_ / 2 && turns > 1; time /= 2)
        turns /= 2;
    return turns;
}

#endif

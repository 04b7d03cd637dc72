/* Pausing for long enough to leave cache lines to another thread. Part of the queues' headers.
 * Floor: base. */
#ifndef BIDE_DETAIL_BACK_OFF_H
#define BIDE_DETAIL_BACK_OFF_H

#include "bide/atomic.h"

BIDE_INLINE void bide_pause_(unsigned times)
{
    for (unsigned i = 0; i < times; i++)
        bide_cpu_relax();
}

/* Pauses *pauses times, and twice as often the next time, up to `max`. */
BIDE_INLINE void bide_back_off_(unsigned *pauses, unsigned max)
{
    bide_pause_(*pauses);
    if (*pauses < max)
        *pauses *= 2;
}

#endif

/*
 * Asking coroutines to stop. A source is a flag that is raised once; coroutines find it in their context
 * and end when they see fit. Floor: coroutine.
 */
#ifndef BIDE_STOP_H
#define BIDE_STOP_H

#include "bide/frame.h"

BIDE_EXTERN_C_BEGIN

struct bide_stop_source {
    bide_atomic(uint32_t) requested; /* 0, then 1 for good */
};

/* Before it is shared. */
BIDE_INLINE void bide_stop_source_init(bide_stop_source *source)
{
    bide_atomic_init(&source->requested, 0);
}

/* Asks all whose context has this source to stop. Any thread, and from a signal handler; wait-free. */
BIDE_INLINE void bide_stop_request(bide_stop_source *source)
{
    /* release: partner is bide_stop_requested's acquire; what was written before (a reason) is seen. */
    bide_atomic_store(&source->requested, 1, release);
}

/* Was it asked to stop? NULL never is. Any thread; wait-free. */
BIDE_INLINE bool bide_stop_requested(bide_stop_source *source)
{
    /* acquire: partner is bide_stop_request's release. */
    return source != NULL && bide_atomic_load(&source->requested, acquire) != 0;
}

BIDE_EXTERN_C_END

#endif

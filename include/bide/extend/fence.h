/*
 * Asymmetric fences: if one side of a handshake runs far more often than the other, its fence is
 * free, and the other's is expensive. Floor: base.
 *
 *     often:    x.store(1); light fence; read y        rarely:   y.store(1); heavy fence; read x
 *
 * At least one of the two sees the other's store, as with two seq_cst fences. Here the first fence
 * costs the processor nothing, and the second makes every running thread pass a full fence: on
 * Linux by membarrier, 0.1 us, or some microseconds if other processors run threads of this
 * program.
 *
 * A light and a heavy fence order each other, and so do two heavy ones; a heavy one is a seq_cst
 * fence besides. A light one orders nothing else: not another light one, not a seq_cst fence or
 * access, and it neither acquires nor releases. Any thread may pass either. They are wait-free,
 * except for the system's barrier.
 *
 * A filter of system calls that forbids membarrier must be installed before the first wait.
 */
#ifndef BIDE_EXTEND_FENCE_H
#define BIDE_EXTEND_FENCE_H

#include "bide/platform.h"

BIDE_EXTERN_C_BEGIN

#if BIDE_CHECK

#define bide_atomic_fence_light() bide_atomic_fence(light)
#define bide_atomic_fence_heavy() bide_atomic_fence(heavy)

#else

enum { BIDE_FENCES_UNDECIDED_, BIDE_FENCES_ASYMMETRIC_, BIDE_FENCES_SYMMETRIC_ };

extern bide_atomic(uint32_t) bide_fences_;

/*
 * The frequent side's fence.
 * Threads: any. Progress: wait-free.
 */
BIDE_INLINE void bide_atomic_fence_light(void)
{
    if (BIDE_LIKELY(bide_atomic_load(&bide_fences_, relaxed) == BIDE_FENCES_ASYMMETRIC_))
        bide_atomic_compiler_fence();
    else
        bide_atomic_fence(seq_cst); /* partner: the heavy fence */
}

/*
 * The seldom side's fence.
 * Threads: any. Progress: wait-free, except for the system's barrier.
 */
void bide_atomic_fence_heavy(void);

#endif

/*
 * Why it is correct: where the system offers no such thing both are seq_cst fences. Which it is, is
 * known when the first heavy fence has tried, and never changes then:
 *
 *     UNDECIDED    --a barrier has succeeded-->  ASYMMETRIC
 *                  --there is none, or it has failed-->  SYMMETRIC
 *
 * 1. A light fence leaves its fence out only in ASYMMETRIC. Then no heavy fence was or will be
 *    without a barrier: a heavy fence that found none says SYMMETRIC first, and that excludes
 *    ASYMMETRIC (one compare-exchange of the one word).
 * 2. So a light fence that is left out meets heavy ones that are barriers, also fences that
 *    were begun while nothing was decided. A light fence that is not left out is a full fence, and
 *    meets barriers or full fences. It does not matter how old the state is that a light fence
 *    finds: relaxed.
 * 3. A barrier that fails once others have succeeded leaves nothing to do: misuse.
 *
 * Source: asymmetric_thread_fence_light and _heavy of the Concurrency TS 2 (P1202).
 */

BIDE_EXTERN_C_END

#endif

/* The heavy half of an asymmetric fence, for any thread. States and argument: fence.h. */
#include "bide/extend/fence.h"

#if !BIDE_CHECK

bide_atomic(uint32_t) bide_fences_;

void bide_atomic_fence_heavy(void)
{
    uint32_t state = bide_atomic_load(&bide_fences_, relaxed);
    if (state != BIDE_FENCES_SYMMETRIC_) {
        bool passed = bide_platform.barrier != NULL && bide_platform.barrier() == 0;
        uint32_t decided = passed ? BIDE_FENCES_ASYMMETRIC_ : BIDE_FENCES_SYMMETRIC_;
        if (state == BIDE_FENCES_UNDECIDED_ &&
            bide_atomic_compare_exchange(&bide_fences_, &state, decided, relaxed, relaxed))
            state = decided;
        if (!passed && state == BIDE_FENCES_ASYMMETRIC_)
            bide_platform.misuse("the system's barrier fails, and had worked", __func__, __FILE__,
                                 __LINE__);
    }
    bide_atomic_fence(seq_cst); /* partner: the light fence, where it is one */
}

#else
typedef int bide_fence_is_the_checkers_; /* a file is not empty */
#endif

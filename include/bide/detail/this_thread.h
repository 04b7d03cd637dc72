/* Which thread is this? Floor: base. */
#ifndef BIDE_DETAIL_THIS_THREAD_H
#define BIDE_DETAIL_THIS_THREAD_H

#include "bide/compiler.h"

BIDE_EXTERN_C_BEGIN

#if BIDE_CHECK

unsigned bide_check_thread(void);

BIDE_INLINE uintptr_t bide_this_thread_(void)
{
    return ((uintptr_t)bide_check_thread() + 1) * 4;
}

#else

extern BIDE_THREAD_LOCAL uint32_t bide_this_thread_word_; /* only its address is used */

/*
 * A number of the calling thread's: a multiple of 4, not 0. No other thread has it while this one
 * runs. A thread that begins later may, and comes after all that this one did, because the system
 * gives it the memory that this one had.
 */
BIDE_INLINE uintptr_t bide_this_thread_(void)
{
    return (uintptr_t)&bide_this_thread_word_;
}

#endif

BIDE_EXTERN_C_END

#endif

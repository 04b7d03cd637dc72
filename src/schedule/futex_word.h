/* A word that holds a pointer or a small odd number, as what a thread sleeps on. */
#ifndef BIDE_SCHEDULE_LOW_HALF_H
#define BIDE_SCHEDULE_LOW_HALF_H

#include "bide/atomic.h"

/*
 * The half of `word` that holds its low 32 bits: the system compares no more than that. It is odd
 * while the word holds an odd number, and even while it holds a pointer, so it differs when the
 * word does. Only the address is used.
 */
BIDE_INLINE bide_atomic(uint32_t) * bide_low_half_(bide_atomic(uintptr_t) * word)
{
    bide_atomic(uint32_t) *half = (bide_atomic(uint32_t) *)(void *)word;
#if defined __BYTE_ORDER__ && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    half += sizeof *word / sizeof *half - 1;
#endif
    return half;
}

#endif

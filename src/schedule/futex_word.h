/* A futex word inside a word that holds a pointer or a small odd number. Floor: schedule. */
#ifndef BIDE_SCHEDULE_FUTEX_WORD_H
#define BIDE_SCHEDULE_FUTEX_WORD_H

#include "bide/atomic.h"

/*
 * The half of `word` that holds its low 32 bits, which is what the system compares. It is odd while
 * the word holds an odd number, and even while the word holds a pointer: so it changes when the word
 * changes from one to the other. Only the address is used.
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

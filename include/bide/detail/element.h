/*
 * Copies of elements of any type: what the queues' typed macros come down to. The size is a
 * constant wherever one element is copied, so that it is a move or two. Part of the queues'
 * headers. Floor: base.
 */
#ifndef BIDE_DETAIL_ELEMENT_H
#define BIDE_DETAIL_ELEMENT_H

#include "bide/atomic.h"

#if BIDE_CHECK

/* One word at a time as far as that goes, each watched by the model checker. */
BIDE_INLINE void bide_element_copy_(void *to, const void *from, size_t size)
{
    const size_t word = sizeof(uint64_t);
    size_t done = 0;
    if (((uintptr_t)to | (uintptr_t)from) % word == 0)
        for (; size - done >= word; done += word) {
            uint64_t value = bide_plain_load((const uint64_t *)((const char *)from + done));
            bide_plain_store((uint64_t *)((char *)to + done), value);
        }
    for (; done < size; done++) {
        char value = bide_plain_load((const char *)from + done);
        bide_plain_store((char *)to + done, value);
    }
}

#else

BIDE_INLINE void bide_element_copy_(void *to, const void *from, size_t size)
{
#if defined __GNUC__
    if (size ==
        sizeof(uint64_t)) /* (where the size is not a constant, words are moved without a call) */
        __builtin_memcpy(to, from, sizeof(uint64_t));
    else
        __builtin_memcpy(to, from, size);
#else
    for (size_t i = 0; i < size; i++)
        /* cppcheck-suppress useStandardLibrary; there may be none */
        ((unsigned char *)to)[i] = ((const unsigned char *)from)[i];
#endif
}

#endif

#endif

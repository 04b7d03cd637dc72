/* How queues copy an element of a size that the compiler knows: a move or two. */
#ifndef BIDE_ELEMENT_H
#define BIDE_ELEMENT_H

#include "bide/atomic.h"

BIDE_INLINE void bide_element_copy_(void *to, const void *from, size_t size)
{
#if BIDE_CHECK
    /* in words, so that the checker sees each access */
    if (size % sizeof(uint64_t) == 0) {
        for (size_t i = 0; i < size / sizeof(uint64_t); i++)
            bide_plain_store((uint64_t *)to + i, bide_plain_load((const uint64_t *)from + i));
        return;
    }
    for (size_t i = 0; i < size; i++)
        bide_plain_store((unsigned char *)to + i, bide_plain_load((const unsigned char *)from + i));
#elif defined __GNUC__
    __builtin_memcpy(to, from, size);
#else
    for (size_t i = 0; i < size; i++)
        ((unsigned char *)to)[i] = ((const unsigned char *)from)[i];
#endif
}

#endif

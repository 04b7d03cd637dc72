/* The smaller of two sizes. */
#ifndef BIDE_IO_SIZE_MIN_H
#define BIDE_IO_SIZE_MIN_H

#include "bide/compiler.h"

#include <stddef.h>

BIDE_INLINE size_t size_min(size_t a, size_t b)
{
    return a < b ? a : b;
}

#endif

/*
 * malloc as an allocator. It aligns to at least BIDE_ALLOCATOR_ALIGN or, on 32-bit systems, may
 * not: then more is asked for.
 */
#include "bide/allocator.h"

#include <stdalign.h>
#include <stdlib.h>

static void *allocate(bide_allocator *allocator, size_t size)
{
    (void)allocator;
    if (alignof(max_align_t) >= BIDE_ALLOCATOR_ALIGN)
        return malloc(size);
    size_t all = (size + BIDE_ALLOCATOR_ALIGN - 1) & ~(size_t)(BIDE_ALLOCATOR_ALIGN - 1);
    return all < size ? NULL : aligned_alloc(BIDE_ALLOCATOR_ALIGN, all);
}

static void deallocate(bide_allocator *allocator, void *memory, size_t size)
{
    (void)allocator;
    (void)size;
    free(memory);
}

bide_allocator bide_heap = {allocate, deallocate};

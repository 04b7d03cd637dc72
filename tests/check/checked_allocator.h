/*
 * For scenarios whose structures take an allocator: the checker's memory, which is watched.
 */
#ifndef CHECKED_ALLOCATOR_H
#define CHECKED_ALLOCATOR_H

#include "bide/allocator.h"
#include "bide/check.h"

static void *checked_allocate(bide_allocator *allocator, size_t size)
{
    (void)allocator;
    uint64_t *memory = bide_check_alloc(size);
    if (memory != NULL && size >= sizeof *memory)
        bide_plain_store(memory, 0); /* so that an unordered release of the memory is detected */
    return memory;
}

static void checked_deallocate(bide_allocator *allocator, void *memory, size_t size)
{
    (void)allocator;
    if (size >= sizeof(uint64_t))
        bide_plain_store((uint64_t *)memory, 0);
    bide_check_free(memory);
}

static inline void checked_allocator_init(bide_allocator *allocator)
{
    allocator->allocate = checked_allocate;
    allocator->deallocate = checked_deallocate;
}

#endif

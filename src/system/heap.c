/*
 * malloc as an allocator. On 32-bit systems malloc may align to less than BIDE_ALLOCATOR_ALIGN; then
 * aligned_alloc is used. Any thread.
 */
#include "bide/allocator.h"

#include <stdalign.h>
#include <stdlib.h>

static void *heap_allocate(bide_allocator *allocator, size_t size)
{
    (void)allocator;
#ifdef _WIN32
    BIDE_STATIC_ASSERT(alignof(max_align_t) >= BIDE_ALLOCATOR_ALIGN, "there is no aligned_alloc");
    return malloc(size);
#else
    if (alignof(max_align_t) >= BIDE_ALLOCATOR_ALIGN)
        return malloc(size);
    size_t all = (size + BIDE_ALLOCATOR_ALIGN - 1) & ~(size_t)(BIDE_ALLOCATOR_ALIGN - 1);
    return all < size ? NULL : aligned_alloc(BIDE_ALLOCATOR_ALIGN, all);
#endif
}

static void heap_deallocate(bide_allocator *allocator, void *memory, size_t size)
{
    (void)allocator;
    (void)size;
    free(memory);
}

bide_allocator bide_heap = {heap_allocate, heap_deallocate};

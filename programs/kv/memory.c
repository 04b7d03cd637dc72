/* Counted memory. */
#include "memory.h"

#include <malloc.h>
#include <stdlib.h>

size_t memory_used;

static void *count_memory(void *memory)
{
    memory_used += malloc_usable_size(memory); /* (0, if there is none) */
    return memory;
}

void *memory_allocate(size_t size)
{
    return count_memory(malloc(size));
}

void *memory_allocate_zeroed(size_t count, size_t size)
{
    return count_memory(calloc(count, size));
}

void *memory_reallocate(void *memory, size_t size)
{
    size_t before = malloc_usable_size(memory);
    void *moved = realloc(memory, size);
    if (moved == NULL)
        return NULL;
    memory_used -= before;
    return count_memory(moved);
}

void memory_free(void *memory)
{
    memory_used -= malloc_usable_size(memory);
    free(memory);
}

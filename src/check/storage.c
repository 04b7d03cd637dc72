/*
 * Growing arrays, and a stack of blocks for scratch memory.
 */
#include "storage.h"

#include "heap.h"

#include "bide/platform.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *check_memory(void *memory)
{
    if (memory == NULL) {
        fputs("bide_check: out of memory\n", stderr);
        abort();
    }
    return memory;
}

void *grown(void *array, unsigned *capacity, unsigned needed, size_t size)
{
    if (needed <= *capacity)
        return array;
    unsigned larger = *capacity == 0 ? needed : *capacity * 2;
    while (larger < needed)
        larger *= 2;
    array = check_memory(heap_own_resized(array, larger * size));
    memset((char *)array + *capacity * size, 0, (larger - *capacity) * size);
    *capacity = larger;
    return array;
}

/* Blocks are never reallocated, so scratch memory does not move. */
typedef struct scratch_block {
    struct scratch_block *next;
    size_t size;
    max_align_t memory[];
} scratch_block;

static scratch_block *first, *current;
static size_t used;

void scratch_begin(void)
{
    current = first;
    used = 0;
}

void *scratch(size_t size)
{
    size = (size + sizeof(max_align_t) - 1) & ~(sizeof(max_align_t) - 1);
    while (current == NULL || current->size - used < size) {
        if (current != NULL && current->next != NULL) {
            current = current->next;
        } else {
            size_t larger = size > 65536 ? size : 65536;
            scratch_block *added = check_memory(heap_own_resized(NULL, sizeof *added + larger));
            added->next = NULL;
            added->size = larger;
            if (current == NULL)
                first = added;
            else
                current->next = added;
            current = added;
        }
        used = 0;
    }
    void *memory = (char *)current->memory + used;
    used += size;
    bide_assert(used <= current->size);
    return memset(memory, 0, size);
}

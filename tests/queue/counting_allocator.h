/* An allocator that counts its memory, for tests of the memory use of queues. */
#ifndef BIDE_TESTS_COUNTING_ALLOCATOR_H
#define BIDE_TESTS_COUNTING_ALLOCATOR_H

#include "testing.h"

#include "bide/allocator.h"
#include "bide/atomic.h"

/* Counts the memory in use, and fails at the n-th call. */
typedef struct counting {
    bide_allocator allocator;
    bide_atomic(size_t) out; /* bytes */
    bide_atomic(uint32_t) calls;
    uint32_t failing; /* this call fails, and all later ones; 0: none */
} counting;

static void *counting_allocate(bide_allocator *allocator, size_t size)
{
    counting *counting = bide_container_of(allocator, struct counting, allocator);
    uint32_t call = bide_atomic_fetch_add(&counting->calls, 1, relaxed) + 1;
    if (counting->failing != 0 && call >= counting->failing)
        return NULL;
    bide_atomic_fetch_add(&counting->out, size, relaxed);
    return malloc(size);
}

static void counting_deallocate(bide_allocator *allocator, void *memory, size_t size)
{
    counting *counting = bide_container_of(allocator, struct counting, allocator);
    bide_atomic_fetch_sub(&counting->out, size, relaxed);
    free(memory);
}

static inline void counting_init(counting *counting, uint32_t failing)
{
    counting->allocator.allocate = counting_allocate;
    counting->allocator.deallocate = counting_deallocate;
    bide_atomic_init(&counting->out, (size_t)0);
    bide_atomic_init(&counting->calls, 0);
    counting->failing = failing;
}

static inline size_t out_of(counting *counting)
{
    return bide_atomic_load(&counting->out, relaxed);
}

#endif

/* An allocator that counts, fails on request, and overwrites released memory. */
#ifndef BIDE_COUNTING_H
#define BIDE_COUNTING_H

#include "testing.h"

#include "bide/allocator.h"

/* Forwards to another, counts, and fails on request. */
struct counting {
    bide_allocator allocator;
    bide_allocator *inner;
    int calls;
    int fail_at; /* the number of the call, from 1; 0: never */
    int held;
    int max_held;
};

static void *counting_allocate(bide_allocator *allocator, size_t size)
{
    struct counting *counting = bide_container_of(allocator, struct counting, allocator);
    if (++counting->calls == counting->fail_at)
        return NULL;
    void *memory = counting->inner->allocate(counting->inner, size);
    if (memory != NULL && ++counting->held > counting->max_held)
        counting->max_held = counting->held;
    return memory;
}

static void counting_deallocate(bide_allocator *allocator, void *memory, size_t size)
{
    struct counting *counting = bide_container_of(allocator, struct counting, allocator);
    counting->held--;
    memset(memory, 0xdd, size); /* to detect later uses */
    counting->inner->deallocate(counting->inner, memory, size);
}

static inline void count(struct counting *counting, bide_allocator *inner)
{
    *counting = (struct counting){.inner = inner};
    counting->allocator.allocate = counting_allocate;
    counting->allocator.deallocate = counting_deallocate;
}

#endif

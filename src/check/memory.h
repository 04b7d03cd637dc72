/*
 * The plain memory of a scenario: its state, the stacks, what it allocates, and the program's own data. For each
 * access that the scenario marks, or the compiler reports (-fsanitize=thread), it is seen whether another
 * thread's access to the same bytes is ordered with it.
 */
#ifndef BIDE_CHECK_MEMORY_H
#define BIDE_CHECK_MEMORY_H

#include "graph.h"

/* Before the first execution: where everything is. Returns the state of the scenario. */
void *memory_prepare(const bide_check_scenario *scenario);
void *memory_stack(unsigned thread);
size_t memory_stack_size(void);

/* Is it where only a stack that is too small would lead? */
bool memory_is_below_stack(uintptr_t address);

/* Before each execution: zeroes the state and forgets the rest. */
void memory_reset(void);

/* After the last one: what was put into memory (memory_put) outside the state is as it was. */
void memory_restore(void);

/* An access of the running thread; reports what is wrong with it. A read-modify-write is two, a read and a write. */
typedef enum access_kind {
    ACCESS_READ,
    ACCESS_WRITE,
    ACCESS_ATOMIC_READ,
    ACCESS_ATOMIC_WRITE,
    ACCESS_FREE
} access_kind;
void memory_access(uintptr_t address, size_t size, access_kind kind, const bide_check_site_ *site,
                   const void *code);

/* For the running thread. */
void *memory_allocate(size_t size);
void memory_free(void *memory, const void *code);

/* How many blocks are allocated still. */
unsigned memory_leaked(size_t *bytes);

/* Where it is, in words. */
void memory_describe(uintptr_t address, char *text, size_t size);

/* What is there, as a number. */
uint64_t memory_value(uintptr_t address, size_t size);

void memory_write(uintptr_t address, size_t size, uint64_t value);

/* Puts it there, until the next execution. */
void memory_put(uintptr_t address, size_t size, uint64_t value);

/* A number cut to what `size` bytes hold. */
static inline uint64_t memory_fitting(uint64_t value, size_t size)
{
    return size < 8 ? value & (((uint64_t)1 << size * 8) - 1) : value;
}

/* Is it in memory that is watched? */
bool memory_is_watched(uintptr_t address);

#endif

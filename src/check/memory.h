/*
 * The plain memory of a scenario: its state, the stacks, what it allocates, and the program's own
 * data.
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

/* For the running thread. */
void *memory_allocate(size_t size); /* NULL: no more */

/* The block there is freed: its size. False: there is none. */
bool memory_free(const void *memory, size_t *size);

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

/* An area of memory that is watched: `shadow` is of what watches it (accesses.c), NULL at first. */
typedef struct memory_area {
    char *begin;
    char *end;
    void *shadow;
} memory_area;

/* The one that an address lies in, or NULL. */
memory_area *memory_area_of(uintptr_t address);

/* Zeroed memory from the system, of which what is not used costs nothing. */
void *memory_mapped(size_t size);

#endif

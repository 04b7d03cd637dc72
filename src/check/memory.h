/*
 * The plain memory of a scenario: its state, the stacks, its allocations, and the program's own data.
 */
#ifndef BIDE_CHECK_MEMORY_H
#define BIDE_CHECK_MEMORY_H

#include "graph.h"

/* Before the first execution: lays out the memory, and returns the state of the scenario. */
void *memory_prepare(const bide_check_scenario *scenario);
void *memory_stack(unsigned thread);
uintptr_t memory_stack_end(unsigned thread);
size_t memory_stack_size(void);

/* The thread whose stack an address is on; THREADS if none. */
unsigned memory_stack_of(uintptr_t address);
/* The thread whose stack or heap an address is in; THREADS if none. */
unsigned memory_thread_of(uintptr_t address);
/* True for addresses that only the overflow of a stack reaches. */
bool memory_is_below_stack(uintptr_t address);

/* Before each execution: zeroes the state, and discards the allocations. */
void memory_reset(void);

/* After the last execution: undoes the calls of memory_put() outside of the state. */
void memory_restore(void);

/* For the running thread. */
/* `alignment`: a power of two, or 0. NULL: there is no more. */
void *memory_allocate(size_t alignment, size_t size);

/* Frees a block, and sets its size. False: there is no such block. */
bool memory_free(const void *memory, size_t *size);

/* True if a byte of the heap holds what a new block is filled with. */
bool memory_is_fill(uintptr_t address);
/* The same for a value of `size` bytes at an address. */
bool memory_is_fill_value(uintptr_t address, size_t size, uint64_t value);

bool memory_is_in_heap(const void *memory);

/* 0: it is not a block. */
size_t memory_block_size(const void *memory);

/* The number of blocks that are still allocated. */
unsigned memory_leaked(size_t *bytes);

/* Describes an address in words. */
void memory_describe(uintptr_t address, char *text, size_t size);

/* The same for an address in the heap that is in no block: says by which block it is. */
void memory_describe_outside(uintptr_t address, char *text, size_t size);

/* The value of `size` bytes at an address. */
uint64_t memory_value(uintptr_t address, size_t size);

void memory_write(uintptr_t address, size_t size, uint64_t value);

/* Writes a value until the next execution. */
void memory_put(uintptr_t address, size_t size, uint64_t value);

/* A number, truncated to `size` bytes. */
static inline uint64_t memory_fitting(uint64_t value, size_t size)
{
    return size < 8 ? value & (((uint64_t)1 << size * 8) - 1) : value;
}

/* An area of memory that is watched. `shadow` belongs to accesses.c, and is NULL at first. */
typedef struct memory_area {
    char *begin;
    char *end;
    void *shadow;
} memory_area;

/* The area that contains an address, or NULL. */
memory_area *memory_area_of(uintptr_t address);

/* Zeroed memory from the system. Pages that are not used cost nothing. */
void *memory_mapped(size_t size);

#endif

/*
 * malloc and its kin, for code that is checked as it is. In a scenario they are bide_check_alloc() and
 * bide_check_free(). Otherwise, and for the checker's own memory, they are libc's.
 *
 * Only with glibc, which has other names for its own; and not with AddressSanitizer, which replaces
 * them itself. The definitions are weak, as in posix.c.
 */
#define _GNU_SOURCE
#include "heap.h"

#include "accesses.h"
#include "execution.h"
#include "memory.h"
#include "machine.h"
#include "rounds.h"
#include "source_location.h"

#include "bide/check.h"

#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

/* Chooses whether an allocation fails, if it may. */
static bool heap_fails(size_t size, const void *code)
{
    if (!machine_may_fail_to_allocate())
        return false;
    operation op = {.site = source_location_of_code(code), .step = STEP_ALLOCATE, .operand = size};
    return machine_choose(&op, 2) == 1;
}

void *heap_allocate(size_t alignment, size_t size, const void *code)
{
    rounds_act(ACT_OTHER, NULL, 0, 0);
    machine_settle();
    if (heap_fails(size, code)) {
        errno = ENOMEM;
        return NULL;
    }
    void *memory = memory_allocate(alignment, size);
    if (memory == NULL)
        execution_found(BIDE_CHECK_BAD_SCENARIO, "the scenario allocates too much");
    accesses_allocated(memory, size);
    return memory;
}

void heap_free(void *memory, const void *code)
{
    if (memory == NULL)
        return;
    rounds_act(ACT_OTHER, NULL, 0, 0);
    machine_settle();
    accesses_free(memory, code);
}

void *heap_own_resized(void *memory, size_t size)
{
    execution_enter_checker();
    memory = realloc(memory, size);
    execution_leave_checker();
    return memory;
}

#ifdef CHECKER_HAS_HEAP

#define WEAK   __attribute__((weak))
#define CALLER __builtin_return_address(0)

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *memory, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);
extern void __libc_free(void *memory);

WEAK void *malloc(size_t size)
{
    return execution_is_in_scenario() ? heap_allocate(0, size, CALLER) : __libc_malloc(size);
}

WEAK void free(void *memory)
{
    if (!memory_is_in_heap(memory))
        __libc_free(memory);
    else if (execution_is_in_scenario())
        heap_free(memory, CALLER);
}

WEAK void *calloc(size_t count, size_t size)
{
    size_t all;
    if (!execution_is_in_scenario())
        return __libc_calloc(count, size);
    if (__builtin_mul_overflow(count, size, &all)) {
        errno = ENOMEM;
        return NULL;
    }
    void *memory = heap_allocate(0, all, CALLER);
    return memory != NULL ? memset(memory, 0, all) : NULL;
}

/* A block always moves, so what points to the old one is found. */
static void *resized(void *memory, size_t size, const void *code)
{
    size_t before = memory_block_size(memory);
    void *larger = heap_allocate(0, size, code);
    if (larger == NULL)
        return NULL;
    size_t kept = before < size ? before : size;
    if (kept != 0)
        accesses_add((uintptr_t)memory, kept, ACCESS_READ, NULL, code);
    accesses_copy(larger, memory, kept);
    heap_free(memory, code);
    return larger;
}

WEAK void *realloc(void *memory, size_t size)
{
    if (!execution_is_in_scenario() || (memory != NULL && !memory_is_in_heap(memory)))
        return __libc_realloc(memory, size);
    return memory == NULL ? heap_allocate(0, size, CALLER) : resized(memory, size, CALLER);
}

/* No more than was asked for: an access to the rest is beside the block. */
WEAK size_t malloc_usable_size(void *memory)
{
    size_t (*hidden)(void *);
    if (memory_is_in_heap(memory))
        return memory_block_size(memory);
    *(void **)&hidden = dlsym(RTLD_NEXT, "malloc_usable_size");
    return hidden != NULL && memory != NULL ? hidden(memory) : 0;
}

WEAK void *memalign(size_t alignment, size_t size)
{
    return execution_is_in_scenario() ? heap_allocate(alignment, size, CALLER)
                                      : __libc_memalign(alignment, size);
}

WEAK void *aligned_alloc(size_t alignment, size_t size)
{
    return execution_is_in_scenario() ? heap_allocate(alignment, size, CALLER)
                                      : __libc_memalign(alignment, size);
}

WEAK int posix_memalign(void **memory, size_t alignment, size_t size)
{
    if (alignment % sizeof(void *) != 0 || (alignment & (alignment - 1)) != 0 || alignment == 0)
        return EINVAL;
    int error = errno; /* is left as it was */
    void *block = execution_is_in_scenario() ? heap_allocate(alignment, size, CALLER)
                                             : __libc_memalign(alignment, size);
    errno = error;
    if (block == NULL)
        return ENOMEM;
    *memory = block;
    return 0;
}

#endif

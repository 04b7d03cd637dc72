/* The heap of a scenario. */
#ifndef BIDE_CHECK_HEAP_H
#define BIDE_CHECK_HEAP_H

#include "sanitizer.h"

#include <stdlib.h>

#if defined __GLIBC__ && !defined CHECKER_HAS_ASAN
#define CHECKER_HAS_HEAP 1 /* malloc() is the checker's in a scenario */
#endif

/*
 * Memory that is watched. `alignment`: a power of two, or 0. `code` has called the allocation. NULL,
 * with errno ENOMEM: the scenario has this allocation fail. Ends the execution if there is no memory.
 */
void *heap_allocate(size_t alignment, size_t size, const void *code);
void heap_free(void *memory, const void *code);

/* The checker's own memory, also while a scenario runs. */
void *heap_own_resized(void *memory, size_t size);

#endif

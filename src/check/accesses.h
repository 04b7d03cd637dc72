/*
 * For each plain access that the scenario marks, or the compiler reports (-fsanitize=thread), and
 * each atomic one: is another thread's access to the same bytes ordered with it?
 */
#ifndef BIDE_CHECK_ACCESSES_H
#define BIDE_CHECK_ACCESSES_H

#include "bide/check.h"

/* Before each execution. */
void accesses_reset(void);

/*
 * An access of the running thread, if it is to memory that is watched; reports what is wrong with
 * it. A read-modify-write is two, a read and a write.
 */
typedef enum access_kind {
    ACCESS_READ,
    ACCESS_WRITE,
    ACCESS_ATOMIC_READ,
    ACCESS_ATOMIC_WRITE,
    ACCESS_FREE
} access_kind;
void accesses_add(uintptr_t address, size_t size, access_kind kind, const bide_check_site_ *site,
                  const void *code);

/* The running thread frees a block. */
void accesses_free(void *memory, const void *code);

#endif

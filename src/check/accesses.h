/*
 * Data races: checks that each plain access, which the scenario marks or the compiler reports
 * (-fsanitize=thread), and each atomic access is ordered with the accesses of other threads to the
 * same bytes.
 */
#ifndef BIDE_CHECK_ACCESSES_H
#define BIDE_CHECK_ACCESSES_H

#include "bide/check.h"

/* Before each execution. */
void accesses_reset(void);

/*
 * Checks an access of the running thread, if it is to memory that is watched, and ends the execution
 * if it races. A read-modify-write is a read and a write.
 */
typedef enum access_kind {
    ACCESS_READ,
    ACCESS_WRITE,
    ACCESS_ATOMIC_READ,
    ACCESS_ATOMIC_WRITE,
    ACCESS_FREE,
    ACCESS_RETURN, /* the end of local variables: see locals.h */
    ACCESS_VALUE /* a read of a number or pointer, no copy: finds memory to which nothing was written */
} access_kind;
void accesses_add(uintptr_t address, size_t size, access_kind kind, const bide_check_site_ *site,
                  const void *code);

/* The running thread has a new block: accesses in the heap are to blocks. */
void accesses_allocated(const void *memory, size_t size);

/*
 * The running thread has loaded `value` from INITIAL: finds memory of the heap to which nothing was
 * written.
 */
void accesses_read_initial(uintptr_t address, size_t size, uint64_t value,
                           const bide_check_site_ *site);

/* Copies a block of the heap to another one; bytes that were never written are left out. */
void accesses_copy(void *to, const void *from, size_t size);

/* The running thread uses memory of its stack anew: forgets what was accessed there. */
void accesses_forget(uintptr_t address, size_t size);

/* The running thread frees a block. */
void accesses_free(void *memory, const void *code);

#endif

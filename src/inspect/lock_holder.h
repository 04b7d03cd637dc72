/*
 * Locks that know their holder, for reports of what waits: where the operation that waits keeps its
 * lock, and the lock the waiter that has locked it. Floor: inspect.
 *
 * A report reads a lock while nothing runs, or as memory that changes (walk.c): so these are offsets, not
 * functions. A lock keeps its last holder's waiter after an unlock, and until the next holder runs. A
 * waiter is a member of the struct of the coroutine that locks, as a rule; so the holder is the coroutine
 * whose struct it lies in. The waiter itself is not read: its memory may be gone.
 */
#ifndef BIDE_INSPECT_LOCK_HOLDER_H
#define BIDE_INSPECT_LOCK_HOLDER_H

#include "bide/barging_mutex.h"
#include "bide/mutex.h"

#include <string.h>

typedef struct bide_lock_layout_ {
    const char *operation; /* the name of the one that waits */
    size_t lock_at;        /* in that: the address of the lock */
    size_t holder_at;      /* in the lock: that of the waiter */
    size_t state_at;       /* in the lock: a word, with one of these bits set while it is locked */
    uintptr_t locked;
} bide_lock_layout_;

/* The layout of the lock that the operation of this name waits for; NULL: it waits for none. */
BIDE_INLINE const bide_lock_layout_ *bide_lock_layout_of_(const char *operation)
{
    static const bide_lock_layout_ layouts[] = {
        {"bide_mutex_lock", offsetof(bide_mutex_waiter, mutex), offsetof(bide_mutex, holder),
         offsetof(bide_mutex, queue.state), BIDE_QUEUE_VALUE(UINTPTR_MAX)},
        {"bide_barging_mutex_lock", offsetof(bide_barging_mutex_waiter, mutex),
         offsetof(bide_barging_mutex, holder), offsetof(bide_barging_mutex, queue.state),
         BIDE_BARGING_LOCKED_},
    };
    for (size_t i = 0; operation != NULL && i < sizeof layouts / sizeof *layouts; i++) {
        if (strcmp(operation, layouts[i].operation) == 0)
            return &layouts[i];
    }
    return NULL;
}

/* The size of the struct of a coroutine's frame; 0: it is not known. */
BIDE_INLINE size_t bide_frame_size_(const bide_coroutine_code *code)
{
    return code != NULL && code->finished != NULL ? (size_t)code->finished->number : 0;
}

/* Whether `address` is inside of `size` bytes at `frame`. */
BIDE_INLINE bool bide_frame_has_(const bide_frame *frame, size_t size, const void *address)
{
    return (uintptr_t)address - (uintptr_t)frame < size;
}

#endif

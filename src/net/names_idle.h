/*
 * Slots in which objects wait until they are used again: resolvers of names, between two look-ups.
 *
 *     slot    NULL <-> an object
 *
 * Threads: any. Lock-free.
 *
 * 1. An object is in at most one slot, or has one owner. Only its owner puts it into a slot, by a
 *    compare-exchange of NULL, and is the owner no more. A thread takes it by an exchange of the slot with NULL.
 *    An exchange returns what the one before it has left, so each object that was put is taken at most once.
 *    The same object may come back to a slot between the load and the exchange: that is no harm.
 * 2. Putting releases, and the exchange that takes acquires: the new owner sees the work of the earlier one.
 * 3. A thread looks at each slot once. It may thus find all empty, or all occupied, though there was never a
 *    moment at which they were: it then makes a new object, or frees its own.
 */
#ifndef BIDE_SRC_NET_NAMES_IDLE_H
#define BIDE_SRC_NET_NAMES_IDLE_H

#include "bide/atomic.h"

#include <stdbool.h>
#include <stddef.h>

enum { NAMES_IDLE_MAX = 8 };

typedef struct names_idle {
    bide_atomic(void *) slots[NAMES_IDLE_MAX];
} names_idle;

static inline void bide_names_idle_init_(names_idle *idle)
{
    for (int i = 0; i < NAMES_IDLE_MAX; i++)
        bide_atomic_init(&idle->slots[i], (void *)NULL);
}

/* Takes an object. NULL: there is none. */
static inline void *bide_names_idle_take_(names_idle *idle)
{
    for (int i = 0; i < NAMES_IDLE_MAX; i++) {
        void *object = NULL;
        if (bide_atomic_load(&idle->slots[i], relaxed) != NULL) /* relaxed: only a hint */
            object = bide_atomic_exchange(&idle->slots[i], object, acquire); /* 2; partner: put */
        if (object != NULL)
            return object;
    }
    return NULL;
}

/* Puts an object into a slot. False: all are occupied, and it stays the caller's. */
static inline bool bide_names_idle_put_(names_idle *idle, void *object)
{
    for (int i = 0; i < NAMES_IDLE_MAX; i++) {
        void *none = NULL;
        /* release: 2, partner is the exchange of take. relaxed: nothing is concluded. */
        if (bide_atomic_compare_exchange(&idle->slots[i], &none, object, release, relaxed))
            return true;
    }
    return false;
}

#endif

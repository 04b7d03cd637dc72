/*
 * The LIFO slot of a pool's worker: the coroutine that the running one has woken last. The worker, its
 * owner, fills and empties it; another worker, a thief, may take the coroutine too.
 *
 *     NULL --put--> awaiter --take, steal--> NULL
 *
 * Why it is correct: only the owner fills the slot, so if the owner finds it empty it stays empty, and
 * a store is enough. All other changes are exchanges: each awaiter is the result of one of them. The
 * owner takes what it has written itself; a thief acquires what the put has released.
 */
#ifndef BIDE_SCHEDULE_POOL_SLOT_H
#define BIDE_SCHEDULE_POOL_SLOT_H

#include "bide/frame.h"

typedef struct bide_pool_slot_ {
    bide_atomic(bide_awaiter *) awaiter;
} bide_pool_slot_;

BIDE_INLINE void bide_pool_slot_init_(bide_pool_slot_ *slot)
{
    bide_atomic_init(&slot->awaiter, NULL);
}

/* A hint, except to the owner if it is true. */
BIDE_INLINE bool bide_pool_slot_is_empty_(bide_pool_slot_ *slot)
{
    return bide_atomic_load(&slot->awaiter, relaxed) == NULL;
}

/* The owner's. Returns the previous awaiter, or NULL. */
BIDE_INLINE bide_awaiter *bide_pool_slot_put_(bide_pool_slot_ *slot, bide_awaiter *awaiter)
{
    if (BIDE_UNLIKELY(!bide_pool_slot_is_empty_(slot)))
        /* release: partner is the thief's exchange */
        return bide_atomic_exchange(&slot->awaiter, awaiter, release);
    bide_atomic_store(&slot->awaiter, awaiter, release); /* likewise */
    return NULL;
}

/* The owner's; NULL: the slot is empty. */
BIDE_INLINE bide_awaiter *bide_pool_slot_take_(bide_pool_slot_ *slot)
{
    return bide_pool_slot_is_empty_(slot) ? NULL
                                          : bide_atomic_exchange(&slot->awaiter, NULL, relaxed);
}

/* A thief's; NULL: the slot is empty. */
BIDE_INLINE bide_awaiter *bide_pool_slot_steal_(bide_pool_slot_ *slot)
{
    return bide_atomic_exchange(&slot->awaiter, NULL, acquire); /* partner: put */
}

/* Any worker's. Takes `awaiter` and nothing else; false: it is not in the slot. */
BIDE_INLINE bool bide_pool_slot_remove_(bide_pool_slot_ *slot, bide_awaiter *awaiter)
{
    /* acquire: as steal; if it failed, nothing was taken */
    return bide_atomic_compare_exchange(&slot->awaiter, &awaiter, NULL, acquire, relaxed);
}

#endif

/*
 * The hand-off slot of a pool's worker: what the coroutine that runs there has woken last. The
 * worker puts one in and takes it out; another worker, a thief, may take it too.
 *
 *     NULL --put--> awaiter --take, steal--> NULL
 *
 * Why it is right: only the owner fills it, so where the owner finds it empty it stays so, and a
 * store is enough. All others are exchanges: each awaiter is handed to one of them. What the owner
 * takes it has put there itself; a thief acquires what the put has released.
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

/* A hint, to all but the owner, and to the owner if it is not empty. */
BIDE_INLINE bool bide_pool_slot_is_empty_(bide_pool_slot_ *slot)
{
    return bide_atomic_load(&slot->awaiter, relaxed) == NULL;
}

/* The owner's. Returns what stood there; NULL: nothing. */
BIDE_INLINE bide_awaiter *bide_pool_slot_put_(bide_pool_slot_ *slot, bide_awaiter *awaiter)
{
    if (BIDE_UNLIKELY(!bide_pool_slot_is_empty_(slot)))
        /* release: partner is the thief's exchange */
        return bide_atomic_exchange(&slot->awaiter, awaiter, release);
    bide_atomic_store(&slot->awaiter, awaiter, release); /* likewise */
    return NULL;
}

/* The owner's; NULL: it is empty. */
BIDE_INLINE bide_awaiter *bide_pool_slot_take_(bide_pool_slot_ *slot)
{
    return bide_pool_slot_is_empty_(slot) ? NULL
                                          : bide_atomic_exchange(&slot->awaiter, NULL, relaxed);
}

/* A thief's; NULL: it is empty. */
BIDE_INLINE bide_awaiter *bide_pool_slot_steal_(bide_pool_slot_ *slot)
{
    return bide_atomic_exchange(&slot->awaiter, NULL, acquire); /* partner: put */
}

/* Anybody's: takes `awaiter` and nothing else. False: it is not there. */
BIDE_INLINE bool bide_pool_slot_remove_(bide_pool_slot_ *slot, bide_awaiter *awaiter)
{
    /* acquire: as steal; if it failed, nothing was taken */
    return bide_atomic_compare_exchange(&slot->awaiter, &awaiter, NULL, acquire, relaxed);
}

#endif

/*
 * Chains of operations, a part of bide/frame.h, which includes it: a singly linked list with its first and its last
 * member. One thread at a time uses a chain; nothing is atomic. Floor: coroutine.
 *
 *     bide_awaiter_chain ended = {NULL, NULL};
 *     bide_awaiter_chain_append(&ended, awaiter, awaiter);         // awaiter->link is NULL
 *     bide_wake(ended.first);
 */
#ifndef BIDE_DETAIL_AWAITER_CHAIN_H
#define BIDE_DETAIL_AWAITER_CHAIN_H

#include "bide/frame.h"

BIDE_EXTERN_C_BEGIN

/* Operations linked by `link`, for example ended ones in the order in which they will resume. */
typedef struct bide_awaiter_chain {
    bide_awaiter *first; /* NULL: empty */
    bide_awaiter *last;  /* while there is a first */
} bide_awaiter_chain;

/*
 * Prefetches the memory of `awaiter`, and its neighbourhood: a waiter is usually a member of its
 * frame, close behind the frame's header. Processors predict a walk over memory, but not if each
 * stop is at a multiple of two cache lines. NULL is allowed.
 * Threads: any; nothing is accessed. Progress: wait-free.
 */
BIDE_INLINE void bide_awaiter_prefetch(const bide_awaiter *awaiter)
{
    uintptr_t address = (uintptr_t)awaiter;
    BIDE_PREFETCH(address - BIDE_CACHE_LINE);
    BIDE_PREFETCH(address);
    BIDE_PREFETCH(address + BIDE_CACHE_LINE);
}

/*
 * Appends the operations from `first` to `last`, which are linked; last->link is NULL.
 * Threads: one at a time. Progress: wait-free.
 */
BIDE_INLINE void bide_awaiter_chain_append(bide_awaiter_chain *chain, bide_awaiter *first,
                                           bide_awaiter *last)
{
    bide_assert(last->link == NULL);
    if (chain->first == NULL)
        chain->first = first;
    else
        chain->last->link = first;
    chain->last = last;
}

/*
 * Puts `awaiter` in front.
 * Threads: one at a time. Progress: wait-free.
 */
BIDE_INLINE void bide_awaiter_chain_prepend(bide_awaiter_chain *chain, bide_awaiter *awaiter)
{
    awaiter->link = chain->first;
    if (chain->first == NULL)
        chain->last = awaiter;
    chain->first = awaiter;
}

/*
 * Removes the first operation and returns it; NULL if there is none.
 * Threads: one at a time. Progress: wait-free.
 */
BIDE_INLINE bide_awaiter *bide_awaiter_chain_take(bide_awaiter_chain *chain)
{
    bide_awaiter *first = chain->first;
    if (first != NULL)
        chain->first = first->link;
    return first;
}

/*
 * Removes `awaiter`; returns false if it is not in the chain.
 * Threads: one at a time. Progress: wait-free, linear in the chain.
 */
BIDE_INLINE bool bide_awaiter_chain_remove(bide_awaiter_chain *chain, const bide_awaiter *awaiter)
{
    bide_awaiter *before = NULL;
    for (bide_awaiter *a = chain->first; a != NULL; before = a, a = a->link) {
        if (a != awaiter)
            continue;
        if (before == NULL)
            chain->first = a->link;
        else
            before->link = a->link;
        if (chain->last == a)
            chain->last = before;
        return true;
    }
    return false;
}

BIDE_EXTERN_C_END

#endif

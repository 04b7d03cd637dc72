/*
 * Removing from the middle of a chain. An awaiter has one link, so removing it needs the one before it. A
 * chain that keeps a cursor finds that in a step or two if awaiters are removed in the order of the chain,
 * or against it, as when all coroutines of a scope are destroyed.
 *
 *     passed   c -> b -> a -> NULL        before the cursor, the nearest first
 *     chain    d -> e -> f -> NULL        from the cursor on: `first` to `last`
 *
 * The whole is a, b, c, d, e, f. Appending to `chain` appends to the whole. To take its first, call
 * bide_chain_rewind_ before. The rest of `chain` is empty only if the whole is: so `chain.first == NULL`
 * says that nothing is left, wherever the cursor stands.
 *
 * Removing costs as many steps as awaiters lie between the cursor and the one that is removed, and twice
 * that to rewind, at most. Of one thread at a time. Floor: coroutine.
 */
#ifndef BIDE_COROUTINE_CHAIN_CURSOR_H
#define BIDE_COROUTINE_CHAIN_CURSOR_H

#include "bide/frame.h"

/* One awaiter was looked at, or passed by the cursor: for a test that counts them. */
#ifndef BIDE_CHAIN_STEP_
#define BIDE_CHAIN_STEP_() ((void)0)
#endif

BIDE_INLINE void bide_chain_step_back_(bide_awaiter_chain *chain, bide_awaiter **passed)
{
    bide_awaiter *awaiter = *passed;
    BIDE_CHAIN_STEP_();
    *passed = awaiter->link;
    bide_awaiter_chain_prepend(chain, awaiter);
}

BIDE_INLINE void bide_chain_step_on_(bide_awaiter_chain *chain, bide_awaiter **passed)
{
    bide_awaiter *awaiter = bide_awaiter_chain_take(chain);
    BIDE_CHAIN_STEP_();
    awaiter->link = *passed;
    *passed = awaiter;
}

/* Moves the cursor to the front: `chain` is the whole. */
BIDE_INLINE void bide_chain_rewind_(bide_awaiter_chain *chain, bide_awaiter **passed)
{
    while (*passed != NULL)
        bide_chain_step_back_(chain, passed);
}

/* Looks in both directions at once. False: it is not there, and the cursor stays. */
BIDE_INLINE bool bide_chain_seek_(bide_awaiter_chain *chain, bide_awaiter **passed,
                                  const bide_awaiter *awaiter)
{
    const bide_awaiter *before = *passed;
    const bide_awaiter *behind = chain->first;
    while (before != awaiter && behind != awaiter) {
        if (before == NULL && behind == NULL)
            return false;
        BIDE_CHAIN_STEP_();
        before = before != NULL ? before->link : NULL;
        behind = behind != NULL ? behind->link : NULL;
    }
    if (before == awaiter) {
        while (chain->first != awaiter)
            bide_chain_step_back_(chain, passed);
    } else {
        while (chain->first != awaiter)
            bide_chain_step_on_(chain, passed);
    }
    return true;
}

/* Removes `awaiter`, and leaves the cursor where it was. False: it is not there. */
BIDE_INLINE bool bide_chain_remove_(bide_awaiter_chain *chain, bide_awaiter **passed,
                                    const bide_awaiter *awaiter)
{
    if (!bide_chain_seek_(chain, passed, awaiter))
        return false;
    bide_awaiter_chain_take(chain);
    if (chain->first == NULL && *passed != NULL)
        bide_chain_step_back_(chain, passed);
    return true;
}

#endif

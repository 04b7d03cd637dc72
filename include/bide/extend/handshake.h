/*
 * The handshake between an operation's suspend and its ender: it decides which of the two continues
 * the coroutine. For authors of operations. Floor: coroutine.
 *
 *     suspend                                       the ender, perhaps on another thread
 *     bide_handshake_init(&own->handshake);
 *     enlist(own);
 *     look at the object once more                  own->result = ...;
 *     return bide_handshake_arm(&own->handshake)    if (bide_handshake_finish(&own->handshake))
 *                ? frame : NULL;                        bide_wake_one(&own->awaiter);
 *
 * An operation may end from the moment when it is enlisted. A suspend that enlists as its last action
 * needs no handshake. A suspend that uses the object after that needs one: otherwise the coroutine
 * might resume, end, and free the object in the meantime. Each of the two calls its function once, as
 * its last action. It costs one word in the operation, and one exchange each.
 *
 *     BEGUN --arm--> ARMED --end--> ENDED    suspend returns NULL; the ender wakes the coroutine
 *     BEGUN --end--> ENDED --arm--> ARMED    the ender does nothing more; suspend returns its frame
 *
 * Why it is correct:
 *
 * 1. Both exchange the word, so the second finds the first one's value, and the first finds BEGUN. The
 *    second continues the coroutine. So that happens exactly once.
 * 2. arm releases, and end acquires. So if the ender is second, suspend's accesses to the operation and
 *    the object come before the coroutine resumes.
 * 3. end releases, and arm acquires. So if suspend is second, the coroutine sees the results, and the
 *    ender's accesses come before it resumes.
 * 4. The first touches nothing of the operation after its exchange.
 */
#ifndef BIDE_EXTEND_HANDSHAKE_H
#define BIDE_EXTEND_HANDSHAKE_H

#include "bide/frame.h"

BIDE_EXTERN_C_BEGIN

typedef struct bide_handshake {
    bide_atomic(uint32_t) word;
} bide_handshake;

enum { BIDE_HANDSHAKE_BEGUN_, BIDE_HANDSHAKE_ARMED_, BIDE_HANDSHAKE_ENDED_ };

/*
 * Before the operation is enlisted.
 * Threads: before it is shared. Progress: wait-free.
 */
BIDE_INLINE void bide_handshake_init(bide_handshake *handshake)
{
    bide_atomic_init(&handshake->word, (uint32_t)BIDE_HANDSHAKE_BEGUN_);
}

/*
 * Suspend is done with the operation; once. True: that has ended, and its coroutine is to go on
 * now; it is still suspend's. False: it is not touched any more.
 * Threads: the suspending coroutine's. Progress: wait-free.
 */
BIDE_INLINE bool bide_handshake_arm(bide_handshake *handshake)
{
    /* release: 2; acquire: 3; partner: end. */
    return bide_atomic_exchange(&handshake->word, (uint32_t)BIDE_HANDSHAKE_ARMED_, acq_rel) ==
           BIDE_HANDSHAKE_ENDED_;
}

/*
 * The operation has ended, and its results are written; once. True: the caller is to wake it.
 * False: it is not touched any more.
 * Threads: any, the ender's. Progress: wait-free.
 */
BIDE_INLINE bool bide_handshake_finish(bide_handshake *handshake)
{
    /* release: 3; acquire: 2; partner: arm. */
    return bide_atomic_exchange(&handshake->word, (uint32_t)BIDE_HANDSHAKE_ENDED_, acq_rel) ==
           BIDE_HANDSHAKE_ARMED_;
}

/*
 * Has it ended, before it was armed? Then the results are seen, as by 3.
 * Threads: the suspending coroutine's. Progress: wait-free.
 */
BIDE_INLINE bool bide_handshake_has_ended(bide_handshake *handshake)
{
    /* acquire: 3; partner: end. */
    return bide_atomic_load(&handshake->word, acquire) == BIDE_HANDSHAKE_ENDED_;
}

/*
 * Whether it has been armed, and not ended by `end` after that. Valid once its coroutine continues.
 * Threads: the coroutine's. Progress: wait-free.
 */
BIDE_INLINE bool bide_handshake_is_armed(bide_handshake *handshake)
{
    /* relaxed: ARMED is its own. */
    return bide_atomic_load(&handshake->word, relaxed) == BIDE_HANDSHAKE_ARMED_;
}

/*
 * Ends all of a chain that have ended, from `first`, by `link` to NULL, and keeps operations that
 * are to be woken, in their order. `of` gives an operation's handshake.
 * Threads: any, the ender's. Progress: wait-free, linear in the chain.
 */
BIDE_INLINE bide_awaiter_chain
bide_handshake_finish_all(bide_awaiter *first, bide_handshake *(*of)(bide_awaiter *awaiter))
{
    bide_awaiter_chain armed = {NULL, NULL};
    for (bide_awaiter *a = first, *next; a != NULL; a = next) {
        next = a->link; /* before its end: 4 */
        if (bide_handshake_finish(of(a))) {
            a->link = NULL;
            bide_awaiter_chain_append(&armed, a, a);
        }
    }
    return armed;
}

BIDE_EXTERN_C_END

#endif

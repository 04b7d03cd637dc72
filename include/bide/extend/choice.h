/*
 * Choices: how an operation can be a case of a select (select.h). For authors of operations.
 * Floor: coroutine.
 *
 *     static int take_attempt(bide_awaiter *awaiter, bide_choice *choice)
 *     {
 *         struct take *take = (struct take *)(void *)awaiter;
 *         if (take_now(take))
 *             return 0;
 *         choice->wait = bide_event_wait(&take->wait, &take->shelf->filled);
 *         return -EAGAIN;
 *     }
 *
 * A select awaits all of its cases, and carries out one. So its waits must take nothing. An
 * operation that takes something therefore has two halves: `attempt`, in its table, takes it, at
 * once or not at all; and a wait that takes nothing ends when another attempt is worthwhile. All of
 * the library's operations on channels are such operations, and so is every operation built on
 * bide_event_count_waiter (event_count.h).
 *
 *     made --attempt: -EAGAIN--> its wait is awaited --any wait has ended--> attempted again
 *       \--attempt: anything else--> ended with that, and no other case is attempted
 *
 * The select calls `attempt` on a thread of its coroutine. Another thread may carry out an
 * operation while the select waits (bide_choice_take). "Rules of attempt" below has both.
 */
#ifndef BIDE_EXTEND_CHOICE_H
#define BIDE_EXTEND_CHOICE_H

#include "bide/frame.h"

BIDE_EXTERN_C_BEGIN

/* A select's offer to others while it waits, linked by the attempts. The operation's memory. */
typedef struct bide_choice_offer {
    const void *to; /* what it is offered to */
    struct bide_choice_offer *next;
} bide_choice_offer;

/*
 * The common part of the cases of one select. From the first attempt until the attempts that
 * follow its wait.
 */
struct bide_choice {
    bide_awaiter *wait; /* of the operation that was attempted */
    bide_scheduler *scheduler; /* where the attempted operation would begin; NULL: unknown */
    size_t number;      /* of the operation that is attempted, from 1 */
    int ended;          /* if `again`: what its wait has ended with */
    bool again;         /* all operations were attempted before, and their waits have ended */
    bool kept;          /* its wait was the operation itself, and is not given back */
    bide_atomic(size_t) taken;
    bide_choice_offer *offers; /* constant while it waits */
};

/*
 * The wait of a wrapper that runs the wait of its inner operation in a coroutine of its own
 * (src/coroutine/internal.h). A member of the wrapper.
 */
typedef struct bide_wrapper_wait_ {
    bide_awaiter awaiter; /* what the select awaits */
    bide_awaiter *inner;  /* the wait of the inner operation */
    int status;           /* the wrapper's: what its coroutine has ended with */
    bool is_used;         /* the coroutine awaits `inner`, and not the operation itself */
} bide_wrapper_wait_;

/*
 * Before a round of attempts.
 * Threads: the select's. Progress: wait-free.
 */
BIDE_INLINE void bide_choice_init(bide_choice *choice)
{
    bide_atomic_init(&choice->taken, 0);
    choice->scheduler = NULL;
    choice->number = 0;
    choice->again = false;
    choice->kept = false;
    choice->offers = NULL;
}

/*
 * May the operation of this number be carried out, for the select has nothing yet? Then the select
 * has that operation. For the thread that has taken the operation from where it was offered, before
 * its wait is ended.
 * Threads: any. Progress: wait-free.
 */
BIDE_INLINE bool bide_choice_take(bide_choice *choice, size_t number)
{
    size_t none = 0;
    /* relaxed: the ends of all waits order it. */
    return bide_atomic_compare_exchange(&choice->taken, &none, number, relaxed, relaxed);
}

/*
 * The operation for which the caller has taken the choice cannot be carried out after all, and its
 * wait continues: any may be carried out again. A thread for which the choice was taken meanwhile
 * has ended a wait of the select's, which therefore attempts all of its cases again.
 * Threads: the taker's. Progress: wait-free.
 */
BIDE_INLINE void bide_choice_untake(bide_choice *choice)
{
    /* relaxed: as above. */
    bide_atomic_store(&choice->taken, (size_t)0, relaxed);
}

/*
 * Which one was carried out? 0: none, as far as is known. A select knows when all of its waits have
 * ended.
 * Threads: any. Progress: wait-free.
 */
BIDE_INLINE size_t bide_choice_taken(bide_choice *choice)
{
    /* relaxed: as above. */
    return bide_atomic_load(&choice->taken, relaxed);
}

/*
 * Another thread has carried out the operation with this table. Is `attempt` to be called, for the
 * result? Otherwise that is 0. True for wrappers, whose result is made of that of their operation.
 * Threads: any. Progress: wait-free.
 */
BIDE_INLINE bool bide_choice_asks_result_(const bide_awaiter_ops *ops)
{
    return ops->undo == BIDE_UNDO_INNER || ops->undo == BIDE_UNDO_ATTEMPT;
}

/*
 * An attempt is about to say -EAGAIN, and the wait offers something `to` an object: so that others
 * know that the offer is this select's.
 * Threads: the select's. Progress: wait-free.
 */
BIDE_INLINE void bide_choice_add(bide_choice *choice, bide_choice_offer *offer, const void *to)
{
    offer->to = to;
    offer->next = choice->offers;
    choice->offers = offer;
}

/*
 * Whether something is offered to that object already.
 * Threads: the select's. Progress: wait-free, linear in the offers.
 */
BIDE_INLINE bool bide_choice_offers_to(const bide_choice *choice, const void *to)
{
    const bide_choice_offer *offer = choice->offers;
    while (offer != NULL && offer->to != to)
        offer = offer->next;
    return offer != NULL;
}

/*
 * Whether this is an offer of the choice.
 * Threads: any, while the select waits. Progress: wait-free, linear in the offers.
 */
BIDE_INLINE bool bide_choice_has(const bide_choice *choice, const bide_choice_offer *offer)
{
    const bide_choice_offer *own = choice->offers;
    while (own != NULL && own != offer)
        own = own->next;
    return own != NULL;
}

/*
 * The operation behind `awaiter` because of which that cannot be a case of a select: neither can a
 * select attempt it, nor does it give back what it took (bide_awaiter_ops.undo). NULL: there is
 * none. Nothing of it has begun.
 * Threads: one at a time. Progress: wait-free, linear in the operations that it wraps.
 */
const bide_awaiter *bide_choice_refused_(bide_awaiter *awaiter);

/*
 * An attempt has succeeded, and the operation's result will have no user: gives that back. `ops` is
 * the table that it had when it was made.
 * Threads: the select's. Progress: that of its `withdraw`.
 */
void bide_choice_release_(bide_awaiter *awaiter, const bide_awaiter_ops *ops);

/*
 * Rules of `attempt`:
 *
 * 1. Either it performs the operation and returns its result, 0 or a negative errno except -EAGAIN;
 * `resume` is not called then. Or it has done nothing, returns -EAGAIN, and has stored the wait in
 * choice->wait. 2. It is called on a thread of the select's coroutine, never while the wait is
 * under way. It does not block. The operation's `ops` may be another table than its own, if an
 * attempt has stored that there. That is so when the operation is its own wait, with another table.
 * 3. The wait ends with 0 if the operation has become possible since the attempt, even if that was
 * before the wait began. So it looks again once it is enlisted. It may end in vain. 4. When it has
 * ended with 0, and another case wins, the operation is not attempted any more. Then the wait's
 * `withdraw` is called, as for a coroutine that will never know that the wait ended. If it was let
 * go for something that others wait for too, that goes to the next waiter. The same holds after an
 * attempt that succeeded. 5. When an attempt has succeeded and the coroutine is destroyed before it
 * knows, the operation's own `withdraw` is called as if it had been ready: with
 * bide_awaiter_suspended false.
 *
 * Another thread may also carry out an operation while the select waits, as a receiver does that
 * takes a send's offer. That thread calls bide_choice_take with the number of the operation, when
 * it is committed to nothing else and has made sure that the wait does not end by itself. If the
 * call fails the select has another case. In either case that thread ends the wait. If it then cannot
 * carry out the operation, it calls bide_choice_untake, and the wait continues. The select checks
 * the choice before it attempts anything. The result of such an operation is 0, or, if its `undo`
 * is BIDE_UNDO_ATTEMPT, what `attempt` returns, which is called once more, and finds bide_choice_taken
 * not 0.
 *
 * Why it is correct: docs/internals/rendezvous.md (7).
 */

BIDE_EXTERN_C_END

#endif

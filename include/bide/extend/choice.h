/*
 * Choices: how an operation is a case of a select (select.h). For authors of operations.
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
 * A select awaits all of its cases, and has one. What it awaits must therefore take nothing, unless
 * it is the one. An operation that takes something has two halves: `attempt`, in its table, takes
 * it, at once or not at all; and a wait that takes nothing, which ends when the operation is worth
 * another attempt. All of the library's operations on channels are such operations, and any that is
 * built on bide_event_count_waiter (event_count.h).
 *
 *     made --attempt: -EAGAIN--> its wait is awaited --any wait has ended--> attempted again
 *       \--attempt: anything else--> ended with that, and no other case is attempted
 *
 * Rules for `attempt`:
 *
 * 1. Either it does the operation and returns what that ends with, 0 or a negative errno but
 *    -EAGAIN; `resume` is not called then. Or it has done nothing, returns -EAGAIN, and has put the
 *    wait into choice->wait.
 * 2. It is called on a thread of the select's coroutine, never while the wait is under way. It does
 *    not block. The operation's `ops` may be another table than its own, if an attempt has put that
 *    there. That is so when the operation is its own wait, with another table.
 * 3. The wait ends with 0 if the operation has become possible since the attempt, also if that was
 *    before the wait began. So it looks again once it is enlisted, as all waits do that are not to
 *    miss anything. It may end in vain.
 * 4. When it has ended with 0, and another case is had, the operation is not attempted any more.
 *    Then the wait's `withdraw` is called, as for a coroutine that will never know that it ended.
 *    If it was let go for something that others wait for too, that goes to the next. The same holds
 *    after an attempt that succeeded.
 * 5. When an attempt has succeeded and the coroutine is destroyed before it knows, the operation's
 *    own `withdraw` is called as if it had been ready: with bide_awaiter_suspended false.
 *
 * An operation may also be carried out by another thread while the select waits, as a send is by a
 * receiver that takes its offer. That thread calls bide_choice_take with the number of the
 * operation. It does so when it is committed to nothing else and has made sure that the wait does
 * not end by itself. If it is refused the select has something else. Then it ends the wait. The
 * select looks for that before it attempts anything.
 *
 * Why it is right: rendezvous.h has the argument (7).
 */
#ifndef BIDE_EXTEND_CHOICE_H
#define BIDE_EXTEND_CHOICE_H

#include "bide/frame.h"

BIDE_EXTERN_C_BEGIN

/* What a select offers to others while it waits, linked by the attempts. The operation's memory. */
typedef struct bide_choice_offer {
    const void *to; /* what it is offered to */
    struct bide_choice_offer *next;
} bide_choice_offer;

/*
 * What the cases of one select have in common. From the first attempt until those that follow its
 * wait.
 */
struct bide_choice {
    bide_awaiter *wait; /* of the operation that was attempted */
    size_t number;      /* of the operation that is attempted, from 1 */
    bide_atomic(size_t) taken;
    bide_choice_offer *offers; /* constant while it waits */
};

/*
 * Before a round of attempts.
 * Threads: the select's. Progress: wait-free.
 */
BIDE_INLINE void bide_choice_init(bide_choice *choice)
{
    bide_atomic_init(&choice->taken, 0);
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
 * Is something offered to that object already?
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
 * Is this one of the choice's own?
 * Threads: any, while the select waits. Progress: wait-free, linear in the offers.
 */
BIDE_INLINE bool bide_choice_has(const bide_choice *choice, const bide_choice_offer *offer)
{
    const bide_choice_offer *own = choice->offers;
    while (own != NULL && own != offer)
        own = own->next;
    return own != NULL;
}

BIDE_EXTERN_C_END

#endif

/*
 * A sequence barrier: one publisher makes a growing sequence of numbers known; any number of coroutines
 * wait until a number that they name has been reached. The cursor of a ring buffer. Floor: sync.
 *
 * For each type of sequence (see sequence.h) there is a set of the same types and functions:
 * bide_sequence_barrier8 and so on for 8, 16, 32 and 64 bits, and bide_sequence_barrier for size_t. The
 * functions' contracts stand once, in detail/sequence_barrier_template.h.
 *
 *     published   ... 6 | 7 | 8 ...      the newest number that is known; the publisher alone writes it
 *     waiters     EMPTY, a list, or SHUT once closed (waiter_list.h)
 *
 *     publish(s)         published = s; who waits for s or less is woken, the rest stay
 *     wait(target)       ends at once if target does not lie ahead of `published`; else enlists
 *     a request to stop  who waits in its source ends with the reason (stop.h), found by sifting too
 *     close()            who waits ends with -EPIPE, now and later; what is published stays known
 *
 * Numbers wrap around. Two rules follow:
 *   - a target lies at most half the range ahead of what is published; further ahead counts as published
 *     already, which is what a producer's first claims rely on;
 *   - from the beginning of a wait until its end, `published` gets less than half the range past the target.
 *     In a ring it cannot, for the consumers hold the producer back. With 32 bits or more nobody meets
 *     the limit; with 8 or 16 an onlooker whom the publisher does not wait for may sleep, if he is
 *     overtaken by that much, until the numbers have come round again.
 *
 * ---- No wake-up is lost, and no wait ends twice ----
 *
 * The publisher stores `published` and then looks at the list; a waiter enlists and then looks at `published`. That
 * neither misses the other is the list's argument (waiter_list.h, 8 to 11), with `published` as its number: publishing
 * is a release store, a light fence and a load while nobody waits. Of the barrier's own:
 *
 * 1. Whoever takes waiters to look at them sifts (waiter_list.h): the list says so until those whose number has
 *    not come are put back. So while somebody waits, the publisher never finds the list empty, whoever holds the
 *    waiter, and either takes the list itself or asks the holder to look again, which then sees what was published.
 * 2. close() shuts the list. A push that comes later is refused; whoever holds taken waiters is told so when it
 *    puts them back, and ends them with -EPIPE itself. So close needs no look at
 *    `published` that is ordered with the publisher's, except to tell who is reached: those it takes it judges by the
 *    value that it sees, and a publisher in another thread at that moment is concurrent.
 * 3. Seeing a number published means seeing what was written before: N releases, the loads in ready and B acquire.
 *    Whoever takes the list reads `published` after the take, and judges by that: a waiter who enlisted having seen a
 *    later number than the taker had would, by the taker's number, lie more than half the range back (waiter_list.h,
 *    13).
 * 4. Nothing of the barrier is touched after the end of a wait: waiter_list.h, 12.
 *
 * 5. The target of a follower is a difference: of a counter `next`, of which the newest sequence to be published is not
 *    more than `behind` - 1 before, and a constant `behind`; it waits for room, in a ring of so many slots. A number
 *    worked out when the wait began would not do where numbers come round: before it is enlisted others may have moved
 *    the counter, and then `published`, on by half the range. So who judges it loads `published` first, P, and then the
 *    counter, N.
 *    N is not before P + 1: who published P had acquired what was claimed up to there. Nor is it, if P is
 *    the last that was published, after P + behind + 1; so it judges right. If N is further on than that, then more was
 *    published than P, and who published it finds the follower in the list, or with who judges, and judges again.
 *    So while it stays enlisted, the last that was published has left no room. To be told of room that is gone
 *    again does no harm: it looks.
 *
 * 6. Whoever sifts knows the nearest target, so a publish that does not reach that looks at nobody (waiter_list.h, 14).
 *    It is the least of the targets, counted from the number P that was published when each was kept, or one that has
 *    gone, so less. A target lies at most half the range ahead of its P, so while `published` goes from P on and has not
 *    come to the nearest, it has come to none. It never gets past the nearest unseen: the publish that reaches it looks
 *    at all, and then what stays is the nearest. A follower's target moves away only, so what it was is less than what
 *    it is.
 *
 * ABA: see waiter_list.h; the list is pushed onto or taken whole, so it does no harm.
 *
 * Layout: `published` and `waiters` have a cache line each. Publishing writes the first; waiters that
 * come and go write the second, and publishers while they watch.
 *
 * Source: the seed article on the sequence barrier, after cppcoro's sequence_barrier; 1 to 4 are answers to what they
 * leave open.
 */
#ifndef BIDE_SEQUENCE_BARRIER_H
#define BIDE_SEQUENCE_BARRIER_H

#include "bide/sequence.h"
#include "bide/sync_wait.h"
#include "bide/extend/waiter_list.h"

BIDE_EXTERN_C_BEGIN

#define BIDE_SEQUENCE_TEMPLATE "bide/detail/sequence_barrier_template.h"
#include "bide/detail/each_sequence.h"

/*
 * The end of a barrier's life: does nothing, but where misuse is looked for (BIDE_DEBUG) says so if somebody waits.
 */
#define BIDE_SEQUENCE_BARRIER_MISUSE_(barrier) \
    BIDE_MISUSE_("a sequence barrier is destroyed that is waited on", #barrier)
#define bide_sequence_barrier8_destroy(barrier) \
    bide_sequence_barrier8_destroy_(barrier, BIDE_SEQUENCE_BARRIER_MISUSE_(barrier))
#define bide_sequence_barrier16_destroy(barrier) \
    bide_sequence_barrier16_destroy_(barrier, BIDE_SEQUENCE_BARRIER_MISUSE_(barrier))
#define bide_sequence_barrier32_destroy(barrier) \
    bide_sequence_barrier32_destroy_(barrier, BIDE_SEQUENCE_BARRIER_MISUSE_(barrier))
#define bide_sequence_barrier64_destroy(barrier) \
    bide_sequence_barrier64_destroy_(barrier, BIDE_SEQUENCE_BARRIER_MISUSE_(barrier))
#define bide_sequence_barrier_destroy(barrier) \
    bide_sequence_barrier_destroy_(barrier, BIDE_SEQUENCE_BARRIER_MISUSE_(barrier))

BIDE_EXTERN_C_END

#endif

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
 * The publisher stores `published` and then looks at the list; a waiter enlists and then looks at
 * `published`. Neither sees the other only if both looks came too early, and one total order forbids it
 * (that of C++20 and RC11, which what compilers do keeps to; C11's own text says less where orders are
 * mixed on one word):
 *
 *     publisher:  C  published.store(s, seq_cst)      waiter:  A  list.push(w, seq_cst)
 *                 D  list.load(seq_cst)                        B  published.load(seq_cst)
 *
 * 1. If B reads what was before C, then B comes before C in the single total order of seq_cst operations,
 *    so A before B before C before D, and D sees the push, or something later (a taker of the list).
 *    Weaker, D may be performed before C, or B before A: on x86 a plain store waits in the store
 *    buffer while D is done.
 * 2. The publisher looks (a load) before it takes (an exchange), so the line of the list stays shared
 *    while nobody waits. That is why C, D, A and B must all be seq_cst. Were the list exchanged
 *    unconditionally, no seq_cst would be needed at all: both sides would then modify the one word, and
 *    of two modifications one comes first. Push first: the exchange takes it. Exchange first: the push
 *    reads from it (or from a later modification, which continues its release sequence), and with
 *    push acquiring and exchange releasing, C happens before B even if both are relaxed. On x86 that
 *    is one locked instruction either way (the seq_cst store is one), but it is on the contended
 *    line, so looking is what is built.
 * 3. Whoever takes waiters to look at them sifts (waiter_list.h): the list says so until those whose number has
 *    not come are put back. So while somebody waits, D never finds the list empty, whoever holds the waiter, and the
 *    publisher either takes the list itself or asks the holder to look again, which then sees C. For the same reason a
 *    waiter that finds its number reached (B) while another sifts may leave its end to that one.
 * 4. close() shuts the list. A push that comes later is refused; whoever holds taken waiters is told so when it
 *    puts them back, and ends them with -EPIPE itself. So close needs no look at
 *    `published` that is ordered with C, except to tell who is reached: those it takes it judges by the
 *    value that it sees, and a publisher in another thread at that moment is concurrent.
 * 5. Seeing a number published means seeing what was written before: C releases (as seq_cst does), the
 *    loads in ready and B acquire. Whoever takes the list reads `published` after the take, and judges by
 *    that: among the taken may be one who enlisted after B, having seen a later number, and for whom
 *    B's number would lie more than half the range back. The take has acquired his push, so the load
 *    that follows cannot be older than what he saw.
 *
 * ---- Nothing is touched after the end ----
 *
 * 6. After A the waiter may be taken by another thread, and yet `suspend` goes on to look at the barrier (B) and maybe
 *    at the list: a handshake keeps the coroutine from going on meanwhile (waiter_list.h, 9).
 * 7. The link of a waiter that is put back is written before putting back releases it and read by the next
 *    taker after its acquire.
 *
 * ABA: see waiter_list.h; the list is pushed onto or taken whole, so it does no harm.
 *
 * Layout: `published` and `waiters` have a cache line each. Publishing writes the first; waiters that
 * come and go write the second.
 *
 * Source: the seed article on the sequence barrier, after cppcoro's sequence_barrier; 2, 3, 4 and 6 are
 * answers to what they leave open.
 */
#ifndef BIDE_SEQUENCE_BARRIER_H
#define BIDE_SEQUENCE_BARRIER_H

#include "bide/sequence.h"
#include "bide/sync_wait.h"
#include "bide/waiter_list.h"

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

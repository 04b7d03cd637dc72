/*
 * A multi-producer sequencer: hands out the slots of a ring to any number of producers, in order, and none that a
 * consumer may still read. They may be published in any order; consumers see them in the order of their numbers.
 * Floor: sync.
 *
 * For each type of sequence there is a set of the same types and functions, as in sequence.h. Their contracts stand
 * once, in detail/multi_producer_sequencer_template.h.
 *
 *              consumed (gate)         last published                  next
 *     ... free | in the consumers' hands      | claimed, some published | free ...
 *              <------------------------ at most `size` ---------------->
 *
 *     slots[]     one word a slot: the number that was published there last. So s is published if the word at
 *                 s % size is s, abandoned if it is s + half the range, and otherwise neither: it then has the number
 *                 of an earlier lap, s - size, or s - size + half. (size is at most a quarter of the range, so that
 *                 these four differ.)
 *     next        the next number to be claimed, plus half the range of its word once it is closed. In a wider word
 *                 than the sequence, where there is one; its low bits are the sequence
 *     consumed    what the gate had published when somebody last looked, as wide; a hint
 *     readers     the consumers that wait, each for its target (waiter_list.h)
 *     turn        the claims that wait, and how many they are
 *
 *     claim       take a number whose slot is free; where none is, line up, wait at the gate, and take it then
 *     publish     write the number to its slot, wake who waits for it
 *     abandon     the same with the other number: consumers skip it. Who has claimed does one or the other
 *     close       no claim succeeds any more; what is claimed may still be published, and is read
 *
 * A claim takes its number when its slot is free, never before. So one that is cut short leaves nothing, and nobody
 * waits for a number whose producer has gone. (cppcoro's producers take it before they wait, and cannot give it back.)
 *
 * ---- Claiming ----
 *
 * 1. Of those who find the same `next` one succeeds, by a compare-exchange. He has looked at `consumed`, or at the
 *    gate, after he had read `next`; had anybody claimed since, the exchange would fail. So what he saw free is free,
 *    and his.
 * 2. That needs that `next` does not come back to the same value meanwhile. With 8 or 16 bits alone it would, as
 *    soon as the thread is preempted between the two while others claim 256 or 65536 times. Hence the wider word: of
 *    pointer size or that of the sequence. It comes back after 2^64 claims; where words have 32 bits, after 2^32, all
 *    within one preemption. `consumed` is as wide, so a thread that writes an old one late makes the ring look
 *    fuller than it is, never emptier; who is not satisfied looks at the gate itself.
 * 3. A slot may be written after what its readers have read: they publish on the gate's barriers (release), the claimer
 *    acquires that from the gate, or from `consumed`, which is released by who acquired it.
 * 4. First come, first served: who does not get a slot at once counts itself in `lined`, locks the mutex in `turn`,
 *    which is first in, first out, and waits at the gate when he has it; then he takes what is free, and hands the
 *    mutex on. So of many claims that wait one is woken when a slot becomes free. Nobody else takes a slot unless more
 *    are free, in the same look, than there are claims in line, and he leaves one for each. So nobody in line waits
 *    because of one who came later, and none starves, whatever the others take. (Who looked at `lined` just before may
 *    still claim; so the one at the gate looks again.) The numbers need not be in that order: where there is enough for
 *    all, one claims at once though those in line have not run yet to take theirs. If he had to go behind them the line
 *    would never end: each would be back at its end before the mutex has come through to him, suspended at every claim,
 *    however empty the ring. `lined` orders nothing: that what is taken is free rests on 1 to 3. It is too high for a
 *    moment, of those who have just got theirs: that sends one more to the line, where each looks for himself.
 *
 * ---- Publishing: no wake-up is lost ----
 *
 * The publisher stores in the slot and then looks at the list of readers; a reader enlists and then looks at the slots.
 * That neither misses the other is the list's argument, with its letters (waiter_list.h, 8 to 11): the number that is
 * announced is the slot's.
 *
 * 5. Of a range the first is stored last, as N, and the others before, with release. A reader walks up from what it
 *    knows; it stops at the first slot that is not published. That one is not inside a range of which it has seen or
 *    known the first (having acquired that, it sees the others), so it was or will be stored as an N, or not at all.
 * 6. Whoever sifts judges each waiter by its own (target, known), walking again, and puts back who stays. So
 *    nobody is resumed before all up to its target is published, however often it was looked at. (cppcoro resumes some
 *    too early when a list is put back: its issue 217.)
 *
 * ---- Closing ----
 *
 * 7. close() adds to `next` half the range of its word, once, so every claim that had read it fails, and so do all that
 *    read it later: it then lies further ahead of `consumed` than a ring is large, by so much that it can be nothing
 *    else. (For that `consumed` is read first: it was released by who had claimed further, so `next` is then no
 *    older. It may be newer; by half the range only if 2^31 or 2^63 are claimed between the two reads.) Thus one word
 *    says whether it is closed, and where all ends that was ever claimed. A reader that finds everything published up
 *    to there knows that nothing follows, and ends with -EPIPE. If something is claimed still, it waits for that.
 * 8. To the readers that is as a publish: N is the exchange of `next`, B the load of it.
 * 9. The one that waits at the gate does so in the stop source of `turn`, below its own. FREE -> AT_GATE is released
 *    with the source, and close() acquires it: AT_GATE -> CLOSED, and asks the source to stop. No other claim uses the
 *    source after that, and while close() does the sequencer stays; so nobody has to wait for close(). Those behind get
 *    their turn one after the other, and find it closed.
 *
 * 10. The one at the gate may be preempted before it has enlisted there, and others claim meanwhile, as many as they
 *    like; with 8 or 16 bits a number that it had worked out before would then be that of another lap, ahead of all
 *    that is published, and it would wait until the numbers have come round. So its target is not a number: it follows
 *    `next`, which has the wider word, and whoever judges it looks there (sequence_barrier.h, 5).
 *
 * ---- Joining the gate ----
 *
 * 11. A joiner begins after P, the last that is claimed when it is linked to the gate, behind a heavy fence X. No
 *     producer writes over what comes after P before the joiner allows it: whoever claims goes by what the gate had
 *     published at some look, his own or, through `consumed`, which he acquires, another's: by some C. If that look
 *     saw the joiner it saw P. If not, the light fence in it came before X (sequence_group.h, 1), and before the look
 *     there was the claim of C: a fixed member has published C, having acquired it from a slot, which was released by
 *     who had claimed it. So the load of `next` behind X sees that claim, or a later one, and C is not after P.
 *     A fixed member there must be: its C is published with all before it. A joiner's barrier stands at P from the
 *     beginning, where some may still be about to be written; if the gate were all joiners, those slots would be
 *     claimed again.
 * 12. P, and what comes before it, may not be published yet; nobody waits for that who has joined after it. He walks
 *     from P + 1 on, which begins a claim, so no range reaches over it (5). What lies in the slot of s, after P and up
 *     to P + size, is then perhaps the number of two laps before, s - 2 size, since s - size may be claimed and not
 *     published; not of three: s - size was claimed by a C not before s - 2 size, and by 11 what was written before
 *     that look is seen behind X. It differs from s, and from s + half, if size is at most an eighth of the range. With
 *     a quarter it would be s + half: abandoned.
 *
 * Source: the disruptor's multi-producer sequencer; cppcoro's multi_producer_sequencer; the seed article.
 */
#ifndef BIDE_MULTI_PRODUCER_SEQUENCER_H
#define BIDE_MULTI_PRODUCER_SEQUENCER_H

#include "bide/mutex.h"
#include "bide/sequence_group.h"
#include "bide/stop.h"
#include "bide/sync_wait.h"

BIDE_EXTERN_C_BEGIN

/* The claims that wait: the one that has the mutex does so at the gate; see 4 and 9. */
typedef struct bide_claim_turn_ {
    bide_atomic(uint32_t) lined; /* how many; also who has just got his */
    bide_mutex mutex;
    bide_atomic(uint32_t) state; /* FREE, AT_GATE, CLOSED */
    bide_context context;        /* of the one at the gate, with `source`; of who has the mutex */
    bide_stop_source source;
} bide_claim_turn_;

#define BIDE_SEQUENCE_TEMPLATE "bide/detail/multi_producer_sequencer_template.h"
#include "bide/detail/each_sequence.h"

/*
 * Those that tell of misuse with what the caller wrote, for each type of sequence. Their contracts are in the template,
 * at _publish_range_, _abandon_ and _destroy_.
 */
#define BIDE_MULTI_PUT_(name, sequencer, first, count) \
    bide_multi_producer_sequencer##name(               \
        (sequencer), (first), (count),                 \
        BIDE_MISUSE_("a sequence is published that is not claimed, or was published", #sequencer))
#define BIDE_MULTI_DESTROY_(name, sequencer) \
    bide_multi_producer_sequencer##name(     \
        (sequencer), BIDE_MISUSE_("a sequencer is destroyed that is in use", #sequencer))

/* clang-format off */
#define bide_multi_producer_sequencer8_publish(s, n)              BIDE_MULTI_PUT_(8_publish_range_, s, n, 1)
#define bide_multi_producer_sequencer8_publish_range(s, n, count) BIDE_MULTI_PUT_(8_publish_range_, s, n, count)
#define bide_multi_producer_sequencer8_abandon(s, n, count)       BIDE_MULTI_PUT_(8_abandon_, s, n, count)
#define bide_multi_producer_sequencer8_destroy(s)                 BIDE_MULTI_DESTROY_(8_destroy_, s)
#define bide_multi_producer_sequencer16_publish(s, n)              BIDE_MULTI_PUT_(16_publish_range_, s, n, 1)
#define bide_multi_producer_sequencer16_publish_range(s, n, count) BIDE_MULTI_PUT_(16_publish_range_, s, n, count)
#define bide_multi_producer_sequencer16_abandon(s, n, count)       BIDE_MULTI_PUT_(16_abandon_, s, n, count)
#define bide_multi_producer_sequencer16_destroy(s)                 BIDE_MULTI_DESTROY_(16_destroy_, s)
#define bide_multi_producer_sequencer32_publish(s, n)              BIDE_MULTI_PUT_(32_publish_range_, s, n, 1)
#define bide_multi_producer_sequencer32_publish_range(s, n, count) BIDE_MULTI_PUT_(32_publish_range_, s, n, count)
#define bide_multi_producer_sequencer32_abandon(s, n, count)       BIDE_MULTI_PUT_(32_abandon_, s, n, count)
#define bide_multi_producer_sequencer32_destroy(s)                 BIDE_MULTI_DESTROY_(32_destroy_, s)
#define bide_multi_producer_sequencer64_publish(s, n)              BIDE_MULTI_PUT_(64_publish_range_, s, n, 1)
#define bide_multi_producer_sequencer64_publish_range(s, n, count) BIDE_MULTI_PUT_(64_publish_range_, s, n, count)
#define bide_multi_producer_sequencer64_abandon(s, n, count)       BIDE_MULTI_PUT_(64_abandon_, s, n, count)
#define bide_multi_producer_sequencer64_destroy(s)                 BIDE_MULTI_DESTROY_(64_destroy_, s)
#define bide_multi_producer_sequencer_publish(s, n)              BIDE_MULTI_PUT_(_publish_range_, s, n, 1)
#define bide_multi_producer_sequencer_publish_range(s, n, count) BIDE_MULTI_PUT_(_publish_range_, s, n, count)
#define bide_multi_producer_sequencer_abandon(s, n, count)       BIDE_MULTI_PUT_(_abandon_, s, n, count)
#define bide_multi_producer_sequencer_destroy(s)                 BIDE_MULTI_DESTROY_(_destroy_, s)
/* clang-format on */

BIDE_EXTERN_C_END

#endif

/*
 * A single-producer sequencer: hands out the slots of a ring to the one producer, in order, and none that
 * a consumer may still read. Floor: sync.
 *
 * For each type of sequence there is a set of the same types and functions, as in sequence.h. It joins two
 * things that the user owns: the cursor, a sequence barrier on which the consumers wait for what the
 * producer publishes; and the gate, a group of barriers on which the last consumers publish what they have
 * done with.
 *
 *              consumed (gate)          published (cursor)     next
 *     ... free | in the consumers' hands      | claimed          | free ...
 *              <---------------- at most `size` ---------------->
 *
 *     claim       takes the next numbers, once their slots are free
 *     publish     in order: all that is claimed up to a number
 *     abandon     the same, for what could not be filled: consumers go past it
 *     give back   what was claimed last, as if it had not been
 *     close       consumers read what is published; claims end with -EPIPE
 *
 * Claiming and publishing is the producer's: `next` and `consumed` are plain fields. What consumers ask goes to the
 * cursor. The claims' memory orders are those of the gate's barriers: a slot is claimed after an acquiring load of what
 * the consumer published when it had done with it. Markers of abandoned slots are plain bytes: like the slots, they are
 * the producer's until they are published, and the consumers' until they have done with them.
 *
 * size is at most half the range of the sequence: the first claims wait for sequences up to `size` behind
 * the initial one, which count as published (the property that the seed article points out).
 *
 * The names are those of the multi-producer sequencer, where publishing takes any order.
 *
 * Source: the disruptor; cppcoro's single_producer_sequencer; the seed article.
 */
#ifndef BIDE_SINGLE_PRODUCER_SEQUENCER_H
#define BIDE_SINGLE_PRODUCER_SEQUENCER_H

#include "bide/sequence_group.h"
#include "bide/sync_wait.h"

BIDE_EXTERN_C_BEGIN

#define BIDE_SEQUENCE_TEMPLATE "bide/detail/single_producer_sequencer_template.h"
#include "bide/detail/each_sequence.h"

/*
 * Those that tell of misuse with what the caller wrote, for each type of sequence. Their contracts are in the template,
 * at _publish_range_, _abandon_, _give_back_ and _destroy_.
 */
#define BIDE_SINGLE_PUT_(name, sequencer, first, count) \
    bide_single_producer_sequencer##name(               \
        (sequencer), (first), (count),                  \
        BIDE_MISUSE_("a sequence is published that is not claimed, or was published", #sequencer))
#define BIDE_SINGLE_ABANDON_(name, sequencer, first, count)                             \
    bide_single_producer_sequencer##name(                                               \
        (sequencer), (first), (count),                                                  \
        BIDE_MISUSE_("a sequence is abandoned that is not claimed, or without markers", \
                     #sequencer))
#define BIDE_SINGLE_GIVE_BACK_(name, sequencer, count) \
    bide_single_producer_sequencer##name(              \
        (sequencer), (count), BIDE_MISUSE_("more is given back than is claimed", #sequencer))
#define BIDE_SINGLE_DESTROY_(name, sequencer) \
    bide_single_producer_sequencer##name(     \
        (sequencer), BIDE_MISUSE_("a sequencer is destroyed that is waited for", #sequencer))

/* clang-format off */
#define bide_single_producer_sequencer8_publish(s, n)              BIDE_SINGLE_PUT_(8_publish_range_, s, n, 1)
#define bide_single_producer_sequencer8_publish_range(s, n, count) BIDE_SINGLE_PUT_(8_publish_range_, s, n, count)
#define bide_single_producer_sequencer8_abandon(s, n, count)       BIDE_SINGLE_ABANDON_(8_abandon_, s, n, count)
#define bide_single_producer_sequencer8_give_back(s, count)        BIDE_SINGLE_GIVE_BACK_(8_give_back_, s, count)
#define bide_single_producer_sequencer8_destroy(s)                 BIDE_SINGLE_DESTROY_(8_destroy_, s)
#define bide_single_producer_sequencer16_publish(s, n)              BIDE_SINGLE_PUT_(16_publish_range_, s, n, 1)
#define bide_single_producer_sequencer16_publish_range(s, n, count) BIDE_SINGLE_PUT_(16_publish_range_, s, n, count)
#define bide_single_producer_sequencer16_abandon(s, n, count)       BIDE_SINGLE_ABANDON_(16_abandon_, s, n, count)
#define bide_single_producer_sequencer16_give_back(s, count)        BIDE_SINGLE_GIVE_BACK_(16_give_back_, s, count)
#define bide_single_producer_sequencer16_destroy(s)                 BIDE_SINGLE_DESTROY_(16_destroy_, s)
#define bide_single_producer_sequencer32_publish(s, n)              BIDE_SINGLE_PUT_(32_publish_range_, s, n, 1)
#define bide_single_producer_sequencer32_publish_range(s, n, count) BIDE_SINGLE_PUT_(32_publish_range_, s, n, count)
#define bide_single_producer_sequencer32_abandon(s, n, count)       BIDE_SINGLE_ABANDON_(32_abandon_, s, n, count)
#define bide_single_producer_sequencer32_give_back(s, count)        BIDE_SINGLE_GIVE_BACK_(32_give_back_, s, count)
#define bide_single_producer_sequencer32_destroy(s)                 BIDE_SINGLE_DESTROY_(32_destroy_, s)
#define bide_single_producer_sequencer64_publish(s, n)              BIDE_SINGLE_PUT_(64_publish_range_, s, n, 1)
#define bide_single_producer_sequencer64_publish_range(s, n, count) BIDE_SINGLE_PUT_(64_publish_range_, s, n, count)
#define bide_single_producer_sequencer64_abandon(s, n, count)       BIDE_SINGLE_ABANDON_(64_abandon_, s, n, count)
#define bide_single_producer_sequencer64_give_back(s, count)        BIDE_SINGLE_GIVE_BACK_(64_give_back_, s, count)
#define bide_single_producer_sequencer64_destroy(s)                 BIDE_SINGLE_DESTROY_(64_destroy_, s)
#define bide_single_producer_sequencer_publish(s, n)              BIDE_SINGLE_PUT_(_publish_range_, s, n, 1)
#define bide_single_producer_sequencer_publish_range(s, n, count) BIDE_SINGLE_PUT_(_publish_range_, s, n, count)
#define bide_single_producer_sequencer_abandon(s, n, count)       BIDE_SINGLE_ABANDON_(_abandon_, s, n, count)
#define bide_single_producer_sequencer_give_back(s, count)        BIDE_SINGLE_GIVE_BACK_(_give_back_, s, count)
#define bide_single_producer_sequencer_destroy(s)                 BIDE_SINGLE_DESTROY_(_destroy_, s)
/* clang-format on */

BIDE_EXTERN_C_END

#endif

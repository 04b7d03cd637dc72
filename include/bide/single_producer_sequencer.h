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
 * Only the producer calls and touches it: `next` and `consumed` are plain fields. The claims' memory
 * orders are those of the gate's barriers: a slot is claimed after an acquiring load of what the consumer
 * published when it had done with it.
 *
 * size is at most half the range of the sequence: the first claims wait for sequences up to `size` behind
 * the initial one, which count as published (the property that the seed article points out).
 *
 * Source: the disruptor; cppcoro's single_producer_sequencer.
 */
#ifndef BIDE_SINGLE_PRODUCER_SEQUENCER_H
#define BIDE_SINGLE_PRODUCER_SEQUENCER_H

#include "bide/sequence_group.h"

BIDE_EXTERN_C_BEGIN

#define BIDE_SEQUENCE_TEMPLATE "bide/detail/single_producer_sequencer_template.h"
#include "bide/detail/each_sequence.h"

BIDE_EXTERN_C_END

#endif

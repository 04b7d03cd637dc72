/*
 * The sequencer's start, and the coroutine of a claim that must wait; made once for each type of sequence.
 */
#include "bide/single_producer_sequencer.h"

#include "bide/errors.h"

#define BIDE_SEQUENCE_TEMPLATE "../src/sync/single_producer_sequencer_slow.h"
#include "bide/detail/each_sequence.h"

/*
 * A consumer has done with what its single producer has not published.
 * told: run
 * says: a consumer of a ring is ahead of what was published, main, 
 */
#include "mistakes.h"

#include "bide/single_producer_sequencer.h"

static bide_sequence_barrier cursor, consumed;
static bide_sequence_barrier *const consumers[] = {&consumed};
static bide_sequence_group gate;

int main()
{
    static bide_single_producer_sequencer sequencer;
    bide_sequence first;
    bide_sequence_barrier_init(&cursor, bide_sequence_initial());
    bide_sequence_barrier_init(&consumed, bide_sequence_initial());
    bide_sequence_group_init(&gate, consumers, 1);
    if (bide_single_producer_sequencer_init(&sequencer, &cursor, &gate, 4) != 0 ||
        bide_single_producer_sequencer_try_claim(&sequencer, 2, &first) != 2)
        return 1;
    bide_single_producer_sequencer_publish(&sequencer, first);
    bide_sequence_barrier_publish(&consumed, first + 1);
    bide_single_producer_sequencer_publish(&sequencer, first + 1); // HERE
    return 0;
}

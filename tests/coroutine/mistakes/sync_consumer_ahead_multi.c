/*
 * A consumer has done with what no producer has claimed.
 * told: run
 * says: a consumer of a ring is ahead of what was published, main, 
 */
#include "mistakes.h"

#include "bide/multi_producer_sequencer.h"

static bide_sequence_barrier consumed;
static bide_sequence_barrier *const consumers[] = {&consumed};
static bide_sequence_group gate;

int main(void)
{
    static bide_multi_producer_sequencer sequencer;
    static bide_sequence_slot slots[4];
    bide_sequence first;
    bide_sequence_barrier_init(&consumed, bide_sequence_initial());
    bide_sequence_group_init(&gate, consumers, 1);
    if (bide_multi_producer_sequencer_init(&sequencer, slots, 4, &gate, bide_sequence_initial()) !=
            0 ||
        bide_multi_producer_sequencer_try_claim(&sequencer, 2, &first) != 2)
        return 1;
    bide_multi_producer_sequencer_publish(&sequencer, first);
    bide_sequence_barrier_publish(&consumed, first + 2);
    bide_multi_producer_sequencer_publish(&sequencer, first + 1); // HERE
    return 0;
}

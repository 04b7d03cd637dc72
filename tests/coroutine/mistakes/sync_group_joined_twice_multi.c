/*
 * A member joins the ring of a multi-producer sequencer again.
 * told: run
 * says: a member joins a sequence group that it has joined already: &member, main, 
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
    static bide_sequence_group_member member;
    static bide_sequence_barrier own;
    bide_sequence start;
    bide_sequence_barrier_init(&consumed, bide_sequence_initial());
    bide_sequence_group_init(&gate, consumers, 1);
    if (bide_multi_producer_sequencer_init(&sequencer, slots, 4, &gate, bide_sequence_initial()) !=
            0 ||
        bide_multi_producer_sequencer_join(&sequencer, &member, &own, &start) != 0)
        return 1;
    return bide_multi_producer_sequencer_join(&sequencer, &member, &own, &start); // HERE
}

/*
 * A claim of no slots by the one producer, which would spin for ever.
 * told: run
 * says: a claim is of no slots, body, 
 */
#include "mistakes.h"

#include "bide/single_producer_sequencer.h"

struct x {
    bide_task task;
    bide_sequence_barrier cursor, consumed;
    bide_sequence_barrier *members[1];
    bide_sequence_group gate;
    bide_single_producer_sequencer sequencer;
    bide_claim claim;
};

static bide_awaiter *claim_none(struct x *self)
{
    return bide_single_producer_sequencer_claim_up_to(&self->claim, &self->sequencer, 0);
}

bide_coroutine(body)
{
    bide_begin(body, struct x * self);
    bide_await(claim_none(self)); // HERE
    bide_end();
}

int main(void)
{
    static struct x x;
    bide_sequence_barrier_init(&x.cursor, bide_sequence_initial());
    bide_sequence_barrier_init(&x.consumed, bide_sequence_initial());
    x.members[0] = &x.consumed;
    bide_sequence_group_init(&x.gate, x.members, 1);
    if (bide_single_producer_sequencer_init(&x.sequencer, &x.cursor, &x.gate, 2) != 0)
        return 1;
    return bide_sync_wait(bide_task_init(&x.task, &body));
}

/*
 * says: bide_multi_producer_sequencer_claim_one is called with its bide_multi_producer_claim here: first needs it afterwards
 */
#include <bide/async.h>
#include <bide/bide.h>

async int f(bide_multi_producer_sequencer *sequencer)
{
    return await bide_with_timeout(1, bide_multi_producer_sequencer_claim_one(sequencer)); /* HERE */
}

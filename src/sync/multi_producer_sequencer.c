/*
 * The slow halves of the multi-producer sequencer, and the claims that wait; made once for each type of sequence.
 * The numbers are those of multi_producer_sequencer.h.
 */
#include "bide/multi_producer_sequencer.h"

#include "bide/errors.h"

/* Of a turn; see 9. */
enum { FREE, AT_GATE, CLOSED };

/* How far a claim that waits has come. */
enum { IN_LINE, FIRST, WAITS_AT_GATE };

static void turn_init(bide_claim_turn_ *turn)
{
    bide_atomic_init(&turn->lined, 0);
    bide_mutex_init(&turn->mutex);
    bide_atomic_init(&turn->state, FREE);
    bide_stop_source_init(&turn->source);
}

/*
 * The claim `frame`, which has the mutex, is about to wait at the gate: from now on in the turn's stop source, below
 * its own. False: it was closed.
 */
static bool turn_begin(bide_claim_turn_ *turn, bide_frame *frame)
{
    bide_stop_source *own = frame->context->stop;
    /* acquire: partner is turn_close; who ends because of it sees why. (If another has found it closed, it was before
     * the mutex was handed over, and is seen.) */
    uint32_t state = bide_atomic_load(&turn->state, acquire);
    if (state == CLOSED)
        return false;
    turn->context = *frame->context;
    turn->context.stop = &turn->source;
    bide_stop_source_init(&turn->source);
    if (own != NULL)
        bide_stop_source_attach(&turn->source, own);
    /* release: 9, partner is turn_close. acquire: as above. */
    if (!bide_atomic_compare_exchange(&turn->state, &state, AT_GATE, release, acquire)) {
        bide_stop_source_detach(&turn->source);
        return false;
    }
    frame->context = &turn->context;
    return true;
}

/* It does so no longer, and goes on in its own `context`. False: it was closed meanwhile. */
static bool turn_end(bide_claim_turn_ *turn, bide_frame *frame, const bide_context *context)
{
    uint32_t state = AT_GATE;
    frame->context = context;
    bide_stop_source_detach(&turn->source);
    /* relaxed: whoever closes it later leaves the source alone. */
    if (bide_atomic_compare_exchange(&turn->state, &state, FREE, relaxed, relaxed))
        return true;
    /* acquire: as in turn_begin; it is CLOSED for good. */
    return bide_atomic_load(&turn->state, acquire) != CLOSED;
}

static void turn_close(bide_claim_turn_ *turn)
{
    /* acquire: 9, partner is turn_begin. release: to all who find it closed. */
    if (bide_atomic_exchange(&turn->state, CLOSED, acq_rel) == AT_GATE)
        bide_stop_request(&turn->source);
}

/* (found from the include folder, the one folder that every build names) */
#define BIDE_SEQUENCE_TEMPLATE "../src/sync/multi_producer_sequencer_slow.h"
#include "bide/detail/each_sequence.h"

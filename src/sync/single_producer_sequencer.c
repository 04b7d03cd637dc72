/*
 * The sequencer's init, and the coroutine of a claim that must wait. One thread at a time is the
 * producer, which calls both. The argument: the end of single_producer_sequencer.h. sequence8.c and
 * its like include this file again, for their widths.
 */
#include "bide/single_producer_sequencer.h"

#include "../coroutine/internal.h"

#include "bide/errors.h"

int bide_single_producer_sequencer_init(bide_single_producer_sequencer *sequencer,
                                        bide_sequence_barrier *cursor, bide_sequence_group *gate,
                                        bide_sequence size)
{
    if (size == 0 || (size & (bide_sequence)(size - 1)) != 0 || size > (bide_sequence)-1 / 2 + 1)
        return -EINVAL;
    bide_sequence last = bide_sequence_barrier_last_published(cursor);
    sequencer->cursor = cursor;
    sequencer->gate = gate;
    sequencer->markers = NULL;
    sequencer->size = size;
    sequencer->next = (bide_sequence)(last + 1);
    sequencer->consumed = last;
    sequencer->closed = false;
    return 0;
}

int bide_single_producer_sequencer_set_markers(bide_single_producer_sequencer *sequencer,
                                               uint8_t *markers)
{
    sequencer->markers = markers;
    bide_single_producer_sequencer_clear_markers_(sequencer, 0, sequencer->size);
    return 0;
}

void bide_single_producer_sequencer_close(bide_single_producer_sequencer *sequencer)
{
    sequencer->closed = true;
    sequencer->consumed = (bide_sequence)(sequencer->next - 1 - sequencer->size);
    bide_sequence_barrier_close(sequencer->cursor);
}

/* ---- A claim that waits ---- */

static bide_next single_claim_body_step_(bide_frame *frame, unsigned depth);

/* The coroutine is destroyed before it knows: the slots that it claimed last are free again. */
static void single_give_back_claim(bide_frame *frame)
{
    bide_claim *claim = bide_container_of(frame, bide_claim, frame);
    bide_single_producer_sequencer *sequencer = claim->sequencer;
    if (sequencer->next == (bide_sequence)(claim->first + claim->count))
        bide_single_producer_sequencer_unclaim_(
            sequencer, claim->count, BIDE_MISUSE_("more is given back than is claimed", "claim"));
}

static const bide_coroutine_type single_claim_type = {.name = "task",
                                                      .release = single_give_back_claim};
static const bide_coroutine_type *const single_claim_body_type_ = &single_claim_type;
const bide_coroutine_code bide_single_producer_sequencer_claim_code_ = {
    single_claim_body_step_, "bide_claim", __FILE__, &single_claim_body_type_, NULL};

/* A claim of no slots would wait for ever. */
static int single_claim_refuse(const bide_claim *claim)
{
#if BIDE_DEBUG
    const bide_frame *frame = bide_continuation_(&claim->frame);
    bide_misused_by_("a claim is of no slots", frame != NULL ? frame : &claim->frame, NULL);
#endif
    (void)claim;
    return -EINVAL;
}

bide_body(single_claim_body)
{
    bide_begin(single_claim_body, bide_claim * self);
    if (self->max == 0)
        bide_return(single_claim_refuse(self));
    do {
        if (self->sequencer->closed)
            bide_return(-EPIPE);
        bide_try(bide_sequence_group_wait_until_published(
            &self->wait, self->sequencer->gate,
            (bide_sequence)(self->sequencer->next - self->sequencer->size)));
        self->count =
            bide_single_producer_sequencer_try_claim(self->sequencer, self->max, &self->first);
    } while (self->count == 0);
    bide_end();
}

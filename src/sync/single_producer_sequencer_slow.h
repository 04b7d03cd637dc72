/* For one type of sequence. */

#define BARRIER_         BIDE_CONCAT2(bide_sequence_barrier, BIDE_SEQUENCE_BITS)
#define BARRIER_F_(name) BIDE_CONCAT3(bide_sequence_barrier, BIDE_SEQUENCE_BITS, name)
#define GROUP_           BIDE_CONCAT2(bide_sequence_group, BIDE_SEQUENCE_BITS)
#define GROUP_F_(name)   BIDE_CONCAT3(bide_sequence_group, BIDE_SEQUENCE_BITS, name)
#define SEQUENCER_       BIDE_CONCAT2(bide_single_producer_sequencer, BIDE_SEQUENCE_BITS)
#define CLAIM_           BIDE_CONCAT2(bide_claim, BIDE_SEQUENCE_BITS)
#define BODY_            BIDE_CONCAT2(claim_body, BIDE_SEQUENCE_BITS)
#define F_(name)         BIDE_CONCAT3(bide_single_producer_sequencer, BIDE_SEQUENCE_BITS, name)

int F_(_init)(SEQUENCER_ *sequencer, BARRIER_ *cursor, GROUP_ *gate, BIDE_SEQUENCE size)
{
    if (size == 0 || size > (BIDE_SEQUENCE)-1 / 2 + 1)
        return -EINVAL;
    BIDE_SEQUENCE last = BARRIER_F_(_last_published)(cursor);
    sequencer->cursor = cursor;
    sequencer->gate = gate;
    sequencer->markers = NULL;
    sequencer->size = size;
    sequencer->next = (BIDE_SEQUENCE)(last + 1);
    sequencer->consumed = last;
    sequencer->closed = false;
    return 0;
}

int F_(_set_markers)(SEQUENCER_ *sequencer, uint8_t *markers)
{
    if ((sequencer->size & (BIDE_SEQUENCE)(sequencer->size - 1)) != 0)
        return -EINVAL;
    sequencer->markers = markers;
    F_(_clear_markers_)(sequencer, 0, sequencer->size);
    return 0;
}

void F_(_close)(SEQUENCER_ *sequencer)
{
    sequencer->closed = true;
    sequencer->consumed = (BIDE_SEQUENCE)(sequencer->next - 1 - sequencer->size);
    BARRIER_F_(_close)(sequencer->cursor);
}

static bide_next BIDE_CONCAT2(BODY_, _step_)(bide_frame *frame, unsigned depth);

/* Claimed, and nobody will know: what was claimed last is free again. */
static void F_(_give_back_claim)(bide_frame *frame)
{
    CLAIM_ *claim = bide_container_of(frame, CLAIM_, frame);
    SEQUENCER_ *sequencer = claim->sequencer;
    if (sequencer->next == (BIDE_SEQUENCE)(claim->first + claim->count))
        sequencer->next = claim->first;
}

static const bide_coroutine_type F_(_claim_type) = {.name = "task",
                                                    .give_back = F_(_give_back_claim)};
static const bide_coroutine_type *const BIDE_CONCAT2(BODY_, _type_) = &F_(_claim_type);
const bide_coroutine_code F_(_claim_code_) = {BIDE_CONCAT2(BODY_, _step_), "bide_claim", __FILE__,
                                              &BIDE_CONCAT2(BODY_, _type_), NULL};

bide_body(BODY_)
{
    bide_begin(BODY_, CLAIM_ * self);
    do {
        if (self->sequencer->closed)
            bide_return(-EPIPE);
        bide_try(GROUP_F_(_wait_until_published)(
            &self->wait, self->sequencer->gate,
            (BIDE_SEQUENCE)(self->sequencer->next - self->sequencer->size)));
        self->count = F_(_try_claim)(self->sequencer, self->most, &self->first);
    } while (self->count == 0);
    bide_end();
}

#undef BARRIER_
#undef BARRIER_F_
#undef GROUP_
#undef GROUP_F_
#undef SEQUENCER_
#undef CLAIM_
#undef BODY_
#undef F_

/* For one type of sequence. The model, the argument and the letters are in multi_producer_sequencer.h. */

#define GROUP_         BIDE_CONCAT2(bide_sequence_group, BIDE_SEQUENCE_BITS)
#define GROUP_F_(name) BIDE_CONCAT3(bide_sequence_group, BIDE_SEQUENCE_BITS, name)
#define SLOT_          BIDE_CONCAT2(bide_sequence_slot, BIDE_SEQUENCE_BITS)
#define SEQUENCER_     BIDE_CONCAT2(bide_multi_producer_sequencer, BIDE_SEQUENCE_BITS)
#define CLAIM_         BIDE_CONCAT2(bide_multi_producer_claim, BIDE_SEQUENCE_BITS)
#define WAITER_        BIDE_CONCAT2(bide_multi_producer_waiter, BIDE_SEQUENCE_BITS)
#define COUNTER_       BIDE_COUNTER_OF_(BIDE_SEQUENCE_BITS)
#define BODY_          BIDE_CONCAT2(multi_producer_claim_body, BIDE_SEQUENCE_BITS)
#define F_(name)       BIDE_CONCAT3(bide_multi_producer_sequencer, BIDE_SEQUENCE_BITS, name)
#define TRAIT_(name)   BIDE_CONCAT3(bide_sequence, BIDE_SEQUENCE_BITS, name)

int F_(_init)(SEQUENCER_ *sequencer, SLOT_ *slots, BIDE_SEQUENCE size, GROUP_ *gate,
              BIDE_SEQUENCE initial)
{
    const BIDE_SEQUENCE quarter = (BIDE_SEQUENCE)((BIDE_SEQUENCE)-1 / 4 + 1);
    if (size == 0 || (size & (size - 1)) != 0 || size > quarter)
        return -EINVAL;
    sequencer->gate = gate;
    sequencer->slots = slots;
    sequencer->size = size;
    bide_atomic_init(&sequencer->closed, 0);
    bide_atomic_init(&sequencer->next, (COUNTER_)((COUNTER_)initial + 1));
    bide_atomic_init(&sequencer->consumed, (COUNTER_)initial);
    turn_init(&sequencer->turn);
    bide_waiter_list_init(&sequencer->readers, false);
    for (BIDE_SEQUENCE i = 0; i < size; i++) { /* as the lap before would have left them */
        BIDE_SEQUENCE sequence = (BIDE_SEQUENCE)(initial - i);
        bide_atomic_init(&slots[sequence & (BIDE_SEQUENCE)(size - 1)], sequence);
    }
    return 0;
}

/* ---- Those who wait for what is published; the rules of the list's sifters: 6 ---- */

/* Is everything up to `sequence` published, from what is known on? Each slot is a B. */
static BIDE_SEQUENCE F_(_walk)(SEQUENCER_ *sequencer, const WAITER_ *waiter)
{
    BIDE_SEQUENCE mask = (BIDE_SEQUENCE)(sequencer->size - 1);
    BIDE_SEQUENCE next = (BIDE_SEQUENCE)(waiter->known + 1);
    for (BIDE_SEQUENCE left = sequencer->size; left != 0; left--, next++) {
        BIDE_SEQUENCE last = bide_atomic_load(&sequencer->slots[next & mask], seq_cst); /* B */
        if (!F_(_says_published_)(last, next))
            break;
    }
    return (BIDE_SEQUENCE)(next - 1);
}

static bool F_(_is_due)(const void *context, const bide_awaiter *awaiter)
{
    SEQUENCER_ *sequencer = *(SEQUENCER_ *const *)context;
    const WAITER_ *waiter = (const WAITER_ *)(const void *)awaiter;
    /* B, of 8. */
    bool closed = (bide_atomic_load(&sequencer->closed, seq_cst) & BIDE_SEQUENCER_CLOSED_) != 0;
    BIDE_SEQUENCE published = F_(_walk)(sequencer, waiter);
    if (!TRAIT_(_precedes)(published, waiter->target))
        return true;
    /* relaxed: 7, CLOSED was acquired. */
    return closed && (BIDE_SEQUENCE)(published + 1) ==
                         (BIDE_SEQUENCE)bide_atomic_load(&sequencer->next, relaxed);
}

static void F_(_end)(void *context, bide_awaiter *awaiter)
{
    WAITER_ *waiter = (WAITER_ *)(void *)awaiter;
    waiter->published = F_(_last_published_after)(*(SEQUENCER_ **)context, waiter->known);
    /* Who is due short of his target is so because nothing follows. Who is not due ends otherwise, whatever is said
     * here. */
    if (TRAIT_(_precedes)(waiter->published, waiter->target))
        bide_awaiter_end_closed(awaiter);
}

static const bide_sift_rules F_(_rules) = {NULL, F_(_is_due), F_(_end), true};

void F_(_wake_)(SEQUENCER_ *sequencer, uintptr_t word)
{
    bide_waiter_list_sift(&sequencer->readers, word, &F_(_rules), &sequencer);
}

bide_frame *F_(_suspend_)(bide_awaiter *awaiter, bide_frame *frame)
{
    WAITER_ *own = (WAITER_ *)(void *)awaiter;
    SEQUENCER_ *sequencer = own->sequencer;
    return bide_waiter_list_suspend(&sequencer->readers, &own->waiting, frame, &F_(_rules),
                                    &sequencer);
}

void F_(_cancel_)(bide_awaiter *awaiter)
{
    SEQUENCER_ *sequencer = ((WAITER_ *)(void *)awaiter)->sequencer;
    bide_waiter_list_sift_canceled(&sequencer->readers, &F_(_rules), &sequencer);
}

bool F_(_withdraw_)(bide_awaiter *awaiter)
{
    SEQUENCER_ *sequencer = ((WAITER_ *)(void *)awaiter)->sequencer;
    return bide_waiter_list_sift_out(&sequencer->readers, awaiter, &F_(_rules), &sequencer);
}

void F_(_close)(SEQUENCER_ *sequencer)
{
    /* release: partner is the acquire of a claim that ends because of it. */
    bide_atomic_fetch_or(&sequencer->closed, BIDE_SEQUENCER_CLOSING_, release);
    /* release: 7, partner is the claim's exchange. */
    bide_atomic_fetch_add(&sequencer->next, 0, release);
    bide_atomic_fetch_or(&sequencer->closed, BIDE_SEQUENCER_CLOSED_, seq_cst); /* C, of 8 */
    turn_close(&sequencer->turn);
    F_(_wake_)(sequencer, bide_atomic_load(&sequencer->readers.word, seq_cst)); /* D */
}

/* ---- A claim that waits: 4 and 9 ---- */

static bide_frame *BIDE_CONCAT2(BODY_, _step_)(bide_frame *frame, unsigned depth);

static const bide_coroutine_type *const BIDE_CONCAT2(BODY_, _type_) = &bide_task_type;
const bide_coroutine_code F_(_claim_code_) = {BIDE_CONCAT2(BODY_, _step_),
                                              "bide_multi_producer_claim", __FILE__,
                                              &BIDE_CONCAT2(BODY_, _type_), NULL};

/* Waits until the slot of the next sequence is free. */
static bide_awaiter *F_(_wait_at_gate)(CLAIM_ *claim)
{
    SEQUENCER_ *sequencer = claim->sequencer;
    BIDE_SEQUENCE next = (BIDE_SEQUENCE)bide_atomic_load(&sequencer->next, relaxed);
    return GROUP_F_(_wait_until_published)(&claim->wait, sequencer->gate,
                                           (BIDE_SEQUENCE)(next - sequencer->size));
}

bide_body(BODY_)
{
    bide_begin(BODY_, CLAIM_ * self);
    self->stage = IN_LINE;
    bide_try(bide_mutex_lock(&self->turn, &self->sequencer->turn.mutex));
    self->stage = FIRST;
    while ((self->count = F_(_take_)(self->sequencer, self->most, &self->first)) == 0) {
        int status;
        bool open;
        self->context = bide_this_context();
        /* acquire: partner is close, so that who ends because of it sees why. */
        if (bide_atomic_load(&self->sequencer->closed, acquire) != 0 ||
            !turn_begin(&self->sequencer->turn, bide_this_frame()))
            bide_return(-EPIPE);
        self->stage = WAITS_AT_GATE;
        bide_await_status(status, F_(_wait_at_gate)(self));
        self->stage = FIRST;
        open = turn_end(&self->sequencer->turn, bide_this_frame(), self->context);
        if (!open)
            bide_return(-EPIPE);
        if (status < 0)
            bide_return(status);
    }
    bide_finally();
    if (self->stage == WAITS_AT_GATE) /* it is destroyed there */
        turn_end(&self->sequencer->turn, bide_this_frame(), self->context);
    if (self->stage != IN_LINE)
        bide_mutex_unlock(&self->turn);
    bide_end();
}

#undef GROUP_
#undef GROUP_F_
#undef SLOT_
#undef SEQUENCER_
#undef CLAIM_
#undef WAITER_
#undef COUNTER_
#undef BODY_
#undef F_
#undef TRAIT_

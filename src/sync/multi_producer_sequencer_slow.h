/* For one type of sequence. The model, the argument and the letters are in multi_producer_sequencer.h. */

#define GROUP_         BIDE_CONCAT2(bide_sequence_group, BIDE_SEQUENCE_BITS)
#define BARRIER_       BIDE_CONCAT2(bide_sequence_barrier, BIDE_SEQUENCE_BITS)
#define MEMBER_        BIDE_CONCAT2(bide_sequence_group_member, BIDE_SEQUENCE_BITS)
#define GROUP_F_(name) BIDE_CONCAT3(bide_sequence_group, BIDE_SEQUENCE_BITS, name)
#define SLOT_          BIDE_CONCAT2(bide_sequence_slot, BIDE_SEQUENCE_BITS)
#define SEQUENCER_     BIDE_CONCAT2(bide_multi_producer_sequencer, BIDE_SEQUENCE_BITS)
#define CLAIM_         BIDE_CONCAT2(bide_multi_producer_claim, BIDE_SEQUENCE_BITS)
#define WAITER_        BIDE_CONCAT2(bide_multi_producer_waiter, BIDE_SEQUENCE_BITS)
#define COUNTER_       BIDE_COUNTER_OF_(BIDE_SEQUENCE_BITS)
#define CLOSED_        ((COUNTER_)((COUNTER_)-1 / 2 + 1))
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
    bide_atomic_init(&sequencer->next, (COUNTER_)((COUNTER_)initial + 1));
    bide_atomic_init(&sequencer->consumed, (COUNTER_)initial);
    turn_init(&sequencer->turn);
    bide_biased_list_init(&sequencer->readers);
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
    (void)context; /* there is none: each waiter has its sequencer */
    const WAITER_ *waiter = (const WAITER_ *)(const void *)awaiter;
    SEQUENCER_ *sequencer = waiter->sequencer;
    BIDE_SEQUENCE published = F_(_walk)(sequencer, waiter);
    if (!TRAIT_(_precedes)(published, waiter->target))
        return true;
    /* As in _look_at_end_; seq_cst: B, of 8. */
    COUNTER_ consumed = bide_atomic_load(&sequencer->consumed, acquire);
    COUNTER_ next = bide_atomic_load(&sequencer->next, seq_cst);
    return F_(_says_closed_)(next, consumed) &&
           (BIDE_SEQUENCE)(published + 1) == (BIDE_SEQUENCE)(next - CLOSED_);
}

static void F_(_end)(void *context, bide_awaiter *awaiter)
{
    (void)context;
    WAITER_ *waiter = (WAITER_ *)(void *)awaiter;
    waiter->published = F_(_last_published_after)(waiter->sequencer, waiter->known);
    /* Who is due short of his target is so because nothing follows. Who is not due ends otherwise, whatever is said
     * here. */
    if (TRAIT_(_precedes)(waiter->published, waiter->target))
        bide_awaiter_end_closed(awaiter);
}

static const bide_sift_rules F_(_rules) = {
    .is_due = F_(_is_due), .end = F_(_end), .looks_again = true};

void F_(_wake_)(SEQUENCER_ *sequencer, uintptr_t word)
{
    bide_waiter_list_announce(&sequencer->readers, word, &F_(_rules), NULL);
}

bide_frame *F_(_suspend_)(bide_awaiter *awaiter, bide_frame *frame)
{
    WAITER_ *own = (WAITER_ *)(void *)awaiter;
    SEQUENCER_ *sequencer = own->sequencer;
    return bide_waiter_list_suspend(&sequencer->readers, &own->waiting, frame, &F_(_rules), NULL);
}

void F_(_cancel_)(bide_awaiter *awaiter)
{
    WAITER_ *waiter = (WAITER_ *)(void *)awaiter;
    bide_waiter_list_sift_canceled(&waiter->sequencer->readers.list, &waiter->waiting.listed,
                                   &F_(_rules), NULL);
}

bool F_(_withdraw_)(bide_awaiter *awaiter)
{
    WAITER_ *waiter = (WAITER_ *)(void *)awaiter;
    return bide_waiter_list_sift_out(&waiter->sequencer->readers.list, &waiter->waiting.listed,
                                     &F_(_rules), NULL);
}

void F_(_close)(SEQUENCER_ *sequencer)
{
    COUNTER_ consumed = bide_atomic_load(&sequencer->consumed, acquire); /* as in _take_ */
    COUNTER_ next = bide_atomic_load(&sequencer->next, relaxed);
    do {
        if (F_(_says_closed_)(next, consumed))
            return;
        /* release: partners are all acquires of who ends because of it; N, of 8. */
    } while (!bide_atomic_compare_exchange_weak(&sequencer->next, &next, (COUNTER_)(next + CLOSED_),
                                                release, relaxed));
    turn_close(&sequencer->turn);
    uintptr_t word = bide_biased_list_look(&sequencer->readers); /* L, D */
    if (word > BIDE_LIST_SHUT)
        F_(_wake_)(sequencer, word);
}

/* ---- Joining: 11 and 12 ---- */

static BIDE_SEQUENCE F_(_last_claimed)(void *sequencer)
{
    BIDE_SEQUENCE end;
    F_(_look_at_end_)(sequencer, &end); /* R of sequence_group.h */
    return (BIDE_SEQUENCE)(end - 1);
}

int F_(_join)(SEQUENCER_ *sequencer, MEMBER_ *member, BARRIER_ *barrier, BIDE_SEQUENCE *start)
{
    const BIDE_SEQUENCE eighth = (BIDE_SEQUENCE)((BIDE_SEQUENCE)-1 / 8 + 1);
    if (sequencer->gate->count == 0 || sequencer->size > eighth)
        return -EINVAL;
    *start = GROUP_F_(_join_from)(sequencer->gate, member, barrier, F_(_last_claimed), sequencer);
    return 0;
}

/* ---- A claim that waits: 4 and 9 ---- */

static bide_next BIDE_CONCAT2(BODY_, _step_)(bide_frame *frame, unsigned depth);

/* Claimed, and nobody will know: consumers go past what is abandoned. */
static void F_(_give_back_claim)(bide_frame *frame)
{
    CLAIM_ *claim = bide_container_of(frame, CLAIM_, frame);
    F_(_abandon_)
    (claim->sequencer, claim->first, claim->count,
     BIDE_MISUSE_("a claim is given back that was published already", "claim"));
}

static const bide_coroutine_type F_(_claim_type) = {.name = "task",
                                                    .give_back = F_(_give_back_claim)};
static const bide_coroutine_type *const BIDE_CONCAT2(BODY_, _type_) = &F_(_claim_type);
const bide_coroutine_code F_(_claim_code_) = {BIDE_CONCAT2(BODY_, _step_),
                                              "bide_multi_producer_claim", __FILE__,
                                              &BIDE_CONCAT2(BODY_, _type_), NULL};

bide_body(BODY_)
{
    bide_begin(BODY_, CLAIM_ * self);
    self->stage = IN_LINE;
    bide_atomic_fetch_add(&self->sequencer->turn.lined, 1, relaxed);
    bide_try(bide_mutex_lock(&self->turn, &self->sequencer->turn.mutex));
    self->stage = FIRST;
    while ((self->count = F_(_take_)(self->sequencer, self->most, &self->first, true)) == 0) {
        int status;
        bool open;
        self->context = bide_this_context();
        if (F_(_is_closed)(self->sequencer) ||
            !turn_begin(&self->sequencer->turn, bide_this_frame()))
            bide_return(-EPIPE);
        self->stage = WAITS_AT_GATE;
        bide_await_status(status, GROUP_F_(_follow_)(&self->wait, self->sequencer->gate,
                                                     &self->sequencer->next, /* 10 */
                                                     self->sequencer->size));
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
    bide_atomic_fetch_sub(&self->sequencer->turn.lined, 1, relaxed);
    if (self->stage != IN_LINE)
        bide_mutex_unlock(&self->turn);
    bide_end();
}

#undef GROUP_
#undef GROUP_F_
#undef BARRIER_
#undef MEMBER_
#undef SLOT_
#undef SEQUENCER_
#undef CLAIM_
#undef WAITER_
#undef COUNTER_
#undef CLOSED_
#undef BODY_
#undef F_
#undef TRAIT_

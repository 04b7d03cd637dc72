/*
 * The slow halves of the multi-producer sequencer: waking and judging readers, closing, and the
 * claims that wait. A claim that waits is a coroutine: it locks the turn's mutex, and as its holder
 * waits at the gate. Any thread may call anything. Numbers and letters are those of
 * docs/internals/multi_producer_sequencer.md. sequence8.c and its like include this file again, for
 * their widths.
 */
#include "bide/multi_producer_sequencer.h"

#include "../coroutine/internal.h"

#include "bide/errors.h"
#include "bide/extend/choice.h"

/* The states of a turn: 9. */
enum { TURN_FREE, TURN_AT_GATE, TURN_CLOSED };

/* The stages of a claim that waits; the last of one that chooses, and has kept the turn: 13. */
enum { CLAIM_OUT, CLAIM_IN_LINE, CLAIM_FIRST, CLAIM_AT_GATE, CLAIM_HAS_ROOM };

static void turn_init(bide_claim_turn_ *turn)
{
    bide_atomic_init(&turn->lined, 0);
    bide_mutex_init(&turn->mutex);
    bide_atomic_init(&turn->state, TURN_FREE);
    bide_stop_source_init(&turn->source);
}

/*
 * The claim `frame`, which holds the mutex, is about to wait at the gate: from now on in the turn's
 * stop source, below its own. Returns false if the sequencer was closed.
 */
static bool turn_begin(bide_claim_turn_ *turn, bide_frame *frame)
{
    bide_stop_source *own = frame->context->stop;
    /* acquire: partner is turn_close; a claim that ends because of it sees the reason. (If another
     * claim has found it closed, that was before the mutex was handed over, and is visible.) */
    uint32_t state = bide_atomic_load(&turn->state, acquire);
    if (state == TURN_CLOSED)
        return false;
    turn->context = *frame->context;
    turn->context.stop = &turn->source;
    bide_stop_source_init(&turn->source);
    if (own != NULL)
        bide_stop_source_attach(&turn->source, own);
    /* release: 9, partner is turn_close. acquire: as above. */
    if (!bide_atomic_compare_exchange(&turn->state, &state, TURN_AT_GATE, release, acquire)) {
        bide_stop_source_detach(&turn->source);
        return false;
    }
    frame->context = &turn->context;
    return true;
}

/* The claim no longer waits, and continues in its own `context`. Returns false if it was closed. */
static bool turn_end(bide_claim_turn_ *turn, bide_frame *frame, const bide_context *context)
{
    uint32_t state = TURN_AT_GATE;
    frame->context = context;
    bide_stop_source_detach(&turn->source);
    /* relaxed: a later close does not touch the source. */
    if (bide_atomic_compare_exchange(&turn->state, &state, TURN_FREE, relaxed, relaxed))
        return true;
    /* acquire: as in turn_begin; CLOSED is final. */
    return bide_atomic_load(&turn->state, acquire) != TURN_CLOSED;
}

static void turn_close(bide_claim_turn_ *turn)
{
    /* acquire: 9, partner is turn_begin. release: to all threads that find it closed. */
    if (bide_atomic_exchange(&turn->state, TURN_CLOSED, acq_rel) == TURN_AT_GATE)
        bide_stop_request(&turn->source);
}

int bide_multi_producer_sequencer_init(bide_multi_producer_sequencer *sequencer,
                                       bide_sequence_slot *slots, bide_sequence size,
                                       bide_sequence_group *gate, bide_sequence initial)
{
    const bide_sequence quarter = (bide_sequence)((bide_sequence)-1 / 4 + 1);
    if (size == 0 || (size & (size - 1)) != 0 || size > quarter)
        return -EINVAL;
    sequencer->gate = gate;
    sequencer->slots = slots;
    sequencer->size = size;
    bide_atomic_init(&sequencer->next,
                     (bide_sequence_counter_)((bide_sequence_counter_)initial + 1));
    bide_atomic_init(&sequencer->consumed, (bide_sequence_counter_)initial);
    turn_init(&sequencer->turn);
    bide_biased_list_init(&sequencer->readers);
    for (bide_sequence i = 0; i < size; i++) { /* as the previous lap would have left them */
        bide_sequence sequence = (bide_sequence)(initial - i);
        bide_atomic_init(&slots[sequence & (bide_sequence)(size - 1)], sequence);
    }
    return 0;
}

/* ---- Readers' waits; the rules of the list's sweepers: 6 ---- */

/* The last sequence that is published without a gap, up to `sequence`. Each slot is a B. */
static bide_sequence multi_walk(bide_multi_producer_sequencer *sequencer,
                                const bide_multi_producer_waiter *waiter)
{
    bide_sequence mask = (bide_sequence)(sequencer->size - 1);
    bide_sequence next = (bide_sequence)(waiter->known + 1);
    for (bide_sequence left = sequencer->size; left != 0; left--, next++) {
        bide_sequence last = bide_atomic_load(&sequencer->slots[next & mask], seq_cst); /* B */
        if (!bide_multi_producer_sequencer_says_published_(last, next))
            break;
    }
    return (bide_sequence)(next - 1);
}

static bool multi_is_due(const void *context, const bide_awaiter *awaiter)
{
    (void)context; /* not used: each waiter has its sequencer */
    const bide_multi_producer_waiter *waiter =
        (const bide_multi_producer_waiter *)(const void *)awaiter;
    bide_multi_producer_sequencer *sequencer = waiter->sequencer;
    bide_sequence published = multi_walk(sequencer, waiter);
    if (!bide_sequence_precedes(published, waiter->target))
        return true;
    /* As in _look_at_end_; seq_cst: B, of 8. */
    bide_sequence_counter_ consumed = bide_atomic_load(&sequencer->consumed, acquire);
    bide_sequence_counter_ next = bide_atomic_load(&sequencer->next, seq_cst);
    return bide_multi_producer_sequencer_says_closed_(next, consumed) &&
           (bide_sequence)(published + 1) == (bide_sequence)(next - BIDE_SEQUENCE_CLOSED_);
}

static void multi_end(void *context, bide_awaiter *awaiter)
{
    (void)context;
    bide_multi_producer_waiter *waiter = (bide_multi_producer_waiter *)(void *)awaiter;
    waiter->published =
        bide_multi_producer_sequencer_last_published_after(waiter->sequencer, waiter->known);
    /* A waiter that is due short of its target is due because nothing follows. A waiter that is not
     * due ends with another status, whatever is set here. */
    if (bide_sequence_precedes(waiter->published, waiter->target))
        bide_awaiter_finish_closed(awaiter);
}

static const bide_sweep_ops multi_rules = {
    .is_due = multi_is_due, .end = multi_end, .looks_again = true};

void bide_multi_producer_sequencer_wake_(bide_multi_producer_sequencer *sequencer, uintptr_t word)
{
    bide_waiter_list_announce(&sequencer->readers, word, &multi_rules, NULL);
}

bide_frame *bide_multi_producer_sequencer_suspend_(bide_awaiter *awaiter, bide_frame *frame)
{
    bide_multi_producer_waiter *own = (bide_multi_producer_waiter *)(void *)awaiter;
    bide_multi_producer_sequencer *sequencer = own->sequencer;
    return bide_waiter_list_suspend(&sequencer->readers, &own->waiting, frame, &multi_rules, NULL);
}

void bide_multi_producer_sequencer_cancel_(bide_awaiter *awaiter)
{
    bide_multi_producer_waiter *waiter = (bide_multi_producer_waiter *)(void *)awaiter;
    bide_waiter_list_sweep_cancelled(&waiter->sequencer->readers.list, &waiter->waiting.listed,
                                     &multi_rules, NULL);
}

bool bide_multi_producer_sequencer_withdraw_(bide_awaiter *awaiter)
{
    bide_multi_producer_waiter *waiter = (bide_multi_producer_waiter *)(void *)awaiter;
    return bide_waiter_list_sweep(&waiter->sequencer->readers.list, &waiter->waiting.listed,
                                  &multi_rules, NULL);
}

void bide_multi_producer_sequencer_close(bide_multi_producer_sequencer *sequencer)
{
    bide_sequence_counter_ consumed =
        bide_atomic_load(&sequencer->consumed, acquire); /* as in _take_ */
    bide_sequence_counter_ next = bide_atomic_load(&sequencer->next, relaxed);
    do {
        if (bide_multi_producer_sequencer_says_closed_(next, consumed))
            return;
        /* release: partners are the acquires of all waits and claims that it ends; N, of 8. */
    } while (!bide_atomic_compare_exchange_weak(
        &sequencer->next, &next, (bide_sequence_counter_)(next + BIDE_SEQUENCE_CLOSED_), release,
        relaxed));
    turn_close(&sequencer->turn);
    uintptr_t word = bide_biased_list_peek(&sequencer->readers); /* L, D */
    if (word > BIDE_LIST_SHUT)
        bide_multi_producer_sequencer_wake_(sequencer, word);
}

/* ---- Joining: 11 and 12 ---- */

static bide_sequence multi_last_claimed(void *sequencer)
{
    bide_sequence end;
    bide_multi_producer_sequencer_look_at_end_(sequencer, &end); /* R of sequence_group.h */
    return (bide_sequence)(end - 1);
}

int bide_multi_producer_sequencer_join_(bide_multi_producer_sequencer *sequencer,
                                        bide_sequence_group_member *member,
                                        bide_sequence_barrier *barrier, bide_sequence *start)
{
    const bide_sequence eighth = (bide_sequence)((bide_sequence)-1 / 8 + 1);
    if (sequencer->gate->count == 0 || sequencer->size > eighth)
        return -EINVAL;
    *start = bide_sequence_group_join_from_(sequencer->gate, member, barrier, multi_last_claimed,
                                            sequencer);
    return 0;
}

/* ---- A claim that waits: 4 and 9 ---- */

static bide_next multi_claim_body_step_(bide_frame *frame, unsigned depth);

static void multi_give_turn(bide_multi_producer_claim *claim)
{
    claim->stage = CLAIM_OUT;
    bide_atomic_fetch_sub(&claim->sequencer->turn.lined, 1, relaxed);
    bide_mutex_unlock(&claim->turn);
}

/*
 * The coroutine is destroyed before it knows, or another case of its select was chosen: consumers skip
 * its abandoned slots. Or it has waited for room, as a case of a select: the next in line has it.
 */
static void multi_release_claim(bide_frame *frame)
{
    bide_multi_producer_claim *claim = bide_container_of(frame, bide_multi_producer_claim, frame);
    if (claim->chooses &&
        bide_done(frame)) { /* the wait, whether the claim was chosen or not: 13 */
        if (claim->stage == CLAIM_HAS_ROOM)
            multi_give_turn(claim);
        return;
    }
    bide_multi_producer_sequencer_abandon_(
        claim->sequencer, claim->first, claim->count,
        BIDE_MISUSE_("a claim is given back that was published already", "claim"));
}

static const bide_coroutine_type multi_claim_type = {.name = "task",
                                                     .release = multi_release_claim};
static const bide_coroutine_type *const multi_claim_body_type_ = &multi_claim_type;
const bide_coroutine_code bide_multi_producer_sequencer_claim_code_ = {
    multi_claim_body_step_, "bide_multi_producer_claim", __FILE__, &multi_claim_body_type_, NULL};

/* By the claim that has the turn. */
static bool multi_claim_has_come(bide_multi_producer_claim *claim)
{
    if (claim->chooses)
        return bide_multi_producer_sequencer_any_available(claim->sequencer);
    claim->count =
        bide_multi_producer_sequencer_take_(claim->sequencer, claim->max, &claim->first, true);
    return claim->count != 0;
}

/* A claim of no slots would wait for ever. */
static int multi_claim_refuse(const bide_multi_producer_claim *claim)
{
#if BIDE_DEBUG
    const bide_frame *frame = bide_continuation_(&claim->frame);
    bide_misused_by_("a claim is of no slots", frame != NULL ? frame : &claim->frame, NULL);
#endif
    (void)claim;
    return -EINVAL;
}

bide_body(multi_claim_body)
{
    bide_begin(multi_claim_body, bide_multi_producer_claim * self);
    if (self->max == 0)
        bide_return(multi_claim_refuse(self));
    self->stage = CLAIM_IN_LINE;
    bide_atomic_fetch_add(&self->sequencer->turn.lined, 1, relaxed);
    bide_try(bide_mutex_lock(&self->turn, &self->sequencer->turn.mutex));
    self->stage = CLAIM_FIRST;
    while (!multi_claim_has_come(self)) {
        int status;
        bool open;
        self->context = bide_this_context();
        if (bide_multi_producer_sequencer_is_closed(self->sequencer) ||
            !turn_begin(&self->sequencer->turn, bide_this_frame()))
            bide_return(-EPIPE);
        self->stage = CLAIM_AT_GATE;
        bide_await_status(status, bide_sequence_group_follow_(&self->wait, self->sequencer->gate,
                                                              &self->sequencer->next, /* 10 */
                                                              self->sequencer->size));
        self->stage = CLAIM_FIRST;
        open = turn_end(&self->sequencer->turn, bide_this_frame(), self->context);
        if (!open)
            bide_return(-EPIPE);
        if (status < 0)
            bide_return(status);
    }
    if (self->chooses)
        self->stage = CLAIM_HAS_ROOM;
    bide_finally();
    if (self->stage == CLAIM_AT_GATE) /* it is destroyed there */
        turn_end(&self->sequencer->turn, bide_this_frame(), self->context);
    if (self->stage == CLAIM_IN_LINE)
        bide_atomic_fetch_sub(&self->sequencer->turn.lined, 1, relaxed);
    else if (self->stage != CLAIM_OUT && self->stage != CLAIM_HAS_ROOM)
        multi_give_turn(self);
    bide_end();
}

/* ---- As a case of a select: 13 ---- */

int bide_multi_producer_sequencer_claim_attempt_(bide_awaiter *awaiter, bide_choice *choice)
{
    static const bide_point room = BIDE_POINT_START(&bide_multi_producer_sequencer_claim_code_);
    bide_multi_producer_claim *claim = (bide_multi_producer_claim *)(void *)awaiter;
    bide_multi_producer_sequencer *sequencer = claim->sequencer;
    bool has_turn = claim->stage == CLAIM_HAS_ROOM;
    /* The wait for room has ended because a consumer has closed its barrier. */
    bool ended = claim->chooses && claim->frame.error == -EPIPE;
    claim->count =
        bide_multi_producer_sequencer_take_(sequencer, claim->max, &claim->first, has_turn);
    if (has_turn)
        multi_give_turn(claim);
    claim->frame.error = 0;
    if (claim->count != 0)
        return 0;
    if (claim->max == 0)
        return -EINVAL;
    if (ended || bide_multi_producer_sequencer_is_closed(sequencer))
        return -EPIPE;
    claim->chooses = true;
    claim->frame.awaiter.ops = &room.ops;
    choice->wait = &claim->frame.awaiter;
    return -EAGAIN;
}

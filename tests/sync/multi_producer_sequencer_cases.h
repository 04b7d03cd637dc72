/* The cases of multi_producer_sequencer_test.c for one type of sequence; included there once for each. */

#define BARRIER_         PASTE2(bide_sequence_barrier, BIDE_SEQUENCE_BITS)
#define BARRIER_F_(name) PASTE3(bide_sequence_barrier, BIDE_SEQUENCE_BITS, name)
#define GROUP_           PASTE2(bide_sequence_group, BIDE_SEQUENCE_BITS)
#define MEMBER_          PASTE2(bide_sequence_group_member, BIDE_SEQUENCE_BITS)
#define GROUP_F_(name)   PASTE3(bide_sequence_group, BIDE_SEQUENCE_BITS, name)
#define GROUP_WAITER_    PASTE2(bide_sequence_group_waiter, BIDE_SEQUENCE_BITS)
#define SLOT_            PASTE2(bide_sequence_slot, BIDE_SEQUENCE_BITS)
#define SEQUENCER_       PASTE2(bide_multi_producer_sequencer, BIDE_SEQUENCE_BITS)
#define CLAIM_           PASTE2(bide_multi_producer_claim, BIDE_SEQUENCE_BITS)
#define WAITER_          PASTE2(bide_multi_producer_waiter, BIDE_SEQUENCE_BITS)
#define F_(name)         PASTE3(bide_multi_producer_sequencer, BIDE_SEQUENCE_BITS, name)
#define CASE_(name)      PASTE3(multi, BIDE_SEQUENCE_BITS, name)
#define QUARTER_         ((BIDE_SEQUENCE)((BIDE_SEQUENCE)-1 / 4 + 1))
#define S_(number)       ((BIDE_SEQUENCE)(number))

/* The largest ring that a test fills slot by slot. */
#define CASE_MOST_ ((BIDE_SEQUENCE)64)

/* A sequencer with one consumer at its gate. */
typedef struct CASE_(_fixture) {
    by_hand by_hand;
    BARRIER_ consumed;
    BARRIER_ *members[1];
    GROUP_ gate;
    SLOT_ slots[MAX_SLOTS];
    SEQUENCER_ sequencer;
} CASE_(_fixture);

static int CASE_(_init)(CASE_(_fixture) * f, BIDE_SEQUENCE initial, BIDE_SEQUENCE size)
{
    by_hand_init(&f->by_hand);
    BARRIER_F_(_init)(&f->consumed, initial);
    f->members[0] = &f->consumed;
    GROUP_F_(_init)(&f->gate, f->members, 1);
    return F_(_init)(&f->sequencer, f->slots, size, &f->gate, initial);
}

static void CASE_(_consume)(CASE_(_fixture) * f, BIDE_SEQUENCE sequence)
{
    BARRIER_F_(_publish)(&f->consumed, sequence);
    by_hand_run(&f->by_hand);
}

/* A coroutine that claims once, and one that waits once; each with a stop source of its own. */
typedef struct CASE_(_claim) {
    bide_task task;
    CASE_(_fixture) * fixture;
    char name;
    BIDE_SEQUENCE max; /* 0: by claim_one */
    int status;
    bide_stop_source stop;
    bide_context context;
    CLAIM_ claim;
} CASE_(_claim);

TESTING_COROUTINE(CASE_(_claim_body))
{
    bide_begin(CASE_(_claim_body), CASE_(_claim) * self);
    bide_await_status(self->status,
                      self->max != 0
                          ? F_(_claim_up_to)(&self->claim, &self->fixture->sequencer, self->max)
                          : F_(_claim_one)(&self->claim, &self->fixture->sequencer));
    by_hand_note(&self->fixture->by_hand, self->name);
    bide_end();
}

static void CASE_(_begin)(CASE_(_fixture) * f, bide_task *task, const bide_point *body,
                          bide_stop_source *stop, bide_context *context)
{
    bide_stop_source_init(stop);
    *context = f->by_hand.context;
    context->stop = stop;
    bide_start(&task->frame, body, context);
    bide_resume(&task->frame);
}

static void CASE_(_begin_claim)(CASE_(_claim) * claim, CASE_(_fixture) * f, char name,
                                BIDE_SEQUENCE max)
{
    claim->fixture = f;
    claim->name = name;
    claim->max = max;
    claim->status = 1;
    CASE_(_begin)(f, &claim->task, &CASE_(_claim_body), &claim->stop, &claim->context);
}

static void CASE_(_assert_claimed)(CASE_(_claim) * claim, BIDE_SEQUENCE first, BIDE_SEQUENCE count)
{
    assert_true(bide_done(&claim->task.frame));
    assert_int_equal(claim->status, 0);
    assert_true(claim->claim.first == first);
    assert_true(claim->claim.count == count);
}

static void CASE_(_assert_ended)(CASE_(_claim) * claim, int status)
{
    assert_true(bide_done(&claim->task.frame));
    assert_int_equal(claim->status, status);
    assert_true(claim->claim.count == 0);
}

typedef struct CASE_(_reader) {
    bide_task task;
    CASE_(_fixture) * fixture;
    char name;
    BIDE_SEQUENCE target;
    BIDE_SEQUENCE known;
    int status;
    bide_stop_source stop;
    bide_context context;
    WAITER_ wait;
} CASE_(_reader);

TESTING_COROUTINE(CASE_(_reader_body))
{
    bide_begin(CASE_(_reader_body), CASE_(_reader) * self);
    bide_await_status(self->status,
                      F_(_wait_until_published)(&self->wait, &self->fixture->sequencer,
                                                self->target, self->known));
    by_hand_note(&self->fixture->by_hand, self->name);
    bide_end();
}

static void CASE_(_begin_reader)(CASE_(_reader) * reader, CASE_(_fixture) * f, char name,
                                 BIDE_SEQUENCE target, BIDE_SEQUENCE known)
{
    reader->fixture = f;
    reader->name = name;
    reader->target = target;
    reader->known = known;
    reader->status = 1;
    CASE_(_begin)(f, &reader->task, &CASE_(_reader_body), &reader->stop, &reader->context);
}

static void CASE_(_assert_read)(CASE_(_reader) * reader, int status, BIDE_SEQUENCE published)
{
    assert_true(bide_done(&reader->task.frame));
    assert_int_equal(reader->status, status);
    assert_true(reader->wait.published == published);
}

static BIDE_SEQUENCE CASE_(_try)(CASE_(_fixture) * f, BIDE_SEQUENCE max)
{
    BIDE_SEQUENCE first = 0;
    return F_(_try_claim)(&f->sequencer, max, &first);
}

/* ---- Claiming ---- */

static void CASE_(_a_size_that_is_no_power_of_two_or_too_large_is_refused)(void **state)
{
    (void)state;
    CASE_(_fixture) f;
    const BIDE_SEQUENCE refused[] = {0, 3, 6, 12, QUARTER_ - 1, QUARTER_ + 1, QUARTER_ * 2, S_(-1)};
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
        assert_int_equal(CASE_(_init)(&f, S_(-1), refused[i]), -EINVAL);
    for (BIDE_SEQUENCE size = 1; size <= CASE_MOST_; size = S_(size * 2))
        assert_int_equal(CASE_(_init)(&f, S_(-1), size), 0);
}

static void CASE_(_the_whole_ring_can_be_claimed_before_any_consumer_has_moved)(void **state)
{
    (void)state;
    const BIDE_SEQUENCE initials[] = {S_(-1),          0, 100, QUARTER_, S_(QUARTER_ * 2 - 1),
                                      S_(QUARTER_ * 2)};
    for (size_t i = 0; i < 6; i++) {
        for (BIDE_SEQUENCE size = 1; size <= CASE_MOST_; size = S_(size * 2)) {
            CASE_(_fixture) f;
            CASE_(_claim) claim;
            BIDE_SEQUENCE first = S_(initials[i] + 1);
            assert_int_equal(CASE_(_init)(&f, initials[i], size), 0);
            for (BIDE_SEQUENCE k = 0; k < size; k++) {
                CASE_(_begin_claim)(&claim, &f, 'a', 0);
                CASE_(_assert_claimed)(&claim, S_(first + k), 1);
                by_hand_assert_trace(&f.by_hand, "a");
            }
            assert_true(CASE_(_try)(&f, 1) == 0);
            CASE_(_begin_claim)(&claim, &f, 'a', 0);
            assert_false(bide_done(&claim.task.frame));
            assert_int_equal(f.by_hand.posted, 0);
            CASE_(_consume)(&f, first);
            CASE_(_assert_claimed)(&claim, S_(first + size), 1);
        }
    }
}

static void CASE_(_a_claim_of_many_gets_what_is_free_and_at_least_one)(void **state)
{
    (void)state;
    CASE_(_fixture) f;
    CASE_(_claim) claim;
    CASE_(_init)(&f, S_(-3), 8);
    CASE_(_begin_claim)(&claim, &f, 'a', 5);
    CASE_(_assert_claimed)(&claim, S_(-2), 5); /* at most the requested number */
    CASE_(_begin_claim)(&claim, &f, 'a', 5);
    CASE_(_assert_claimed)(&claim, 3, 3); /* no more than free */
    CASE_(_begin_claim)(&claim, &f, 'a', 5);
    assert_false(bide_done(&claim.task.frame)); /* none */
    F_(_publish_range)(&f.sequencer, S_(-2), 8);
    CASE_(_consume)(&f, S_(-2));
    CASE_(_assert_claimed)(&claim, 6, 1); /* the first that becomes free */
    CASE_(_begin_claim)(&claim, &f, 'a', 5);
    CASE_(_consume)(&f, 1);
    CASE_(_assert_claimed)(&claim, 7, 3);
    CASE_(_consume)(&f, 5);
    CASE_(_begin_claim)(&claim, &f, 'a', 3);
    CASE_(_assert_claimed)(&claim, 10, 3);
    CASE_(_begin_claim)(&claim, &f, 'a', S_(-1)); /* slots freed since the last call count */
    CASE_(_assert_claimed)(&claim, 13, 1);
}

/* At every fill level, and every start of the ring; including a ring with one free slot. */
static void CASE_(_any_available_is_right_at_every_fill_level)(void **state)
{
    (void)state;
    for (BIDE_SEQUENCE size = 1; size <= CASE_MOST_; size = S_(size * 2)) {
        for (unsigned start = 0; start < 260; start += 1 + start % 5) {
            CASE_(_fixture) f;
            BIDE_SEQUENCE initial = S_(start - 130u);
            BIDE_SEQUENCE first = 0;
            CASE_(_init)(&f, initial, size);
            for (BIDE_SEQUENCE used = 0; used < size; used++) {
                assert_true(F_(_any_available)(&f.sequencer));
                assert_true(F_(_try_claim)(&f.sequencer, 1, &first) == 1);
                assert_true(first == S_(initial + 1 + used));
            }
            assert_false(F_(_any_available)(&f.sequencer));
            assert_true(CASE_(_try)(&f, 1) == 0);
            F_(_publish_range)(&f.sequencer, S_(initial + 1), size);
            for (BIDE_SEQUENCE done = 1; done <= size; done++) { /* one slot is free, always */
                CASE_(_consume)(&f, S_(initial + done));
                assert_true(F_(_any_available)(&f.sequencer));
                assert_true(F_(_try_claim)(&f.sequencer, size, &first) == 1);
                assert_false(F_(_any_available)(&f.sequencer));
            }
            F_(_publish_range)(&f.sequencer, S_(initial + 1 + size), size);
            CASE_(_consume)(&f, S_(initial + 2 * size));
            F_(_close)(&f.sequencer);
            assert_false(F_(_any_available)(&f.sequencer));
        }
    }
}

static void CASE_(_waiting_claims_are_served_in_order_and_one_is_woken_for_one_slot)(void **state)
{
    (void)state;
    CASE_(_fixture) f;
    CASE_(_claim) claims[4], late;
    CASE_(_init)(&f, S_(-1), 2);
    assert_true(CASE_(_try)(&f, 2) == 2);
    F_(_publish_range)(&f.sequencer, 0, 2);
    for (int i = 0; i < 4; i++)
        CASE_(_begin_claim)(&claims[i], &f, (char)('a' + i), 0);
    assert_int_equal(f.by_hand.posted, 0);
    BARRIER_F_(_publish)(&f.consumed, 0);
    assert_int_equal(f.by_hand.posted, 1);
    /* A slot is free, but others wait for it. */
    assert_true(F_(_any_available)(&f.sequencer));
    assert_true(CASE_(_try)(&f, 1) == 0);
    CASE_(_begin_claim)(&late, &f, 'z', 0);
    assert_false(bide_done(&late.task.frame));
    by_hand_run(&f.by_hand);
    by_hand_assert_trace(&f.by_hand, "a");
    CASE_(_assert_claimed)(&claims[0], 2, 1);
    F_(_publish)(&f.sequencer, 2);
    CASE_(_consume)(&f, 2); /* two at once: each gets its own */
    by_hand_assert_trace(&f.by_hand, "bc");
    CASE_(_assert_claimed)(&claims[1], 3, 1);
    CASE_(_assert_claimed)(&claims[2], 4, 1);
    F_(_publish_range)(&f.sequencer, 3, 2);
    CASE_(_consume)(&f, 4);
    by_hand_assert_trace(&f.by_hand, "dz");
    CASE_(_assert_claimed)(&claims[3], 5, 1);
    CASE_(_assert_claimed)(&late, 6, 1);
    F_(_publish_range)(&f.sequencer, 5, 2);
    CASE_(_consume)(&f, 6);
    assert_true(CASE_(_try)(&f, 2) == 2); /* nobody waits any more */
}

/* A waiting claim has its slot reserved; further free slots go at once to claims that have not waited. */
static void CASE_(_a_claim_goes_past_a_line_only_if_slots_are_left_for_all_in_it)(void **state)
{
    (void)state;
    CASE_(_fixture) f;
    CASE_(_claim) claims[2], late;
    BIDE_SEQUENCE first = 0;
    CASE_(_init)(&f, S_(-3), 8);
    assert_true(CASE_(_try)(&f, 8) == 8); /* -2 to 5 */
    F_(_publish_range)(&f.sequencer, S_(-2), 8);
    for (int i = 0; i < 2; i++)
        CASE_(_begin_claim)(&claims[i], &f, (char)('a' + i), 0);
    BARRIER_F_(_publish)(&f.consumed, S_(-1)); /* two: for the two that wait */
    assert_true(CASE_(_try)(&f, 1) == 0);
    BARRIER_F_(_publish)(&f.consumed, 3); /* six */
    assert_int_equal(f.by_hand.posted, 1);
    CASE_(_begin_claim)(&late, &f, 'z', 0);
    CASE_(_assert_claimed)(&late, 6, 1);
    assert_true(F_(_try_claim)(&f.sequencer, S_(-1), &first) == 3);
    assert_true(first == 7);
    assert_true(CASE_(_try)(&f, 1) == 0);
    by_hand_run(&f.by_hand);
    by_hand_assert_trace(&f.by_hand, "zab");
    CASE_(_assert_claimed)(&claims[0], 10, 1);
    CASE_(_assert_claimed)(&claims[1], 11, 1);
    F_(_publish_range)(&f.sequencer, 6, 6);
    CASE_(_consume)(&f, 4); /* nobody waits any more */
    assert_true(CASE_(_try)(&f, 1) == 1);
}

/* Cancels the claim at the gate, or those behind it. Nothing stays claimed, and the others continue. */
static void CASE_(_a_claim_that_is_cut_short_leaves_nothing_claimed)(void **state)
{
    (void)state;
    for (int which = 0; which < 3; which++) {
        for (int how = 0; how < 3; how++) {
            CASE_(_fixture) f;
            CASE_(_claim) claims[3];
            CASE_(_init)(&f, S_(-1), 1);
            assert_true(CASE_(_try)(&f, 1) == 1);
            for (int i = 0; i < 3; i++)
                CASE_(_begin_claim)(&claims[i], &f, (char)('a' + i), 0);
            if (how == 0)
                bide_stop_request(&claims[which].stop);
            else if (how == 1)
                bide_stop_request_with(&claims[which].stop, -ETIMEDOUT);
            else
                bide_destroy(&claims[which].task.frame);
            by_hand_run(&f.by_hand);
            if (how < 2)
                CASE_(_assert_ended)(&claims[which], how == 0 ? -ECANCELED : -ETIMEDOUT);
            f.by_hand.trace[0] = '\0';
            BIDE_SEQUENCE next = 0;
            for (int i = 0; i < 3; i++) {
                if (i == which)
                    continue;
                assert_false(bide_done(&claims[i].task.frame));
                F_(_publish)(&f.sequencer, next);
                CASE_(_consume)(&f, next++);
                CASE_(_assert_claimed)(&claims[i], next, 1);
            }
            F_(_publish)(&f.sequencer, next);
            CASE_(_consume)(&f, next);
            assert_true(F_(_try_claim)(&f.sequencer, 1, &next) == 1);
            assert_true(next == 3);
        }
    }
}

/* The slot is freed and the claim is cancelled before it runs again: it has the slot, or leaves it. */
static void CASE_(_a_claim_that_is_cut_short_while_its_slot_is_freed_loses_no_slot)(void **state)
{
    (void)state;
    for (int order = 0; order < 2; order++) {
        CASE_(_fixture) f;
        CASE_(_claim) claim;
        CASE_(_init)(&f, S_(-1), 1);
        assert_true(CASE_(_try)(&f, 1) == 1);
        F_(_publish)(&f.sequencer, 0);
        CASE_(_begin_claim)(&claim, &f, 'a', 0);
        if (order == 0)
            bide_stop_request(&claim.stop);
        BARRIER_F_(_publish)(&f.consumed, 0);
        if (order == 1)
            bide_stop_request(&claim.stop);
        by_hand_run(&f.by_hand);
        if (order == 1) {
            CASE_(_assert_claimed)(&claim, 1, 1); /* it was ready */
        } else {
            CASE_(_assert_ended)(&claim, -ECANCELED);
            BIDE_SEQUENCE first = 0;
            assert_true(F_(_try_claim)(&f.sequencer, 1, &first) == 1);
            assert_true(first == 1);
        }
    }
}

static void CASE_(_a_gate_that_closes_ends_all_claims_that_wait)(void **state)
{
    (void)state;
    CASE_(_fixture) f;
    CASE_(_claim) claims[3];
    CASE_(_init)(&f, S_(-1), 2);
    assert_true(CASE_(_try)(&f, 2) == 2);
    for (int i = 0; i < 3; i++)
        CASE_(_begin_claim)(&claims[i], &f, (char)('a' + i), 0);
    BARRIER_F_(_publish)(&f.consumed, 0);
    BARRIER_F_(_close)(&f.consumed);
    by_hand_run(&f.by_hand);
    by_hand_assert_trace(&f.by_hand, "abc");
    CASE_(_assert_claimed)(&claims[0], 2, 1); /* slots released before may still be claimed */
    CASE_(_assert_ended)(&claims[1], -EPIPE);
    CASE_(_assert_ended)(&claims[2], -EPIPE);
}

static void CASE_(_the_slowest_consumer_at_the_gate_holds_the_producers)(void **state)
{
    (void)state;
    CASE_(_fixture) f;
    CASE_(_claim) claim;
    BARRIER_ other;
    CASE_(_init)(&f, S_(-2), 4);
    BARRIER_F_(_init)(&other, S_(-2));
    BARRIER_ *members[2] = {&f.consumed, &other};
    GROUP_F_(_init)(&f.gate, members, 2);
    assert_true(CASE_(_try)(&f, 4) == 4);
    F_(_publish_range)(&f.sequencer, S_(-1), 4);
    CASE_(_begin_claim)(&claim, &f, 'a', 4);
    CASE_(_consume)(&f, 2);
    assert_false(bide_done(&claim.task.frame));
    BARRIER_F_(_publish)(&other, 0);
    by_hand_run(&f.by_hand);
    CASE_(_assert_claimed)(&claim, 3, 2);
}

/* ---- Publishing ---- */

static void CASE_(_what_is_published_in_any_order_is_seen_in_order)(void **state)
{
    (void)state;
    uint64_t random = 7;
    BIDE_SEQUENCE size = 8;
    CASE_(_fixture) f;
    BIDE_SEQUENCE known = S_(-20);
    CASE_(_init)(&f, known, size);
    for (int lap = 0; lap < 200; lap++) {
        BIDE_SEQUENCE first = 0;
        bool published[8] = {false};
        assert_true(F_(_try_claim)(&f.sequencer, size, &first) == size);
        for (unsigned left = 8; left != 0; left--) {
            unsigned which = (unsigned)(testing_random(&random) % 8);
            while (published[which])
                which = (which + 1) % 8;
            F_(_publish)(&f.sequencer, S_(first + which));
            published[which] = true;
            BIDE_SEQUENCE last = known;
            for (unsigned i = 0; i < 8 && published[i]; i++)
                last++;
            assert_true(F_(_last_published_after)(&f.sequencer, known) == last);
            for (unsigned i = 0; i < 8; i++)
                assert_int_equal(F_(_is_published)(&f.sequencer, S_(first + i)), published[i]);
        }
        known = S_(known + size);
        CASE_(_consume)(&f, known);
    }
}

static void CASE_(_a_wait_ends_with_all_that_is_published_then)(void **state)
{
    (void)state;
    CASE_(_fixture) f;
    CASE_(_reader) reader;
    CASE_(_init)(&f, S_(-3), 8);
    assert_true(CASE_(_try)(&f, 8) == 8);
    F_(_publish_range)(&f.sequencer, S_(-1), 3); /* -1, 0, 1 */
    F_(_publish)(&f.sequencer, 3);
    CASE_(_begin_reader)(&reader, &f, 'r', S_(-2), S_(-3));
    assert_false(bide_done(&reader.task.frame));
    F_(_publish)(&f.sequencer, S_(-2));
    by_hand_run(&f.by_hand);
    CASE_(_assert_read)(&reader, 0, 1);
    /* Ready at once: a target that is known, or published. */
    CASE_(_begin_reader)(&reader, &f, 'r', S_(-2), 1);
    CASE_(_assert_read)(&reader, 0, 1);
    CASE_(_begin_reader)(&reader, &f, 'r', 1, S_(-3));
    CASE_(_assert_read)(&reader, 0, 1);
    CASE_(_begin_reader)(&reader, &f, 'r', 2, 1);
    assert_false(bide_done(&reader.task.frame));
    F_(_publish)(&f.sequencer, 2);
    by_hand_run(&f.by_hand);
    CASE_(_assert_read)(&reader, 0, 3);
}

/* The published numbers come from the top down, so all waiters check each of them, and are put back again and
 * again. */
static void CASE_(_no_wait_ends_early_when_a_batch_is_put_back)(void **state)
{
    (void)state;
    CASE_(_fixture) f;
    CASE_(_reader) readers[8];
    CASE_(_init)(&f, S_(-5), 8);
    assert_true(CASE_(_try)(&f, 8) == 8);
    for (int i = 0; i < 8; i++)
        CASE_(_begin_reader)(&readers[i], &f, (char)('a' + i), S_(-4 + i), S_(-5));
    for (int i = 7; i > 0; i--) {
        F_(_publish)(&f.sequencer, S_(-4 + i));
        assert_int_equal(f.by_hand.posted, 0);
    }
    F_(_publish)(&f.sequencer, S_(-4));
    by_hand_run(&f.by_hand);
    by_hand_assert_trace(&f.by_hand, "abcdefgh");
    for (int i = 0; i < 8; i++)
        CASE_(_assert_read)(&readers[i], 0, 3);

    /* From the bottom up each ends by its own number, the others stay. */
    CASE_(_consume)(&f, 3);
    assert_true(CASE_(_try)(&f, 8) == 8);
    for (int i = 7; i >= 0; i--)
        CASE_(_begin_reader)(&readers[i], &f, (char)('a' + i), S_(4 + i), 3);
    for (int i = 0; i < 8; i++) {
        F_(_publish)(&f.sequencer, S_(4 + i));
        by_hand_run(&f.by_hand);
        by_hand_assert_trace(&f.by_hand, ((const char[]){(char)('a' + i), '\0'}));
        CASE_(_assert_read)(&readers[i], 0, S_(4 + i));
    }
}

static void CASE_(_a_cancelled_wait_ends_and_the_others_stay)(void **state)
{
    (void)state;
    for (int which = 0; which < 3; which++) {
        CASE_(_fixture) f;
        CASE_(_reader) readers[3];
        CASE_(_init)(&f, 0, 4);
        assert_true(CASE_(_try)(&f, 3) == 3);
        F_(_publish)(&f.sequencer, 1);
        for (int i = 0; i < 3; i++)
            CASE_(_begin_reader)(&readers[i], &f, (char)('a' + i), 3, 0);
        bide_stop_request_with(&readers[which].stop, -ETIMEDOUT);
        by_hand_run(&f.by_hand);
        CASE_(_assert_read)(&readers[which], -ETIMEDOUT, 1);
        bide_destroy(&readers[(which + 1) % 3].task.frame);
        F_(_publish_range)(&f.sequencer, 2, 2);
        assert_int_equal(by_hand_run(&f.by_hand), 1);
        CASE_(_assert_read)(&readers[(which + 2) % 3], 0, 3);
    }
}

static void CASE_(_abandoned_slots_are_gone_past)(void **state)
{
    (void)state;
    uint64_t random = 3;
    for (BIDE_SEQUENCE size = 1; size != 0; size = size < 64 ? S_(size * 8) : 0) {
        CASE_(_fixture) f;
        BIDE_SEQUENCE known = S_(-1000);
        CASE_(_init)(&f, known, size);
        for (int lap = 0; lap < 300; lap++) {
            uint64_t abandoned = testing_random(&random);
            BIDE_SEQUENCE first = 0;
            CASE_(_reader) reader;
            assert_true(F_(_try_claim)(&f.sequencer, size, &first) == size);
            CASE_(_begin_reader)(&reader, &f, 'r', S_(known + size), known);
            for (BIDE_SEQUENCE i = 0; i < size; i++) {
                assert_false(bide_done(&reader.task.frame));
                if ((abandoned >> i & 1) != 0)
                    F_(_abandon)(&f.sequencer, S_(first + i), 1);
                else
                    F_(_publish)(&f.sequencer, S_(first + i));
                by_hand_run(&f.by_hand);
            }
            CASE_(_assert_read)(&reader, 0, S_(known + size));
            by_hand_assert_trace(&f.by_hand, "r");
            for (BIDE_SEQUENCE i = 0; i < size; i++)
                assert_int_equal(F_(_is_abandoned)(&f.sequencer, S_(first + i)),
                                 abandoned >> i & 1);
            known = S_(known + size);
            CASE_(_consume)(&f, known);
        }
    }
}

/* ---- Joining ---- */

/* Wherever the ring starts, and however many of those before the start are not published yet, or never will be. */
static void CASE_(_who_joins_gets_what_is_claimed_later_and_nothing_before)(void **state)
{
    (void)state;
    const BIDE_SEQUENCE sizes[] = {1, 2, 8, 32}; /* an eighth, of 8 bits */
    for (int i = 0; i < 4; i++) {
        for (unsigned initial = 0; initial < 260; initial += 1 + initial % 7) {
            const BIDE_SEQUENCE size = sizes[i];
            CASE_(_fixture) f;
            CASE_(_reader) reader;
            MEMBER_ member;
            BARRIER_ barrier;
            BIDE_SEQUENCE last = S_(initial - 130u), start, first = 0;
            CASE_(_init)(&f, last, size);
            for (int lap = 0; lap < 3;
                 lap++) { /* the words keep numbers of laps before until they are overwritten */
                assert_true(CASE_(_try)(&f, size) == size);
                if (lap == 1)
                    F_(_abandon)(&f.sequencer, S_(last + 1), size);
                else
                    F_(_publish_range)(&f.sequencer, S_(last + 1), size);
                last = S_(last + size);
                CASE_(_consume)(&f, last);
                /* All of the next lap is claimed, nothing published. */
                assert_true(CASE_(_try)(&f, size) == size);
                assert_int_equal(F_(_join)(&f.sequencer, &member, &barrier, &start), 0);
                assert_true(start == S_(last + size));
                assert_true(F_(_last_published_after)(&f.sequencer, start) == start);
                CASE_(_begin_reader)(&reader, &f, 'r', S_(start + 1), start);
                assert_false(bide_done(&reader.task.frame));
                F_(_publish_range)(&f.sequencer, S_(last + 1), size);
                last = start;
                CASE_(_consume)(&f, last);
                assert_false(bide_done(&reader.task.frame));
                /* It gets the later claims, and holds the producers back. */
                assert_true(F_(_try_claim)(&f.sequencer, size, &first) == size);
                assert_true(first == S_(start + 1));
                F_(_publish_range)(&f.sequencer, first, size);
                by_hand_run(&f.by_hand);
                CASE_(_assert_read)(&reader, 0, S_(start + size));
                last = S_(start + size);
                CASE_(_consume)(&f, last);
                assert_true(CASE_(_try)(&f, 1) == 0);
                BARRIER_F_(_publish)(&barrier, S_(start + 1));
                assert_true(F_(_any_available)(&f.sequencer));
                assert_true(GROUP_F_(_try_leave)(&f.gate, &member));
            }
        }
    }
}

static void CASE_(_who_joins_what_is_closed_finds_that_nothing_comes)(void **state)
{
    (void)state;
    CASE_(_fixture) f;
    CASE_(_reader) reader;
    MEMBER_ member;
    BARRIER_ barrier;
    BIDE_SEQUENCE start;
    CASE_(_init)(&f, S_(-2), 4);
    assert_true(CASE_(_try)(&f, 3) == 3);
    F_(_close)(&f.sequencer);
    assert_int_equal(F_(_join)(&f.sequencer, &member, &barrier, &start), 0);
    assert_true(start == 1);
    CASE_(_begin_reader)(&reader, &f, 'r', 2, start);
    by_hand_run(&f.by_hand);
    CASE_(_assert_read)(&reader, -EPIPE, 1);
    assert_true(GROUP_F_(_try_leave)(&f.gate, &member));
}

static void CASE_(_nobody_joins_where_numbers_or_members_do_not_suffice)(void **state)
{
    (void)state;
    CASE_(_fixture) f;
    MEMBER_ member;
    BARRIER_ barrier;
    BIDE_SEQUENCE start;
    if (sizeof(BIDE_SEQUENCE) == 1) {
        CASE_(_init)(&f, S_(-2), QUARTER_);
        assert_int_equal(F_(_join)(&f.sequencer, &member, &barrier, &start), -EINVAL);
    }
    CASE_(_init)(&f, S_(-2), 4);
    GROUP_F_(_init)(&f.gate, NULL, 0);
    assert_int_equal(F_(_join)(&f.sequencer, &member, &barrier, &start), -EINVAL);
    assert_null(bide_atomic_load(&f.gate.first, relaxed));
}

/* ---- The end ---- */

static void CASE_(_after_close_what_is_claimed_is_still_published_and_read)(void **state)
{
    (void)state;
    CASE_(_fixture) f;
    CASE_(_reader) early, next, late;
    CASE_(_claim) claim;
    CASE_(_init)(&f, S_(-3), 8);
    assert_true(CASE_(_try)(&f, 4) == 4); /* -2 to 1 */
    F_(_publish)(&f.sequencer, S_(-2));
    CASE_(_begin_reader)(&early, &f, 'e', S_(-1), S_(-3));
    CASE_(_begin_reader)(&next, &f, 'n', 2, S_(-3)); /* was never claimed */
    F_(_close)(&f.sequencer);
    F_(_close)(&f.sequencer);
    assert_true(F_(_is_closed)(&f.sequencer));
    assert_int_equal(f.by_hand.posted, 0); /* both wait for claimed numbers */
    assert_true(CASE_(_try)(&f, 1) == 0);
    CASE_(_begin_claim)(&claim, &f, 'c', 0);
    by_hand_run(&f.by_hand);
    CASE_(_assert_ended)(&claim, -EPIPE);
    by_hand_assert_trace(&f.by_hand, "c");
    F_(_publish_range)(&f.sequencer, 0, 2);
    assert_int_equal(f.by_hand.posted, 0);
    CASE_(_begin_reader)(&late, &f, 'l', 1, S_(-3));
    F_(_publish)(&f.sequencer, S_(-1));
    by_hand_run(&f.by_hand);
    by_hand_assert_trace(&f.by_hand, "enl");
    CASE_(_assert_read)(&early, 0, 1);
    CASE_(_assert_read)(&next, -EPIPE, 1);
    CASE_(_assert_read)(&late, 0, 1);
    CASE_(_begin_reader)(&late, &f, 'l', S_(-2), S_(-3)); /* and again */
    CASE_(_assert_read)(&late, 0, 1);
    CASE_(_begin_reader)(&late, &f, 'l', 2, 1);
    CASE_(_assert_read)(&late, -EPIPE, 1);
}

static void CASE_(_close_ends_claims_and_waits_that_wait_for_nothing)(void **state)
{
    (void)state;
    CASE_(_fixture) f;
    CASE_(_claim) claims[3];
    CASE_(_reader) reader;
    CASE_(_init)(&f, S_(-1), 2);
    assert_true(CASE_(_try)(&f, 2) == 2);
    F_(_publish_range)(&f.sequencer, 0, 2);
    for (int i = 0; i < 3; i++)
        CASE_(_begin_claim)(&claims[i], &f, (char)('a' + i), 0);
    CASE_(_begin_reader)(&reader, &f, 'r', 2, 1);
    F_(_close)(&f.sequencer);
    by_hand_run(&f.by_hand);
    for (int i = 0; i < 3; i++)
        CASE_(_assert_ended)(&claims[i], -EPIPE);
    CASE_(_assert_read)(&reader, -EPIPE, 1);
    assert_int_equal(strlen(f.by_hand.trace), 4);
    /* Their sources are free, and have no stop request. */
    assert_false(bide_stop_requested(&claims[0].stop));
    F_(_destroy)(&f.sequencer);
}

static void CASE_(_drain_waits_for_the_consumers)(void **state)
{
    (void)state;
    CASE_(_fixture) f;
    GROUP_WAITER_ wait;
    CASE_(_init)(&f, S_(-3), 8);
    assert_int_equal(bide_sync_wait(F_(_drain)(&wait, &f.sequencer)), 0); /* nothing was claimed */
    assert_true(CASE_(_try)(&f, 4) == 4);
    F_(_publish_range)(&f.sequencer, S_(-2), 4);
    F_(_close)(&f.sequencer);
    assert_int_equal(F_(_drain_blocking)(&wait, &f.sequencer, 0), -ETIMEDOUT);
    BARRIER_F_(_publish)(&f.consumed, 0);
    assert_int_equal(F_(_drain_blocking)(&wait, &f.sequencer, 0), -ETIMEDOUT);
    BARRIER_F_(_publish)(&f.consumed, 1);
    assert_int_equal(F_(_drain_blocking)(&wait, &f.sequencer, BIDE_FOREVER), 0);
}

static void CASE_(_a_blocking_claim_or_wait_ends_with_its_deadline)(void **state)
{
    (void)state;
    CASE_(_fixture) f;
    CLAIM_ claim;
    WAITER_ wait;
    CASE_(_init)(&f, S_(-1), 1);
    for (BIDE_SEQUENCE i = 0; i < 10; i++) {
        assert_int_equal(F_(_claim_one_blocking)(&claim, &f.sequencer, 0), 0); /* there is one */
        assert_true(claim.first == i && claim.count == 1);
        assert_int_equal(F_(_claim_one_blocking)(&claim, &f.sequencer, 0), -ETIMEDOUT);
        assert_true(claim.count == 0);
        assert_int_equal(F_(_wait_until_published_blocking)(&wait, &f.sequencer, i, S_(i - 1), 0),
                         -ETIMEDOUT);
        F_(_publish)(&f.sequencer, i);
        assert_int_equal(F_(_wait_until_published_blocking)(&wait, &f.sequencer, i, S_(i - 1), 0),
                         0);
        BARRIER_F_(_publish)(&f.consumed, i);
    }
}

/* ---- Threads ----
 *
 * Producers claim some slots each, fill and publish them one by one or at once, in any order, and abandon some.
 * One consumer reads: it gets the numbers of each producer in order, each once. */

typedef struct CASE_(_slot) {
    uint32_t producer;
    uint32_t number;
    uint32_t inverse; /* of number, to detect a slot that is half written */
} CASE_(_slot);

typedef struct CASE_(_pipe) {
    CASE_(_fixture) f;
    CASE_(_slot) contents[MAX_SLOTS];
    BIDE_SEQUENCE size;
    uint32_t count;     /* of each producer */
    uint32_t abandons;  /* of 64 claims so many are abandoned as a whole */
    bool impatient;     /* claims have deadlines that have passed, or will soon */
    uint64_t closes_at; /* close when this many were read; 0: at the end */
    struct CASE_(_producer) {
        struct CASE_(_pipe) * pipe;
        uint32_t index;
        uint64_t random;
        uint32_t sent;
        uint32_t failures; /* claims that ended with -ETIMEDOUT */
        int status;        /* what it ended with */
        uint32_t received; /* of the consumer */
    } producers[PRODUCERS];
    BIDE_SEQUENCE known;
    uint64_t passed;
    uint32_t wrong;
} CASE_(_pipe);

/* Fills and publishes the claimed slots, in a random order; abandons the rest when all was sent. */
static void CASE_(_send)(struct CASE_(_producer) * self, const CLAIM_ *claim)
{
    CASE_(_pipe) *pipe = self->pipe;
    SEQUENCER_ *sequencer = &pipe->f.sequencer;
    BIDE_SEQUENCE mask = S_(pipe->size - 1);
    BIDE_SEQUENCE filled = 0;
    for (; filled < claim->count && self->sent < pipe->count; filled++) {
        pipe->contents[S_(claim->first + filled) & mask] =
            (CASE_(_slot)){self->index, self->sent, ~self->sent};
        self->sent++;
    }
    switch (testing_random(&self->random) % 3) {
    case 0:
        for (BIDE_SEQUENCE i = 0; i < filled; i++)
            F_(_publish)(sequencer, S_(claim->first + i));
        break;
    case 1:
        for (BIDE_SEQUENCE i = filled; i != 0; i--)
            F_(_publish)(sequencer, S_(claim->first + i - 1));
        break;
    default:
        if (filled != 0)
            F_(_publish_range)(sequencer, claim->first, filled);
    }
    if (filled < claim->count)
        F_(_abandon)(sequencer, S_(claim->first + filled), S_(claim->count - filled));
}

static void *CASE_(_produce)(void *argument)
{
    struct CASE_(_producer) *self = argument;
    CASE_(_pipe) *pipe = self->pipe;
    while (self->sent < pipe->count) {
        CLAIM_ claim;
        uint64_t max = 1 + testing_random(&self->random) % pipe->size;
        uint64_t deadline = BIDE_FOREVER;
        if (pipe->impatient && testing_random(&self->random) % 2 == 0)
            deadline = bide_platform.now() + testing_random(&self->random) % 20000;
        self->status = F_(_claim_up_to_blocking)(&claim, &pipe->f.sequencer, S_(max), deadline);
        if (self->status == -ETIMEDOUT) {
            self->failures++;
            continue;
        }
        if (self->status != 0)
            break;
        if (testing_random(&self->random) % 64 < pipe->abandons)
            F_(_abandon)(&pipe->f.sequencer, claim.first, claim.count);
        else
            CASE_(_send)(self, &claim);
    }
    return NULL;
}

/* Reads the published slots after `known`; releases the slots, in one step or two. */
static void CASE_(_receive)(CASE_(_pipe) * pipe, BIDE_SEQUENCE published, uint64_t *random)
{
    BIDE_SEQUENCE many = S_(published - pipe->known);
    pipe->wrong += many < 1 || many > pipe->size;
    BIDE_SEQUENCE step = S_(testing_random(random) % many);
    for (BIDE_SEQUENCE i = 0; i < many; i++) {
        BIDE_SEQUENCE next = S_(pipe->known + 1);
        if (!F_(_is_abandoned)(&pipe->f.sequencer, next)) {
            const CASE_(_slot) *slot = &pipe->contents[next & S_(pipe->size - 1)];
            if (slot->producer >= PRODUCERS ||
                slot->number != pipe->producers[slot->producer].received ||
                slot->inverse != ~slot->number)
                pipe->wrong++;
            else
                pipe->producers[slot->producer].received++;
        }
        pipe->passed++;
        pipe->known = next;
        if (i == step && i + 1 != many)
            BARRIER_F_(_publish)(&pipe->f.consumed, next);
    }
    BARRIER_F_(_publish)(&pipe->f.consumed, pipe->known);
}

/* Runs the producers as threads, and the consumer here, until everything is received. */
static void CASE_(_run_pipe)(CASE_(_pipe) * pipe, BIDE_SEQUENCE size, uint32_t count, uint64_t seed)
{
    pthread_t threads[PRODUCERS];
    pipe->size = size;
    pipe->count = count;
    pipe->known = S_(-1000);
    pipe->passed = pipe->wrong = 0;
    assert_int_equal(CASE_(_init)(&pipe->f, pipe->known, size), 0);
    for (uint32_t i = 0; i < PRODUCERS; i++) {
        pipe->producers[i] =
            (struct CASE_(_producer)){.pipe = pipe, .index = i, .random = seed + i};
        start_thread(&threads[i], CASE_(_produce), &pipe->producers[i]);
    }
    uint64_t random = seed + PRODUCERS;
    int status;
    for (;;) {
        WAITER_ wait;
        bool all = true;
        for (uint32_t i = 0; i < PRODUCERS; i++)
            all = all && pipe->producers[i].received == count;
        if (all || (pipe->closes_at != 0 && pipe->passed >= pipe->closes_at))
            F_(_close)(&pipe->f.sequencer);
        status = F_(_wait_until_published_blocking)(&wait, &pipe->f.sequencer, S_(pipe->known + 1),
                                                    pipe->known, BIDE_FOREVER);
        if (status != 0)
            break;
        CASE_(_receive)(pipe, wait.published, &random);
    }
    for (uint32_t i = 0; i < PRODUCERS; i++)
        join_thread(threads[i]);
    assert_int_equal(status, -EPIPE);
    assert_int_equal(pipe->wrong, 0);
    /* Everything sent was received, whenever the close came. */
    for (uint32_t i = 0; i < PRODUCERS; i++) {
        struct CASE_(_producer) *producer = &pipe->producers[i];
        assert_int_equal(producer->sent, producer->received);
        if (pipe->closes_at == 0)
            assert_int_equal(producer->sent, count);
        else if (producer->sent != count)
            assert_int_equal(producer->status, -EPIPE);
    }
    GROUP_WAITER_ wait;
    assert_int_equal(F_(_drain_blocking)(&wait, &pipe->f.sequencer, BIDE_FOREVER), 0);
    F_(_destroy)(&pipe->f.sequencer);
}

static void CASE_(_nothing_is_lost_or_repeated_between_threads)(void **state)
{
    (void)state;
    const BIDE_SEQUENCE sizes[] = {1, 4, 32, 64};
    uint64_t seed = testing_seed();
    for (int i = 0; i < 4; i++) {
        CASE_(_pipe) pipe = {.abandons = 4};
        /* With 8 bits the ring wraps some thousand times; with few slots each value costs sleeps. */
        uint32_t count = rounds_of(sizes[i] < 32                ? 1000
                                   : sizeof(BIDE_SEQUENCE) <= 2 ? 100000
                                                                : 10000);
        CASE_(_run_pipe)(&pipe, sizes[i], count, seed + (uint64_t)i);
    }
}

/* With 8 and 16 bits, a thousand times around. Most of it is abandoned, so that this takes a second. */
static void CASE_(_numbers_come_round_a_thousand_times_between_threads)(void **state)
{
    (void)state;
    if (sizeof(BIDE_SEQUENCE) > 2)
        return;
    CASE_(_pipe) pipe = {.abandons = 62};
    pipe.closes_at = (uint64_t)rounds_of(1000) * ((uint64_t)(BIDE_SEQUENCE)-1 + 1);
    CASE_(_run_pipe)
    (&pipe, sizeof(BIDE_SEQUENCE) == 1 ? 64 : MAX_SLOTS, UINT32_MAX, testing_seed());
    assert_true(pipe.passed >= pipe.closes_at);
}

static void CASE_(_claims_that_time_out_lose_nothing_between_threads)(void **state)
{
    (void)state;
    const BIDE_SEQUENCE sizes[] = {1, 4, 32};
    uint64_t seed = testing_seed();
    uint32_t failures = 0;
    for (int i = 0; i < 3; i++) {
        CASE_(_pipe) pipe = {.abandons = 4, .impatient = true};
        CASE_(_run_pipe)(&pipe, sizes[i], rounds_of(1000), seed + (uint64_t)i);
        for (int k = 0; k < PRODUCERS; k++)
            failures += pipe.producers[k].failures;
    }
    printf("# %u claims timed out\n", failures);
}

static void CASE_(_a_close_in_between_loses_nothing_that_was_claimed)(void **state)
{
    (void)state;
    uint64_t seed = testing_seed();
    uint64_t random = seed;
    for (uint32_t round = 0; round < rounds_of(200); round++) {
        CASE_(_pipe) pipe = {.abandons = 4, .impatient = round % 2 == 0};
        pipe.closes_at = 1 + testing_random(&random) % 60;
        CASE_(_run_pipe)(&pipe, S_(1u << round % 4), 1000, seed + round);
    }
}

static int CASE_(_run)(void)
{
    const struct CMUnitTest tests[] = {
        TESTING_CASE(CASE_(_a_size_that_is_no_power_of_two_or_too_large_is_refused)),
        TESTING_CASE(CASE_(_the_whole_ring_can_be_claimed_before_any_consumer_has_moved)),
        TESTING_CASE(CASE_(_a_claim_of_many_gets_what_is_free_and_at_least_one)),
        TESTING_CASE(CASE_(_any_available_is_right_at_every_fill_level)),
        TESTING_CASE(CASE_(_waiting_claims_are_served_in_order_and_one_is_woken_for_one_slot)),
        TESTING_CASE(CASE_(_a_claim_goes_past_a_line_only_if_slots_are_left_for_all_in_it)),
        TESTING_CASE(CASE_(_a_claim_that_is_cut_short_leaves_nothing_claimed)),
        TESTING_CASE(CASE_(_a_claim_that_is_cut_short_while_its_slot_is_freed_loses_no_slot)),
        TESTING_CASE(CASE_(_a_gate_that_closes_ends_all_claims_that_wait)),
        TESTING_CASE(CASE_(_the_slowest_consumer_at_the_gate_holds_the_producers)),
        TESTING_CASE(CASE_(_what_is_published_in_any_order_is_seen_in_order)),
        TESTING_CASE(CASE_(_a_wait_ends_with_all_that_is_published_then)),
        TESTING_CASE(CASE_(_no_wait_ends_early_when_a_batch_is_put_back)),
        TESTING_CASE(CASE_(_a_cancelled_wait_ends_and_the_others_stay)),
        TESTING_CASE(CASE_(_abandoned_slots_are_gone_past)),
        TESTING_CASE(CASE_(_who_joins_gets_what_is_claimed_later_and_nothing_before)),
        TESTING_CASE(CASE_(_who_joins_what_is_closed_finds_that_nothing_comes)),
        TESTING_CASE(CASE_(_nobody_joins_where_numbers_or_members_do_not_suffice)),
        TESTING_CASE(CASE_(_after_close_what_is_claimed_is_still_published_and_read)),
        TESTING_CASE(CASE_(_close_ends_claims_and_waits_that_wait_for_nothing)),
        TESTING_CASE(CASE_(_drain_waits_for_the_consumers)),
        TESTING_CASE(CASE_(_a_blocking_claim_or_wait_ends_with_its_deadline)),
        TESTING_CASE(CASE_(_nothing_is_lost_or_repeated_between_threads)),
        TESTING_CASE(CASE_(_numbers_come_round_a_thousand_times_between_threads)),
        TESTING_CASE(CASE_(_claims_that_time_out_lose_nothing_between_threads)),
        TESTING_CASE(CASE_(_a_close_in_between_loses_nothing_that_was_claimed)),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#undef BARRIER_
#undef BARRIER_F_
#undef GROUP_
#undef GROUP_F_
#undef GROUP_WAITER_
#undef MEMBER_
#undef SLOT_
#undef SEQUENCER_
#undef CLAIM_
#undef WAITER_
#undef F_
#undef CASE_
#undef QUARTER_
#undef S_
#undef CASE_MOST_

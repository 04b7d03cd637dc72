/* The cases of single_producer_sequencer_test.c for one type of sequence; included there once for each. */

#define BARRIER_         PASTE2(bide_sequence_barrier, BIDE_SEQUENCE_BITS)
#define BARRIER_F_(name) PASTE3(bide_sequence_barrier, BIDE_SEQUENCE_BITS, name)
#define BARRIER_WAITER_  PASTE2(bide_sequence_waiter, BIDE_SEQUENCE_BITS)
#define GROUP_           PASTE2(bide_sequence_group, BIDE_SEQUENCE_BITS)
#define GROUP_F_(name)   PASTE3(bide_sequence_group, BIDE_SEQUENCE_BITS, name)
#define GROUP_WAITER_    PASTE2(bide_sequence_group_waiter, BIDE_SEQUENCE_BITS)
#define SEQUENCER_       PASTE2(bide_single_producer_sequencer, BIDE_SEQUENCE_BITS)
#define CLAIM_           PASTE2(bide_claim, BIDE_SEQUENCE_BITS)
#define F_(name)         PASTE3(bide_single_producer_sequencer, BIDE_SEQUENCE_BITS, name)
#define CASE_(name)      PASTE3(sequencer, BIDE_SEQUENCE_BITS, name)
#define HALF_            ((BIDE_SEQUENCE)((BIDE_SEQUENCE)-1 / 2 + 1))

/* A sequencer with its cursor and one consumer at its gate. */
typedef struct CASE_(_fixture) {
    by_hand by_hand;
    BARRIER_ cursor;
    BARRIER_ consumed;
    BARRIER_ *members[1];
    GROUP_ gate;
    SEQUENCER_ sequencer;
} CASE_(_fixture);

static int CASE_(_init)(CASE_(_fixture) * fixture, BIDE_SEQUENCE initial, BIDE_SEQUENCE size)
{
    by_hand_init(&fixture->by_hand);
    BARRIER_F_(_init)(&fixture->cursor, initial);
    BARRIER_F_(_init)(&fixture->consumed, initial);
    fixture->members[0] = &fixture->consumed;
    GROUP_F_(_init)(&fixture->gate, fixture->members, 1);
    return F_(_init)(&fixture->sequencer, &fixture->cursor, &fixture->gate, size);
}

/* A coroutine that claims once. */
typedef struct CASE_(_claim) {
    bide_task task;
    SEQUENCER_ *sequencer;
    BIDE_SEQUENCE max; /* 0: by claim_one */
    int status;
    CLAIM_ claim;
} CASE_(_claim);

TESTING_COROUTINE(CASE_(_claim_body))
{
    bide_begin(CASE_(_claim_body), CASE_(_claim) * self);
    bide_await_status(self->status, self->max != 0
                                        ? F_(_claim_up_to)(&self->claim, self->sequencer, self->max)
                                        : F_(_claim_one)(&self->claim, self->sequencer));
    bide_end();
}

static void CASE_(_begin_claim)(CASE_(_claim) * claim, CASE_(_fixture) * fixture, BIDE_SEQUENCE max)
{
    claim->sequencer = &fixture->sequencer;
    claim->max = max;
    claim->status = 1;
    bide_await_later(bide_task_init(&claim->task, &CASE_(_claim_body)));
    by_hand_begin(&fixture->by_hand, &claim->task);
}

static void CASE_(_assert_claimed)(CASE_(_claim) * claim, BIDE_SEQUENCE first, BIDE_SEQUENCE count)
{
    assert_true(bide_done(&claim->task.frame));
    assert_int_equal(claim->status, 0);
    assert_true(claim->claim.first == first);
    assert_true(claim->claim.count == count);
}

static void
CASE_(_a_size_that_is_no_power_of_two_or_more_than_half_the_range_is_refused)(void **state)
{
    (void)state;
    CASE_(_fixture) fixture;
    const BIDE_SEQUENCE initial = (BIDE_SEQUENCE)-1;
    assert_int_equal(CASE_(_init)(&fixture, initial, 0), -EINVAL);
    assert_int_equal(CASE_(_init)(&fixture, initial, HALF_ + 1), -EINVAL);
    assert_int_equal(CASE_(_init)(&fixture, initial, (BIDE_SEQUENCE)-1), -EINVAL);
    assert_int_equal(CASE_(_init)(&fixture, initial, 1), 0);
    assert_int_equal(CASE_(_init)(&fixture, initial, 3), -EINVAL);
    assert_int_equal(CASE_(_init)(&fixture, initial, HALF_ - 1), -EINVAL);
    assert_int_equal(CASE_(_init)(&fixture, initial, HALF_), 0);
}

#if !BIDE_DEBUG
static void CASE_(_a_claim_of_no_slots_is_refused)(void **state)
{
    (void)state;
    CASE_(_fixture) fixture;
    PASTE2(bide_claim, BIDE_SEQUENCE_BITS) claim;
    BIDE_SEQUENCE first;
    assert_int_equal(CASE_(_init)(&fixture, 0, 1), 0);
    for (int full = 0; full < 2; full++) {
        assert_int_equal(bide_sync_wait(F_(_claim_up_to)(&claim, &fixture.sequencer, 0)), -EINVAL);
        assert_true(F_(_try_claim)(&fixture.sequencer, 1, &first) == !full);
    }
}
#endif

static void CASE_(_the_whole_ring_can_be_claimed_before_any_consumer_has_moved)(void **state)
{
    (void)state;
    const BIDE_SEQUENCE sizes[] = {1, 2, 16, HALF_ / 4, HALF_ / 2, HALF_};
    const BIDE_SEQUENCE initials[] = {(BIDE_SEQUENCE)-1, 0, 100, HALF_ - 1, HALF_};
    for (int i = 0; i < 6 * 5; i++) {
        CASE_(_fixture) fixture;
        CASE_(_claim) claim;
        BIDE_SEQUENCE size = sizes[i % 6], first = (BIDE_SEQUENCE)(initials[i / 6] + 1);
        /* One by one as far as is practical, then the rest at once. */
        assert_int_equal(CASE_(_init)(&fixture, initials[i / 6], size), 0);
        BIDE_SEQUENCE singly = size < 100 ? size : 100;
        for (BIDE_SEQUENCE k = 0; k < singly; k++) {
            CASE_(_begin_claim)(&claim, &fixture, 0);
            CASE_(_assert_claimed)(&claim, (BIDE_SEQUENCE)(first + k), 1);
        }
        if (singly < size) {
            CASE_(_begin_claim)(&claim, &fixture, (BIDE_SEQUENCE)-1);
            CASE_(_assert_claimed)
            (&claim, (BIDE_SEQUENCE)(first + singly), (BIDE_SEQUENCE)(size - singly));
        }
        BIDE_SEQUENCE unused;
        assert_true(F_(_try_claim)(&fixture.sequencer, 1, &unused) == 0);
        CASE_(_begin_claim)(&claim, &fixture, 0);
        assert_false(bide_done(&claim.task.frame));
        assert_int_equal(fixture.by_hand.posted, 0);
        BARRIER_F_(_publish)(&fixture.consumed, first);
        by_hand_run(&fixture.by_hand);
        CASE_(_assert_claimed)(&claim, (BIDE_SEQUENCE)(first + size), 1);
    }
}

static void CASE_(_a_claim_on_a_full_ring_waits_for_the_consumer)(void **state)
{
    (void)state;
    CASE_(_fixture) fixture;
    CASE_(_claim) claim;
    CASE_(_init)(&fixture, (BIDE_SEQUENCE)-4, 4);
    BIDE_SEQUENCE next = (BIDE_SEQUENCE)-3;
    CASE_(_begin_claim)(&claim, &fixture, 4);
    CASE_(_assert_claimed)(&claim, next, 4);
    F_(_publish_range)(&fixture.sequencer, next, 4);
    for (int i = 0; i < 20; i++) {
        CASE_(_begin_claim)(&claim, &fixture, 0);
        assert_false(bide_done(&claim.task.frame));
        BARRIER_F_(_publish)(&fixture.consumed, next); /* the oldest slot is released */
        by_hand_run(&fixture.by_hand);
        CASE_(_assert_claimed)(&claim, (BIDE_SEQUENCE)(next + 4), 1);
        F_(_publish)(&fixture.sequencer, (BIDE_SEQUENCE)(next + 4));
        next++;
    }
}

static void CASE_(_a_claim_of_many_gets_what_is_free_and_at_least_one)(void **state)
{
    (void)state;
    CASE_(_fixture) fixture;
    CASE_(_claim) claim;
    CASE_(_init)(&fixture, (BIDE_SEQUENCE)-1, 8);
    CASE_(_begin_claim)(&claim, &fixture, 5);
    CASE_(_assert_claimed)(&claim, 0, 5); /* at most the requested number */
    CASE_(_begin_claim)(&claim, &fixture, 5);
    CASE_(_assert_claimed)(&claim, 5, 3); /* no more than free */
    CASE_(_begin_claim)(&claim, &fixture, 5);
    assert_false(bide_done(&claim.task.frame)); /* none */
    F_(_publish)(&fixture.sequencer, 7);
    BARRIER_F_(_publish)(&fixture.consumed, 0);
    by_hand_run(&fixture.by_hand);
    CASE_(_assert_claimed)(&claim, 8, 1); /* the first that becomes free */
    CASE_(_begin_claim)(&claim, &fixture, 5);
    BARRIER_F_(_publish)(&fixture.consumed, 3);
    by_hand_run(&fixture.by_hand);
    CASE_(_assert_claimed)(&claim, 9, 3);
    BARRIER_F_(_publish)(&fixture.consumed, 7);
    CASE_(_begin_claim)(&claim, &fixture, 3);
    CASE_(_assert_claimed)(&claim, 12, 3);
    CASE_(_begin_claim)(&claim, &fixture, 3);
    CASE_(_assert_claimed)(&claim, 15, 1);
}

static void CASE_(_a_claim_of_many_gets_what_was_freed_since_the_last)(void **state)
{
    (void)state;
    CASE_(_fixture) fixture;
    BIDE_SEQUENCE first;
    CASE_(_init)(&fixture, (BIDE_SEQUENCE)-1, 8);
    assert_true(F_(_try_claim)(&fixture.sequencer, 4, &first) == 4);
    F_(_publish)(&fixture.sequencer, 3);
    BARRIER_F_(_publish)(&fixture.consumed, 3);
    assert_true(F_(_try_claim)(&fixture.sequencer, 8, &first) == 8);
    assert_true(first == 4);

    /* With the largest ring, for more than there is. */
    CASE_(_init)(&fixture, (BIDE_SEQUENCE)-1, HALF_);
    assert_true(F_(_try_claim)(&fixture.sequencer, (BIDE_SEQUENCE)-1, &first) == HALF_);
    assert_true(first == 0);
}

static void CASE_(_try_claim_gives_none_when_none_is_free)(void **state)
{
    (void)state;
    CASE_(_fixture) fixture;
    CASE_(_init)(&fixture, (BIDE_SEQUENCE)-1, 4);
    BIDE_SEQUENCE first = 99;
    assert_true(F_(_try_claim)(&fixture.sequencer, 3, &first) == 3);
    assert_true(first == 0);
    assert_true(F_(_try_claim)(&fixture.sequencer, 3, &first) == 1);
    assert_true(first == 3);
    assert_true(F_(_try_claim)(&fixture.sequencer, 3, &first) == 0);
    assert_true(F_(_try_claim)(&fixture.sequencer, 3, &first) == 0);
    F_(_publish)(&fixture.sequencer, 3);
    BARRIER_F_(_publish)(&fixture.consumed, 1);
    assert_true(F_(_try_claim)(&fixture.sequencer, 3, &first) == 2);
    assert_true(first == 4);
    assert_true(F_(_try_claim)(&fixture.sequencer, 3, &first) == 0);
}

static void CASE_(_a_range_is_published_as_one_step)(void **state)
{
    (void)state;
    CASE_(_fixture) fixture;
    CASE_(_claim) claim;
    CASE_(_init)(&fixture, (BIDE_SEQUENCE)-3, 8);
    BARRIER_WAITER_ waiter;
    probe probe;
    probe_init(&probe);
    BIDE_SEQUENCE first = (BIDE_SEQUENCE)-2;
    CASE_(_begin_claim)(&claim, &fixture, 6);
    CASE_(_assert_claimed)(&claim, first, 6);
    assert_false(
        probe_await(&probe, BARRIER_F_(_wait_until_published)(&waiter, &fixture.cursor, first)));
    F_(_publish_range)(&fixture.sequencer, first, 4);
    assert_int_equal(probe_ended(&probe), 1);
    assert_true(waiter.published == (BIDE_SEQUENCE)(first + 3));
    assert_true(BARRIER_F_(_last_published)(&fixture.cursor) == (BIDE_SEQUENCE)(first + 3));
    F_(_publish_range)(&fixture.sequencer, (BIDE_SEQUENCE)(first + 4), 2);
    assert_true(BARRIER_F_(_last_published)(&fixture.cursor) == (BIDE_SEQUENCE)(first + 5));
}

static void CASE_(_the_slowest_consumer_at_the_gate_holds_the_producer)(void **state)
{
    (void)state;
    CASE_(_fixture) fixture;
    CASE_(_claim) claim;
    CASE_(_init)(&fixture, (BIDE_SEQUENCE)-1, 4);
    BARRIER_ other;
    BARRIER_F_(_init)(&other, (BIDE_SEQUENCE)-1);
    BARRIER_ *members[2] = {&fixture.consumed, &other};
    GROUP_F_(_init)(&fixture.gate, members, 2);
    CASE_(_begin_claim)(&claim, &fixture, 4);
    F_(_publish_range)(&fixture.sequencer, 0, 4);
    CASE_(_begin_claim)(&claim, &fixture, 4);
    BARRIER_F_(_publish)(&fixture.consumed, 3);
    by_hand_run(&fixture.by_hand);
    assert_false(bide_done(&claim.task.frame));
    BARRIER_F_(_publish)(&other, 1);
    by_hand_run(&fixture.by_hand);
    CASE_(_assert_claimed)(&claim, 4, 2);
}

static void CASE_(_a_gate_that_closes_ends_the_claim_that_waits_for_it)(void **state)
{
    (void)state;
    for (int before = 0; before < 2; before++) {
        CASE_(_fixture) fixture;
        CASE_(_claim) claim;
        CASE_(_init)(&fixture, (BIDE_SEQUENCE)-1, 4);
        CASE_(_begin_claim)(&claim, &fixture, 4);
        F_(_publish_range)(&fixture.sequencer, 0, 4);
        BARRIER_F_(_publish)(&fixture.consumed, 0);
        if (before)
            BARRIER_F_(_close)(&fixture.consumed);
        /* Slots that the consumer has released may still be claimed. */
        CASE_(_begin_claim)(&claim, &fixture, 4);
        CASE_(_assert_claimed)(&claim, 4, 1);
        CASE_(_begin_claim)(&claim, &fixture, 4);
        if (!before) {
            assert_false(bide_done(&claim.task.frame));
            BARRIER_F_(_close)(&fixture.consumed);
            by_hand_run(&fixture.by_hand);
        }
        assert_true(bide_done(&claim.task.frame));
        assert_int_equal(claim.status, -EPIPE);
        assert_true(claim.claim.count == 0);
    }
}

/*
 * A producer and a consumer. The producer claims some slots, at most `max`, fills and publishes them,
 * `count` in all, and closes; the consumer reads everything until the close.
 */
typedef struct CASE_(_slot) {
    uint64_t number;
    uint64_t inverse; /* of number, to detect a slot that is half written */
} CASE_(_slot);

typedef struct CASE_(_pipe) {
    CASE_(_fixture) fixture;
    CASE_(_slot) * slots;
    BIDE_SEQUENCE size;
    BIDE_SEQUENCE max;
    uint64_t count;

    /* of the producer */
    uint64_t producer_random;
    uint64_t produced;
    CLAIM_ claim;

    /* of the consumer */
    uint64_t consumer_random;
    uint64_t consumed;
    uint64_t wrong;
    BIDE_SEQUENCE next;
    int status; /* what its last wait ended with */
    BARRIER_WAITER_ wait;
} CASE_(_pipe);

static void CASE_(_pipe_init)(CASE_(_pipe) * pipe, BIDE_SEQUENCE size, BIDE_SEQUENCE max,
                              uint64_t count, uint64_t seed)
{
    BIDE_SEQUENCE initial = (BIDE_SEQUENCE)-1000; /* wraps soon */
    assert_int_equal(CASE_(_init)(&pipe->fixture, initial, size), 0);
    pipe->slots = calloc(size, sizeof *pipe->slots);
    assert_non_null(pipe->slots);
    pipe->size = size;
    pipe->max = max;
    pipe->count = count;
    pipe->producer_random = seed;
    pipe->consumer_random = seed + 1;
    pipe->produced = pipe->consumed = pipe->wrong = 0;
    pipe->next = (BIDE_SEQUENCE)(initial + 1);
    pipe->status = 0;
}

static void CASE_(_pipe_end)(CASE_(_pipe) * pipe)
{
    assert_int_equal(pipe->wrong, 0);
    assert_int_equal(pipe->produced, pipe->count);
    assert_int_equal(pipe->consumed, pipe->count);
    assert_int_equal(pipe->status, -EPIPE);
    free(pipe->slots);
}

static bide_awaiter *CASE_(_pipe_claim)(CASE_(_pipe) * pipe)
{
    uint64_t max = 1 + testing_random(&pipe->producer_random) % pipe->max;
    uint64_t left = pipe->count - pipe->produced;
    return F_(_claim_up_to)(&pipe->claim, &pipe->fixture.sequencer,
                            (BIDE_SEQUENCE)(max < left ? max : left));
}

/* Fills the claimed slots, and publishes them. The size is a power of two, so it divides the range. */
static void CASE_(_pipe_fill)(CASE_(_pipe) * pipe)
{
    CLAIM_ *claim = &pipe->claim;
    for (BIDE_SEQUENCE i = 0; i < claim->count; i++) {
        CASE_(_slot) *slot = &pipe->slots[(BIDE_SEQUENCE)(claim->first + i) % pipe->size];
        slot->number = pipe->produced++;
        slot->inverse = ~slot->number;
    }
    F_(_publish_range)(&pipe->fixture.sequencer, claim->first, claim->count);
}

static bide_awaiter *CASE_(_pipe_wait)(CASE_(_pipe) * pipe)
{
    return BARRIER_F_(_wait_until_published)(&pipe->wait, &pipe->fixture.cursor, pipe->next);
}

/* Reads the published slots, and releases them, in one step or two. */
static void CASE_(_pipe_drain)(CASE_(_pipe) * pipe)
{
    BIDE_SEQUENCE many = (BIDE_SEQUENCE)(pipe->wait.published - pipe->next + 1);
    pipe->wrong += many < 1 || many > pipe->size;
    BIDE_SEQUENCE step = (BIDE_SEQUENCE)(testing_random(&pipe->consumer_random) % many);
    for (BIDE_SEQUENCE i = 0; i < many; i++, pipe->next++) {
        const CASE_(_slot) *slot = &pipe->slots[pipe->next % pipe->size];
        pipe->wrong += slot->number != pipe->consumed || slot->inverse != ~pipe->consumed;
        pipe->consumed++;
        if (i == step && i + 1 != many)
            BARRIER_F_(_publish)(&pipe->fixture.consumed, pipe->next);
    }
    BARRIER_F_(_publish)(&pipe->fixture.consumed, (BIDE_SEQUENCE)(pipe->next - 1));
}

/* Either end of the pipe as a coroutine. */
typedef struct CASE_(_end) {
    bide_task task;
    CASE_(_pipe) * pipe;
} CASE_(_end);

TESTING_COROUTINE(CASE_(_producer_body))
{
    bide_begin(CASE_(_producer_body), CASE_(_end) * self);
    while (self->pipe->produced < self->pipe->count) {
        bide_try(CASE_(_pipe_claim)(self->pipe));
        CASE_(_pipe_fill)(self->pipe);
    }
    F_(_close)(&self->pipe->fixture.sequencer);
    bide_end();
}

TESTING_COROUTINE(CASE_(_consumer_body))
{
    bide_begin(CASE_(_consumer_body), CASE_(_end) * self);
    for (;;) {
        bide_await_status(self->pipe->status, CASE_(_pipe_wait)(self->pipe));
        if (self->pipe->status != 0)
            bide_return(0);
        CASE_(_pipe_drain)(self->pipe);
    }
    bide_end();
}

static void CASE_(_values_come_in_order_through_many_wraps_in_one_thread)(void **state)
{
    (void)state;
    const BIDE_SEQUENCE sizes[] = {1, 2, 16, 64, 128};
    uint64_t seed = testing_seed();
    for (int i = 0; i < 10; i++) {
        CASE_(_pipe) pipe;
        BIDE_SEQUENCE size = sizes[i / 2];
        /* 40 laps around 8 bits; 10 around 16 bits, once; the others wrap once. */
        uint64_t count = sizeof(BIDE_SEQUENCE) == 2 && i == 9 ? 655360 : 10240;
        CASE_(_pipe_init)(&pipe, size, i % 2 == 0 ? 1 : size, count, seed + (uint64_t)i);
        CASE_(_end) ends[2];
        for (int end = 0; end < 2; end++) {
            ends[end].pipe = &pipe;
            bide_await_later(bide_task_init(&ends[end].task, end == 0 ? &CASE_(_consumer_body)
                                                                      : &CASE_(_producer_body)));
            ends[end].task.frame.context = &bide_default_context;
            ends[end].task.frame.awaiter.frame = NULL;
            bide_resume(&ends[end].task.frame);
        }
        for (int end = 0; end < 2; end++) {
            assert_true(bide_done(&ends[end].task.frame));
            assert_int_equal(bide_task_error(&ends[end].task), 0);
        }
        CASE_(_pipe_end)(&pipe);
    }
}

static void *CASE_(_produce)(void *argument)
{
    CASE_(_pipe) *pipe = argument;
    while (pipe->produced < pipe->count) {
        if (bide_sync_wait(CASE_(_pipe_claim)(pipe)) != 0)
            break;
        CASE_(_pipe_fill)(pipe);
    }
    F_(_close)(&pipe->fixture.sequencer);
    return NULL;
}

static void CASE_(_values_come_in_order_through_many_wraps_between_two_threads)(void **state)
{
    (void)state;
    const BIDE_SEQUENCE sizes[] = {1, 4, 32, 128};
    uint32_t count = rounds_of(10000);
    uint64_t seed = testing_seed();
    for (int i = 0; i < 4; i++) {
        CASE_(_pipe) pipe;
        /* (with a ring of 1, each value costs two threads a sleep) */
        CASE_(_pipe_init)
        (&pipe, sizes[i], sizes[i] / 2 + 1, sizes[i] == 1 ? 2000 : count, seed + (uint64_t)i);
        pthread_t producer;
        start_thread(&producer, CASE_(_produce), &pipe);
        while ((pipe.status = bide_sync_wait(CASE_(_pipe_wait)(&pipe))) == 0)
            CASE_(_pipe_drain)(&pipe);
        join_thread(producer);
        CASE_(_pipe_end)(&pipe);
    }
}

static void CASE_(_close_ends_the_consumer_when_it_has_drained_the_ring)(void **state)
{
    (void)state;
    CASE_(_fixture) fixture;
    CASE_(_claim) claim;
    CASE_(_init)(&fixture, (BIDE_SEQUENCE)-2, 8);
    BARRIER_WAITER_ waiter;
    CASE_(_begin_claim)(&claim, &fixture, 4);
    CASE_(_assert_claimed)(&claim, (BIDE_SEQUENCE)-1, 4);
    F_(_publish_range)(&fixture.sequencer, (BIDE_SEQUENCE)-1, 3); /* the fourth never */
    F_(_close)(&fixture.sequencer);
    for (BIDE_SEQUENCE i = 0; i < 3; i++) {
        assert_int_equal(bide_sync_wait(BARRIER_F_(_wait_until_published)(&waiter, &fixture.cursor,
                                                                          (BIDE_SEQUENCE)(i - 1))),
                         0);
        assert_true(waiter.published == 1);
    }
    assert_int_equal(bide_sync_wait(BARRIER_F_(_wait_until_published)(&waiter, &fixture.cursor, 2)),
                     -EPIPE);
    assert_true(waiter.published == 1);
}

/* At every fill level, wherever the ring begins; also with one slot free. */
static void CASE_(_any_available_is_right_at_every_fill_level)(void **state)
{
    (void)state;
    for (BIDE_SEQUENCE size = 1; size <= 16; size = (BIDE_SEQUENCE)(size * 2)) {
        for (unsigned start = 0; start < 260; start++) {
            CASE_(_fixture) f;
            BIDE_SEQUENCE initial = (BIDE_SEQUENCE)(start - 130u), first = 0;
            CASE_(_init)(&f, initial, size);
            for (BIDE_SEQUENCE used = 0; used < size; used++) {
                assert_true(F_(_any_available)(&f.sequencer));
                assert_true(F_(_try_claim)(&f.sequencer, 1, &first) == 1);
            }
            assert_false(F_(_any_available)(&f.sequencer));
            F_(_publish)(&f.sequencer, first);
            for (BIDE_SEQUENCE done = 1; done <= size; done++) {
                BARRIER_F_(_publish)(&f.consumed, (BIDE_SEQUENCE)(initial + done));
                assert_true(F_(_any_available)(&f.sequencer));
                assert_true(F_(_try_claim)(&f.sequencer, size, &first) == 1);
                assert_false(F_(_any_available)(&f.sequencer));
            }
        }
    }
}

static void CASE_(_a_claim_that_is_cut_short_leaves_nothing_claimed)(void **state)
{
    (void)state;
    CASE_(_fixture) f;
    CASE_(_claim) claim;
    BIDE_SEQUENCE first = 0;
    bide_stop_source stop;
    for (int how = 0; how < 3; how++) {
        CASE_(_init)(&f, (BIDE_SEQUENCE)-2, 1);
        bide_stop_source_init(&stop);
        f.by_hand.context.stop = &stop;
        assert_true(F_(_try_claim)(&f.sequencer, 1, &first) == 1);
        F_(_publish)(&f.sequencer, first);
        CASE_(_begin_claim)(&claim, &f, 0);
        if (how == 0)
            bide_stop_request(&stop);
        else if (how == 1)
            bide_stop_request_with(&stop, -ETIMEDOUT);
        else
            bide_destroy(&claim.task.frame);
        by_hand_run(&f.by_hand);
        if (how < 2) {
            assert_true(bide_done(&claim.task.frame));
            assert_int_equal(claim.status, how == 0 ? -ECANCELED : -ETIMEDOUT);
            assert_true(claim.claim.count == 0);
        }
        BARRIER_F_(_publish)(&f.consumed, first);
        assert_int_equal(by_hand_run(&f.by_hand), 0);
        assert_true(F_(_try_claim)(&f.sequencer, 1, &first) == 1);
        assert_true(first == 0);
    }
}

static void CASE_(_what_is_given_back_is_claimed_again)(void **state)
{
    (void)state;
    CASE_(_fixture) f;
    BIDE_SEQUENCE first = 0;
    CASE_(_init)(&f, (BIDE_SEQUENCE)-3, 8);
    assert_true(F_(_try_claim)(&f.sequencer, 6, &first) == 6); /* -2 to 3 */
    F_(_publish)(&f.sequencer, (BIDE_SEQUENCE)-2);
    F_(_unclaim)(&f.sequencer, 3);
    F_(_publish)(&f.sequencer, 0);
    F_(_unclaim)(&f.sequencer, 0);
    assert_true(F_(_try_claim)(&f.sequencer, 8, &first) == 5);
    assert_true(first == 1);
    F_(_unclaim)(&f.sequencer, 5);
    BARRIER_F_(_publish)(&f.consumed, 0);
    assert_true(F_(_try_claim)(&f.sequencer, 8, &first) == 8);
    assert_true(first == 1);
    assert_false(F_(_any_available)(&f.sequencer));
}

static void CASE_(_abandoned_slots_are_gone_past)(void **state)
{
    (void)state;
    uint64_t random = 3;
    uint8_t markers[16];
    for (BIDE_SEQUENCE size = 1; size <= 16; size = (BIDE_SEQUENCE)(size * 2)) {
        CASE_(_fixture) f;
        BIDE_SEQUENCE known = (BIDE_SEQUENCE)-1000;
        CASE_(_init)(&f, known, size);
        memset(markers, 1, sizeof markers);
        assert_int_equal(F_(_set_markers)(&f.sequencer, markers), 0);
        for (int lap = 0; lap < 300; lap++) {
            uint64_t abandoned = testing_random(&random);
            BIDE_SEQUENCE first = 0;
            assert_true(F_(_try_claim)(&f.sequencer, size, &first) == size);
            for (BIDE_SEQUENCE i = 0; i < size; i++) {
                if ((abandoned >> i & 1) != 0)
                    F_(_abandon)(&f.sequencer, (BIDE_SEQUENCE)(first + i), 1);
                else
                    F_(_publish)(&f.sequencer, (BIDE_SEQUENCE)(first + i));
                assert_true(F_(_last_published_after)(&f.sequencer, known) ==
                            (BIDE_SEQUENCE)(first + i));
                assert_true(F_(_is_published)(&f.sequencer, (BIDE_SEQUENCE)(first + i)));
                assert_false(F_(_is_published)(&f.sequencer, (BIDE_SEQUENCE)(first + i + 1)));
            }
            for (BIDE_SEQUENCE i = 0; i < size; i++)
                assert_int_equal(F_(_is_abandoned)(&f.sequencer, (BIDE_SEQUENCE)(first + i)),
                                 abandoned >> i & 1);
            known = (BIDE_SEQUENCE)(known + size);
            BARRIER_F_(_publish)(&f.consumed, known);
        }
    }
    CASE_(_fixture) f;
    CASE_(_init)(&f, 0, 4);
    assert_false(F_(_is_abandoned)(&f.sequencer, 0)); /* there are none */
}

static void CASE_(_after_close_no_claim_succeeds_and_what_is_published_is_read)(void **state)
{
    (void)state;
    CASE_(_fixture) f;
    CASE_(_claim) claim;
    BARRIER_WAITER_ wait;
    GROUP_WAITER_ drained;
    BIDE_SEQUENCE first = 0;
    CASE_(_init)(&f, (BIDE_SEQUENCE)-2, 8);
    assert_true(F_(_try_claim)(&f.sequencer, 4, &first) == 4); /* -1 to 2 */
    F_(_publish_range)(&f.sequencer, first, 3);
    assert_false(F_(_is_closed)(&f.sequencer));
    F_(_close)(&f.sequencer);
    F_(_close)(&f.sequencer);
    assert_true(F_(_is_closed)(&f.sequencer));
    F_(_unclaim)(&f.sequencer, 1);
    for (BIDE_SEQUENCE max = 1; max < 20; max++)
        assert_true(F_(_try_claim)(&f.sequencer, max, &first) == 0);
    assert_false(F_(_any_available)(&f.sequencer));
    CASE_(_begin_claim)(&claim, &f, 0);
    assert_true(bide_done(&claim.task.frame));
    assert_int_equal(claim.status, -EPIPE);
    assert_true(claim.claim.count == 0);
    for (BIDE_SEQUENCE i = 0; i < 3; i++) {
        assert_int_equal(F_(_wait_until_published_blocking)(&wait, &f.sequencer,
                                                            (BIDE_SEQUENCE)(i - 1),
                                                            (BIDE_SEQUENCE)(i - 2), 0),
                         0);
        assert_true(wait.published == 1);
        assert_int_equal(F_(_drain_blocking)(&drained, &f.sequencer, 0), -ETIMEDOUT);
        BARRIER_F_(_publish)(&f.consumed, (BIDE_SEQUENCE)(i - 1));
    }
    assert_int_equal(F_(_wait_until_published_blocking)(&wait, &f.sequencer, 2, 1, BIDE_FOREVER),
                     -EPIPE);
    assert_int_equal(F_(_drain_blocking)(&drained, &f.sequencer, BIDE_FOREVER), 0);
    F_(_destroy)(&f.sequencer);
}

static void CASE_(_a_blocking_claim_ends_with_its_deadline)(void **state)
{
    (void)state;
    CASE_(_fixture) f;
    CLAIM_ claim;
    CASE_(_init)(&f, (BIDE_SEQUENCE)-1, 2);
    assert_int_equal(F_(_claim_up_to_blocking)(&claim, &f.sequencer, 5, 0), 0);
    assert_true(claim.first == 0 && claim.count == 2);
    assert_int_equal(F_(_claim_one_blocking)(&claim, &f.sequencer, 0), -ETIMEDOUT);
    assert_true(claim.count == 0);
    F_(_publish)(&f.sequencer, 1);
    BARRIER_F_(_publish)(&f.consumed, 0);
    assert_int_equal(F_(_claim_one_blocking)(&claim, &f.sequencer, BIDE_FOREVER), 0);
    assert_true(claim.first == 2 && claim.count == 1);
}

static int CASE_(_run)(void)
{
    const struct CMUnitTest tests[] = {
#if !BIDE_DEBUG
        TESTING_CASE(CASE_(_a_claim_of_no_slots_is_refused)),
#endif
        TESTING_CASE(CASE_(_a_size_that_is_no_power_of_two_or_more_than_half_the_range_is_refused)),
        TESTING_CASE(CASE_(_the_whole_ring_can_be_claimed_before_any_consumer_has_moved)),
        TESTING_CASE(CASE_(_a_claim_on_a_full_ring_waits_for_the_consumer)),
        TESTING_CASE(CASE_(_a_claim_of_many_gets_what_is_free_and_at_least_one)),
        TESTING_CASE(CASE_(_a_claim_of_many_gets_what_was_freed_since_the_last)),
        TESTING_CASE(CASE_(_try_claim_gives_none_when_none_is_free)),
        TESTING_CASE(CASE_(_a_range_is_published_as_one_step)),
        TESTING_CASE(CASE_(_the_slowest_consumer_at_the_gate_holds_the_producer)),
        TESTING_CASE(CASE_(_a_gate_that_closes_ends_the_claim_that_waits_for_it)),
        TESTING_CASE(CASE_(_values_come_in_order_through_many_wraps_in_one_thread)),
        TESTING_CASE(CASE_(_values_come_in_order_through_many_wraps_between_two_threads)),
        TESTING_CASE(CASE_(_close_ends_the_consumer_when_it_has_drained_the_ring)),
        TESTING_CASE(CASE_(_any_available_is_right_at_every_fill_level)),
        TESTING_CASE(CASE_(_a_claim_that_is_cut_short_leaves_nothing_claimed)),
        TESTING_CASE(CASE_(_what_is_given_back_is_claimed_again)),
        TESTING_CASE(CASE_(_abandoned_slots_are_gone_past)),
        TESTING_CASE(CASE_(_after_close_no_claim_succeeds_and_what_is_published_is_read)),
        TESTING_CASE(CASE_(_a_blocking_claim_ends_with_its_deadline)),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#undef BARRIER_
#undef BARRIER_F_
#undef BARRIER_WAITER_
#undef GROUP_
#undef GROUP_F_
#undef GROUP_WAITER_
#undef SEQUENCER_
#undef CLAIM_
#undef F_
#undef CASE_
#undef HALF_

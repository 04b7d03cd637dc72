/* The cases of sequence_group_stress_test.c for one type of sequence; included there once for each. */

#define BARRIER_           PASTE2(bide_sequence_barrier, BIDE_SEQUENCE_BITS)
#define BARRIER_F_(name)   PASTE3(bide_sequence_barrier, BIDE_SEQUENCE_BITS, name)
#define BARRIER_WAITER_    PASTE2(bide_sequence_waiter, BIDE_SEQUENCE_BITS)
#define GROUP_             PASTE2(bide_sequence_group, BIDE_SEQUENCE_BITS)
#define MEMBER_            PASTE2(bide_sequence_group_member, BIDE_SEQUENCE_BITS)
#define WAITER_            PASTE2(bide_sequence_group_waiter, BIDE_SEQUENCE_BITS)
#define F_(name)           PASTE3(bide_sequence_group, BIDE_SEQUENCE_BITS, name)
#define SEQUENCER_         PASTE2(bide_single_producer_sequencer, BIDE_SEQUENCE_BITS)
#define SEQUENCER_F_(name) PASTE3(bide_single_producer_sequencer, BIDE_SEQUENCE_BITS, name)
#define CLAIM_             PASTE2(bide_claim, BIDE_SEQUENCE_BITS)
#define CASE_(name)        PASTE3(stress, BIDE_SEQUENCE_BITS, name)

/*
 * A producer writes increasing numbers into a ring. Visitors join the gate, or a group that a last consumer follows,
 * read for a while, and leave. The sequence of a number is its low bits.
 */
enum { CASE_(_size) = 8, CASE_(_visitors) = 2 };

typedef struct CASE_(_slot) {
    uint64_t number;
    uint64_t marks[CASE_(_visitors)]; /* the number, when a visitor has read it */
} CASE_(_slot);

typedef struct CASE_(_flow) {
    BARRIER_ cursor;
    BARRIER_ last_read; /* of the last consumer */
    BARRIER_ *behind_cursor[1];
    BARRIER_ *behind_last[1];
    GROUP_ visited; /* what the visitors join */
    GROUP_ gate;
    SEQUENCER_ sequencer;
    CASE_(_slot) slots[CASE_(_size)];
    bool behind; /* a last consumer follows the visitors; it alone is at the gate */
    uint64_t seed;
    uint32_t visits;
    bide_atomic(uint64_t) published; /* a lower bound of the published numbers */
    bide_atomic(uint64_t) claimed;   /* an upper bound of the published numbers */
    bide_atomic(uint32_t) visiting;  /* visitors that have not finished */
} CASE_(_flow);

typedef struct CASE_(_thread) {
    CASE_(_flow) * flow;
    uint32_t which;
    uint64_t wrong;
    uint64_t read;
    pthread_t thread;
} CASE_(_thread);

static CASE_(_slot) * CASE_(_slot_of)(CASE_(_flow) * flow, BIDE_SEQUENCE sequence)
{
    return &flow->slots[sequence % CASE_(_size)];
}

/* Runs until every visitor has finished. */
static void *CASE_(_produce)(void *argument)
{
    CASE_(_thread) *self = argument;
    CASE_(_flow) *flow = self->flow;
    uint64_t random = flow->seed;
    uint64_t next = 1;
    while (bide_atomic_load(&flow->visiting, acquire) != 0) {
        CLAIM_ claim;
        BIDE_SEQUENCE max = (BIDE_SEQUENCE)(1 + testing_random(&random) % CASE_(_size));
        self->wrong +=
            bide_sync_wait(SEQUENCER_F_(_claim_up_to)(&claim, &flow->sequencer, max)) != 0;
        self->wrong += claim.first != (BIDE_SEQUENCE)next || claim.count == 0 || claim.count > max;
        bide_atomic_store(&flow->claimed, next + claim.count - 1, seq_cst);
        for (BIDE_SEQUENCE i = 0; i < claim.count; i++)
            CASE_(_slot_of)(flow, (BIDE_SEQUENCE)(claim.first + i))->number = next++;
        random_moment(&random, 20);
        SEQUENCER_F_(_publish_range)(&flow->sequencer, claim.first, claim.count);
        bide_atomic_store(&flow->published, next - 1, seq_cst);
    }
    SEQUENCER_F_(_close)(&flow->sequencer);
    self->read = next - 1;
    return NULL;
}

/* Reads at least `max` numbers after `start`, in order; more if they come in a batch. False: the end was reached. */
static bool CASE_(_read)(CASE_(_thread) * self, BARRIER_ *own, BIDE_SEQUENCE start, uint64_t min,
                         uint64_t max, uint64_t *random)
{
    CASE_(_flow) *flow = self->flow;
    BIDE_SEQUENCE next = (BIDE_SEQUENCE)(start + 1);
    uint64_t expected = 0;
    for (uint64_t count = 0; count < max;) {
        BARRIER_WAITER_ wait;
        int status = bide_sync_wait(BARRIER_F_(_wait_until_published)(&wait, &flow->cursor, next));
        if (status != 0) {
            self->wrong += status != -EPIPE;
            return false;
        }
        BIDE_SEQUENCE many = (BIDE_SEQUENCE)(wait.published - next + 1);
        self->wrong += many < 1 || many > CASE_(_size);
        random_moment(random, 20);
        for (; many != 0; many--, next++, count++, self->read++) {
            CASE_(_slot) *slot = CASE_(_slot_of)(flow, next);
            uint64_t number = slot->number;
            /* The first number is the one after the start, not published before it joined. */
            if (expected == 0)
                self->wrong += (BIDE_SEQUENCE)number != next || number <= min;
            else
                self->wrong += number != expected;
            expected = number + 1;
            slot->marks[self->which] = number;
        }
        BARRIER_F_(_publish)(own, (BIDE_SEQUENCE)(next - 1));
    }
    return true;
}

static void *CASE_(_visit)(void *argument)
{
    CASE_(_thread) *self = argument;
    CASE_(_flow) *flow = self->flow;
    uint64_t random = flow->seed + 1 + self->which;
    MEMBER_ member;
    BARRIER_ own;
    bool more = true;
    for (uint32_t visit = 0; visit < flow->visits && more; visit++) {
        uint64_t before = bide_atomic_load(&flow->published, acquire);
        BIDE_SEQUENCE start = F_(_join)(&flow->visited, &member, &own, &flow->cursor);
        uint64_t after = bide_atomic_load(&flow->claimed, seq_cst);
        /* It starts between the two. */
        uint64_t from = before + (BIDE_SEQUENCE)(start - (BIDE_SEQUENCE)before);
        self->wrong += from > after;
        more = CASE_(_read)(self, &own, start, before, testing_random(&random) % 20, &random);
        self->wrong += !more;
        random_moment(&random, 10);
        F_(_leave_blocking)(&flow->visited, &member);
        self->wrong += member.users != 0;
        memset(&member, 0x5a, sizeof member);
        memset(&own, 0x5a, sizeof own);
        random_moment(&random, testing_random(&random) % 4 == 0 ? 2000 : 50);
    }
    bide_atomic_fetch_sub(&flow->visiting, 1, release);
    return NULL;
}

/* Follows the visitors: no visitor writes its marks in a slot that it may read. */
static void *CASE_(_come_last)(void *argument)
{
    CASE_(_thread) *self = argument;
    CASE_(_flow) *flow = self->flow;
    uint64_t random = flow->seed + 100;
    uint64_t next = 1;
    for (;;) {
        WAITER_ wait;
        int status =
            bide_sync_wait(F_(_wait_until_published)(&wait, &flow->visited, (BIDE_SEQUENCE)next));
        if (status != 0) {
            self->wrong += status != -EPIPE;
            break;
        }
        BIDE_SEQUENCE many = (BIDE_SEQUENCE)(wait.published - (BIDE_SEQUENCE)next + 1);
        self->wrong += many < 1 || many > CASE_(_size);
        for (; many != 0; many--, next++) {
            CASE_(_slot) *slot = CASE_(_slot_of)(flow, (BIDE_SEQUENCE)next);
            CASE_(_slot) before = *slot;
            random_moment(&random, 10);
            self->wrong += slot->number != next || before.number != next;
            for (int i = 0; i < CASE_(_visitors); i++)
                self->wrong += before.marks[i] != slot->marks[i] || before.marks[i] > next;
        }
        BARRIER_F_(_publish)(&flow->last_read, (BIDE_SEQUENCE)(next - 1));
    }
    self->read = next - 1;
    return NULL;
}

static void CASE_(_flow_run)(bool behind, uint32_t visits, uint64_t seed)
{
    static CASE_(_flow) flow;
    memset(&flow, 0, sizeof flow);
    flow.behind = behind;
    flow.seed = seed;
    flow.visits = visits;
    flow.behind_cursor[0] = &flow.cursor;
    flow.behind_last[0] = &flow.last_read;
    BARRIER_F_(_init)(&flow.cursor, 0);
    BARRIER_F_(_init)(&flow.last_read, 0);
    F_(_init)(&flow.visited, flow.behind_cursor, behind ? 1 : 0);
    F_(_init)(&flow.gate, flow.behind_last, 1);
    bide_atomic_init(&flow.published, 0);
    bide_atomic_init(&flow.claimed, 0);
    bide_atomic_init(&flow.visiting, CASE_(_visitors));
    assert_int_equal(SEQUENCER_F_(_init)(&flow.sequencer, &flow.cursor,
                                         behind ? &flow.gate : &flow.visited, CASE_(_size)),
                     0);
    enum { PRODUCER = CASE_(_visitors), LAST, THREADS };
    CASE_(_thread) threads[THREADS];
    memset(threads, 0, sizeof threads);
    for (uint32_t i = 0; i < THREADS; i++) {
        threads[i].flow = &flow;
        threads[i].which = i;
        if (i != LAST || behind)
            start_thread(&threads[i].thread,
                         i == PRODUCER ? CASE_(_produce)
                         : i == LAST   ? CASE_(_come_last)
                                       : CASE_(_visit),
                         &threads[i]);
    }
    for (int i = 0; i < THREADS; i++) {
        if (i != LAST || behind)
            join_thread(threads[i].thread);
        assert_int_equal(threads[i].wrong, 0);
    }
    assert_null(bide_atomic_load(&flow.visited.first, relaxed));
    if (behind) /* it received everything up to the last */
        assert_int_equal(threads[LAST].read, threads[PRODUCER].read);
    assert_true(threads[0].read > visits && threads[1].read > visits); /* they did read */
}

static void CASE_(_visitors_at_the_gate_get_everything_from_join_to_leave)(void **state)
{
    (void)state;
    CASE_(_flow_run)(false, rounds_of(sizeof(BIDE_SEQUENCE) == 1 ? 20000 : 5000), testing_seed());
}

static void CASE_(_who_comes_after_visitors_waits_for_those_who_are_there)(void **state)
{
    (void)state;
    CASE_(_flow_run)(true, rounds_of(sizeof(BIDE_SEQUENCE) == 1 ? 12000 : 3000), testing_seed());
}

/*
 * ---- Waits at random ----
 *
 * Each round some coroutines wait for a group while two members publish, leave, or close, and some are cancelled.
 */
enum { CASE_(_waits) = 4, CASE_(_goal) = 3 };

typedef struct CASE_(_storm) {
    meeting meeting;
    uint32_t rounds;
    bool is_last;
    uint64_t seed;
    GROUP_ group;
    BARRIER_ head;
    bool closes;                 /* one member closes its barrier before it leaves ... */
    bool stays;                  /* ... and not before all waits have ended, because of that */
    bide_atomic(uint32_t) begun; /* waits, in all rounds */
    bide_atomic(uint32_t) ended;
    struct CASE_(_storm_wait) {
        bide_task task;
        struct CASE_(_storm) * storm;
        WAITER_ wait;
        bide_stop_source stop;
        bide_context context;
        bide_atomic(uint32_t) ends;
        int status;
    } waits[CASE_(_waits)];
} CASE_(_storm);

TESTING_COROUTINE(CASE_(_storm_body))
{
    bide_begin(CASE_(_storm_body), struct CASE_(_storm_wait) * self);
    bide_await_status(self->status, F_(_wait_until_published)(&self->wait, &self->storm->group,
                                                              (BIDE_SEQUENCE)(CASE_(_goal) - 2)));
    bide_atomic_fetch_add(&self->storm->ended, 1, relaxed);
    bide_atomic_fetch_add(&self->ends, 1, release);
    bide_end();
}

typedef struct CASE_(_storm_thread) {
    CASE_(_storm) * storm;
    uint32_t which;
    pthread_t thread;
} CASE_(_storm_thread);

/* Until all waits have started, or ended, in this round too. */
static void CASE_(_storm_stay)(bide_atomic(uint32_t) * waits, uint32_t round)
{
    uint32_t spins = 0;
    while (bide_atomic_load(waits, relaxed) < (round + 1) * CASE_(_waits))
        wait_a_moment(&spins);
}

/*
 * Joins, acts at random, and leaves. In each fourth round no member advances until the waits have started, so that
 * some are cancelled on any schedule of the threads.
 */
static void *CASE_(_storm_member)(void *argument)
{
    CASE_(_storm_thread) *self = argument;
    CASE_(_storm) *storm = self->storm;
    uint64_t random = storm->seed + 10 + self->which;
    bool over = false;
    for (uint32_t round = 0; !over; round++) {
        MEMBER_ member;
        BARRIER_ own;
        meet(&storm->meeting);
        over = storm->is_last;
        BIDE_SEQUENCE at = F_(_join)(&storm->group, &member, &own, &storm->head);
        meet(&storm->meeting);
        if (round % 4 == 0)
            CASE_(_storm_stay)(&storm->begun, round);
        bool closes = storm->closes && self->which == 0;
        bool stays = closes && testing_random(&random) % 2 == 0;
        if (closes)
            storm->stays = stays;
        for (uint64_t steps = testing_random(&random) % (stays ? 3 : 4); steps != 0; steps--) {
            random_moment(&random, 100);
            BARRIER_F_(_publish)(&own, ++at);
        }
        random_moment(&random, 100);
        if (closes)
            BARRIER_F_(_close)(&own);
        if (stays)
            CASE_(_storm_stay)(&storm->ended, round);
        random_moment(&random, 100);
        F_(_leave_blocking)(&storm->group, &member);
        memset(&member, 0x5a, sizeof member);
        memset(&own, 0x5a, sizeof own);
        meet(&storm->meeting);
    }
    return NULL;
}

static void *CASE_(_storm_ask)(void *argument)
{
    CASE_(_storm_thread) *self = argument;
    CASE_(_storm) *storm = self->storm;
    uint64_t random = storm->seed + 20;
    for (bool over = false; !over;) {
        meet(&storm->meeting);
        over = storm->is_last;
        meet(&storm->meeting);
        random_moment(&random, 200);
        bide_stop_request(&storm->waits[testing_random(&random) % CASE_(_waits)].stop);
        meet(&storm->meeting);
    }
    return NULL;
}

static void CASE_(_each_wait_ends_once_while_members_come_and_go)(void **state)
{
    (void)state;
    static CASE_(_storm) storm;
    memset(&storm, 0, sizeof storm);
    storm.rounds = rounds_of(1000);
    storm.seed = testing_seed();
    CASE_(_storm_thread) threads[3];
    uint64_t random = storm.seed;
    uint32_t wrong = 0, counts[3] = {0};
    meeting_init(&storm.meeting, 4);
    bide_atomic_init(&storm.begun, 0);
    bide_atomic_init(&storm.ended, 0);
    F_(_init)(&storm.group, NULL, 0);
    for (uint32_t i = 0; i < 3; i++) {
        threads[i].storm = &storm;
        threads[i].which = i;
        start_thread(&threads[i].thread, i < 2 ? CASE_(_storm_member) : CASE_(_storm_ask),
                     &threads[i]);
    }
    for (uint32_t round = 0; !storm.is_last; round++) {
        storm.is_last =
            is_last_round(round, storm.rounds, counts[0] > 0 && counts[1] > 0 && counts[2] > 0);
        BARRIER_F_(_init)(&storm.head, (BIDE_SEQUENCE)-2);
        storm.closes = round % 2 == 1;
        storm.stays = false;
        for (int i = 0; i < CASE_(_waits); i++) {
            struct CASE_(_storm_wait) *w = &storm.waits[i];
            w->storm = &storm;
            w->context = (bide_context){&bide_inline_scheduler, &w->stop, NULL, NULL, NULL};
            bide_stop_source_init(&w->stop);
            bide_atomic_init(&w->ends, 0);
            w->status = 1;
        }
        meet(&storm.meeting);
        meet(&storm.meeting);
        if (round % 4 == 0)
            bide_stop_request(&storm.waits[0].stop);
        for (int i = 0; i < CASE_(_waits); i++) {
            random_moment(&random, 60);
            bide_start(&storm.waits[i].task.frame, &CASE_(_storm_body), &storm.waits[i].context);
            bide_resume(&storm.waits[i].task.frame);
        }
        bide_atomic_fetch_add(&storm.begun, CASE_(_waits), relaxed);
        meet(&storm.meeting);
        for (int i = 0; i < CASE_(_waits); i++) {
            struct CASE_(_storm_wait) *w = &storm.waits[i];
            wrong += bide_atomic_load(&w->ends, acquire) != 1;
            switch (w->status) {
            case 0:
                wrong += storm.stays &&
                         !bide_stop_requested(&w->stop); /* (the requester may delay it) */
                counts[0]++;
                break;
            case -EPIPE:
                wrong += !storm.closes;
                counts[1]++;
                break;
            default:
                wrong += w->status != -ECANCELED || !bide_stop_requested(&w->stop);
                counts[2]++;
                break;
            }
        }
        wrong += bide_atomic_load(&storm.group.first, relaxed) != NULL;
    }
    for (int i = 0; i < 3; i++)
        join_thread(threads[i].thread);
    printf("# %u waits ended with 0, %u with -EPIPE, %u were cut short\n", counts[0], counts[1],
           counts[2]);
    assert_int_equal(wrong, 0);
    assert_true(counts[0] > 0 && counts[1] > 0 && counts[2] > 0);
}

static int CASE_(_run)(void)
{
    const struct CMUnitTest tests[] = {
        TESTING_CASE(CASE_(_visitors_at_the_gate_get_everything_from_join_to_leave)),
        TESTING_CASE(CASE_(_who_comes_after_visitors_waits_for_those_who_are_there)),
        TESTING_CASE(CASE_(_each_wait_ends_once_while_members_come_and_go)),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#undef BARRIER_
#undef BARRIER_F_
#undef BARRIER_WAITER_
#undef GROUP_
#undef MEMBER_
#undef WAITER_
#undef F_
#undef SEQUENCER_
#undef SEQUENCER_F_
#undef CLAIM_
#undef CASE_

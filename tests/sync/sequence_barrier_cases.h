/* The cases of sequence_barrier_test.c for one type of sequence; included there once for each. */

#define BARRIER_     PASTE2(bide_sequence_barrier, BIDE_SEQUENCE_BITS)
#define WAITER_      PASTE2(bide_sequence_waiter, BIDE_SEQUENCE_BITS)
#define F_(name)     PASTE3(bide_sequence_barrier, BIDE_SEQUENCE_BITS, name)
#define TRAIT_(name) PASTE3(bide_sequence, BIDE_SEQUENCE_BITS, name)
#define CASE_(name)  PASTE3(barrier, BIDE_SEQUENCE_BITS, name)
#define HALF_        ((BIDE_SEQUENCE)((BIDE_SEQUENCE)-1 / 2 + 1))

/* Where the numbers of a test start: in the middle, and where they wrap. */
static const BIDE_SEQUENCE CASE_(_bases)[] = {
    (BIDE_SEQUENCE)-1, 0, 100, HALF_ - 2, HALF_ - 1, HALF_, (BIDE_SEQUENCE)-2, (BIDE_SEQUENCE)-3};

/* NOLINTBEGIN(bugprone-macro-parentheses): a declared name takes none */
#define FOR_EACH_BASE_(at)                        \
    for (const BIDE_SEQUENCE *at = CASE_(_bases); \
         at < CASE_(_bases) + sizeof CASE_(_bases) / sizeof CASE_(_bases)[0]; at++)
/* NOLINTEND(bugprone-macro-parentheses) */

/* A coroutine that waits once. */
typedef struct CASE_(_wait) {
    bide_task task;
    by_hand *by_hand;
    BARRIER_ *barrier;
    BIDE_SEQUENCE target;
    char name;
    int status;
    BIDE_SEQUENCE published;
    WAITER_ wait;
} CASE_(_wait);

TESTING_COROUTINE(CASE_(_wait_body))
{
    bide_begin(CASE_(_wait_body), CASE_(_wait) * self);
    bide_await_status(self->status,
                      F_(_wait_until_published)(&self->wait, self->barrier, self->target));
    self->published = self->wait.published;
    by_hand_note(self->by_hand, self->name);
    bide_end();
}

static void CASE_(_begin)(CASE_(_wait) * self, by_hand *by_hand, BARRIER_ *barrier,
                          BIDE_SEQUENCE target, char name)
{
    self->by_hand = by_hand;
    self->barrier = barrier;
    self->target = target;
    self->name = name;
    self->status = 1;
    bide_await_later(bide_task_init(&self->task, &CASE_(_wait_body)));
    by_hand_begin(by_hand, &self->task);
}

static void CASE_(_assert_waits)(CASE_(_wait) * self)
{
    assert_false(bide_done(&self->task.frame));
}

static void CASE_(_assert_ended)(CASE_(_wait) * self, int status, BIDE_SEQUENCE published)
{
    assert_true(bide_done(&self->task.frame));
    assert_int_equal(self->status, status);
    assert_true(self->published == published);
}

/* Waits for 7 and then for 11. */
typedef struct CASE_(_consumer) {
    bide_task task;
    BARRIER_ *barrier;
    BIDE_SEQUENCE first, second;
    WAITER_ wait;
} CASE_(_consumer);

TESTING_COROUTINE(CASE_(_consumer_body))
{
    bide_begin(CASE_(_consumer_body), CASE_(_consumer) * self);
    bide_try(F_(_wait_until_published)(&self->wait, self->barrier, 7));
    self->first = self->wait.published;
    bide_try(F_(_wait_until_published)(&self->wait, self->barrier, 11));
    self->second = self->wait.published;
    bide_end();
}

static void CASE_(_waits_for_7_and_then_11_while_7_and_20_are_published)(void **state)
{
    (void)state;
    BARRIER_ barrier;
    F_(_init)(&barrier, TRAIT_(_initial)());
    assert_true(F_(_last_published)(&barrier) == TRAIT_(_initial)());
    CASE_(_consumer) consumer = {.barrier = &barrier};
    bide_await_later(bide_task_init(&consumer.task, &CASE_(_consumer_body)));
    consumer.task.frame.context = &bide_default_context;
    consumer.task.frame.awaiter.frame = NULL;
    bide_resume(&consumer.task.frame);
    assert_true(consumer.first == 0);
    F_(_publish)(&barrier, 7);
    assert_true(F_(_last_published)(&barrier) == 7);
    assert_true(consumer.first == 7);
    assert_false(bide_done(&consumer.task.frame));
    F_(_publish)(&barrier, 20);
    assert_true(bide_done(&consumer.task.frame));
    assert_int_equal(bide_task_error(&consumer.task), 0);
    assert_true(consumer.second == 20);
}

static void CASE_(_what_does_not_lie_ahead_is_published_at_once)(void **state)
{
    (void)state;
    FOR_EACH_BASE_(at)
    {
        const BIDE_SEQUENCE base = *at;
        by_hand by_hand;
        by_hand_init(&by_hand);
        BARRIER_ barrier;
        F_(_init)(&barrier, base);
        /* The last, the one before, half the range before, and so more than half ahead. */
        const BIDE_SEQUENCE behind[] = {0, 1, 2, HALF_ - 2, HALF_ - 1};
        for (size_t i = 0; i < sizeof behind / sizeof behind[0]; i++) {
            CASE_(_wait) wait;
            CASE_(_begin)(&wait, &by_hand, &barrier, (BIDE_SEQUENCE)(base - behind[i]), 'a');
            CASE_(_assert_ended)(&wait, 0, base);
        }
        assert_int_equal(by_hand.posted, 0);
        /* The list is empty again. */
        F_(_publish)(&barrier, (BIDE_SEQUENCE)(base + 1));
        assert_int_equal(by_hand.posted, 0);
    }
}

static void CASE_(_a_target_at_half_the_range_waits_until_it_is_reached)(void **state)
{
    (void)state;
    FOR_EACH_BASE_(at)
    {
        const BIDE_SEQUENCE base = *at;
        by_hand by_hand;
        by_hand_init(&by_hand);
        BARRIER_ barrier;
        F_(_init)(&barrier, base);
        CASE_(_wait) far, near;
        BIDE_SEQUENCE target = (BIDE_SEQUENCE)(base + HALF_);
        CASE_(_begin)(&far, &by_hand, &barrier, target, 'f');
        CASE_(_begin)(&near, &by_hand, &barrier, (BIDE_SEQUENCE)(base + 1), 'n');
        CASE_(_assert_waits)(&far);
        /* The same again: the list is sorted, with the target at half the range. */
        F_(_publish)(&barrier, base);
        assert_int_equal(by_hand_run(&by_hand), 0);
        F_(_publish)(&barrier, (BIDE_SEQUENCE)(base + 1));
        assert_int_equal(by_hand_run(&by_hand), 1);
        CASE_(_assert_ended)(&near, 0, (BIDE_SEQUENCE)(base + 1));
        F_(_publish)(&barrier, (BIDE_SEQUENCE)(target - 1));
        assert_int_equal(by_hand_run(&by_hand), 0);
        CASE_(_assert_waits)(&far);
        F_(_publish)(&barrier, target);
        assert_int_equal(by_hand_run(&by_hand), 1);
        CASE_(_assert_ended)(&far, 0, target);
    }
}

/*
 * `near` finds its target not published, which then is published. Before `near` enlists, `far` does, for a target at
 * half the range from the published number. So the suspend of `near` sorts the list.
 */
static void
CASE_(_a_target_at_half_the_range_waits_when_another_waiter_sorts_the_list)(void **state)
{
    (void)state;
    FOR_EACH_BASE_(at)
    {
        const BIDE_SEQUENCE base = *at;
        BARRIER_ barrier;
        F_(_init)(&barrier, base);
        WAITER_ near, far;
        probe near_probe, far_probe;
        probe_init(&near_probe);
        probe_init(&far_probe);
        BIDE_SEQUENCE now = (BIDE_SEQUENCE)(base + 1);
        BIDE_SEQUENCE target = (BIDE_SEQUENCE)(now + HALF_);

        bide_awaiter *awaiter = F_(_wait_until_published)(&near, &barrier, now);
        assert_false(awaiter->ops->ready(awaiter));
        F_(_publish)(&barrier, now);
        assert_false(probe_await(&far_probe, F_(_wait_until_published)(&far, &barrier, target)));
        assert_true(probe_suspend(&near_probe, awaiter));
        assert_int_equal(awaiter->ops->resume(awaiter), 0);
        assert_true(near.published == now);
        assert_int_equal(probe_ended(&near_probe), 0);
        assert_int_equal(probe_ended(&far_probe), 0);

        F_(_publish)(&barrier, (BIDE_SEQUENCE)(now + 1));
        F_(_publish)(&barrier, (BIDE_SEQUENCE)(target - 1));
        assert_int_equal(probe_ended(&far_probe), 0);
        F_(_publish)(&barrier, target);
        assert_int_equal(probe_ended(&far_probe), 1);
        assert_true(far.published == target);
    }
}

/* As above; the sweeper wakes the waiters that are reached, and enlists the rest again. */
static void CASE_(_a_waiter_that_finds_itself_reached_wakes_others_that_are)(void **state)
{
    (void)state;
    FOR_EACH_BASE_(at)
    {
        const BIDE_SEQUENCE base = *at;
        BARRIER_ barrier;
        F_(_init)(&barrier, base);
        enum { COUNT = 6 };
        /* How far ahead, in the order in which they enlist; the last one sorts. */
        const BIDE_SEQUENCE ahead[COUNT] = {9, 2, 4, 1, 5, 3};
        WAITER_ waiters[COUNT];
        probe probes[COUNT];
        bide_awaiter *awaiters[COUNT];
        for (int i = 0; i < COUNT; i++) {
            probe_init(&probes[i]);
            awaiters[i] =
                F_(_wait_until_published)(&waiters[i], &barrier, (BIDE_SEQUENCE)(base + ahead[i]));
        }
        assert_false(awaiters[1]->ops->ready(awaiters[1]));
        assert_false(awaiters[3]->ops->ready(awaiters[3]));
        assert_false(awaiters[COUNT - 1]->ops->ready(awaiters[COUNT - 1]));
        assert_false(probe_await(&probes[0], awaiters[0]));
        F_(_publish)(&barrier, (BIDE_SEQUENCE)(base + 3));
        assert_false(probe_await(&probes[2], awaiters[2]));
        assert_false(probe_await(&probes[4], awaiters[4]));
        for (int i = 1; i < COUNT; i += 2) {
            assert_true(probe_suspend(&probes[i], awaiters[i]));
            assert_true(waiters[i].published == (BIDE_SEQUENCE)(base + 3));
        }
        for (int i = 0; i < COUNT; i++)
            assert_int_equal(probe_ended(&probes[i]), 0);
        F_(_publish)(&barrier, (BIDE_SEQUENCE)(base + 4));
        assert_int_equal(probe_ended(&probes[2]), 1);
        assert_int_equal(probe_ended(&probes[4]), 0);
        F_(_publish)(&barrier, (BIDE_SEQUENCE)(base + 9));
        for (int i = 0; i < COUNT; i++)
            assert_int_equal(probe_ended(&probes[i]), i % 2 == 0);
        assert_true(waiters[4].published == (BIDE_SEQUENCE)(base + 9));
    }
}

static void CASE_(_each_publish_wakes_those_it_reaches_in_order_of_arrival)(void **state)
{
    (void)state;
    FOR_EACH_BASE_(at)
    {
        const BIDE_SEQUENCE base = *at;
        by_hand by_hand;
        by_hand_init(&by_hand);
        BARRIER_ barrier;
        F_(_init)(&barrier, base);
        CASE_(_wait) waits[8];
        const BIDE_SEQUENCE ahead[8] = {3, 1, 2, 6, 3, 1, 7, 4};
        for (int i = 0; i < 8; i++)
            CASE_(_begin)
        (&waits[i], &by_hand, &barrier, (BIDE_SEQUENCE)(base + ahead[i]), (char)('a' + i));
        F_(_publish)(&barrier, (BIDE_SEQUENCE)(base + 1));
        assert_int_equal(by_hand.posted, 2);
        assert_int_equal(by_hand_run(&by_hand), 2);
        by_hand_assert_trace(&by_hand, "bf");
        /* One enlists behind others: it is younger than they are. */
        CASE_(_begin)(&waits[1], &by_hand, &barrier, (BIDE_SEQUENCE)(base + 3), 'B');
        F_(_publish)(&barrier, (BIDE_SEQUENCE)(base + 4));
        assert_int_equal(by_hand_run(&by_hand), 5);
        by_hand_assert_trace(&by_hand, "acehB");
        F_(_publish)(&barrier, (BIDE_SEQUENCE)(base + 5));
        assert_int_equal(by_hand_run(&by_hand), 0);
        F_(_publish)(&barrier, (BIDE_SEQUENCE)(base + 6));
        assert_int_equal(by_hand_run(&by_hand), 1);
        by_hand_assert_trace(&by_hand, "d");
        F_(_publish)(&barrier, (BIDE_SEQUENCE)(base + 8));
        assert_int_equal(by_hand_run(&by_hand), 1);
        by_hand_assert_trace(&by_hand, "g");
        assert_int_equal(by_hand.posted, 9);
        CASE_(_assert_ended)(&waits[0], 0, (BIDE_SEQUENCE)(base + 4));
        CASE_(_assert_ended)(&waits[6], 0, (BIDE_SEQUENCE)(base + 8));
    }
}

/* 1300 publishes: 8 bits wrap five times, the others once, because of their start. */
static void CASE_(_waits_go_on_where_the_sequence_wraps)(void **state)
{
    (void)state;
    by_hand by_hand;
    by_hand_init(&by_hand);
    BARRIER_ barrier;
    BIDE_SEQUENCE last = (BIDE_SEQUENCE)-650;
    F_(_init)(&barrier, last);
    CASE_(_wait) next, tenth, half;
    CASE_(_begin)(&tenth, &by_hand, &barrier, (BIDE_SEQUENCE)(last + 10), 't');
    CASE_(_begin)(&half, &by_hand, &barrier, (BIDE_SEQUENCE)(last + 128), 'h');
    for (int i = 1; i <= 1300; i++) {
        CASE_(_begin)(&next, &by_hand, &barrier, (BIDE_SEQUENCE)(last + 1), 'n');
        CASE_(_assert_waits)(&next);
        last++;
        F_(_publish)(&barrier, last);
        by_hand_run(&by_hand);
        CASE_(_assert_ended)(&next, 0, last);
        /* in order of arrival, which is the order of their targets */
        char expected[4] = "";
        strcat(expected, i % 128 == 0 ? "h" : "");
        strcat(expected, i % 10 == 0 ? "t" : "");
        strcat(expected, "n");
        by_hand_assert_trace(&by_hand, expected);
        if (i % 10 == 0) {
            CASE_(_assert_ended)(&tenth, 0, last);
            CASE_(_begin)(&tenth, &by_hand, &barrier, (BIDE_SEQUENCE)(last + 10), 't');
        }
        if (i % 128 == 0) {
            CASE_(_assert_ended)(&half, 0, last);
            CASE_(_begin)(&half, &by_hand, &barrier, (BIDE_SEQUENCE)(last + 128), 'h');
        }
    }
}

static void CASE_(_close_ends_who_waits_for_more)(void **state)
{
    (void)state;
    FOR_EACH_BASE_(at)
    {
        const BIDE_SEQUENCE base = *at;
        by_hand by_hand;
        by_hand_init(&by_hand);
        BARRIER_ barrier;
        F_(_init)(&barrier, base);
        CASE_(_wait) waits[4];
        const BIDE_SEQUENCE ahead[4] = {3, 2, HALF_, 4};
        for (int i = 0; i < 4; i++)
            CASE_(_begin)
        (&waits[i], &by_hand, &barrier, (BIDE_SEQUENCE)(base + ahead[i]), (char)('a' + i));
        F_(_publish)(&barrier, (BIDE_SEQUENCE)(base + 2));
        assert_int_equal(by_hand_run(&by_hand), 1);
        F_(_close)(&barrier);
        assert_int_equal(by_hand_run(&by_hand), 3);
        by_hand_assert_trace(&by_hand, "bacd");
        for (int i = 0; i < 4; i++)
            CASE_(_assert_ended)(&waits[i], i == 1 ? 0 : -EPIPE, (BIDE_SEQUENCE)(base + 2));
        assert_true(F_(_last_published)(&barrier) == (BIDE_SEQUENCE)(base + 2));
    }
}

static void CASE_(_a_wait_after_close_ends_by_what_is_published)(void **state)
{
    (void)state;
    FOR_EACH_BASE_(at)
    {
        const BIDE_SEQUENCE base = *at;
        by_hand by_hand;
        by_hand_init(&by_hand);
        BARRIER_ barrier;
        F_(_init)(&barrier, base);
        F_(_publish)(&barrier, (BIDE_SEQUENCE)(base + 2));
        F_(_close)(&barrier);
        BIDE_SEQUENCE last = (BIDE_SEQUENCE)(base + 2);
        CASE_(_wait) wait;
        CASE_(_begin)(&wait, &by_hand, &barrier, (BIDE_SEQUENCE)(base + 1), 'a');
        CASE_(_assert_ended)(&wait, 0, last);
        CASE_(_begin)(&wait, &by_hand, &barrier, last, 'b');
        CASE_(_assert_ended)(&wait, 0, last);
        CASE_(_begin)(&wait, &by_hand, &barrier, (BIDE_SEQUENCE)(last + 1), 'c');
        CASE_(_assert_ended)(&wait, -EPIPE, last);
        CASE_(_begin)(&wait, &by_hand, &barrier, (BIDE_SEQUENCE)(last + HALF_), 'd');
        CASE_(_assert_ended)(&wait, -EPIPE, last);
        CASE_(_begin)(&wait, &by_hand, &barrier, (BIDE_SEQUENCE)(last + HALF_ + 1), 'e');
        CASE_(_assert_ended)(&wait, 0, last);
        assert_int_equal(by_hand.posted, 0);
    }
}

/* Not published at the first check; then it is, or not, and the barrier is closed; only then does it enlist. */
static void CASE_(_a_wait_that_finds_the_barrier_shut_ends_by_what_is_published)(void **state)
{
    (void)state;
    FOR_EACH_BASE_(at)
    {
        const BIDE_SEQUENCE base = *at;
        BARRIER_ barrier;
        F_(_init)(&barrier, base);
        WAITER_ waiters[3];
        probe probe;
        probe_init(&probe);
        for (BIDE_SEQUENCE i = 0; i < 3; i++) {
            bide_awaiter *awaiter =
                F_(_wait_until_published)(&waiters[i], &barrier, (BIDE_SEQUENCE)(base + 1 + i));
            assert_false(awaiter->ops->ready(awaiter));
        }
        BIDE_SEQUENCE last = (BIDE_SEQUENCE)(base + 2);
        F_(_publish)(&barrier, last);
        F_(_close)(&barrier);
        for (int i = 0; i < 3; i++) {
            bide_awaiter *awaiter = &waiters[i].waiting.listed.awaiter;
            assert_true(probe_suspend(&probe, awaiter));
            assert_int_equal(awaiter->ops->resume(awaiter), i < 2 ? 0 : -EPIPE);
            assert_true(waiters[i].published == last);
        }
        assert_int_equal(probe_ended(&probe), 0);
    }
}

static void CASE_(_close_twice_is_close_once)(void **state)
{
    (void)state;
    by_hand by_hand;
    by_hand_init(&by_hand);
    BARRIER_ barrier;
    F_(_init)(&barrier, 5);
    CASE_(_wait) wait;
    CASE_(_begin)(&wait, &by_hand, &barrier, 6, 'a');
    F_(_close)(&barrier);
    F_(_close)(&barrier);
    assert_int_equal(by_hand.posted, 1);
    assert_int_equal(by_hand_run(&by_hand), 1);
    CASE_(_assert_ended)(&wait, -EPIPE, 5);
    F_(_close)(&barrier);
    assert_int_equal(by_hand.posted, 1);
    CASE_(_begin)(&wait, &by_hand, &barrier, 6, 'a');
    CASE_(_assert_ended)(&wait, -EPIPE, 5);
}

/*
 * A wait that has enlisted and whose suspend still has to check the barrier: whichever thread ends the wait leaves the
 * coroutine to that suspend. (The first half of suspend is done here by hand.)
 */
static void CASE_(_a_wait_that_ends_while_it_suspends_goes_on_by_itself)(void **state)
{
    (void)state;
    for (int closing = 0; closing < 2; closing++) {
        BARRIER_ barrier;
        F_(_init)(&barrier, 5);
        WAITER_ waiter;
        probe probe;
        probe_init(&probe);
        bide_awaiter *awaiter = F_(_wait_until_published)(&waiter, &barrier, 6);
        assert_false(awaiter->ops->ready(awaiter));
        awaiter->frame = &probe.frame;
        bide_handshake_init(&waiter.waiting.handshake);
        bool pushed;
        bide_waiter_list_push(&barrier.waiters.list, &waiter.waiting.listed, seq_cst, pushed);
        assert_true(pushed);
        if (closing)
            F_(_close)(&barrier);
        else
            F_(_publish)(&barrier, 6);
        assert_int_equal(probe_ended(&probe), 0);
        assert_true(bide_handshake_arm(&waiter.waiting.handshake));
        assert_int_equal(awaiter->ops->resume(awaiter), closing ? -EPIPE : 0);
        assert_true(waiter.published == (closing ? 5 : 6));
    }
}

/* A scheduler that reports that it is idle so many times, and that publishes the target at one of these. */
typedef struct CASE_(_idling) {
    by_hand by_hand;
    BARRIER_ barrier;
    BIDE_SEQUENCE target;
    uint32_t asked;
    uint32_t idle_until;
    uint32_t publishes_at;
} CASE_(_idling);

static bool CASE_(_idling_idle)(bide_scheduler *scheduler)
{
    CASE_(_idling) *self = (void *)bide_container_of(scheduler, by_hand, scheduler);
    self->asked++;
    if (self->asked == self->publishes_at)
        F_(_publish)(&self->barrier, self->target);
    return self->asked < self->idle_until;
}

static void CASE_(_a_wait_looks_before_it_suspends_while_its_scheduler_is_idle)(void **state)
{
    (void)state;
    const struct {
        uint32_t idle_until, publishes_at, asked;
        bool suspends;
    } courses[] = {
        {1, UINT32_MAX, 1, true},           /* there is other work */
        {3, UINT32_MAX, 3, true},           /* there comes other work */
        {100, 3, 3, false},                 /* it is published meanwhile */
        {UINT32_MAX, UINT32_MAX, 20, true}, /* patience ends */
    };
    for (size_t i = 0; i < sizeof courses / sizeof courses[0]; i++) {
        CASE_(_idling) self;
        by_hand_init(&self.by_hand);
        self.by_hand.scheduler.idle = CASE_(_idling_idle);
        bide_atomic_init(&self.by_hand.scheduler.patience, 20);
        F_(_init)(&self.barrier, 5);
        self.target = 6;
        self.asked = 0;
        self.idle_until = courses[i].idle_until;
        self.publishes_at = courses[i].publishes_at;
        CASE_(_wait) wait;
        CASE_(_begin)(&wait, &self.by_hand, &self.barrier, self.target, 'a');
        assert_int_equal(self.asked, courses[i].asked);
        assert_int_equal(bide_done(&wait.task.frame), !courses[i].suspends);
        if (courses[i].suspends)
            F_(_publish)(&self.barrier, 6);
        assert_int_equal(by_hand_run(&self.by_hand), courses[i].suspends);
        CASE_(_assert_ended)(&wait, 0, 6);
    }
}

#if TESTING_HOSTED
/* One thread publishes a number that another waits for; when both have returned, the wait must have ended. */
typedef struct CASE_(_race) {
    meeting meeting;
    uint32_t rounds;
    uint64_t seed;
    BARRIER_ barrier;
    uint32_t announced; /* written before the publish */
} CASE_(_race);

static void *CASE_(_race_publish)(void *argument)
{
    CASE_(_race) *self = argument;
    uint64_t random = self->seed + 1;
    BIDE_SEQUENCE sequence = TRAIT_(_initial)();
    for (uint32_t round = 0; round < self->rounds; round++) {
        meet(&self->meeting);
        random_moment(&random, 20);
        self->announced = round;
        sequence++;
        F_(_publish)(&self->barrier, sequence);
        meet(&self->meeting);
    }
    return NULL;
}

static void CASE_(_no_wake_up_is_lost)(void **state)
{
    (void)state;
    CASE_(_race) race = {.rounds = rounds_of(10000), .seed = testing_seed()};
    meeting_init(&race.meeting, 2);
    F_(_init)(&race.barrier, TRAIT_(_initial)());
    uint64_t random = race.seed;
    uint32_t wrong_ends = 0, wrong_values = 0;
    BIDE_SEQUENCE sequence = TRAIT_(_initial)();
    pthread_t publisher;
    start_thread(&publisher, CASE_(_race_publish), &race);
    for (uint32_t round = 0; round < race.rounds; round++) {
        WAITER_ waiter;
        probe probe;
        probe_init(&probe);
        sequence++;
        meet(&race.meeting);
        random_moment(&random, 20);
        bool ended =
            probe_await(&probe, F_(_wait_until_published)(&waiter, &race.barrier, sequence));
        if (ended)
            wrong_values += race.announced != round;
        meet(&race.meeting);
        bool ended_once = probe_ended(&probe) + (ended ? 1 : 0) == 1;
        if (!ended_once) {
            /* Lost: it must be out of the list, because its memory is freed. */
            bide_waiter_list_shut(&race.barrier.waiters.list);
            bide_waiter_list_reopen(&race.barrier.waiters.list);
        }
        wrong_ends += !ended_once;
        wrong_values += ended_once && (waiter.published != sequence ||
                                       probe_result(&waiter.waiting.listed.awaiter) != 0);
    }
    join_thread(publisher);
    assert_int_equal(wrong_ends, 0);
    assert_int_equal(wrong_values, 0);
}

/*
 * The publisher publishes 1 and 2 while a waiter for 1 may hold the list, with the waiters for 2 and more. The
 * publisher must find them.
 */
static void *CASE_(_put_back_publish)(void *argument)
{
    CASE_(_race) *self = argument;
    uint64_t random = self->seed + 1;
    for (uint32_t round = 0; round < self->rounds; round++) {
        meet(&self->meeting);
        random_moment(&random, 20);
        F_(_publish)(&self->barrier, 1);
        random_moment(&random, 5);
        F_(_publish)(&self->barrier, 2);
        meet(&self->meeting);
    }
    return NULL;
}

static void CASE_(_no_wake_up_is_lost_of_those_that_a_waiter_puts_back)(void **state)
{
    (void)state;
    enum { WAITS = 8 };
    CASE_(_race) race = {.rounds = rounds_of(5000), .seed = testing_seed()};
    meeting_init(&race.meeting, 2);
    uint64_t random = race.seed;
    uint32_t wrong_ends = 0;
    pthread_t publisher;
    start_thread(&publisher, CASE_(_put_back_publish), &race);
    for (uint32_t round = 0; round < race.rounds; round++) {
        WAITER_ waiters[WAITS];
        probe probes[WAITS];
        uint32_t ended[WAITS];
        F_(_init)(&race.barrier, 0);
        /* For 3, 3, ..., one for 2, 3, and in the end for 1. */
        for (int i = 0; i < WAITS; i++) {
            BIDE_SEQUENCE target = i == WAITS - 1 ? 1 : i == WAITS - 3 ? 2 : 3;
            if (i == WAITS - 1) {
                meet(&race.meeting);
                random_moment(&random, 20);
            }
            probe_init(&probes[i]);
            ended[i] = probe_await(&probes[i],
                                   F_(_wait_until_published)(&waiters[i], &race.barrier, target));
        }
        meet(&race.meeting);
        for (int i = 0; i < WAITS; i++)
            wrong_ends += ended[i] + probe_ended(&probes[i]) != (waiters[i].target <= 2);
        F_(_publish)(&race.barrier, 3);
        for (int i = 0; i < WAITS; i++)
            wrong_ends += ended[i] + probe_ended(&probes[i]) != 1;
    }
    join_thread(publisher);
    assert_int_equal(wrong_ends, 0);
}

/* The publisher destroys the barrier when its publish has returned and the wait has ended. */
typedef struct CASE_(_destroying) {
    meeting meeting;
    uint32_t rounds;
    uint64_t seed;
    BARRIER_ *barrier;
    probe probe;
    bide_atomic(bool) awaited; /* the call that waits has returned */
} CASE_(_destroying);

static void *CASE_(_destroying_publish)(void *argument)
{
    CASE_(_destroying) *self = argument;
    uint64_t random = self->seed + 1;
    for (uint32_t round = 0; round < self->rounds; round++) {
        meet(&self->meeting);
        random_moment(&random, 20);
        F_(_publish)(self->barrier, 1);
        uint32_t spins = 0;
        /* (If publish and await have both returned, it has ended, or never will.) */
        while (probe_ended(&self->probe) == 0 && !bide_atomic_load(&self->awaited, acquire))
            wait_a_moment(&spins);
        memset((void *)self->barrier, 0x5a, sizeof *self->barrier);
        free(self->barrier);
        meet(&self->meeting);
    }
    return NULL;
}

static void CASE_(_the_barrier_may_be_destroyed_once_its_wait_has_ended)(void **state)
{
    (void)state;
    CASE_(_destroying) shared = {.rounds = rounds_of(5000), .seed = testing_seed()};
    meeting_init(&shared.meeting, 2);
    uint64_t random = shared.seed;
    uint32_t wrong_ends = 0;
    pthread_t publisher;
    start_thread(&publisher, CASE_(_destroying_publish), &shared);
    for (uint32_t round = 0; round < shared.rounds; round++) {
        WAITER_ waiter;
        shared.barrier = aligned_alloc(BIDE_CACHE_LINE, sizeof *shared.barrier);
        assert_non_null(shared.barrier);
        F_(_init)(shared.barrier, 0);
        probe_init(&shared.probe);
        bide_atomic_init(&shared.awaited, false);
        meet(&shared.meeting);
        random_moment(&random, 20);
        if (probe_await(&shared.probe, F_(_wait_until_published)(&waiter, shared.barrier, 1)))
            bide_atomic_fetch_add(&shared.probe.ended, 1, release);
        bide_atomic_store(&shared.awaited, true, release);
        meet(&shared.meeting);
        wrong_ends += probe_ended(&shared.probe) != 1;
    }
    join_thread(publisher);
    assert_int_equal(wrong_ends, 0);
}

/*
 * The publisher's thread, and a waiting thread; one of them closes. Some waiters have enlisted beforehand, so that
 * there is always a list to be sorted and put back.
 */
typedef struct CASE_(_closing) {
    meeting meeting;
    uint32_t rounds;
    uint64_t seed;
    bool by_publisher; /* it closes, after the last publish */
    BARRIER_ barrier;
    uint32_t announced; /* written before the publisher closes */
} CASE_(_closing);

enum {
    CASE_(_closing_publishes) = 3,
    CASE_(_closing_waits) = 13,
    CASE_(_closing_before) = 8 /* of these, enlisted beforehand */
};

static void *CASE_(_closing_publish)(void *argument)
{
    CASE_(_closing) *self = argument;
    uint64_t random = self->seed + 1;
    for (uint32_t round = 0; round < self->rounds; round++) {
        meet(&self->meeting);
        for (BIDE_SEQUENCE i = 1; i <= (BIDE_SEQUENCE)CASE_(_closing_publishes); i++) {
            random_moment(&random, 10);
            F_(_publish)(&self->barrier, i);
        }
        if (self->by_publisher) {
            self->announced = round;
            F_(_close)(&self->barrier);
        }
        meet(&self->meeting);
    }
    return NULL;
}

/* The waits of one round; sets at_once. Returns the number of wrong results. */
static uint32_t CASE_(_closing_wait)(CASE_(_closing) * self, uint64_t *random, uint32_t round,
                                     WAITER_ *waiters, probe *probes, bool *at_once)
{
    uint32_t wrong = 0;
    int closes_before =
        CASE_(_closing_before) +
        (int)(testing_random(random) % (CASE_(_closing_waits) - CASE_(_closing_before)));
    for (int i = 0; i < CASE_(_closing_waits); i++) {
        if (i == CASE_(_closing_before)) {
            meet(&self->meeting);
            random_moment(random, 20);
        }
        if (!self->by_publisher && i == closes_before)
            F_(_close)(&self->barrier);
        /* During the race, some are overtaken by their target, and must sort the list. */
        bool overtaken = i >= CASE_(_closing_before) && testing_random(random) % 2 == 0;
        BIDE_SEQUENCE target = (BIDE_SEQUENCE)(overtaken ? 0 : 1 + testing_random(random) % 6);
        bide_awaiter *awaiter = F_(_wait_until_published)(&waiters[i], &self->barrier, target);
        probe_init(&probes[i]);
        at_once[i] =
            overtaken ? probe_suspend(&probes[i], awaiter) : probe_await(&probes[i], awaiter);
        if (self->by_publisher && at_once[i] &&
            probe_result(&waiters[i].waiting.listed.awaiter) != 0)
            wrong += self->announced != round;
    }
    return wrong;
}

static void CASE_(_run_closing)(bool by_publisher)
{
    CASE_(_closing) shared = {.by_publisher = by_publisher};
    shared.rounds = rounds_of(2000);
    shared.seed = testing_seed();
    meeting_init(&shared.meeting, 2);
    uint64_t random = shared.seed;
    uint32_t wrong_ends = 0, wrong_values = 0;
    pthread_t publisher;
    start_thread(&publisher, CASE_(_closing_publish), &shared);
    for (uint32_t round = 0; round < shared.rounds; round++) {
        WAITER_ waiters[CASE_(_closing_waits)];
        probe probes[CASE_(_closing_waits)];
        bool at_once[CASE_(_closing_waits)];
        F_(_init)(&shared.barrier, 0);
        wrong_values += CASE_(_closing_wait)(&shared, &random, round, waiters, probes, at_once);
        meet(&shared.meeting);
        for (int i = 0; i < CASE_(_closing_waits); i++) {
            wrong_ends += probe_ended(&probes[i]) + (at_once[i] ? 1 : 0) != 1;
            bool reached = waiters[i].target <= waiters[i].published;
            wrong_values +=
                probe_result(&waiters[i].waiting.listed.awaiter) != (reached ? 0 : -EPIPE);
            /* Numbers that the closing thread had published before count. */
            wrong_values +=
                by_publisher && reached != (waiters[i].target <= CASE_(_closing_publishes));
        }
    }
    join_thread(publisher);
    assert_int_equal(wrong_ends, 0);
    assert_int_equal(wrong_values, 0);
}

static void CASE_(_a_close_by_the_publisher_loses_nothing_that_was_published)(void **state)
{
    (void)state;
    CASE_(_run_closing)(true);
}

static void CASE_(_a_close_at_any_moment_ends_each_wait_once)(void **state)
{
    (void)state;
    CASE_(_run_closing)(false);
}
#endif

static int CASE_(_run)(void)
{
    const struct CMUnitTest tests[] = {
        TESTING_CASE(CASE_(_waits_for_7_and_then_11_while_7_and_20_are_published)),
        TESTING_CASE(CASE_(_what_does_not_lie_ahead_is_published_at_once)),
        TESTING_CASE(CASE_(_a_target_at_half_the_range_waits_until_it_is_reached)),
        TESTING_CASE(CASE_(_a_target_at_half_the_range_waits_when_another_waiter_sorts_the_list)),
        TESTING_CASE(CASE_(_a_waiter_that_finds_itself_reached_wakes_others_that_are)),
        TESTING_CASE(CASE_(_each_publish_wakes_those_it_reaches_in_order_of_arrival)),
        TESTING_CASE(CASE_(_waits_go_on_where_the_sequence_wraps)),
        TESTING_CASE(CASE_(_close_ends_who_waits_for_more)),
        TESTING_CASE(CASE_(_a_wait_after_close_ends_by_what_is_published)),
        TESTING_CASE(CASE_(_a_wait_that_finds_the_barrier_shut_ends_by_what_is_published)),
        TESTING_CASE(CASE_(_close_twice_is_close_once)),
        TESTING_CASE(CASE_(_a_wait_that_ends_while_it_suspends_goes_on_by_itself)),
        TESTING_CASE(CASE_(_a_wait_looks_before_it_suspends_while_its_scheduler_is_idle)),
#if TESTING_HOSTED
        TESTING_CASE(CASE_(_no_wake_up_is_lost)),
        TESTING_CASE(CASE_(_no_wake_up_is_lost_of_those_that_a_waiter_puts_back)),
        TESTING_CASE(CASE_(_the_barrier_may_be_destroyed_once_its_wait_has_ended)),
        TESTING_CASE(CASE_(_a_close_by_the_publisher_loses_nothing_that_was_published)),
        TESTING_CASE(CASE_(_a_close_at_any_moment_ends_each_wait_once)),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#undef BARRIER_
#undef WAITER_
#undef F_
#undef TRAIT_
#undef CASE_
#undef HALF_
#undef FOR_EACH_BASE_

/* The cases of sequence_group_test.c for one type of sequence; included there once for each. */

#define BARRIER_         PASTE2(bide_sequence_barrier, BIDE_SEQUENCE_BITS)
#define BARRIER_F_(name) PASTE3(bide_sequence_barrier, BIDE_SEQUENCE_BITS, name)
#define GROUP_           PASTE2(bide_sequence_group, BIDE_SEQUENCE_BITS)
#define WAITER_          PASTE2(bide_sequence_group_waiter, BIDE_SEQUENCE_BITS)
#define F_(name)         PASTE3(bide_sequence_group, BIDE_SEQUENCE_BITS, name)
#define CASE_(name)      PASTE3(group, BIDE_SEQUENCE_BITS, name)
#define HALF_            ((BIDE_SEQUENCE)((BIDE_SEQUENCE)-1 / 2 + 1))

/* A group of three, and a coroutine that waits for it once. */
typedef struct CASE_(_fixture) {
    by_hand by_hand;
    BARRIER_ barriers[3];
    BARRIER_ *members[3];
    GROUP_ group;
} CASE_(_fixture);

typedef struct CASE_(_wait) {
    bide_task task;
    CASE_(_fixture) * fixture;
    BIDE_SEQUENCE target;
    int status;
    WAITER_ wait;
} CASE_(_wait);

TESTING_COROUTINE(CASE_(_wait_body))
{
    bide_begin(CASE_(_wait_body), CASE_(_wait) * self);
    bide_await_status(self->status,
                      F_(_wait_until_published)(&self->wait, &self->fixture->group, self->target));
    by_hand_note(&self->fixture->by_hand, 'w');
    bide_end();
}

static void CASE_(_init)(CASE_(_fixture) * fixture, BIDE_SEQUENCE initial)
{
    by_hand_init(&fixture->by_hand);
    for (int i = 0; i < 3; i++) {
        BARRIER_F_(_init)(&fixture->barriers[i], initial);
        fixture->members[i] = &fixture->barriers[i];
    }
    F_(_init)(&fixture->group, fixture->members, 3);
}

static void CASE_(_begin)(CASE_(_wait) * wait, CASE_(_fixture) * fixture, BIDE_SEQUENCE target)
{
    wait->fixture = fixture;
    wait->target = target;
    wait->status = 1;
    bide_await_later(bide_task_init(&wait->task, &CASE_(_wait_body)));
    by_hand_begin(&fixture->by_hand, &wait->task);
}

static void CASE_(_assert_ended)(CASE_(_wait) * wait, int status, BIDE_SEQUENCE published)
{
    assert_true(bide_done(&wait->task.frame));
    assert_int_equal(wait->status, status);
    assert_true(wait->wait.published == published);
    by_hand_assert_trace(&wait->fixture->by_hand, "w");
}

static void CASE_(_waits_for_the_slowest_in_whatever_order_they_come)(void **state)
{
    (void)state;
    static const int orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                     {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    const BIDE_SEQUENCE bases[] = {0, (BIDE_SEQUENCE)-3, HALF_ - 2, (BIDE_SEQUENCE)-1};
    for (int b = 0; b < 4; b++) {
        for (int o = 0; o < 6; o++) {
            CASE_(_fixture) fixture;
            CASE_(_wait) wait;
            CASE_(_init)(&fixture, bases[b]);
            BIDE_SEQUENCE target = (BIDE_SEQUENCE)(bases[b] + 5);
            CASE_(_begin)(&wait, &fixture, target);
            for (int i = 0; i < 3; i++) {
                BARRIER_ *barrier = fixture.members[orders[o][i]];
                BARRIER_F_(_publish)(barrier, (BIDE_SEQUENCE)(target - 1));
                by_hand_run(&fixture.by_hand);
                assert_false(bide_done(&wait.task.frame));
                /* The first to come goes 3 past the target, the next 2, the last 1. */
                BARRIER_F_(_publish)(barrier, (BIDE_SEQUENCE)(target + 3 - i));
                by_hand_run(&fixture.by_hand);
                assert_int_equal(bide_done(&wait.task.frame), i == 2);
            }
            CASE_(_assert_ended)(&wait, 0, (BIDE_SEQUENCE)(target + 1));
        }
    }
}

static void CASE_(_the_result_is_what_the_slowest_has_published_by_then)(void **state)
{
    (void)state;
    CASE_(_fixture) fixture;
    CASE_(_wait) wait;
    CASE_(_init)(&fixture, (BIDE_SEQUENCE)-1);
    CASE_(_begin)(&wait, &fixture, 4);
    BARRIER_F_(_publish)(fixture.members[0], 4);
    by_hand_run(&fixture.by_hand);
    BARRIER_F_(_publish)(fixture.members[1], 7);
    by_hand_run(&fixture.by_hand);
    BARRIER_F_(_publish)(fixture.members[0], 9); /* advances while another is waited for */
    assert_int_equal(by_hand_run(&fixture.by_hand), 0);
    BARRIER_F_(_publish)(fixture.members[2], 8);
    by_hand_run(&fixture.by_hand);
    CASE_(_assert_ended)(&wait, 0, 7);
}

static void CASE_(_what_all_have_published_ends_without_suspending)(void **state)
{
    (void)state;
    CASE_(_fixture) fixture;
    CASE_(_wait) wait;
    CASE_(_init)(&fixture, (BIDE_SEQUENCE)-2);
    BARRIER_F_(_publish)(fixture.members[0], 3);
    BARRIER_F_(_publish)(fixture.members[1], 1);
    BARRIER_F_(_publish)(fixture.members[2], 2);
    const BIDE_SEQUENCE targets[] = {1, 0, (BIDE_SEQUENCE)-1, (BIDE_SEQUENCE)-2,
                                     (BIDE_SEQUENCE)(1 - HALF_ + 4)};
    for (int i = 0; i < 5; i++) {
        WAITER_ waiter;
        bide_awaiter *awaiter = F_(_wait_until_published)(&waiter, &fixture.group, targets[i]);
        assert_true(awaiter->ops->ready(awaiter));
        CASE_(_begin)(&wait, &fixture, targets[i]);
        CASE_(_assert_ended)(&wait, 0, 1);
        BIDE_SEQUENCE published;
        assert_true(F_(_is_published)(&fixture.group, targets[i], &published));
        assert_true(published == 1);
    }
    assert_int_equal(fixture.by_hand.posted, 0);
    BIDE_SEQUENCE published;
    assert_false(F_(_is_published)(&fixture.group, 2, &published));
    assert_false(F_(_is_published)(&fixture.group, 4, &published));
    assert_false(F_(_is_published)(&fixture.group, 1 + HALF_, &published));
}

static void CASE_(_a_target_at_half_the_range_waits)(void **state)
{
    (void)state;
    CASE_(_fixture) fixture;
    CASE_(_wait) wait;
    CASE_(_init)(&fixture, 0);
    CASE_(_begin)(&wait, &fixture, HALF_);
    for (int i = 0; i < 3; i++) {
        BARRIER_F_(_publish)(fixture.members[i], HALF_ - 1);
        by_hand_run(&fixture.by_hand);
        assert_false(bide_done(&wait.task.frame));
        BARRIER_F_(_publish)(fixture.members[i], HALF_);
        by_hand_run(&fixture.by_hand);
    }
    CASE_(_assert_ended)(&wait, 0, HALF_);
}

static void CASE_(_a_member_closed_before_the_target_ends_the_wait)(void **state)
{
    (void)state;
    for (int closed = 0; closed < 3; closed++) {
        for (int before = 0; before < 2; before++) {
            CASE_(_fixture) fixture;
            CASE_(_wait) wait;
            CASE_(_init)(&fixture, 0);
            BARRIER_F_(_publish)(fixture.members[closed], 4);
            if (before)
                BARRIER_F_(_close)(fixture.members[closed]);
            for (int i = 0; i < 3; i++) {
                if (i != closed)
                    BARRIER_F_(_publish)(fixture.members[i], 6);
            }
            CASE_(_begin)(&wait, &fixture, 5);
            if (!before) {
                assert_false(bide_done(&wait.task.frame));
                BARRIER_F_(_close)(fixture.members[closed]);
                by_hand_run(&fixture.by_hand);
            }
            CASE_(_assert_ended)(&wait, -EPIPE, 4);
        }
    }
}

static void CASE_(_a_member_closed_at_the_target_does_no_harm)(void **state)
{
    (void)state;
    CASE_(_fixture) fixture;
    CASE_(_wait) wait;
    CASE_(_init)(&fixture, 0);
    BARRIER_F_(_publish)(fixture.members[0], 5);
    BARRIER_F_(_close)(fixture.members[0]);
    CASE_(_begin)(&wait, &fixture, 5);
    BARRIER_F_(_publish)(fixture.members[1], 5);
    BARRIER_F_(_publish)(fixture.members[2], 6);
    BARRIER_F_(_close)(fixture.members[2]);
    by_hand_run(&fixture.by_hand);
    CASE_(_assert_ended)(&wait, 0, 5);
    CASE_(_begin)(&wait, &fixture, 5);
    CASE_(_assert_ended)(&wait, 0, 5);
}

static void CASE_(_for_a_group_of_none_everything_is_published)(void **state)
{
    (void)state;
    CASE_(_fixture) fixture;
    CASE_(_wait) wait;
    CASE_(_init)(&fixture, 0);
    F_(_init)(&fixture.group, NULL, 0);
    const BIDE_SEQUENCE targets[] = {0, 1, HALF_, (BIDE_SEQUENCE)-1};
    for (int i = 0; i < 4; i++) {
        CASE_(_begin)(&wait, &fixture, targets[i]);
        CASE_(_assert_ended)(&wait, 0, targets[i]);
    }
    assert_int_equal(fixture.by_hand.posted, 0);
}

/*
 * Two publishers and two readers, each on a thread. Publisher p writes numbers into its ring and publishes
 * them. A reader reads both rings up to the slower publisher, and publishes its position on its own
 * barrier. The publishers wait for both readers before they write a slot again.
 */
enum { CASE_(_slots) = 16 };

typedef struct CASE_(_crossing) {
    BARRIER_ published[2];
    BARRIER_ read[2];
    BARRIER_ *published_members[2];
    BARRIER_ *read_members[2];
    GROUP_ all_published, all_read;
    uint32_t slots[2][CASE_(_slots)];
    uint32_t count;
    uint64_t seed;
} CASE_(_crossing);

typedef struct CASE_(_crossing_thread) {
    CASE_(_crossing) * crossing;
    int number;
    uint32_t wrong;
    pthread_t thread;
} CASE_(_crossing_thread);

static void *CASE_(_crossing_publish)(void *argument)
{
    CASE_(_crossing_thread) *self = argument;
    CASE_(_crossing) *crossing = self->crossing;
    uint64_t random = crossing->seed + (uint64_t)self->number;
    for (uint32_t i = 1; i <= crossing->count; i++) {
        WAITER_ waiter;
        BIDE_SEQUENCE sequence = (BIDE_SEQUENCE)i;
        if (bide_sync_wait(F_(_wait_until_published)(
                &waiter, &crossing->all_read, (BIDE_SEQUENCE)(sequence - CASE_(_slots)))) != 0)
            self->wrong++;
        crossing->slots[self->number][i % CASE_(_slots)] = i * 2 + (uint32_t)self->number;
        random_moment(&random, 10);
        BARRIER_F_(_publish)(&crossing->published[self->number], sequence);
    }
    BARRIER_F_(_close)(&crossing->published[self->number]);
    return NULL;
}

static void *CASE_(_crossing_read)(void *argument)
{
    CASE_(_crossing_thread) *self = argument;
    CASE_(_crossing) *crossing = self->crossing;
    uint32_t next = 1;
    for (;;) {
        WAITER_ waiter;
        int status = bide_sync_wait(
            F_(_wait_until_published)(&waiter, &crossing->all_published, (BIDE_SEQUENCE)next));
        if (status != 0) {
            self->wrong += status != -EPIPE || next != crossing->count + 1;
            break;
        }
        BIDE_SEQUENCE many = (BIDE_SEQUENCE)(waiter.published - (BIDE_SEQUENCE)next + 1);
        self->wrong += many < 1 || many > CASE_(_slots);
        for (; many != 0; many--, next++) {
            for (uint32_t p = 0; p < 2; p++)
                self->wrong += crossing->slots[p][next % CASE_(_slots)] != next * 2 + p;
        }
        BARRIER_F_(_publish)(&crossing->read[self->number], (BIDE_SEQUENCE)(next - 1));
    }
    return NULL;
}

static void CASE_(_readers_behind_two_publishers_see_what_both_have_written)(void **state)
{
    (void)state;
    CASE_(_crossing) crossing = {.count = rounds_of(4000), .seed = testing_seed()};
    for (int i = 0; i < 2; i++) {
        BARRIER_F_(_init)(&crossing.published[i], 0);
        BARRIER_F_(_init)(&crossing.read[i], 0);
        crossing.published_members[i] = &crossing.published[i];
        crossing.read_members[i] = &crossing.read[i];
    }
    F_(_init)(&crossing.all_published, crossing.published_members, 2);
    F_(_init)(&crossing.all_read, crossing.read_members, 2);
    CASE_(_crossing_thread) threads[4];
    for (int i = 0; i < 4; i++) {
        threads[i].crossing = &crossing;
        threads[i].number = i % 2;
        threads[i].wrong = 0;
        start_thread(&threads[i].thread, i < 2 ? CASE_(_crossing_publish) : CASE_(_crossing_read),
                     &threads[i]);
    }
    for (int i = 0; i < 4; i++)
        join_thread(threads[i].thread);
    for (int i = 0; i < 4; i++)
        assert_int_equal(threads[i].wrong, 0);
}

static int CASE_(_run)(void)
{
    const struct CMUnitTest tests[] = {
        TESTING_CASE(CASE_(_waits_for_the_slowest_in_whatever_order_they_come)),
        TESTING_CASE(CASE_(_the_result_is_what_the_slowest_has_published_by_then)),
        TESTING_CASE(CASE_(_what_all_have_published_ends_without_suspending)),
        TESTING_CASE(CASE_(_a_target_at_half_the_range_waits)),
        TESTING_CASE(CASE_(_a_member_closed_before_the_target_ends_the_wait)),
        TESTING_CASE(CASE_(_a_member_closed_at_the_target_does_no_harm)),
        TESTING_CASE(CASE_(_for_a_group_of_none_everything_is_published)),
        TESTING_CASE(CASE_(_readers_behind_two_publishers_see_what_both_have_written)),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#undef BARRIER_
#undef BARRIER_F_
#undef GROUP_
#undef WAITER_
#undef F_
#undef CASE_
#undef HALF_

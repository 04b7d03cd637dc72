/* The cases of sequence_group_members_test.c for one type of sequence; included there once for each. */

#define BARRIER_         PASTE2(bide_sequence_barrier, BIDE_SEQUENCE_BITS)
#define BARRIER_F_(name) PASTE3(bide_sequence_barrier, BIDE_SEQUENCE_BITS, name)
#define GROUP_           PASTE2(bide_sequence_group, BIDE_SEQUENCE_BITS)
#define MEMBER_          PASTE2(bide_sequence_group_member, BIDE_SEQUENCE_BITS)
#define LEAVER_          PASTE2(bide_sequence_group_leaver, BIDE_SEQUENCE_BITS)
#define WAITER_          PASTE2(bide_sequence_group_waiter, BIDE_SEQUENCE_BITS)
#define F_(name)         PASTE3(bide_sequence_group, BIDE_SEQUENCE_BITS, name)
#define CASE_(name)      PASTE3(members, BIDE_SEQUENCE_BITS, name)

enum { CASE_(_most) = 3 };

/* A group, three possible members, and the published numbers at the head of all. */
typedef struct CASE_(_fixture) {
    by_hand by_hand;
    GROUP_ group;
    BARRIER_ head;
    BARRIER_ barriers[CASE_(_most)];
    MEMBER_ members[CASE_(_most)];
} CASE_(_fixture);

/* A coroutine with a stop source of its own that waits for the group, once. */
typedef struct CASE_(_wait) {
    bide_task task;
    CASE_(_fixture) * fixture;
    BIDE_SEQUENCE target;
    int status;
    WAITER_ wait;
    bide_stop_source stop;
    bide_context context;
} CASE_(_wait);

TESTING_COROUTINE(CASE_(_wait_body))
{
    bide_begin(CASE_(_wait_body), CASE_(_wait) * self);
    bide_await_status(self->status,
                      F_(_wait_until_published)(&self->wait, &self->fixture->group, self->target));
    by_hand_note(&self->fixture->by_hand, 'w');
    bide_end();
}

/* And one that leaves. */
typedef struct CASE_(_leaving) {
    bide_task task;
    CASE_(_fixture) * fixture;
    int which;
    int status;
    LEAVER_ leaver;
    bide_stop_source stop;
    bide_context context;
} CASE_(_leaving);

TESTING_COROUTINE(CASE_(_leaving_body))
{
    bide_begin(CASE_(_leaving_body), CASE_(_leaving) * self);
    bide_await_status(self->status, F_(_leave)(&self->leaver, &self->fixture->group,
                                               &self->fixture->members[self->which]));
    by_hand_note(&self->fixture->by_hand, (char)('0' + self->which));
    bide_end();
}

static void CASE_(_start)(CASE_(_fixture) * fixture, bide_task *task, const bide_point *body,
                          bide_context *context, bide_stop_source *stop)
{
    *context = fixture->by_hand.context;
    context->stop = stop;
    bide_stop_source_init(stop);
    bide_start(&task->frame, body, context);
    bide_resume(&task->frame);
}

static void CASE_(_init)(CASE_(_fixture) * fixture, BIDE_SEQUENCE initial, int joined)
{
    by_hand_init(&fixture->by_hand);
    BARRIER_F_(_init)(&fixture->head, initial);
    F_(_init)(&fixture->group, NULL, 0);
    for (int i = 0; i < joined; i++)
        F_(_join)(&fixture->group, &fixture->members[i], &fixture->barriers[i], &fixture->head);
}

static void CASE_(_begin)(CASE_(_wait) * wait, CASE_(_fixture) * fixture, BIDE_SEQUENCE target)
{
    wait->fixture = fixture;
    wait->target = target;
    wait->status = 1;
    CASE_(_start)(fixture, &wait->task, &CASE_(_wait_body), &wait->context, &wait->stop);
}

static void CASE_(_leave)(CASE_(_leaving) * leaving, CASE_(_fixture) * fixture, int which)
{
    leaving->fixture = fixture;
    leaving->which = which;
    leaving->status = 1;
    CASE_(_start)
    (fixture, &leaving->task, &CASE_(_leaving_body), &leaving->context, &leaving->stop);
}

static void CASE_(_assert_ended)(CASE_(_wait) * wait, int status, BIDE_SEQUENCE published)
{
    assert_true(bide_done(&wait->task.frame));
    assert_int_equal(wait->status, status);
    assert_true(wait->wait.published == published);
}

/* Members that have joined and left are forgotten. */
static void CASE_(_assert_empty)(CASE_(_fixture) * fixture)
{
    assert_null(bide_atomic_load(&fixture->group.first, relaxed));
    assert_int_equal(bide_atomic_load(&fixture->group.lock, relaxed), 0);
}

static const BIDE_SEQUENCE CASE_(_bases)[] = {0, (BIDE_SEQUENCE)-3, (BIDE_SEQUENCE)-1 / 2 - 1,
                                              (BIDE_SEQUENCE)-1};

static void CASE_(_a_joiner_begins_where_the_head_is)(void **state)
{
    (void)state;
    for (int b = 0; b < 4; b++) {
        CASE_(_fixture) fixture;
        BIDE_SEQUENCE base = CASE_(_bases)[b], published;
        CASE_(_init)(&fixture, base, 0);
        BARRIER_F_(_publish)(&fixture.head, (BIDE_SEQUENCE)(base + 5));
        assert_true(F_(_join)(&fixture.group, &fixture.members[0], &fixture.barriers[0],
                              &fixture.head) == (BIDE_SEQUENCE)(base + 5));
        /* It ignores earlier numbers, and is waited for at later ones. */
        assert_true(F_(_is_published)(&fixture.group, (BIDE_SEQUENCE)(base + 2), &published));
        assert_true(published == (BIDE_SEQUENCE)(base + 5));
        assert_false(F_(_is_published)(&fixture.group, (BIDE_SEQUENCE)(base + 6), &published));
        BARRIER_F_(_publish)(&fixture.barriers[0], (BIDE_SEQUENCE)(base + 6));
        assert_true(F_(_is_published)(&fixture.group, (BIDE_SEQUENCE)(base + 6), &published));
        assert_true(published == (BIDE_SEQUENCE)(base + 6));
    }
}

static BIDE_SEQUENCE CASE_(_start_of)(void *argument)
{
    return *(BIDE_SEQUENCE *)argument;
}

static void CASE_(_a_joiner_begins_where_it_is_told)(void **state)
{
    (void)state;
    CASE_(_fixture) fixture;
    BIDE_SEQUENCE claimed = 77, published;
    CASE_(_init)(&fixture, 0, 0);
    assert_true(F_(_join_from)(&fixture.group, &fixture.members[0], &fixture.barriers[0],
                               CASE_(_start_of), &claimed) == 77);
    assert_true(BARRIER_F_(_last_published)(&fixture.barriers[0]) == 77);
    assert_true(F_(_is_published)(&fixture.group, 70, &published));
    assert_true(published == 77);
    assert_false(F_(_is_published)(&fixture.group, 78, &published));
}

static void CASE_(_a_barrier_is_added_as_it_stands)(void **state)
{
    (void)state;
    CASE_(_fixture) fixture;
    BIDE_SEQUENCE published;
    CASE_(_init)(&fixture, 9, 0);
    for (size_t i = 0; i < (size_t)CASE_(_most); i++) {
        BARRIER_F_(_init)(&fixture.barriers[i], (BIDE_SEQUENCE)(3 + i));
        F_(_add)(&fixture.group, &fixture.members[i], &fixture.barriers[i]);
    }
    assert_true(F_(_is_published)(&fixture.group, 2, &published));
    assert_true(published == 3);
    assert_false(F_(_is_published)(&fixture.group, 4, &published));
}

/* A member that joins during the wait is waited for too, before or after the first one. */
static void CASE_(_a_wait_includes_who_joins_meanwhile)(void **state)
{
    (void)state;
    for (int fixed = 0; fixed < 2; fixed++) {
        CASE_(_fixture) fixture;
        CASE_(_wait) wait;
        BARRIER_ *all[] = {&fixture.barriers[0]};
        CASE_(_init)(&fixture, 0, 1);
        if (fixed) { /* the same, but it did not join */
            F_(_remove)(&fixture.group, &fixture.members[0]);
            F_(_init)(&fixture.group, all, 1);
        }
        CASE_(_begin)(&wait, &fixture, 5);
        BARRIER_F_(_publish)(&fixture.head, 3);
        F_(_join)(&fixture.group, &fixture.members[1], &fixture.barriers[1], &fixture.head);
        BARRIER_F_(_publish)(&fixture.barriers[0], 8);
        by_hand_run(&fixture.by_hand);
        assert_false(bide_done(&wait.task.frame));
        BARRIER_F_(_publish)(&fixture.barriers[1], 4);
        assert_int_equal(by_hand_run(&fixture.by_hand), 0);
        BARRIER_F_(_publish)(&fixture.barriers[1], 6);
        by_hand_run(&fixture.by_hand);
        CASE_(_assert_ended)(&wait, 0, 6);
    }
}

static void CASE_(_the_slowest_is_waited_for_first)(void **state)
{
    (void)state;
    for (int slowest = 0; slowest < 3; slowest++) {
        CASE_(_fixture) fixture;
        CASE_(_wait) wait;
        CASE_(_init)(&fixture, (BIDE_SEQUENCE)-4, 3);
        for (int i = 0; i < 3; i++)
            BARRIER_F_(_publish)(&fixture.barriers[i], i == slowest ? (BIDE_SEQUENCE)-3 : 0);
        CASE_(_begin)(&wait, &fixture, 2);
        for (int i = 0; i < 3; i++) {
            if (i != slowest)
                BARRIER_F_(_publish)(&fixture.barriers[i], 4);
        }
        assert_int_equal(by_hand_run(&fixture.by_hand), 0); /* nobody is woken for the others */
        BARRIER_F_(_publish)(&fixture.barriers[slowest], 2);
        assert_int_equal(by_hand_run(&fixture.by_hand), 1);
        CASE_(_assert_ended)(&wait, 0, 2);
    }
}

static void CASE_(_who_is_not_waited_for_leaves_at_once)(void **state)
{
    (void)state;
    /* In whichever order they go. */
    static const int orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                     {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    for (int o = 0; o < 6; o++) {
        CASE_(_fixture) fixture;
        BIDE_SEQUENCE published;
        CASE_(_init)(&fixture, 10, 3);
        /* The first to leave is at 11, the next at 12, the last at 13. */
        for (size_t i = 0; i < 3; i++)
            BARRIER_F_(_publish)(&fixture.barriers[orders[o][i]], (BIDE_SEQUENCE)(11 + i));
        for (int i = 0; i < 3; i++) {
            assert_true(F_(_is_published)(&fixture.group, 11, &published));
            assert_true(published == (BIDE_SEQUENCE)(11 + i));
            assert_false(F_(_is_published)(&fixture.group, 14, &published));
            CASE_(_leaving) leaving;
            CASE_(_leave)(&leaving, &fixture, orders[o][i]);
            assert_true(bide_done(&leaving.task.frame));
            assert_int_equal(leaving.status, 0);
            /* Its memory may go. */
            memset(&fixture.members[orders[o][i]], 0xab, sizeof fixture.members[0]);
            memset(&fixture.barriers[orders[o][i]], 0xab, sizeof fixture.barriers[0]);
        }
        CASE_(_assert_empty)(&fixture);
        assert_true(F_(_is_published)(&fixture.group, 200, &published));
        assert_true(published == 200);
    }
}

static void CASE_(_a_wait_turns_to_the_others_when_one_leaves)(void **state)
{
    (void)state;
    for (int reached = 0; reached < 2; reached++) {
        CASE_(_fixture) fixture;
        CASE_(_wait) waits[2];
        CASE_(_leaving) leaving;
        CASE_(_init)(&fixture, (BIDE_SEQUENCE)-2, 2);
        BARRIER_F_(_publish)(&fixture.barriers[1], reached ? 3 : 0);
        for (size_t i = 0; i < 2; i++)
            CASE_(_begin)(&waits[i], &fixture, (BIDE_SEQUENCE)(1 + i));
        assert_false(F_(_try_leave)(&fixture.group, &fixture.members[0]));
        CASE_(_leave)(&leaving, &fixture, 0);
        assert_false(bide_done(&leaving.task.frame)); /* the waiters have not run */
        by_hand_run(&fixture.by_hand);
        assert_true(bide_done(&leaving.task.frame));
        assert_int_equal(leaving.status, 0);
        if (!reached) {
            by_hand_assert_trace(&fixture.by_hand, "0");
            memset(&fixture.members[0], 0xab, sizeof fixture.members[0]);
            memset(&fixture.barriers[0], 0xab, sizeof fixture.barriers[0]);
            assert_false(bide_done(&waits[0].task.frame));
            BARRIER_F_(_publish)(&fixture.barriers[1], 3);
            by_hand_run(&fixture.by_hand);
            by_hand_assert_trace(&fixture.by_hand, "ww");
        }
        for (int i = 0; i < 2; i++)
            CASE_(_assert_ended)(&waits[i], 0, 3);
        assert_true(F_(_try_leave)(&fixture.group, &fixture.members[1]));
        CASE_(_assert_empty)(&fixture);
    }
}

static void CASE_(_when_all_have_left_everything_is_published)(void **state)
{
    (void)state;
    CASE_(_fixture) fixture;
    CASE_(_wait) wait;
    CASE_(_leaving) leavings[3];
    CASE_(_init)(&fixture, 0, 3);
    CASE_(_begin)(&wait, &fixture, 100);
    for (int i = 0; i < 3; i++) {
        CASE_(_leave)(&leavings[i], &fixture, i);
        by_hand_run(&fixture.by_hand);
        assert_true(bide_done(&leavings[i].task.frame));
        assert_int_equal(bide_done(&wait.task.frame), i == 2);
    }
    CASE_(_assert_ended)(&wait, 0, 100);
    CASE_(_assert_empty)(&fixture);
}

/* A member that has left rejoins, and starts again: in the same memory, during the same wait. */
static void CASE_(_who_has_left_may_join_again)(void **state)
{
    (void)state;
    CASE_(_fixture) fixture;
    CASE_(_wait) wait;
    CASE_(_leaving) leaving;
    CASE_(_init)(&fixture, (BIDE_SEQUENCE)-2, 2);
    BARRIER_F_(_publish)(&fixture.barriers[1], (BIDE_SEQUENCE)-1);
    CASE_(_begin)(&wait, &fixture, 4);
    for (BIDE_SEQUENCE i = 0; i < 3; i++) {
        CASE_(_leave)(&leaving, &fixture, 0);
        by_hand_run(&fixture.by_hand);
        assert_true(bide_done(&leaving.task.frame));
        BARRIER_F_(_publish)(&fixture.head, i);
        assert_true(F_(_join)(&fixture.group, &fixture.members[0], &fixture.barriers[0],
                              &fixture.head) == i);
        BARRIER_F_(_publish)(&fixture.barriers[1], (BIDE_SEQUENCE)(i + 1));
        by_hand_run(&fixture.by_hand);
    }
    assert_false(bide_done(&wait.task.frame));
    BARRIER_F_(_publish)(&fixture.barriers[1], 5);
    by_hand_run(&fixture.by_hand);
    assert_false(bide_done(&wait.task.frame));
    BARRIER_F_(_publish)(&fixture.barriers[0], 4);
    by_hand_run(&fixture.by_hand);
    CASE_(_assert_ended)(&wait, 0, 4);
}

static void CASE_(_a_member_that_closes_and_stays_ends_the_wait)(void **state)
{
    (void)state;
    for (int closed = 0; closed < 3; closed++) {
        for (int when = 0; when < 2; when++) {
            CASE_(_fixture) fixture;
            CASE_(_wait) wait;
            CASE_(_init)(&fixture, 0, 3);
            BARRIER_F_(_publish)(&fixture.barriers[closed], 4);
            /* The close is noticed at the beginning, whichever member it is ... */
            if (when == 0)
                BARRIER_F_(_close)(&fixture.barriers[closed]);
            CASE_(_begin)(&wait, &fixture, 5);
            /* ... or when the slowest advances, though another is behind still. */
            if (when == 1) {
                int slowest = closed == 2 ? 1 : 2; /* the last to arrive, of those at 0 */
                assert_false(bide_done(&wait.task.frame));
                BARRIER_F_(_close)(&fixture.barriers[closed]);
                assert_int_equal(by_hand_run(&fixture.by_hand), 0);
                BARRIER_F_(_publish)(&fixture.barriers[slowest], 5);
                by_hand_run(&fixture.by_hand);
            }
            CASE_(_assert_ended)(&wait, -EPIPE, 4);
            for (int i = 0; i < 3; i++)
                assert_true(F_(_try_leave)(&fixture.group, &fixture.members[i]));
            CASE_(_assert_empty)(&fixture);
        }
    }
}

static void CASE_(_a_member_that_closes_after_the_target_does_no_harm)(void **state)
{
    (void)state;
    CASE_(_fixture) fixture;
    CASE_(_wait) wait;
    CASE_(_init)(&fixture, 0, 2);
    CASE_(_begin)(&wait, &fixture, 5);
    for (int i = 0; i < 2; i++) {
        BARRIER_F_(_publish)(&fixture.barriers[i], 5);
        BARRIER_F_(_close)(&fixture.barriers[i]);
    }
    by_hand_run(&fixture.by_hand);
    CASE_(_assert_ended)(&wait, 0, 5);
}

static void CASE_(_a_wait_that_is_cut_short_lets_go)(void **state)
{
    (void)state;
    static const int reasons[] = {-ECANCELED, -ETIMEDOUT};
    for (int r = 0; r < 2; r++) {
        CASE_(_fixture) fixture;
        CASE_(_wait) waits[2];
        CASE_(_init)(&fixture, 0, 1);
        for (int i = 0; i < 2; i++)
            CASE_(_begin)(&waits[i], &fixture, 5);
        BARRIER_F_(_publish)(&fixture.barriers[0], 2);
        bide_stop_request_with(&waits[0].stop, reasons[r]);
        by_hand_run(&fixture.by_hand);
        CASE_(_assert_ended)(&waits[0], reasons[r], 2);
        assert_false(bide_done(&waits[1].task.frame));
        assert_false(F_(_try_leave)(&fixture.group, &fixture.members[0])); /* the other has it */
        by_hand_run(&fixture.by_hand);
        CASE_(_assert_ended)(&waits[1], 0, 5);
        assert_true(F_(_try_leave)(&fixture.group, &fixture.members[0]));
    }
}

/*
 * The state of the wait when its coroutine is destroyed: waiting, or about to move to another member because
 * its own has left or has published.
 */
static void CASE_(_a_destroyed_wait_lets_go)(void **state)
{
    (void)state;
    for (int when = 0; when < 3; when++) {
        CASE_(_fixture) fixture;
        CASE_(_wait) wait;
        CASE_(_leaving) leaving;
        CASE_(_init)(&fixture, 0, 2);
        BARRIER_F_(_publish)(&fixture.barriers[1], 1);
        CASE_(_begin)(&wait, &fixture, 5);
        if (when == 2)
            BARRIER_F_(_publish)(&fixture.barriers[0], 5);
        if (when != 0)
            CASE_(_leave)(&leaving, &fixture, 0);
        bide_destroy(&wait.task.frame);
        assert_int_equal(wait.status, 1);
        by_hand_run(&fixture.by_hand);
        if (when == 0)
            CASE_(_leave)(&leaving, &fixture, 0);
        assert_true(bide_done(&leaving.task.frame));
        by_hand_assert_trace(&fixture.by_hand, "0");
        assert_true(F_(_try_leave)(&fixture.group, &fixture.members[1]));
        CASE_(_assert_empty)(&fixture);
    }
}

static void CASE_(_a_destroyed_leaver_can_leave_again)(void **state)
{
    (void)state;
    CASE_(_fixture) fixture;
    CASE_(_wait) wait;
    CASE_(_leaving) leaving;
    CASE_(_init)(&fixture, 0, 1);
    CASE_(_begin)(&wait, &fixture, 5);
    CASE_(_leave)(&leaving, &fixture, 0);
    bide_destroy(&leaving.task.frame);
    assert_false(F_(_try_leave)(&fixture.group, &fixture.members[0]));
    by_hand_run(&fixture.by_hand);
    by_hand_assert_trace(&fixture.by_hand, "w");
    assert_true(F_(_try_leave)(&fixture.group, &fixture.members[0]));
}

static void CASE_(_who_is_asked_to_stop_can_leave)(void **state)
{
    (void)state;
    CASE_(_fixture) fixture;
    CASE_(_wait) wait;
    CASE_(_leaving) leaving;
    CASE_(_init)(&fixture, 0, 1);
    CASE_(_begin)(&wait, &fixture, 5);
    CASE_(_leave)(&leaving, &fixture, 0);
    bide_stop_request(&leaving.stop);
    assert_false(bide_done(&leaving.task.frame));
    by_hand_run(&fixture.by_hand);
    assert_true(bide_done(&leaving.task.frame));
    assert_int_equal(leaving.status, 0);
    CASE_(_assert_ended)(&wait, 0, 5);
}

/* One barrier in two groups: closing it is no failure. */
static void CASE_(_a_barrier_in_two_groups_leaves_both)(void **state)
{
    (void)state;
    CASE_(_fixture) fixtures[2];
    CASE_(_wait) waits[2];
    CASE_(_init)(&fixtures[0], 0, 1);
    CASE_(_init)(&fixtures[1], 0, 0);
    MEMBER_ *second = &fixtures[1].members[0];
    BARRIER_ *barrier = &fixtures[0].barriers[0];
    F_(_add)(&fixtures[1].group, second, barrier);
    for (int i = 0; i < 2; i++)
        CASE_(_begin)(&waits[i], &fixtures[i], 5);
    F_(_remove)(&fixtures[0].group, &fixtures[0].members[0]);
    F_(_remove)(&fixtures[1].group, second);
    BIDE_SEQUENCE published;
    for (int i = 0; i < 2; i++) {
        assert_true(F_(_is_published)(&fixtures[i].group, 5, &published));
        assert_false(bide_done(&waits[i].task.frame));
    }
    assert_false(F_(_try_leave)(&fixtures[0].group, &fixtures[0].members[0]));
    assert_false(F_(_try_leave)(&fixtures[1].group, second));
    for (int i = 0; i < 2; i++) {
        by_hand_run(&fixtures[i].by_hand);
        CASE_(_assert_ended)(&waits[i], 0, 5);
        CASE_(_assert_empty)(&fixtures[i]);
    }
    assert_true(F_(_try_leave)(&fixtures[0].group, &fixtures[0].members[0]));
    assert_true(F_(_try_leave)(&fixtures[1].group, second));
}

static int CASE_(_run)(void)
{
    const struct CMUnitTest tests[] = {
        TESTING_CASE(CASE_(_a_joiner_begins_where_the_head_is)),
        TESTING_CASE(CASE_(_a_joiner_begins_where_it_is_told)),
        TESTING_CASE(CASE_(_a_barrier_is_added_as_it_stands)),
        TESTING_CASE(CASE_(_a_wait_includes_who_joins_meanwhile)),
        TESTING_CASE(CASE_(_the_slowest_is_waited_for_first)),
        TESTING_CASE(CASE_(_who_is_not_waited_for_leaves_at_once)),
        TESTING_CASE(CASE_(_a_wait_turns_to_the_others_when_one_leaves)),
        TESTING_CASE(CASE_(_when_all_have_left_everything_is_published)),
        TESTING_CASE(CASE_(_who_has_left_may_join_again)),
        TESTING_CASE(CASE_(_a_member_that_closes_and_stays_ends_the_wait)),
        TESTING_CASE(CASE_(_a_member_that_closes_after_the_target_does_no_harm)),
        TESTING_CASE(CASE_(_a_wait_that_is_cut_short_lets_go)),
        TESTING_CASE(CASE_(_a_destroyed_wait_lets_go)),
        TESTING_CASE(CASE_(_a_destroyed_leaver_can_leave_again)),
        TESTING_CASE(CASE_(_who_is_asked_to_stop_can_leave)),
        TESTING_CASE(CASE_(_a_barrier_in_two_groups_leaves_both)),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#undef BARRIER_
#undef BARRIER_F_
#undef GROUP_
#undef MEMBER_
#undef LEAVER_
#undef WAITER_
#undef F_
#undef CASE_

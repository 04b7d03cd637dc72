/*
 * The event count: an operation is retried until it succeeds, and waits in between. Either the notifier attempts it
 * for the waiter, or the waiter attempts it itself: then a waiter that is woken in vain keeps waiting, and a turn that
 * is not used goes to the next. (The contract that it shares with all waits: contract_test.c.)
 */
#include "sync/by_hand.h"

#include "bide/extend/event_count.h"
#include "bide/handle.h"
#include "bide/stop.h"

enum { USERS = 5, WAITS = 1 /* the status of a wait that has not ended */ };

/* The attempts take one of `items`, unless it is broken. */
struct shelf {
    bide_event_count event_count;
    uint32_t items;
    int broken; /* 0, or the status of the attempts */
    int attempts;
};

struct user {
    bide_task task;
    by_hand *by_hand;
    struct shelf *shelf;
    bide_event_count_own_waiter own; /* or what is in it alone */
    bool is_own;
    bide_context context;
    bide_stop_source stop;
    char name;
    int status;
};

static struct shelf *shelf_of(bide_event_count_waiter *retry)
{
    return bide_container_of(retry, struct user, own.retry)->shelf;
}

static int attempt(bide_event_count_waiter *retry)
{
    struct shelf *shelf = shelf_of(retry);
    shelf->attempts++;
    if (shelf->broken != 0)
        return shelf->broken;
    if (shelf->items == 0)
        return -EAGAIN;
    shelf->items--;
    return 0;
}

static bool is_possible(bide_event_count_waiter *retry)
{
    return shelf_of(retry)->items != 0 || shelf_of(retry)->broken != 0;
}

static const bide_event_count_ops rules = {attempt, is_possible, NULL};

bide_coroutine(user_body)
{
    bide_begin(user_body, struct user * self);
    bide_await_status(
        self->status,
        self->is_own ? bide_event_count_wait_own(&self->own, &self->shelf->event_count, &rules)
                     : bide_event_count_wait(&self->own.retry, &self->shelf->event_count, &rules));
    by_hand_note(self->by_hand, self->name);
    bide_end();
}

struct fixture {
    by_hand by_hand;
    struct shelf shelf;
    struct user users[USERS];
    bool is_own; /* the operations that begin */
    int begun;
};

static void fixture_init(struct fixture *f)
{
    memset(f, 0, sizeof *f);
    by_hand_init(&f->by_hand);
    bide_event_count_init(&f->shelf.event_count);
}

static void own_fixture_init(struct fixture *f)
{
    fixture_init(f);
    f->is_own = true;
}

/* The next user, 'a' to 'e', attempts, and waits. */
static struct user *begin(struct fixture *f)
{
    struct user *user = &f->users[f->begun];
    user->by_hand = &f->by_hand;
    user->shelf = &f->shelf;
    user->is_own = f->is_own;
    user->name = (char)('a' + f->begun++);
    user->status = WAITS;
    bide_stop_source_init(&user->stop);
    user->context = f->by_hand.context;
    user->context.stop = &user->stop;
    bide_start(&user->task.frame, &user_body, &user->context);
    bide_resume(&user->task.frame);
    return user;
}

static void begin_all(struct fixture *f)
{
    while (f->begun < USERS)
        assert_int_equal(begin(f)->status, WAITS);
}

static void bring(struct fixture *f, uint32_t count)
{
    f->shelf.items += count;
    bide_event_count_notify(&f->shelf.event_count, count);
}

static bool is_idle(struct fixture *f)
{
    return bide_event_count_is_idle(&f->shelf.event_count);
}

static bool is_watched(struct fixture *f)
{
    return bide_atomic_load(&f->shelf.event_count.watch, relaxed) != BIDE_EVENT_COUNT_UNWATCHED_;
}

/* Lets the rest end. */
static void fixture_end(struct fixture *f)
{
    f->shelf.broken = -EPIPE;
    bide_event_count_notify_all(&f->shelf.event_count);
    by_hand_run(&f->by_hand);
    for (int i = 0; i < f->begun; i++)
        assert_true(bide_done(&f->users[i].task.frame));
    assert_true(is_idle(f));
}

/* ---- Trying ---- */

static void what_succeeds_at_once_does_not_wait(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    bring(&f, 1);
    assert_int_equal(begin(&f)->status, 0);
    assert_int_equal(f.shelf.attempts, 1);
    assert_false(is_watched(&f));
    fixture_end(&f);
}

static void any_other_answer_ends_it(void **state)
{
    (void)state;
    static const int answers[] = {-EPIPE, -EIO, 7};
    for (int i = 0; i < 3; i++) {
        struct fixture f;
        fixture_init(&f);
        struct user *waiting = begin(&f);
        f.shelf.broken = answers[i];
        assert_int_equal(begin(&f)->status, answers[i]);
        bide_event_count_notify(&f.shelf.event_count, 1);
        by_hand_run(&f.by_hand);
        assert_int_equal(waiting->status, answers[i]);
        fixture_end(&f);
    }
}

static void so_many_are_notified_so_many_try(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    begin_all(&f);
    f.shelf.attempts = 0;
    bide_event_count_notify(&f.shelf.event_count, 0);
    assert_int_equal(by_hand_run(&f.by_hand), 0);
    bide_event_count_notify(&f.shelf.event_count, 2);
    by_hand_run(&f.by_hand);
    assert_int_equal(f.shelf.attempts, 2);
    bide_event_count_notify_all(&f.shelf.event_count);
    bide_event_count_notify_all(&f.shelf.event_count);
    by_hand_run(&f.by_hand);
    assert_int_equal(f.shelf.attempts, 2 + 2 * USERS);
    by_hand_assert_trace(&f.by_hand, "");
    assert_false(is_idle(&f));
    fixture_end(&f);
}

static void waiters_are_let_go_in_order_of_arrival(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    begin_all(&f);
    for (int i = 0; i < USERS; i++) {
        bring(&f, 1);
        by_hand_run(&f.by_hand);
    }
    by_hand_assert_trace(&f.by_hand, "abcde");
    fixture_end(&f);
}

static void a_waiter_tried_for_in_vain_waits_on(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    begin_all(&f);
    for (int i = 0; i < USERS; i++) { /* each comes last then */
        bide_event_count_notify(&f.shelf.event_count, 1);
        assert_int_equal(f.by_hand.posted, 0);
    }
    bring(&f, 1);
    assert_int_equal(f.shelf.items, 0); /* the waiter has the item before it runs */
    bring(&f, USERS - 1);
    by_hand_run(&f.by_hand);
    by_hand_assert_trace(&f.by_hand, "abcde");
    fixture_end(&f);
}

static void a_comer_does_not_overtake_a_waiter(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    begin(&f);
    bring(&f, 1);
    assert_int_equal(begin(&f)->status, WAITS);
    bring(&f, 1);
    by_hand_run(&f.by_hand);
    by_hand_assert_trace(&f.by_hand, "ab");
    fixture_end(&f);
}

static void a_waiter_woken_in_vain_waits_on(void **state)
{
    (void)state;
    struct fixture f;
    own_fixture_init(&f);
    struct user *slow = begin(&f);
    bring(&f, 1); /* a was woken and has not run */
    assert_int_equal(begin(&f)->status, 0);
    by_hand_run(&f.by_hand);
    assert_int_equal(slow->status, WAITS);
    assert_false(is_idle(&f));
    bring(&f, 1);
    by_hand_run(&f.by_hand);
    assert_int_equal(slow->status, 0);
    by_hand_assert_trace(&f.by_hand, "ba");
    fixture_end(&f);
}

static void a_waiter_that_succeeds_and_finds_more_lets_the_next_go(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    begin_all(&f);
    f.shelf.items = 3;
    bide_event_count_notify(&f.shelf.event_count, 1);
    by_hand_run(&f.by_hand);
    by_hand_assert_trace(&f.by_hand, "abc");
    assert_int_equal(f.shelf.items, 0);
    fixture_end(&f);
}

/* ---- Cancelled, destroyed ---- */

static void a_request_ends_a_waiter_tried_for_in_vain(void **state)
{
    (void)state;
    for (int stopped = 0; stopped < USERS; stopped++) {
        struct fixture f;
        fixture_init(&f);
        begin_all(&f);
        bide_event_count_notify(&f.shelf.event_count, 2);
        bide_stop_request_with(&f.users[stopped].stop, -ETIMEDOUT);
        by_hand_run(&f.by_hand);
        assert_int_equal(f.users[stopped].status, -ETIMEDOUT);
        bring(&f, USERS);
        by_hand_run(&f.by_hand);
        assert_int_equal(f.shelf.items, 1);
        fixture_end(&f);
    }
}

static void a_request_ends_a_waiter_woken_in_vain(void **state)
{
    (void)state;
    struct fixture f;
    own_fixture_init(&f);
    struct user *slow = begin(&f);
    struct user *next = begin(&f);
    bring(&f, 1);
    assert_int_equal(begin(&f)->status, 0);
    bide_stop_request_with(&slow->stop, -ETIMEDOUT);
    by_hand_run(&f.by_hand);
    assert_int_equal(slow->status, -ETIMEDOUT);
    bring(&f, 1);
    by_hand_run(&f.by_hand);
    assert_int_equal(next->status, 0);
    assert_int_equal(f.shelf.items, 0);
    fixture_end(&f);
}

static void a_request_takes_nothing_from_a_waiter_that_may_have_it(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    struct user *user = begin(&f);
    bring(&f, 1);
    bide_stop_request(&user->stop);
    by_hand_run(&f.by_hand);
    assert_int_equal(user->status, 0);
    fixture_end(&f);
}

static void a_destroyed_waiter_leaves_the_line(void **state)
{
    (void)state;
    for (int destroyed = 0; destroyed < USERS; destroyed++) {
        struct fixture f;
        fixture_init(&f);
        begin_all(&f);
        bide_destroy(&f.users[destroyed].task.frame);
        assert_int_equal(f.users[destroyed].own.retry.status, -EAGAIN);
        bring(&f, USERS - 1);
        by_hand_run(&f.by_hand);
        assert_int_equal(f.shelf.items, 0);
        assert_int_equal(strlen(f.by_hand.trace), USERS - 1);
        fixture_end(&f);
    }
}

static void a_waiter_destroyed_after_it_was_tried_for_has_done_it(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    begin_all(&f);
    bring(&f, 2);
    for (int i = 0; i < 2; i++) {
        bide_destroy(&f.users[i].task.frame);
        assert_int_equal(f.users[i].own.retry.status, 0);
    }
    bring(&f, 1);
    by_hand_run(&f.by_hand);
    by_hand_assert_trace(&f.by_hand, "c");
    fixture_end(&f);
}

static void the_turn_of_a_destroyed_waiter_goes_to_the_next(void **state)
{
    (void)state;
    struct fixture f;
    own_fixture_init(&f);
    begin_all(&f);
    bring(&f, 1);
    for (int i = 0; i + 1 < USERS; i++) { /* each is destroyed after it was woken, before it runs */
        assert_int_equal(f.by_hand.posted, i + 1);
        bide_destroy(&f.users[i].task.frame);
        assert_int_equal(f.users[i].status, WAITS);
    }
    by_hand_run(&f.by_hand);
    by_hand_assert_trace(&f.by_hand, "e");
    assert_int_equal(f.shelf.items, 0);
    fixture_end(&f);
}

/* ---- Watched or not ---- */

enum { WATCHED = 2 };

static void it_stays_watched_where_all_wait_and_notify_on_one_thread(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    assert_false(is_watched(&f));
    begin(&f);
    bring(&f, 1);
    for (int i = 0; i < 100; i++) {
        bide_event_count_notify(&f.shelf.event_count, 1);
        assert_true(is_watched(&f));
    }
    by_hand_run(&f.by_hand);
    fixture_end(&f);
}

static void it_is_watched_from_the_first_wait_until_it_was_needless_for_a_while(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    for (int round = 0; round < 3; round++) {
        int needless = 0;
        assert_false(is_watched(&f));
        f.begun = 0;
        struct user *user = begin(&f);
        bide_atomic_store(&f.shelf.event_count.watch, WATCHED, relaxed); /* as by another thread */
        for (int i = 0; i < 100; i++) { /* (in vain, but there is a waiter) */
            bide_event_count_notify(&f.shelf.event_count, 1);
            by_hand_run(&f.by_hand);
            assert_true(is_watched(&f));
        }
        bring(&f, 1);
        by_hand_run(&f.by_hand);
        assert_int_equal(user->status, 0);
        for (; is_watched(&f); needless++)
            bide_event_count_notify(&f.shelf.event_count, 1);
        assert_true(needless > 1 && needless < 100);
    }
    fixture_end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_succeeds_at_once_does_not_wait),
        cmocka_unit_test(any_other_answer_ends_it),
        cmocka_unit_test(so_many_are_notified_so_many_try),
        cmocka_unit_test(waiters_are_let_go_in_order_of_arrival),
        cmocka_unit_test(a_waiter_tried_for_in_vain_waits_on),
        cmocka_unit_test(a_comer_does_not_overtake_a_waiter),
        cmocka_unit_test(a_waiter_woken_in_vain_waits_on),
        cmocka_unit_test(a_waiter_that_succeeds_and_finds_more_lets_the_next_go),
        cmocka_unit_test(a_request_ends_a_waiter_tried_for_in_vain),
        cmocka_unit_test(a_request_ends_a_waiter_woken_in_vain),
        cmocka_unit_test(a_request_takes_nothing_from_a_waiter_that_may_have_it),
        cmocka_unit_test(a_destroyed_waiter_leaves_the_line),
        cmocka_unit_test(a_waiter_destroyed_after_it_was_tried_for_has_done_it),
        cmocka_unit_test(the_turn_of_a_destroyed_waiter_goes_to_the_next),
        cmocka_unit_test(it_stays_watched_where_all_wait_and_notify_on_one_thread),
        cmocka_unit_test(it_is_watched_from_the_first_wait_until_it_was_needless_for_a_while),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

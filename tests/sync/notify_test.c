/*
 * Notify: notify_one wakes the first waiter, or is remembered once; notify_all wakes exactly the waits that have
 * started.
 */
#include "misuse.h"
#include "sync/meeting.h"
#include "sync/users.h"

static bide_awaiter *wait_for(user *self)
{
    return bide_notify_wait(&self->waiter.notify, self->object);
}

static void one_ends_the_first_wait_or_is_remembered_once(void **state)
{
    (void)state;
    by_hand by_hand;
    bide_notify notify;
    user users[4];
    by_hand_init(&by_hand);
    bide_notify_init(&notify);
    users_begin(users, 2, &by_hand, wait_for, &notify);
    bide_notify_one(&notify);
    by_hand_run(&by_hand);
    by_hand_assert_trace(&by_hand, "a");
    for (int i = 0; i < 3; i++)
        bide_notify_one(&notify);
    by_hand_run(&by_hand);
    by_hand_assert_trace(&by_hand, "b");
    users_begin(&users[2], 2, &by_hand, wait_for, &notify);
    assert_int_equal(users[2].status, 0);
    assert_int_equal(users[3].status, 1);
    bide_destroy(&users[3].task.frame);
    bide_notify_destroy(&notify);
}

/* Several have started, and checked, before as many are notified one by one. */
static void as_many_notifications_as_there_are_waits_that_have_begun_end_all_of_them(void **state)
{
    (void)state;
    enum { MOST = 4 };
    for (int waits = 1; waits <= MOST; waits++) {
        bide_notify notify;
        bide_notify_waiter waiters[MOST], later;
        probe probes[MOST], after;
        bide_awaiter *begun[MOST];
        int ended = 0;
        bide_notify_init(&notify);
        for (int i = 0; i < waits; i++) {
            probe_init(&probes[i]);
            begun[i] = bide_notify_wait(&waiters[i], &notify);
        }
        for (int i = 0; i < waits; i++)
            bide_notify_one(&notify);
        for (int i = 0; i < waits; i++)
            ended += probe_await(&probes[i], begun[i]);
        assert_int_equal(ended, waits);
        /* A wait that starts later takes the remembered notification, or finds none. */
        probe_init(&after);
        assert_int_equal(probe_await(&after, bide_notify_wait(&later, &notify)), waits > 1);
        bide_notify_one(&notify);
        assert_int_equal(probe_ended(&after), waits == 1);
    }
}

static void all_ends_the_waits_that_have_begun_and_is_not_remembered(void **state)
{
    (void)state;
    by_hand by_hand;
    bide_notify notify;
    user users[5];
    by_hand_init(&by_hand);
    bide_notify_init(&notify);
    bide_notify_all(&notify);
    users_begin(users, 3, &by_hand, wait_for, &notify);
    assert_int_equal(users[0].status, 1);
    bide_notify_all(&notify);
    assert_int_equal(by_hand.posted, 3);
    user_begin(&users[3], &by_hand, wait_for, &notify, 'd');
    by_hand_run(&by_hand);
    by_hand_assert_trace(&by_hand, "abc");
    assert_int_equal(users[3].status, 1);
    bide_notify_all(&notify);
    by_hand_run(&by_hand);
    by_hand_assert_trace(&by_hand, "d");
    assert_false(bide_notify_try_wait(&notify));
}

static void all_takes_nothing_of_what_is_remembered(void **state)
{
    (void)state;
    bide_notify notify;
    bide_notify_init(&notify);
    bide_notify_one(&notify);
    bide_notify_all(&notify);
    assert_true(bide_notify_try_wait(&notify));
    assert_false(bide_notify_try_wait(&notify));
}

static void a_wait_begins_when_it_is_made_not_when_it_is_awaited(void **state)
{
    (void)state;
    bide_notify notify;
    bide_notify_waiter early, late;
    probe probes[2];
    bide_notify_init(&notify);
    bide_awaiter *begun = bide_notify_wait(&early, &notify);
    bide_notify_all(&notify);
    bide_awaiter *next = bide_notify_wait(&late, &notify);
    probe_init(&probes[0]);
    probe_init(&probes[1]);
    assert_false(probe_await(&probes[1], next));
    assert_true(probe_await(&probes[0], begun));
    assert_int_equal(probe_result(begun), 0);
    /* Even if it had checked before all were notified, and is behind another by now. */
    assert_true(probe_suspend(&probes[0], begun));
    assert_int_equal(probe_ended(&probes[1]), 0);
    bide_notify_one(&notify);
    assert_int_equal(probe_ended(&probes[1]), 1);
    bide_notify_destroy(&notify);
}

/* So often that the phases wrap around if a word has 32 bits. */
static void phases_wrap_around(void **state)
{
    (void)state;
    bide_notify notify;
    bide_notify_waiter wait;
    probe probe;
    bide_notify_init(&notify);
    for (uint32_t i = 0; i < 3u << 13; i++) {
        probe_init(&probe);
        assert_false(probe_await(&probe, bide_notify_wait(&wait, &notify)));
        bide_notify_all(&notify);
        assert_int_equal(probe_ended(&probe), 1);
    }
    bide_atomic_init(&notify.queue.state, (uintptr_t)0 - BIDE_QUEUE_PHASE_ONE);
    assert_false(probe_await(&probe, bide_notify_wait(&wait, &notify)));
    bide_notify_all(&notify);
    assert_int_equal(bide_atomic_load(&notify.queue.state, relaxed), 0);
    assert_int_equal(probe_ended(&probe), 2);
}

static void a_wait_cut_short_takes_nothing(void **state)
{
    (void)state;
    by_hand by_hand;
    bide_notify notify;
    user users[3];
    by_hand_init(&by_hand);
    bide_notify_init(&notify);
    users_begin(users, 3, &by_hand, wait_for, &notify);
    bide_stop_request(&users[0].stop);
    bide_stop_request_with(&users[2].stop, -ETIMEDOUT);
    bide_notify_one(&notify);
    by_hand_run(&by_hand);
    by_hand_assert_trace(&by_hand, "acb");
    assert_int_equal(users[0].status, -ECANCELED);
    assert_int_equal(users[1].status, 0);
    assert_int_equal(users[2].status, -ETIMEDOUT);
    assert_false(bide_notify_try_wait(&notify));
}

static void a_destroyed_coroutine_leaves_the_line(void **state)
{
    (void)state;
    by_hand by_hand;
    bide_notify notify;
    user users[3];
    by_hand_init(&by_hand);
    bide_notify_init(&notify);
    users_begin(users, 3, &by_hand, wait_for, &notify);
    bide_destroy(&users[0].task.frame);
    bide_notify_one(&notify);
    by_hand_run(&by_hand);
    by_hand_assert_trace(&by_hand, "b");
    bide_notify_all(&notify);
    bide_destroy(&users[2].task.frame); /* it has ended, and has not run */
    assert_int_equal(by_hand_run(&by_hand), 0);
    assert_false(bide_notify_try_wait(&notify)); /* all is not remembered */
    users_begin(users, 2, &by_hand, wait_for, &notify);
    bide_notify_one(&notify);
    bide_destroy(&users[0].task.frame);
    by_hand_run(&by_hand);
    by_hand_assert_trace(&by_hand, "b"); /* what the other was notified for */
    bide_notify_destroy(&notify);
}

/* The first was notified alone and the second with all, before either runs. */
static void a_notification_of_one_goes_to_the_next_though_all_were_notified_since(void **state)
{
    (void)state;
    by_hand by_hand;
    bide_notify notify;
    user users[3];
    by_hand_init(&by_hand);
    for (int others = 0; others <= 1; others++) {
        bide_notify_init(&notify);
        users_begin(users, 2, &by_hand, wait_for, &notify);
        bide_notify_one(&notify);
        bide_notify_all(&notify);
        if (others != 0)
            user_begin(&users[2], &by_hand, wait_for, &notify, 'c');
        bide_destroy(&users[1].task.frame); /* was notified with all: leaves nothing */
        assert_false(bide_notify_try_wait(&notify));
        bide_destroy(&users[0].task.frame);
        by_hand_run(&by_hand);
        by_hand_assert_trace(&by_hand, others != 0 ? "c" : "");
        assert_int_equal(bide_notify_try_wait(&notify), others == 0);
        bide_notify_destroy(&notify);
    }
}

/* The same for a wait that found a notification at once, while its coroutine cannot continue at once. */
static void what_a_wait_has_found_goes_to_the_next_though_all_were_notified_since(void **state)
{
    (void)state;
    bide_notify notify;
    bide_notify_waiter wait;
    bide_notify_init(&notify);
    bide_notify_one(&notify);
    bide_awaiter *awaiter = bide_notify_wait(&wait, &notify);
    assert_true(awaiter->ops->ready(awaiter));
    assert_false(bide_notify_try_wait(&notify));
    bide_notify_all(&notify);
    assert_false(awaiter->ops->withdraw(awaiter));
    assert_true(bide_notify_try_wait(&notify));
    bide_notify_destroy(&notify);
}

static void closing_ends_waits_but_what_is_remembered_lets_one_pass(void **state)
{
    (void)state;
    by_hand by_hand;
    bide_notify notify;
    user users[4];
    by_hand_init(&by_hand);
    bide_notify_init(&notify);
    users_begin(users, 2, &by_hand, wait_for, &notify);
    bide_notify_close(&notify);
    by_hand_run(&by_hand);
    by_hand_assert_trace(&by_hand, "ab");
    assert_int_equal(users[0].status, -EPIPE);
    assert_int_equal(users[1].status, -EPIPE);
    bide_notify_one(&notify);
    assert_false(bide_notify_try_wait(&notify));

    bide_notify_waiter wait;
    bide_notify_init(&notify);
    bide_notify_one(&notify);
    bide_awaiter *begun = bide_notify_wait(&wait, &notify);
    bide_notify_all(&notify);
    bide_notify_close(&notify);
    bide_notify_all(&notify);
    users_begin(&users[2], 2, &by_hand, wait_for, &notify);
    assert_int_equal(users[2].status, 0);
    assert_int_equal(users[3].status, -EPIPE);
    assert_true(begun->ops->ready(begun));
}

#if TESTING_HOSTED

#include "small_stack.h"

enum { SHORT = 1000 * 1000 };

static void a_thread_waits_until_a_deadline(void **state)
{
    (void)state;
    bide_notify notify;
    bide_notify_init(&notify);
    assert_int_equal(bide_notify_wait_blocking(&notify, bide_platform.now() + SHORT), -ETIMEDOUT);
    bide_notify_one(&notify);
    assert_int_equal(bide_notify_wait_blocking(&notify, 0), 0);
    assert_int_equal(bide_notify_wait_blocking(&notify, 0), -ETIMEDOUT);
    bide_notify_close(&notify);
    assert_int_equal(bide_notify_wait_blocking(&notify, BIDE_FOREVER), -EPIPE);
    bide_notify_destroy(&notify);
}

#if BIDE_DEBUG
static void destroy_it_while_it_is_awaited(void)
{
    by_hand by_hand;
    bide_notify precious;
    user user;
    by_hand_init(&by_hand);
    bide_notify_init(&precious);
    user_begin(&user, &by_hand, wait_for, &precious, 'a');
    bide_notify_destroy(&precious);
}

static void to_destroy_it_while_it_is_awaited_is_misuse(void **state)
{
    (void)state;
    assert_true(misuse_aborts_naming(destroy_it_while_it_is_awaited,
                                     "a notify is destroyed while it is waited for: &precious",
                                     "destroy_it_while_it_is_awaited"));
}
#endif

/* ---- A crowd in line, on a small stack ---- */

static uint32_t passed;

struct small {
    bide_task task;
    bide_notify *notify;
    bide_notify_waiter wait;
};

bide_coroutine(small_body)
{
    bide_begin(small_body, struct small * self);
    bide_try(bide_notify_wait(&self->wait, self->notify));
    passed++;
    bide_end();
}

static void *notify_a_crowd(void *argument)
{
    struct small *all = argument;
    bide_notify notify;
    bide_notify_init(&notify);
    for (uint32_t i = 0; i < crowd_of_waiters(); i++) {
        all[i].notify = &notify;
        bide_start(&all[i].task.frame, &small_body, &bide_default_context);
        bide_resume(&all[i].task.frame);
    }
    for (uint32_t i = 0; i < crowd_of_waiters() / 2; i++)
        bide_notify_one(&notify);
    bide_notify_all(&notify);
    return NULL;
}

static void a_crowd_is_notified_on_a_small_stack(void **state)
{
    (void)state;
    struct small *all = calloc(crowd_of_waiters(), sizeof *all);
    assert_non_null(all);
    passed = 0;
    on_a_small_stack(notify_a_crowd, all);
    assert_int_equal(passed, crowd_of_waiters());
    free(all);
}

/*
 * ---- At random, with threads ----
 *
 * A thread makes as many items available as there are other threads. It calls notify_one for each, and at random
 * notify_all in between. Each of the others takes one item a round, and waits, at random until a deadline, while
 * there is none. Nobody notifies again in that round, so a thread that misses its notification would wait forever.
 */
enum { TAKERS = 3 };

struct market {
    meeting meeting;
    bide_notify notify;
    uint32_t rounds;
    bide_atomic(uint32_t) items;
};

struct taker {
    pthread_t thread;
    struct market *market;
    uint64_t random;
    uint32_t too_late, woken, wrong;
};

static bool take_item(struct market *market)
{
    uint32_t items = bide_atomic_load(&market->items, relaxed);
    while (items != 0) {
        if (bide_atomic_compare_exchange(&market->items, &items, items - 1, relaxed, relaxed))
            return true;
    }
    return false;
}

static void *take_items(void *argument)
{
    struct taker *self = argument;
    struct market *market = self->market;
    for (uint32_t round = 0; round < market->rounds; round++) {
        bool may_give_up = true;
        meet(&market->meeting);
        for (;;) {
            bide_notify_waiter wait;
            bide_awaiter *changed = bide_notify_wait(&wait, &market->notify);
            if (take_item(market))
                break;
            uint64_t number = testing_random(&self->random);
            may_give_up = may_give_up && number % 4 != 0;
            int status = bide_sync_wait_until(
                changed, may_give_up ? bide_platform.now() + number / 4 % 10000 : BIDE_FOREVER);
            self->wrong += status != 0 && status != -ETIMEDOUT;
            if (status == -ETIMEDOUT)
                self->too_late++;
            else
                self->woken++;
        }
        meet(&market->meeting);
    }
    meet(&market->meeting);
    self->wrong += bide_notify_wait_blocking(&market->notify, BIDE_FOREVER) != -EPIPE;
    return NULL;
}

static void no_wait_remains_beside_what_it_waits_for(void **state)
{
    (void)state;
    struct market market = {.rounds = rounds_of(3000)};
    struct taker takers[TAKERS];
    uint64_t seed = testing_seed();
    uint64_t random = seed;
    uint32_t woken = 0, too_late = 0;
    meeting_init(&market.meeting, TAKERS + 1);
    bide_notify_init(&market.notify);
    bide_atomic_init(&market.items, 0);
    for (uint32_t i = 0; i < TAKERS; i++) {
        takers[i] = (struct taker){.market = &market, .random = seed + 1 + i};
        start_thread(&takers[i].thread, take_items, &takers[i]);
    }
    for (uint32_t round = 0; round < market.rounds; round++) {
        meet(&market.meeting);
        for (int i = 0; i < TAKERS; i++) {
            random_moment(&random, 300);
            if (testing_random(&random) % 4 == 0)
                bide_notify_all(&market.notify);
            bide_atomic_fetch_add(&market.items, 1, relaxed);
            if (testing_random(&random) % 4 == 0)
                bide_notify_all(&market.notify);
            else
                bide_notify_one(&market.notify);
        }
        meet(&market.meeting);
        assert_int_equal(bide_atomic_load(&market.items, relaxed), 0);
        bide_notify_try_wait(&market.notify); /* notifications that were not needed */
        assert_false(bide_notify_try_wait(&market.notify));
    }
    meet(&market.meeting);
    bide_notify_close(&market.notify);
    for (uint32_t i = 0; i < TAKERS; i++) {
        join_thread(takers[i].thread);
        assert_int_equal(takers[i].wrong, 0);
        woken += takers[i].woken;
        too_late += takers[i].too_late;
    }
    printf("# %u waits passed, %u were too late\n", woken, too_late);
    bide_notify_destroy(&market.notify);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_ends_the_first_wait_or_is_remembered_once),
        cmocka_unit_test(as_many_notifications_as_there_are_waits_that_have_begun_end_all_of_them),
        cmocka_unit_test(all_ends_the_waits_that_have_begun_and_is_not_remembered),
        cmocka_unit_test(all_takes_nothing_of_what_is_remembered),
        cmocka_unit_test(a_wait_begins_when_it_is_made_not_when_it_is_awaited),
        cmocka_unit_test(phases_wrap_around),
        cmocka_unit_test(a_wait_cut_short_takes_nothing),
        cmocka_unit_test(a_destroyed_coroutine_leaves_the_line),
        cmocka_unit_test(a_notification_of_one_goes_to_the_next_though_all_were_notified_since),
        cmocka_unit_test(what_a_wait_has_found_goes_to_the_next_though_all_were_notified_since),
        cmocka_unit_test(closing_ends_waits_but_what_is_remembered_lets_one_pass),
#if TESTING_HOSTED
        cmocka_unit_test(a_thread_waits_until_a_deadline),
#if BIDE_DEBUG
        cmocka_unit_test(to_destroy_it_while_it_is_awaited_is_misuse),
#endif
        cmocka_unit_test(a_crowd_is_notified_on_a_small_stack),
        cmocka_unit_test(no_wait_remains_beside_what_it_waits_for),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

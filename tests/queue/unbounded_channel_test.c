/*
 * The unbounded channel: order over many segments, empty and closed, out of memory; receives that are notified,
 * cancelled and destroyed; threads.
 */
#include "misuse.h"

#include "bide/unbounded_channel.h"

typedef bide_unbounded_channel(uint64_t) numbers;

#define TEST_CHANNEL numbers
#define TEST_WAITER  bide_unbounded_channel_waiter
#define TEST_RECEIVE(waiter, channel, to, seat) \
    bide_unbounded_channel_recv((waiter), (channel), (seat), (to))
#define TEST_SEND_BLOCKING(channel, from, seat, deadline) \
    ((void)(deadline), bide_unbounded_channel_send((channel), (seat), (from)))
#define TEST_RECEIVE_BLOCKING(channel, to, seat, deadline) \
    bide_unbounded_channel_recv_blocking((channel), (seat), (to), (deadline))
#include "queue/channel_testing.h"

/* Memory for a number of segments; counts the segments in use. */
typedef struct few {
    bide_allocator allocator;
    int left;
    int used;
} few;

static void *few_allocate(bide_allocator *allocator, size_t size)
{
    few *self = bide_container_of(allocator, few, allocator);
    if (self->left == 0)
        return NULL;
    self->left--;
    self->used++;
    return bide_heap.allocate(&bide_heap, size);
}

static void few_deallocate(bide_allocator *allocator, void *memory, size_t size)
{
    few *self = bide_container_of(allocator, few, allocator);
    self->left++;
    self->used--;
    bide_heap.deallocate(&bide_heap, memory, size);
}

/* Whether the channels have their own seats, so that calls have none. All tests run with and without. */
static bool own;

/* A channel of segments of two cells, with a seat. */
typedef struct fixture {
    by_hand by_hand;
    few few;
    bide_hazard_seat seats[2];
    bide_hazard_domain domain;
    bide_hazard_seat *seat;
    numbers channel;
} fixture;

static void setup(fixture *f)
{
    by_hand_init(&f->by_hand);
    f->few = (few){{few_allocate, few_deallocate}, own ? 1000 : 8, 0};
    if (own) {
        f->seat = NULL;
        assert_int_equal(bide_unbounded_channel_init_own(&f->channel, &f->few.allocator, 2), 0);
        return;
    }
    bide_hazard_init(&f->domain, f->seats, 2);
    f->seat = bide_hazard_join(&f->domain);
    assert_int_equal(bide_unbounded_channel_init(&f->channel, &f->domain, &f->few.allocator, 2), 0);
}

static void teardown(fixture *f)
{
    bide_unbounded_channel_destroy(&f->channel);
    if (!own) {
        bide_hazard_leave(&f->domain, f->seat);
        bide_hazard_destroy(&f->domain);
    }
    assert_int_equal(f->few.used, 0);
}

static int send_now(fixture *f, uint64_t value)
{
    return bide_unbounded_channel_send(&f->channel, f->seat, &value);
}

/* The next number; or what the answer was. */
static int64_t receive_now(fixture *f)
{
    uint64_t value = 0;
    int status = bide_unbounded_channel_try_recv(&f->channel, f->seat, &value);
    return status == 0 ? (int64_t)value : status;
}

static void receive(fixture *f, user *user, char name)
{
    begin_receive(user, &f->by_hand, &f->channel, f->seat, name);
}

static void what_is_sent_comes_in_order(void **state)
{
    (void)state;
    fixture f;
    setup(&f);
    assert_int_equal(receive_now(&f), -EAGAIN);
    for (uint64_t lap = 0; lap < 10; lap++) {
        for (uint64_t i = 0; i < 7; i++)
            assert_int_equal(send_now(&f, 10 * lap + i), 0);
        for (uint64_t i = 0; i < 7; i++)
            assert_int_equal(receive_now(&f), 10 * lap + i);
        assert_int_equal(receive_now(&f), -EAGAIN);
        if (!own)
            bide_hazard_scan(&f.domain, f.seat);
    }
    teardown(&f);
}

static void what_was_sent_before_the_close_is_received(void **state)
{
    (void)state;
    fixture f;
    setup(&f);
    for (uint64_t i = 0; i < 5; i++)
        assert_int_equal(send_now(&f, i), 0);
    bide_unbounded_channel_close(&f.channel, f.seat);
    bide_unbounded_channel_close(&f.channel, f.seat);
    assert_int_equal(send_now(&f, 9), -EPIPE);
    for (int64_t i = 0; i < 5; i++)
        assert_int_equal(receive_now(&f), i);
    assert_int_equal(receive_now(&f), -EPIPE);
    assert_int_equal(receive_now(&f), -EPIPE);
    teardown(&f);
}

static void without_memory_nothing_is_sent(void **state)
{
    (void)state;
    fixture f;
    setup(&f);
    f.few.left = 1;
    int64_t sent = 0;
    while (sent < 100 && send_now(&f, (uint64_t)sent) == 0)
        sent++;
    assert_int_equal(sent, 4);
    assert_int_equal(send_now(&f, 9), -ENOMEM);
    for (int64_t i = 0; i < sent; i++)
        assert_int_equal(receive_now(&f), i);
    assert_int_equal(receive_now(&f), -EAGAIN);
    f.few.left = 4;
    assert_int_equal(send_now(&f, 5), 0);
    assert_int_equal(receive_now(&f), 5);
    teardown(&f);
    for (int left = 0; left < (own ? 2 : 1); left++) {
        f.few.left = left;
        assert_int_equal(
            own ? bide_unbounded_channel_init_own(&f.channel, &f.few.allocator, 2)
                : bide_unbounded_channel_init(&f.channel, &f.domain, &f.few.allocator, 2),
            -ENOMEM);
        assert_int_equal(f.few.used, 0);
    }
}

static void receivers_of_an_empty_one_wait_and_each_element_wakes_one(void **state)
{
    (void)state;
    fixture f;
    user users[6];
    setup(&f);
    for (int i = 0; i < 6; i++)
        receive(&f, &users[i], (char)('a' + i));
    assert_int_equal(by_hand_run(&f.by_hand), 0);
    assert_int_equal(send_now(&f, 10), 0);
    by_hand_assert_trace(&f.by_hand, ""); /* posted, not run */
    by_hand_run(&f.by_hand);
    by_hand_assert_trace(&f.by_hand, "a");
    for (uint64_t i = 1; i < 6; i++)
        assert_int_equal(send_now(&f, 10 + i), 0);
    by_hand_run(&f.by_hand);
    by_hand_assert_trace(&f.by_hand, "bcdef");
    for (int i = 0; i < 6; i++) {
        assert_int_equal(users[i].status, 0);
        assert_int_equal(users[i].value, 10 + i);
    }
    teardown(&f);
}

static void a_receiver_notified_in_vain_waits_on(void **state)
{
    (void)state;
    fixture f;
    user user;
    setup(&f);
    receive(&f, &user, 'a');
    assert_int_equal(send_now(&f, 1), 0);
    assert_int_equal(receive_now(&f), 1); /* it was faster */
    by_hand_run(&f.by_hand);
    by_hand_assert_trace(&f.by_hand, "");
    assert_int_equal(send_now(&f, 2), 0);
    by_hand_run(&f.by_hand);
    assert_int_equal(user.value, 2);
    teardown(&f);
}

static void a_receive_that_is_cut_short_takes_nothing(void **state)
{
    (void)state;
    fixture f;
    user users[3];
    setup(&f);
    for (int i = 0; i < 3; i++)
        receive(&f, &users[i], (char)('a' + i));
    bide_stop_request_with(&users[0].stop, -ETIMEDOUT);
    by_hand_run(&f.by_hand);
    assert_int_equal(users[0].status, -ETIMEDOUT);
    assert_int_equal(send_now(&f, 1), 0);
    bide_stop_request(&users[1].stop); /* it is notified, and has not run: it has the element */
    by_hand_run(&f.by_hand);
    assert_int_equal(users[1].status, 0);
    assert_int_equal(users[1].value, 1);
    bide_stop_request(&users[2].stop);
    by_hand_run(&f.by_hand);
    assert_int_equal(users[2].status, -ECANCELED);
    assert_int_equal(receive_now(&f), -EAGAIN);
    teardown(&f);
}

static void what_was_announced_to_a_destroyed_receiver_goes_to_the_next(void **state)
{
    (void)state;
    fixture f;
    user users[3];
    setup(&f);
    for (int i = 0; i < 3; i++)
        receive(&f, &users[i], (char)('a' + i));
    bide_destroy(&users[1].task.frame); /* it waits */
    assert_int_equal(send_now(&f, 1), 0);
    bide_destroy(&users[0].task.frame); /* it is notified, and has not run */
    by_hand_run(&f.by_hand);
    by_hand_assert_trace(&f.by_hand, "c");
    assert_int_equal(users[2].value, 1);
    teardown(&f);
}

/* A coroutine that receives many. */
typedef struct many_user {
    bide_task task;
    by_hand *by_hand;
    numbers *channel;
    bide_unbounded_channel_many_waiter wait;
    bide_hazard_seat *seat;
    uint64_t values[4];
    size_t count;
    int status;
} many_user;

bide_coroutine(many_body)
{
    bide_begin(many_body, many_user * self);
    bide_await_status(self->status,
                      bide_unbounded_channel_recv_many(&self->wait, self->channel, self->seat,
                                                       self->values, 4, &self->count));
    by_hand_note(self->by_hand, 'm');
    bide_end();
}

static void a_receive_of_many_waits_for_one_and_takes_what_is_there(void **state)
{
    (void)state;
    fixture f;
    uint64_t values[4];
    size_t count = 9;
    setup(&f);
    assert_int_equal(bide_unbounded_channel_try_recv_many(&f.channel, f.seat, values, 4, &count),
                     -EAGAIN);
    assert_int_equal(count, 0);
    many_user many = {.by_hand = &f.by_hand, .channel = &f.channel, .seat = f.seat, .status = 1};
    by_hand_begin(&f.by_hand,
                  (bide_await_later(bide_task_init(&many.task, &many_body)), &many.task));
    assert_int_equal(many.status, 1);
    for (uint64_t i = 1; i <= 7; i++)
        assert_int_equal(send_now(&f, i), 0);
    by_hand_run(&f.by_hand);
    assert_int_equal(many.status, 0);
    assert_int_equal(many.count, 4);
    for (uint64_t i = 0; i < 4; i++)
        assert_int_equal(many.values[i], 1 + i);
    bide_unbounded_channel_close(&f.channel, f.seat);
#if TESTING_HOSTED
    assert_int_equal(
        bide_unbounded_channel_recv_many_blocking(&f.channel, f.seat, values, 4, &count, 0), 0);
#else
    assert_int_equal(bide_unbounded_channel_try_recv_many(&f.channel, f.seat, values, 4, &count),
                     0);
#endif
    assert_int_equal(count, 3);
    assert_int_equal(values[2], 7);
    assert_int_equal(bide_unbounded_channel_try_recv_many(&f.channel, f.seat, values, 4, &count),
                     -EPIPE);
    teardown(&f);
}

static void closing_ends_all_waits_now_and_later(void **state)
{
    (void)state;
    fixture f;
    user users[4];
    setup(&f);
    for (int i = 0; i < 3; i++)
        receive(&f, &users[i], (char)('a' + i));
    assert_int_equal(send_now(&f, 1), 0);
    bide_unbounded_channel_close(&f.channel, f.seat);
    by_hand_run(&f.by_hand);
    receive(&f, &users[3], 'd');
    by_hand_assert_trace(&f.by_hand, "abcd");
    assert_int_equal(users[0].status, 0);
    assert_int_equal(users[0].value, 1);
    for (int i = 1; i < 4; i++)
        assert_int_equal(users[i].status, -EPIPE);
    teardown(&f);
}

#if TESTING_HOSTED
static void a_thread_waits_until_a_deadline(void **state)
{
    (void)state;
    fixture f;
    uint64_t value = 0;
    setup(&f);
    assert_int_equal(bide_unbounded_channel_recv_blocking(&f.channel, f.seat, &value, 0),
                     -ETIMEDOUT);
    assert_int_equal(bide_unbounded_channel_recv_blocking(&f.channel, f.seat, &value,
                                                             bide_platform.now() + 1000000),
                     -ETIMEDOUT);
    assert_int_equal(send_now(&f, 3), 0);
    assert_int_equal(bide_unbounded_channel_recv_blocking(&f.channel, f.seat, &value, 0), 0);
    assert_int_equal(value, 3);
    bide_unbounded_channel_close(&f.channel, f.seat);
    assert_int_equal(
        bide_unbounded_channel_recv_blocking(&f.channel, f.seat, &value, BIDE_FOREVER), -EPIPE);
    teardown(&f);
}

static void close_it(stress *stress)
{
    bide_hazard_seat *seat = stress_join(stress);
    bide_unbounded_channel_close(stress->channel, seat);
    stress_leave(stress, seat);
}

static void each_element_comes_once_and_in_its_senders_order(void **state)
{
    (void)state;
    static const uint32_t parties[][2] = {{1, 1}, {3, 1}, {1, 3}, {3, 3}};
    for (size_t i = 0; i < sizeof parties / sizeof *parties; i++) {
        bide_hazard_seat seats[2 * MAX_STRESS_THREADS + 1];
        bide_hazard_domain domain;
        numbers channel;
        bide_hazard_init(&domain, seats, sizeof seats / sizeof *seats);
        assert_int_equal(own ? bide_unbounded_channel_init_own(&channel, &bide_heap, 16)
                             : bide_unbounded_channel_init(&channel, &domain, &bide_heap, 16),
                         0);
        stress_run(&channel, own ? NULL : &domain, parties[i][0], parties[i][1], close_it);
        bide_unbounded_channel_destroy(&channel);
        bide_hazard_destroy(&domain);
    }
}
#endif

#if TESTING_HOSTED
/* More threads than seats: some wait for a seat. The domain is the test's, and gets the segments back. */
static void with_fewer_seats_than_threads_nothing_is_lost(void **state)
{
    (void)state;
    bide_hazard_seat seats[2];
    bide_hazard_domain domain;
    numbers channel;
    bide_hazard_init(&domain, seats, 2);
    assert_int_equal(bide_unbounded_channel_init(&channel, &domain, &bide_heap, 4), 0);
    stress_run(&channel, NULL, 3, 3, close_it);
    bide_unbounded_channel_destroy(&channel);
    bide_hazard_seat *seat = bide_hazard_join(&domain);
    assert_non_null(seat);
    bide_hazard_leave(&domain, seat);
    bide_hazard_destroy(&domain);
}
#endif

/* ---- Its ends ---- */

static void the_last_sender_that_goes_closes_it(void **state)
{
    (void)state;
    fixture f;
    user users[2];
    setup(&f);
    bide_unbounded_channel_sender_add(&f.channel);
    bide_unbounded_channel_sender_add(&f.channel);
    bide_unbounded_channel_sender_drop(&f.channel, f.seat);
    bide_unbounded_channel_sender_add(&f.channel);
    bide_unbounded_channel_sender_drop(&f.channel, f.seat);
    receive(&f, &users[0], 'a');
    receive(&f, &users[1], 'b');
    assert_int_equal(send_now(&f, 1), 0);
    bide_unbounded_channel_sender_drop(&f.channel, f.seat);
    assert_int_equal(send_now(&f, 2), -EPIPE);
    by_hand_run(&f.by_hand);
    assert_int_equal(users[0].status, 0);
    assert_int_equal(users[0].value, 1);
    assert_int_equal(users[1].status, -EPIPE);
    teardown(&f);
}

struct told {
    uint64_t numbers[32];
    size_t count;
};

static void note_undelivered(void *argument, void *element)
{
    struct told *told = argument;
    assert_true(told->count < 32);
    told->numbers[told->count++] = *(uint64_t *)element;
}

/* In several segments, of which the first was emptied in part, or to its end, or no element is left. */
static void what_is_in_it_at_the_end_is_told_of_once(void **state)
{
    (void)state;
    for (uint64_t sent = 0; sent <= 5; sent++) {
        for (uint64_t received = 0; received <= sent; received++) {
            struct told told = {.count = 0};
            fixture f;
            setup(&f);
            bide_unbounded_channel_set_undelivered(&f.channel, note_undelivered, &told);
            for (uint64_t i = 1; i <= sent; i++)
                assert_int_equal(send_now(&f, i), 0);
            for (uint64_t i = 1; i <= received; i++)
                assert_int_equal(receive_now(&f), i);
            if (received == sent)
                assert_int_equal(receive_now(&f), -EAGAIN);
            if (sent % 2 == 0)
                bide_unbounded_channel_close(&f.channel, f.seat);
            assert_int_equal(told.count, 0);
            teardown(&f);
            assert_int_equal(told.count, sent - received);
            for (uint64_t i = 0; i < told.count; i++)
                assert_int_equal(told.numbers[i], received + i + 1);
        }
    }
}

static void after_the_last_receiver_sends_fail(void **state)
{
    (void)state;
    struct told told = {.count = 0};
    fixture f;
    setup(&f);
    bide_unbounded_channel_set_undelivered(&f.channel, note_undelivered, &told);
    bide_unbounded_channel_receiver_add(&f.channel);
    bide_unbounded_channel_receiver_add(&f.channel);
    for (uint64_t i = 1; i <= 3; i++)
        assert_int_equal(send_now(&f, i), 0);
    bide_unbounded_channel_receiver_drop(&f.channel, f.seat);
    assert_int_equal(receive_now(&f), 1);
    assert_int_equal(send_now(&f, 4), 0);
    bide_unbounded_channel_receiver_drop(&f.channel, f.seat);
    assert_int_equal(send_now(&f, 5), -EPIPE);
    teardown(&f);
    assert_int_equal(told.count, 3);
    for (uint64_t i = 0; i < 3; i++)
        assert_int_equal(told.numbers[i], 2 + i);
}

#if BIDE_DEBUG && TESTING_HOSTED
static void drop_a_sender_too_many(void)
{
    fixture f;
    setup(&f);
    bide_unbounded_channel_sender_add(&f.channel);
    bide_unbounded_channel_sender_drop(&f.channel, f.seat);
    bide_unbounded_channel_sender_drop(&f.channel, f.seat);
}

static void drop_a_receiver_that_was_not_added(void)
{
    fixture f;
    setup(&f);
    bide_unbounded_channel_receiver_drop(&f.channel, f.seat);
}

static void more_dropped_than_added_is_misuse(void **state)
{
    (void)state;
    assert_true(misuse_aborts_naming(drop_a_sender_too_many,
                                     "more senders are dropped than were added",
                                     "drop_a_sender_too_many"));
    assert_true(misuse_aborts_naming(drop_a_receiver_that_was_not_added,
                                     "more receivers are dropped than were added",
                                     "drop_a_receiver_that_was_not_added"));
}

static void destroy_what_is_waited_for(void)
{
    fixture f;
    user user;
    setup(&f);
    receive(&f, &user, 'a');
    bide_unbounded_channel_destroy(&f.channel);
}

static void misuse_is_told_with_object_and_caller(void **state)
{
    (void)state;
    assert_true(misuse_aborts_naming(destroy_what_is_waited_for, "&f.channel",
                                     "destroy_what_is_waited_for"));
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_sent_comes_in_order),
        cmocka_unit_test(what_was_sent_before_the_close_is_received),
        cmocka_unit_test(without_memory_nothing_is_sent),
        cmocka_unit_test(receivers_of_an_empty_one_wait_and_each_element_wakes_one),
        cmocka_unit_test(a_receiver_notified_in_vain_waits_on),
        cmocka_unit_test(a_receive_that_is_cut_short_takes_nothing),
        cmocka_unit_test(what_was_announced_to_a_destroyed_receiver_goes_to_the_next),
        cmocka_unit_test(a_receive_of_many_waits_for_one_and_takes_what_is_there),
        cmocka_unit_test(closing_ends_all_waits_now_and_later),
        cmocka_unit_test(the_last_sender_that_goes_closes_it),
        cmocka_unit_test(what_is_in_it_at_the_end_is_told_of_once),
        cmocka_unit_test(after_the_last_receiver_sends_fail),
#if TESTING_HOSTED
        cmocka_unit_test(a_thread_waits_until_a_deadline),
        cmocka_unit_test(each_element_comes_once_and_in_its_senders_order),
        cmocka_unit_test(with_fewer_seats_than_threads_nothing_is_lost),
#endif
#if BIDE_DEBUG && TESTING_HOSTED
        cmocka_unit_test(misuse_is_told_with_object_and_caller),
        cmocka_unit_test(more_dropped_than_added_is_misuse),
#endif
    };
    int failed = cmocka_run_group_tests_name("with seats", tests, NULL, NULL);
    own = true;
    return failed + cmocka_run_group_tests_name("without", tests, NULL, NULL);
}

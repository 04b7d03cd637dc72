/*
 * The channel of one sender and one receiver: order, full, empty and closed; waits that are notified, cancelled and
 * destroyed; elements of all sizes; threads.
 */
#include "misuse.h"

#include "bide/select.h"
#include "bide/spsc_channel.h"

typedef bide_spsc_channel(uint64_t) numbers;

#define TEST_CHANNEL                            numbers
#define TEST_WAITER                             bide_spsc_channel_waiter
#define TEST_SEND(waiter, channel, from, seat)  bide_spsc_channel_send((waiter), (channel), (from))
#define TEST_RECEIVE(waiter, channel, to, seat) bide_spsc_channel_recv((waiter), (channel), (to))
#define TEST_SEND_BLOCKING(channel, from, seat, deadline) \
    bide_spsc_channel_send_blocking((channel), (from), (deadline))
#define TEST_RECEIVE_BLOCKING(channel, to, seat, deadline) \
    bide_spsc_channel_recv_blocking((channel), (to), (deadline))
#include "queue/channel_testing.h"

static int send_now(numbers *channel, uint64_t value)
{
    return bide_spsc_channel_try_send(channel, &value);
}

/* The next number; or what the answer was. */
static int64_t receive_now(numbers *channel)
{
    uint64_t value = 0;
    int status = bide_spsc_channel_try_recv(channel, &value);
    return status == 0 ? (int64_t)value : status;
}

static void what_is_sent_comes_in_order_until_it_is_full(void **state)
{
    (void)state;
    numbers channel;
    uint64_t memory[3];
    bide_spsc_channel_init(&channel, memory, 3);
    assert_int_equal(receive_now(&channel), -EAGAIN);
    for (uint64_t lap = 0; lap < 10; lap++) {
        for (uint64_t i = 1; i <= 3; i++)
            assert_int_equal(send_now(&channel, 10 * lap + i), 0);
        assert_int_equal(send_now(&channel, 99), -ENOBUFS);
        assert_int_equal(bide_spsc_channel_count(&channel), 3);
        for (uint64_t i = 1; i <= 3; i++)
            assert_int_equal(receive_now(&channel), 10 * lap + i);
        assert_int_equal(receive_now(&channel), -EAGAIN);
    }
    bide_spsc_channel_destroy(&channel);
}

static void what_was_sent_before_the_close_is_received(void **state)
{
    (void)state;
    numbers channel;
    uint64_t memory[3];
    bide_spsc_channel_init(&channel, memory, 3);
    assert_int_equal(send_now(&channel, 1), 0);
    assert_int_equal(send_now(&channel, 2), 0);
    bide_spsc_channel_close(&channel);
    bide_spsc_channel_close(&channel);
    assert_int_equal(send_now(&channel, 3), -EPIPE);
    assert_int_equal(receive_now(&channel), 1);
    assert_int_equal(receive_now(&channel), 2);
    assert_int_equal(receive_now(&channel), -EPIPE);
    assert_int_equal(receive_now(&channel), -EPIPE);
    bide_spsc_channel_destroy(&channel);
}

static void a_receiver_that_finds_it_empty_waits_for_an_element(void **state)
{
    (void)state;
    by_hand by_hand;
    numbers channel;
    uint64_t memory[2];
    user receiver;
    by_hand_init(&by_hand);
    bide_spsc_channel_init(&channel, memory, 2);
    begin_receive(&receiver, &by_hand, &channel, NULL, 'r');
    assert_int_equal(by_hand_run(&by_hand), 0);
    assert_int_equal(send_now(&channel, 5), 0);
    by_hand_assert_trace(&by_hand, ""); /* posted, not run */
    by_hand_run(&by_hand);
    by_hand_assert_trace(&by_hand, "r");
    assert_int_equal(receiver.status, 0);
    assert_int_equal(receiver.value, 5);
    assert_int_equal(receive_now(&channel), -EAGAIN);
    bide_spsc_channel_destroy(&channel);
}

static void a_sender_that_finds_it_full_waits_for_a_slot(void **state)
{
    (void)state;
    by_hand by_hand;
    numbers channel;
    uint64_t memory[1];
    user sender;
    by_hand_init(&by_hand);
    bide_spsc_channel_init(&channel, memory, 1);
    assert_int_equal(send_now(&channel, 1), 0);
    begin_send(&sender, &by_hand, &channel, NULL, 's', 2);
    assert_int_equal(by_hand_run(&by_hand), 0);
    assert_int_equal(receive_now(&channel), 1);
    by_hand_run(&by_hand);
    by_hand_assert_trace(&by_hand, "s");
    assert_int_equal(sender.status, 0);
    assert_int_equal(receive_now(&channel), 2);
    bide_spsc_channel_destroy(&channel);
}

static void a_ready_operation_does_not_suspend(void **state)
{
    (void)state;
    by_hand by_hand;
    numbers channel;
    uint64_t memory[1];
    user sender, receiver;
    by_hand_init(&by_hand);
    bide_spsc_channel_init(&channel, memory, 1);
    begin_send(&sender, &by_hand, &channel, NULL, 's', 7);
    begin_receive(&receiver, &by_hand, &channel, NULL, 'r');
    by_hand_assert_trace(&by_hand, "sr");
    assert_int_equal(by_hand.posted, 0);
    assert_int_equal(receiver.value, 7);
}

static void closing_ends_a_wait(void **state)
{
    (void)state;
    by_hand by_hand;
    numbers empty, full;
    uint64_t of_empty[1], of_full[1];
    user sender, receiver, late;
    by_hand_init(&by_hand);
    bide_spsc_channel_init(&empty, of_empty, 1);
    bide_spsc_channel_init(&full, of_full, 1);
    assert_int_equal(send_now(&full, 1), 0);
    begin_receive(&receiver, &by_hand, &empty, NULL, 'r');
    begin_send(&sender, &by_hand, &full, NULL, 's', 2);
    bide_spsc_channel_close(&empty);
    bide_stop_request(&sender.stop); /* a waiting send is cancelled first */
    bide_spsc_channel_close(&full);
    by_hand_run(&by_hand);
    by_hand_assert_trace(&by_hand, "rs");
    assert_int_equal(receiver.status, -EPIPE);
    assert_int_equal(sender.status, -ECANCELED);
    begin_receive(&late, &by_hand, &full, NULL, 'a');
    assert_int_equal(late.status, 0);
    assert_int_equal(late.value, 1);
    begin_receive(&late, &by_hand, &full, NULL, 'b');
    assert_int_equal(late.status, -EPIPE);
    begin_send(&late, &by_hand, &full, NULL, 'c', 3);
    assert_int_equal(late.status, -EPIPE);
    bide_spsc_channel_destroy(&empty);
    bide_spsc_channel_destroy(&full);
}

static void a_wait_that_is_cut_short_neither_sends_nor_receives(void **state)
{
    (void)state;
    by_hand by_hand;
    numbers channel;
    uint64_t memory[1];
    user sender, receiver;
    by_hand_init(&by_hand);
    bide_spsc_channel_init(&channel, memory, 1);
    begin_receive(&receiver, &by_hand, &channel, NULL, 'r');
    bide_stop_request(&receiver.stop);
    by_hand_run(&by_hand);
    assert_int_equal(receiver.status, -ECANCELED);
    assert_int_equal(send_now(&channel, 1), 0);
    begin_send(&sender, &by_hand, &channel, NULL, 's', 2);
    bide_stop_request_with(&sender.stop, -ETIMEDOUT);
    by_hand_run(&by_hand);
    assert_int_equal(sender.status, -ETIMEDOUT);
    assert_int_equal(receive_now(&channel), 1);
    assert_int_equal(receive_now(&channel), -EAGAIN);
    bide_spsc_channel_destroy(&channel);
}

static void a_receiver_that_is_destroyed_before_it_runs_has_the_element(void **state)
{
    (void)state;
    by_hand by_hand;
    numbers channel;
    uint64_t memory[1];
    user receiver, next, sender;
    by_hand_init(&by_hand);
    bide_spsc_channel_init(&channel, memory, 1);
    begin_receive(&receiver, &by_hand, &channel, NULL, 'r');
    assert_int_equal(send_now(&channel, 1), 0); /* posted, not run */
    bide_destroy(&receiver.task.frame);
    assert_int_equal(receiver.wait.retry.status, 0);
    assert_int_equal(receiver.value, 1);
    assert_int_equal(by_hand_run(&by_hand), 0);
    assert_int_equal(send_now(&channel, 2), 0);
    begin_send(&sender, &by_hand, &channel, NULL, 's', 3);
    bide_destroy(&sender.task.frame); /* it waits, and is not notified */
    assert_int_not_equal(sender.wait.retry.status, 0);
    begin_receive(&next, &by_hand, &channel, NULL, 'n');
    assert_int_equal(next.status, 0);
    assert_int_equal(next.value, 2);
    assert_int_equal(receive_now(&channel), -EAGAIN);
    bide_spsc_channel_destroy(&channel);
}

/* ---- Elements of all sizes go through the operation's own `ready` ---- */

typedef struct odd {
    unsigned char bytes[13];
} odd;
typedef void *pointer;
typedef struct pair {
    uint64_t a, b;
} pair;

/* NOLINTBEGIN(bugprone-macro-parentheses): types take none */
#define SEND_AND_RECEIVE(type, first)                                                            \
    do {                                                                                         \
        type memory[2], from = first, to;                                                        \
        bide_spsc_channel(type) channel;                                                         \
        bide_spsc_channel_waiter send, receive;                                                  \
        memset(&to, 0, sizeof to);                                                               \
        bide_spsc_channel_init(&channel, memory, 2);                                             \
        assert_int_equal(bide_sync_wait(bide_spsc_channel_send(&send, &channel, &from)), 0);     \
        assert_int_equal(bide_sync_wait(bide_spsc_channel_recv(&receive, &channel, &to)), 0); \
        assert_memory_equal(&from, &to, sizeof to);                                              \
    } while (0)
/* NOLINTEND(bugprone-macro-parentheses) */

/* A coroutine that receives many. */
typedef struct many_user {
    bide_task task;
    by_hand *by_hand;
    numbers *channel;
    bide_spsc_channel_many_waiter wait;
    uint64_t values[4];
    size_t count;
    int status;
} many_user;

bide_coroutine(many_body)
{
    bide_begin(many_body, many_user * self);
    bide_await_status(self->status, bide_spsc_channel_recv_many(&self->wait, self->channel,
                                                                self->values, 4, &self->count));
    by_hand_note(self->by_hand, 'm');
    bide_end();
}

static void a_receive_of_many_waits_for_one_and_takes_what_is_there(void **state)
{
    (void)state;
    numbers channel;
    uint64_t memory[5], values[4];
    size_t count = 9;
    by_hand by_hand;
    by_hand_init(&by_hand);
    bide_spsc_channel_init(&channel, memory, 5);
    assert_int_equal(bide_spsc_channel_try_recv_many(&channel, values, 4, &count), -EAGAIN);
    assert_int_equal(count, 0);
    many_user many = {.by_hand = &by_hand, .channel = &channel, .status = 1};
    by_hand_begin(&by_hand, (bide_await_later(bide_task_init(&many.task, &many_body)), &many.task));
    assert_int_equal(many.status, 1);
    assert_int_equal(send_now(&channel, 1), 0);
    for (uint64_t i = 2; i <= 6; i++)
        assert_int_equal(send_now(&channel, i), 0);
    user sender;
    begin_send(&sender, &by_hand, &channel, NULL, 's', 7);
    assert_int_equal(sender.status, 1);
    by_hand_run(&by_hand);
    by_hand_assert_trace(&by_hand, "m");
    assert_int_equal(many.status, 0);
    assert_int_equal(many.count, 1);
    assert_int_equal(many.values[0], 1);
    assert_int_equal(bide_spsc_channel_try_recv_many(&channel, values, 4, &count), 0);
    assert_int_equal(count, 4);
    for (uint64_t i = 0; i < 4; i++)
        assert_int_equal(values[i], 2 + i);
    by_hand_run(&by_hand);
    assert_int_equal(sender.status, 0);
    bide_spsc_channel_close(&channel);
#if TESTING_HOSTED
    assert_int_equal(bide_spsc_channel_recv_many_blocking(&channel, values, 4, &count, 0), 0);
#else
    assert_int_equal(bide_spsc_channel_try_recv_many(&channel, values, 4, &count), 0);
#endif
    assert_int_equal(count, 2);
    assert_int_equal(values[1], 7);
    assert_int_equal(bide_spsc_channel_try_recv_many(&channel, values, 4, &count), -EPIPE);
    bide_spsc_channel_destroy(&channel);
}

static void elements_of_all_sizes_come_whole(void **state)
{
    (void)state;
    SEND_AND_RECEIVE(char, 'x');
    SEND_AND_RECEIVE(uint32_t, 0x12345678);
    SEND_AND_RECEIVE(uint64_t, 0x123456789abcdef0);
    SEND_AND_RECEIVE(pair, ((pair){1, 2}));
    SEND_AND_RECEIVE(odd, ((odd){{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13}}));
    SEND_AND_RECEIVE(pointer, state);
}

#if TESTING_HOSTED
static void a_thread_waits_until_a_deadline(void **state)
{
    (void)state;
    numbers channel;
    uint64_t memory[1], value = 4;
    bide_spsc_channel_init(&channel, memory, 1);
    assert_int_equal(bide_spsc_channel_recv_blocking(&channel, &value, 0), -ETIMEDOUT);
    assert_int_equal(bide_spsc_channel_send_blocking(&channel, &value, 0), 0);
    assert_int_equal(
        bide_spsc_channel_send_blocking(&channel, &value, bide_platform.now() + 1000000),
        -ETIMEDOUT);
    assert_int_equal(bide_spsc_channel_recv_blocking(&channel, &value, BIDE_FOREVER), 0);
    assert_int_equal(value, 4);
    bide_spsc_channel_close(&channel);
    assert_int_equal(bide_spsc_channel_recv_blocking(&channel, &value, BIDE_FOREVER), -EPIPE);
    bide_spsc_channel_destroy(&channel);
}

static void close_it(stress *stress)
{
    bide_spsc_channel_close(stress->channel);
}

static void each_element_comes_once_and_in_order(void **state)
{
    (void)state;
    static const size_t capacities[] = {1, 2, 7, 64};
    for (size_t i = 0; i < sizeof capacities / sizeof *capacities; i++) {
        numbers channel;
        uint64_t memory[64];
        bide_spsc_channel_init(&channel, memory, capacities[i]);
        stress_run(&channel, NULL, 1, 1, close_it);
        bide_spsc_channel_destroy(&channel);
    }
}
#endif

/* ---- Its ends, and elements that the receiver does not get ---- */

static void the_last_sender_that_goes_closes_it(void **state)
{
    (void)state;
    numbers channel;
    uint64_t memory[3];
    bide_spsc_channel_init(&channel, memory, 3);
    bide_spsc_channel_sender_add(&channel);
    bide_spsc_channel_sender_add(&channel);
    assert_int_equal(send_now(&channel, 1), 0);
    bide_spsc_channel_sender_drop(&channel);
    assert_int_equal(send_now(&channel, 2), 0);
    bide_spsc_channel_sender_drop(&channel);
    assert_int_equal(send_now(&channel, 3), -EPIPE);
    assert_int_equal(receive_now(&channel), 1);
    assert_int_equal(receive_now(&channel), 2);
    assert_int_equal(receive_now(&channel), -EPIPE);
    bide_spsc_channel_destroy(&channel);
}

struct told {
    uint64_t numbers[16];
    size_t count;
};

static void note_undelivered(void *argument, void *element)
{
    struct told *told = argument;
    assert_true(told->count < 16);
    told->numbers[told->count++] = *(uint64_t *)element;
}

static void what_is_in_it_at_the_end_is_told_of_once(void **state)
{
    (void)state;
    for (uint64_t before = 0; before < 4; before++) {
        for (uint64_t sent = 0; sent <= 3; sent++) {
            struct told told = {.count = 0};
            bide_spsc_channel_options options = {false, note_undelivered, &told};
            numbers channel;
            uint64_t memory[3];
            bide_spsc_channel_init_with(&channel, memory, 3, &options);
            for (uint64_t i = 0; i < before; i++) {
                assert_int_equal(send_now(&channel, 99), 0);
                assert_int_equal(receive_now(&channel), 99);
            }
            for (uint64_t i = 1; i <= sent; i++)
                assert_int_equal(send_now(&channel, i), 0);
            if (sent == 3)
                assert_int_equal(send_now(&channel, 4), -ENOBUFS);
            if (before % 2 == 0)
                bide_spsc_channel_close(&channel);
            assert_int_equal(told.count, 0);
            bide_spsc_channel_destroy(&channel);
            assert_int_equal(told.count, sent);
            for (uint64_t i = 0; i < sent; i++)
                assert_int_equal(told.numbers[i], i + 1);
        }
    }
}

struct dropping {
    bide_task task;
    numbers *channel;
    bide_spsc_channel_waiter wait;
    bide_select_of(1) select;
    uint64_t numbers[2];
    int status[2];
};

bide_coroutine(dropping_body)
{
    bide_begin(dropping_body, struct dropping * self);
    bide_await_status(self->status[0],
                      bide_spsc_channel_send(&self->wait, self->channel, &self->numbers[0]));
    bide_await_status(
        self->status[1],
        bide_select_any_of(&self->select,
                           bide_spsc_channel_send(&self->wait, self->channel, &self->numbers[1])));
    bide_end();
}

static void a_send_to_a_full_channel_drops_the_newest(void **state)
{
    (void)state;
    struct told told = {.count = 0};
    bide_spsc_channel_options options = {true, note_undelivered, &told};
    numbers channel;
    uint64_t memory[2];
    bide_spsc_channel_init_with(&channel, memory, 2, &options);
    for (uint64_t i = 1; i <= 3; i++)
        assert_int_equal(send_now(&channel, i), 0);
    by_hand by_hand;
    by_hand_init(&by_hand);
    struct dropping dropping = {.channel = &channel, .numbers = {4, 5}, .status = {1, 1}};
    dropping.select.random = 1;
    bide_start(&dropping.task.frame, &dropping_body, &by_hand.context);
    bide_resume(&dropping.task.frame);
    by_hand_run(&by_hand);
    assert_int_equal(dropping.status[0], 0);
    assert_int_equal(dropping.status[1], 0);
    assert_int_equal(told.count, 3);
    for (uint64_t i = 0; i < 3; i++)
        assert_int_equal(told.numbers[i], 3 + i);
    told.count = 0;
    assert_int_equal(receive_now(&channel), 1);
    assert_int_equal(send_now(&channel, 6), 0);
    assert_int_equal(receive_now(&channel), 2);
    assert_int_equal(receive_now(&channel), 6);
    assert_int_equal(receive_now(&channel), -EAGAIN);
    bide_spsc_channel_close(&channel);
    assert_int_equal(send_now(&channel, 7), -EPIPE);
    bide_spsc_channel_destroy(&channel);
    assert_int_equal(told.count, 0);
}

#if BIDE_DEBUG && TESTING_HOSTED
static void drop_a_sender_too_many(void)
{
    numbers channel;
    uint64_t memory[1];
    bide_spsc_channel_init(&channel, memory, 1);
    bide_spsc_channel_sender_drop(&channel);
}

static void more_dropped_than_added_is_misuse(void **state)
{
    (void)state;
    assert_true(misuse_aborts_naming(drop_a_sender_too_many,
                                     "more senders are dropped than were added",
                                     "drop_a_sender_too_many"));
}

static void destroy_what_is_waited_for(void)
{
    by_hand by_hand;
    numbers channel;
    uint64_t memory[1];
    user receiver;
    by_hand_init(&by_hand);
    bide_spsc_channel_init(&channel, memory, 1);
    begin_receive(&receiver, &by_hand, &channel, NULL, 'r');
    bide_spsc_channel_destroy(&channel);
}

static void close_while_a_send_waits(void)
{
    by_hand by_hand;
    numbers channel;
    uint64_t memory[1];
    user sender;
    by_hand_init(&by_hand);
    bide_spsc_channel_init(&channel, memory, 1);
    send_now(&channel, 1);
    begin_send(&sender, &by_hand, &channel, NULL, 's', 2);
    bide_spsc_channel_close(&channel);
}

static void misuse_is_told_with_object_and_caller(void **state)
{
    (void)state;
    assert_true(
        misuse_aborts_naming(destroy_what_is_waited_for, "&channel", "destroy_what_is_waited_for"));
    assert_true(misuse_aborts_naming(close_while_a_send_waits, "while a send waits",
                                     "spsc_channel_test.c"));
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_sent_comes_in_order_until_it_is_full),
        cmocka_unit_test(what_was_sent_before_the_close_is_received),
        cmocka_unit_test(a_receiver_that_finds_it_empty_waits_for_an_element),
        cmocka_unit_test(a_sender_that_finds_it_full_waits_for_a_slot),
        cmocka_unit_test(a_ready_operation_does_not_suspend),
        cmocka_unit_test(closing_ends_a_wait),
        cmocka_unit_test(the_last_sender_that_goes_closes_it),
        cmocka_unit_test(what_is_in_it_at_the_end_is_told_of_once),
        cmocka_unit_test(a_send_to_a_full_channel_drops_the_newest),
        cmocka_unit_test(a_wait_that_is_cut_short_neither_sends_nor_receives),
        cmocka_unit_test(a_receiver_that_is_destroyed_before_it_runs_has_the_element),
        cmocka_unit_test(a_receive_of_many_waits_for_one_and_takes_what_is_there),
        cmocka_unit_test(elements_of_all_sizes_come_whole),
#if TESTING_HOSTED
        cmocka_unit_test(a_thread_waits_until_a_deadline),
        cmocka_unit_test(each_element_comes_once_and_in_order),
#endif
#if BIDE_DEBUG && TESTING_HOSTED
        cmocka_unit_test(misuse_is_told_with_object_and_caller),
        cmocka_unit_test(more_dropped_than_added_is_misuse),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * The rendezvous: a send ends when a receiver has the element; waits on both sides, cancelled, destroyed and closed;
 * threads.
 */
#include "misuse.h"

#include "bide/rendezvous.h"

typedef bide_rendezvous(uint64_t) numbers;
typedef union number_waiter {
    bide_rendezvous_sender sender;
    bide_rendezvous_receiver receiver;
} number_waiter;

#define TEST_CHANNEL numbers
#define TEST_WAITER  number_waiter
#define TEST_SEND(waiter, channel, from, seat) \
    bide_rendezvous_send(&(waiter)->sender, (channel), (from))
#define TEST_RECEIVE(waiter, channel, to, seat) \
    bide_rendezvous_recv(&(waiter)->receiver, (channel), (to))
#define TEST_SEND_BLOCKING(channel, from, seat, deadline) \
    bide_rendezvous_send_blocking((channel), (from), (deadline))
#define TEST_RECEIVE_BLOCKING(channel, to, seat, deadline) \
    bide_rendezvous_recv_blocking((channel), (to), (deadline))
#include "queue/channel_testing.h"

/* The next number; or what the answer was. */
static int64_t receive_now(numbers *channel)
{
    uint64_t value = 0;
    int status = bide_rendezvous_try_recv(channel, &value);
    return status == 0 ? (int64_t)value : status;
}

static void a_send_ends_when_it_was_received(void **state)
{
    (void)state;
    by_hand by_hand;
    numbers channel;
    user sender;
    by_hand_init(&by_hand);
    bide_rendezvous_init(&channel);
    assert_int_equal(receive_now(&channel), -EAGAIN);
    begin_send(&sender, &by_hand, &channel, NULL, 's', 5);
    assert_int_equal(by_hand_run(&by_hand), 0);
    assert_int_equal(receive_now(&channel), 5);
    by_hand_assert_trace(&by_hand, ""); /* posted, not run */
    by_hand_run(&by_hand);
    by_hand_assert_trace(&by_hand, "s");
    assert_int_equal(sender.status, 0);
    assert_int_equal(receive_now(&channel), -EAGAIN);
    bide_rendezvous_destroy(&channel);
}

static void a_receiver_waits_for_a_sender(void **state)
{
    (void)state;
    by_hand by_hand;
    numbers channel;
    user sender, receiver;
    by_hand_init(&by_hand);
    bide_rendezvous_init(&channel);
    begin_receive(&receiver, &by_hand, &channel, NULL, 'r');
    begin_send(&sender, &by_hand, &channel, NULL, 's', 6);
    by_hand_assert_trace(&by_hand, "s"); /* the receiver has it, and has not run */
    by_hand_run(&by_hand);
    by_hand_assert_trace(&by_hand, "r");
    assert_int_equal(receiver.status, 0);
    assert_int_equal(receiver.value, 6);
    assert_int_equal(sender.status, 0);
    bide_rendezvous_destroy(&channel);
}

static void to_send_at_once_a_receiver_must_wait(void **state)
{
    (void)state;
    by_hand by_hand;
    numbers channel;
    user receivers[3];
    by_hand_init(&by_hand);
    bide_rendezvous_init(&channel);
    uint64_t value = 1;
    assert_int_equal(bide_rendezvous_try_send(&channel, &value), -EAGAIN);
    for (int i = 0; i < 3; i++)
        begin_receive(&receivers[i], &by_hand, &channel, NULL, (char)('a' + i));
    bide_stop_request(&receivers[1].stop);
    for (; value <= 2; value++)
        assert_int_equal(bide_rendezvous_try_send(&channel, &value), 0);
    assert_int_equal(bide_rendezvous_try_send(&channel, &value), -EAGAIN);
    by_hand_run(&by_hand);
    by_hand_assert_trace(&by_hand, "bac");
    assert_int_equal(receivers[0].value, 1);
    assert_int_equal(receivers[1].status, -ECANCELED);
    assert_int_equal(receivers[2].value, 2);
    bide_rendezvous_close(&channel);
    assert_int_equal(bide_rendezvous_try_send(&channel, &value), -EPIPE);
    bide_rendezvous_destroy(&channel);
}

static void senders_go_on_in_the_order_in_which_they_came(void **state)
{
    (void)state;
    by_hand by_hand;
    numbers channel;
    user senders[4];
    by_hand_init(&by_hand);
    bide_rendezvous_init(&channel);
    for (int i = 0; i < 4; i++)
        begin_send(&senders[i], &by_hand, &channel, NULL, (char)('a' + i), (uint64_t)i);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(receive_now(&channel), i);
        if (i % 2 == 0) /* the next has offered, though it has not run */
            by_hand_run(&by_hand);
    }
    by_hand_run(&by_hand);
    by_hand_assert_trace(&by_hand, "abcd");
    bide_rendezvous_destroy(&channel);
}

static void receivers_go_on_in_the_order_in_which_they_came(void **state)
{
    (void)state;
    by_hand by_hand;
    numbers channel;
    user senders[3], receivers[3];
    by_hand_init(&by_hand);
    bide_rendezvous_init(&channel);
    for (int i = 0; i < 3; i++)
        begin_receive(&receivers[i], &by_hand, &channel, NULL, (char)('a' + i));
    for (int i = 0; i < 3; i++) {
        begin_send(&senders[i], &by_hand, &channel, NULL, 's', 10 + (uint64_t)i);
        by_hand_run(&by_hand);
        assert_int_equal(receivers[i].value, 10 + i);
    }
    by_hand_assert_trace(&by_hand, "sasbsc");
    bide_rendezvous_destroy(&channel);
}

static void an_offer_that_is_cut_short_was_not_received_and_the_next_is_made(void **state)
{
    (void)state;
    by_hand by_hand;
    numbers channel;
    user senders[3], receiver;
    by_hand_init(&by_hand);
    bide_rendezvous_init(&channel);
    for (int i = 0; i < 3; i++)
        begin_send(&senders[i], &by_hand, &channel, NULL, (char)('a' + i), (uint64_t)i);
    bide_stop_request_with(&senders[0].stop, -ETIMEDOUT); /* it is offered */
    bide_stop_request(&senders[1].stop);                  /* it may be, and has not run */
    by_hand_run(&by_hand);
    assert_int_equal(senders[0].status, -ETIMEDOUT);
    assert_int_equal(senders[1].status, -ECANCELED);
    assert_int_equal(senders[2].status, 1);
    begin_receive(&receiver, &by_hand, &channel, NULL, 'r');
    assert_int_equal(receiver.status, 0);
    assert_int_equal(receiver.value, 2);
    by_hand_run(&by_hand);
    assert_int_equal(senders[2].status, 0);
    bide_rendezvous_destroy(&channel);
}

static void a_send_that_was_received_ends_so_although_it_is_asked_to_stop(void **state)
{
    (void)state;
    by_hand by_hand;
    numbers channel;
    user sender;
    by_hand_init(&by_hand);
    bide_rendezvous_init(&channel);
    begin_send(&sender, &by_hand, &channel, NULL, 's', 3);
    assert_int_equal(receive_now(&channel), 3); /* posted, not run */
    bide_stop_request(&sender.stop);
    by_hand_run(&by_hand);
    assert_int_equal(sender.status, 0);
    bide_rendezvous_destroy(&channel);
}

static void a_sender_asked_to_stop_before_offers_nothing_for_long(void **state)
{
    (void)state;
    by_hand by_hand;
    numbers channel;
    user sender, receiver;
    by_hand_init(&by_hand);
    bide_rendezvous_init(&channel);
    sender.value = 4;
    sender.by_hand = &by_hand;
    sender.channel = &channel;
    sender.name = 's';
    bide_stop_source_init(&sender.stop);
    bide_stop_request(&sender.stop);
    sender.context = by_hand.context;
    sender.context.stop = &sender.stop;
    bide_start(&sender.task.frame, &send_body, &sender.context);
    bide_resume(&sender.task.frame);
    assert_int_equal(sender.status, -ECANCELED);
    assert_int_equal(receive_now(&channel), -EAGAIN);
    begin_receive(&receiver, &by_hand, &channel, NULL, 'r');
    bide_stop_request(&receiver.stop);
    by_hand_run(&by_hand);
    assert_int_equal(receiver.status, -ECANCELED);
    bide_rendezvous_destroy(&channel);
}

static void a_destroyed_sender_takes_its_offer_along(void **state)
{
    (void)state;
    by_hand by_hand;
    numbers channel;
    user senders[4];
    by_hand_init(&by_hand);
    bide_rendezvous_init(&channel);
    for (int i = 0; i < 4; i++)
        begin_send(&senders[i], &by_hand, &channel, NULL, (char)('a' + i), (uint64_t)i);
    bide_destroy(&senders[0].task.frame);       /* it is offered, so the next one is now */
    bide_destroy(&senders[1].task.frame);       /* it has not run; so the next one is */
    assert_int_equal(receive_now(&channel), 2); /* ended, has not run; the next is offered */
    bide_destroy(&senders[2].task.frame);
    assert_int_equal(receive_now(&channel), 3);
    by_hand_run(&by_hand);
    by_hand_assert_trace(&by_hand, "d");
    bide_rendezvous_destroy(&channel);
}

static void a_receiver_that_is_destroyed_before_it_runs_has_the_element(void **state)
{
    (void)state;
    by_hand by_hand;
    numbers channel;
    user sender, receivers[2];
    by_hand_init(&by_hand);
    bide_rendezvous_init(&channel);
    begin_receive(&receivers[0], &by_hand, &channel, NULL, 'a');
    begin_receive(&receivers[1], &by_hand, &channel, NULL, 'b');
    begin_send(&sender, &by_hand, &channel, NULL, 's', 9); /* the first has not run */
    bide_destroy(&receivers[0].task.frame);
    assert_int_equal(receivers[0].value, 9);
    assert_int_equal(by_hand_run(&by_hand), 0);
    begin_send(&sender, &by_hand, &channel, NULL, 't', 10);
    by_hand_run(&by_hand);
    by_hand_assert_trace(&by_hand, "stb");
    assert_int_equal(receivers[1].value, 10);
    bide_rendezvous_destroy(&channel);
}

static void closing_ends_all_waits_now_and_later(void **state)
{
    (void)state;
    by_hand by_hand;
    numbers sent, received;
    user senders[3], receivers[2];
    by_hand_init(&by_hand);
    bide_rendezvous_init(&sent);
    bide_rendezvous_init(&received);
    for (int i = 0; i < 3; i++)
        begin_send(&senders[i], &by_hand, &sent, NULL, 's', (uint64_t)i);
    for (int i = 0; i < 2; i++)
        begin_receive(&receivers[i], &by_hand, &received, NULL, 'r');
    assert_int_equal(receive_now(&sent), 0); /* that one was received */
    bide_rendezvous_close(&sent);
    bide_rendezvous_close(&sent);
    bide_rendezvous_close(&received);
    by_hand_run(&by_hand);
    by_hand_assert_trace(&by_hand, "sssrr");
    assert_int_equal(senders[0].status, 0);
    assert_int_equal(senders[1].status, -EPIPE);
    assert_int_equal(senders[2].status, -EPIPE);
    assert_int_equal(receivers[0].status, -EPIPE);
    assert_int_equal(receivers[1].status, -EPIPE);
    assert_int_equal(receive_now(&sent), -EPIPE);
    begin_send(&senders[0], &by_hand, &sent, NULL, 's', 7);
    assert_int_equal(senders[0].status, -EPIPE);
    begin_send(&senders[0], &by_hand, &received, NULL, 's', 7);
    assert_int_equal(senders[0].status, -EPIPE);
    begin_receive(&receivers[0], &by_hand, &received, NULL, 'r');
    assert_int_equal(receivers[0].status, -EPIPE);
    bide_rendezvous_destroy(&sent);
    bide_rendezvous_destroy(&received);
}

static void an_offer_is_ended_by_the_close(void **state)
{
    (void)state;
    by_hand by_hand;
    numbers channel;
    user sender;
    by_hand_init(&by_hand);
    bide_rendezvous_init(&channel);
    begin_send(&sender, &by_hand, &channel, NULL, 's', 1);
    bide_rendezvous_close(&channel);
    by_hand_assert_trace(&by_hand, "");
    by_hand_run(&by_hand);
    by_hand_assert_trace(&by_hand, "s");
    assert_int_equal(sender.status, -EPIPE);
    assert_int_equal(receive_now(&channel), -EPIPE);
    bide_rendezvous_destroy(&channel);
}

#if TESTING_HOSTED
static void *receive_one(void *argument)
{
    uint64_t value = 0;
    int status = bide_rendezvous_recv_blocking((numbers *)argument, &value, BIDE_FOREVER);
    return (void *)(uintptr_t)(status == 0 ? value : 0);
}

static void a_thread_waits_until_a_deadline(void **state)
{
    (void)state;
    numbers channel;
    uint64_t value = 4;
    pthread_t receiver;
    void *received;
    bide_rendezvous_init(&channel);
    assert_int_equal(bide_rendezvous_recv_blocking(&channel, &value, 0), -ETIMEDOUT);
    assert_int_equal(bide_rendezvous_send_blocking(&channel, &value, 0), -ETIMEDOUT);
    assert_int_equal(bide_rendezvous_send_blocking(&channel, &value, bide_platform.now() + 1000000),
                     -ETIMEDOUT);
    start_thread(&receiver, receive_one, &channel);
    assert_int_equal(bide_rendezvous_send_blocking(&channel, &value, BIDE_FOREVER), 0);
    assert_int_equal(pthread_join(receiver, &received), 0);
    assert_int_equal((uintptr_t)received, 4);
    bide_rendezvous_close(&channel);
    assert_int_equal(bide_rendezvous_send_blocking(&channel, &value, BIDE_FOREVER), -EPIPE);
    assert_int_equal(bide_rendezvous_recv_blocking(&channel, &value, BIDE_FOREVER), -EPIPE);
    bide_rendezvous_destroy(&channel);
}

static void close_it(stress *stress)
{
    bide_rendezvous_close(stress->channel);
}

static void each_element_is_received_once_and_its_sender_knows(void **state)
{
    (void)state;
    static const uint32_t parties[][2] = {{1, 1}, {3, 1}, {1, 3}, {3, 3}};
    for (size_t i = 0; i < sizeof parties / sizeof *parties; i++) {
        numbers channel;
        bide_rendezvous_init(&channel);
        stress_run(&channel, NULL, parties[i][0], parties[i][1], close_it);
        bide_rendezvous_destroy(&channel);
    }
}
#endif

#if BIDE_DEBUG && TESTING_HOSTED
static void destroy_what_is_waited_for(void)
{
    by_hand by_hand;
    numbers channel;
    user sender;
    by_hand_init(&by_hand);
    bide_rendezvous_init(&channel);
    begin_send(&sender, &by_hand, &channel, NULL, 's', 1);
    bide_rendezvous_destroy(&channel);
}

static void misuse_is_told_with_object_and_caller(void **state)
{
    (void)state;
    assert_true(
        misuse_aborts_naming(destroy_what_is_waited_for, "&channel", "destroy_what_is_waited_for"));
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_send_ends_when_it_was_received),
        cmocka_unit_test(a_receiver_waits_for_a_sender),
        cmocka_unit_test(to_send_at_once_a_receiver_must_wait),
        cmocka_unit_test(senders_go_on_in_the_order_in_which_they_came),
        cmocka_unit_test(receivers_go_on_in_the_order_in_which_they_came),
        cmocka_unit_test(an_offer_that_is_cut_short_was_not_received_and_the_next_is_made),
        cmocka_unit_test(a_send_that_was_received_ends_so_although_it_is_asked_to_stop),
        cmocka_unit_test(a_sender_asked_to_stop_before_offers_nothing_for_long),
        cmocka_unit_test(a_destroyed_sender_takes_its_offer_along),
        cmocka_unit_test(a_receiver_that_is_destroyed_before_it_runs_has_the_element),
        cmocka_unit_test(closing_ends_all_waits_now_and_later),
        cmocka_unit_test(an_offer_is_ended_by_the_close),
#if TESTING_HOSTED
        cmocka_unit_test(a_thread_waits_until_a_deadline),
        cmocka_unit_test(each_element_is_received_once_and_its_sender_knows),
#endif
#if BIDE_DEBUG && TESTING_HOSTED
        cmocka_unit_test(misuse_is_told_with_object_and_caller),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

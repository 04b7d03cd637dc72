/*
 * The oneshot: one value, once; the winner of several sends and closes; cancelled receives. The contract of all waits is
 * tested elsewhere (sync/contract_test.c).
 */
#include "misuse.h"
#include "sync/by_hand.h"
#include "sync/meeting.h"

#include "bide/handle.h"
#include "bide/oneshot.h"
#include "bide/stop.h"

#if TESTING_HOSTED
#include "bide/pollable.h"
#include "bide/run_loop.h"

#include <poll.h>
#endif

typedef struct answer {
    uint64_t number;
    char text[13];
} answer;

typedef bide_oneshot(answer) answers;

static answer answer_of(uint64_t number)
{
    answer a = {number, {0}};
    for (size_t i = 0; i < sizeof a.text; i++)
        a.text[i] = (char)(number + i);
    return a;
}

static bool is_whole(const answer *a)
{
    answer expected = answer_of(a->number);
    return memcmp(a->text, expected.text, sizeof a->text) == 0;
}

/* A task that receives. */
struct receiver {
    bide_task task;
    by_hand *by_hand;
    answers *oneshot;
    bide_oneshot_waiter wait;
    bide_context context;
    bide_stop_source stop;
    answer got;
    int status; /* 1: it has not ended */
};

bide_coroutine(receiver_body)
{
    bide_begin(receiver_body, struct receiver * self);
    bide_await_status(self->status, bide_oneshot_recv(&self->wait, self->oneshot, &self->got));
    by_hand_note(self->by_hand, self->status == 0 ? 'r' : 'e');
    bide_end();
}

static void begin_receiver(struct receiver *self, by_hand *by_hand, answers *oneshot)
{
    self->by_hand = by_hand;
    self->oneshot = oneshot;
    self->status = 1;
    bide_stop_source_init(&self->stop);
    self->context = by_hand->context;
    self->context.stop = &self->stop;
    bide_start(&self->task.frame, &receiver_body, &self->context);
    bide_resume(&self->task.frame);
}

static void what_is_sent_is_received_once(void **state)
{
    (void)state;
    answers oneshot;
    answer sent = answer_of(7), other = answer_of(8), got = answer_of(0);
    bide_oneshot_init(&oneshot);
    assert_int_equal(bide_oneshot_try_recv(&oneshot, &got), -EAGAIN);
    assert_false(bide_oneshot_is_decided(&oneshot));
    assert_int_equal(bide_oneshot_send(&oneshot, &sent), 0);
    assert_true(bide_oneshot_is_decided(&oneshot));
    assert_int_equal(bide_oneshot_send(&oneshot, &other), -EPIPE);
    assert_int_equal(bide_oneshot_try_recv(&oneshot, &got), 0);
    assert_true(got.number == 7 && is_whole(&got));
    for (int i = 0; i < 2; i++)
        assert_int_equal(bide_oneshot_try_recv(&oneshot, &got), -EPIPE);
    assert_int_equal(bide_oneshot_recv_blocking(&oneshot, &got, BIDE_FOREVER), -EPIPE);
    assert_int_equal(bide_oneshot_send(&oneshot, &other), -EPIPE);
    bide_oneshot_destroy(&oneshot);
}

static void the_receiver_is_woken_with_the_value(void **state)
{
    (void)state;
    by_hand by_hand;
    answers oneshot;
    struct receiver receiver;
    answer sent = answer_of(9);
    by_hand_init(&by_hand);
    bide_oneshot_init(&oneshot);
    begin_receiver(&receiver, &by_hand, &oneshot);
    by_hand_assert_trace(&by_hand, "");
    assert_int_equal(bide_oneshot_send(&oneshot, &sent), 0);
    assert_int_equal(by_hand.posted, 1);
    assert_int_equal(by_hand_run(&by_hand), 1);
    by_hand_assert_trace(&by_hand, "r");
    assert_true(receiver.got.number == 9 && is_whole(&receiver.got));
    begin_receiver(&receiver, &by_hand, &oneshot);
    by_hand_assert_trace(&by_hand, "e");
    assert_int_equal(receiver.status, -EPIPE);
    bide_oneshot_destroy(&oneshot);
}

static void once_it_is_closed_the_value_stays_the_senders(void **state)
{
    (void)state;
    by_hand by_hand;
    answers oneshot;
    struct receiver receiver;
    answer sent = answer_of(10), got = answer_of(1);
    by_hand_init(&by_hand);
    for (int waits = 0; waits < 2; waits++) {
        bide_oneshot_init(&oneshot);
        if (waits)
            begin_receiver(&receiver, &by_hand, &oneshot);
        bide_oneshot_close(&oneshot);
        bide_oneshot_close(&oneshot);
        assert_true(bide_oneshot_is_decided(&oneshot));
        assert_int_equal(by_hand_run(&by_hand), waits);
        if (waits)
            assert_int_equal(receiver.status, -EPIPE);
        assert_int_equal(bide_oneshot_send(&oneshot, &sent), -EPIPE);
        assert_true(sent.number == 10 && is_whole(&sent));
        assert_int_equal(bide_oneshot_try_recv(&oneshot, &got), -EPIPE);
        assert_int_equal(bide_oneshot_recv_blocking(&oneshot, &got, 0), -EPIPE);
        assert_int_equal(got.number, 1);
    }
}

static void what_was_sent_before_the_close_is_received(void **state)
{
    (void)state;
    answers oneshot;
    answer sent = answer_of(11), got = answer_of(0);
    bide_oneshot_init(&oneshot);
    assert_int_equal(bide_oneshot_send(&oneshot, &sent), 0);
    bide_oneshot_close(&oneshot);
    assert_int_equal(bide_oneshot_send(&oneshot, &sent), -EPIPE);
    assert_int_equal(bide_oneshot_recv_blocking(&oneshot, &got, 0), 0);
    assert_int_equal(got.number, 11);
    assert_int_equal(bide_oneshot_try_recv(&oneshot, &got), -EPIPE);
}

static void a_receive_that_was_cut_short_can_be_begun_again(void **state)
{
    (void)state;
    by_hand by_hand;
    answers oneshot;
    struct receiver receiver;
    answer sent = answer_of(12);
    by_hand_init(&by_hand);
    bide_oneshot_init(&oneshot);
    for (int i = 0; i < 2; i++) {
        begin_receiver(&receiver, &by_hand, &oneshot);
        bide_stop_request_with(&receiver.stop, i == 0 ? -ECANCELED : -ETIMEDOUT);
        if (i == 1)
            assert_int_equal(bide_oneshot_send(&oneshot, &sent), 0);
        assert_int_equal(by_hand_run(&by_hand), 1);
        assert_int_equal(receiver.status, i == 0 ? -ECANCELED : -ETIMEDOUT);
    }
    begin_receiver(&receiver, &by_hand, &oneshot);
    assert_int_equal(receiver.status, 0);
    assert_int_equal(receiver.got.number, 12);
    bide_oneshot_destroy(&oneshot);
}

static void a_receiver_that_is_destroyed_leaves_the_value_there(void **state)
{
    (void)state;
    by_hand by_hand;
    answers oneshot;
    struct receiver receiver;
    answer sent = answer_of(13), got = answer_of(0);
    by_hand_init(&by_hand);
    for (int woken = 0; woken < 2; woken++) {
        bide_oneshot_init(&oneshot);
        begin_receiver(&receiver, &by_hand, &oneshot);
        if (woken)
            assert_int_equal(bide_oneshot_send(&oneshot, &sent), 0);
        bide_destroy(&receiver.task.frame);
        if (!woken)
            assert_int_equal(bide_oneshot_send(&oneshot, &sent), 0);
        assert_int_equal(by_hand_run(&by_hand), 0);
        assert_int_equal(bide_oneshot_try_recv(&oneshot, &got), 0);
        assert_int_equal(got.number, 13);
    }
    by_hand_assert_trace(&by_hand, "");
}

static void it_holds_values_of_any_type(void **state)
{
    (void)state;
    typedef struct large {
        char bytes[1000];
    } large;
    bide_oneshot(char) small;
    bide_oneshot(large) big;
    bide_oneshot(const char *) pointer;
    char c = 'x', got_char = 0;
    const char *text = "text", *got_text = NULL;
    large out, in;
    memset(&out, 'y', sizeof out);
    bide_oneshot_init(&small);
    bide_oneshot_init(&big);
    bide_oneshot_init(&pointer);
    assert_int_equal(bide_oneshot_send(&small, &c), 0);
    assert_int_equal(bide_oneshot_send(&big, &out), 0);
    assert_int_equal(bide_oneshot_send(&pointer, &text), 0);
    assert_int_equal(bide_oneshot_try_recv(&small, &got_char), 0);
    assert_int_equal(bide_oneshot_recv_blocking(&big, &in, 0), 0);
    assert_int_equal(bide_oneshot_try_recv(&pointer, &got_text), 0);
    assert_int_equal(got_char, 'x');
    assert_memory_equal(&in, &out, sizeof out);
    assert_ptr_equal(got_text, text);
}

#if TESTING_HOSTED

enum { SHORT = 1000 * 1000 };

#if BIDE_DEBUG
static void destroy_it_while_it_is_awaited(void)
{
    by_hand by_hand;
    answers precious;
    struct receiver receiver;
    by_hand_init(&by_hand);
    bide_oneshot_init(&precious);
    begin_receiver(&receiver, &by_hand, &precious);
    bide_oneshot_destroy(&precious);
}

static void to_destroy_it_while_it_is_awaited_is_misuse(void **state)
{
    (void)state;
    assert_true(misuse_aborts_naming(destroy_it_while_it_is_awaited,
                                     "a oneshot is destroyed while it is waited for: &precious",
                                     "destroy_it_while_it_is_awaited"));
}

static void receive_twice_at_once(void)
{
    by_hand by_hand;
    answers oneshot;
    struct receiver receivers[2];
    by_hand_init(&by_hand);
    bide_oneshot_init(&oneshot);
    begin_receiver(&receivers[0], &by_hand, &oneshot);
    begin_receiver(&receivers[1], &by_hand, &oneshot);
}

static void two_receivers_at_once_are_misuse(void **state)
{
    (void)state;
    assert_true(misuse_aborts_naming(receive_twice_at_once, "two receive at once from a oneshot",
                                     "receiver_body"));
}
#endif

static void a_thread_receives_until_a_deadline(void **state)
{
    (void)state;
    answers oneshot;
    answer sent = answer_of(14), got;
    bide_oneshot_init(&oneshot);
    uint64_t soon = bide_platform.now() + SHORT;
    assert_int_equal(bide_oneshot_recv_blocking(&oneshot, &got, soon), -ETIMEDOUT);
    assert_true(bide_platform.now() >= soon);
    assert_int_equal(bide_oneshot_send(&oneshot, &sent), 0);
    assert_int_equal(bide_oneshot_recv_blocking(&oneshot, &got, 0), 0);
    assert_int_equal(got.number, 14);
}

static void a_descriptor_is_readable_when_it_is_sent(void **state)
{
    (void)state;
    bide_pollable pollable;
    bide_oneshot_waiter wait;
    answers oneshot;
    answer sent = answer_of(15), got;
    int status = 1;
    bide_oneshot_init(&oneshot);
    assert_int_equal(bide_pollable_init(&pollable), 0);
    bide_pollable_start(&pollable, NULL, bide_oneshot_recv(&wait, &oneshot, &got));
    struct pollfd polled = {.fd = bide_pollable_fd(&pollable), .events = POLLIN};
    assert_int_equal(poll(&polled, 1, 0), 0);
    assert_int_equal(bide_oneshot_send(&oneshot, &sent), 0);
    assert_int_equal(poll(&polled, 1, 0), 1);
    assert_int_equal(bide_pollable_finish(&pollable, &status), 0);
    assert_int_equal(status, 0);
    assert_int_equal(got.number, 15);
    bide_pollable_destroy(&pollable);
}

/* A task asks another on the same loop, and receives its answer. */
struct asker {
    bide_task task;
    bide_task answering;
    answers oneshot;
    bide_oneshot_waiter wait;
    answer got;
};

bide_coroutine(answering_body)
{
    bide_begin(answering_body, bide_task * self);
    answers *oneshot = &bide_container_of(self, struct asker, answering)->oneshot;
    answer own = answer_of(16);
    bide_return(bide_oneshot_send(oneshot, &own));
    bide_end();
}

bide_coroutine(asker_body)
{
    bide_begin(asker_body, struct asker * self);
    bide_oneshot_init(&self->oneshot);
    bide_try(bide_task_init(&self->answering, &answering_body));
    bide_try(bide_oneshot_recv(&self->wait, &self->oneshot, &self->got));
    bide_end();
}

static void an_answer_is_had_in_a_run_loop(void **state)
{
    (void)state;
    bide_run_loop loop;
    struct asker asker;
    bide_run_loop_init(&loop);
    assert_int_equal(bide_run_loop_wait(&loop, bide_task_init(&asker.task, &asker_body)), 0);
    assert_true(asker.got.number == 16 && is_whole(&asker.got));
}

/*
 * Two send and one closes, while one receives, often for a moment only: exactly one of the three wins, and a sent value
 * is received whole, once.
 */
enum { SENDERS = 2 };

struct race {
    meeting meeting;
    answers oneshot;
    int sent[SENDERS];
    uint32_t rounds;
    uint64_t seed;
};

struct racer {
    struct race *race;
    uint32_t number; /* SENDERS: closes */
    pthread_t thread;
};

static void *race_on(void *argument)
{
    struct racer *self = argument;
    struct race *race = self->race;
    uint64_t random = race->seed + 1 + self->number;
    for (uint32_t round = 0; round < race->rounds; round++) {
        answer own = answer_of((uint64_t)round * SENDERS + self->number);
        meet(&race->meeting);
        random_moment(&random, self->number == SENDERS ? 300 : 200);
        if (self->number == SENDERS)
            bide_oneshot_close(&race->oneshot);
        else
            race->sent[self->number] = bide_oneshot_send(&race->oneshot, &own);
        meet(&race->meeting);
    }
    return NULL;
}

static int receive_by_and_by(struct race *race, uint64_t *random, answer *got, uint32_t *late)
{
    for (;;) {
        uint64_t number = testing_random(random);
        int status;
        if (number % 4 == 0)
            status = bide_oneshot_try_recv(&race->oneshot, got);
        else
            status = bide_oneshot_recv_blocking(
                &race->oneshot, got,
                number % 4 == 1 ? BIDE_FOREVER : bide_platform.now() + number / 4 % 3000);
        if (status != -EAGAIN && status != -ETIMEDOUT)
            return status;
        ++*late;
    }
}

static void of_all_sends_and_closes_one_wins(void **state)
{
    (void)state;
    struct race race = {.rounds = rounds_of(5000), .seed = testing_seed()};
    struct racer racers[SENDERS + 1];
    uint64_t random = race.seed;
    uint32_t wrong = 0, won = 0, late = 0;
    meeting_init(&race.meeting, SENDERS + 2);
    for (uint32_t i = 0; i <= SENDERS; i++) {
        racers[i].race = &race;
        racers[i].number = i;
        start_thread(&racers[i].thread, race_on, &racers[i]);
    }
    for (uint32_t round = 0; round < race.rounds; round++) {
        answer got = {0, {0}};
        bide_oneshot_init(&race.oneshot);
        meet(&race.meeting);
        random_moment(&random, 200);
        int status = receive_by_and_by(&race, &random, &got, &late);
        meet(&race.meeting);
        wrong += status != 0 && status != -EPIPE;
        for (uint32_t i = 0; i < SENDERS; i++) {
            bool is_its = status == 0 && got.number == (uint64_t)round * SENDERS + i;
            wrong += race.sent[i] != (is_its ? 0 : -EPIPE);
            won += is_its;
        }
        wrong += status == 0 && !is_whole(&got);
        wrong += bide_oneshot_try_recv(&race.oneshot, &got) != -EPIPE;
    }
    for (uint32_t i = 0; i <= SENDERS; i++)
        join_thread(racers[i].thread);
    printf("# of %u rounds %u were sent, the others closed; %u receives were in vain\n",
           race.rounds, won, late);
    assert_int_equal(wrong, 0);
}

/* The receiver frees it at once, while the sender is still in send. */
struct freed {
    meeting meeting;
    answers *oneshot;
    uint32_t rounds;
    uint64_t seed;
};

static void *send_to_be_freed(void *argument)
{
    struct freed *freed = argument;
    uint64_t random = freed->seed + 1;
    answer own = answer_of(17);
    for (uint32_t round = 0; round < freed->rounds; round++) {
        meet(&freed->meeting);
        random_moment(&random, 100);
        if (testing_random(&random) % 4 == 0)
            bide_oneshot_close(freed->oneshot);
        else
            (void)bide_oneshot_send(freed->oneshot, &own);
    }
    return NULL;
}

static void its_memory_may_go_right_after_the_receive(void **state)
{
    (void)state;
    struct freed freed = {.rounds = rounds_of(5000), .seed = testing_seed()};
    pthread_t thread;
    uint64_t random = freed.seed;
    uint32_t wrong = 0;
    meeting_init(&freed.meeting, 2);
    start_thread(&thread, send_to_be_freed, &freed);
    for (uint32_t round = 0; round < freed.rounds; round++) {
        answer got;
        freed.oneshot = malloc(sizeof *freed.oneshot);
        assert_non_null(freed.oneshot);
        bide_oneshot_init(freed.oneshot);
        meet(&freed.meeting);
        random_moment(&random, 100);
        int status = bide_oneshot_recv_blocking(freed.oneshot, &got, BIDE_FOREVER);
        free(freed.oneshot);
        wrong += status != -EPIPE && !(status == 0 && got.number == 17 && is_whole(&got));
    }
    join_thread(thread);
    assert_int_equal(wrong, 0);
}

#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_sent_is_received_once),
        cmocka_unit_test(the_receiver_is_woken_with_the_value),
        cmocka_unit_test(once_it_is_closed_the_value_stays_the_senders),
        cmocka_unit_test(what_was_sent_before_the_close_is_received),
        cmocka_unit_test(a_receive_that_was_cut_short_can_be_begun_again),
        cmocka_unit_test(a_receiver_that_is_destroyed_leaves_the_value_there),
        cmocka_unit_test(it_holds_values_of_any_type),
#if TESTING_HOSTED
#if BIDE_DEBUG
        cmocka_unit_test(to_destroy_it_while_it_is_awaited_is_misuse),
        cmocka_unit_test(two_receivers_at_once_are_misuse),
#endif
        cmocka_unit_test(a_thread_receives_until_a_deadline),
        cmocka_unit_test(a_descriptor_is_readable_when_it_is_sent),
        cmocka_unit_test(an_answer_is_had_in_a_run_loop),
        cmocka_unit_test(of_all_sends_and_closes_one_wins),
        cmocka_unit_test(its_memory_may_go_right_after_the_receive),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

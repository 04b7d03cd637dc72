/* A send on a rendezvous as a case of a select: it goes to one receiver, or to nobody, and the select knows which. */
#include "misuse.h"

#include "bide/event.h"
#include "bide/handle.h"
#include "bide/rendezvous.h"
#include "bide/run_loop.h"
#include "bide/select.h"
#include "bide/sleep.h"
#include "bide/sync_wait.h"

#include "sync/meeting.h"

#include <errno.h>
#include <pthread.h>

typedef bide_rendezvous(uint64_t) numbers;

static struct {
    numbers numbers;
    bide_event event;
    bide_run_loop loop;
} the;

static int setup(void **state)
{
    (void)state;
    bide_rendezvous_init(&the.numbers);
    bide_event_init(&the.event, false);
    bide_run_loop_init(&the.loop);
    return 0;
}

/* A task that selects: it sends `number`, or receives it; or the event. */
typedef struct selecting {
    bide_task task;
    bide_context context;
    bide_stop_source stop;
    bide_select select;
    bide_select_case cases[2];
    bide_rendezvous_sender send;
    bide_rendezvous_receiver receive;
    bide_event_waiter wait;
    uint64_t random, number;
    bool sends;
    int status;
    size_t winner;
    uint32_t ended;
} selecting;

bide_coroutine(selecting_body)
{
    bide_begin(selecting_body, selecting * self);
    bide_select_case_init(
        &self->cases[0],
        self->sends ? bide_rendezvous_send(&self->send, &the.numbers, &self->number)
                    : bide_rendezvous_receive(&self->receive, &the.numbers, &self->number));
    bide_select_case_init(&self->cases[1], bide_event_wait(&self->wait, &the.event));
    bide_await_status(self->status, bide_select_any(&self->select, self->cases, 2, &self->random));
    self->winner = bide_select_winner(&self->select);
    self->ended++;
    bide_end();
}

/* One that sends `number`, or, if that is 0, receives. */
static void begin(selecting *self, uint64_t number)
{
    memset(self, 0, sizeof *self);
    self->number = number;
    self->sends = number != 0;
    bide_stop_source_init(&self->stop);
    self->context = the.loop.context;
    self->context.stop = &self->stop;
    bide_start(&self->task.frame, &selecting_body, &self->context);
    bide_resume(&self->task.frame);
    bide_run_loop_run_ready(&the.loop);
}

/* The number that is offered, or 0. */
static uint64_t receive_now(void)
{
    uint64_t number = 0;
    return bide_rendezvous_try_receive(&the.numbers, &number) == 0 ? number : 0;
}

static void assert_won(const selecting *self, size_t winner, int status)
{
    assert_int_equal(self->ended, 1);
    assert_int_equal(self->winner, winner);
    assert_int_equal(self->status, status);
}

/* Somebody who only receives. */
typedef struct receiving {
    bide_task task;
    bide_rendezvous_receiver wait;
    uint64_t number;
    int status;
} receiving;

bide_coroutine(receiving_body)
{
    bide_begin(receiving_body, receiving * self);
    bide_await_status(self->status,
                      bide_rendezvous_receive(&self->wait, &the.numbers, &self->number));
    bide_end();
}

static void a_receiver_that_waits_has_it_at_once(void **state)
{
    (void)state;
    receiving receiver = {.status = 1};
    selecting s;
    bide_start(&receiver.task.frame, &receiving_body, &the.loop.context);
    bide_resume(&receiver.task.frame);
    begin(&s, 5);
    assert_won(&s, 0, 0);
    assert_int_equal(receiver.status, 0);
    assert_int_equal(receiver.number, 5);
}

static void it_stands_while_the_select_waits(void **state)
{
    (void)state;
    selecting s;
    begin(&s, 5);
    assert_int_equal(s.ended, 0);
    assert_int_equal(receive_now(), 5);
    bide_run_loop_run_ready(&the.loop);
    assert_won(&s, 0, 0);
    assert_int_equal(receive_now(), 0);
}

static void when_another_case_has_come_nobody_receives_it(void **state)
{
    (void)state;
    selecting s;
    begin(&s, 5);
    bide_event_set(&the.event);
    bide_run_loop_run_ready(&the.loop);
    assert_won(&s, 1, 0);
    assert_int_equal(receive_now(), 0);
    begin(&s, 6); /* at once */
    assert_won(&s, 1, 0);
    assert_int_equal(receive_now(), 0);
}

static void when_it_was_taken_it_wins_whatever_else_has_come(void **state)
{
    (void)state;
    selecting s;
    begin(&s, 5);
    bide_event_set(&the.event);
    assert_int_equal(receive_now(), 5);
    bide_run_loop_run_ready(&the.loop);
    assert_won(&s, 0, 0);
}

static void two_selects_meet(void **state)
{
    (void)state;
    for (int sender_first = 0; sender_first < 2; sender_first++) {
        setup(NULL);
        selecting sender, receiver;
        begin(sender_first ? &sender : &receiver, sender_first ? 5 : 0);
        begin(sender_first ? &receiver : &sender, sender_first ? 0 : 5);
        bide_run_loop_run_ready(&the.loop);
        assert_won(&sender, 0, 0);
        assert_won(&receiver, 0, 0);
        assert_int_equal(receiver.number, 5);
    }
}

static void who_is_asked_to_stop_or_destroyed_has_sent_nothing(void **state)
{
    (void)state;
    selecting s;
    begin(&s, 5);
    bide_stop_request(&s.stop);
    bide_run_loop_run_ready(&the.loop);
    assert_won(&s, 2, -ECANCELED);
    assert_int_equal(receive_now(), 0);
    begin(&s, 6);
    bide_destroy(&s.task.frame);
    assert_int_equal(receive_now(), 0);
    bide_rendezvous_destroy(&the.numbers);
    bide_event_destroy(&the.event);
}

static void closed_it_ends_so(void **state)
{
    (void)state;
    selecting s;
    begin(&s, 5);
    bide_rendezvous_close(&the.numbers);
    bide_run_loop_run_ready(&the.loop);
    assert_won(&s, 0, -EPIPE);
    begin(&s, 6);
    assert_won(&s, 0, -EPIPE);
}

#if TESTING_HOSTED
static void select_with_two(void)
{
    bide_select select;
    bide_select_case cases[2];
    bide_rendezvous_sender senders[2];
    uint64_t number = 1, random = 1;
    setup(NULL);
    for (int i = 0; i < 2; i++)
        bide_select_case_init(&cases[i], bide_rendezvous_send(&senders[i], &the.numbers, &number));
    bide_select_try(&select, cases, 2, &random);
}

static void two_of_them_are_misuse(void **state)
{
    (void)state;
    assert_true(misuse_aborts_naming(select_with_two, "two sends on a rendezvous", "bide_select"));
}

/* ---- Threads ---- */

typedef struct party {
    uint64_t seed;
    uint32_t rounds;
    uint32_t wrong;
} party;

/* Sends 1, 2, ... each until it was received, by selects that are in a hurry now and then; closes. */
static void *send_in_a_hurry(void *argument)
{
    party *self = argument;
    uint64_t random = self->seed;
    for (uint64_t number = 1; number <= self->rounds;) {
        bide_select select;
        bide_select_case cases[2];
        bide_rendezvous_sender sender;
        bide_event_waiter wait;
        bide_event hurry;
        bool hurries = testing_random(&random) % 4 == 0;
        bide_event_init(&hurry, false);
        bide_select_case_init(&cases[0], bide_rendezvous_send(&sender, &the.numbers, &number));
        bide_select_case_init(&cases[1], bide_event_wait(&wait, &hurry));
        int status = bide_sync_wait_until(
            bide_select_any(&select, cases, 2, &random),
            hurries ? bide_platform.now() + testing_random(&random) % 2000 : BIDE_FOREVER);
        if (status == 0 && bide_select_winner(&select) == 0)
            number++;
        else
            self->wrong += status != -ETIMEDOUT;
    }
    bide_rendezvous_close(&the.numbers);
    return NULL;
}

static void *receive_in_a_hurry(void *argument)
{
    party *self = argument;
    uint64_t random = self->seed, number = 0, last = 0;
    for (;;) {
        bool hurries = testing_random(&random) % 4 == 0;
        int status = bide_rendezvous_receive_blocking(
            &the.numbers, &number,
            hurries ? bide_platform.now() + testing_random(&random) % 2000 : BIDE_FOREVER);
        if (status == -EPIPE)
            break;
        if (status == 0)
            self->wrong += number != ++last;
        else
            self->wrong += status != -ETIMEDOUT;
    }
    self->wrong += last != self->rounds;
    return NULL;
}

static void threads_that_are_in_a_hurry_lose_and_repeat_nothing(void **state)
{
    (void)state;
    uint64_t seed = testing_seed();
    party sender = {.seed = seed, .rounds = rounds_of(20000)};
    party receiver = {.seed = seed + 1, .rounds = sender.rounds};
    pthread_t threads[2];
    assert_int_equal(pthread_create(&threads[0], NULL, send_in_a_hurry, &sender), 0);
    assert_int_equal(pthread_create(&threads[1], NULL, receive_in_a_hurry, &receiver), 0);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    assert_int_equal(sender.wrong, 0);
    assert_int_equal(receiver.wrong, 0);
}
#endif

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, setup)
    const struct CMUnitTest tests[] = {
        TEST(a_receiver_that_waits_has_it_at_once),
        TEST(it_stands_while_the_select_waits),
        TEST(when_another_case_has_come_nobody_receives_it),
        TEST(when_it_was_taken_it_wins_whatever_else_has_come),
        TEST(two_selects_meet),
        TEST(who_is_asked_to_stop_or_destroyed_has_sent_nothing),
        TEST(closed_it_ends_so),
#if TESTING_HOSTED
        TEST(two_of_them_are_misuse),
        TEST(threads_that_are_in_a_hurry_lose_and_repeat_nothing),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * The bounded channel: first in, first out, each element to one receiver; an operation that finds it full or empty
 * waits; a cancelled or destroyed operation loses nothing; after a close it is drained. (The contract of all waits:
 * sync/contract_test.c, of which sending and receiving are rows.)
 */
#define _GNU_SOURCE
#include "misuse.h"
#include "queue/elements.h"
#include "sync/by_hand.h"

#include "bide/channel.h"
#include "bide/handle.h"
#include "bide/stop.h"

#if TESTING_HOSTED
#include "small_stack.h"
#include "sync/meeting.h"

#include "bide/deadline.h"
#include "bide/pollable.h"
#include "bide/run_loop.h"
#include "bide/thread_pool.h"

#include <poll.h>
#endif

enum { WAITS = 1 /* the status of a wait that has not ended */ };

typedef bide_channel_slot(uint32_t) number_slot;
typedef bide_channel(uint32_t) numbers;

/* ---- At once: any element, any capacity ---- */

#define FIFO_TEST(name, type, from, number)                                          \
    static void fifo_of_##name(size_t capacity)                                      \
    {                                                                                \
        bide_channel_slot(type) memory[3];                                           \
        bide_channel(type) channel;                                                  \
        uint64_t sent = 0, received = 0;                                             \
        type element;                                                                \
        bide_channel_init(&channel, memory, capacity);                               \
        for (int round = 0; round < 20; round++) {                                   \
            assert_int_equal(bide_channel_try_recv(&channel, &element), -EAGAIN); \
            for (size_t i = 0; i < capacity; i++) {                                  \
                element = from(sent);                                                \
                assert_int_equal(bide_channel_try_send(&channel, &element), 0);      \
                assert_int_equal(bide_channel_count(&channel), i + 1);               \
                sent++;                                                              \
            }                                                                        \
            assert_int_equal(bide_channel_try_send(&channel, &element), -ENOBUFS);   \
            for (; received < sent; received++) {                                    \
                type expected = from(received);                                      \
                assert_int_equal(bide_channel_try_recv(&channel, &element), 0);   \
                assert_true(number(element) == number(expected));                    \
            }                                                                        \
        }                                                                            \
        element = from(sent);                                                        \
        assert_int_equal(bide_channel_try_send(&channel, &element), 0);              \
        bide_channel_close(&channel);                                                \
        bide_channel_close(&channel);                                                \
        assert_int_equal(bide_channel_try_send(&channel, &element), -EPIPE);         \
        assert_int_equal(bide_channel_try_recv(&channel, &element), 0);           \
        assert_true(number(element) == number(from(sent)));                          \
        assert_int_equal(bide_channel_try_recv(&channel, &element), -EPIPE);      \
        assert_int_equal(bide_channel_try_recv(&channel, &element), -EPIPE);      \
        bide_channel_destroy(&channel);                                              \
    }

FIFO_TEST(bytes, uint8_t, BYTE_FROM, BYTE_NUMBER)
FIFO_TEST(triples, triple, TRIPLE_FROM, TRIPLE_NUMBER)
FIFO_TEST(pointers, address, POINTER_FROM, POINTER_NUMBER)

static void elements_of_any_type_come_out_as_they_went_in_until_it_is_drained(void **state)
{
    (void)state;
    for (size_t capacity = 1; capacity <= 3; capacity++) {
        fifo_of_bytes(capacity);
        fifo_of_triples(capacity);
        fifo_of_pointers(capacity);
    }
}

/* ---- Coroutines that wait ---- */

enum { USERS = 12, MAX_CAPACITY = 3 };

/* A coroutine with a stop source of its own that sends `number` once, or receives it. */
struct user {
    bide_task task;
    by_hand *by_hand;
    numbers *channel;
    bide_channel_waiter waiter;
    bide_context context;
    bide_stop_source stop;
    bool sends;
    uint32_t number;
    char name;
    int status;
};

bide_coroutine(user_body)
{
    bide_begin(user_body, struct user * self);
    if (self->sends)
        bide_await_status(self->status,
                          bide_channel_send(&self->waiter, self->channel, &self->number));
    else
        bide_await_status(self->status,
                          bide_channel_recv(&self->waiter, self->channel, &self->number));
    by_hand_note(self->by_hand, self->name);
    bide_end();
}

struct fixture {
    by_hand by_hand;
    numbers channel;
    number_slot memory[MAX_CAPACITY];
    struct user users[USERS];
};

static void fixture_init(struct fixture *f, size_t capacity)
{
    memset(f, 0, sizeof *f);
    by_hand_init(&f->by_hand);
    bide_channel_init(&f->channel, f->memory, capacity);
}

/* User i, called 'a' + i, starts; on `context` or by hand. */
static struct user *begin_in(struct fixture *f, int i, bool sends, uint32_t number,
                             const bide_context *context)
{
    struct user *user = &f->users[i];
    user->by_hand = &f->by_hand;
    user->channel = &f->channel;
    user->sends = sends;
    user->number = number;
    user->name = (char)('a' + i);
    user->status = WAITS;
    bide_stop_source_init(&user->stop);
    user->context = *context;
    user->context.stop = &user->stop;
    bide_start(&user->task.frame, &user_body, &user->context);
    bide_resume(&user->task.frame);
    return user;
}

static struct user *begin_send(struct fixture *f, int i, uint32_t number)
{
    return begin_in(f, i, true, number, &f->by_hand.context);
}

static struct user *begin_receive(struct fixture *f, int i)
{
    return begin_in(f, i, false, 0, &f->by_hand.context);
}

static int send_now(struct fixture *f, uint32_t number)
{
    return bide_channel_try_send(&f->channel, &number);
}

/* The first element; 0 if there is none. */
static uint32_t receive_now(struct fixture *f)
{
    uint32_t number = 0;
    return bide_channel_try_recv(&f->channel, &number) == 0 ? number : 0;
}

static void fill(struct fixture *f, size_t capacity)
{
    for (size_t i = 0; i < capacity; i++)
        assert_int_equal(send_now(f, 100 + (uint32_t)i), 0);
}

static void senders_wait_while_it_is_full_and_send_in_their_order(void **state)
{
    (void)state;
    for (size_t capacity = 1; capacity <= MAX_CAPACITY; capacity += 2) {
        struct fixture f;
        fixture_init(&f, capacity);
        fill(&f, capacity);
        for (int i = 0; i < 4; i++)
            assert_int_equal(begin_send(&f, i, 1 + (uint32_t)i)->status, WAITS);
        for (size_t i = 0; i < capacity; i++) {
            assert_int_equal(receive_now(&f), 100 + i);
            by_hand_run(&f.by_hand);
        }
        for (uint32_t i = 1; i <= 4; i++) {
            assert_int_equal(receive_now(&f), i);
            by_hand_run(&f.by_hand);
        }
        by_hand_assert_trace(&f.by_hand, "abcd");
        assert_int_equal(receive_now(&f), 0);
        bide_channel_destroy(&f.channel);
    }
}

static void receivers_wait_while_it_is_empty_and_each_has_one_in_order(void **state)
{
    (void)state;
    for (size_t capacity = 1; capacity <= MAX_CAPACITY; capacity += 2) {
        struct fixture f;
        fixture_init(&f, capacity);
        for (int i = 0; i < 4; i++)
            assert_int_equal(begin_receive(&f, i)->status, WAITS);
        for (uint32_t i = 1; i <= 4; i++) {
            assert_int_equal(send_now(&f, i), 0);
            by_hand_run(&f.by_hand);
        }
        by_hand_assert_trace(&f.by_hand, "abcd");
        for (uint32_t i = 0; i < 4; i++)
            assert_int_equal(f.users[i].number, i + 1);
        assert_int_equal(bide_channel_count(&f.channel), 0);
        bide_channel_destroy(&f.channel);
    }
}

static void a_sender_that_waits_is_let_in_by_a_receiver_that_comes(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 1);
    assert_int_equal(begin_send(&f, 0, 1)->status, 0);
    assert_int_equal(begin_send(&f, 1, 2)->status, WAITS);
    assert_int_equal(begin_receive(&f, 2)->status, 0);
    assert_int_equal(begin_receive(&f, 3)->status, 0); /* though it has not run */
    by_hand_run(&f.by_hand);
    by_hand_assert_trace(&f.by_hand, "acdb");
    assert_int_equal(f.users[2].number, 1);
    assert_int_equal(f.users[3].number, 2);
    bide_channel_destroy(&f.channel);
}

/* ---- Closed ---- */

static void closing_ends_all_waiting_receivers(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 3);
    for (int i = 0; i < 4; i++)
        begin_receive(&f, i);
    assert_int_equal(send_now(&f, 7), 0); /* the first was woken and has not run */
    bide_channel_close(&f.channel);
    by_hand_run(&f.by_hand);
    by_hand_assert_trace(&f.by_hand, "abcd");
    assert_int_equal(f.users[0].status, 0);
    assert_int_equal(f.users[0].number, 7);
    for (int i = 1; i < 4; i++)
        assert_int_equal(f.users[i].status, -EPIPE);
    assert_int_equal(begin_receive(&f, 4)->status, -EPIPE);
    bide_channel_destroy(&f.channel);
}

static void closing_ends_all_waiting_senders_and_leaves_what_is_in_it(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 3);
    fill(&f, 3);
    for (int i = 0; i < 4; i++)
        begin_send(&f, i, 1);
    assert_int_equal(receive_now(&f), 100); /* the first has sent, and not run yet */
    bide_channel_close(&f.channel);
    by_hand_run(&f.by_hand);
    by_hand_assert_trace(&f.by_hand, "abcd");
    for (int i = 0; i < 4; i++)
        assert_int_equal(f.users[i].status, i == 0 ? 0 : -EPIPE);
    assert_int_equal(begin_send(&f, 4, 1)->status, -EPIPE);
    assert_int_equal(begin_receive(&f, 5)->number, 101);
    assert_int_equal(begin_receive(&f, 6)->number, 102);
    assert_int_equal(begin_receive(&f, 7)->number, 1);
    assert_int_equal(begin_receive(&f, 8)->status, -EPIPE);
    bide_channel_destroy(&f.channel);
}

/* ---- Cancelled, destroyed ---- */

static void what_is_asked_to_stop_has_sent_and_received_nothing(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 1);
    struct user *receiver = begin_receive(&f, 0);
    bide_stop_request_with(&receiver->stop, -ETIMEDOUT);
    assert_int_equal(send_now(&f, 5), 0); /* it has not run yet */
    by_hand_run(&f.by_hand);
    assert_int_equal(receiver->status, -ETIMEDOUT);
    struct user *sender = begin_send(&f, 1, 6);
    bide_stop_request(&sender->stop);
    assert_int_equal(receive_now(&f), 5);
    by_hand_run(&f.by_hand);
    assert_int_equal(sender->status, -ECANCELED);
    assert_int_equal(receive_now(&f), 0);
    bide_channel_destroy(&f.channel);
}

/* A receiver is destroyed on `context` before it runs, after it was handed the element. */
static void destroy_a_receiver_that_has_received(struct fixture *f, const bide_context *context)
{
    assert_int_equal(begin_in(f, 0, false, 0, context)->status, WAITS);
    assert_int_equal(begin_in(f, 1, false, 0, context)->status, WAITS);
    assert_int_equal(send_now(f, 5), 0);
    bide_destroy(&f->users[0].task.frame);
    assert_int_equal(f->users[0].status, WAITS);
    assert_int_equal(f->users[0].waiter.retry.status, 0);
    assert_int_equal(f->users[0].number, 5);
    assert_int_equal(send_now(f, 6), 0);
}

static void destroy_a_sender_that_has_sent(struct fixture *f, const bide_context *context)
{
    assert_int_equal(send_now(f, 7), 0);
    assert_int_equal(begin_in(f, 2, true, 8, context)->status, WAITS);
    assert_int_equal(begin_in(f, 3, true, 9, context)->status, WAITS);
    assert_int_equal(receive_now(f), 7);
    bide_destroy(&f->users[2].task.frame);
    assert_int_equal(f->users[2].status, WAITS);
    assert_int_equal(f->users[2].waiter.retry.status, 0);
    assert_int_equal(receive_now(f), 8);
}

static void a_coroutine_destroyed_before_it_runs_has_sent_or_received(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 1);
    destroy_a_receiver_that_has_received(&f, &f.by_hand.context);
    by_hand_run(&f.by_hand);
    assert_int_equal(f.users[1].number, 6);
    destroy_a_sender_that_has_sent(&f, &f.by_hand.context);
    by_hand_run(&f.by_hand);
    assert_int_equal(f.users[3].status, 0);
    assert_int_equal(receive_now(&f), 9);
    bide_channel_destroy(&f.channel);
}

static void a_destroyed_waiter_leaves_the_line(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 1);
    for (int i = 0; i < 3; i++)
        begin_receive(&f, i);
    bide_destroy(&f.users[1].task.frame);
    bide_destroy(&f.users[0].task.frame);
    assert_int_equal(send_now(&f, 5), 0);
    by_hand_run(&f.by_hand);
    by_hand_assert_trace(&f.by_hand, "c");
    assert_int_equal(f.users[2].number, 5);
    bide_channel_destroy(&f.channel);
}

#if TESTING_HOSTED
static void
on_a_run_loop_too_a_coroutine_destroyed_before_it_runs_has_sent_or_received(void **state)
{
    (void)state;
    struct fixture f;
    bide_run_loop loop;
    fixture_init(&f, 1);
    bide_run_loop_init(&loop);
    destroy_a_receiver_that_has_received(&f, &loop.context);
    bide_run_loop_run_ready(&loop);
    assert_int_equal(f.users[1].number, 6);
    destroy_a_sender_that_has_sent(&f, &loop.context);
    bide_run_loop_run_ready(&loop);
    assert_int_equal(f.users[3].status, 0);
    assert_int_equal(receive_now(&f), 9);
    bide_channel_destroy(&f.channel);
}

/* ---- At random, by hand ---- */

/* Each element sent is received once, or is in the channel; no operation waits although it could complete. */
struct tally {
    uint64_t random;
    uint32_t next;     /* number to be sent */
    uint64_t sent;     /* how many, */
    uint64_t sum;      /* and all together */
    uint64_t received; /* the same */
    uint64_t received_sum;
    bool begun[USERS];
};

static void tally_ended(struct fixture *f, struct tally *t)
{
    for (int i = 0; i < USERS; i++) {
        const struct user *user = &f->users[i];
        if (!t->begun[i] || !bide_done(&user->task.frame))
            continue;
        t->begun[i] = false;
        if (user->status != 0)
            continue;
        *(user->sends ? &t->sent : &t->received) += 1;
        *(user->sends ? &t->sum : &t->received_sum) += user->number;
    }
    f->by_hand.trace[0] = '\0';
}

/* All have run, and were counted: whether one of them waits although it need not. */
static bool waits_in_vain(struct fixture *f, const struct tally *t, size_t capacity, bool closed)
{
    size_t count = bide_channel_count(&f->channel);
    for (int i = 0; i < USERS; i++) {
        if (t->begun[i] && (closed || (f->users[i].sends ? count < capacity : count != 0)))
            return true;
    }
    return false;
}

static void random_step(struct fixture *f, struct tally *t)
{
    uint64_t number = testing_random(&t->random);
    int i = (int)(number / 16 % USERS);
    struct user *user = &f->users[i];
    if (!t->begun[i]) {
        t->begun[i] = true;
        if (number % 2 == 0)
            begin_send(f, i, ++t->next);
        else
            begin_receive(f, i);
    } else if (number % 16 == 0) {
        bide_stop_request(&user->stop);
    } else if (number % 16 == 1) {
        bide_destroy(&user->task.frame);
        if (user->status == WAITS)
            user->status = user->waiter.retry.status;
    } else if (number % 16 < 6) {
        by_hand_run(&f->by_hand);
    }
}

static void whatever_is_cut_short_or_destroyed_no_element_is_lost(void **state)
{
    (void)state;
    struct tally t = {.random = testing_seed()};
    for (uint32_t round = rounds_of(2000); round != 0; round--) {
        struct fixture f;
        size_t capacity = 1 + testing_random(&t.random) % MAX_CAPACITY;
        fixture_init(&f, capacity);
        for (int step = 0; step < 100; step++) {
            random_step(&f, &t);
            bool settle = step % 10 == 0;
            if (settle)
                by_hand_run(&f.by_hand);
            tally_ended(&f, &t);
            assert_false(settle && waits_in_vain(&f, &t, capacity, false));
        }
        bide_channel_close(&f.channel);
        by_hand_run(&f.by_hand);
        tally_ended(&f, &t);
        assert_false(waits_in_vain(&f, &t, capacity, true));
        for (uint32_t number; (number = receive_now(&f)) != 0; t.received++)
            t.received_sum += number;
        assert_int_equal(t.sent, t.received);
        assert_int_equal(t.sum, t.received_sum);
        bide_channel_destroy(&f.channel);
    }
    printf("# %llu were sent\n", (unsigned long long)t.sent);
}

/* ---- Many, on a small stack ---- */

enum { CROWD = 10000, MILLION = 1000 * 1000 };

struct passing {
    bide_task task;
    numbers *channel;
    bide_channel_waiter waiter;
    uint32_t number;
    uint32_t count; /* how many it sends or receives */
    uint32_t i;
    uint32_t wrong;
    int status;
};

bide_coroutine(sending_body)
{
    bide_begin(sending_body, struct passing * self);
    for (self->i = 0; self->i < self->count; self->i++) {
        self->number = self->i;
        bide_await_status(self->status,
                          bide_channel_send(&self->waiter, self->channel, &self->number));
        self->wrong += self->status != 0;
    }
    bide_end();
}

bide_coroutine(receiving_body)
{
    bide_begin(receiving_body, struct passing * self);
    for (self->i = 0; self->i < self->count; self->i++) {
        bide_await_status(self->status,
                          bide_channel_recv(&self->waiter, self->channel, &self->number));
        self->wrong += self->status != 0 || (self->count != 1 && self->number != self->i);
    }
    bide_end();
}

static void begin_passing(struct passing *self, numbers *channel, const bide_point *body,
                          uint32_t count, const bide_context *context)
{
    self->channel = channel;
    self->count = count;
    self->wrong = 0;
    self->status = WAITS;
    bide_start(&self->task.frame, body, context);
    bide_resume(&self->task.frame);
}

static void *pass_a_million(void *argument)
{
    const uint32_t rounds = rounds_of(MILLION), count = rounds < MILLION ? rounds : MILLION;
    for (size_t capacity = 1; capacity <= MAX_CAPACITY; capacity += 2) {
        numbers channel;
        number_slot memory[MAX_CAPACITY];
        bide_run_loop loop;
        struct passing sender, receiver;
        bide_channel_init(&channel, memory, capacity);
        bide_run_loop_init(&loop);
        begin_passing(&sender, &channel, &sending_body, count, &loop.context);
        begin_passing(&receiver, &channel, &receiving_body, count, &loop.context);
        while (bide_run_loop_run_ready(&loop) != 0)
            ;
        *(uint32_t *)argument += !bide_done(&sender.task.frame) ||
                                 !bide_done(&receiver.task.frame) || sender.wrong != 0 ||
                                 receiver.wrong != 0;
        bide_channel_destroy(&channel);
    }
    return NULL;
}

static void a_million_pass_between_two_tasks_on_a_loop(void **state)
{
    (void)state;
    uint32_t wrong = 0;
    on_a_small_stack(pass_a_million, &wrong);
    assert_int_equal(wrong, 0);
}

/* Inline: `count` receivers receive one each, from one sender, or get a close. */
static void *wake_a_crowd(void *argument)
{
    struct passing *crowd = argument;
    for (int closes = 0; closes < 2; closes++) {
        numbers channel;
        number_slot memory[1];
        struct passing sender;
        const uint32_t sent = closes ? CROWD / 2 : CROWD;
        bide_channel_init(&channel, memory, 1);
        for (int i = 0; i < CROWD; i++)
            begin_passing(&crowd[i], &channel, &receiving_body, 1, &bide_default_context);
        begin_passing(&sender, &channel, &sending_body, sent, &bide_default_context);
        bide_channel_close(&channel);
        for (uint32_t i = 0; i < CROWD; i++) {
            int expected = i < sent ? 0 : -EPIPE;
            crowd[0].wrong += i != 0 && crowd[i].status != expected;
        }
        if (crowd[0].wrong != 0 || sender.wrong != 0 || !bide_done(&sender.task.frame))
            return NULL;
        bide_channel_destroy(&channel);
    }
    return argument;
}

static void *wake_a_crowd_and_say(void *argument)
{
    struct passing **crowd = argument;
    if (wake_a_crowd(*crowd) == NULL)
        crowd[1] = NULL;
    return NULL;
}

static void ten_thousand_wait_and_waking_does_not_nest(void **state)
{
    (void)state;
    struct passing *crowd[2];
    crowd[0] = crowd[1] = calloc(CROWD, sizeof *crowd[0]);
    assert_non_null(crowd[0]);
    on_a_small_stack(wake_a_crowd_and_say, crowd);
    free(crowd[0]);
    assert_non_null(crowd[1]);
}

/* ---- Threads, and foreign loops ---- */

static void a_thread_sends_and_receives_until_a_deadline(void **state)
{
    (void)state;
    numbers channel;
    number_slot memory[1];
    uint32_t number = 3;
    bide_channel_init(&channel, memory, 1);
    uint64_t soon = bide_platform.now() + 1000000;
    assert_int_equal(bide_channel_recv_blocking(&channel, &number, 0), -ETIMEDOUT);
    assert_int_equal(bide_channel_recv_blocking(&channel, &number, soon), -ETIMEDOUT);
    assert_int_equal(bide_channel_send_blocking(&channel, &number, 0), 0);
    assert_int_equal(bide_channel_send_blocking(&channel, &number, 0), -ETIMEDOUT);
    soon = bide_platform.now() + 1000000;
    assert_int_equal(bide_channel_send_blocking(&channel, &number, soon), -ETIMEDOUT);
    number = 0;
    assert_int_equal(bide_channel_recv_blocking(&channel, &number, BIDE_FOREVER), 0);
    assert_int_equal(number, 3);
    bide_channel_close(&channel);
    assert_int_equal(bide_channel_recv_blocking(&channel, &number, BIDE_FOREVER), -EPIPE);
    assert_int_equal(bide_channel_send_blocking(&channel, &number, BIDE_FOREVER), -EPIPE);
    bide_channel_destroy(&channel);
}

static void a_foreign_loop_polls_for_an_element(void **state)
{
    (void)state;
    struct fixture f;
    bide_pollable pollable;
    bide_channel_waiter waiter;
    uint32_t number = 0;
    int status = WAITS;
    fixture_init(&f, 1);
    assert_int_equal(bide_pollable_init(&pollable), 0);
    struct pollfd polled = {.fd = bide_pollable_fd(&pollable), .events = POLLIN};
    bide_pollable_start(&pollable, NULL, bide_channel_recv(&waiter, &f.channel, &number));
    assert_int_equal(poll(&polled, 1, 0), 0);
    assert_int_equal(send_now(&f, 9), 0);
    assert_int_equal(poll(&polled, 1, 0), 1);
    assert_int_equal(bide_pollable_finish(&pollable, &status), 0);
    assert_int_equal(status, 0);
    assert_int_equal(number, 9);
    bide_pollable_destroy(&pollable);
    bide_channel_destroy(&f.channel);
}
#endif

#if TESTING_HOSTED
/* ---- At random: two threads of a pool, a run loop, a blocking thread, and one that cancels and closes ---- */

enum { TASKS = 8, STEPS = 32, LOOPED = 2, BLOCKED = 1, SENDERS = TASKS + LOOPED + BLOCKED };

/* Each sends numbers of its own, or receives any. The first TASKS run on the pool, the next on the loop. */
struct storm_user {
    bide_task task;
    bide_awaiter start;
    struct storm *storm;
    bide_context context;
    bide_stop_source stops[STEPS]; /* one for each step */
    bide_channel_many_waiter waiter; /* or, at its head, of another operation */
    bide_with_deadline_operation limited;
    bide_channel_permit permit;
    uint64_t random;
    uint32_t index, step;
    uint32_t numbers[MAX_CAPACITY];
    size_t count;
    enum { ONE, MANY, RESERVED, RELEASED } kind;
    bool on_loop;
    int status;
};

struct storm {
    BIDE_ALIGNAS(BIDE_CACHE_LINE) bide_run_loop loop;
    numbers channel;
    number_slot memory[MAX_CAPACITY];
    bide_thread_pool *pool;
    meeting meeting;
    uint64_t seed;
    uint32_t rounds;
    bide_atomic(uint32_t) over;
    bide_atomic(uint32_t) wrong;
    bide_atomic(uint32_t) cut;
    bool sent[SENDERS * STEPS];                      /* each of its sender */
    bide_atomic(uint32_t) received[SENDERS * STEPS]; /* how often */
    struct storm_user users[TASKS + LOOPED];
};

static void storm_note(struct storm *s, bool sends, uint32_t number, int status)
{
    if (status == 0 && sends)
        s->sent[number] = true;
    else if (status == 0 && number < SENDERS * STEPS)
        bide_atomic_fetch_add(&s->received[number], 1, relaxed);
    else if (status == 0 || (status != -EPIPE && status != -ECANCELED && status != -ETIMEDOUT))
        bide_atomic_fetch_add(&s->wrong, 1, relaxed);
    if (status == -ECANCELED || status == -ETIMEDOUT)
        bide_atomic_fetch_add(&s->cut, 1, relaxed);
}

static bide_awaiter *storm_operation(struct storm_user *self)
{
    numbers *channel = &self->storm->channel;
    uint64_t random = testing_random(&self->random);
    bide_awaiter *awaiter;
    self->context.stop = &self->stops[self->step];
    self->numbers[0] = self->index * STEPS + self->step;
    self->count = 1;
    self->kind = ONE;
    if (self->index % 2 == 0 && random / 16 % 2 == 0) {
        awaiter = bide_channel_send(&self->waiter.one, channel, self->numbers);
    } else if (self->index % 2 == 0) {
        self->kind = random / 32 % 4 == 0 ? RELEASED : RESERVED;
        awaiter = bide_channel_reserve(&self->waiter.one, channel, &self->permit);
    } else if (random / 16 % 2 == 0) {
        awaiter = bide_channel_recv(&self->waiter.one, channel, self->numbers);
    } else {
        self->kind = MANY;
        awaiter = bide_channel_recv_many(&self->waiter, channel, self->numbers,
                                         1 + random / 32 % MAX_CAPACITY, &self->count);
    }
    if (!self->on_loop || random % 2 == 0)
        return awaiter;
    return bide_with_deadline(&self->limited, bide_platform.now() + random / 2 % 20000, awaiter);
}

static void storm_ended(struct storm_user *self)
{
    if (self->kind == RESERVED && self->status == 0) {
        bide_channel_permit_send(&self->storm->channel, &self->permit, self->numbers);
    } else if (self->kind == RELEASED && self->status == 0) {
        bide_channel_permit_release(&self->permit);
        return;
    }
    if (self->kind == MANY && (self->count != 0) != (self->status == 0))
        bide_atomic_fetch_add(&self->storm->wrong, 1, relaxed);
    if (self->status != 0)
        self->count = 1;
    for (size_t i = 0; i < self->count; i++)
        storm_note(self->storm, self->index % 2 == 0, self->numbers[i], self->status);
}

static void storm_over(struct storm_user *self)
{
    struct storm *s = self->storm;
    if (bide_atomic_fetch_add(&s->over, 1, release) + 1 == TASKS + LOOPED)
        bide_run_loop_stop(&s->loop);
}

bide_coroutine(storm_body)
{
    bide_begin(storm_body, struct storm_user * self);
    for (self->step = 0; self->step < STEPS; self->step++) {
        bide_await_status(self->status, storm_operation(self));
        storm_ended(self);
    }
    storm_over(self);
    bide_end();
}

static void *storm_block(void *argument)
{
    struct storm *s = argument;
    uint64_t random = s->seed + 1;
    for (uint32_t round = 0; round < s->rounds; round++) {
        meet(&s->meeting);
        for (uint32_t i = 0; i < STEPS; i++) {
            uint32_t number = (TASKS + LOOPED) * STEPS + i;
            bool sends = testing_random(&random) % 2 == 0;
            uint64_t deadline = bide_platform.now() + testing_random(&random) % 20000;
            int status = sends ? bide_channel_send_blocking(&s->channel, &number, deadline)
                               : bide_channel_recv_blocking(&s->channel, &number, deadline);
            storm_note(s, sends, number, status);
        }
        meet(&s->meeting);
    }
    return NULL;
}

/* Cancels some, now or in a later step; closes the channel in the end, so that nobody is left. */
static void *storm_ask(void *argument)
{
    struct storm *s = argument;
    uint64_t random = s->seed + 2;
    for (uint32_t round = 0; round < s->rounds; round++) {
        meet(&s->meeting);
        for (uint64_t i = testing_random(&random) % 60; i != 0; i--) {
            uint64_t number = testing_random(&random);
            bide_stop_request(&s->users[number % (TASKS + LOOPED)].stops[number / 16 % STEPS]);
            random_moment(&random, 200);
            if (number / 1024 % 8 == 0)
                bide_platform.yield();
        }
        bide_channel_close(&s->channel);
        meet(&s->meeting);
    }
    return NULL;
}

static void storm_begin(struct storm *s, uint64_t *random)
{
    bide_channel_init(&s->channel, s->memory, 1 + testing_random(random) % MAX_CAPACITY);
    bide_atomic_init(&s->over, 0);
    for (uint32_t i = 0; i < SENDERS * STEPS; i++) {
        s->sent[i] = false;
        bide_atomic_init(&s->received[i], 0);
    }
    for (uint32_t i = 0; i < TASKS + LOOPED; i++) {
        struct storm_user *user = &s->users[i];
        user->storm = s;
        user->index = i;
        user->random = testing_random(random);
        user->on_loop = i >= TASKS;
        user->context = bide_default_context;
        user->context.scheduler =
            user->on_loop ? &s->loop.scheduler : bide_thread_pool_scheduler(s->pool);
        for (int j = 0; j < STEPS; j++)
            bide_stop_source_init(&user->stops[j]);
        bide_start(&user->task.frame, &storm_body, &user->context);
    }
}

/* All start together, as if they had waited for it. */
static void storm_start(struct storm_user *user)
{
    user->start.ops = user->task.frame.awaiter.ops;
    user->start.frame = &user->task.frame;
    bide_wake_one(&user->start);
}

static uint32_t storm_lost(struct storm *s)
{
    uint32_t number, lost = 0;
    while (bide_channel_try_recv(&s->channel, &number) == 0)
        storm_note(s, false, number, 0);
    for (uint32_t i = 0; i < SENDERS * STEPS; i++)
        lost += bide_atomic_load(&s->received[i], relaxed) != (s->sent[i] ? 1 : 0);
    bide_channel_destroy(&s->channel);
    return lost;
}

static void with_threads_each_element_is_received_once(void **state)
{
    (void)state;
    struct storm *s = aligned_alloc(BIDE_CACHE_LINE, (sizeof *s + BIDE_CACHE_LINE - 1) /
                                                         BIDE_CACHE_LINE * BIDE_CACHE_LINE);
    pthread_t ids[2];
    uint32_t lost = 0, sent = 0;
    assert_non_null(s);
    memset(s, 0, sizeof *s);
    s->seed = testing_seed();
    s->rounds = rounds_of(300);
    uint64_t random = s->seed;
    bide_run_loop_init(&s->loop);
    meeting_init(&s->meeting, 3);
    start_thread(&ids[0], storm_block, s);
    start_thread(&ids[1], storm_ask, s);
    for (uint32_t round = 0; round < s->rounds; round++) {
        assert_int_equal(bide_thread_pool_create(&s->pool, 2), 0);
        storm_begin(s, &random);
        meet(&s->meeting);
        for (uint32_t i = 0; i < TASKS + LOOPED; i++)
            storm_start(&s->users[i]);
        bide_run_loop_run(&s->loop);
        bide_thread_pool_destroy(s->pool); /* so that the last have ended */
        meet(&s->meeting);
        lost += storm_lost(s);
        for (uint32_t i = 0; i < SENDERS * STEPS; i++)
            sent += s->sent[i];
    }
    join_thread(ids[0]);
    join_thread(ids[1]);
    printf("# %u were sent, %u waits were cut short\n", sent, bide_atomic_load(&s->cut, relaxed));
    assert_int_equal(lost + bide_atomic_load(&s->wrong, relaxed), 0);
    free(s);
}
#endif

#if BIDE_DEBUG && TESTING_HOSTED
static void destroy_what_is_waited_for(void)
{
    struct fixture f;
    fixture_init(&f, 1);
    begin_receive(&f, 0);
    bide_channel_destroy(&f.channel);
}

static void destroy_what_is_full_and_waited_for(void)
{
    struct fixture f;
    fixture_init(&f, 1);
    begin_send(&f, 0, 1);
    begin_send(&f, 1, 1);
    bide_channel_destroy(&f.channel);
}

static void misuse_is_told_with_object_and_caller(void **state)
{
    (void)state;
    assert_true(misuse_aborts_naming(destroy_what_is_waited_for, "&f.channel",
                                     "destroy_what_is_waited_for"));
    assert_true(misuse_aborts_naming(destroy_what_is_full_and_waited_for, "waited for",
                                     "destroy_what_is_full_and_waited_for"));
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(elements_of_any_type_come_out_as_they_went_in_until_it_is_drained),
        cmocka_unit_test(senders_wait_while_it_is_full_and_send_in_their_order),
        cmocka_unit_test(receivers_wait_while_it_is_empty_and_each_has_one_in_order),
        cmocka_unit_test(a_sender_that_waits_is_let_in_by_a_receiver_that_comes),
        cmocka_unit_test(closing_ends_all_waiting_receivers),
        cmocka_unit_test(closing_ends_all_waiting_senders_and_leaves_what_is_in_it),
        cmocka_unit_test(what_is_asked_to_stop_has_sent_and_received_nothing),
        cmocka_unit_test(a_coroutine_destroyed_before_it_runs_has_sent_or_received),
        cmocka_unit_test(a_destroyed_waiter_leaves_the_line),
#if TESTING_HOSTED
        cmocka_unit_test(
            on_a_run_loop_too_a_coroutine_destroyed_before_it_runs_has_sent_or_received),
        cmocka_unit_test(whatever_is_cut_short_or_destroyed_no_element_is_lost),
        cmocka_unit_test(a_million_pass_between_two_tasks_on_a_loop),
        cmocka_unit_test(ten_thousand_wait_and_waking_does_not_nest),
        cmocka_unit_test(a_thread_sends_and_receives_until_a_deadline),
        cmocka_unit_test(a_foreign_loop_polls_for_an_element),
        cmocka_unit_test(with_threads_each_element_is_received_once),
#endif
#if BIDE_DEBUG && TESTING_HOSTED
        cmocka_unit_test(misuse_is_told_with_object_and_caller),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

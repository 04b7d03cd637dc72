/*
 * The bounded channel's permits, and receiving many: a permit keeps the room for one element, hides nothing, outlives the
 * close, and goes back if its holder is destroyed; a receive of many lets as many senders in. (Rows of the contract of
 * all waits: sync/primitives/channels.c. With threads: channel_test.c.)
 */
#define _GNU_SOURCE
#include "misuse.h"
#include "sync/by_hand.h"

#include "bide/channel.h"
#include "bide/coroutine.h"
#include "bide/handle.h"
#include "bide/select.h"
#include "bide/stop.h"

enum { WAITS = 1 /* the status of a wait that has not ended */, MAX_CAPACITY = 5, USERS = 8 };

typedef bide_channel_slot(uint32_t) number_slot;
typedef bide_channel(uint32_t) numbers;

/* What a user does, once. */
enum act {
    SENDS,
    RECEIVES,
    RECEIVES_MANY,
    RESERVES,
    RESERVES_MANY,
    SELECTS_A_RESERVATION_OF_MANY,
    SELECTS_A_RESERVATION,
    SELECTS_A_SEND,
    SELECTS_A_RECEIVE_OF_MANY
};

struct user {
    bide_task task;
    struct fixture *fixture;
    bide_context context;
    bide_stop_source stop;
    bide_channel_many_waiter waiter; /* or, at its head, of another operation */
    bide_channel_waiter other;
    bide_select_of(2) select;
    bide_channel_permit permit, permits[MAX_CAPACITY];
    enum act act;
    uint32_t numbers[MAX_CAPACITY], other_number;
    size_t max, count;
    char name;
    int status;
};

struct fixture {
    by_hand by_hand;
    numbers channel, never;
    number_slot memory[MAX_CAPACITY], never_memory[1];
    struct user users[USERS];
    int begun;
};

static bide_awaiter *user_operation(struct user *self)
{
    numbers *channel = &self->fixture->channel;
    bide_awaiter *other;
    switch (self->act) {
    case SENDS:
        return bide_channel_send(&self->waiter.one, channel, self->numbers);
    case RECEIVES:
        return bide_channel_recv(&self->waiter.one, channel, self->numbers);
    case RECEIVES_MANY:
        return bide_channel_recv_many(&self->waiter, channel, self->numbers, self->max,
                                      &self->count);
    case RESERVES:
        return bide_channel_reserve(&self->waiter.one, channel, &self->permit);
    case RESERVES_MANY:
        return bide_channel_reserve_many(&self->waiter, channel, self->permits, self->max,
                                         &self->count);
    default:
        break;
    }
    other = bide_channel_recv(&self->other, &self->fixture->never, &self->other_number);
    if (self->act == SELECTS_A_SEND)
        return bide_select_any_of(
            &self->select, bide_channel_send(&self->waiter.one, channel, self->numbers), other);
    if (self->act == SELECTS_A_RECEIVE_OF_MANY)
        return bide_select_any_of(
            &self->select,
            bide_channel_recv_many(&self->waiter, channel, self->numbers, self->max, &self->count),
            other);
    if (self->act == SELECTS_A_RESERVATION_OF_MANY)
        return bide_select_any_of(&self->select,
                                  bide_channel_reserve_many(&self->waiter, channel, self->permits,
                                                            self->max, &self->count),
                                  other);
    return bide_select_any_of(
        &self->select, bide_channel_reserve(&self->waiter.one, channel, &self->permit), other);
}

bide_coroutine(user_body)
{
    bide_begin(user_body, struct user * self);
    bide_await_status(self->status, user_operation(self));
    by_hand_note(&self->fixture->by_hand, self->name);
    bide_end();
}

static void fixture_init(struct fixture *f, size_t capacity)
{
    memset(f, 0, sizeof *f);
    by_hand_init(&f->by_hand);
    bide_channel_init(&f->channel, f->memory, capacity);
    bide_channel_init(&f->never, f->never_memory, 1);
}

/* The next user, called 'a' and so on, starts. */
static struct user *begin(struct fixture *f, enum act act, uint32_t number)
{
    struct user *user = &f->users[f->begun];
    assert_true(f->begun < USERS);
    user->fixture = f;
    user->act = act;
    user->numbers[0] = number;
    user->max = number;
    user->name = (char)('a' + f->begun++);
    user->status = WAITS;
    bide_stop_source_init(&user->stop);
    user->context = f->by_hand.context;
    user->context.stop = &user->stop;
    bide_start(&user->task.frame, &user_body, &user->context);
    bide_resume(&user->task.frame);
    return user;
}

static int send_now(struct fixture *f, uint32_t number)
{
    return bide_channel_try_send(&f->channel, &number);
}

static void send_by(struct fixture *f, bide_channel_permit *permit, uint32_t number)
{
    bide_channel_permit_send(&f->channel, permit, &number);
}

/* The first element; 0 if there is none; or the error. */
static int receive_now(struct fixture *f)
{
    uint32_t number = 0;
    int status = bide_channel_try_recv(&f->channel, &number);
    return status == 0 ? (int)number : status == -EAGAIN ? 0 : status;
}

static void fixture_end(struct fixture *f)
{
    by_hand_run(&f->by_hand);
    bide_channel_destroy(&f->channel);
    bide_channel_destroy(&f->never);
}

/* ---- Permits ---- */

static void a_permit_keeps_room_and_hides_no_other_element(void **state)
{
    (void)state;
    struct fixture f;
    bide_channel_permit permits[2];
    fixture_init(&f, 3);
    assert_int_equal(bide_channel_try_reserve(&f.channel, &permits[0]), 0);
    assert_int_equal(bide_channel_try_reserve(&f.channel, &permits[1]), 0);
    assert_int_equal(bide_channel_count(&f.channel), 0);
    for (uint32_t i = 1; i <= 10; i++) {
        assert_int_equal(send_now(&f, i), 0);
        assert_int_equal(send_now(&f, 99), -ENOBUFS);
        assert_int_equal(receive_now(&f), i);
    }
    assert_int_equal(send_now(&f, 11), 0);
    send_by(&f, &permits[1], 12);
    assert_int_equal(send_now(&f, 99), -ENOBUFS);
    assert_int_equal(bide_channel_try_reserve(&f.channel, &permits[1]), -ENOBUFS);
    send_by(&f, &permits[0], 13);
    for (int i = 11; i <= 13; i++)
        assert_int_equal(receive_now(&f), i);
    assert_int_equal(receive_now(&f), 0);
    fixture_end(&f);
}

static void a_released_permit_lets_the_first_waiter_in(void **state)
{
    (void)state;
    struct fixture f;
    bide_channel_permit permit;
    fixture_init(&f, 1);
    assert_int_equal(bide_channel_try_reserve(&f.channel, &permit), 0);
    assert_int_equal(begin(&f, RESERVES, 0)->status, WAITS);
    assert_int_equal(begin(&f, SENDS, 7)->status, WAITS);
    bide_channel_permit_release(&permit);
    by_hand_run(&f.by_hand);
    by_hand_assert_trace(&f.by_hand, "a");
    assert_int_equal(f.users[0].status, 0);
    assert_int_equal(receive_now(&f), 0);
    send_by(&f, &f.users[0].permit, 6);
    by_hand_run(&f.by_hand);
    by_hand_assert_trace(&f.by_hand, "");
    assert_int_equal(receive_now(&f), 6);
    by_hand_run(&f.by_hand);
    by_hand_assert_trace(&f.by_hand, "b");
    assert_int_equal(receive_now(&f), 7);
    fixture_end(&f);
}

static void sending_by_a_permit_wakes_the_receiver(void **state)
{
    (void)state;
    struct fixture f;
    bide_channel_permit permit;
    fixture_init(&f, 1);
    assert_int_equal(bide_channel_try_reserve(&f.channel, &permit), 0);
    begin(&f, RECEIVES, 0);
    begin(&f, RECEIVES, 0);
    send_by(&f, &permit, 3);
    by_hand_run(&f.by_hand);
    by_hand_assert_trace(&f.by_hand, "a");
    assert_int_equal(f.users[0].numbers[0], 3);
    bide_channel_close(&f.channel);
    fixture_end(&f);
}

static void a_permit_outlives_the_close_and_receivers_wait_for_it(void **state)
{
    (void)state;
    struct fixture f;
    bide_channel_permit permits[2];
    fixture_init(&f, 2);
    assert_int_equal(bide_channel_try_reserve(&f.channel, &permits[0]), 0);
    assert_int_equal(bide_channel_try_reserve(&f.channel, &permits[1]), 0);
    struct user *reserving = begin(&f, RESERVES, 0);
    for (int i = 0; i < 3; i++)
        begin(&f, RECEIVES, 0);
    bide_channel_close(&f.channel);
    by_hand_run(&f.by_hand);
    by_hand_assert_trace(&f.by_hand, "a");
    assert_int_equal(reserving->status, -EPIPE);
    assert_int_equal(send_now(&f, 9), -EPIPE);
    assert_int_equal(receive_now(&f), 0);
    send_by(&f, &permits[0], 4);
    by_hand_run(&f.by_hand);
    by_hand_assert_trace(&f.by_hand, "b");
    assert_int_equal(f.users[1].numbers[0], 4);
    bide_channel_permit_release(&permits[1]);
    by_hand_run(&f.by_hand);
    by_hand_assert_trace(&f.by_hand, "cd");
    assert_int_equal(f.users[2].status, -EPIPE);
    assert_int_equal(f.users[3].status, -EPIPE);
    assert_int_equal(receive_now(&f), -EPIPE);
    fixture_end(&f);
}

static void the_last_element_by_a_permit_ends_all_other_receivers(void **state)
{
    (void)state;
    struct fixture f;
    bide_channel_permit permit;
    fixture_init(&f, 1);
    assert_int_equal(bide_channel_try_reserve(&f.channel, &permit), 0);
    for (int i = 0; i < 3; i++)
        begin(&f, RECEIVES, 0);
    bide_channel_close(&f.channel);
    send_by(&f, &permit, 4);
    by_hand_run(&f.by_hand);
    by_hand_assert_trace(&f.by_hand, "abc");
    assert_int_equal(f.users[0].status, 0);
    assert_int_equal(f.users[1].status, -EPIPE);
    assert_int_equal(f.users[2].status, -EPIPE);
    fixture_end(&f);
}

static void a_holder_destroyed_before_it_runs_gives_the_room_back(void **state)
{
    (void)state;
    static const enum act acts[] = {RESERVES, SELECTS_A_RESERVATION};
    for (size_t i = 0; i < 2; i++) {
        struct fixture f;
        fixture_init(&f, 1);
        assert_int_equal(send_now(&f, 1), 0);
        begin(&f, acts[i], 0);
        begin(&f, SENDS, 2);
        assert_int_equal(receive_now(&f), 1);
        bide_destroy(&f.users[0].task.frame);
        by_hand_run(&f.by_hand);
        by_hand_assert_trace(&f.by_hand, "b");
        assert_int_equal(receive_now(&f), 2);
        fixture_end(&f);
    }
}

static void a_reservation_that_does_not_win_a_select_reserves_nothing(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 1);
    assert_int_equal(send_now(&f, 1), 0);
    struct user *user = begin(&f, SELECTS_A_RESERVATION, 0);
    const uint32_t number = 8;
    assert_int_equal(bide_channel_try_send(&f.never, &number), 0);
    by_hand_run(&f.by_hand);
    assert_int_equal(bide_select_winner(&user->select.any), 1);
    assert_int_equal(user->other_number, 8);
    assert_int_equal(receive_now(&f), 1);
    assert_int_equal(send_now(&f, 2), 0);
    user = begin(&f, SELECTS_A_RESERVATION, 0);
    assert_int_equal(receive_now(&f), 2);
    by_hand_run(&f.by_hand);
    assert_int_equal(user->status, 0);
    assert_int_equal(bide_select_winner(&user->select.any), 0);
    assert_int_equal(send_now(&f, 9), -ENOBUFS);
    send_by(&f, &user->permit, 3);
    assert_int_equal(receive_now(&f), 3);
    fixture_end(&f);
}

static void more_permits_than_there_may_be_are_refused(void **state)
{
    (void)state;
    enum { CAPACITY = BIDE_RING_MAX_RESERVED_ + 2 };
    static bide_channel_slot(uint8_t) memory[CAPACITY];
    static bide_channel(uint8_t) channel;
    static bide_channel_permit permits[CAPACITY];
    uint8_t byte = 1;
    bide_channel_init(&channel, memory, CAPACITY);
    size_t count;
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(bide_channel_try_reserve(&channel, &permits[i]), 0);
    assert_int_equal(bide_channel_try_reserve_many(&channel, permits + 5, CAPACITY - 5, &count), 0);
    assert_int_equal(count, BIDE_RING_MAX_RESERVED_ - 5);
    assert_int_equal(bide_channel_try_reserve(&channel, &permits[CAPACITY - 1]), -EOVERFLOW);
    assert_int_equal(bide_channel_try_reserve_many(&channel, &permits[CAPACITY - 1], 1, &count),
                     -EOVERFLOW);
    assert_int_equal(bide_channel_try_send(&channel, &byte), 0);
    assert_int_equal(bide_channel_try_send(&channel, &byte), 0);
    assert_int_equal(bide_channel_try_send(&channel, &byte), -ENOBUFS);
    for (size_t i = 0; i < BIDE_RING_MAX_RESERVED_; i++)
        bide_channel_permit_send(&channel, &permits[i], &byte);
    assert_int_equal(bide_channel_count(&channel), CAPACITY);
    for (size_t i = 0; i < CAPACITY; i++)
        assert_int_equal(bide_channel_try_recv(&channel, &byte), 0);
    assert_int_equal(bide_channel_try_recv(&channel, &byte), -EAGAIN);
    bide_channel_destroy(&channel);
}

/* ---- Several permits ---- */

static void a_reservation_of_many_takes_the_room_that_there_is(void **state)
{
    (void)state;
    struct fixture f;
    bide_channel_permit permits[4];
    size_t count;
    fixture_init(&f, 3);
    assert_int_equal(send_now(&f, 1), 0);
    struct user *user = begin(&f, RESERVES_MANY, 5);
    assert_int_equal(user->status, 0);
    assert_int_equal(user->count, 2);
    assert_int_equal(send_now(&f, 99), -ENOBUFS);
    assert_int_equal(bide_channel_try_reserve_many(&f.channel, permits, 4, &count), -ENOBUFS);
    assert_int_equal(count, 0);
    send_by(&f, &user->permits[1], 2); /* in any order */
    send_by(&f, &user->permits[0], 3);
    for (int i = 1; i <= 3; i++)
        assert_int_equal(receive_now(&f), i);
    assert_int_equal(bide_channel_try_reserve_many(&f.channel, permits, 2, &count), 0);
    assert_int_equal(count, 2);
    assert_int_equal(send_now(&f, 4), 0); /* there is room for one more */
    bide_channel_permit_release(&permits[0]);
    bide_channel_permit_release(&permits[1]);
    assert_int_equal(receive_now(&f), 4);
    fixture_end(&f);
}

static void a_reservation_of_many_waits_for_one(void **state)
{
    (void)state;
    for (int select = 0; select < 2; select++) {
        struct fixture f;
        fixture_init(&f, 2);
        assert_int_equal(send_now(&f, 1), 0);
        assert_int_equal(send_now(&f, 2), 0);
        struct user *user = begin(&f, select ? SELECTS_A_RESERVATION_OF_MANY : RESERVES_MANY, 2);
        by_hand_run(&f.by_hand);
        assert_int_equal(user->status, WAITS);
        assert_int_equal(user->count, 0);
        assert_int_equal(receive_now(&f), 1);
        by_hand_run(&f.by_hand);
        assert_int_equal(user->status, 0);
        assert_int_equal(user->count, 1);
        send_by(&f, &user->permits[0], 3);
        assert_int_equal(receive_now(&f), 2);
        assert_int_equal(receive_now(&f), 3);
        fixture_end(&f);
    }
}

/* One element is received, so one is let in; the room that it leaves is for those behind it. */
static void others_are_let_in_beside_a_reservation_of_many(void **state)
{
    (void)state;
    struct fixture f;
    uint32_t got[3];
    size_t count;
    fixture_init(&f, 3);
    for (uint32_t i = 1; i <= 3; i++)
        assert_int_equal(send_now(&f, i), 0);
    begin(&f, RESERVES_MANY, 2);
    begin(&f, SENDS, 4);
    begin(&f, RESERVES, 0);
    assert_int_equal(bide_channel_try_recv_many(&f.channel, got, 3, &count), 0);
    assert_int_equal(count, 3);
    by_hand_run(&f.by_hand);
    by_hand_assert_trace(&f.by_hand, "ab");
    assert_int_equal(f.users[0].count, 2);
    bide_channel_permit_release(&f.users[0].permits[1]);
    by_hand_run(&f.by_hand);
    by_hand_assert_trace(&f.by_hand, "c");
    send_by(&f, &f.users[0].permits[0], 5);
    send_by(&f, &f.users[2].permit, 6);
    for (int i = 4; i <= 6; i++)
        assert_int_equal(receive_now(&f), i);
    fixture_end(&f);
}

static void a_holder_of_many_destroyed_before_it_runs_gives_all_back(void **state)
{
    (void)state;
    static const enum act acts[] = {RESERVES_MANY, SELECTS_A_RESERVATION_OF_MANY};
    for (size_t i = 0; i < 4; i++) {
        struct fixture f;
        uint32_t got[2];
        size_t count;
        fixture_init(&f, 2);
        assert_int_equal(send_now(&f, 1), 0);
        assert_int_equal(send_now(&f, 2), 0);
        begin(&f, acts[i % 2], 2);
        by_hand_run(&f.by_hand); /* a select's waits begin */
        if (i < 2)
            assert_int_equal(bide_channel_try_recv_many(&f.channel, got, 2, &count), 0);
        bide_destroy(&f.users[0].task.frame);
        assert_int_equal(f.users[0].count, 0);
        if (i < 2) {
            assert_int_equal(send_now(&f, 3), 0);
            assert_int_equal(send_now(&f, 4), 0);
        }
        bide_channel_close(&f.channel);
        fixture_end(&f);
    }
}

static void several_permits_outlive_the_close(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 3);
    struct user *user = begin(&f, RESERVES_MANY, 3);
    struct user *waiting = begin(&f, RESERVES_MANY, 3);
    assert_int_equal(user->count, 3);
    bide_channel_close(&f.channel);
    by_hand_run(&f.by_hand);
    assert_int_equal(waiting->status, -EPIPE);
    assert_int_equal(waiting->count, 0);
    assert_int_equal(receive_now(&f), 0);
    send_by(&f, &user->permits[2], 1);
    bide_channel_permit_release(&user->permits[0]);
    send_by(&f, &user->permits[1], 2);
    assert_int_equal(receive_now(&f), 1);
    assert_int_equal(receive_now(&f), 2);
    assert_int_equal(receive_now(&f), -EPIPE);
    fixture_end(&f);
}

static void a_reservation_of_many_is_cancelled(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 1);
    assert_int_equal(send_now(&f, 1), 0);
    struct user *user = begin(&f, RESERVES_MANY, 2);
    bide_stop_request(&user->stop);
    by_hand_run(&f.by_hand);
    assert_int_equal(user->status, -ECANCELED);
    assert_int_equal(user->count, 0);
    assert_int_equal(receive_now(&f), 1);
    assert_int_equal(send_now(&f, 2), 0);
#if !BIDE_DEBUG
    bide_channel_permit permit;
    size_t count = 7;
    assert_int_equal(bide_channel_try_reserve_many(&f.channel, &permit, 0, &count), -EINVAL);
    assert_int_equal(count, 0);
#endif
#if TESTING_HOSTED
    bide_channel_permit permits[2];
    size_t reserved;
    assert_int_equal(bide_channel_reserve_many_blocking(&f.channel, permits, 2, &reserved, 0),
                     -ETIMEDOUT);
    assert_int_equal(reserved, 0);
    assert_int_equal(receive_now(&f), 2);
    assert_int_equal(
        bide_channel_reserve_many_blocking(&f.channel, permits, 2, &reserved, BIDE_FOREVER), 0);
    assert_int_equal(reserved, 1);
    bide_channel_permit_release(&permits[0]);
#endif
    fixture_end(&f);
}

/* ---- Receiving many ---- */

static void a_receive_of_many_waits_for_one_and_takes_what_is_there(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 5);
    struct user *user = begin(&f, RECEIVES_MANY, 3);
    assert_int_equal(user->status, WAITS);
    assert_int_equal(send_now(&f, 1), 0);
    for (uint32_t i = 2; i <= 6; i++)
        assert_int_equal(send_now(&f, i), 0);
    by_hand_run(&f.by_hand);
    assert_int_equal(user->status, 0);
    assert_int_equal(user->count, 1); /* it was handed the first */
    assert_int_equal(user->numbers[0], 1);
    user = begin(&f, RECEIVES_MANY, 3);
    assert_int_equal(user->status, 0);
    assert_int_equal(user->count, 3);
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(user->numbers[i], 2 + i);
    bide_channel_close(&f.channel);
    user = begin(&f, RECEIVES_MANY, 3);
    assert_int_equal(user->status, 0);
    assert_int_equal(user->count, 2);
    user = begin(&f, RECEIVES_MANY, 3);
    assert_int_equal(user->status, -EPIPE);
    assert_int_equal(user->count, 0);
    fixture_end(&f);
}

/*
 * Some of them are selects, which attempt by themselves and so let nobody else in. The receive is made at once, by a
 * coroutine, or by a select.
 */
static void as_many_senders_are_let_in_as_elements_were_received(void **state)
{
    (void)state;
    for (int how = 0; how < 6; how++) {
        struct fixture f;
        uint32_t got[3];
        size_t count;
        fixture_init(&f, 3);
        for (uint32_t i = 1; i <= 3; i++)
            assert_int_equal(send_now(&f, i), 0);
        for (uint32_t i = 4; i <= 7; i++) {
            begin(&f, how % 2 == 1 ? SELECTS_A_SEND : SENDS, i);
            by_hand_run(&f.by_hand); /* a select's waits begin */
        }
        if (how / 2 == 0)
            assert_int_equal(bide_channel_try_recv_many(&f.channel, got, 3, &count), 0);
        else
            begin(&f, how / 2 == 1 ? RECEIVES_MANY : SELECTS_A_RECEIVE_OF_MANY, 3);
        by_hand_run(&f.by_hand);
        uint32_t sum = 0;
        for (int i = 0; i < 4; i++)
            sum += f.users[i].status == 0 ? f.users[i].numbers[0] : 0;
        assert_int_equal(sum, 4 + 5 + 6);
        assert_int_equal(bide_channel_count(&f.channel), 3);
        bide_channel_close(&f.channel);
        fixture_end(&f);
    }
}

static void at_once_an_empty_channel_gives_none(void **state)
{
    (void)state;
    struct fixture f;
    uint32_t got[2];
    size_t count = 7;
    fixture_init(&f, 2);
    assert_int_equal(bide_channel_try_recv_many(&f.channel, got, 2, &count), -EAGAIN);
    assert_int_equal(count, 0);
#if !BIDE_DEBUG
    assert_int_equal(bide_channel_try_recv_many(&f.channel, got, 0, &count), -EINVAL);
#endif
#if TESTING_HOSTED
    bide_channel_permit permit;
    assert_int_equal(bide_channel_recv_many_blocking(&f.channel, got, 2, &count, 0), -ETIMEDOUT);
    assert_int_equal(bide_channel_reserve_blocking(&f.channel, &permit, 0), 0);
    assert_int_equal(send_now(&f, 1), 0);
    bide_channel_permit another;
    assert_int_equal(bide_channel_reserve_blocking(&f.channel, &another, 0), -ETIMEDOUT);
    send_by(&f, &permit, 2);
    assert_int_equal(bide_channel_recv_many_blocking(&f.channel, got, 2, &count, 0), 0);
    assert_int_equal(count, 2);
#endif
    bide_channel_close(&f.channel);
    assert_int_equal(bide_channel_try_recv_many(&f.channel, got, 2, &count), -EPIPE);
    assert_int_equal(count, 0);
    fixture_end(&f);
}

/* ---- At random, against a model ---- */

enum { STEPS = 20000 };

struct model {
    uint32_t elements[MAX_CAPACITY];
    size_t count, held, capacity;
    bool closed;
};

static int model_room(const struct model *m)
{
    return m->closed ? -EPIPE : m->count + m->held == m->capacity ? -ENOBUFS : 0;
}

static void model_pop(struct model *m, const uint32_t *got, size_t count)
{
    for (size_t i = 0; i < count; i++)
        assert_int_equal(got[i], m->elements[i]);
    m->count -= count;
    memmove(m->elements, m->elements + count, m->count * sizeof *m->elements);
}

static int model_none(const struct model *m)
{
    return m->count != 0 ? 0 : m->closed && m->held == 0 ? -EPIPE : -EAGAIN;
}

static void any_mix_at_once_does_what_a_list_would(void **state)
{
    (void)state;
    uint64_t random = testing_seed();
    for (size_t capacity = 1; capacity <= MAX_CAPACITY; capacity++) {
        struct fixture f;
        struct model m = {.capacity = capacity};
        bide_channel_permit permits[MAX_CAPACITY];
        uint32_t number = 0, got[MAX_CAPACITY];
        size_t count;
        fixture_init(&f, capacity);
        for (int step = 0; step < STEPS; step++) {
            uint64_t draw = testing_random(&random);
            int expected = model_room(&m), none = model_none(&m);
            if (step == STEPS - 50) {
                bide_channel_close(&f.channel);
                m.closed = true;
                continue;
            }
            number++;
            switch (draw % 6) {
            case 0:
                assert_int_equal(send_now(&f, number), expected);
                if (expected == 0)
                    m.elements[m.count++] = number;
                break;
            case 1: {
                bide_channel_permit permit;
                assert_int_equal(bide_channel_try_reserve(&f.channel, &permit), expected);
                if (expected == 0)
                    permits[m.held++] = permit;
                break;
            }
            case 2:
                if (m.held == 0)
                    break;
                send_by(&f, &permits[--m.held], number);
                m.elements[m.count++] = number;
                break;
            case 3:
                if (m.held != 0) {
                    m.held--;
                    bide_channel_permit_release(&permits[m.held]);
                }
                break;
            case 4:
                assert_int_equal(bide_channel_try_recv(&f.channel, got), none);
                model_pop(&m, got, none == 0);
                break;
            default:
                assert_int_equal(bide_channel_try_recv_many(&f.channel, got,
                                                            1 + draw / 8 % MAX_CAPACITY, &count),
                                 none);
                size_t max = 1 + draw / 8 % MAX_CAPACITY;
                assert_int_equal(count, m.count < max ? m.count : max);
                model_pop(&m, got, count);
                break;
            }
            assert_int_equal(bide_channel_count(&f.channel), m.count);
        }
        while (m.held != 0) {
            m.held--;
            bide_channel_permit_release(&permits[m.held]);
        }
        fixture_end(&f);
    }
}

/* ---- Misuse ---- */

#if BIDE_DEBUG && TESTING_HOSTED
static void send_twice_by_a_permit(void)
{
    struct fixture f;
    bide_channel_permit permit;
    fixture_init(&f, 2);
    (void)bide_channel_try_reserve(&f.channel, &permit);
    send_by(&f, &permit, 1);
    uint32_t number = 2;
    bide_channel_permit_send(&f.channel, &permit, &number);
}

static void send_by_a_permit_of_another(void)
{
    struct fixture f;
    bide_channel_permit permit;
    uint32_t number = 2;
    fixture_init(&f, 2);
    (void)bide_channel_try_reserve(&f.never, &permit);
    bide_channel_permit_send(&f.channel, &permit, &number);
}

static void release_twice(void)
{
    struct fixture f;
    bide_channel_permit permit;
    fixture_init(&f, 2);
    (void)bide_channel_try_reserve(&f.channel, &permit);
    bide_channel_permit_release(&permit);
    bide_channel_permit_release(&permit);
}

static void destroy_what_a_permit_is_held_of(void)
{
    struct fixture f;
    bide_channel_permit permit;
    fixture_init(&f, 2);
    (void)bide_channel_try_reserve(&f.channel, &permit);
    bide_channel_destroy(&f.channel);
}

static void receive_at_most_none(void)
{
    struct fixture f;
    uint32_t number;
    size_t count;
    fixture_init(&f, 2);
    (void)bide_channel_try_recv_many(&f.channel, &number, 0, &count);
}

static void misuse_is_told_with_object_and_caller(void **state)
{
    (void)state;
    assert_true(misuse_aborts_naming(send_twice_by_a_permit, "not held: &permit",
                                     "send_twice_by_a_permit"));
    assert_true(misuse_aborts_naming(send_by_a_permit_of_another, "not held: &permit",
                                     "send_by_a_permit_of_another"));
    assert_true(misuse_aborts_naming(release_twice, "not held: &permit", "release_twice"));
    assert_true(misuse_aborts_naming(destroy_what_a_permit_is_held_of, "a permit of it is held",
                                     "destroy_what_a_permit_is_held_of"));
    assert_true(
        misuse_aborts_naming(receive_at_most_none, "at most 0 elements", "receive_at_most_none"));
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_permit_keeps_room_and_hides_no_other_element),
        cmocka_unit_test(a_released_permit_lets_the_first_waiter_in),
        cmocka_unit_test(sending_by_a_permit_wakes_the_receiver),
        cmocka_unit_test(a_permit_outlives_the_close_and_receivers_wait_for_it),
        cmocka_unit_test(the_last_element_by_a_permit_ends_all_other_receivers),
        cmocka_unit_test(a_holder_destroyed_before_it_runs_gives_the_room_back),
        cmocka_unit_test(a_reservation_that_does_not_win_a_select_reserves_nothing),
        cmocka_unit_test(more_permits_than_there_may_be_are_refused),
        cmocka_unit_test(a_reservation_of_many_takes_the_room_that_there_is),
        cmocka_unit_test(a_reservation_of_many_waits_for_one),
        cmocka_unit_test(others_are_let_in_beside_a_reservation_of_many),
        cmocka_unit_test(a_holder_of_many_destroyed_before_it_runs_gives_all_back),
        cmocka_unit_test(several_permits_outlive_the_close),
        cmocka_unit_test(a_reservation_of_many_is_cancelled),
        cmocka_unit_test(a_receive_of_many_waits_for_one_and_takes_what_is_there),
        cmocka_unit_test(as_many_senders_are_let_in_as_elements_were_received),
        cmocka_unit_test(at_once_an_empty_channel_gives_none),
        cmocka_unit_test(any_mix_at_once_does_what_a_list_would),
#if BIDE_DEBUG && TESTING_HOSTED
        cmocka_unit_test(misuse_is_told_with_object_and_caller),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * The bounded channel's ends: it is closed by the last sender or receiver that goes; it may drop elements instead of
 * letting senders wait; and each element that no receiver gets is told of, once.
 */
#define _GNU_SOURCE
#include "misuse.h"
#include "sync/by_hand.h"

#include "bide/channel.h"
#include "bide/coroutine.h"
#include "bide/handle.h"
#include "bide/select.h"

#if TESTING_HOSTED
#include <pthread.h>
#endif

enum { WAITS = 1 /* the status of a wait that has not ended */, MAX_CAPACITY = 4, MOST = 64 };

typedef bide_channel_slot(uint32_t) number_slot;
typedef bide_channel(uint32_t) numbers;

struct user {
    bide_task task;
    struct fixture *fixture;
    bide_channel_waiter waiter;
    bide_select_of(1) select;
    bide_channel_permit permit;
    enum { SENDS, SELECTS, RECEIVES, RESERVES } act;
    uint32_t number;
    int status;
};

struct fixture {
    by_hand by_hand;
    numbers channel;
    number_slot memory[MAX_CAPACITY];
    uint32_t undelivered[MOST];
    size_t count; /* of them */
};

static void note(void *argument, void *element)
{
    struct fixture *f = argument;
    assert_true(f->count < MOST);
    f->undelivered[f->count++] = *(uint32_t *)element;
}

static void fixture_init(struct fixture *f, size_t capacity, bide_channel_overflow overflow)
{
    memset(f, 0, sizeof *f);
    by_hand_init(&f->by_hand);
    bide_channel_options options = {overflow, note, f};
    bide_channel_init_with(&f->channel, f->memory, capacity, &options);
}

bide_coroutine(user_body)
{
    bide_begin(user_body, struct user * self);
    numbers *channel = &self->fixture->channel;
    bide_awaiter *awaiter =
        self->act == RECEIVES   ? bide_channel_recv(&self->waiter, channel, &self->number)
        : self->act == RESERVES ? bide_channel_reserve(&self->waiter, channel, &self->permit)
                                : bide_channel_send(&self->waiter, channel, &self->number);
    bide_await_status(self->status,
                      self->act == SELECTS ? bide_select_any_of(&self->select, awaiter) : awaiter);
    bide_end();
}

static void begin(struct user *user, struct fixture *f, int act, uint32_t number)
{
    *user = (struct user){.fixture = f, .act = act, .number = number, .status = WAITS};
    bide_start(&user->task.frame, &user_body, &f->by_hand.context);
    bide_resume(&user->task.frame);
}

static int send_now(struct fixture *f, uint32_t number)
{
    return bide_channel_try_send(&f->channel, &number);
}

/* The first element; or the error. */
static int receive_now(struct fixture *f)
{
    uint32_t number = 0;
    int status = bide_channel_try_recv(&f->channel, &number);
    return status == 0 ? (int)number : status;
}

/* What was told of since the last call. */
static void assert_undelivered(struct fixture *f, const uint32_t *expected, size_t count)
{
    assert_int_equal(f->count, count);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(f->undelivered[i], expected[i]);
    f->count = 0;
}
#define ASSERT_UNDELIVERED(f, ...)                           \
    assert_undelivered((f), (const uint32_t[]){__VA_ARGS__}, \
                       sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))

/* ---- The last one closes ---- */

static void the_last_sender_that_goes_closes_it(void **state)
{
    (void)state;
    struct fixture f;
    struct user receivers[3];
    fixture_init(&f, 2, BIDE_CHANNEL_WAIT);
    bide_channel_sender_add(&f.channel);
    bide_channel_sender_add(&f.channel);
    assert_int_equal(send_now(&f, 1), 0);
    bide_channel_sender_drop(&f.channel);
    bide_channel_sender_add(&f.channel);
    bide_channel_sender_drop(&f.channel);
    assert_int_equal(send_now(&f, 2), 0);
    begin(&receivers[0], &f, RECEIVES, 0);
    begin(&receivers[1], &f, RECEIVES, 0);
    begin(&receivers[2], &f, RECEIVES, 0);
    assert_int_equal(receivers[2].status, WAITS);
    bide_channel_sender_drop(&f.channel);
    by_hand_run(&f.by_hand);
    assert_int_equal(receivers[0].number, 1);
    assert_int_equal(receivers[1].number, 2);
    assert_int_equal(receivers[2].status, -EPIPE);
    assert_int_equal(send_now(&f, 3), -EPIPE);
    bide_channel_destroy(&f.channel);
    assert_int_equal(f.count, 0);
}

static void after_the_last_receiver_sends_fail_and_what_is_left_is_told_of(void **state)
{
    (void)state;
    struct fixture f;
    struct user sender;
    fixture_init(&f, 3, BIDE_CHANNEL_WAIT);
    bide_channel_receiver_add(&f.channel);
    bide_channel_receiver_add(&f.channel);
    for (uint32_t i = 1; i <= 3; i++)
        assert_int_equal(send_now(&f, i), 0);
    begin(&sender, &f, SENDS, 4);
    bide_channel_receiver_drop(&f.channel);
    assert_int_equal(receive_now(&f), 1); /* the sender's is let in */
    by_hand_run(&f.by_hand);
    assert_int_equal(sender.status, 0);
    begin(&sender, &f, SENDS, 5);
    assert_int_equal(f.count, 0);
    bide_channel_receiver_drop(&f.channel);
    by_hand_run(&f.by_hand);
    assert_int_equal(sender.status, -EPIPE); /* the element is still the sender's */
    ASSERT_UNDELIVERED(&f, 2, 3, 4);
    assert_int_equal(send_now(&f, 6), -EPIPE);
    bide_channel_destroy(&f.channel);
    assert_int_equal(f.count, 0);
}

static void what_a_permit_sends_to_nobody_is_told_of_at_once(void **state)
{
    (void)state;
    struct fixture f;
    bide_channel_permit permits[2];
    uint32_t number = 5;
    fixture_init(&f, 3, BIDE_CHANNEL_WAIT);
    bide_channel_receiver_add(&f.channel);
    assert_int_equal(bide_channel_try_reserve(&f.channel, &permits[0]), 0);
    assert_int_equal(bide_channel_try_reserve(&f.channel, &permits[1]), 0);
    bide_channel_receiver_drop(&f.channel);
    assert_int_equal(receive_now(&f), -EAGAIN);
    bide_channel_permit_send(&f.channel, &permits[0], &number);
    ASSERT_UNDELIVERED(&f, 5);
    bide_channel_permit_release(&permits[1]);
    assert_int_equal(receive_now(&f), -EPIPE);
    bide_channel_destroy(&f.channel);
    assert_int_equal(f.count, 0);
}

static void what_is_in_it_at_the_end_is_told_of(void **state)
{
    (void)state;
    for (int closed = 0; closed < 2; closed++) {
        struct fixture f;
        fixture_init(&f, 3, BIDE_CHANNEL_WAIT);
        for (uint32_t i = 1; i <= 3; i++)
            assert_int_equal(send_now(&f, i), 0);
        assert_int_equal(receive_now(&f), 1);
        if (closed)
            bide_channel_close(&f.channel);
        assert_int_equal(f.count, 0);
        bide_channel_destroy(&f.channel);
        ASSERT_UNDELIVERED(&f, 2, 3);
    }
}

/* ---- Dropping ---- */

static void a_send_to_a_full_channel_drops_the_newest(void **state)
{
    (void)state;
    struct fixture f;
    struct user users[2];
    fixture_init(&f, 2, BIDE_CHANNEL_DROP_NEWEST);
    assert_int_equal(send_now(&f, 1), 0);
    assert_int_equal(send_now(&f, 2), 0);
    assert_int_equal(send_now(&f, 3), 0);
    ASSERT_UNDELIVERED(&f, 3);
    begin(&users[0], &f, SENDS, 4);
    begin(&users[1], &f, SELECTS, 5);
    assert_int_equal(users[0].status, 0);
    assert_int_equal(users[1].status, 0);
    ASSERT_UNDELIVERED(&f, 4, 5);
#if TESTING_HOSTED
    uint32_t number = 6;
    assert_int_equal(bide_channel_send_blocking(&f.channel, &number, BIDE_FOREVER), 0);
    ASSERT_UNDELIVERED(&f, 6);
#endif
    assert_int_equal(receive_now(&f), 1);
    assert_int_equal(send_now(&f, 7), 0);
    assert_int_equal(receive_now(&f), 2);
    assert_int_equal(receive_now(&f), 7);
    assert_int_equal(receive_now(&f), -EAGAIN);
    bide_channel_close(&f.channel);
    assert_int_equal(send_now(&f, 8), -EPIPE);
    bide_channel_destroy(&f.channel);
    assert_int_equal(f.count, 0);
}

static void a_send_to_a_full_channel_drops_the_oldest(void **state)
{
    (void)state;
    for (size_t capacity = 1; capacity <= MAX_CAPACITY; capacity++) {
        struct fixture f;
        struct user users[2];
        fixture_init(&f, capacity, BIDE_CHANNEL_DROP_OLDEST);
        for (uint32_t i = 1; i <= 10; i++) {
            assert_int_equal(send_now(&f, i), 0);
            if (i > capacity)
                ASSERT_UNDELIVERED(&f, i - (uint32_t)capacity);
        }
        begin(&users[0], &f, SENDS, 11);
        begin(&users[1], &f, SELECTS, 12);
        assert_int_equal(users[0].status, 0);
        assert_int_equal(users[1].status, 0);
        ASSERT_UNDELIVERED(&f, 11 - (uint32_t)capacity, 12 - (uint32_t)capacity);
        for (uint32_t i = 13 - (uint32_t)capacity; i <= 12; i++)
            assert_int_equal(receive_now(&f), i);
        assert_int_equal(receive_now(&f), -EAGAIN);
        bide_channel_destroy(&f.channel);
        assert_int_equal(f.count, 0);
    }
}

static void a_permit_keeps_its_room_and_a_reservation_drops_nothing(void **state)
{
    (void)state;
    struct fixture f;
    struct user user;
    bide_channel_permit permit;
    uint32_t number = 9;
    fixture_init(&f, 2, BIDE_CHANNEL_DROP_OLDEST);
    assert_int_equal(bide_channel_try_reserve(&f.channel, &permit), 0);
    assert_int_equal(send_now(&f, 1), 0);
    assert_int_equal(send_now(&f, 2), 0);
    ASSERT_UNDELIVERED(&f, 1);
    begin(&user, &f, RESERVES, 0);
    assert_int_equal(user.status, WAITS);
    assert_int_equal(f.count, 0);
    assert_int_equal(receive_now(&f), 2);
    by_hand_run(&f.by_hand);
    assert_int_equal(user.status, 0);
    assert_int_equal(send_now(&f, 3), 0); /* all room is held by permits */
    ASSERT_UNDELIVERED(&f, 3);
    bide_channel_permit_send(&f.channel, &permit, &number);
    bide_channel_permit_release(&user.permit);
    assert_int_equal(receive_now(&f), 9);
    bide_channel_destroy(&f.channel);
    assert_int_equal(f.count, 0);
}

static void a_receiver_that_waits_gets_what_is_sent(void **state)
{
    (void)state;
    static const bide_channel_overflow overflows[] = {BIDE_CHANNEL_DROP_OLDEST,
                                                      BIDE_CHANNEL_DROP_NEWEST};
    for (size_t i = 0; i < 2; i++) {
        struct fixture f;
        struct user user;
        fixture_init(&f, 1, overflows[i]);
        begin(&user, &f, RECEIVES, 0);
        assert_int_equal(send_now(&f, 1), 0);
        assert_int_equal(send_now(&f, 2), 0);
        by_hand_run(&f.by_hand);
        assert_int_equal(user.number, 1);
        assert_int_equal(receive_now(&f), 2);
        bide_channel_destroy(&f.channel);
        assert_int_equal(f.count, 0);
    }
}

static void without_a_function_elements_are_dropped_silently(void **state)
{
    (void)state;
    number_slot memory[1];
    numbers channel;
    uint32_t number = 1;
    bide_channel_options options = {BIDE_CHANNEL_DROP_OLDEST, NULL, NULL};
    bide_channel_init_with(&channel, memory, 1, &options);
    for (; number < 5; number++)
        assert_int_equal(bide_channel_try_send(&channel, &number), 0);
    assert_int_equal(bide_channel_try_recv(&channel, &number), 0);
    assert_int_equal(number, 4);
    bide_channel_destroy(&channel);
}

/* ---- With threads ---- */

#if TESTING_HOSTED
enum { SENDERS = 3, RECEIVERS = 2, EACH = 2000 };

struct race {
    numbers channel;
    number_slot memory[MAX_CAPACITY];
    bide_atomic(uint32_t) ends[SENDERS * EACH]; /* how often each was received, or told of */
    bide_atomic(uint32_t) told;
    bide_atomic(uint32_t) begun; /* senders: the next's number */
    uint32_t sent[SENDERS];
    uint64_t seed;
    uint32_t patience; /* how many elements a receiver takes */
};

static void race_ended(struct race *r, uint32_t number)
{
    bide_atomic_fetch_add(&r->ends[number], 1, relaxed);
}

static void race_undelivered(void *argument, void *element)
{
    struct race *r = argument;
    bide_atomic_fetch_add(&r->told, 1, relaxed);
    race_ended(r, *(uint32_t *)element);
}

static void *race_send(void *argument)
{
    struct race *r = argument;
    uint32_t self = bide_atomic_fetch_add(&r->begun, 1, relaxed), i;
    uint64_t random = r->seed + self;
    for (i = 0; i < EACH; i++) {
        uint32_t number = self * EACH + i;
        uint64_t draw = testing_random(&random);
        bide_channel_permit permit;
        if (draw % 4 == 0 && bide_channel_try_reserve(&r->channel, &permit) == 0) {
            if (draw / 4 % 8 == 0)
                bide_platform.yield();
            bide_channel_permit_send(&r->channel, &permit, &number);
        } else if (bide_channel_send_blocking(&r->channel, &number, BIDE_FOREVER) != 0) {
            break;
        }
        if (draw / 32 % 64 == 0)
            bide_platform.yield();
    }
    r->sent[self] = i;
    bide_channel_sender_drop(&r->channel);
    return NULL;
}

static void *race_receive(void *argument)
{
    struct race *r = argument;
    uint32_t got[2];
    size_t count;
    for (uint32_t left = r->patience; left > 1; left -= (uint32_t)count) {
        if (bide_channel_recv_many_blocking(&r->channel, got, 2, &count, BIDE_FOREVER) != 0)
            break;
        for (size_t i = 0; i < count; i++)
            race_ended(r, got[i]);
    }
    bide_channel_receiver_drop(&r->channel);
    return NULL;
}

static void race_once(struct race *r, bide_channel_overflow overflow, uint64_t *random)
{
    pthread_t threads[SENDERS + RECEIVERS];
    bide_channel_options options = {overflow, race_undelivered, r};
    bide_channel_init_with(&r->channel, r->memory, 1 + testing_random(random) % MAX_CAPACITY,
                           &options);
    for (size_t i = 0; i < SENDERS * EACH; i++)
        bide_atomic_init(&r->ends[i], 0);
    bide_atomic_init(&r->begun, 0);
    bide_atomic_init(&r->told, 0);
    r->seed = testing_random(random);
    r->patience =
        testing_random(random) % 2 == 0 ? UINT32_MAX : (uint32_t)(testing_random(random) % EACH);
    for (int i = 0; i < SENDERS; i++)
        bide_channel_sender_add(&r->channel);
    for (int i = 0; i < RECEIVERS; i++)
        bide_channel_receiver_add(&r->channel);
    for (int i = 0; i < SENDERS + RECEIVERS; i++)
        assert_int_equal(
            pthread_create(&threads[i], NULL, i < SENDERS ? race_send : race_receive, r), 0);
    for (int i = 0; i < SENDERS + RECEIVERS; i++)
        pthread_join(threads[i], NULL);
    bide_channel_destroy(&r->channel);
    uint32_t wrong = 0, sent = 0;
    for (uint32_t s = 0; s < SENDERS; s++) {
        sent += r->sent[s];
        for (uint32_t i = 0; i < EACH; i++)
            wrong += bide_atomic_load(&r->ends[s * EACH + i], relaxed) != (i < r->sent[s]);
    }
    assert_int_equal(wrong, 0);
    if (overflow != BIDE_CHANNEL_WAIT && r->patience == UINT32_MAX)
        assert_int_equal(sent, SENDERS * EACH);
}

static void each_element_is_received_or_told_of_once(void **state)
{
    (void)state;
    static const bide_channel_overflow overflows[] = {BIDE_CHANNEL_WAIT, BIDE_CHANNEL_DROP_OLDEST,
                                                      BIDE_CHANNEL_DROP_NEWEST};
    struct race *r = aligned_alloc(BIDE_CACHE_LINE, (sizeof *r + BIDE_CACHE_LINE - 1) /
                                                        BIDE_CACHE_LINE * BIDE_CACHE_LINE);
    uint64_t random = testing_seed();
    assert_non_null(r);
    for (uint32_t round = rounds_of(12); round > 0; round--)
        race_once(r, overflows[round % 3], &random);
    free(r);
}
#endif

/* ---- Misuse ---- */

#if BIDE_DEBUG && TESTING_HOSTED
static void drop_a_sender_that_was_not_added(void)
{
    struct fixture f;
    fixture_init(&f, 1, BIDE_CHANNEL_WAIT);
    bide_channel_sender_drop(&f.channel);
}

static void drop_a_receiver_twice(void)
{
    struct fixture f;
    fixture_init(&f, 1, BIDE_CHANNEL_WAIT);
    bide_channel_receiver_add(&f.channel);
    bide_channel_receiver_drop(&f.channel);
    bide_channel_receiver_drop(&f.channel);
}

static void misuse_is_told_with_object_and_caller(void **state)
{
    (void)state;
    assert_true(misuse_aborts_naming(drop_a_sender_that_was_not_added, "added: &f.channel",
                                     "drop_a_sender_that_was_not_added"));
    assert_true(
        misuse_aborts_naming(drop_a_receiver_twice, "added: &f.channel", "drop_a_receiver_twice"));
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_sender_that_goes_closes_it),
        cmocka_unit_test(after_the_last_receiver_sends_fail_and_what_is_left_is_told_of),
        cmocka_unit_test(what_a_permit_sends_to_nobody_is_told_of_at_once),
        cmocka_unit_test(what_is_in_it_at_the_end_is_told_of),
        cmocka_unit_test(a_send_to_a_full_channel_drops_the_newest),
        cmocka_unit_test(a_send_to_a_full_channel_drops_the_oldest),
        cmocka_unit_test(a_permit_keeps_its_room_and_a_reservation_drops_nothing),
        cmocka_unit_test(a_receiver_that_waits_gets_what_is_sent),
        cmocka_unit_test(without_a_function_elements_are_dropped_silently),
#if TESTING_HOSTED
        cmocka_unit_test(each_element_is_received_or_told_of_once),
#endif
#if BIDE_DEBUG && TESTING_HOSTED
        cmocka_unit_test(misuse_is_told_with_object_and_caller),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

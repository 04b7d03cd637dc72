/*
 * Several senders of one broadcast and of one watch; and changes of a watch's value in place, by one sender and by
 * several.
 */
#include "misuse.h"
#include "sync/by_hand.h"
#include "sync/meeting.h"

#include "bide/broadcast.h"
#include "bide/handle.h"
#include "bide/run_loop.h"
#include "bide/spawn.h"
#include "bide/watch.h"

enum { CAPACITY = 8 };

/* Not a whole number of words. */
typedef struct element {
    uint32_t sender, number;
    unsigned char bytes[29];
} element;

typedef bide_broadcast(element) elements;
typedef bide_broadcast_slot(element) elements_slot;
typedef bide_broadcast_subscriber(element) elements_subscriber;
typedef bide_watch(element) values;
typedef bide_watch_receiver(element) values_receiver;

static element element_of(uint32_t sender, uint32_t number)
{
    element e = {sender, number, {0}};
    for (size_t i = 0; i < sizeof e.bytes; i++)
        e.bytes[i] = (unsigned char)(sender * 31 + number + i);
    return e;
}

static bool is_whole(const element *e)
{
    element expected = element_of(e->sender, e->number);
    return memcmp(e->bytes, expected.bytes, sizeof e->bytes) == 0;
}

/* ---- One thread: a shared one behaves as one with a single sender does ---- */

static void a_shared_broadcast_is_a_broadcast(void **state)
{
    (void)state;
    for (uint32_t capacity = 1; capacity <= CAPACITY; capacity++) {
        elements_slot memory[CAPACITY];
        elements broadcast;
        elements_subscriber subscriber, late;
        element e;
        bide_broadcast_init_shared(&broadcast, memory, capacity);
        bide_broadcast_subscribe(&subscriber, &broadcast);
        for (uint32_t i = 1; i <= 4 * capacity; i++) {
            e = element_of(i % 3, i);
            assert_int_equal(bide_broadcast_send(&broadcast, &e), 0);
        }
        for (uint32_t i = 3 * capacity + 1; i <= 4 * capacity; i++) {
            assert_int_equal(bide_broadcast_try_recv(&subscriber, &e), 0);
            assert_true(e.number == i && is_whole(&e));
            assert_int_equal(subscriber.missed, i == 3 * capacity + 1 ? 3 * capacity : 0);
        }
        bide_broadcast_subscribe(&late, &broadcast);
        assert_int_equal(bide_broadcast_try_recv(&late, &e), -EAGAIN);
        e = element_of(1, 99);
        assert_int_equal(bide_broadcast_send(&broadcast, &e), 0);
        bide_broadcast_close(&broadcast);
        bide_broadcast_close(&broadcast);
        assert_int_equal(bide_broadcast_send(&broadcast, &e), -EPIPE);
        assert_int_equal(bide_broadcast_try_recv(&late, &e), 0);
        assert_int_equal(e.number, 99);
        assert_int_equal(bide_broadcast_try_recv(&late, &e), -EPIPE);
        bide_broadcast_destroy(&broadcast);
    }
}

static void a_shared_watch_is_a_watch(void **state)
{
    (void)state;
    values watch;
    values_receiver receiver;
    element e = element_of(0, 0);
    bide_watch_init_shared(&watch, &e);
    bide_watch_receiver_init(&receiver, &watch);
    for (uint32_t i = 1; i <= 9; i++) {
        assert_int_equal(bide_watch_try_recv(&receiver, &e), 0);
        assert_true(e.number == i - 1 && is_whole(&e));
        assert_int_equal(bide_watch_try_recv(&receiver, &e), -EAGAIN);
        e = element_of(i % 3, i);
        assert_int_equal(bide_watch_send(&watch, &e), 0);
    }
    bide_watch_close(&watch);
    bide_watch_close(&watch);
    assert_int_equal(bide_watch_send(&watch, &e), -EPIPE);
    assert_int_equal(bide_watch_try_recv(&receiver, &e), 0);
    assert_int_equal(e.number, 9);
    assert_int_equal(bide_watch_try_recv(&receiver, &e), -EPIPE);
    assert_int_equal(bide_watch_read(&watch, &e), 0);
    bide_watch_destroy(&watch);
}

/* ---- A waiter that is woken inside a send, with no coroutine on the stack, sends itself ---- */

struct echo {
    bide_task task;
    elements *broadcast;
    values *watch;
    elements_subscriber subscriber;
    values_receiver receiver;
    bide_broadcast_waiter heard;
    bide_watch_waiter seen;
    element got;
    int echoes;
};

bide_coroutine(echo_body)
{
    bide_begin(echo_body, struct echo * self);
    for (; self->echoes < 3; self->echoes++) {
        if (self->broadcast != NULL) {
            bide_try(bide_broadcast_recv(&self->heard, &self->subscriber, &self->got));
            self->got = element_of(self->got.sender, self->got.number + 1);
            bide_broadcast_send(self->broadcast, &self->got);
        } else {
            bide_try(bide_watch_recv(&self->seen, &self->receiver, &self->got));
            self->got = element_of(self->got.sender, self->got.number + 1);
            bide_watch_send(self->watch, &self->got);
        }
    }
    bide_end();
}

static void a_waiter_that_is_woken_inline_sends(void **state)
{
    (void)state;
    for (int is_watch = 0; is_watch < 2; is_watch++) {
        elements_slot memory[CAPACITY];
        elements broadcast;
        values watch;
        struct echo echo = {.broadcast = is_watch ? NULL : &broadcast, .watch = &watch};
        bide_spawned spawned;
        element e = element_of(1, 0);
        bide_broadcast_init_shared(&broadcast, memory, CAPACITY);
        bide_broadcast_subscribe(&echo.subscriber, &broadcast);
        bide_watch_init_shared(&watch, &e);
        bide_watch_receiver_init(&echo.receiver, &watch);
        bide_watch_mark_seen(&echo.receiver);
        bide_spawn(&spawned, &bide_default_context, bide_task_init(&echo.task, &echo_body));
        e = element_of(1, 10);
        if (is_watch)
            assert_int_equal(bide_watch_send(&watch, &e), 0);
        else
            assert_int_equal(bide_broadcast_send(&broadcast, &e), 0);
        assert_int_equal(echo.echoes, 3);
        assert_int_equal(echo.got.number, 13);
    }
}

/* ---- Changing the value in place ---- */

static bool add(void *value, void *argument)
{
    element *e = value;
    uint32_t by = *(uint32_t *)argument;
    *e = element_of(e->sender, is_whole(e) ? e->number + by : UINT32_MAX / 2);
    return by != 0;
}

static void init_watch(values *watch, bool is_shared)
{
    element first = element_of(0, 5);
    if (is_shared)
        bide_watch_init_shared(watch, &first);
    else
        bide_watch_init(watch, &first);
}

static void it_is_sent_only_if_it_was_modified(void **state)
{
    (void)state;
    for (int is_shared = 0; is_shared < 2; is_shared++) {
        values watch;
        values_receiver receiver;
        element e;
        uint32_t by = 3;
        init_watch(&watch, is_shared != 0);
        bide_watch_receiver_init(&receiver, &watch);
        bide_watch_mark_seen(&receiver);
        assert_int_equal(bide_watch_send_if_modified(&watch, &e, add, &by), 1);
        assert_int_equal(e.number, 8);
        assert_int_equal(bide_watch_try_recv(&receiver, &e), 0);
        assert_true(e.number == 8 && is_whole(&e));
        by = 0;
        assert_int_equal(bide_watch_send_if_modified(&watch, &e, add, &by), 0);
        assert_int_equal(bide_watch_try_recv(&receiver, &e), -EAGAIN);
        by = 1;
        for (uint32_t i = 1; i <= 9; i++)
            assert_int_equal(bide_watch_send_if_modified(&watch, &e, add, &by), 1);
        assert_int_equal(bide_watch_read(&watch, &e), 0);
        assert_true(e.number == 17 && is_whole(&e));
        bide_watch_close(&watch);
        e.number = 77;
        assert_int_equal(bide_watch_send_if_modified(&watch, &e, add, &by), -EPIPE);
        assert_int_equal(e.number, 77);
        bide_watch_destroy(&watch);
    }
}

/* The function may change what it is given and then say that nothing was modified: nobody sees it. */
static bool spoil(void *value, void *argument)
{
    (void)argument;
    memset(value, 0x55, sizeof(element));
    return false;
}

static void what_the_function_does_not_send_is_seen_by_nobody(void **state)
{
    (void)state;
    for (int is_shared = 0; is_shared < 2; is_shared++) {
        values watch;
        values_receiver receiver;
        element e;
        init_watch(&watch, is_shared != 0);
        bide_watch_receiver_init(&receiver, &watch);
        assert_int_equal(bide_watch_send_if_modified(&watch, &e, spoil, NULL), 0);
        assert_int_equal(bide_watch_try_recv(&receiver, &e), 0);
        assert_true(e.number == 5 && is_whole(&e));
    }
}

/* The function may read. */
static bool read_inside(void *value, void *argument)
{
    element e;
    (void)value;
    return bide_watch_read((values *)argument, &e) == 0 && e.number == 5;
}

static void the_function_may_read_the_watch(void **state)
{
    (void)state;
    for (int is_shared = 0; is_shared < 2; is_shared++) {
        values watch;
        element e;
        init_watch(&watch, is_shared != 0);
        assert_int_equal(bide_watch_send_if_modified(&watch, &e, read_inside, &watch), 1);
    }
}

#if TESTING_HOSTED

#if BIDE_DEBUG

static bool misuse_is_shared, misuse_closes;

static bool send_inside(void *value, void *argument)
{
    if (misuse_closes)
        bide_watch_close((values *)argument);
    else
        bide_watch_send((values *)argument, (element *)value);
    return true;
}

static void send_inside_a_change(void)
{
    values watch;
    element e;
    init_watch(&watch, misuse_is_shared);
    bide_watch_send_if_modified(&watch, &e, send_inside, &watch);
}

static void a_function_that_sends_is_misuse(void **state)
{
    (void)state;
    for (int way = 0; way < 4; way++) {
        misuse_is_shared = way % 2 != 0;
        misuse_closes = way >= 2;
        assert_true(misuse_aborts_naming(
            send_inside_a_change,
            "a function that changes the value of a watch sends to it or closes it",
            "bide_watch_send_if_modified"));
    }
}
#endif

/* ---- Many threads ---- */

enum { SENDERS = 3, SUBSCRIBERS = 3 };

struct storm {
    elements broadcast;
    elements_slot memory[CAPACITY];
    values watch, counted;
    meeting meeting;
    uint32_t rounds;
    uint64_t seed;
};

struct sender {
    struct storm *storm;
    uint32_t number, sent, wrong;
    pthread_t thread;
};

static void *send_all(void *argument)
{
    struct sender *self = argument;
    struct storm *storm = self->storm;
    uint64_t random = storm->seed + 100 + self->number;
    uint32_t one = 1;
    meet(&storm->meeting);
    for (uint32_t i = 1; i <= storm->rounds; i++) {
        element e = element_of(self->number, i), changed;
        self->wrong += bide_broadcast_send(&storm->broadcast, &e) != 0;
        self->wrong += bide_watch_send(&storm->watch, &e) != 0;
        self->wrong += bide_watch_send_if_modified(&storm->counted, &changed, add, &one) != 1;
        if (testing_random(&random) % 16 == 0)
            random_moment(&random, 100);
        if (testing_random(&random) % 256 == 0)
            bide_platform.yield();
    }
    return NULL;
}

struct subscriber {
    struct storm *storm;
    elements_subscriber subscriber;
    values_receiver receiver, counted;
    uint32_t kind, wrong, had, missed, changes;
    pthread_t thread;
};

/* Elements of one sender come in order. The same element is seen by all, so missed and had are all. */
static void hear(struct subscriber *self)
{
    uint32_t last[SENDERS] = {0};
    element e;
    int status;
    while ((status = bide_broadcast_recv_blocking(&self->subscriber, &e, BIDE_FOREVER)) == 0) {
        if (e.sender >= SENDERS || !is_whole(&e) || e.number <= last[e.sender]) {
            self->wrong++;
            break;
        }
        last[e.sender] = e.number;
        self->had++;
        self->missed += (uint32_t)self->subscriber.missed;
    }
    self->wrong += status != -EPIPE;
}

static void see(struct subscriber *self)
{
    uint32_t last[SENDERS] = {0};
    element e;
    int status;
    while ((status = bide_watch_recv_blocking(&self->receiver, &e, BIDE_FOREVER)) == 0) {
        if (e.sender >= SENDERS || !is_whole(&e) || e.number <= last[e.sender]) {
            self->wrong++;
            break;
        }
        last[e.sender] = e.number;
        self->had++;
    }
    self->wrong += status != -EPIPE;
}

static void count(struct subscriber *self)
{
    uint32_t last = 5;
    element e;
    int status;
    while ((status = bide_watch_recv_blocking(&self->counted, &e, BIDE_FOREVER)) == 0) {
        self->wrong += !is_whole(&e) || e.number <= last;
        last = e.number;
        self->had++;
    }
    self->wrong += status != -EPIPE || last != 5 + SENDERS * self->storm->rounds;
}

static void *receive_all(void *argument)
{
    struct subscriber *self = argument;
    meet(&self->storm->meeting);
    if (self->kind == 0)
        hear(self);
    else if (self->kind == 1)
        see(self);
    else
        count(self);
    return NULL;
}

static void what_several_send_is_whole_and_in_one_order(void **state)
{
    static struct storm storm;
    struct sender senders[SENDERS];
    struct subscriber subscribers[SUBSCRIBERS];
    element first = element_of(0, 0);
    uint32_t wrong = 0;
    (void)state;
    storm.rounds = rounds_of(20000);
    storm.seed = testing_seed();
    bide_broadcast_init_shared(&storm.broadcast, storm.memory, CAPACITY);
    bide_watch_init_shared(&storm.watch, &first);
    init_watch(&storm.counted, true);
    meeting_init(&storm.meeting, SENDERS + SUBSCRIBERS);
    for (uint32_t i = 0; i < SUBSCRIBERS; i++) {
        struct subscriber *self = &subscribers[i];
        memset(self, 0, sizeof *self);
        self->storm = &storm;
        self->kind = i;
        bide_broadcast_subscribe(&self->subscriber, &storm.broadcast);
        bide_watch_receiver_init(&self->receiver, &storm.watch);
        bide_watch_mark_seen(&self->receiver);
        bide_watch_receiver_init(&self->counted, &storm.counted);
        bide_watch_mark_seen(&self->counted);
        start_thread(&self->thread, receive_all, self);
    }
    for (uint32_t i = 0; i < SENDERS; i++) {
        senders[i] = (struct sender){.storm = &storm, .number = i};
        start_thread(&senders[i].thread, send_all, &senders[i]);
    }
    for (uint32_t i = 0; i < SENDERS; i++) {
        join_thread(senders[i].thread);
        wrong += senders[i].wrong;
    }
    bide_broadcast_close(&storm.broadcast);
    bide_watch_close(&storm.watch);
    bide_watch_close(&storm.counted);
    for (uint32_t i = 0; i < SUBSCRIBERS; i++) {
        join_thread(subscribers[i].thread);
        wrong += subscribers[i].wrong;
        printf("# %u were had and %u missed of %u\n", subscribers[i].had, subscribers[i].missed,
               SENDERS * storm.rounds);
    }
    assert_int_equal(wrong, 0);
    assert_int_equal(subscribers[0].had + subscribers[0].missed, SENDERS * storm.rounds);
}

#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_shared_broadcast_is_a_broadcast),
        cmocka_unit_test(a_shared_watch_is_a_watch),
        cmocka_unit_test(a_waiter_that_is_woken_inline_sends),
        cmocka_unit_test(it_is_sent_only_if_it_was_modified),
        cmocka_unit_test(what_the_function_does_not_send_is_seen_by_nobody),
        cmocka_unit_test(the_function_may_read_the_watch),
#if TESTING_HOSTED
#if BIDE_DEBUG
        cmocka_unit_test(a_function_that_sends_is_misuse),
#endif
        cmocka_unit_test(what_several_send_is_whole_and_in_one_order),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

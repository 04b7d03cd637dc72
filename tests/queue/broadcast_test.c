/*
 * The broadcast: every subscriber gets every element, or the number that it has missed. The contract of all waits is
 * tested elsewhere (sync/contract_test.c).
 */
#include "misuse.h"
#include "sync/by_hand.h"
#include "sync/meeting.h"

#include "bide/broadcast.h"
#include "bide/handle.h"
#include "bide/stop.h"

#if TESTING_HOSTED
#include "bide/pollable.h"
#include "bide/run_loop.h"

#include <poll.h>
#endif

/* Not a whole number of words. */
typedef struct element {
    uint32_t number;
    unsigned char bytes[29];
} element;

enum { MAX_CAPACITY = 8 };

typedef bide_broadcast(element) elements;
typedef bide_broadcast_slot(element) elements_slot;
typedef bide_broadcast_subscriber(element) elements_subscriber;

static element element_of(uint32_t number)
{
    element e = {number, {0}};
    for (size_t i = 0; i < sizeof e.bytes; i++)
        e.bytes[i] = (unsigned char)(number + i);
    return e;
}

static bool is_whole(const element *e)
{
    element expected = element_of(e->number);
    return memcmp(e->bytes, expected.bytes, sizeof e->bytes) == 0;
}

static int send(elements *broadcast, uint32_t number)
{
    element e = element_of(number);
    return bide_broadcast_send(broadcast, &e);
}

/* Sends the elements from `first` to `last`. */
static void send_all(elements *broadcast, uint32_t first, uint32_t last)
{
    for (; first <= last; first++)
        assert_int_equal(send(broadcast, first), 0);
}

static void assert_received(elements_subscriber *subscriber, uint32_t number, size_t missed)
{
    element e;
    assert_int_equal(bide_broadcast_try_recv(subscriber, &e), 0);
    assert_int_equal(e.number, number);
    assert_true(is_whole(&e));
    assert_int_equal(subscriber->missed, missed);
}

static void assert_nothing(elements_subscriber *subscriber, int status)
{
    element e = element_of(99);
    assert_int_equal(bide_broadcast_try_recv(subscriber, &e), status);
    assert_int_equal(e.number, 99);
}

/* A task that receives, `waits` times or until a wait fails. */
struct receiving {
    bide_task task;
    by_hand *by_hand;
    elements_subscriber *subscriber;
    bide_broadcast_waiter wait;
    bide_context context;
    bide_stop_source stop;
    element got;
    int waits;
    char name;
    int status; /* of the last; 1: none has ended */
};

bide_coroutine(receiving_body)
{
    bide_begin(receiving_body, struct receiving * self);
    while (self->waits-- > 0) {
        bide_await_status(self->status,
                          bide_broadcast_recv(&self->wait, self->subscriber, &self->got));
        if (self->status != 0)
            break;
        by_hand_note(self->by_hand, self->name);
    }
    bide_end();
}

static void begin_receiving(struct receiving *self, by_hand *by_hand,
                            elements_subscriber *subscriber, int waits, char name)
{
    self->by_hand = by_hand;
    self->subscriber = subscriber;
    self->waits = waits;
    self->name = name;
    self->status = 1;
    bide_stop_source_init(&self->stop);
    self->context = by_hand->context;
    self->context.stop = &self->stop;
    bide_start(&self->task.frame, &receiving_body, &self->context);
    bide_resume(&self->task.frame);
}

static void each_subscriber_has_every_element(void **state)
{
    (void)state;
    elements_slot memory[MAX_CAPACITY];
    elements broadcast;
    elements_subscriber first, second, late, copy;
    bide_broadcast_init(&broadcast, memory, 5);
    bide_broadcast_subscribe(&first, &broadcast);
    bide_broadcast_subscribe(&second, &broadcast);
    for (uint32_t i = 1; i <= 20; i++) {
        assert_nothing(&first, -EAGAIN);
        send_all(&broadcast, i, i);
        assert_received(&first, i, 0);
        if (i % 4 == 0) {
            for (uint32_t j = i - 3; j <= i; j++)
                assert_received(&second, j, 0);
            assert_nothing(&second, -EAGAIN);
        }
    }
    /* From now on. */
    bide_broadcast_subscribe(&late, &broadcast);
    assert_nothing(&late, -EAGAIN);
    send_all(&broadcast, 21, 23);
    assert_received(&late, 21, 0);
    copy = late;
    assert_received(&copy, 22, 0);
    assert_received(&late, 22, 0);
    bide_broadcast_destroy(&broadcast);
}

static void a_slow_subscriber_is_told_how_many_were_missed(void **state)
{
    (void)state;
    for (uint32_t capacity = 1; capacity <= MAX_CAPACITY; capacity++) {
        for (uint32_t before = 0; before <= 2 * capacity; before++) {
            for (uint32_t sent = 1; sent <= 4 * capacity; sent++) {
                elements_slot memory[MAX_CAPACITY];
                elements broadcast;
                elements_subscriber subscriber;
                bide_broadcast_init(&broadcast, memory, capacity);
                send_all(&broadcast, 1, before);
                bide_broadcast_subscribe(&subscriber, &broadcast);
                send_all(&broadcast, before + 1, before + sent);
                uint32_t missed = sent > capacity ? sent - capacity : 0;
                for (uint32_t i = missed + 1; i <= sent; i++)
                    assert_received(&subscriber, before + i, i == missed + 1 ? missed : 0);
                assert_nothing(&subscriber, -EAGAIN);
                send_all(&broadcast, before + sent + 1, before + sent + 1);
                assert_received(&subscriber, before + sent + 1, 0);
            }
        }
    }
}

static void batches_are_received_in_order(void **state)
{
    (void)state;
    for (uint32_t capacity = 1; capacity <= MAX_CAPACITY; capacity++) {
        elements_slot memory[MAX_CAPACITY];
        elements broadcast;
        elements_subscriber subscriber;
        element to[MAX_CAPACITY + 1];
        uint32_t sent = 0, had = 0;
        bide_broadcast_init(&broadcast, memory, capacity);
        bide_broadcast_subscribe(&subscriber, &broadcast);
        assert_int_equal(bide_broadcast_try_recv_many(&subscriber, to, 0), 0);
        assert_int_equal(bide_broadcast_try_recv_many(&subscriber, to, 3), -EAGAIN);
        for (uint32_t round = 0; round < 40; round++) {
            size_t wanted = 1 + round % (MAX_CAPACITY + 1);
            send_all(&broadcast, sent + 1, sent + round % 7 + 1);
            sent += round % 7 + 1;
            uint32_t kept = sent - had < capacity ? sent - had : capacity;
            ptrdiff_t taken = bide_broadcast_try_recv_many(&subscriber, to, wanted);
            assert_int_equal(taken, wanted < kept ? wanted : kept);
            assert_int_equal(subscriber.missed, sent - had - kept);
            had += (uint32_t)subscriber.missed;
            for (ptrdiff_t i = 0; i < taken; i++) {
                assert_int_equal(to[i].number, ++had);
                assert_true(is_whole(&to[i]));
            }
        }
        bide_broadcast_close(&broadcast);
        while (bide_broadcast_try_recv_many(&subscriber, to, 3) > 0)
            ;
        assert_int_equal(bide_broadcast_try_recv_many(&subscriber, to, 3), -EPIPE);
        assert_int_equal(bide_broadcast_try_recv_many(&subscriber, to, 0), 0);
    }
}

static void subscribers_are_woken_in_order_and_may_be_overtaken(void **state)
{
    (void)state;
    by_hand by_hand;
    elements_slot memory[MAX_CAPACITY];
    elements broadcast;
    elements_subscriber subscribers[3];
    struct receiving receiving[3];
    by_hand_init(&by_hand);
    bide_broadcast_init(&broadcast, memory, 2);
    for (int i = 0; i < 3; i++) {
        bide_broadcast_subscribe(&subscribers[i], &broadcast);
        begin_receiving(&receiving[i], &by_hand, &subscribers[i], 1, (char)('a' + i));
    }
    send_all(&broadcast, 1, 1);
    assert_int_equal(by_hand.posted, 3);
    send_all(&broadcast, 2, 5); /* before they run */
    assert_int_equal(by_hand_run(&by_hand), 3);
    by_hand_assert_trace(&by_hand, "abc");
    for (int i = 0; i < 3; i++) {
        assert_true(receiving[i].got.number == 4 && is_whole(&receiving[i].got));
        assert_int_equal(subscribers[i].missed, 3);
        begin_receiving(&receiving[i], &by_hand, &subscribers[i], 2, (char)('a' + i));
        assert_int_equal(receiving[i].got.number, 5);
        assert_int_equal(subscribers[i].missed, 0);
    }
    by_hand_assert_trace(&by_hand, "abc");
    bide_broadcast_close(&broadcast);
    assert_int_equal(by_hand_run(&by_hand), 3);
    assert_int_equal(receiving[0].status, -EPIPE);
    bide_broadcast_destroy(&broadcast);
}

static void a_wait_that_is_cut_short_or_destroyed_takes_nothing(void **state)
{
    (void)state;
    by_hand by_hand;
    elements_slot memory[1];
    elements broadcast;
    elements_subscriber subscriber;
    struct receiving receiving;
    by_hand_init(&by_hand);
    for (int way = 0; way < 4; way++) {
        bide_broadcast_init(&broadcast, memory, 1);
        bide_broadcast_subscribe(&subscriber, &broadcast);
        begin_receiving(&receiving, &by_hand, &subscriber, 1, 'a');
        if (way == 1)
            send_all(&broadcast, 1, 1);
        if (way < 2)
            bide_destroy(&receiving.task.frame);
        else
            bide_stop_request_with(&receiving.stop, way == 2 ? -ECANCELED : -ETIMEDOUT);
        if (way != 1)
            send_all(&broadcast, 1, 1);
        assert_int_equal(by_hand_run(&by_hand), way < 2 ? 0 : 1);
        if (way >= 2)
            assert_int_equal(receiving.status, way == 2 ? -ECANCELED : -ETIMEDOUT);
        assert_received(&subscriber, 1, 0);
        bide_broadcast_destroy(&broadcast);
    }
    by_hand_assert_trace(&by_hand, "");
}

static void once_closed_what_is_kept_is_received(void **state)
{
    (void)state;
    elements_slot memory[MAX_CAPACITY];
    elements broadcast;
    elements_subscriber quick, slow, late;
    element e;
    bide_broadcast_init(&broadcast, memory, 3);
    bide_broadcast_subscribe(&quick, &broadcast);
    bide_broadcast_subscribe(&slow, &broadcast);
    for (uint32_t i = 1; i <= 5; i++) {
        send_all(&broadcast, i, i);
        assert_received(&quick, i, 0);
    }
    bide_broadcast_close(&broadcast);
    bide_broadcast_close(&broadcast);
    assert_int_equal(send(&broadcast, 6), -EPIPE);
    bide_broadcast_subscribe(&late, &broadcast);
    assert_nothing(&late, -EPIPE);
    assert_nothing(&quick, -EPIPE);
    assert_int_equal(bide_broadcast_recv_blocking(&quick, &e, BIDE_FOREVER), -EPIPE);
    assert_received(&slow, 3, 2);
    assert_int_equal(bide_broadcast_recv_blocking(&slow, &e, 0), 0);
    assert_int_equal(e.number, 4);
    assert_received(&slow, 5, 0);
    for (int i = 0; i < 2; i++) {
        assert_nothing(&slow, -EPIPE);
        assert_int_equal(bide_broadcast_recv_blocking(&slow, &e, 0), -EPIPE);
    }
    bide_broadcast_destroy(&broadcast);
}

/* The words of the next element are written, some of them, and it is not published. */
static void stop_in_the_middle_of_sending(elements *broadcast, uint32_t number, size_t size)
{
    element e = element_of(number);
    bide_broadcast_ *inner = &broadcast->broadcast;
    bide_shared_words_store_(bide_broadcast_at_(inner, inner->place, sizeof e), &e, size);
}

static void a_sender_that_stops_in_the_middle_holds_up_no_thread(void **state)
{
    (void)state;
    for (uint32_t capacity = 1; capacity <= 4; capacity++) {
        elements_slot memory[MAX_CAPACITY];
        elements broadcast;
        elements_subscriber subscriber;
        bide_broadcast_init(&broadcast, memory, capacity);
        bide_broadcast_subscribe(&subscriber, &broadcast);
        for (uint32_t i = 1; i <= 20; i++) {
            elements_subscriber before = subscriber;
            send_all(&broadcast, i, i);
            stop_in_the_middle_of_sending(&broadcast, 100 + i, i % 2 == 0 ? 16 : sizeof(element));
            /* All kept elements can be received. */
            if (i >= capacity) {
                for (uint32_t j = i - capacity + 1; j <= i; j++)
                    assert_received(&before, j, 0);
                assert_nothing(&before, -EAGAIN);
                assert_received(&subscriber, i - capacity + 1, 0);
            }
        }
    }
}

static void positions_wrap_around(void **state)
{
    (void)state;
    for (uint32_t capacity = 1; capacity <= MAX_CAPACITY; capacity++) {
        elements_slot memory[MAX_CAPACITY];
        elements broadcast;
        elements_subscriber subscriber, seldom;
        size_t begin = SIZE_MAX - 20;
        bide_broadcast_init(&broadcast, memory, capacity);
        /* As if so many had been sent, in complete rounds. */
        bide_sequence_barrier_init(&broadcast.broadcast.barrier, begin - 1);
        bide_atomic_init(&broadcast.broadcast.origin, begin - (capacity + 1));
        bide_broadcast_subscribe(&subscriber, &broadcast);
        bide_broadcast_subscribe(&seldom, &broadcast);
        for (uint32_t i = 1; i <= 60; i++) {
            elements_subscriber late;
            element e;
            bide_broadcast_subscribe(&late, &broadcast);
            assert_nothing(&subscriber, -EAGAIN);
            assert_int_equal(bide_broadcast_recv_blocking(&subscriber, &e, 0), -ETIMEDOUT);
            send_all(&broadcast, i, i);
            assert_received(&subscriber, i, 0);
            assert_received(&late, i, 0);
            assert_nothing(&late, -EAGAIN);
        }
        assert_received(&seldom, 60 - capacity + 1, 60 - capacity);
    }
}

/* The origin that is read may belong to another position, newer or older: it leads to the same place. */
static void a_subscriber_begins_right_with_any_origin(void **state)
{
    (void)state;
    for (uint32_t capacity = 1; capacity <= MAX_CAPACITY; capacity++) {
        elements_slot memory[MAX_CAPACITY];
        elements broadcast;
        size_t places = capacity + 1;
        bide_broadcast_init(&broadcast, memory, capacity);
        for (uint32_t i = 1; i <= 3 * places; i++) {
            size_t origin = bide_atomic_load(&broadcast.broadcast.origin, relaxed);
            for (size_t rounds = 0; rounds < 7; rounds++) {
                elements_subscriber subscriber;
                bide_atomic_store(&broadcast.broadcast.origin, origin + (rounds - 3) * places,
                                  relaxed);
                bide_broadcast_subscribe(&subscriber, &broadcast);
                assert_int_equal(subscriber.cursor.place, broadcast.broadcast.place);
            }
            bide_atomic_store(&broadcast.broadcast.origin, origin, relaxed);
            send_all(&broadcast, i, i);
        }
    }
}

/* A subscriber that was overtaken repeatedly skips some of the kept elements, but not all. */
static void a_subscriber_that_skips_leaves_something(void **state)
{
    (void)state;
    for (size_t capacity = 1; capacity <= 40; capacity++) {
        bide_broadcast_ broadcast = {.capacity = capacity};
        for (size_t sent = 0; sent <= 3 * capacity; sent++)
            assert_true(bide_broadcast_margin_(&broadcast, sent) < capacity);
        assert_true(bide_broadcast_margin_(&broadcast, SIZE_MAX) < capacity);
    }
}

#define ANY_SIZE(size)                                                              \
    do {                                                                            \
        typedef struct of_size {                                                    \
            unsigned char bytes[size];                                              \
        } of_size;                                                                  \
        of_size in, out[3];                                                         \
        bide_broadcast_slot(of_size) memory[3];                                     \
        bide_broadcast(of_size) broadcast;                                          \
        bide_broadcast_subscriber(of_size) subscriber;                              \
        bide_broadcast_init(&broadcast, memory, 3);                                 \
        bide_broadcast_subscribe(&subscriber, &broadcast);                          \
        for (int round = 0; round < 9; round++) {                                   \
            for (int j = 0; j < 2; j++) {                                           \
                memset(&in, 'A' + round + j, sizeof in);                            \
                assert_int_equal(bide_broadcast_send(&broadcast, &in), 0);          \
            }                                                                       \
            memset(out, 'z', sizeof out);                                           \
            assert_int_equal(bide_broadcast_try_recv_many(&subscriber, out, 3), 2); \
            for (size_t i = 0; i < sizeof in; i++) {                                \
                assert_int_equal(out[0].bytes[i], 'A' + round);                     \
                assert_int_equal(out[1].bytes[i], 'A' + round + 1);                 \
                assert_int_equal(out[2].bytes[i], 'z');                             \
            }                                                                       \
        }                                                                           \
    } while (0)

static void it_holds_elements_of_any_size(void **state)
{
    (void)state;
    ANY_SIZE(1);
    ANY_SIZE(3);
    ANY_SIZE(8);
    ANY_SIZE(9);
    ANY_SIZE(1000);
}

#if TESTING_HOSTED

enum { SHORT = 1000 * 1000 };

#if BIDE_DEBUG
static void destroy_it_while_it_is_awaited(void)
{
    by_hand by_hand;
    elements_slot memory[1];
    elements precious;
    elements_subscriber subscriber;
    struct receiving receiving;
    by_hand_init(&by_hand);
    bide_broadcast_init(&precious, memory, 1);
    bide_broadcast_subscribe(&subscriber, &precious);
    begin_receiving(&receiving, &by_hand, &subscriber, 1, 'a');
    bide_broadcast_destroy(&precious);
}

static void to_destroy_it_while_it_is_awaited_is_misuse(void **state)
{
    (void)state;
    assert_true(misuse_aborts_naming(destroy_it_while_it_is_awaited,
                                     "a broadcast is destroyed while it is waited for: &precious",
                                     "destroy_it_while_it_is_awaited"));
}

static void receive_twice_at_once(void)
{
    by_hand by_hand;
    elements_slot memory[1];
    elements broadcast;
    elements_subscriber subscriber;
    struct receiving receiving[2];
    by_hand_init(&by_hand);
    bide_broadcast_init(&broadcast, memory, 1);
    bide_broadcast_subscribe(&subscriber, &broadcast);
    begin_receiving(&receiving[0], &by_hand, &subscriber, 1, 'a');
    begin_receiving(&receiving[1], &by_hand, &subscriber, 1, 'b');
}

static void one_subscriber_in_two_waits_is_misuse(void **state)
{
    (void)state;
    assert_true(misuse_aborts_naming(receive_twice_at_once,
                                     "a subscriber of a broadcast is in two waits at once",
                                     "receiving_body"));
}
#endif

/* Not a misuse: each way in which a wait ends leaves the subscriber to the next, and a copy waits by itself. */
static void a_subscriber_waits_again_however_a_wait_has_ended(void **state)
{
    (void)state;
    by_hand by_hand;
    elements_slot memory[1];
    elements broadcast;
    elements_subscriber subscriber, copy;
    struct receiving receiving, beside;
    by_hand_init(&by_hand);
    bide_broadcast_init(&broadcast, memory, 1);
    bide_broadcast_subscribe(&subscriber, &broadcast);
    for (int way = 0; way < 5; way++) {
        begin_receiving(&receiving, &by_hand, &subscriber, 1, 'a');
        copy = subscriber;
        begin_receiving(&beside, &by_hand, &copy, 1, 'b');
        if (way == 0)
            bide_destroy(&receiving.task.frame);
        else if (way == 1)
            bide_stop_request(&receiving.stop);
        else if (way == 4)
            bide_broadcast_close(&broadcast);
        else
            send_all(&broadcast, 1, 1);
        if (way == 3)
            bide_destroy(&receiving.task.frame);
        bide_destroy(&beside.task.frame);
        (void)by_hand_run(&by_hand);
        assert_int_equal(receiving.status, way == 1   ? -ECANCELED
                                           : way == 2 ? 0
                                           : way == 4 ? -EPIPE
                                                      : 1);
        if (way == 3)
            assert_received(&subscriber, 1, 0);
    }
    begin_receiving(&receiving, &by_hand, &subscriber, 1, 'a');
    assert_int_equal(receiving.status, -EPIPE);
    bide_broadcast_destroy(&broadcast);
}

static void a_thread_receives_until_a_deadline(void **state)
{
    (void)state;
    elements_slot memory[1];
    elements broadcast;
    elements_subscriber subscriber;
    element e;
    bide_broadcast_init(&broadcast, memory, 1);
    bide_broadcast_subscribe(&subscriber, &broadcast);
    uint64_t soon = bide_platform.now() + SHORT;
    assert_int_equal(bide_broadcast_recv_blocking(&subscriber, &e, soon), -ETIMEDOUT);
    assert_true(bide_platform.now() >= soon);
    send_all(&broadcast, 1, 3);
    assert_int_equal(bide_broadcast_recv_blocking(&subscriber, &e, soon), 0);
    assert_int_equal(e.number, 3);
    assert_int_equal(subscriber.missed, 2);
}

static void a_descriptor_is_readable_when_there_is_one(void **state)
{
    (void)state;
    bide_pollable pollable;
    bide_broadcast_waiter wait;
    elements_slot memory[2];
    elements broadcast;
    elements_subscriber subscriber;
    element e;
    int status = 1;
    bide_broadcast_init(&broadcast, memory, 2);
    bide_broadcast_subscribe(&subscriber, &broadcast);
    assert_int_equal(bide_pollable_init(&pollable), 0);
    bide_pollable_start(&pollable, NULL, bide_broadcast_recv(&wait, &subscriber, &e));
    struct pollfd polled = {.fd = bide_pollable_fd(&pollable), .events = POLLIN};
    assert_int_equal(poll(&polled, 1, 0), 0);
    send_all(&broadcast, 1, 1);
    assert_int_equal(poll(&polled, 1, 0), 1);
    assert_int_equal(bide_pollable_finish(&pollable, &status), 0);
    assert_int_equal(status, 0);
    assert_true(e.number == 1 && is_whole(&e));
    bide_pollable_destroy(&pollable);
}

/*
 * One thread sends, with pauses. Of five receivers two wait as threads, often for a moment only, one takes batches, one
 * is a coroutine on a run loop, and one repeatedly subscribes and leaves. Their elements are whole and in order, and
 * the received and missed elements of each add up to all sent elements.
 */
enum { SUBSCRIBERS = 5 };

struct storm {
    elements broadcast;
    elements_slot memory[MAX_CAPACITY];
    meeting meeting;
    uint32_t rounds;
    uint64_t seed;
    bide_atomic(uint32_t) sent;
};

struct listener {
    struct storm *storm;
    uint32_t kind;
    pthread_t thread;
    elements_subscriber subscriber;
    uint32_t last;
    uint32_t had, missed, in_vain, wrong;
};

static void had(struct listener *self, const element *e, size_t missed)
{
    self->wrong += !is_whole(e) || e->number != self->last + missed + 1;
    self->last = e->number;
    self->missed += (uint32_t)missed;
    self->had++;
}

static void listen_as_a_thread(struct listener *self, uint64_t *random)
{
    int status;
    do {
        element e;
        uint64_t number = testing_random(random);
        if (number % 4 == 0)
            status = bide_broadcast_try_recv(&self->subscriber, &e);
        else
            status = bide_broadcast_recv_blocking(
                &self->subscriber, &e,
                number % 4 == 1 ? BIDE_FOREVER : bide_platform.now() + number / 4 % 3000);
        if (status == 0)
            had(self, &e, self->subscriber.missed);
        else
            self->in_vain++;
        self->wrong += status != 0 && status != -EAGAIN && status != -ETIMEDOUT && status != -EPIPE;
    } while (status != -EPIPE);
}

static void listen_in_batches(struct listener *self, uint64_t *random)
{
    ptrdiff_t taken;
    do {
        element to[MAX_CAPACITY];
        size_t wanted = 1 + testing_random(random) % MAX_CAPACITY;
        taken = bide_broadcast_try_recv_many(&self->subscriber, to, wanted);
        for (ptrdiff_t i = 0; i < taken; i++)
            had(self, &to[i], i == 0 ? self->subscriber.missed : 0);
        if (taken == -EAGAIN) {
            self->in_vain++;
            bide_platform.yield();
        }
        self->wrong += taken == 0 || (taken < 0 && taken != -EAGAIN && taken != -EPIPE);
    } while (taken != -EPIPE);
}

struct looping {
    bide_task task;
    struct listener *listener;
    bide_broadcast_waiter wait;
    element got;
    int status;
};

bide_coroutine(looping_body)
{
    bide_begin(looping_body, struct looping * self);
    for (;;) {
        bide_await_status(self->status, bide_broadcast_recv(
                                            &self->wait, &self->listener->subscriber, &self->got));
        if (self->status != 0)
            break;
        had(self->listener, &self->got, self->listener->subscriber.missed);
    }
    bide_return(self->status);
    bide_end();
}

static void listen_in_a_loop(struct listener *self)
{
    bide_run_loop loop;
    struct looping looping = {.listener = self};
    bide_run_loop_init(&loop);
    self->wrong +=
        bide_run_loop_wait(&loop, bide_task_init(&looping.task, &looping_body)) != -EPIPE;
}

/* It subscribes anew repeatedly. Each time it receives only elements that were sent later than its last one. */
static void listen_now_and_then(struct listener *self, uint64_t *random)
{
    int status;
    do {
        element e;
        uint32_t sent = bide_atomic_load(&self->storm->sent, acquire);
        bide_broadcast_subscribe(&self->subscriber, &self->storm->broadcast);
        status = bide_broadcast_recv_blocking(&self->subscriber, &e, BIDE_FOREVER);
        if (status == 0) {
            self->wrong += e.number <= sent + self->subscriber.missed || !is_whole(&e);
            self->last = e.number;
            self->had++;
        }
        for (uint64_t more = testing_random(random) % 8; status == 0 && more != 0; more--) {
            status = bide_broadcast_recv_blocking(&self->subscriber, &e, BIDE_FOREVER);
            if (status == 0)
                had(self, &e, self->subscriber.missed);
        }
    } while (status == 0);
    self->wrong += status != -EPIPE;
}

static void *listen(void *argument)
{
    struct listener *self = argument;
    uint64_t random = self->storm->seed + 1 + self->kind;
    meet(&self->storm->meeting);
    switch (self->kind) {
    case 0:
        listen_now_and_then(self, &random);
        break;
    case 1:
        listen_in_batches(self, &random);
        break;
    case 2:
        listen_in_a_loop(self);
        break;
    default:
        listen_as_a_thread(self, &random);
    }
    return NULL;
}

static void run_storm(size_t capacity)
{
    struct storm storm = {.rounds = rounds_of(30000), .seed = testing_seed()};
    struct listener listeners[SUBSCRIBERS] = {{0}};
    uint64_t random = storm.seed;
    uint32_t wrong = 0;
    bide_broadcast_init(&storm.broadcast, storm.memory, capacity);
    meeting_init(&storm.meeting, SUBSCRIBERS + 1);
    bide_atomic_init(&storm.sent, 0);
    for (uint32_t i = 0; i < SUBSCRIBERS; i++) {
        listeners[i].storm = &storm;
        listeners[i].kind = i;
        bide_broadcast_subscribe(&listeners[i].subscriber, &storm.broadcast);
        start_thread(&listeners[i].thread, listen, &listeners[i]);
    }
    meet(&storm.meeting);
    for (uint32_t i = 1; i <= storm.rounds; i++) {
        wrong += send(&storm.broadcast, i) != 0;
        bide_atomic_store(&storm.sent, i, release);
        if (testing_random(&random) % 4 == 0)
            random_moment(&random, 100);
        if (testing_random(&random) % 64 == 0)
            bide_platform.yield();
    }
    bide_broadcast_close(&storm.broadcast);
    for (uint32_t i = 0; i < SUBSCRIBERS; i++) {
        const struct listener *listener = &listeners[i];
        join_thread(listener->thread);
        wrong += listener->wrong;
        if (i != 0)
            wrong +=
                listener->last != storm.rounds || listener->had + listener->missed != storm.rounds;
        printf("# of %u elements %u were had and %u missed, and %u times there was none\n",
               storm.rounds, listener->had, listener->missed, listener->in_vain);
    }
    assert_int_equal(wrong, 0);
}

static void what_was_had_and_what_was_missed_are_all_that_was_sent(void **state)
{
    (void)state;
    run_storm(1);
    run_storm(2);
    run_storm(MAX_CAPACITY - 1);
}

#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_subscriber_has_every_element),
        cmocka_unit_test(a_slow_subscriber_is_told_how_many_were_missed),
        cmocka_unit_test(batches_are_received_in_order),
        cmocka_unit_test(subscribers_are_woken_in_order_and_may_be_overtaken),
        cmocka_unit_test(a_wait_that_is_cut_short_or_destroyed_takes_nothing),
        cmocka_unit_test(once_closed_what_is_kept_is_received),
        cmocka_unit_test(a_sender_that_stops_in_the_middle_holds_up_no_thread),
        cmocka_unit_test(positions_wrap_around),
        cmocka_unit_test(a_subscriber_begins_right_with_any_origin),
        cmocka_unit_test(a_subscriber_that_skips_leaves_something),
        cmocka_unit_test(it_holds_elements_of_any_size),
#if TESTING_HOSTED
        cmocka_unit_test(a_subscriber_waits_again_however_a_wait_has_ended),
#if BIDE_DEBUG
        cmocka_unit_test(to_destroy_it_while_it_is_awaited_is_misuse),
        cmocka_unit_test(one_subscriber_in_two_waits_is_misuse),
#endif
        cmocka_unit_test(a_thread_receives_until_a_deadline),
        cmocka_unit_test(a_descriptor_is_readable_when_there_is_one),
        cmocka_unit_test(what_was_had_and_what_was_missed_are_all_that_was_sent),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

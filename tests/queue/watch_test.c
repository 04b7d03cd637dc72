/*
 * The watch: the latest value, whole, for any number of receivers. The contract of all waits is tested elsewhere
 * (sync/contract_test.c).
 */
#include "misuse.h"
#include "sync/by_hand.h"
#include "sync/meeting.h"

#include "bide/handle.h"
#include "bide/stop.h"
#include "bide/watch.h"

#if TESTING_HOSTED
#include "bide/pollable.h"
#include "bide/run_loop.h"

#include <poll.h>
#endif

/* Not a whole number of words. */
typedef struct value {
    uint32_t number;
    unsigned char bytes[57];
} value;

typedef bide_watch(value) values;
typedef bide_watch_receiver(value) values_receiver;

static value value_of(uint32_t number)
{
    value v = {number, {0}};
    for (size_t i = 0; i < sizeof v.bytes; i++)
        v.bytes[i] = (unsigned char)(number + i);
    return v;
}

static bool is_whole(const value *v)
{
    value expected = value_of(v->number);
    return memcmp(v->bytes, expected.bytes, sizeof v->bytes) == 0;
}

static void init(values *watch, uint32_t number)
{
    value first = value_of(number);
    bide_watch_init(watch, &first);
}

static int send(values *watch, uint32_t number)
{
    value v = value_of(number);
    return bide_watch_send(watch, &v);
}

static void assert_read(values *watch, uint32_t number)
{
    value v = value_of(98);
    assert_int_equal(bide_watch_read(watch, &v), 0);
    assert_int_equal(v.number, number);
    assert_true(is_whole(&v));
}

static void assert_changed(values_receiver *receiver, uint32_t number)
{
    value v = value_of(98);
    assert_int_equal(bide_watch_try_recv(receiver, &v), 0);
    assert_int_equal(v.number, number);
    assert_true(is_whole(&v));
}

static void assert_nothing(values_receiver *receiver, int status)
{
    value v = value_of(99);
    assert_int_equal(bide_watch_try_recv(receiver, &v), status);
    assert_int_equal(v.number, 99);
}

/* A task that waits for changes, `waits` times or until a wait fails. */
struct waiting {
    bide_task task;
    by_hand *by_hand;
    values_receiver *receiver;
    bide_watch_waiter wait;
    bide_context context;
    bide_stop_source stop;
    value got;
    int waits;
    char name;
    int status; /* of the last; 1: none has ended */
};

bide_coroutine(waiting_body)
{
    bide_begin(waiting_body, struct waiting * self);
    while (self->waits-- > 0) {
        bide_await_status(self->status, bide_watch_recv(&self->wait, self->receiver, &self->got));
        if (self->status != 0)
            break;
        by_hand_note(self->by_hand, self->name);
    }
    bide_end();
}

static void begin_waiting(struct waiting *self, by_hand *by_hand, values_receiver *receiver,
                          int waits, char name)
{
    self->by_hand = by_hand;
    self->receiver = receiver;
    self->waits = waits;
    self->name = name;
    self->status = 1;
    bide_stop_source_init(&self->stop);
    self->context = by_hand->context;
    self->context.stop = &self->stop;
    bide_start(&self->task.frame, &waiting_body, &self->context);
    bide_resume(&self->task.frame);
}

static void there_is_a_value_from_the_beginning(void **state)
{
    (void)state;
    values watch;
    values_receiver receiver, later;
    init(&watch, 1);
    assert_read(&watch, 1);
    assert_read(&watch, 1);
    bide_watch_receiver_init(&receiver, &watch);
    assert_changed(&receiver, 1);
    assert_nothing(&receiver, -EAGAIN);
    bide_watch_receiver_init(&later, &watch);
    bide_watch_mark_seen(&later);
    assert_nothing(&later, -EAGAIN);
    bide_watch_destroy(&watch);
}

static void each_receiver_has_the_latest_that_it_has_not_seen(void **state)
{
    (void)state;
    values watch;
    values_receiver often, seldom;
    init(&watch, 0);
    bide_watch_receiver_init(&often, &watch);
    bide_watch_receiver_init(&seldom, &watch);
    for (uint32_t i = 1; i <= 20; i++) {
        assert_int_equal(send(&watch, i), 0);
        assert_read(&watch, i);
        assert_changed(&often, i);
        assert_nothing(&often, -EAGAIN);
        if (i % 7 == 0) {
            assert_changed(&seldom, i);
            assert_nothing(&seldom, -EAGAIN);
        }
    }
    assert_changed(&seldom, 20);
}

static void receivers_are_woken_in_order_with_the_latest(void **state)
{
    (void)state;
    by_hand by_hand;
    values watch;
    values_receiver receivers[3];
    struct waiting waiting[3];
    by_hand_init(&by_hand);
    init(&watch, 0);
    for (int i = 0; i < 3; i++) {
        bide_watch_receiver_init(&receivers[i], &watch);
        begin_waiting(&waiting[i], &by_hand, &receivers[i], 2, (char)('a' + i));
    }
    by_hand_assert_trace(&by_hand, "abc"); /* the first value, at once */
    assert_int_equal(send(&watch, 1), 0);
    assert_int_equal(by_hand.posted, 3);
    assert_int_equal(send(&watch, 2), 0); /* before they run */
    assert_int_equal(by_hand.posted, 3);
    assert_int_equal(by_hand_run(&by_hand), 3);
    by_hand_assert_trace(&by_hand, "abc");
    for (int i = 0; i < 3; i++) {
        assert_true(waiting[i].got.number == 2 && is_whole(&waiting[i].got));
        assert_nothing(&receivers[i], -EAGAIN);
    }
    bide_watch_destroy(&watch);
}

static void a_wait_that_is_cut_short_or_destroyed_has_seen_nothing(void **state)
{
    (void)state;
    by_hand by_hand;
    values watch;
    values_receiver receiver;
    struct waiting waiting;
    by_hand_init(&by_hand);
    for (int way = 0; way < 4; way++) {
        init(&watch, 0);
        bide_watch_receiver_init(&receiver, &watch);
        bide_watch_mark_seen(&receiver);
        begin_waiting(&waiting, &by_hand, &receiver, 1, 'a');
        if (way == 1)
            assert_int_equal(send(&watch, 1), 0);
        if (way < 2)
            bide_destroy(&waiting.task.frame);
        else
            bide_stop_request_with(&waiting.stop, way == 2 ? -ECANCELED : -ETIMEDOUT);
        if (way != 1)
            assert_int_equal(send(&watch, 1), 0);
        assert_int_equal(by_hand_run(&by_hand), way < 2 ? 0 : 1);
        if (way >= 2)
            assert_int_equal(waiting.status, way == 2 ? -ECANCELED : -ETIMEDOUT);
        assert_changed(&receiver, 1);
        bide_watch_destroy(&watch);
    }
    by_hand_assert_trace(&by_hand, "");
}

static void once_closed_the_last_is_had_by_receivers_that_have_not_seen_it(void **state)
{
    (void)state;
    by_hand by_hand;
    values watch;
    values_receiver receivers[3];
    struct waiting waiting;
    value v;
    by_hand_init(&by_hand);
    init(&watch, 0);
    for (int i = 0; i < 3; i++)
        bide_watch_receiver_init(&receivers[i], &watch);
    assert_int_equal(send(&watch, 1), 0);
    assert_changed(&receivers[0], 1);
    begin_waiting(&waiting, &by_hand, &receivers[0], 1, 'a');
    bide_watch_close(&watch);
    bide_watch_close(&watch);
    assert_int_equal(send(&watch, 2), -EPIPE);
    assert_int_equal(by_hand_run(&by_hand), 1);
    assert_int_equal(waiting.status, -EPIPE);
    assert_nothing(&receivers[0], -EPIPE);
    assert_changed(&receivers[1], 1);
    assert_nothing(&receivers[1], -EPIPE);
    assert_int_equal(bide_watch_recv_blocking(&receivers[2], &v, 0), 0);
    assert_int_equal(v.number, 1);
    assert_int_equal(bide_watch_recv_blocking(&receivers[2], &v, 0), -EPIPE);
    assert_int_equal(bide_watch_recv_blocking(&receivers[2], &v, BIDE_FOREVER), -EPIPE);
    assert_read(&watch, 1);
    bide_watch_receiver_init(&receivers[2], &watch);
    assert_changed(&receivers[2], 1);
    assert_nothing(&receivers[2], -EPIPE);
    bide_watch_destroy(&watch);
}

/* The words of the next version are written, some of them, and it is not published. */
static void stop_in_the_middle_of_sending(values *watch, uint32_t number, size_t size)
{
    value v = value_of(number);
    size_t next = bide_atomic_load(&watch->watch.barrier.published, relaxed) + 1;
    bide_shared_words_store_(bide_watch_buffer_(&watch->watch, next, sizeof v), &v, size);
}

static void a_sender_that_stops_in_the_middle_holds_up_no_thread(void **state)
{
    (void)state;
    values watch;
    values_receiver receiver;
    init(&watch, 0);
    bide_watch_receiver_init(&receiver, &watch);
    for (uint32_t i = 0; i < 10; i++) {
        stop_in_the_middle_of_sending(&watch, 100 + i, i % 2 == 0 ? 32 : sizeof(value));
        assert_read(&watch, i);
        assert_changed(&receiver, i);
        assert_nothing(&receiver, -EAGAIN);
        assert_int_equal(send(&watch, i + 1), 0);
    }
}

static void versions_wrap_around(void **state)
{
    (void)state;
    values watch;
    values_receiver receiver, seldom;
    init(&watch, 0);
    bide_sequence_barrier_init(&watch.watch.barrier, SIZE_MAX - 10);
    assert_int_equal(send(&watch, 1), 0);
    bide_watch_receiver_init(&receiver, &watch);
    bide_watch_receiver_init(&seldom, &watch);
    for (uint32_t i = 1; i <= 20; i++) {
        value v;
        values_receiver late;
        assert_changed(&receiver, i);
        assert_nothing(&receiver, -EAGAIN);
        assert_int_equal(bide_watch_recv_blocking(&receiver, &v, 0), -ETIMEDOUT);
        bide_watch_receiver_init(&late, &watch);
        assert_changed(&late, i);
        assert_nothing(&late, -EAGAIN);
        assert_int_equal(send(&watch, i + 1), 0);
    }
    assert_changed(&seldom, 21);
    assert_nothing(&seldom, -EAGAIN);
}

#define ANY_SIZE(size)                                                    \
    do {                                                                  \
        typedef struct of_size {                                          \
            unsigned char bytes[size];                                    \
        } of_size;                                                        \
        struct {                                                          \
            char odd;                                                     \
            of_size in, out;                                              \
            char after;                                                   \
        } at = {'o', {{0}}, {{0}}, 'a'};                                  \
        bide_watch(of_size) watch;                                        \
        bide_watch_receiver(of_size) receiver;                            \
        bide_watch_init(&watch, &at.in);                                  \
        bide_watch_receiver_init(&receiver, &watch);                      \
        for (int round = 0; round < 9; round++) {                         \
            memset(&at.in, 'A' + round, sizeof at.in);                    \
            assert_int_equal(bide_watch_send(&watch, &at.in), 0);         \
            memset(&at.in, 'z', sizeof at.in);                            \
            assert_int_equal(bide_watch_try_recv(&receiver, &at.out), 0); \
            for (size_t i = 0; i < sizeof at.out; i++)                    \
                assert_int_equal(at.out.bytes[i], 'A' + round);           \
        }                                                                 \
        assert_true(at.odd == 'o' && at.after == 'a');                    \
    } while (0)

static void it_holds_values_of_any_size(void **state)
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
    values precious;
    values_receiver receiver;
    struct waiting waiting;
    by_hand_init(&by_hand);
    init(&precious, 0);
    bide_watch_receiver_init(&receiver, &precious);
    begin_waiting(&waiting, &by_hand, &receiver, 2, 'a');
    bide_watch_destroy(&precious);
}

static void to_destroy_it_while_it_is_awaited_is_misuse(void **state)
{
    (void)state;
    assert_true(misuse_aborts_naming(destroy_it_while_it_is_awaited,
                                     "a watch is destroyed while it is waited for: &precious",
                                     "destroy_it_while_it_is_awaited"));
}

static void receive_twice_at_once(void)
{
    by_hand by_hand;
    values watch;
    values_receiver receiver;
    struct waiting waiting[2];
    by_hand_init(&by_hand);
    init(&watch, 1);
    bide_watch_receiver_init(&receiver, &watch);
    bide_watch_mark_seen(&receiver);
    begin_waiting(&waiting[0], &by_hand, &receiver, 1, 'a');
    begin_waiting(&waiting[1], &by_hand, &receiver, 1, 'b');
}

static void one_receiver_in_two_waits_is_misuse(void **state)
{
    (void)state;
    assert_true(misuse_aborts_naming(
        receive_twice_at_once, "a receiver of a watch is in two waits at once", "waiting_body"));
}
#endif

/* Not a misuse: each way in which a wait ends leaves the receiver to the next, and a copy waits by itself. */
static void a_receiver_waits_again_however_a_wait_has_ended(void **state)
{
    (void)state;
    by_hand by_hand;
    values watch;
    values_receiver receiver, copy;
    struct waiting waiting, beside;
    by_hand_init(&by_hand);
    init(&watch, 1);
    bide_watch_receiver_init(&receiver, &watch);
    for (int way = 0; way < 5; way++) {
        bide_watch_mark_seen(&receiver);
        begin_waiting(&waiting, &by_hand, &receiver, 1, 'a');
        copy = receiver;
        begin_waiting(&beside, &by_hand, &copy, 1, 'b');
        if (way == 0)
            bide_destroy(&waiting.task.frame);
        else if (way == 1)
            bide_stop_request(&waiting.stop);
        else if (way == 4)
            bide_watch_close(&watch);
        else
            assert_int_equal(send(&watch, 2), 0);
        if (way == 3)
            bide_destroy(&waiting.task.frame);
        bide_destroy(&beside.task.frame);
        (void)by_hand_run(&by_hand);
        assert_int_equal(waiting.status, way == 1   ? -ECANCELED
                                         : way == 2 ? 0
                                         : way == 4 ? -EPIPE
                                                    : 1);
        if (way == 3)
            assert_changed(&receiver, 2);
    }
    begin_waiting(&waiting, &by_hand, &receiver, 1, 'a');
    assert_int_equal(waiting.status, -EPIPE);
    bide_watch_destroy(&watch);
}

static void a_thread_waits_until_a_deadline(void **state)
{
    (void)state;
    values watch;
    values_receiver receiver;
    value v;
    init(&watch, 0);
    bide_watch_receiver_init(&receiver, &watch);
    assert_int_equal(bide_watch_recv_blocking(&receiver, &v, 0), 0);
    uint64_t soon = bide_platform.now() + SHORT;
    assert_int_equal(bide_watch_recv_blocking(&receiver, &v, soon), -ETIMEDOUT);
    assert_true(bide_platform.now() >= soon);
    assert_int_equal(send(&watch, 1), 0);
    assert_int_equal(bide_watch_recv_blocking(&receiver, &v, soon), 0);
    assert_int_equal(v.number, 1);
}

static void a_descriptor_is_readable_when_there_is_another(void **state)
{
    (void)state;
    bide_pollable pollable;
    bide_watch_waiter wait;
    values watch;
    values_receiver receiver;
    value v;
    int status = 1;
    init(&watch, 0);
    bide_watch_receiver_init(&receiver, &watch);
    bide_watch_mark_seen(&receiver);
    assert_int_equal(bide_pollable_init(&pollable), 0);
    bide_pollable_start(&pollable, NULL, bide_watch_recv(&wait, &receiver, &v));
    struct pollfd polled = {.fd = bide_pollable_fd(&pollable), .events = POLLIN};
    assert_int_equal(poll(&polled, 1, 0), 0);
    assert_int_equal(send(&watch, 5), 0);
    assert_int_equal(poll(&polled, 1, 0), 1);
    assert_int_equal(bide_pollable_finish(&pollable, &status), 0);
    assert_int_equal(status, 0);
    assert_true(v.number == 5 && is_whole(&v));
    bide_pollable_destroy(&pollable);
}

/*
 * One thread sends at full speed, with pauses. Four read: by polling, as threads that wait, often for a moment only,
 * and as coroutines on a run loop. Their values are always whole and never older than before; each receiver gets the
 * last value, once, before -EPIPE.
 */
enum { READERS = 4 };

struct storm {
    values watch;
    meeting meeting;
    uint32_t rounds;
    uint64_t seed;
    bide_atomic(uint32_t) done;
};

struct reader {
    struct storm *storm;
    uint32_t kind;
    pthread_t thread;
    values_receiver receiver;
    uint32_t last, had, late, wrong;
};

static void had(struct reader *self, const value *v, bool is_new)
{
    self->wrong += !is_whole(v) || v->number < self->last || (is_new && v->number == self->last);
    self->last = v->number;
    self->had++;
}

static void read_until_done(struct reader *self)
{
    while (bide_atomic_load(&self->storm->done, acquire) == 0) {
        value v;
        bide_watch_read(&self->storm->watch, &v);
        had(self, &v, false);
    }
}

static void receive_until_closed(struct reader *self, uint64_t *random)
{
    int status;
    do {
        value v;
        uint64_t number = testing_random(random);
        if (number % 4 == 0)
            status = bide_watch_try_recv(&self->receiver, &v);
        else
            status = bide_watch_recv_blocking(
                &self->receiver, &v,
                number % 4 == 1 ? BIDE_FOREVER : bide_platform.now() + number / 4 % 3000);
        if (status == 0)
            had(self, &v, true);
        else
            self->late++;
        self->wrong += status != 0 && status != -EAGAIN && status != -ETIMEDOUT && status != -EPIPE;
    } while (status != -EPIPE);
}

struct looping {
    bide_task task;
    struct reader *reader;
    bide_watch_waiter wait;
    value got;
    int status;
};

bide_coroutine(looping_body)
{
    bide_begin(looping_body, struct looping * self);
    for (;;) {
        bide_await_status(self->status,
                          bide_watch_recv(&self->wait, &self->reader->receiver, &self->got));
        if (self->status != 0)
            break;
        had(self->reader, &self->got, true);
    }
    bide_return(self->status);
    bide_end();
}

static void *read_on(void *argument)
{
    struct reader *self = argument;
    uint64_t random = self->storm->seed + 1 + self->kind;
    meet(&self->storm->meeting);
    if (self->kind == 0) {
        read_until_done(self);
    } else if (self->kind == 1) {
        bide_run_loop loop;
        struct looping looping = {.reader = self};
        bide_run_loop_init(&loop);
        self->wrong +=
            bide_run_loop_wait(&loop, bide_task_init(&looping.task, &looping_body)) != -EPIPE;
    } else {
        receive_until_closed(self, &random);
    }
    return NULL;
}

static void values_are_whole_and_versions_go_up(void **state)
{
    (void)state;
    struct storm storm = {.rounds = rounds_of(100000), .seed = testing_seed()};
    struct reader readers[READERS] = {{0}};
    uint64_t random = storm.seed;
    uint32_t wrong = 0;
    init(&storm.watch, 0);
    meeting_init(&storm.meeting, READERS + 1);
    bide_atomic_init(&storm.done, 0);
    for (uint32_t i = 0; i < READERS; i++) {
        readers[i].storm = &storm;
        readers[i].kind = i;
        bide_watch_receiver_init(&readers[i].receiver, &storm.watch);
        bide_watch_mark_seen(&readers[i].receiver);
        start_thread(&readers[i].thread, read_on, &readers[i]);
    }
    meet(&storm.meeting);
    for (uint32_t i = 1; i <= storm.rounds; i++) {
        wrong += send(&storm.watch, i) != 0;
        if (testing_random(&random) % 16 == 0)
            random_moment(&random, 100);
        if (testing_random(&random) % 1024 == 0)
            bide_platform.yield();
    }
    bide_watch_close(&storm.watch);
    bide_atomic_store(&storm.done, 1, release);
    for (uint32_t i = 0; i < READERS; i++) {
        join_thread(readers[i].thread);
        wrong += readers[i].wrong + (i != 0 && readers[i].last != storm.rounds);
        printf("# %u of %u values were had, and %u times none\n", readers[i].had, storm.rounds,
               readers[i].late);
    }
    assert_int_equal(wrong, 0);
    assert_read(&storm.watch, storm.rounds);
}

#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(there_is_a_value_from_the_beginning),
        cmocka_unit_test(each_receiver_has_the_latest_that_it_has_not_seen),
        cmocka_unit_test(receivers_are_woken_in_order_with_the_latest),
        cmocka_unit_test(a_wait_that_is_cut_short_or_destroyed_has_seen_nothing),
        cmocka_unit_test(once_closed_the_last_is_had_by_receivers_that_have_not_seen_it),
        cmocka_unit_test(a_sender_that_stops_in_the_middle_holds_up_no_thread),
        cmocka_unit_test(versions_wrap_around),
        cmocka_unit_test(it_holds_values_of_any_size),
#if TESTING_HOSTED
        cmocka_unit_test(a_receiver_waits_again_however_a_wait_has_ended),
#if BIDE_DEBUG
        cmocka_unit_test(to_destroy_it_while_it_is_awaited_is_misuse),
        cmocka_unit_test(one_receiver_in_two_waits_is_misuse),
#endif
        cmocka_unit_test(a_thread_waits_until_a_deadline),
        cmocka_unit_test(a_descriptor_is_readable_when_there_is_another),
        cmocka_unit_test(values_are_whole_and_versions_go_up),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * The contract of message logs, for each engine: what is published is read in order; the window; groups, redelivery and
 * replay; each operation and each way to end it; URLs and positions. In virtual time.
 */
#define _GNU_SOURCE
#include "log_directory.h"
#include "log_object.h"
#include "misuse.h"

#include <bide/bide.h>
#include <bide/message_log.h>

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#ifndef LOG_TEST_REDIS
#define LOG_TEST_REDIS 0
#endif
#ifndef LOG_TEST_STDIO
#define LOG_TEST_STDIO 0
#endif
#define LOG_TEST_REAL (LOG_TEST_REDIS || LOG_TEST_STDIO) /* in real time */

#if LOG_TEST_REDIS /* the same contract over a server, in real time */
#include "log_real_loop.h"
static struct redis_server server;
#elif LOG_TEST_STDIO /* over a pipe from standard output to standard input */
#include "log_standard.h"
#include "log_standard_loop.h"
#endif

#if LOG_TEST_REAL
#define MILLISECOND  UINT64_C(10000)
#define SOON         (6000000 * MILLISECOND)
#define NOTHING      (30000 * MILLISECOND) /* how long a read is seen to have no message */
#define LATER        (200000 * MILLISECOND)
#define REJECTED_FOR (400000 * MILLISECOND)
#else
#define MILLISECOND  UINT64_C(1000000)

/* Longer than a read takes that has messages, and shorter than what a test waits for. */
#define SOON         (60000 * MILLISECOND)
#define NOTHING      SOON
#define LATER        (1000 * MILLISECOND) /* a delay that does not pass by itself */
#define REJECTED_FOR (200000 * MILLISECOND)
#endif

/* ---- Engines ---- */

struct engine {
    const char *name;
    const char *url;     /* of a log of its own, or what is before its place */
    const char *options; /* added to those of each test */
    bool has_directory;
    bool has_object; /* in shared memory */
    bool holds; /* a publish waits for groups, and the newest messages of the window are kept */
};

static const struct engine engines[] = {
#if LOG_TEST_REDIS
    {"redis", "redis://127.0.0.1:", "timeout=60", false, false, false},
};
#elif LOG_TEST_STDIO
    {"stdio", "stdio:", "", false, false, false},
};
#else
    {"ring", "ring:", "", false, false, true},
    {"file", "file://", "level=stored", true, false, false},
    {"file in small segments", "file://", "level=stored&segment=4096", true, false, false},
    {"file, synced", "file://", "", true, false, false},
#if BIDE_LOG_HAS_SHM
    {"shm", "shm://", "", false, true, true},
    {"shm, sent", "shm://", "level=sent", false, true, true},
#endif
};
#endif

enum { ENGINES = sizeof engines / sizeof engines[0] };

/* ---- A log, and coroutines that use it ---- */

struct fixture {
    bide_sim_loop loop;
    bide_log *log;
    const struct engine *engine;
    struct log_directory directory;
    struct log_object object;
#if LOG_TEST_STDIO
    struct log_standard standard;
#endif
};

static const char *place_of(const struct fixture *it)
{
#if LOG_TEST_REDIS
    static char place[64];
    snprintf(place, sizeof place, "%s/test", server.port);
    return place;
#endif
    return it->engine->has_directory ? it->directory.path
           : it->engine->has_object  ? it->object.name
                                     : "";
}

static int wait_for(struct fixture *it, bide_awaiter *awaiter)
{
    return bide_sim_loop_wait(&it->loop, awaiter);
}

static int try_open(struct fixture *it, const char *options)
{
    char url[256];
    bide_log_operation operation;
    snprintf(url, sizeof url, "%s%s%s%s%s", it->engine->url, place_of(it), options,
             it->engine->options[0] == '\0' ? ""
             : options[0] == '\0'           ? "?"
                                            : "&",
             it->engine->options);
    int status = wait_for(it, bide_log_open(&operation, &it->log, url));
#if LOG_TEST_REDIS
    real_loop_log = it->log;
#endif
    return status;
}

static void open_it(struct fixture *it, const struct engine *engine, const char *options)
{
    bide_sim_loop_init(&it->loop, 1);
    it->engine = engine;
    if (engine->has_directory)
        log_directory_make(&it->directory);
    if (engine->has_object)
        log_object_name(&it->object);
#if LOG_TEST_REDIS
    redis_do(&server, "FLUSHALL", "+OK");
#elif LOG_TEST_STDIO
    log_standard_loop(&it->standard);
#endif
    assert_int_equal(try_open(it, options), 0);
    assert_non_null(it->log);
}

static void close_it(struct fixture *it)
{
    bide_log_close(it->log);
    bide_log_destroy(it->log);
    bide_sim_loop_destroy(&it->loop);
    if (it->engine->has_directory)
        log_directory_remove(&it->directory);
    if (it->engine->has_object)
        log_object_remove(&it->object);
#if LOG_TEST_STDIO
    log_standard_end(&it->standard);
#endif
}

static bide_log_message message_of(const char *text)
{
    return (bide_log_message){.data = text, .size = strlen(text)};
}

static int publish(struct fixture *it, const char *text)
{
    bide_log_operation operation;
    bide_log_message message = message_of(text);
    int status = wait_for(it, bide_log_publish(&operation, it->log, &message, 1));
    assert_int_equal(operation.count, status == 0 ? 1 : 0);
    return status;
}

static void publish_all(struct fixture *it, const char *letters)
{
    for (; *letters != '\0'; letters++) {
        const char text[2] = {*letters, '\0'};
        assert_int_equal(publish(it, text), 0);
    }
}

static void subscribe_from(struct fixture *it, bide_log_consumer *consumer,
                           const bide_log_consumer_options *options)
{
    bide_log_operation operation;
    assert_int_equal(wait_for(it, bide_log_subscribe(&operation, consumer, it->log, options)), 0);
}

static void subscribe(struct fixture *it, bide_log_consumer *consumer, const char *group)
{
    const bide_log_consumer_options options = {.group = group};
    subscribe_from(it, consumer, &options);
}

/* Reads what is there, with a deadline of `patience`; the first bytes of the messages make a text. */
static int read_for(struct fixture *it, bide_log_consumer *consumer, bide_log_message *messages,
                    uint32_t max, uint64_t patience, char *text)
{
    bide_log_operation operation;
    bide_with_deadline_operation limited;
    int status =
        wait_for(it, bide_with_timeout(&limited, patience,
                                       bide_log_read(&operation, consumer, messages, max)));
    assert_true((status == 0) == (operation.count != 0));
    for (uint32_t i = 0; i < operation.count; i++)
        text[i] = *(const char *)messages[i].data;
    text[operation.count] = '\0';
    return status;
}

/* Reads exactly these. */
static void expect(struct fixture *it, bide_log_consumer *consumer, bide_log_message *messages,
                   const char *letters)
{
    char text[64];
    size_t count = 0, wanted = strlen(letters);
    do {
        assert_int_equal(read_for(it, consumer, messages + count, (uint32_t)(wanted - count), SOON,
                                  text + count),
                         0);
        count = strlen(text);
    } while (LOG_TEST_STDIO && count < wanted); /* lines come one by one */
    assert_string_equal(text, letters);
}

static void expect_nothing(struct fixture *it, bide_log_consumer *consumer)
{
    char text[4];
    bide_log_message messages[2];
    assert_int_equal(read_for(it, consumer, messages, 2, NOTHING, text), -ETIMEDOUT);
}

static int acknowledge(struct fixture *it, bide_log_consumer *consumer,
                       const bide_log_message *messages, uint32_t count, uint32_t done)
{
    bide_log_operation operation;
    int status = wait_for(it, bide_log_acknowledge(&operation, consumer, messages, count));
    assert_int_equal(operation.count, done);
    return status;
}

static int reject(struct fixture *it, bide_log_consumer *consumer, const bide_log_message *messages,
                  uint32_t count, uint64_t delay)
{
    bide_log_operation operation;
    return wait_for(it, bide_log_reject(&operation, consumer, messages, count, delay));
}

/* A coroutine that waits for one operation. */
struct runner {
    bide_task task;
    bide_awaiter *awaiter;
    int status;
    bool has_ended;
    bide_spawned spawned;
    bide_stop_source stop;
    bide_context context;
    bide_log_operation operation;
    bide_with_deadline_operation limited;
    bide_log_message message;
    bide_log_claim claim;
};

bide_coroutine(runner_body)
{
    bide_begin(runner_body, struct runner * self);
    bide_await_status(self->status, self->awaiter);
    self->has_ended = true;
    bide_end();
}

static void spawn(struct fixture *it, struct runner *runner, bide_awaiter *awaiter)
{
    runner->awaiter = awaiter;
    runner->has_ended = false;
    bide_stop_source_init(&runner->stop);
    runner->context = it->loop.context;
    runner->context.stop = &runner->stop;
    bide_spawn(&runner->spawned, &runner->context, bide_task_init(&runner->task, &runner_body));
}

static void turn(struct fixture *it)
{
    while (bide_sim_loop_step(&it->loop))
        ;
}

static int ended(struct fixture *it, struct runner *runner)
{
    bide_event_waiter wait;
    assert_int_equal(wait_for(it, bide_event_wait(&wait, &runner->spawned.ended)), 0);
    assert_true(runner->has_ended);
    return runner->status;
}

/* ---- Messages ---- */

static void messages_are_read_as_they_were_published(void **state)
{
    (void)state;
    for (unsigned e = 0; e < ENGINES; e++) {
        struct fixture it;
        bide_log_operation operation;
        bide_log_consumer consumer;
        bide_log_message read[8];
        open_it(&it, &engines[e], "?window=8&size=100");
        assert_int_equal(bide_log_window(it.log), 8);
        assert_int_equal(bide_log_size_max(it.log), 100);
        const bide_log_header headers[] = {{"type", 4, "order", 5}, {"empty", 5, NULL, 0}};
        bide_log_message out[3] = {
            {.data = "one",
             .size = 3,
             .key = "k",
             .key_size = 1,
             .headers = headers,
             .header_count = 2},
            {.data = NULL, .size = 0},
            {.data = "a\0b", .size = 3},
        };
        assert_int_equal(wait_for(&it, bide_log_publish(&operation, it.log, out, 3)), 0);
        assert_int_equal(operation.count, 3);
        assert_true(bide_log_position_compare(out[0].published, out[1].published) < 0);
        assert_true(bide_log_position_compare(out[1].published, out[2].published) < 0);

        subscribe(&it, &consumer, NULL);
        uint32_t done = 0;
        do {
            assert_int_equal(
                wait_for(&it, bide_log_read(&operation, &consumer, read + done, 8 - done)), 0);
            done += operation.count;
        } while (LOG_TEST_STDIO && done < 3);
        assert_int_equal(done, 3);
        for (int i = 0; i < 3; i++) {
            assert_int_equal(read[i].size, out[i].size);
            if (out[i].size != 0)
                assert_memory_equal(read[i].data, out[i].data, out[i].size);
            assert_int_equal(bide_log_position_compare(read[i].position, out[i].published), 0);
            assert_true(read[i].time != 0 && read[i].time >= read[0].time);
            assert_int_equal(read[i].deliveries, 1);
        }
        assert_int_equal(read[0].key_size, 1);
        assert_memory_equal(read[0].key, "k", 1);
        assert_null(read[1].key);

        size_t at = 0;
        bide_log_header header;
        assert_true(bide_log_next_header(&read[0], &at, &header));
        assert_int_equal(header.name_size, 4);
        assert_memory_equal(header.name, "type", 4);
        assert_int_equal(header.value_size, 5);
        assert_memory_equal(header.value, "order", 5);
        assert_true(bide_log_next_header(&read[0], &at, &header));
        assert_int_equal(header.name_size, 5);
        assert_int_equal(header.value_size, 0);
        assert_false(bide_log_next_header(&read[0], &at, &header));
        at = 0;
        assert_false(bide_log_next_header(&read[1], &at, &header));

        /* a message that was read is published again as it is, with a header more */
        const bide_log_header hop = {"hop", 3, "2", 1};
        read[0].headers = &hop;
        read[0].header_count = 1;
        assert_int_equal(wait_for(&it, bide_log_publish(&operation, it.log, &read[0], 1)), 0);
        assert_int_equal(bide_log_position_compare(read[0].position, out[0].published), 0);
        assert_true(bide_log_position_compare(read[0].published, out[2].published) > 0);
        bide_log_message again;
        assert_int_equal(wait_for(&it, bide_log_read(&operation, &consumer, &again, 1)), 0);
        assert_memory_equal(again.data, "one", 3);
        assert_memory_equal(again.key, "k", 1);
        at = 0;
        int count = 0;
        while (bide_log_next_header(&again, &at, &header))
            count++;
        assert_int_equal(count, 3);
        bide_log_unsubscribe(&consumer);
        close_it(&it);
    }
}

static void messages_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    for (unsigned e = 0; e < ENGINES; e++) {
        struct fixture it;
        bide_log_operation operation;
        static char bytes[128], name[300];
        memset(name, 'n', sizeof name);
        open_it(&it, &engines[e], "?window=4&size=16");
        const bide_log_header five = {"n", 1, "", 0}, nameless = {"", 0, "", 0},
                              long_name = {name, 256, "", 0}, large = {"n", 1, bytes, 11},
                              no_name = {NULL, 1, "", 0}, no_value = {"n", 1, NULL, 4};
        const struct {
            bide_log_message message;
            int status;
        } rows[] = {
            {{.data = bytes, .size = 16}, 0},
            {{.data = bytes, .size = 17}, -EMSGSIZE},
            {{.data = bytes, .size = SIZE_MAX}, -EMSGSIZE},
            {{.data = bytes, .size = 10, .key = bytes, .key_size = 6}, 0},
            {{.data = bytes, .size = 10, .key = bytes, .key_size = 7}, -EMSGSIZE},
            {{.data = bytes, .size = 1, .key = bytes, .key_size = SIZE_MAX}, -EMSGSIZE},
            {{.data = bytes, .size = 10, .headers = &five, .header_count = 1}, 0},
            {{.data = bytes, .size = 11, .headers = &five, .header_count = 1}, -EMSGSIZE},
            {{.data = bytes, .size = 0, .headers = &large, .header_count = 1}, -EMSGSIZE},
            {{.data = bytes, .size = 1, .headers = &nameless, .header_count = 1}, -EINVAL},
            {{.data = bytes, .size = 1, .headers = &long_name, .header_count = 1}, -EINVAL},
            {{.data = bytes, .size = 1, .headers = &no_name, .header_count = 1}, -EINVAL},
            {{.data = bytes, .size = 1, .headers = &no_value, .header_count = 1}, -EINVAL},
            {{.data = bytes, .size = 1, .encoded = "\1\0\0\0\0", .encoded_size = 5}, -EINVAL},
            {{.data = bytes, .size = 1, .encoded = "\1\0\0\0\0n", .encoded_size = 6}, 0},
            {{.data = NULL, .size = 1}, -EINVAL},
            {{.data = bytes, .size = 1, .key = NULL, .key_size = 1}, -EINVAL},
        };
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
            bide_log_message message = rows[i].message;
            assert_int_equal(wait_for(&it, bide_log_publish(&operation, it.log, &message, 1)),
                             rows[i].status);
            /* one of a batch: none is published */
            bide_log_message batch[2] = {message_of("x"), rows[i].message};
            assert_int_equal(wait_for(&it, bide_log_publish(&operation, it.log, batch, 2)),
                             rows[i].status);
            assert_int_equal(operation.count, rows[i].status == 0 ? 2 : 0);
        }
        bide_log_message batch[5] = {message_of("a"), message_of("b"), message_of("c"),
                                     message_of("d"), message_of("e")};
        assert_int_equal(wait_for(&it, bide_log_publish(&operation, it.log, batch, 0)), -EINVAL);
        assert_int_equal(wait_for(&it, bide_log_publish(&operation, it.log, batch, 5)), -EINVAL);
        assert_int_equal(wait_for(&it, bide_log_publish(&operation, it.log, batch, 4)), 0);
        close_it(&it);
    }
}

/* ---- The window ---- */

static void a_publish_waits_for_the_slowest_group(void **state)
{
    (void)state;
    for (unsigned e = 0; e < ENGINES; e++) {
        if (!engines[e].holds)
            continue;
        struct fixture it;
        bide_log_consumer fast, slow;
        bide_log_message read[4], slowly[4];
        struct runner more;
        uint64_t lag;
        open_it(&it, &engines[e], "?window=4");
        subscribe(&it, &fast, "fast");
        subscribe(&it, &slow, "slow");
        publish_all(&it, "abcd");
        more.message = message_of("e");
        spawn(&it, &more, bide_log_publish(&more.operation, it.log, &more.message, 1));
        turn(&it);
        assert_false(more.has_ended);

        expect(&it, &fast, read, "abcd");
        assert_int_equal(acknowledge(&it, &fast, read, 4, 4), 0);
        expect(&it, &slow, slowly, "ab");
        assert_int_equal(acknowledge(&it, &slow, &slowly[1], 1, 1),
                         0); /* the first is still there */
        assert_int_equal(bide_log_lag(it.log, "fast", &lag), 0);
        assert_int_equal(lag, 0);
        assert_int_equal(bide_log_lag(it.log, "slow", &lag), 0);
        assert_int_equal(lag, 4);
        assert_int_equal(bide_log_lag(it.log, "none", &lag), -ENOENT);
        assert_int_equal(bide_log_lag(it.log, "", &lag), -ENOENT);
        turn(&it);
        assert_false(more.has_ended);
        assert_memory_equal(slowly[0].data, "a", 1); /* in place, until it is acknowledged */
        assert_int_equal(acknowledge(&it, &slow, slowly, 1, 1), 0);
        assert_int_equal(ended(&it, &more), 0);

        /* a group without consumers counts; until it is removed */
        bide_log_unsubscribe(&slow);
        assert_int_equal(bide_log_remove_group(it.log, "fast"), -EBUSY);
        assert_int_equal(bide_log_remove_group(it.log, "none"), -ENOENT);
        assert_int_equal(publish(&it, "f"), 0);
        spawn(&it, &more, bide_log_publish(&more.operation, it.log, &more.message, 1));
        expect(&it, &fast, read, "ef");
        assert_int_equal(acknowledge(&it, &fast, read, 2, 2), 0);
        turn(&it);
        assert_false(more.has_ended);
        assert_int_equal(bide_log_remove_group(it.log, "slow"), 0);
        assert_int_equal(ended(&it, &more), 0);
        bide_log_unsubscribe(&fast);
        close_it(&it);
    }
}

static void a_small_publish_does_not_overtake_a_large_one(void **state)
{
    (void)state;
    for (unsigned e = 0; e < ENGINES; e++) {
        if (!engines[e].holds)
            continue;
        struct fixture it;
        bide_log_consumer consumer;
        bide_log_message read[4], batch[3] = {message_of("x"), message_of("y"), message_of("z")};
        struct runner large, small;
        open_it(&it, &engines[e], "?window=4");
        subscribe(&it, &consumer, NULL);
        publish_all(&it, "abcd");
        spawn(&it, &large, bide_log_publish(&large.operation, it.log, batch, 3));
        turn(&it);
        small.message = message_of("s");
        spawn(&it, &small, bide_log_publish(&small.operation, it.log, &small.message, 1));
        turn(&it);
        expect(&it, &consumer, read, "ab");
        assert_int_equal(acknowledge(&it, &consumer, read, 2, 2), 0);
        turn(&it);
        assert_false(large.has_ended || small.has_ended);
        expect(&it, &consumer, read, "cd");
        assert_int_equal(acknowledge(&it, &consumer, read, 2, 2), 0);
        assert_int_equal(ended(&it, &large), 0);
        assert_int_equal(ended(&it, &small), 0);
        expect(&it, &consumer, read, "xyzs");
        bide_log_unsubscribe(&consumer);
        close_it(&it);
    }
}

/* The same where a publish waits for claims and other publishes alone. */
static void waiting_publishes_keep_their_order(void **state)
{
    (void)state;
    for (unsigned e = 0; e < ENGINES; e++) {
        struct fixture it;
        bide_log_operation operation;
        bide_log_consumer consumer;
        bide_log_claim claim;
        bide_log_message read[4], batch[3] = {message_of("x"), message_of("y"), message_of("z")};
        struct runner large, small;
        open_it(&it, &engines[e], "?window=4");
        subscribe(&it, &consumer, NULL);
        assert_int_equal(wait_for(&it, bide_log_reserve(&operation, it.log, 4, &claim)), 0);
        spawn(&it, &large, bide_log_publish(&large.operation, it.log, batch, 3));
        turn(&it);
        small.message = message_of("s");
        spawn(&it, &small, bide_log_publish(&small.operation, it.log, &small.message, 1));
        turn(&it);
        bide_log_message *first = &batch[0];
        assert_int_equal(wait_for(&it, bide_log_publish_claimed(&operation, &claim, first, 1)), 0);
        expect(&it, &consumer, read, "x");
        assert_int_equal(acknowledge(&it, &consumer, read, 1, 1), 0);
        turn(&it);
        assert_false(large.has_ended || small.has_ended);
        bide_log_claim_release(&claim);
        assert_int_equal(ended(&it, &large), 0);
        assert_int_equal(ended(&it, &small), 0);
        assert_true(bide_log_position_compare(batch[2].published, small.message.published) < 0);
        expect(&it, &consumer, read, "xyzs");
        bide_log_unsubscribe(&consumer);
        close_it(&it);
    }
}

static void claims_keep_their_room(void **state)
{
    (void)state;
    for (unsigned e = 0; e < ENGINES; e++) {
        struct fixture it;
        bide_log_operation operation;
        bide_log_consumer consumer;
        bide_log_claim claim, other;
        bide_log_message read[4], batch[3] = {message_of("x"), message_of("y"), message_of("z")};
        struct runner waiting;
        open_it(&it, &engines[e], "?window=4");
        subscribe(&it, &consumer, "g");
        assert_int_equal(wait_for(&it, bide_log_reserve(&operation, it.log, 0, &claim)), -EINVAL);
        assert_int_equal(wait_for(&it, bide_log_reserve(&operation, it.log, 5, &claim)), -EINVAL);
        assert_int_equal(claim.count, 0);
        assert_int_equal(wait_for(&it, bide_log_reserve(&operation, it.log, 3, &claim)), 0);
        assert_int_equal(claim.count, 3);
        publish_all(&it, "a");
        if (!engines[e].holds) /* what was published needs no room: a claim has the rest */
            assert_int_equal(wait_for(&it, bide_log_reserve(&operation, it.log, 1, &other)), 0);
        waiting.message = message_of("w");
        spawn(&it, &waiting, bide_log_publish(&waiting.operation, it.log, &waiting.message, 1));
        turn(&it);
        assert_false(waiting.has_ended);
        assert_int_equal(wait_for(&it, bide_log_publish_claimed(&operation, &claim, batch, 2)), 0);
        assert_int_equal(claim.count, 1);
        if (!engines[e].holds)
            assert_int_equal(ended(&it, &waiting), 0);
        assert_int_equal(wait_for(&it, bide_log_publish_claimed(&operation, &claim, batch, 2)),
                         -EINVAL);
        assert_int_equal(wait_for(&it, bide_log_publish_claimed(&operation, &claim, batch, 0)),
                         -EINVAL);
        turn(&it);
        assert_true(waiting.has_ended == !engines[e].holds);
        bide_log_claim_release(&claim);
        bide_log_claim_release(&claim);
        assert_int_equal(ended(&it, &waiting), 0);
        if (!engines[e].holds)
            bide_log_claim_release(&other);
        expect(&it, &consumer, read, "axyw");
        assert_int_equal(acknowledge(&it, &consumer, read, 4, 4), 0);

        /* what is claimed is published also after the close, and read before the end */
        assert_int_equal(wait_for(&it, bide_log_reserve(&operation, it.log, 2, &claim)), 0);
        assert_int_equal(wait_for(&it, bide_log_reserve(&operation, it.log, 1, &other)), 0);
        bide_log_close(it.log);
        expect_nothing(&it, &consumer);
        assert_int_equal(wait_for(&it, bide_log_publish_claimed(&operation, &claim, batch, 1)), 0);
        expect(&it, &consumer, read, "x");
        spawn(&it, &waiting, bide_log_read(&waiting.operation, &consumer, read, 1));
        bide_log_claim_release(&other);
        turn(&it);
        assert_false(waiting.has_ended);
        bide_log_claim_release(&claim);
        assert_int_equal(ended(&it, &waiting), -EPIPE);
        bide_log_unsubscribe(&consumer);
        close_it(&it);
    }
}

/* ---- Groups and redelivery ---- */

static void each_group_has_each_message_once(void **state)
{
    (void)state;
    for (unsigned e = 0; e < ENGINES; e++) {
        struct fixture it;
        bide_log_consumer one, two, other;
        bide_log_message read[8];
        open_it(&it, &engines[e], "?window=8");
        publish_all(&it, "abcde");
        subscribe(&it, &one, "g");
        subscribe(&it, &two, "g");
        subscribe(&it, &other, "h");
        expect(&it, &one, read, "ab");
        expect(&it, &two, read, "cd");
        expect(&it, &one, read, "e");
        expect_nothing(&it, &one);
        expect_nothing(&it, &two);
        expect(&it, &other, read, "abcde");
        bide_log_unsubscribe(&one);
        bide_log_unsubscribe(&one);
        bide_log_unsubscribe(&two);
        bide_log_unsubscribe(&other);
        close_it(&it);
    }
}

static void what_a_consumer_leaves_goes_to_another(void **state)
{
    (void)state;
    for (unsigned e = 0; e < ENGINES; e++) {
        struct fixture it;
        bide_log_consumer one, two;
        bide_log_message read[4], first[4];
        struct runner waiting;
        open_it(&it, &engines[e], "?window=8");
        publish_all(&it, "abcd");
        subscribe(&it, &one, "g");
        subscribe(&it, &two, "g");
        expect(&it, &one, first, "abcd");
        assert_int_equal(acknowledge(&it, &one, &first[1], 1, 1), 0);
        spawn(&it, &waiting, bide_log_read(&waiting.operation, &two, read, 4));
        turn(&it);
        assert_false(waiting.has_ended);
        bide_log_unsubscribe(&one);
        assert_int_equal(ended(&it, &waiting), 0);
        assert_int_equal(waiting.operation.count, 3);
        assert_memory_equal(read[0].data, "a", 1);
        assert_memory_equal(read[1].data, "c", 1);
        assert_memory_equal(read[2].data, "d", 1);
        assert_int_equal(read[0].deliveries, 2);

        /* the group continues where it is, without consumers too */
        assert_int_equal(acknowledge(&it, &two, read, 2, 2), 0);
        bide_log_unsubscribe(&two);
        publish_all(&it, "e");
        subscribe(&it, &one, "g");
        expect(&it, &one, read, "de");
        assert_int_equal(read[0].deliveries, 3);
        assert_int_equal(read[1].deliveries, 1);
        bide_log_unsubscribe(&one);
        close_it(&it);
    }
}

static void a_rejected_message_comes_again_after_its_delay(void **state)
{
    (void)state;
    for (unsigned e = 0; e < ENGINES; e++) {
        struct fixture it;
        bide_log_consumer consumer;
        bide_log_message read[4], again[4];
        char text[8];
        open_it(&it, &engines[e], "?window=8");
        subscribe(&it, &consumer, LOG_TEST_STDIO ? NULL : "g");
        publish_all(&it, "abc");
        expect(&it, &consumer, read, "ab");
        uint64_t began = bide_now(&it.loop.context);
        assert_int_equal(reject(&it, &consumer, &read[0], 1, REJECTED_FOR), 0);
        assert_int_equal(reject(&it, &consumer, &read[0], 1, 0), -ESTALE);
        assert_int_equal(reject(&it, &consumer, &read[1], 1, 0), 0);
        expect(&it, &consumer, again, "bc"); /* the rejected one first */
        assert_int_equal(again[0].deliveries, 2);
        expect_nothing(&it, &consumer);
#if !LOG_TEST_REAL
        assert_true(bide_now(&it.loop.context) < began + REJECTED_FOR);
#endif
        assert_int_equal(read_for(&it, &consumer, read, 4, 3 * REJECTED_FOR + SOON, text), 0);
        assert_string_equal(text, "a");
        assert_true(bide_now(&it.loop.context) >= began + REJECTED_FOR);
        assert_int_equal(acknowledge(&it, &consumer, read, 1, 1), 0);

        /* a closed log has it too, before the end */
        assert_int_equal(reject(&it, &consumer, again, 2, REJECTED_FOR), 0);
        bide_log_close(it.log);
        assert_int_equal(read_for(&it, &consumer, read, 4, 3 * REJECTED_FOR + SOON, text), 0);
        assert_string_equal(text, "bc");
        assert_int_equal(read_for(&it, &consumer, read, 4, 3 * REJECTED_FOR + SOON, text), -EPIPE);
        bide_log_unsubscribe(&consumer);
        close_it(&it);
    }
}

static void acknowledgements_are_of_what_the_consumer_has(void **state)
{
    (void)state;
    for (unsigned e = 0; e < ENGINES; e++) {
        struct fixture it;
        bide_log_operation operation;
        bide_log_consumer one, two, left;
        bide_log_message mine[4], other[4];
        uint64_t lag;
        open_it(&it, &engines[e], "?window=8");
        publish_all(&it, "abcdef");
        subscribe(&it, &one, "g");
        subscribe(&it, &two, "g");
        expect(&it, &one, mine, "ab");
        expect(&it, &two, other, "c");
        expect(&it, &one, &mine[2], "d");
        assert_int_equal(acknowledge(&it, &one, other, 1, 0), -ESTALE);
        assert_int_equal(acknowledge(&it, &one, mine, 1, 1), 0);
        assert_int_equal(acknowledge(&it, &one, mine, 2, 1), -ESTALE); /* and b is */
        bide_log_message later = {.position = mine[2].position};
        later.position.low_ += 1; /* not delivered yet */
        assert_int_equal(acknowledge(&it, &one, &later, 1, 0), -ESTALE);

        assert_int_equal(
            wait_for(&it, bide_log_acknowledge_up_to(&operation, &one, other[0].position)), 0);
        assert_int_equal(operation.count, 0);
        assert_int_equal(
            wait_for(&it, bide_log_acknowledge_up_to(&operation, &one, mine[2].position)), 0);
        assert_int_equal(operation.count, 1);
        assert_int_equal(bide_log_lag(it.log, "g", &lag), 0);
        assert_int_equal(lag,
                         LOG_TEST_REDIS ? 3 : 4); /* c is the other's; a server counts without d */
        assert_int_equal(
            wait_for(&it, bide_log_acknowledge_up_to(&operation, &two, mine[2].position)), 0);
        assert_int_equal(operation.count, 1);
        assert_int_equal(bide_log_lag(it.log, "g", &lag), 0);
        assert_int_equal(lag, 2);

        subscribe(&it, &left, "g");
        bide_log_unsubscribe(&left);
        assert_int_equal(acknowledge(&it, &left, mine, 1, 0), -EINVAL);
        assert_int_equal(reject(&it, &left, mine, 1, 0), -EINVAL);
        assert_int_equal(
            wait_for(&it, bide_log_acknowledge_up_to(&operation, &left, mine[2].position)),
            -EINVAL);
        assert_int_equal(wait_for(&it, bide_log_read(&operation, &left, mine, 1)), -EPIPE);
        assert_int_equal(wait_for(&it, bide_log_read(&operation, &one, mine, 0)), -EINVAL);
        bide_log_unsubscribe(&one);
        bide_log_unsubscribe(&two);
        close_it(&it);
    }
}

/* ---- Replay ---- */

static void a_new_group_begins_where_it_is_asked_to(void **state)
{
    (void)state;
    for (unsigned e = 0; e < ENGINES; e++) {
        struct fixture it;
        bide_log_consumer consumer;
        bide_log_message read[8], every[8], *all = &every[engines[e].holds ? 0 : 2];
        const char *kept = engines[e].holds ? "cdef" : "abcdef";
        char text[16], printed[BIDE_LOG_POSITION_TEXT];
        open_it(&it, &engines[e], engines[e].holds ? "?window=4" : "?window=8");
        publish_all(&it, "abcdef"); /* a ring does not keep a and b */
        subscribe_from(&it, &consumer, NULL);
        expect(&it, &consumer, every, kept);
        bide_log_unsubscribe(&consumer);

        bide_log_consumer_options options = {.from = BIDE_LOG_FROM_POSITION};
        assert_int_equal(bide_log_position_print(all[1].position, printed, sizeof printed), 0);
        assert_int_equal(bide_log_position_parse(&options.position, printed), 0);
        assert_int_equal(bide_log_position_compare(options.position, all[1].position), 0);
        subscribe_from(&it, &consumer, &options);
        expect(&it, &consumer, read, "ef");
        bide_log_unsubscribe(&consumer);
        options.position = (bide_log_position){0}; /* not kept any more: the oldest */
        subscribe_from(&it, &consumer, &options);
        expect(&it, &consumer, read, kept);
        bide_log_unsubscribe(&consumer);
#if !LOG_TEST_REDIS
        options.position = (bide_log_position){.low_ = 1000}; /* not there yet: the end */
        subscribe_from(&it, &consumer, &options);
        expect_nothing(&it, &consumer);
        bide_log_unsubscribe(&consumer);
#endif
        options.position = (bide_log_position){.high_ = LOG_TEST_REDIS ? UINT64_MAX : 1};
        subscribe_from(&it, &consumer, &options);
        expect_nothing(&it, &consumer);
        bide_log_unsubscribe(&consumer);

        options = (bide_log_consumer_options){.from = BIDE_LOG_FROM_TIME, .time = all[2].time};
        subscribe_from(&it, &consumer, &options);
        assert_int_equal(read_for(&it, &consumer, read, 8, SOON, text), 0);
        assert_true(read[0].time >= all[2].time);
        assert_true(bide_log_position_compare(read[0].position, all[2].position) <= 0);
        bide_log_unsubscribe(&consumer);
        options.time = 1;
        subscribe_from(&it, &consumer, &options);
        expect(&it, &consumer, read, kept);
        bide_log_unsubscribe(&consumer);
        options.time = UINT64_MAX;
        subscribe_from(&it, &consumer, &options);
        expect_nothing(&it, &consumer);
        bide_log_unsubscribe(&consumer);

        options = (bide_log_consumer_options){.group = "g", .from = BIDE_LOG_FROM_END};
        subscribe_from(&it, &consumer, &options);
        expect_nothing(&it, &consumer);
        publish_all(&it, "g");
        expect(&it, &consumer, read, "g");
        bide_log_unsubscribe(&consumer);
        options.from = BIDE_LOG_FROM_BEGINNING; /* the group is there, and continues */
        subscribe_from(&it, &consumer, &options);
        expect(&it, &consumer, read, "g");
        bide_log_unsubscribe(&consumer);
        close_it(&it);
    }
}

static void a_claim_moves_the_oldest_message(void **state)
{
    (void)state;
    struct fixture it;
    bide_log_operation operation;
    bide_log_consumer consumer;
    bide_log_claim claim;
    bide_log_message read[4], batch[2] = {message_of("x"), message_of("y")};
    for (unsigned e = 0; e < ENGINES; e++) {
        if (!engines[e].holds)
            continue;
        open_it(&it, &engines[e], "?window=4");
        publish_all(&it, "abcd");
        assert_int_equal(wait_for(&it, bide_log_reserve(&operation, it.log, 2, &claim)), 0);
        subscribe(&it, &consumer, "g"); /* a and b may be overwritten at any time */
        expect(&it, &consumer, read, "cd");
        assert_int_equal(wait_for(&it, bide_log_publish_claimed(&operation, &claim, batch, 2)), 0);
        assert_memory_equal(read[0].data, "c", 1);
        assert_memory_equal(read[1].data, "d", 1);
        expect(&it, &consumer, &read[2], "xy");
        bide_log_unsubscribe(&consumer);
        close_it(&it);
    }
}

/* ---- Each operation, and each end ---- */

enum operation { PUBLISH, RESERVE, READ, READ_DELAYED, IN_LINE, OPERATIONS };
enum way { COMPLETES, CANCELLED, TIMES_OUT, CLOSED, DESTROYED, UNSUBSCRIBED, WAYS };

static bide_awaiter *begin_operation(struct fixture *it, struct runner *runner,
                                     enum operation operation, bide_log_consumer *consumer)
{
    runner->message = message_of("new");
    runner->claim = (bide_log_claim){it->log, 0};
    if (operation == PUBLISH || operation == IN_LINE)
        return bide_log_publish(&runner->operation, it->log, &runner->message, 1);
    if (operation == RESERVE)
        return bide_log_reserve(&runner->operation, it->log, 2, &runner->claim);
    return bide_log_read(&runner->operation, consumer, &runner->message, 1);
}

static int expected_status(enum operation operation, enum way way)
{
    bool reads = operation == READ || operation == READ_DELAYED;
    switch (way) {
    case CANCELLED:
        return -ECANCELED;
    case TIMES_OUT:
        return -ETIMEDOUT;
    case CLOSED:
        return operation == READ_DELAYED ? 0 : -EPIPE; /* it is drained */
    case UNSUBSCRIBED:
        return reads ? -EPIPE : 0; /* the group ends, and there is room */
    default:
        return 0;
    }
}

static void one_end(const struct engine *engine, enum operation operation, enum way way)
{
    struct fixture it;
    bide_log_consumer consumer, later;
    bide_log_message held[2];
    struct runner runner, ahead;
    bool reads = operation == READ || operation == READ_DELAYED;
    bide_log_operation reserve;
    bide_log_claim full = {NULL, 0}; /* has the room, where groups do not */
    if (!engine->holds && !reads && way == UNSUBSCRIBED)
        return;
    if ((LOG_TEST_STDIO || (LOG_TEST_REDIS && reads)) && way == DESTROYED)
        return; /* the handle's thread may be waking it */
    open_it(&it, engine, "?window=2");
    subscribe(&it, &consumer, NULL);
    publish_all(&it, "ab");
    expect(&it, &consumer, held, "ab");
    if (!engine->holds && !reads)
        assert_int_equal(wait_for(&it, bide_log_reserve(&reserve, it.log, 2, &full)), 0);
    if (operation == READ_DELAYED)
        assert_int_equal(reject(&it, &consumer, held, 1, LATER), 0);
    if (operation == IN_LINE) {
        ahead.message = message_of("ahead");
        spawn(&it, &ahead, bide_log_publish(&ahead.operation, it.log, &ahead.message, 1));
        turn(&it);
    }

    bide_awaiter *awaiter = begin_operation(&it, &runner, operation, &consumer);
    if (way == TIMES_OUT)
        awaiter = bide_with_timeout(&runner.limited, MILLISECOND, awaiter);
    if (way == DESTROYED) {
        runner.awaiter = awaiter;
        runner.has_ended = false;
        bide_start(&runner.task.frame, &runner_body, &it.loop.context);
        bide_resume(&runner.task.frame);
    } else {
        spawn(&it, &runner, awaiter);
    }
    turn(&it);
    assert_true(!runner.has_ended || (LOG_TEST_REAL && way == TIMES_OUT));

    if (way == COMPLETES && operation == READ)
        assert_int_equal(acknowledge(&it, &consumer, held, 2, 2), 0), publish_all(&it, "c");
    else if (way == COMPLETES && !reads && !engine->holds)
        bide_log_claim_release(&full);
    else if (way == COMPLETES && !reads)
        assert_int_equal(acknowledge(&it, &consumer, held, 2, 2), 0);
    else if (way == CANCELLED)
        bide_stop_request(&runner.stop);
    else if (way == CLOSED)
        bide_log_close(it.log);
    else if (way == UNSUBSCRIBED)
        bide_log_unsubscribe(&consumer);
    else if (way == DESTROYED)
        bide_destroy(&runner.task.frame);
    if (way != DESTROYED) {
        int status = ended(&it, &runner);
        assert_int_equal(status, expected_status(operation, way));
        assert_int_equal(runner.operation.count, status == 0 && operation != RESERVE ? 1 : 0);
        assert_int_equal(runner.claim.count, status == 0 && operation == RESERVE ? 2 : 0);
    }

    /* nothing of it is left: neither its message nor its claim, nor a place in the line */
    bide_log_claim_release(&runner.claim);
    bool published = !reads && operation != RESERVE && (way == COMPLETES || way == UNSUBSCRIBED);
    bide_log_unsubscribe(&consumer);
    if (full.count != 0)
        bide_log_claim_release(&full);
    if (operation == IN_LINE)
        assert_int_equal(ended(&it, &ahead), way == CLOSED ? -EPIPE : 0);
    if (way != CLOSED && LOG_TEST_STDIO) { /* which has no replay */
        assert_int_equal(wait_for(&it, bide_log_reserve(&reserve, it.log, 2, &full)), 0);
        bide_log_claim_release(&full);
        subscribe(&it, &later, NULL);
        expect(&it, &later, held,
               operation == READ && way == COMPLETES           ? "c"
               : operation == READ_DELAYED && way != COMPLETES ? "b" /* before a is due */
                                                               : "a");
        bide_log_unsubscribe(&later);
    } else if (way != CLOSED && !engine->holds) {
        char text[8];
        const bide_log_consumer_options options = {.from = BIDE_LOG_FROM_POSITION,
                                                   .position = held[1].position};
        subscribe_from(&it, &later, &options);
        const char *left = operation == IN_LINE                    ? published ? "an" : "a"
                           : published                             ? "n"
                           : operation == READ && way == COMPLETES ? "c"
                                                                   : "";
        assert_int_equal(read_for(&it, &later, held, 2, *left != '\0' ? SOON : NOTHING, text),
                         *left != '\0' ? 0 : -ETIMEDOUT);
        assert_string_equal(text, left);
        bide_log_unsubscribe(&later);
    } else if (way != CLOSED) {
        char text[8];
        subscribe(&it, &later, NULL);
        assert_int_equal(read_for(&it, &later, held, 2, SOON, text), 0);
        if (operation == IN_LINE)
            assert_string_equal(text, published ? "an" : "ba");
        else if (published)
            assert_string_equal(text, "bn");
        else if (operation == READ && way == COMPLETES)
            assert_string_equal(text, "bc");
        else
            assert_string_equal(text, "ab");
        bide_log_unsubscribe(&later);
    }
    close_it(&it);
}

static void each_operation_ends_once_in_each_way(void **state)
{
    (void)state;
    for (unsigned e = 0; e < ENGINES; e++) {
        for (int operation = 0; operation < OPERATIONS; operation++) {
            for (int way = 0; way < WAYS; way++)
                one_end(&engines[e], (enum operation)operation, (enum way)way);
        }
    }
}

static void a_closed_log_is_drained(void **state)
{
    (void)state;
    for (unsigned e = 0; e < ENGINES; e++) {
        struct fixture it;
        bide_log_operation operation;
        bide_log_consumer consumer, late;
        bide_log_claim claim;
        bide_log_message read[4];
        char text[8];
        open_it(&it, &engines[e], "?window=4");
        subscribe(&it, &consumer, NULL);
        publish_all(&it, "abc");
        bide_log_close(it.log);
        bide_log_close(it.log);
        assert_int_equal(publish(&it, "d"), -EPIPE);
        assert_int_equal(wait_for(&it, bide_log_reserve(&operation, it.log, 1, &claim)), -EPIPE);
        assert_int_equal(claim.count, 0);
        assert_int_equal(wait_for(&it, bide_log_subscribe(&operation, &late, it.log, NULL)),
                         -EPIPE);
        expect(&it, &consumer, read, "ab");
        expect(&it, &consumer, &read[2], "c");
        assert_int_equal(read_for(&it, &consumer, &read[3], 1, SOON, text), -EPIPE);
        assert_int_equal(acknowledge(&it, &consumer, read, 3, 3), 0);
        bide_log_unsubscribe(&consumer);
        close_it(&it);
    }
}

/* A read or claim that has ended, but whose coroutine is destroyed before it knows, is as if it had not been. */
struct pair {
    bide_task task;
    bide_awaiter *awaiter;
    bide_event *never;
    bide_event_waiter wait;
    bide_branch branches[2];
    bide_when both;
};

bide_coroutine(pair_body)
{
    bide_begin(pair_body, struct pair * self);
    bide_branch_init(&self->branches[0], self->awaiter);
    bide_branch_init(&self->branches[1], bide_event_wait(&self->wait, self->never));
    bide_await(bide_when_all(&self->both, self->branches, 2));
    bide_end();
}

static void destroy_after_end(struct fixture *it, bide_awaiter *awaiter,
                              bide_log_operation *operation, const bide_log_claim *claim)
{
    struct pair pair;
    bide_event never;
    bide_event_init(&never, false);
    pair.awaiter = awaiter;
    pair.never = &never;
    bide_start(&pair.task.frame, &pair_body, &it->loop.context);
    bide_resume(&pair.task.frame);
    turn(it);
    assert_true(claim != NULL ? claim->count == 2 : operation == NULL || operation->count == 1);
    bide_destroy(&pair.task.frame);
    turn(it);
    bide_event_destroy(&never);
}

static void what_a_destroyed_coroutine_has_goes_back(void **state)
{
    (void)state;
    for (unsigned e = 0; e < ENGINES; e++) {
        struct fixture it;
        bide_log_operation operation;
        bide_log_consumer consumer, gone;
        bide_log_claim claim;
        bide_log_message read[2];
        open_it(&it, &engines[e], "?window=2");
        subscribe(&it, &consumer, "g");
        publish_all(&it, "ab");
        destroy_after_end(&it, bide_log_read(&operation, &consumer, read, 1), &operation, NULL);
        expect(&it, &consumer, read, "ab");
        assert_int_equal(read[0].deliveries, 1);
        assert_int_equal(acknowledge(&it, &consumer, read, 2, 2), 0);

        destroy_after_end(&it, bide_log_reserve(&operation, it.log, 2, &claim), &operation, &claim);
        publish_all(&it, "cd"); /* there is room */

        destroy_after_end(&it, bide_log_subscribe(&operation, &gone, it.log, NULL), NULL, NULL);
        assert_null(gone.group);
        bide_log *other;
        char url[256];
        snprintf(url, sizeof url, "%s%s", engines[e].url, place_of(&it));
        destroy_after_end(&it, bide_log_open(&operation, &other, url), NULL, NULL);
        assert_null(other);
        bide_log_unsubscribe(&consumer);
        close_it(&it);
    }
}

#if !LOG_TEST_REAL /* where no other thread makes the calls */
/*
 * Starts a coroutine that waits for `awaiter`, and destroys it after so many steps of the loop, or one more: a call that a
 * thread is making cannot be taken back. False: it had ended before.
 */
static bool destroy_after(struct fixture *it, struct runner *runner, bide_awaiter *awaiter,
                          int steps)
{
    enum { NOT_CALLED = 1, ROUNDS = 1000 };
    bool is_being_made = false;
    runner->awaiter = awaiter;
    runner->has_ended = false;
    runner->operation.status = NOT_CALLED; /* the call writes it */
    bide_start(&runner->task.frame, &runner_body, &it->loop.context);
    bide_resume(&runner->task.frame);
    for (int round = 0; (steps > 0 || is_being_made) && !runner->has_ended; round++) {
        bool was_called = runner->operation.status != NOT_CALLED;
        assert_true(round < ROUNDS);
        if (!bide_sim_loop_step(&it->loop)) {
            it->loop.now += 10000 * MILLISECOND; /* longer than a call takes */
            continue;
        }
        steps--;
        is_being_made = !was_called && runner->operation.status != NOT_CALLED;
    }
    bool has_ended = runner->has_ended;
    if (!has_ended)
        bide_destroy(&runner->task.frame);
    turn(it);
    return !has_ended;
}

/* The coroutine is destroyed when the call has ended: messages and handles of the call go back. */
static void what_a_destroyed_call_has_brought_goes_back(void **state)
{
    (void)state;
    enum { STEPS = 20 };
    for (unsigned e = 0; e < ENGINES; e++) {
        struct fixture it;
        struct runner runner;
        bide_log_consumer consumer;
        bide_log_message read[2];
        const bide_log_consumer_options by_time = {.from = BIDE_LOG_FROM_TIME, .time = 1};
        bool was_destroyed = engines[e].has_directory;
        int steps;
        for (steps = 0; was_destroyed && steps < STEPS; steps++) {
            open_it(&it, &engines[e], "?window=2");
            subscribe(&it, &consumer, "g");
            publish_all(&it, "ab");
            was_destroyed = destroy_after(
                &it, &runner, bide_log_read(&runner.operation, &consumer, read, 2), steps);
            if (was_destroyed) {
                expect(&it, &consumer, read, "ab");
                assert_int_equal(read[0].deliveries, 1);
                assert_int_equal(read[1].deliveries, 1);
            } else {
                assert_int_equal(runner.status, 0);
                assert_int_equal(runner.operation.count, 2);
            }
            bide_log_unsubscribe(&consumer);
            close_it(&it);
        }
        assert_true(!engines[e].has_directory || (steps > 3 && steps < STEPS));

        bool opening_blocks = engines[e].has_directory || engines[e].has_object;
        was_destroyed = opening_blocks;
        for (steps = 0; was_destroyed && steps < STEPS; steps++) {
            bide_log *other;
            char url[256];
            open_it(&it, &engines[e], "?window=2");
            snprintf(url, sizeof url, "%s%s", engines[e].url, place_of(&it));
            was_destroyed =
                destroy_after(&it, &runner, bide_log_open(&runner.operation, &other, url), steps);
            assert_true(was_destroyed == (other == NULL));
            bide_log_destroy(other);
            bide_log_destroy(it.log);
            if (engines[e].has_object)
                log_object_remove(&it.object);               /* or its window stays */
            assert_int_equal(try_open(&it, "?window=4"), 0); /* nobody has it open */
            close_it(&it);
        }
        assert_true(!opening_blocks || (steps > 3 && steps < STEPS));

        was_destroyed = engines[e].has_directory;
        for (steps = 0; was_destroyed && steps < STEPS; steps++) {
            open_it(&it, &engines[e], "?window=2");
            publish_all(&it, "ab");
            was_destroyed = destroy_after(
                &it, &runner, bide_log_subscribe(&runner.operation, &consumer, it.log, &by_time),
                steps);
            assert_true(was_destroyed == (consumer.group == NULL));
            bide_log_unsubscribe(&consumer);
            close_it(&it);
        }
        assert_true(!engines[e].has_directory || (steps > 3 && steps < STEPS));
    }
}

/* A cancelled publish leaves its message in a batch, which is written after the handle was closed, or given up. */
static void a_closed_handle_ends_behind_what_a_cancelled_publish_left(void **state)
{
    (void)state;
    for (unsigned e = 0; e < ENGINES; e++) {
        for (int gives_up = 0; gives_up < 2 && !engines[e].holds; gives_up++) {
            struct fixture it;
            struct runner acknowledging, publishing, reading;
            bide_log_consumer consumer, own;
            bide_log_message read[1], message;
            char text[4];
            open_it(&it, &engines[e], "?window=4");
            publish_all(&it, "a");
            subscribe(&it, &consumer, "g");
            expect(&it, &consumer, read, "a");
            subscribe(&it, &own, NULL);
            expect(&it, &own, &message, "a");
            spawn(&it, &acknowledging,
                  bide_log_acknowledge(&acknowledging.operation, &consumer, read, 1));
            turn(&it); /* it waits for the call that writes */
            publishing.message = message_of("b");
            spawn(&it, &publishing,
                  bide_log_publish(&publishing.operation, it.log, &publishing.message, 1));
            turn(&it);
            bide_stop_request(&publishing.stop);
            assert_int_equal(ended(&it, &publishing), -ECANCELED);
            assert_true(publishing.operation.uncertain);
            bide_log_close(it.log);
            spawn(&it, &reading, bide_log_read(&reading.operation, &own, &reading.message, 1));
            turn(&it);
            assert_false(acknowledging.has_ended);
            assert_false(reading.has_ended);
            if (gives_up != 0)
                bide_stop_request(&acknowledging.stop);
            assert_int_equal(ended(&it, &acknowledging), gives_up != 0 ? -ECANCELED : 0);
            assert_int_equal(ended(&it, &reading), gives_up != 0 ? -EPIPE : 0);
            if (gives_up == 0)
                assert_int_equal(*(const char *)reading.message.data, 'b');
            assert_int_equal(read_for(&it, &own, &message, 1, SOON, text), -EPIPE);
            bide_log_unsubscribe(&own);
            bide_log_unsubscribe(&consumer);
            close_it(&it);
        }
    }
}

/* A publish that ends before its batch is written leaves its room there: the window bounds what waits. */
static void a_cancelled_publish_keeps_its_room_until_it_is_written(void **state)
{
    (void)state;
    for (unsigned e = 0; e < ENGINES; e++) {
        for (int has_claim = 0; has_claim < 2 && !engines[e].holds; has_claim++) {
            struct fixture it;
            struct runner first, second, third;
            bide_log_operation operation;
            bide_log_consumer consumer;
            bide_log_claim claim = {NULL, 0};
            bide_log_message read[2];
            open_it(&it, &engines[e], "?window=2");
            if (has_claim != 0)
                assert_int_equal(wait_for(&it, bide_log_reserve(&operation, it.log, 1, &claim)), 0);
            first.message = message_of("a");
            second.message = message_of("b");
            spawn(&it, &first, bide_log_publish(&first.operation, it.log, &first.message, 1));
            turn(&it); /* it waits for the call that writes */
            spawn(&it, &second,
                  has_claim != 0
                      ? bide_log_publish_claimed(&second.operation, &claim, &second.message, 1)
                      : bide_log_publish(&second.operation, it.log, &second.message, 1));
            turn(&it);
            assert_false(first.has_ended || second.has_ended);
            bide_stop_request(&second.stop);
            turn(&it);
            assert_true(second.has_ended && !first.has_ended);
            assert_int_equal(second.status, -ECANCELED);
            assert_true(second.operation.uncertain);
            assert_int_equal(claim.count, 0);
            spawn(&it, &third, bide_log_reserve(&third.operation, it.log, 1, &third.claim));
            turn(&it);
            assert_false(third.has_ended);
            assert_int_equal(ended(&it, &first), 0);
            assert_int_equal(ended(&it, &second), -ECANCELED);
            assert_int_equal(ended(&it, &third), 0);
            bide_log_claim_release(&third.claim);
            assert_int_equal(wait_for(&it, bide_log_reserve(&operation, it.log, 2, &claim)), 0);
            bide_log_claim_release(&claim);
            subscribe(&it, &consumer, NULL);
            expect(&it, &consumer, read, "ab");
            bide_log_unsubscribe(&consumer);

            /* alone in its batch it has not happened, and has no room */
            second.message = message_of("c");
            spawn(&it, &second, bide_log_publish(&second.operation, it.log, &second.message, 1));
            turn(&it);
            bide_stop_request(&second.stop);
            assert_int_equal(ended(&it, &second), -ECANCELED);
            assert_false(second.operation.uncertain);
            assert_int_equal(wait_for(&it, bide_log_reserve(&operation, it.log, 2, &claim)), 0);
            bide_log_claim_release(&claim);
            close_it(&it);
        }
    }
}

static bide_log *misused_log(void)
{
    bide_log_operation operation;
    bide_log *log;
    (void)bide_sync_wait(bide_log_open(&operation, &log, "ring:"));
    return log;
}

static void destroy_with_a_consumer(void)
{
    bide_log_operation operation;
    bide_log_consumer consumer;
    bide_log *log = misused_log();
    (void)bide_sync_wait(bide_log_subscribe(&operation, &consumer, log, NULL));
    bide_log_destroy(log);
}

static void destroy_with_a_claim(void)
{
    bide_log_operation operation;
    bide_log_claim claim;
    bide_log *log = misused_log();
    (void)bide_sync_wait(bide_log_reserve(&operation, log, 1, &claim));
    bide_log_destroy(log);
}

static void a_log_in_use_is_not_destroyed(void **state)
{
    (void)state;
    bide_log_destroy(NULL);
    assert_true(misuse_aborts_naming(destroy_with_a_consumer, "has consumers", "bide_log_destroy"));
    assert_true(misuse_aborts_naming(destroy_with_a_claim, "claim is held", "bide_log_destroy"));
}

/* ---- URLs and positions ---- */

static void urls_are_checked(void **state)
{
    (void)state;
    static const struct {
        const char *url;
        int status;
        const char *problem; /* a part of it */
    } rows[] = {
        {"ring:", 0, ""},
        {"ring:?", -EINVAL, "option"},
        {"ring:name", 0, ""},
        {"ring:%6eame?level=sent&window=16&size=1", 0, ""},
        {"ring:?window=1048576&size=1", 0, ""},
        {"", -EPROTONOSUPPORT, "no such engine"},
        {"ring", -EPROTONOSUPPORT, "no such engine"},
        {"rin:x", -EPROTONOSUPPORT, "rin:x: no such engine"},
        {"rings:x", -EPROTONOSUPPORT, "no such engine"},
        {"ring:%0", -EINVAL, "name"},
        {"ring:%00", -EINVAL, "name"},
        {"ring:%g1", -EINVAL, "name"},
        {"ring:0123456789012345678901234567890123456789012345678901234567890123", -EINVAL, "63"},
        {"ring:x?level=stored", -ENOTSUP, "ring:x: the engine does not give this level"},
        {"ring:x?level=majority", -ENOTSUP, "level"},
        {"ring:x?level=synced", -ENOTSUP, "level=synced"},
        {"ring:x?level=", -EINVAL, "level"},
        {"ring:x?level=best", -EINVAL, "level=best"},
        {"ring:x?window=0", -EINVAL, "window=0"},
        {"ring:x?window=1", -EINVAL, "power of two"},
        {"ring:x?window=12", -EINVAL, "power of two"},
        {"ring:x?window=16777217", -EINVAL, "window"},
        {"ring:x?window=33554432", -EINVAL, "window"},
        {"ring:x?window=4294967298", -EINVAL, "window"},
        {"ring:x?window=-2", -EINVAL, "window"},
        {"ring:x?window=2x", -EINVAL, "window"},
        {"ring:x?window=", -EINVAL, "window"},
        {"ring:x?window", -EINVAL, "window"},
        {"ring:x?size=0", -EINVAL, "size"},
        {"ring:x?size=1073741825", -EINVAL, "size"},
        {"ring:x?window=2&window=2", -EINVAL, "window=2"},
        {"ring:x?segment=4096", -EINVAL, "segment=4096"},
        {"ring:x?create=yes", 0, ""},
        {"ring:x?create=no", -ENOENT, "ring:x: there is no log"},
        {"ring:?create=no", -ENOENT, "there is no log"},
        {"ring:x?create=", -EINVAL, "create="},
        {"ring:x?create=1", -EINVAL, "create=1"},
        {"ring:x?create=no&create=no", -EINVAL, "create=no"},
        {"file:///none/of/these?create=no", -ENOENT, "there is no log"},
        {"file:", -EINVAL, "file:///DIRECTORY"},
        {"file:x", -EINVAL, "file:///DIRECTORY"},
        {"file://host/x", -EINVAL, "file:///DIRECTORY"},
        {"file:///none/of/these", -ENOENT, "No such file"},
        {"file:///x?level=majority", -ENOTSUP, "level"},
        {"file:///x?segment=4095", -EINVAL, "segment=4095"},
        {"file:///x?retain=18446744073709551616", -EINVAL, "retain"},
        {"file:///x?keep_for=0", -EINVAL, "keep_for=0"},
        {"file:///x?keep_for=4294967297", -EINVAL, "keep_for"},
#if BIDE_LOG_HAS_SHM
        {"shm:", -EINVAL, "shm:///NAME"},
        {"shm:x", -EINVAL, "shm:///NAME"},
        {"shm://host/x", -EINVAL, "shm:///NAME"},
        {"shm:///", -EINVAL, "shm:///NAME"},
        {"shm:///a/b", -EINVAL, "shm:///NAME"},
        {"shm:///a%2fb", -EINVAL, "shm:///NAME"},
        {"shm:///.", -EINVAL, "shm:///NAME"},
        {"shm:///x?window=3", -EINVAL, "power of two"},
        {"shm:///x?window=1", -EINVAL, "power of two"},
        {"shm:///x?level=synced", -ENOTSUP, "level=synced"},
        {"shm:///x?level=majority", -ENOTSUP, "level=majority"},
        {"shm:///x?retain=4096", -EINVAL, "retain=4096"},
#else
        {"shm:///x", -EPROTONOSUPPORT, "no such engine"},
#endif
        {"ring:x?keep_for=60", -EINVAL, "keep_for=60"},
        {"ring:x?colour=red", -EINVAL, "colour=red"},
        {"ring:x?window=2&", -EINVAL, "option"},
        {"ring:x?a-name-that-is-longer-than-any-option=1", -EINVAL, "option"},
    };
    struct fixture it;
    open_it(&it, &engines[0], "");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        bide_log_operation operation;
        bide_log *log;
        int status = wait_for(&it, bide_log_open(&operation, &log, rows[i].url));
        if (status != rows[i].status || strstr(operation.problem, rows[i].problem) == NULL)
            fail_msg("%s: %d, %s", rows[i].url, status, operation.problem);
        assert_true((log != NULL) == (status == 0));
        bide_log_destroy(log);
    }
    char long_name[600] = "ring:";
    memset(long_name + 5, 'x', sizeof long_name - 6);
    bide_log_operation operation;
    bide_log *log;
    assert_int_equal(wait_for(&it, bide_log_open(&operation, &log, long_name)), -EINVAL);
    close_it(&it);
}

/* Opens the log of the test, or another one at its place. */
static void check_creation(struct fixture *it, const char *options, int status, bool is_there)
{
    bide_log *before = it->log;
    struct stat about;
    char object[80];
    snprintf(object, sizeof object, "/dev/shm%s", it->object.name);
    const char *path = it->engine->has_directory ? it->directory.path : object;
    assert_int_equal(try_open(it, options), status);
    assert_int_equal(it->log != NULL, status == 0);
    assert_int_equal(stat(path, &about) == 0, is_there);
    bide_log_destroy(it->log);
    it->log = before;
}

static void a_log_that_must_exist_is_not_made(void **state)
{
    (void)state;
    for (int e = 0; e < ENGINES; e++) {
        struct fixture it;
        if (!engines[e].has_directory && !engines[e].has_object)
            continue; /* urls_are_checked and a_ring_is_shared_by_its_name */
        open_it(&it, &engines[e], "");
        check_creation(&it, "?create=no", 0, true); /* it is open */
        assert_int_equal(publish(&it, "kept"), 0);
        bide_log_destroy(it.log);
        it.log = NULL;
        check_creation(&it, "?create=no", 0, true);
        if (engines[e].has_directory)
            log_directory_empty(it.directory.path);
        else
            log_object_remove(&it.object);
        check_creation(&it, "?create=no", -ENOENT, false);
        if (engines[e].has_directory) {
            assert_int_equal(mkdir(it.directory.path, 0700), 0);
            check_creation(&it, "?create=no", -ENOENT, true);
            assert_int_equal(rmdir(it.directory.path), 0); /* it is empty */
        }
        assert_int_equal(try_open(&it, "?create=yes"), 0);
        close_it(&it);
    }
}

static void a_ring_is_shared_by_its_name(void **state)
{
    (void)state;
    struct fixture it, other = {0};
    bide_log_consumer consumer, own;
    bide_log_message read[4];
    struct runner waiting;
    bide_sim_loop_init(&it.loop, 1);
    it.engine = &(struct engine){"ring", "ring:shared", "", false, false, true};
    assert_int_equal(try_open(&it, "?window=4"), 0);
    bide_log *first = it.log;
    assert_int_equal(bide_log_level_of(first), BIDE_LOG_SENT);
    assert_int_equal(try_open(&it, "?window=8"), -EEXIST);
    assert_null(it.log);
    assert_int_equal(try_open(&it, "?size=8"), -EEXIST);
    assert_int_equal(try_open(&it, "?create=no"), 0);
    other.log = it.log;
    assert_int_equal(bide_log_window(other.log), 4);
    it.log = first;
    publish_all(&it, "abcd");
    it.log = other.log;
    subscribe(&it, &consumer, "g");
    expect(&it, &consumer, read, "abcd");

    /* a publish of one handle waits for a group of the other; closing its handle ends it */
    waiting.message = message_of("e");
    spawn(&it, &waiting, bide_log_publish(&waiting.operation, first, &waiting.message, 1));
    turn(&it);
    bide_log_close(other.log);
    turn(&it);
    assert_false(waiting.has_ended);
    assert_int_equal(acknowledge(&it, &consumer, read, 1, 1), 0);
    assert_int_equal(ended(&it, &waiting), 0);
    bide_log_unsubscribe(&consumer);
    bide_log_destroy(other.log);
    it.log = first;
    subscribe(&it, &own, "g");
    expect(&it, &own, read, "bcde"); /* the group stays while the ring does */
    bide_log_unsubscribe(&own);
    bide_log_destroy(first);
    assert_int_equal(try_open(&it, "?window=8"), 0); /* a new one */
    close_it(&it);
}
#endif

static void groups_are_checked(void **state)
{
    (void)state;
    static const char name[] = "0123456789012345678901234567890123456789012345678901234567890123";
    struct fixture it;
    bide_log_operation operation;
    bide_log_consumer consumer;
    open_it(&it, &engines[0], "");
    const bide_log_consumer_options rows[] = {
        {.group = ""}, {.group = name}, {.from = (bide_log_from)(BIDE_LOG_FROM_TIME + 1)}};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(wait_for(&it, bide_log_subscribe(&operation, &consumer, it.log, &rows[i])),
                         -EINVAL);
        assert_null(consumer.group);
    }
    subscribe(&it, &consumer, name + 1);
    bide_log_unsubscribe(&consumer);
    close_it(&it);
}

#if !LOG_TEST_REDIS
static void positions_are_printed_and_parsed(void **state)
{
    (void)state;
    static const bide_log_position positions[] = {
        {0, 0}, {0, 1}, {0, UINT64_MAX}, {1, 0}, {UINT64_MAX, UINT64_MAX}};
    static const struct {
        const char *text;
        int status;
    } rows[] = {
        {"", -EINVAL},
        {"1", -EINVAL},
        {"-", -EINVAL},
        {"1-", -EINVAL},
        {"-1", -EINVAL},
        {"01-1", -EINVAL},
        {"1-01", -EINVAL},
        {"1-1 ", -EINVAL},
        {" 1-1", -EINVAL},
        {"+1-1", -EINVAL},
        {"1-1-1", -EINVAL},
        {"1--1", -EINVAL},
        {"0x1-1", -EINVAL},
        {"1-x", -EINVAL},
        {"18446744073709551616-0", -ERANGE},
        {"0-18446744073709551616", -ERANGE},
        {"0-99999999999999999999999", -ERANGE},
    };
    for (int i = 0; i < 5; i++) {
        char text[BIDE_LOG_POSITION_TEXT];
        bide_log_position parsed;
        assert_int_equal(bide_log_position_print(positions[i], text, sizeof text), 0);
        assert_int_equal(bide_log_position_parse(&parsed, text), 0);
        assert_int_equal(bide_log_position_compare(parsed, positions[i]), 0);
        assert_int_equal(bide_log_position_print(positions[i], text, strlen(text)), -EMSGSIZE);
        for (int k = 0; k < 5; k++) {
            int order = bide_log_position_compare(positions[i], positions[k]);
            assert_int_equal(order < 0 ? -1 : order > 0, i < k ? -1 : i > k);
        }
    }
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        bide_log_position parsed = {7, 7};
        assert_int_equal(bide_log_position_parse(&parsed, rows[i].text), rows[i].status);
        assert_true(parsed.high_ == 7 && parsed.low_ == 7);
    }
}

/* ---- A group against a model ---- */

enum { MODEL_WINDOW = 8, MODEL_CONSUMERS = 3, MODEL_MESSAGES = 1 << 14 };
enum model_state { UNSEEN, WITH, REJECTED, DONE };

struct model {
    enum model_state state[MODEL_MESSAGES];
    int owner[MODEL_MESSAGES];
    uint32_t deliveries[MODEL_MESSAGES];
    uint64_t published;
};

/* The message that is delivered next, or 0. */
static uint64_t model_next(const struct model *model)
{
    for (uint64_t n = 1; n <= model->published; n++) {
        if (model->state[n] == REJECTED)
            return n;
    }
    for (uint64_t n = 1; n <= model->published; n++) {
        if (model->state[n] == UNSEEN)
            return n;
    }
    return 0;
}

static uint64_t model_lag(const struct model *model)
{
    uint64_t first = 1;
    while (first <= model->published && model->state[first] == DONE)
        first++;
    return model->published - (first - 1);
}

static void a_group_does_what_a_simple_one_does(void **state)
{
    (void)state;
    static struct model model;
    uint64_t random = testing_seed();
    for (unsigned e = 0; e < ENGINES; e++) {
        struct fixture it;
        bide_log_operation operation;
        bide_log_consumer consumers[MODEL_CONSUMERS];
        memset(&model, 0, sizeof model);
        open_it(&it, &engines[e], "?window=8&size=8");
        for (int i = 0; i < MODEL_CONSUMERS; i++)
            subscribe(&it, &consumers[i], "g");
        uint32_t rounds = rounds_of(2000);
        for (uint32_t round = 0; round < rounds && model.published < MODEL_MESSAGES - 9; round++) {
            uint64_t drawn = testing_random(&random);
            int who = (int)((drawn >> 8) % MODEL_CONSUMERS);
            uint64_t done = model.published - model_lag(&model);
            uint64_t number = done + 1 + (drawn >> 16) % MODEL_WINDOW;
            bide_log_message message = {.position = {.low_ = number}};
            bool has = number <= model.published && model.state[number] == WITH &&
                       model.owner[number] == who;
            uint64_t lag;
            switch (drawn % 6) {
            case 0:
            case 1:
                if (model_lag(&model) == MODEL_WINDOW)
                    break;
                model.published++;
                message = (bide_log_message){.data = &model.published, .size = 8};
                assert_int_equal(wait_for(&it, bide_log_publish(&operation, it.log, &message, 1)),
                                 0);
                assert_true(message.published.low_ == model.published);
                break;
            case 2:
                number = model_next(&model);
                if (number == 0) {
                    expect_nothing(&it, &consumers[who]);
                    break;
                }
                assert_int_equal(
                    wait_for(&it, bide_log_read(&operation, &consumers[who], &message, 1)), 0);
                assert_true(message.position.low_ == number);
                assert_memory_equal(message.data, &number, 8);
                model.state[number] = WITH;
                model.owner[number] = who;
                assert_int_equal(message.deliveries, ++model.deliveries[number]);
                break;
            case 3:
                assert_int_equal(acknowledge(&it, &consumers[who], &message, 1, has),
                                 has ? 0 : -ESTALE);
                if (has)
                    model.state[number] = DONE;
                break;
            case 4:
                assert_int_equal(reject(&it, &consumers[who], &message, 1, 0), has ? 0 : -ESTALE);
                if (has)
                    model.state[number] = REJECTED;
                break;
            default:
                if ((drawn >> 32) % 8 != 0)
                    break;
                bide_log_unsubscribe(&consumers[who]);
                for (uint64_t n = 1; n <= model.published; n++) {
                    if (model.state[n] == WITH && model.owner[n] == who)
                        model.state[n] = REJECTED;
                }
                subscribe(&it, &consumers[who], "g");
                break;
            }
            assert_int_equal(bide_log_lag(it.log, "g", &lag), 0);
            assert_true(lag == model_lag(&model));
        }
        for (int i = 0; i < MODEL_CONSUMERS; i++)
            bide_log_unsubscribe(&consumers[i]);
        close_it(&it);
    }
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
#if LOG_TEST_STDIO /* those without names of groups and replay (message_log_stdio_test.c has the rest) */
        cmocka_unit_test(messages_are_read_as_they_were_published),
        cmocka_unit_test(messages_that_do_not_fit_are_refused),
        cmocka_unit_test(waiting_publishes_keep_their_order),
        cmocka_unit_test(a_rejected_message_comes_again_after_its_delay),
        cmocka_unit_test(each_operation_ends_once_in_each_way),
#else
        cmocka_unit_test(messages_are_read_as_they_were_published),
        cmocka_unit_test(messages_that_do_not_fit_are_refused),
        cmocka_unit_test(a_publish_waits_for_the_slowest_group),
        cmocka_unit_test(a_small_publish_does_not_overtake_a_large_one),
        cmocka_unit_test(waiting_publishes_keep_their_order),
        cmocka_unit_test(claims_keep_their_room),
        cmocka_unit_test(each_group_has_each_message_once),
        cmocka_unit_test(what_a_consumer_leaves_goes_to_another),
        cmocka_unit_test(a_rejected_message_comes_again_after_its_delay),
        cmocka_unit_test(acknowledgements_are_of_what_the_consumer_has),
        cmocka_unit_test(a_new_group_begins_where_it_is_asked_to),
        cmocka_unit_test(a_claim_moves_the_oldest_message),
        cmocka_unit_test(each_operation_ends_once_in_each_way),
        cmocka_unit_test(a_closed_log_is_drained),
        cmocka_unit_test(what_a_destroyed_coroutine_has_goes_back),
#if !LOG_TEST_REAL
        cmocka_unit_test(what_a_destroyed_call_has_brought_goes_back),
        cmocka_unit_test(a_cancelled_publish_keeps_its_room_until_it_is_written),
        cmocka_unit_test(a_closed_handle_ends_behind_what_a_cancelled_publish_left),
        cmocka_unit_test(a_log_in_use_is_not_destroyed),
        cmocka_unit_test(urls_are_checked),
        cmocka_unit_test(a_log_that_must_exist_is_not_made),
        cmocka_unit_test(a_ring_is_shared_by_its_name),
        cmocka_unit_test(positions_are_printed_and_parsed),
        cmocka_unit_test(a_group_does_what_a_simple_one_does),
#endif
        cmocka_unit_test(groups_are_checked),
#endif
    };
#if LOG_TEST_REDIS
    if (redis_server_missing() != 0)
        return redis_server_missing();
    redis_server_start(&server, NULL, NULL);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    redis_server_end(&server);
    return failed;
#else
    return cmocka_run_group_tests(tests, NULL, NULL);
#endif
}

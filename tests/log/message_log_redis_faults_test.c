/*
 * Message logs in streams of a Redis server, which is killed, stopped and cut off: what is published is read at least
 * once, nothing else is read, and each failure says whether the messages may have been published.
 */
#define _GNU_SOURCE
#include "log_redis_calls.h"

#include <sys/socket.h>

/* ---- System calls that fail ---- */

static bide_atomic(int) calls_left; /* then one fails; 0: none does */

static bool call_fails(void)
{
    int left = bide_atomic_load(&calls_left, relaxed);
    return left > 0 && bide_atomic_fetch_sub(&calls_left, 1, relaxed) == 1;
}

ssize_t __real_send(int descriptor, const void *bytes, size_t size, int flags);
ssize_t __wrap_send(int descriptor, const void *bytes, size_t size, int flags);
ssize_t __real_recv(int descriptor, void *bytes, size_t size, int flags);
ssize_t __wrap_recv(int descriptor, void *bytes, size_t size, int flags);
int __real_connect(int descriptor, const struct sockaddr *address, socklen_t size);
int __wrap_connect(int descriptor, const struct sockaddr *address, socklen_t size);

ssize_t __wrap_send(int descriptor, const void *bytes, size_t size, int flags)
{
    if (call_fails()) {
        errno = ECONNRESET;
        return -1;
    }
    return __real_send(descriptor, bytes, size, flags);
}

ssize_t __wrap_recv(int descriptor, void *bytes, size_t size, int flags)
{
    if (call_fails()) {
        errno = ECONNRESET;
        return -1;
    }
    return __real_recv(descriptor, bytes, size, flags);
}

int __wrap_connect(int descriptor, const struct sockaddr *address, socklen_t size)
{
    if (call_fails()) {
        errno = ECONNREFUSED;
        return -1;
    }
    return __real_connect(descriptor, address, size);
}

/* ---- Faults ---- */

enum { PUBLISHED_MAX = 400 };

/* What was published, by its number: certainly, perhaps, or not. */
struct history {
    bool is_certain[PUBLISHED_MAX];
    bool is_perhaps[PUBLISHED_MAX];
    unsigned reads[PUBLISHED_MAX];
    int count;
};

static int publish_next(bide_log *log, struct history *history)
{
    char text[16];
    bool uncertain = false;
    int number = history->count++;
    assert_true(number < PUBLISHED_MAX);
    snprintf(text, sizeof text, "%d", number);
    int status = publish_one(log, text, &uncertain);
    history->is_certain[number] = status == 0;
    history->is_perhaps[number] = status < 0 && uncertain;
    return status;
}

static int number_of(const bide_log_message *message, const struct history *history)
{
    char text[16] = "";
    assert_true(message->size < sizeof text);
    memcpy(text, message->data, message->size);
    int number = atoi(text);
    assert_in_range(number, 0, history->count - 1);
    return number;
}

/* Reads all that is in the group, and checks that it is what was published. */
static void check_history(const struct redis_server *at, const char *rest, struct history *history)
{
    bide_log_consumer consumer;
    uint64_t lag = 1;
    bide_log *log = open_log(at, rest);
    subscribe(log, &consumer, "g");
    while (bide_log_lag(log, "g", &lag) == 0 && lag != 0) {
        bide_log_message messages[16];
        uint32_t count = 0;
        assert_int_equal(read_for(&consumer, messages, 16, SOON, &count), 0);
        for (uint32_t i = 0; i < count; i++) {
            history->reads[number_of(&messages[i], history)]++;
        }
        assert_int_equal(acknowledge(&consumer, messages, count), 0);
    }
    assert_int_equal(lag, 0);
    for (int i = 0; i < history->count; i++) {
        if (history->is_certain[i] && history->reads[i] != 1)
            fail_msg("message %d was published, and read %u times", i, history->reads[i]);
        if (!history->is_certain[i] && !history->is_perhaps[i] && history->reads[i] != 0)
            fail_msg("message %d was not published, and read", i);
        assert_true(history->reads[i] <= 1); /* a publish is sent once */
    }
    bide_log_unsubscribe(&consumer);
    close_log(log);
}

static void each_call_that_fails_is_reported(void **state)
{
    (void)state;
    static struct history history;
    int failures = 0;
    memset(&history, 0, sizeof history);
    redis_do(&server, "FLUSHALL", "+OK");
    redis_do(&server, "XGROUP CREATE s g 0 MKSTREAM", "+OK");
    for (int n = 1; n <= 60; n++) {
        bide_log *log = open_log(&server, "s");
        bide_log_consumer consumer;
        bide_log_message message;
        uint32_t count = 0;
        subscribe(log, &consumer, "other");
        bide_atomic_store(&calls_left, n, relaxed);
        failures += publish_next(log, &history) < 0;
        (void)publish_next(log, &history);
        int status = read_for(&consumer, &message, 1, SOON, &count);
        if (status == 0) {
            status = acknowledge(&consumer, &message, 1);
            assert_true(status == 0 || status == -ECONNRESET || status == -ECONNREFUSED);
        } else {
            assert_true(status == -ECONNRESET || status == -ECONNREFUSED);
        }
        bide_atomic_store(&calls_left, 0, relaxed);
        bide_log_unsubscribe(&consumer);
        close_log(log);
    }
    assert_true(failures > 0);
    check_history(&server, "s", &history);
}

static void clients_that_the_server_cuts_off_come_back(void **state)
{
    (void)state;
    static struct history history;
    bide_log_consumer consumer;
    memset(&history, 0, sizeof history);
    redis_do(&server, "FLUSHALL", "+OK");
    bide_log *log = open_log(&server, "s?redeliver=1");
    subscribe(log, &consumer, "g");
    for (int i = 0; i < 20; i++) {
        redis_do(&server, "CLIENT KILL TYPE normal", ":");
        if (publish_next(log, &history) < 0) /* otherwise the end was seen before it was sent */
            assert_true(history.is_perhaps[i]);
    }
    for (int i = 0; i < 10; i++) {
        bide_log_message messages[2];
        uint32_t count = 0;
        redis_do(&server, "CLIENT KILL TYPE normal", ":");
        assert_int_equal(read_for(&consumer, messages, 2, SOON, &count), 0);
        for (uint32_t k = 0; k < count; k++)
            history.reads[number_of(&messages[k], &history)]++;
        redis_do(&server, "CLIENT KILL TYPE normal", ":");
        assert_int_equal(acknowledge(&consumer, messages, count), 0);
    }
    bide_log_unsubscribe(&consumer);
    close_log(log);
    check_history(&server, "s", &history);
}

/*
 * A handle that gives a server up soon, and a consumer of its own: tried until it was not too late. What has to succeed is done
 * by a handle that waits long, whatever else the machine does.
 */
static bide_log *open_short(const struct redis_server *at, bide_log_consumer *consumer)
{
    const bide_log_consumer_options options = {.group = "short"};
    bide_log_operation operation;
    bide_log *log = NULL;
    while (try_open(&log, at, "s?timeout=1", &operation) == -ECONNABORTED)
        ;
    assert_non_null(log);
    while (bide_sync_wait(bide_log_subscribe(&operation, consumer, log, &options)) < 0)
        ;
    return log;
}

static void a_server_that_was_killed_loses_nothing_that_was_synced(void **state)
{
    (void)state;
    static struct history history;
    struct redis_server always;
    bide_log_consumer consumer;
    memset(&history, 0, sizeof history);
    redis_server_start(&always, "always", NULL);
    bide_log *log = open_log(&always, "s?level=synced&timeout=60");
    bide_log *soon = open_short(&always, &consumer);
    for (int round = 0; round < 5; round++) {
        bool uncertain = true;
        for (int i = 0; i < 10; i++)
            assert_int_equal(publish_next(log, &history), 0);
        redis_server_kill(&always);
        assert_int_equal(publish_one(soon, "none", &uncertain), -ECONNREFUSED);
        assert_false(uncertain); /* it was not sent */
        bide_log_message message;
        uint32_t count;
        assert_int_equal(read_for(&consumer, &message, 1, SOON, &count), -ECONNREFUSED);
        assert_true(redis_server_run(&always));
    }
    bide_log_unsubscribe(&consumer);
    close_log(soon);
    close_log(log);
    check_history(&always, "s", &history);
    redis_server_end(&always);
}

static void a_server_that_stands_still_is_given_up(void **state)
{
    (void)state;
    static struct history history;
    bide_log_consumer consumer;
    bide_log_message message;
    uint32_t count;
    memset(&history, 0, sizeof history);
    redis_do(&server, "FLUSHALL", "+OK");
    bide_log *log = open_log(&server, "s?timeout=1");
    subscribe(log, &consumer, "other");
    assert_int_equal(publish_next(log, &history), 0);
    (void)expect(&consumer, "0");
    assert_int_equal(kill(server.pid, SIGSTOP), 0);
    assert_int_equal(publish_next(log, &history), -ECONNABORTED);
    assert_true(history.is_perhaps[1]);
    assert_int_equal(read_for(&consumer, &message, 1, SOON, &count), -ECONNABORTED);
    assert_int_equal(kill(server.pid, SIGCONT), 0);
    assert_int_equal(publish_next(log, &history), 0);
    bide_log_unsubscribe(&consumer);
    close_log(log);
    check_history(&server, "s", &history);
    assert_int_equal(history.reads[1], 1); /* the server had it in its socket */
}

/* A coroutine that is cancelled while the server stands still ends at the latest with its call. */
static void a_wait_for_a_server_that_stands_still_is_cancelled(void **state)
{
    (void)state;
    bide_log_operation operation;
    bide_with_deadline_operation limited;
    bide_log_message message = {.data = "x", .size = 1};
    redis_do(&server, "FLUSHALL", "+OK");
    bide_log *log = open_log(&server, "s?timeout=2");
    assert_int_equal(publish_one(log, "first", NULL), 0);
    assert_int_equal(kill(server.pid, SIGSTOP), 0);
    int status = bide_sync_wait(
        bide_with_timeout(&limited, SECOND / 10, bide_log_publish(&operation, log, &message, 1)));
    assert_int_equal(status, -ECONNABORTED); /* what became of it */
    assert_true(operation.uncertain);
    assert_int_equal(kill(server.pid, SIGCONT), 0);
    close_log(log);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_call_that_fails_is_reported),
        cmocka_unit_test(clients_that_the_server_cuts_off_come_back),
        cmocka_unit_test(a_server_that_was_killed_loses_nothing_that_was_synced),
        cmocka_unit_test(a_server_that_stands_still_is_given_up),
        cmocka_unit_test(a_wait_for_a_server_that_stands_still_is_cancelled),
    };
    if (redis_server_missing() != 0)
        return redis_server_missing();
    redis_server_start(&server, NULL, NULL);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    redis_server_end(&server);
    return failed;
}

/*
 * Message logs in streams of a Redis server: entries, options, levels, and consumers of several processes. The contract
 * is in message_log_test.c; what fails, in message_log_redis_faults_test.c.
 */
#define _GNU_SOURCE
#include "log_redis_calls.h"

#include "../../src/log/state.h"

/* ---- What is in the stream ---- */

static void messages_are_entries_that_others_can_read(void **state)
{
    (void)state;
    char reply[4096];
    bide_log_operation operation;
    redis_do(&server, "FLUSHALL", "+OK");
    bide_log *log = open_log(&server, "orders");
    const bide_log_header header = {"type", 4, "new", 3};
    bide_log_message message = {.data = "body",
                                .size = 4,
                                .key = "k1",
                                .key_size = 2,
                                .headers = &header,
                                .header_count = 1};
    assert_int_equal(bide_sync_wait(bide_log_publish(&operation, log, &message, 1)), 0);
    redis_command(&server, "XRANGE orders - +", reply, sizeof reply);
    char text[BIDE_LOG_POSITION_TEXT];
    assert_int_equal(bide_log_position_print(message.published, text, sizeof text), 0);
    assert_non_null(strstr(reply, text)); /* a position is the entry's ID */
    assert_non_null(strstr(reply, "$4\r\ndata\r\n$4\r\nbody\r\n$3\r\nkey\r\n$2\r\nk1\r\n"
                                  "$6\r\nh:type\r\n$3\r\nnew\r\n"));

    bide_log_consumer consumer;
    subscribe(log, &consumer, NULL);
    (void)expect(&consumer, "body");
    redis_do(&server, "XADD orders * colour red data theirs", "$");
    message = expect(&consumer, "theirs"); /* other fields are headers */
    size_t at = 0;
    bide_log_header read;
    assert_true(bide_log_next_header(&message, &at, &read));
    assert_memory_equal(read.name, "colour", read.name_size);
    assert_memory_equal(read.value, "red", read.value_size);
    bide_log_unsubscribe(&consumer);
    close_log(log);
}

static void an_entry_that_is_too_large_is_reported_and_passed_over(void **state)
{
    (void)state;
    static const char *const groups[] = {NULL, "g"};
    for (int i = 0; i < 2; i++) {
        bide_log_message messages[4];
        bide_log_consumer consumer;
        uint32_t count;
        redis_do(&server, "FLUSHALL", "+OK");
        bide_log *log = open_log(&server, "large?size=16");
        subscribe(log, &consumer, groups[i]);
        redis_do(&server, "XADD large 5-1 data one", "$");
        redis_do(&server, "XADD large 5-2 data 0123456789abcdefg", "$");
        redis_do(&server, "XADD large 5-3 data three", "$");
        assert_int_equal(read_for(&consumer, messages, 4, SOON, &count), 0);
        assert_int_equal(count, 2);
        assert_memory_equal(messages[1].data, "three", 5);
        assert_int_equal(read_for(&consumer, messages, 4, SOON, &count), -EBADMSG);
        assert_int_equal(messages[0].position.high_, 5);
        assert_int_equal(messages[0].position.low_, 2);
        redis_do(&server, "XADD large 5-4 data four", "$");
        (void)expect(&consumer, "four");
        bide_log_unsubscribe(&consumer);
        close_log(log);
    }
}

static void old_messages_are_removed(void **state)
{
    (void)state;
    char reply[64];
    redis_do(&server, "FLUSHALL", "+OK");
    redis_do(&server, "CONFIG SET stream-node-max-entries 10", "+OK");
    bide_log *log = open_log(&server, "kept?keep=20");
    for (int i = 0; i < 100; i++)
        assert_int_equal(publish_one(log, "x", NULL), 0);
    redis_command(&server, "XLEN kept", reply, sizeof reply);
    assert_in_range(atoi(reply + 1), 20, 40); /* the server removes nodes of 10 */
    close_log(log);
    redis_do(&server, "XADD kept 18446744073709551615-1 data future", "$");
    redis_do(&server, "DEL kept", ":1");
    redis_do(&server, "XADD kept 1-1 data past", "$");
    for (int i = 2; i < 40; i++) {
        char line[64];
        snprintf(line, sizeof line, "XADD kept 1-%d data past", i);
        redis_do(&server, line, "$");
    }
    log = open_log(&server, "kept?keep_for=3600");
    assert_int_equal(publish_one(log, "new", NULL), 0);
    redis_command(&server, "XLEN kept", reply, sizeof reply);
    assert_in_range(atoi(reply + 1), 1, 10);
    close_log(log);
}

/* ---- Opening ---- */

static void urls_and_servers_are_checked(void **state)
{
    (void)state;
    static const struct {
        const char *rest;
        int status;
        const char *problem;
    } rows[] = {
        {"s?level=synced", -ENOTSUP, "level=synced needs appendonly yes, it has no"},
        {"s?level=majority", -ENOTSUP, "level=majority needs replicas=N"},
        {"s?level=majority&replicas=2", -ENOTSUP, "needs 1 connected replicas, it has 0"},
        {"s?level=sent", 0, ""},
        {"list", -EEXIST, "the key is a list"},
        {"", -EINVAL, "not redis://"},
        {"s?segment=4096", -EINVAL, "segment=4096"},
        {"s?retain=4096", -EINVAL, "retain=4096"},
        {"s?keep=0", -EINVAL, "keep=0"},
        {"s?redeliver=0", -EINVAL, "redeliver=0"},
        {"s?redeliver=86401", -EINVAL, "redeliver=86401"},
        {"s?timeout=3601", -EINVAL, "timeout=3601"},
        {"s?replicas=101", -EINVAL, "replicas=101"},
    };
    redis_do(&server, "FLUSHALL", "+OK");
    redis_do(&server, "RPUSH list 1", ":1");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        bide_log_operation operation;
        bide_log *log;
        int status = try_open(&log, &server, rows[i].rest, &operation);
        if (status != rows[i].status || strstr(operation.problem, rows[i].problem) == NULL)
            fail_msg("%s: %d, %s", rows[i].rest, status, operation.problem);
        bide_log_destroy(log);
    }
    static const struct {
        const char *url;
        int status;
    } others[] = {
        {"redis:s", -EINVAL},
        {"redis://", -EINVAL},
        {"redis://host", -EINVAL},
        {"redis:///s", -EINVAL},
        {"redis://host:0/s", -EINVAL},
        {"redis://host:65536/s", -EINVAL},
        {"redis://host:6x/s", -EINVAL},
        {"redis://user:secret@host:6x/s", -EINVAL},
        {"redis://user:secret@host/s?colour=red", -EINVAL},
        {"redis://user:secret@host/%00", -EINVAL},
        {"redis://secret@host/s", -EINVAL},
        {"redis://user:@host/s", -EINVAL},
        {"redis://[::1/s", -EINVAL},
        {"redis://[::1]x/s", -EINVAL},
        {"redis://user:secret@127.0.0.1:1/s?timeout=1", -ECONNREFUSED},
    };
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        bide_log_operation operation;
        bide_log *log;
        assert_int_equal(bide_sync_wait(bide_log_open(&operation, &log, others[i].url)),
                         others[i].status);
        assert_true(operation.problem[0] != '\0');
        assert_null(strstr(operation.problem, "secret"));
    }
}

static void a_password_is_asked_for(void **state)
{
    (void)state;
    bide_log *log;
    bide_log_operation operation;
    char url[128];
    redis_do(&server, "ACL SETUSER ann on >p@ss ~* +@all", "+OK");
    redis_do(&server, "ACL SETUSER default resetpass >other", "+OK");
    assert_int_equal(try_open(&log, &server, "s", &operation), -EACCES);
    assert_non_null(strstr(operation.problem, "NOAUTH"));
    snprintf(url, sizeof url, "redis://ann:wrong@127.0.0.1:%s/s", server.port);
    assert_int_equal(bide_sync_wait(bide_log_open(&operation, &log, url)), -EACCES);
    assert_non_null(strstr(operation.problem, "WRONGPASS"));
    snprintf(url, sizeof url, "redis://ann:p%%40ss@127.0.0.1:%s/s", server.port);
    assert_int_equal(bide_sync_wait(bide_log_open(&operation, &log, url)), 0);
    assert_int_equal(publish_one(log, "x", NULL), 0);
    close_log(log);
    snprintf(url, sizeof url, "redis://:other@127.0.0.1:%s/s", server.port);
    assert_int_equal(bide_sync_wait(bide_log_open(&operation, &log, url)), 0);
    bide_log_destroy(log);
    char reply[256];
    redis_command(&server, "AUTH other\r\nACL SETUSER default nopass", reply, sizeof reply);
    redis_do(&server, "PING", "+PONG");
}

/* ---- Levels ---- */

static void each_level_is_what_the_server_can_give(void **state)
{
    (void)state;
    struct redis_server always, replica;
    char reply[512];
    bool uncertain;
    redis_server_start(&always, "always", NULL);
    bide_log *log = open_log(&always, "s?level=synced");
    assert_int_equal(bide_log_level_of(log), BIDE_LOG_SYNCED);
    assert_int_equal(publish_one(log, "x", NULL), 0);
    /* a server that syncs less does not get messages of that level, from the next connection on */
    redis_do(&always, "CONFIG SET appendfsync everysec", "+OK");
    redis_do(&always, "CLIENT KILL TYPE normal", ":");
    assert_int_equal(publish_one(log, "y", &uncertain), -ENOTSUP);
    assert_false(uncertain);
    close_log(log);

    redis_server_start(&replica, NULL, &always);
    do
        redis_command(&always, "INFO replication", reply, sizeof reply);
    while (strstr(reply, "state=online") == NULL);
    log = open_log(&always, "s?level=majority&replicas=1&timeout=1");
    assert_int_equal(publish_one(log, "z", NULL), 0);
    redis_command(&replica, "XRANGE s - +", reply, sizeof reply);
    assert_non_null(strstr(reply, "$1\r\nz\r\n")); /* it was there before the publish ended */
    assert_int_equal(kill(replica.pid, SIGSTOP), 0);
    assert_int_equal(publish_one(log, "late", &uncertain), -ECONNABORTED);
    assert_true(uncertain);
    assert_int_equal(kill(replica.pid, SIGCONT), 0);
    close_log(log);
    redis_server_end(&replica);
    redis_server_end(&always);
}

/* ---- Consumers of other processes ---- */

/* Reads one message of the group in a child, which is then killed. */
static void read_and_be_killed(const struct redis_server *at)
{
    int ready[2];
    char byte;
    assert_int_equal(pipe(ready), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        bide_log_consumer consumer;
        bide_log_message message;
        uint32_t count;
        bide_log *log = open_log(at, "s?redeliver=1");
        subscribe(log, &consumer, "g");
        bool is_read = read_for(&consumer, &message, 1, SOON, &count) == 0;
        (void)!write(ready[1], is_read ? "y" : "n", 1);
        for (;;)
            (void)pause();
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_int_equal(byte, 'y');
    close(ready[0]);
    close(ready[1]);
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
}

static void what_a_killed_process_had_goes_to_another(void **state)
{
    (void)state;
    bide_log_consumer consumer;
    redis_do(&server, "FLUSHALL", "+OK");
    redis_do(&server, "XADD s * data a", "$");
    redis_do(&server, "XADD s * data b", "$");
    redis_do(&server, "XGROUP CREATE s g 0", "+OK");
    read_and_be_killed(&server); /* before this process has threads of a log */
    bide_log *log = open_log(&server, "s?redeliver=1");
    subscribe(log, &consumer, "g");
    bide_log_message message = expect(&consumer, "b");
    assert_int_equal(message.deliveries, 1);
    assert_int_equal(acknowledge(&consumer, &message, 1), 0);
    message = expect(&consumer, "a"); /* its reader waits, and is woken when it may claim */
    assert_int_equal(message.deliveries, 2);
    assert_int_equal(acknowledge(&consumer, &message, 1), 0);
    uint64_t lag;
    assert_int_equal(bide_log_lag(log, "g", &lag), 0);
    assert_int_equal(lag, 0);
    bide_log_unsubscribe(&consumer);
    close_log(log);
}

/* For how long the group's message has not been renewed, in milliseconds. */
static long idle_time(void)
{
    char reply[256];
    redis_command(&server, "XPENDING s g - + 1", reply, sizeof reply);
    const char *number = strstr(reply, "\r\n:");
    assert_non_null(number);
    return atol(number + 3);
}

/* The message is renewed. Between two looks the server waits, for replicas that it does not have. */
static void wait_for_renewal(void)
{
    char reply[64];
    long before, now = idle_time();
    do {
        redis_command(&server, "WAIT 1 100", reply, sizeof reply);
        before = now;
        now = idle_time();
    } while (now >= before);
}

static void a_handle_keeps_what_it_has_for_longer_than_a_redeliver(void **state)
{
    (void)state;
    bide_log_consumer mine, other;
    bide_log_message message, none;
    uint32_t count;
    redis_do(&server, "FLUSHALL", "+OK");
    bide_log *log = open_log(&server, "s?redeliver=6");
    bide_log *second = open_log(&server, "s?redeliver=6");
    subscribe(log, &mine, "g");
    subscribe(second, &other, "g");
    assert_int_equal(publish_one(log, "a", NULL), 0);
    message = expect(&mine, "a");
    for (int renewals = 0; renewals < 4; renewals++)
        wait_for_renewal();
    assert_int_equal(read_for(&other, &none, 1, SECOND / 100, &count), -ETIMEDOUT);
    assert_int_equal(bide_log_remove_group(log, "g"), -EBUSY);
    bide_log_unsubscribe(&mine); /* hands it over: nobody waits for a `redeliver` */
    message = expect(&other, "a");
    assert_int_equal(message.deliveries, 2);
    assert_int_equal(acknowledge(&other, &message, 1), 0);
    bide_log_unsubscribe(&other);
    close_log(second);
    assert_int_equal(bide_log_remove_group(log, "g"), 0);
    assert_int_equal(bide_log_remove_group(log, "g"), -ENOENT);
    close_log(log);
}

struct reader {
    bide_task task;
    bide_log_consumer *consumer;
    bide_log_message message;
    bide_log_operation operation;
    int status;
};

static void *read_on_thread(void *argument)
{
    struct reader *reader = argument;
    reader->status =
        bide_sync_wait(bide_log_read(&reader->operation, reader->consumer, &reader->message, 1));
    return NULL;
}

/* The server has a client that waits for the stream. */
static void wait_for_watch(void)
{
    char reply[4096];
    do
        redis_command(&server, "CLIENT LIST", reply, sizeof reply);
    while (strstr(reply, "flags=b") == NULL);
}

static void a_reader_that_waits_is_woken(void **state)
{
    (void)state;
    static const char *const groups[] = {NULL, "g"};
    for (int i = 0; i < 4; i++) {
        struct reader reader = {.status = 1};
        pthread_t thread;
        bide_log_consumer consumer;
        redis_do(&server, "FLUSHALL", "+OK");
        bide_log *log = open_log(&server, "s?timeout=60");
        reader.consumer = &consumer;
        subscribe(log, &consumer, groups[i % 2]);
        assert_int_equal(pthread_create(&thread, NULL, read_on_thread, &reader), 0);
        wait_for_watch();
        if (i >= 2) /* the watch is made again */
            redis_do(&server, "CLIENT KILL TYPE normal", ":");
        redis_do(&server, "XADD s * data x", "$");
        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_int_equal(reader.status, 0);
        assert_memory_equal(reader.message.data, "x", 1);
        bide_log_unsubscribe(&consumer);
        close_log(log);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_killed_process_had_goes_to_another),
        cmocka_unit_test(messages_are_entries_that_others_can_read),
        cmocka_unit_test(an_entry_that_is_too_large_is_reported_and_passed_over),
        cmocka_unit_test(old_messages_are_removed),
        cmocka_unit_test(urls_and_servers_are_checked),
        cmocka_unit_test(a_password_is_asked_for),
        cmocka_unit_test(each_level_is_what_the_server_can_give),
        cmocka_unit_test(a_handle_keeps_what_it_has_for_longer_than_a_redeliver),
        cmocka_unit_test(a_reader_that_waits_is_woken),
    };
    if (redis_server_missing() != 0)
        return redis_server_missing();
    redis_server_start(&server, NULL, NULL);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    redis_server_end(&server);
    return failed;
}

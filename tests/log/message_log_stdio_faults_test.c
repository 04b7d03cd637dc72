/*
 * Message logs of standard input and output, of which each call and each allocation fails in turn: the error is reported,
 * or the call is made again, and nothing is left behind.
 */
#define _GNU_SOURCE
#include "faults.h"
#include "log_standard.h"

#include <bide/bide.h>
#include <bide/message_log.h>

#include <sys/socket.h>

enum kind { PIPE, SOCKET, KINDS };

static int read_lines(bide_log *log, const char *text)
{
    bide_log_operation operation;
    bide_log_consumer consumer;
    bide_log_message read;
    int status = bide_sync_wait(bide_log_subscribe(&operation, &consumer, log, NULL));
    if (status < 0) {
        assert_null(consumer.group);
        return status;
    }
    for (uint64_t line = 1; status == 0 && line <= 2; line++) {
        status = bide_sync_wait(bide_log_read(&operation, &consumer, &read, 1));
        if (status < 0)
            break;
        assert_int_equal(read.position.low_, line);
        assert_int_equal(read.size, strlen(text));
        assert_memory_equal(read.data, text, read.size);
        bide_log_header header;
        size_t at = 0;
        assert_true(bide_log_next_header(&read, &at, &header));
        status = bide_sync_wait(bide_log_acknowledge(&operation, &consumer, &read, 1));
    }
    bide_log_unsubscribe(&consumer);
    return status;
}

/* Publishes two lines, and reads them: 0, or the error of the first call that fails. */
static int publish_and_read(void)
{
    static const char text[] = "some\nlines";
    bide_log_operation operation;
    bide_log *log;
    const bide_log_header header = {"name", 4, "value", 5};
    bide_log_message message = {
        .data = text, .size = sizeof text - 1, .headers = &header, .header_count = 1};
    int status = bide_sync_wait(bide_log_open(&operation, &log, "stdio:?size=100&window=4"));
    if (status < 0) {
        assert_null(log);
        assert_true(operation.problem[0] != '\0');
        return status;
    }
    for (int i = 0; status == 0 && i < 2; i++) {
        status = bide_sync_wait(bide_log_publish(&operation, log, &message, 1));
        assert_false(operation.uncertain);
    }
    if (status == 0)
        status = read_lines(log, text);
    bide_log_destroy(log);
    return status;
}

static int use_of_kind(void *argument)
{
    const enum kind *kind = argument;
    struct log_standard standard;
    if (*kind == PIPE) {
        log_standard_loop(&standard);
    } else {
        int ends[2];
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
        log_standard_begin(&standard, ends[0], ends[1]);
        close(ends[0]);
        close(ends[1]);
    }
    int status = publish_and_read();
    log_standard_end(&standard);
    return status;
}

static void each_allocation_is_reported(void **state)
{
    (void)state;
    for (enum kind kind = PIPE; kind < KINDS; kind++) {
        /* the handle, its lines, the batch (twice), the group, lines and their headers */
        assert_true(faults_for_each_n(FAULT_CALLOC, ENOMEM, use_of_kind, &kind) >= 8);
        assert_true(faults_for_each_n(FAULT_REALLOC, ENOMEM, use_of_kind, &kind) >= 3);
        assert_int_equal(faults_for_each_n(FAULT_PTHREAD_CREATE, EAGAIN, use_of_kind, &kind), 1);
    }
}

static void calls_that_are_interrupted_are_made_again(void **state)
{
    (void)state;
    static const fault functions[] = {FAULT_READ, FAULT_WRITE, FAULT_POLL,
                                      FAULT_RECV, FAULT_SEND,  FAULT_PREADV2};
    static const int errors[] = {EINTR, EAGAIN};
    for (enum kind kind = PIPE; kind < KINDS; kind++) {
        for (unsigned f = 0; f < sizeof functions / sizeof functions[0]; f++) {
            for (unsigned e = 0; e < 2; e++) {
                if (functions[f] == FAULT_WRITE && errors[e] == EAGAIN)
                    continue; /* it would say that the pipe that wakes the thread is full */
                faults_result result =
                    faults_try_each_n(functions[f], 1, errors[e], false, use_of_kind, &kind);
                if (!result.good)
                    fail_msg("%s", result.what);
            }
        }
    }
}

/* Some are the handle's own, and made again; or there is another way. */
static void calls_that_fail_are_reported_or_made_again(void **state)
{
    (void)state;
    static const struct {
        fault function;
        int error;
    } rows[] = {{FAULT_READ, EIO},     {FAULT_WRITE, ENOSPC}, {FAULT_POLL, ENOMEM},
                {FAULT_RECV, EIO},     {FAULT_SEND, ENOSPC},  {FAULT_FCNTL, EMFILE},
                {FAULT_PIPE2, EMFILE}, {FAULT_PREADV2, EIO}};
    for (enum kind kind = PIPE; kind < KINDS; kind++) {
        for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
            const long blocks = faults_blocks(), threads = faults_threads(),
                       descriptors = faults_descriptors();
            unsigned hits = 1;
            for (unsigned n = 1; hits != 0; n++) {
                faults_clear();
                faults_fail(rows[i].function, n, 1, rows[i].error);
                int status = use_of_kind(&kind);
                hits = faults_hits(rows[i].function);
                if (status != 0 && (hits == 0 || status != -rows[i].error))
                    fail_msg("row %u, call %u: %d", i, n, status);
                assert_int_equal(faults_blocks(), blocks);
                assert_int_equal(faults_threads(), threads);
                assert_int_equal(faults_descriptors(), descriptors);
            }
            faults_clear();
        }
    }
}

/* A pipe that cannot be reopened is written and read as far as the poll allows. */
static void short_reads_and_writes_go_on(void **state)
{
    (void)state;
    for (enum kind kind = PIPE; kind < KINDS; kind++) {
        for (unsigned refused = 0; refused < 4;
             refused++) { /* the first two are of standard input */
            faults_clear();
            faults_shorten_reads(3);
            faults_shorten_writes(5);
            if (refused != 0)
                faults_fail(FAULT_FCNTL, 1, refused, EACCES);
            int status = use_of_kind(&kind);
            assert_true(status == 0 || (refused != 0 && status == -EACCES));
            faults_clear();
        }
    }
}

static void a_long_line_takes_no_memory(void **state)
{
    (void)state;
    enum { CHUNK = 1 << 16, CHUNKS = 128 };
    static char text[CHUNK];
    struct log_standard standard;
    bide_log_operation operation;
    bide_log_consumer consumer;
    bide_log_message read;
    bide_log *log;
    memset(text, 'x', sizeof text);
    FILE *file = tmpfile();
    assert_non_null(file);
    for (int i = 0; i < CHUNKS; i++)
        assert_int_equal(write(fileno(file), text, sizeof text), sizeof text);
    assert_int_equal(lseek(fileno(file), 0, SEEK_SET), 0);
    log_standard_begin(&standard, fileno(file), fileno(file));
    faults_clear();
    assert_int_equal(bide_sync_wait(bide_log_open(&operation, &log, "stdio:?size=16")), 0);
    assert_int_equal(bide_sync_wait(bide_log_subscribe(&operation, &consumer, log, NULL)), 0);
    assert_int_equal(bide_sync_wait(bide_log_read(&operation, &consumer, &read, 1)), -EBADMSG);
    assert_int_equal(bide_sync_wait(bide_log_read(&operation, &consumer, &read, 1)), -EPIPE);
    assert_int_equal(faults_calls(FAULT_REALLOC), 1);
    assert_true(faults_calls(FAULT_READ) > CHUNKS / 2);
    bide_log_unsubscribe(&consumer);
    bide_log_destroy(log);
    log_standard_end(&standard);
    fclose(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_allocation_is_reported),
        cmocka_unit_test(calls_that_are_interrupted_are_made_again),
        cmocka_unit_test(calls_that_fail_are_reported_or_made_again),
        cmocka_unit_test(short_reads_and_writes_go_on),
        cmocka_unit_test(a_long_line_takes_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

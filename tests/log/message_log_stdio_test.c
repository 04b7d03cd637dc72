/*
 * Message logs of standard input and output: lines and messages, what is wrong with a line, the window, ends of both, and
 * publishes that fail or wait. The descriptors are pipes, sockets, terminals and files of the test's own.
 */
#define _GNU_SOURCE
#include "log_standard.h"

#include <bide/bide.h>
#include <bide/message_log.h>

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <termios.h>

#define SOON (UINT64_C(60) * 1000000000)

/* ---- A handle, and the other ends ---- */

enum kind { PIPE, SOCKET, TERMINAL, KINDS };

struct fixture {
    struct log_standard standard;
    int feed;  /* is read by standard input */
    int drain; /* reads what is written to standard output */
    bide_log *log;
    bide_log_operation operation;
};

/* ends[0] is read, ends[1] is written. The process's end of a terminal is its master, which cannot be reopened. */
static void make_ends(enum kind kind, int ends[2], int own)
{
    if (kind == PIPE) {
        assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    } else if (kind == SOCKET) {
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    } else {
        struct termios raw;
        int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
        assert_true(master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0);
        int slave = open(ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC);
        assert_true(slave >= 0 && tcgetattr(slave, &raw) == 0);
        cfmakeraw(&raw);
        assert_int_equal(tcsetattr(slave, TCSANOW, &raw), 0);
        ends[own] = master;
        ends[1 - own] = slave;
    }
}

static void open_with(struct fixture *it, int input, int output, const char *url)
{
    log_standard_begin(&it->standard, input, output);
    assert_int_equal(bide_sync_wait(bide_log_open(&it->operation, &it->log, url)), 0);
    assert_string_equal(it->operation.problem, "");
}

static void open_it(struct fixture *it, enum kind kind, const char *url)
{
    int input[2], output[2];
    make_ends(kind, input, 0);
    make_ends(kind, output, 1);
    it->feed = input[1];
    it->drain = output[0];
    open_with(it, input[0], output[1], url);
    close(input[0]);
    close(output[1]);
}

static void close_end(int *end)
{
    if (*end >= 0)
        close(*end);
    *end = -1;
}

static void close_it(struct fixture *it)
{
    bide_log_destroy(it->log);
    log_standard_end(&it->standard);
    close_end(&it->feed);
    close_end(&it->drain);
}

static void feed(const struct fixture *it, const void *bytes, size_t size)
{
    for (const char *at = bytes; size != 0;) {
        ssize_t count = write(it->feed, at, size);
        assert_true(count > 0);
        at += count;
        size -= (size_t)count;
    }
}

static void feed_text(const struct fixture *it, const char *text)
{
    feed(it, text, strlen(text));
}

/* Reads exactly so many bytes of standard output. */
static void drain(const struct fixture *it, char *bytes, size_t size)
{
    while (size != 0) {
        ssize_t count = read(it->drain, bytes, size);
        assert_true(count > 0);
        bytes += count;
        size -= (size_t)count;
    }
}

static void expect_output(const struct fixture *it, const char *text)
{
    char found[512];
    assert_true(strlen(text) < sizeof found);
    drain(it, found, strlen(text));
    assert_memory_equal(found, text, strlen(text));
}

static void subscribe(struct fixture *it, bide_log_consumer *consumer)
{
    assert_int_equal(bide_sync_wait(bide_log_subscribe(&it->operation, consumer, it->log, NULL)),
                     0);
}

static int read_for(struct fixture *it, bide_log_consumer *consumer, bide_log_message *messages,
                    uint32_t max, uint64_t patience)
{
    bide_with_deadline_operation limited;
    int status = bide_sync_wait(bide_with_timeout(
        &limited, patience, bide_log_read(&it->operation, consumer, messages, max)));
    assert_true((status == 0) == (it->operation.count != 0));
    return status;
}

/* Reads the next message, which is `text`. */
static bide_log_message expect(struct fixture *it, bide_log_consumer *consumer, const char *text)
{
    bide_log_message message;
    assert_int_equal(read_for(it, consumer, &message, 1, SOON), 0);
    assert_int_equal(message.size, strlen(text));
    assert_memory_equal(message.data, text, message.size);
    return message;
}

static void expect_end(struct fixture *it, bide_log_consumer *consumer)
{
    bide_log_message message;
    for (int i = 0; i < 2; i++)
        assert_int_equal(read_for(it, consumer, &message, 1, SOON), -EPIPE);
}

static int acknowledge(struct fixture *it, bide_log_consumer *consumer,
                       const bide_log_message *messages, uint32_t count)
{
    return bide_sync_wait(bide_log_acknowledge(&it->operation, consumer, messages, count));
}

static int publish(struct fixture *it, const void *bytes, size_t size)
{
    bide_log_message message = {.data = bytes, .size = size};
    int status = bide_sync_wait(bide_log_publish(&it->operation, it->log, &message, 1));
    assert_int_equal(it->operation.count, status == 0);
    return status;
}

static int publish_text(struct fixture *it, const char *text)
{
    return publish(it, text, strlen(text));
}

/* A file without a name, with these bytes. */
static int file_of(const void *bytes, size_t size)
{
    int file = memfd_create("lines", MFD_CLOEXEC);
    assert_true(file >= 0);
    for (const char *at = bytes; size != 0;) {
        ssize_t count = write(file, at, size);
        assert_true(count > 0);
        at += count;
        size -= (size_t)count;
    }
    assert_int_equal(lseek(file, 0, SEEK_SET), 0);
    return file;
}

/* ---- Lines ---- */

static void lines_are_messages_and_messages_are_lines(void **state)
{
    (void)state;
    static const char text[] = "plain \xc3\xa4\xff\n"
                               "\n"
                               "key:k\ta=1\tb=\tdata\n"
                               "key:\tno key\n"
                               "\\x41\\n\\r\\t\\\\\\x00=:\n"
                               "a\\x3db=c\td\n"
                               "nul \0 and \r\n";
    static const char written[] = "plain \xc3\xa4\xff\n"
                                  "\n"
                                  "key:k\ta=1\tb=\tdata\n"
                                  "no key\n"
                                  "A\\n\\r\\t\\\\\\x00=:\n"
                                  "a\\x3db=c\td\n"
                                  "nul \\x00 and \\r\n";
    for (enum kind kind = PIPE; kind < KINDS; kind++) {
        struct fixture it;
        bide_log_consumer consumer;
        bide_log_message read[7];
        open_it(&it, kind, "stdio:");
        assert_int_equal(bide_log_level_of(it.log), BIDE_LOG_SENT);
        assert_int_equal(bide_log_window(it.log), 1024);
        assert_int_equal(bide_log_size_max(it.log), 4096);
        subscribe(&it, &consumer);
        feed(&it, text, sizeof text - 1);
        for (uint32_t count = 0; count < 7; count += it.operation.count)
            assert_int_equal(read_for(&it, &consumer, read + count, 7 - count, SOON), 0);
        for (unsigned i = 0; i < 7; i++) {
            char position[BIDE_LOG_POSITION_TEXT], wanted[BIDE_LOG_POSITION_TEXT];
            snprintf(wanted, sizeof wanted, "0-%u", i + 1);
            assert_int_equal(bide_log_position_print(read[i].position, position, sizeof position),
                             0);
            assert_string_equal(position, wanted);
            assert_int_equal(read[i].deliveries, 1);
            assert_true(read[i].time != 0 && read[i].time >= read[0].time);
        }
        assert_int_equal(read[1].size, 0);
        assert_int_equal(read[2].key_size, 1);
        assert_memory_equal(read[2].key, "k", 1);
        assert_null(read[3].key);
        assert_int_equal(read[4].size, 8);
        assert_memory_equal(read[4].data, "A\n\r\t\\\0=:", 8);
        bide_log_header header;
        size_t at = 0;
        assert_true(bide_log_next_header(&read[5], &at, &header));
        assert_int_equal(header.name_size, 3);
        assert_memory_equal(header.name, "a=b", 3);
        assert_memory_equal(header.value, "c", 1);
        assert_false(bide_log_next_header(&read[5], &at, &header));
        assert_int_equal(read[6].size, 11);

        assert_int_equal(bide_sync_wait(bide_log_publish(&it.operation, it.log, read, 7)), 0);
        for (unsigned i = 0; i < 7; i++)
            assert_int_equal(bide_log_position_compare(read[i].published, read[i].position), 0);
        char found[sizeof written - 1];
        drain(&it, found, sizeof found);
        assert_memory_equal(found, written, sizeof found);
        assert_int_equal(acknowledge(&it, &consumer, read, 7), 0);
        bide_log_unsubscribe(&consumer);
        close_it(&it);
    }
}

static void wrong_lines_are_reported_and_passed_over(void **state)
{
    (void)state;
    static const char tab[] =
        "a field before the data is not NAME=VALUE, or a tab of the data is not escaped";
    static const char escape[] = "an escape is none of \\\\ \\n \\r \\t \\xHH";
    static const struct {
        const char *line, *why;
    } rows[] = {
        {"a\tb", tab},
        {"a=b\tkey:k\td", tab},
        {"=v\td", "a header's name has 1 to 255 bytes"},
        {"a\\", escape},
        {"a\\x4", escape},
        {"key:\\q\td", escape},
        {"n=\\q\td", escape},
        {"0123456789abcdefg", "it is larger than `size`"},
        {"key:0123\t0123456789abc", "it is larger than `size`"},
        {"a=1\t0123456789", "it is larger than `size`"},
        {"=\t=\t=\t=\t=\t=\t=\t", "it is larger than `size`"},
    };
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct fixture it;
        bide_log_consumer consumer;
        bide_log_message read[4];
        char problem[BIDE_LOG_PROBLEM_TEXT];
        open_it(&it, PIPE, "stdio:?size=16");
        feed_text(&it, "before, 16 bytes\nkey:0123\t0123456789ab\n");
        feed_text(&it, rows[i].line);
        feed_text(&it, "\na=1\t012345678\nbehind\n");
        close_end(&it.feed);
        subscribe(&it, &consumer);
        (void)expect(&it, &consumer, "before, 16 bytes");
        (void)expect(&it, &consumer, "0123456789ab");
        assert_int_equal(read_for(&it, &consumer, read, 4, SOON), -EBADMSG);
        assert_int_equal(
            bide_log_position_compare(read[0].position, (bide_log_position){.low_ = 3}), 0);
        snprintf(problem, sizeof problem, "stdio: line 3: %s", rows[i].why);
        assert_string_equal(it.operation.problem, problem);
        (void)expect(&it, &consumer, "012345678");
        assert_string_equal(it.operation.problem, "");
        (void)expect(&it, &consumer, "behind");
        expect_end(&it, &consumer);
        bide_log_unsubscribe(&consumer);
        close_it(&it);
    }
}

/* In one batch with lines that are messages. */
static void a_batch_ends_before_a_wrong_line(void **state)
{
    (void)state;
    static const char text[] = "a\nb\n\\q\n\\q\nc\n";
    struct fixture it = {.feed = -1, .drain = -1};
    bide_log_consumer consumer;
    bide_log_message read[8];
    int file = file_of(text, sizeof text - 1);
    open_with(&it, file, -1, "stdio:");
    subscribe(&it, &consumer);
    uint32_t count = 0;
    for (; count < 2; count += it.operation.count)
        assert_int_equal(read_for(&it, &consumer, read + count, 8 - count, SOON), 0);
    assert_int_equal(count, 2);
    for (uint64_t line = 3; line < 5; line++) {
        assert_int_equal(read_for(&it, &consumer, read + 2, 6, SOON), -EBADMSG);
        assert_int_equal(
            bide_log_position_compare(read[2].position, (bide_log_position){.low_ = line}), 0);
    }
    read[2] = expect(&it, &consumer, "c");
    assert_int_equal(read[2].deliveries, 1);
    assert_int_equal(acknowledge(&it, &consumer, read, 3), 0);
    expect_end(&it, &consumer);
    bide_log_unsubscribe(&consumer);
    close_it(&it);
    close(file);
}

static void long_lines_are_passed_over(void **state)
{
    (void)state;
    enum { LONG = 8 << 20 };
    struct fixture it = {.feed = -1, .drain = -1};
    bide_log_consumer consumer;
    bide_log_message message;
    char *text = malloc(LONG + 32);
    assert_non_null(text);
    memset(text, 'x', LONG);
    for (int ends = 0; ends < 2; ends++) {
        memcpy(text, "a\n", 2);
        size_t size = LONG;
        if (ends != 0)
            size += (size_t)snprintf(text + LONG, 32, "\nb\ntorn");
        int file = file_of(text, size);
        open_with(&it, file, -1, "stdio:?size=16");
        subscribe(&it, &consumer);
        (void)expect(&it, &consumer, "a");
        assert_int_equal(read_for(&it, &consumer, &message, 1, SOON), -EBADMSG);
        assert_string_equal(it.operation.problem, "stdio: line 2: it is larger than `size`");
        if (ends != 0) {
            (void)expect(&it, &consumer, "b");
            assert_int_equal(read_for(&it, &consumer, &message, 1, SOON), -EBADMSG);
            assert_string_equal(
                it.operation.problem,
                "stdio: line 4: the last line does not end: it may be a part of one");
        }
        expect_end(&it, &consumer);
        bide_log_unsubscribe(&consumer);
        close_it(&it);
        close(file);
    }
    free(text);
}

/* ---- The consumer ---- */

static void there_is_one_consumer_without_a_name(void **state)
{
    (void)state;
    struct fixture it;
    bide_log_consumer consumer, other;
    bide_log *second;
    uint64_t lag;
    open_it(&it, PIPE, "stdio:");
    const struct {
        bide_log_consumer_options options;
        int status;
    } rows[] = {
        {{.group = "g"}, -ENOTSUP},
        {{.from = BIDE_LOG_FROM_END}, -ENOTSUP},
        {{.from = BIDE_LOG_FROM_POSITION}, -ENOTSUP},
        {{.from = BIDE_LOG_FROM_TIME}, -ENOTSUP},
        {{.group = ""}, -EINVAL},
        {{.from = (bide_log_from)4}, -EINVAL},
    };
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(
            bide_sync_wait(bide_log_subscribe(&it.operation, &other, it.log, &rows[i].options)),
            rows[i].status);
        assert_null(other.group);
    }
    subscribe(&it, &consumer);
    assert_int_equal(bide_sync_wait(bide_log_subscribe(&it.operation, &other, it.log, NULL)),
                     -EBUSY);
    assert_int_equal(bide_log_lag(it.log, "g", &lag), -ENOENT);
    assert_int_equal(bide_log_lag(it.log, "", &lag), -ENOENT);
    assert_int_equal(bide_log_remove_group(it.log, "g"), -ENOENT);
    assert_int_equal(bide_log_remove_group(it.log, ""), -ENOENT);

    /* another handle neither reads nor writes meanwhile; it may do both afterwards */
    assert_int_equal(publish_text(&it, "first"), 0);
    assert_int_equal(bide_sync_wait(bide_log_open(&it.operation, &second, "stdio:")), 0);
    assert_int_equal(bide_sync_wait(bide_log_subscribe(&it.operation, &other, second, NULL)),
                     -EBUSY);
    bide_log *first = it.log;
    it.log = second;
    assert_int_equal(publish_text(&it, "no"), -EBUSY);
    assert_false(it.operation.uncertain);
    bide_log_unsubscribe(&consumer);
    bide_log_destroy(first);
    subscribe(&it, &other);
    assert_int_equal(publish_text(&it, "second"), 0);
    feed_text(&it, "line\n");
    (void)expect(&it, &other, "line");
    expect_output(&it, "first\nsecond\n");
    bide_log_unsubscribe(&other);
    close_it(&it);
}

static void what_was_not_acknowledged_comes_again(void **state)
{
    (void)state;
    struct fixture it;
    bide_log_consumer consumer;
    bide_log_message read[4];
    open_it(&it, PIPE, "stdio:?window=4");
    subscribe(&it, &consumer);
    feed_text(&it, "a\nb\nc\nd\ne\nf\n");
    for (int i = 0; i < 4; i++) {
        const char text[2] = {(char)('a' + i), '\0'};
        read[i] = expect(&it, &consumer, text);
    }
    bide_log_message none;
    assert_int_equal(read_for(&it, &consumer, &none, 1, 1000000), -ETIMEDOUT); /* the window */
    assert_int_equal(acknowledge(&it, &consumer, &read[1], 1), 0);
    assert_int_equal(acknowledge(&it, &consumer, &read[1], 1), -ESTALE);
    assert_int_equal(bide_sync_wait(bide_log_reject(&it.operation, &consumer, &read[2], 1, 0)), 0);
    read[2] = expect(&it, &consumer, "c");
    assert_int_equal(read[2].deliveries, 2);
    bide_log_unsubscribe(&consumer);

    subscribe(&it, &consumer);
    read[0] = expect(&it, &consumer, "a");
    assert_int_equal(read[0].deliveries, 2);
    read[2] = expect(&it, &consumer, "c");
    assert_int_equal(read[2].deliveries, 3);
    read[3] = expect(&it, &consumer, "d");
    assert_int_equal(
        bide_sync_wait(bide_log_acknowledge_up_to(&it.operation, &consumer, read[3].position)), 0);
    assert_int_equal(it.operation.count, 3);
    (void)expect(&it, &consumer, "e");
    read[1] = expect(&it, &consumer, "f");
    assert_int_equal(bide_log_position_compare(read[1].position, (bide_log_position){.low_ = 6}),
                     0);
    bide_log_unsubscribe(&consumer);
    close_it(&it);
}

/* At most so many bytes of the file were read: also after the thread, which writes too, has had time for more. */
static void expect_read_ahead(struct fixture *it, size_t most)
{
    for (int i = 0; i < 200; i++)
        assert_int_equal(publish_text(it, "x"), 0);
    off_t at = lseek(STDIN_FILENO, 0, SEEK_CUR);
    assert_true(at >= 0);
    assert_in_range((uint64_t)at, 1, most);
}

static void the_window_bounds_what_is_read_ahead(void **state)
{
    (void)state;
    static const struct {
        const char *url;
        size_t line, most;
        uint32_t lines;
    } rows[] = {
        {"stdio:?window=2", 64, 2 << 16, 1 << 15},
        {"stdio:?window=1&size=100000", 100000, 8 << 16, 64},
        {"stdio:?size=100000", 100000, 24 << 16, 64},
    };
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct fixture it = {.feed = -1, .drain = -1};
        bide_log_consumer consumer;
        size_t size = rows[i].line * rows[i].lines;
        char *text = malloc(size);
        assert_non_null(text);
        memset(text, 'x', size);
        for (size_t at = rows[i].line; at <= size; at += rows[i].line)
            text[at - 1] = '\n';
        int file = file_of(text, size);
        free(text);
        int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
        open_with(&it, file, null, rows[i].url);
        close(null);
        assert_int_equal(publish_text(&it, "x"), 0);
        assert_int_equal(lseek(STDIN_FILENO, 0, SEEK_CUR), 0); /* there is no consumer */
        subscribe(&it, &consumer);
        for (uint32_t line = 1; line <= rows[i].lines; line++) {
            bide_log_message message;
            assert_int_equal(read_for(&it, &consumer, &message, 1, SOON), 0);
            assert_int_equal(message.size, rows[i].line - 1);
            if (line == 1)
                expect_read_ahead(&it, rows[i].most);
            assert_int_equal(acknowledge(&it, &consumer, &message, 1), 0);
        }
        expect_end(&it, &consumer);
        bide_log_unsubscribe(&consumer);
        close_it(&it);
        close(file);
    }
}

/* ---- Ends of reads ---- */

struct closer {
    bide_log *log;
    bide_log_consumer *consumer; /* it unsubscribes; or NULL: it closes the handle */
    pthread_t thread;
};

static void *run_closer(void *argument)
{
    struct closer *self = argument;
    if (self->consumer != NULL)
        bide_log_unsubscribe(self->consumer);
    else
        bide_log_close(self->log);
    return NULL;
}

static void a_read_that_waits_can_be_ended(void **state)
{
    (void)state;
    for (enum kind kind = PIPE; kind < KINDS; kind++) {
        struct fixture it;
        bide_log_consumer consumer;
        bide_log_message message;
        open_it(&it, kind, "stdio:");
        subscribe(&it, &consumer);
        assert_int_equal(read_for(&it, &consumer, &message, 1, 1000000), -ETIMEDOUT);
        feed_text(&it, "a\npart"); /* it waits for the rest of a line */
        (void)expect(&it, &consumer, "a");
        assert_int_equal(read_for(&it, &consumer, &message, 1, 1000000), -ETIMEDOUT);
        for (int closes = 0; closes < 2; closes++) {
            struct closer closer = {.log = it.log, .consumer = closes ? NULL : &consumer};
            assert_int_equal(pthread_create(&closer.thread, NULL, run_closer, &closer), 0);
            assert_int_equal(read_for(&it, &consumer, &message, 1, SOON), -EPIPE);
            assert_int_equal(pthread_join(closer.thread, NULL), 0);
            if (closes == 0)
                subscribe(&it, &consumer);
            (void)(closes == 0 && (expect(&it, &consumer, "a"), 0));
        }
        bide_log_unsubscribe(&consumer);
        close_it(&it); /* with the other end open */
    }
}

static void a_closed_handle_is_drained(void **state)
{
    (void)state;
    struct fixture it;
    bide_log_consumer consumer;
    bide_log_message read[2], message = {.data = "claimed", .size = 7};
    bide_log_claim claim;
    open_it(&it, PIPE, "stdio:?window=4");
    subscribe(&it, &consumer);
    feed_text(&it, "a\nb\nc\n");
    read[0] = expect(&it, &consumer, "a"); /* they were read together */
    assert_int_equal(bide_sync_wait(bide_log_reserve(&it.operation, it.log, 1, &claim)), 0);
    assert_int_equal(bide_sync_wait(bide_log_reject(&it.operation, &consumer, read, 1, 0)), 0);
    bide_log_close(it.log);
    bide_log_close(it.log);
    assert_int_equal(publish_text(&it, "late"), -EPIPE);
    assert_false(it.operation.uncertain);
    assert_int_equal(bide_sync_wait(bide_log_publish_claimed(&it.operation, &claim, &message, 1)),
                     0);
    expect_output(&it, "claimed\n");
    read[0] = expect(&it, &consumer, "a");
    assert_int_equal(read[0].deliveries, 2);
    int status;
    do
        status = read_for(&it, &consumer, read, 1, SOON); /* those that were read ahead */
    while (status == 0);
    assert_int_equal(status, -EPIPE);
    expect_end(&it, &consumer);
    bide_log_unsubscribe(&consumer);
    assert_int_equal(bide_sync_wait(bide_log_subscribe(&it.operation, &consumer, it.log, NULL)),
                     -EPIPE);
    close_it(&it);
}

static void closed_ends_are_errors(void **state)
{
    (void)state;
    struct fixture it = {.feed = -1, .drain = -1};
    bide_log_consumer consumer;
    open_with(&it, -1, -1, "stdio:");
    assert_int_equal(bide_sync_wait(bide_log_subscribe(&it.operation, &consumer, it.log, NULL)),
                     -EBADF);
    assert_int_equal(publish_text(&it, "x"), -EBADF);
    assert_false(it.operation.uncertain);
    close_it(&it);

    int directory = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bide_log_message message;
    open_with(&it, directory, directory, "stdio:");
    subscribe(&it, &consumer);
    for (int i = 0; i < 2; i++)
        assert_int_equal(read_for(&it, &consumer, &message, 1, SOON), -EISDIR);
    assert_int_equal(publish_text(&it, "x"), -EBADF);
    bide_log_unsubscribe(&consumer);
    close_it(&it);
    close(directory);
}

/* ---- Publishes that fail or wait ---- */

static void a_write_that_fails_is_reported(void **state)
{
    (void)state;
    struct fixture it;
    open_it(&it, PIPE, "stdio:");
    close_end(&it.drain); /* SIGPIPE would end the test */
    for (int i = 0; i < 2; i++) {
        assert_int_equal(publish_text(&it, "x"), -EPIPE);
        assert_false(it.operation.uncertain);
    }
    close_it(&it);
    open_it(&it, SOCKET, "stdio:");
    close_end(&it.drain);
    assert_int_equal(publish_text(&it, "x"), -EPIPE);
    close_it(&it);

    int full = open("/dev/full", O_WRONLY | O_CLOEXEC), null = open("/dev/null", O_RDONLY);
    it.feed = it.drain = -1;
    open_with(&it, null, full, "stdio:");
    for (int i = 0; i < 2; i++) {
        assert_int_equal(publish_text(&it, "x"), -ENOSPC);
        assert_false(it.operation.uncertain);
    }
    bide_log_consumer consumer;
    subscribe(&it, &consumer);
    expect_end(&it, &consumer);
    bide_log_unsubscribe(&consumer);
    close_it(&it);
    close(full);
    close(null);
}

static void nothing_is_written_behind_a_torn_line(void **state)
{
    (void)state;
    struct fixture it = {.feed = -1, .drain = -1};
    struct rlimit before, limit;
    char found[32];
    int file = file_of("", 0);
    open_with(&it, -1, file, "stdio:");
    assert_int_equal(publish_text(&it, "first"), 0);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    limit = (struct rlimit){10, before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0); /* SIGXFSZ would end the test */
    bide_log_message both[2] = {{.data = "23", .size = 2}, {.data = "torn", .size = 4}};
    assert_int_equal(bide_sync_wait(bide_log_publish(&it.operation, it.log, both, 2)), -EFBIG);
    assert_true(it.operation.uncertain);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(publish_text(&it, "behind"), -EFBIG);
    assert_false(it.operation.uncertain);
    assert_int_equal(pread(file, found, sizeof found, 0), 10);
    assert_memory_equal(found, "first\n23\nt", 10);
    close_it(&it);
    close(file);
}

static void a_publish_that_waits_can_be_cancelled(void **state)
{
    (void)state;
    enum { SIZE = 1 << 20 };
    char *bytes = malloc(SIZE + 4);
    assert_non_null(bytes);
    memset(bytes, 'x', SIZE);
    for (enum kind kind = PIPE; kind < KINDS; kind++) {
        struct fixture it;
        bide_with_deadline_operation limited;
        const size_t size = kind == TERMINAL ? SIZE / 8 : SIZE; /* which takes a byte at a time */
        bide_log_message message = {.data = bytes, .size = size}, next = {.data = "b", .size = 1};
        open_it(&it, kind, "stdio:?size=1048576&window=1");
        for (int destroys = 0; destroys < 2; destroys++) {
            /* nobody reads it */
            assert_int_equal(
                bide_sync_wait(bide_with_timeout(
                    &limited, 1000000, bide_log_publish(&it.operation, it.log, &message, 1))),
                -ETIMEDOUT);
            bool uncertain = it.operation.uncertain;
            struct pollfd wait = {.fd = it.drain, .events = POLLIN};
            if (uncertain) { /* it keeps its room until it is written */
                assert_int_equal(poll(&wait, 1, -1), 1);
                assert_int_equal(
                    bide_sync_wait(bide_with_timeout(
                        &limited, 1000000, bide_log_publish(&it.operation, it.log, &next, 1))),
                    -ETIMEDOUT);
                assert_false(it.operation.uncertain);
            }
            if (destroys)
                break;
            if (uncertain) {
                drain(&it, bytes, size + 1);
                assert_int_equal(bytes[size], '\n');
                bytes[size] = 'x';
            }
            assert_int_equal(publish_text(&it, "behind"), 0);
            expect_output(&it, "behind\n");
        }
        close_it(&it);
    }
    free(bytes);
}

/* The position of a line counts those of a batch whose write has failed. */
static void a_reader_that_goes_leaves_a_publish_uncertain(void **state)
{
    (void)state;
    enum { SIZE = 1 << 20 };
    struct fixture it;
    char *bytes = malloc(SIZE);
    assert_non_null(bytes);
    memset(bytes, 'x', SIZE);
    open_it(&it, PIPE, "stdio:?size=1048576");
    bide_with_deadline_operation limited;
    bide_log_message message = {.data = bytes, .size = SIZE};
    int status;
    do /* until it has begun */
        status = bide_sync_wait(bide_with_timeout(
            &limited, 1000000, bide_log_publish(&it.operation, it.log, &message, 1)));
    while (status == -ETIMEDOUT && !it.operation.uncertain);
    assert_int_equal(status, -ETIMEDOUT);
    struct pollfd wait = {.fd = it.drain, .events = POLLIN};
    assert_int_equal(poll(&wait, 1, -1), 1);
    close_end(&it.drain);
    assert_int_equal(publish_text(&it, "behind"), -EPIPE);
    close_it(&it);
    free(bytes);
}

/* ---- URLs ---- */

static void urls_of_standard_streams_are_checked(void **state)
{
    (void)state;
    static const struct {
        const char *url;
        int status;
        const char *problem;
    } rows[] = {
        {"stdio:?level=sent&window=3&size=1", 0, ""},
        {"stdio:?level=stored", -ENOTSUP, "the engine does not give this level: level=stored"},
        {"stdio:?level=majority", -ENOTSUP, "level=majority"},
        {"stdio:?level=synced", -ENOTSUP, "level=synced"},
        {"stdio:name", -EINVAL, "stdio: it has no name: name"},
        {"stdio:?create=no", -EINVAL, "create=no"},
        {"stdio:?keep=1", -EINVAL, "keep=1"},
        {"stdio:?segment=4096", -EINVAL, "segment=4096"},
        {"stdio:?window=0", -EINVAL, "window=0"},
    };
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        bide_log_operation operation;
        bide_log *log;
        assert_int_equal(bide_sync_wait(bide_log_open(&operation, &log, rows[i].url)),
                         rows[i].status);
        assert_non_null(strstr(operation.problem, rows[i].problem));
        assert_true((log != NULL) == (rows[i].status == 0));
        bide_log_destroy(log);
    }
}

/* ---- Threads ---- */

enum { WINDOW = 8 };

struct stress {
    struct fixture it;
    uint64_t seed;
    uint32_t count;
    pthread_t thread;
};

/* Publishes numbers, in batches. */
static void *run_producer(void *argument)
{
    struct stress *self = argument;
    uint64_t random = self->seed;
    for (uint32_t done = 0; done < self->count;) {
        bide_log_operation operation;
        bide_log_message messages[WINDOW];
        char text[WINDOW][16];
        uint32_t size = 1 + (uint32_t)(testing_random(&random) % WINDOW);
        size = size < self->count - done ? size : self->count - done;
        for (uint32_t i = 0; i < size; i++) {
            int length = snprintf(text[i], sizeof text[i], "%u", done + i);
            messages[i] = (bide_log_message){.data = text[i], .size = (size_t)length};
        }
        assert_int_equal(bide_sync_wait(bide_log_publish(&operation, self->it.log, messages, size)),
                         0);
        assert_int_equal(messages[size - 1].published.low_, done + size);
        done += size;
    }
    return NULL;
}

static void each_line_is_acknowledged_once(void **state)
{
    (void)state;
    struct stress shared = {.seed = testing_seed(), .count = rounds_of(20000)};
    struct fixture *it = &shared.it;
    bide_log_consumer consumer;
    uint64_t random = shared.seed ^ 1;
    uint32_t next = 0, done = 0;
    log_standard_loop(&it->standard);
    it->feed = it->drain = -1;
    assert_int_equal(bide_sync_wait(bide_log_open(&it->operation, &it->log, "stdio:?window=8")), 0);
    subscribe(it, &consumer);
    assert_int_equal(pthread_create(&shared.thread, NULL, run_producer, &shared), 0);
    while (done < shared.count) {
        bide_log_message read[WINDOW];
        uint32_t max = 1 + (uint32_t)(testing_random(&random) % WINDOW), first = 0;
        assert_int_equal(read_for(it, &consumer, read, max, SOON), 0);
        uint32_t count = it->operation.count;
        for (uint32_t i = 0; i < count; i++) {
            char text[16];
            assert_true(read[i].size < sizeof text);
            memcpy(text, read[i].data, read[i].size);
            text[read[i].size] = '\0';
            assert_int_equal(strtoul(text, NULL, 10) + 1, read[i].position.low_);
            assert_true(read[i].deliveries == 1 || read[i].position.low_ <= next);
            next = read[i].deliveries == 1 ? (uint32_t)read[i].position.low_ : next;
        }
        uint64_t choice = testing_random(&random) % 16;
        if (choice == 0) { /* all of them come again */
            bide_log_unsubscribe(&consumer);
            subscribe(it, &consumer);
            continue;
        }
        if (choice < 4) {
            first = 1;
            assert_int_equal(bide_sync_wait(bide_log_reject(&it->operation, &consumer, read, 1, 0)),
                             0);
        }
        assert_int_equal(acknowledge(it, &consumer, read + first, count - first), 0);
        done += count - first;
    }
    assert_int_equal(next, shared.count);
    assert_int_equal(pthread_join(shared.thread, NULL), 0);
    bide_log_unsubscribe(&consumer);
    close_it(it);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_are_messages_and_messages_are_lines),
        cmocka_unit_test(wrong_lines_are_reported_and_passed_over),
        cmocka_unit_test(a_batch_ends_before_a_wrong_line),
        cmocka_unit_test(long_lines_are_passed_over),
        cmocka_unit_test(there_is_one_consumer_without_a_name),
        cmocka_unit_test(what_was_not_acknowledged_comes_again),
        cmocka_unit_test(the_window_bounds_what_is_read_ahead),
        cmocka_unit_test(a_read_that_waits_can_be_ended),
        cmocka_unit_test(a_closed_handle_is_drained),
        cmocka_unit_test(closed_ends_are_errors),
        cmocka_unit_test(a_write_that_fails_is_reported),
        cmocka_unit_test(nothing_is_written_behind_a_torn_line),
        cmocka_unit_test(a_publish_that_waits_can_be_cancelled),
        cmocka_unit_test(a_reader_that_goes_leaves_a_publish_uncertain),
        cmocka_unit_test(urls_of_standard_streams_are_checked),
        cmocka_unit_test(each_line_is_acknowledged_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * Responses to the HTTP/1.1 client: heads of 1xx, the head, the body by its length, in chunks or until the end, trailers.
 * A second reader, written from RFC 9112, finds the same as a client that receives the bytes in whole, in two pieces, or
 * one by one, and reads the body in large or small pieces. The first byte of the input says whether the request was HEAD.
 */
#define _GNU_SOURCE
#include "http_head.h"

#include "bide/bide.h"
#include "bide/http.h"

#include <errno.h>

const unsigned fuzz_executions = 3000;
const char *const fuzz_words[] = {
    "HTTP/1.1 103 Early Hints\r\n\r\n", "HTTP/1.1 100 \r\n\r\n", "HTTP/1.1 200 OK\r\n", "HTTP/1.0 200 OK\r\n", "204", "304", "101",
    "Transfer-Encoding: chunked\r\n", "Transfer-Encoding: gzip\r\n", "Content-Length: 5\r\n", "Content-Length: 301\r\n",
    "\r\n\r\n", "5\r\nhello\r\n", "0\r\n\r\n", "0\r\nX-Sum: a\r\n\r\n", ";name=value", "0000000000000005", "12d", "\r\n", NULL};

enum { MAX_BODY = 300, MAX_LINE = 256, MAX_INTERIM = 32, INPUT = 3000, MAX_LOG = 8192, PIPE = 4096 };

/* What was received, as text: the heads, the body, the trailers, and the end. */
struct log {
    char text[MAX_LOG];
    size_t size;
    size_t body; /* where the body begins */
};

static void put(struct log *log, const void *data, size_t size)
{
    FUZZ_REQUIRE(log->size + size <= MAX_LOG);
    if (size != 0)
        memcpy(log->text + log->size, data, size);
    log->size += size;
}

static void put_head(struct log *log, int status, int minor, size_t fields)
{
    char text[64];
    put(log, text, (size_t)snprintf(text, sizeof text, "%d %d %zu:", status, minor, fields));
    log->body = log->size;
}

/* How much of a body that is too long is read before depends on its pieces. */
static void put_end(struct log *log, int status, size_t trailers)
{
    char text[64];
    if (status == -EFBIG)
        log->size = log->body;
    put(log, text, (size_t)snprintf(text, sizeof text, " end %d %zu", status, trailers));
}

/* ---- The second reader ---- */

/* The size in a line. Returns false if it is wrong. */
static bool chunk_size(struct piece line, uint64_t *size)
{
    size_t digits = 0;
    *size = 0;
    for (; digits < line.size; digits++) {
        int c = (unsigned char)line.at[digits], lower = c | 0x20;
        if (!uri_is_digit(c) && !(lower >= 'a' && lower <= 'f'))
            break;
        *size = *size * 16 + (uint64_t)(uri_is_digit(c) ? c - '0' : lower - 'a' + 10);
        if (digits == 15)
            return false;
    }
    struct piece rest = {line.at + digits, line.size - digits};
    return digits != 0 && (rest.size == 0 || rest.at[0] == ';') && head_is_value(rest);
}

/* Returns 0, or the error with which reading ends. */
static int second_trailers(struct piece rest, size_t fields, size_t *count)
{
    struct second_head head;
    ptrdiff_t end = head_end(rest.at, rest.size);
    if (end <= 0)
        return end < 0 ? -EBADMSG : -ENODATA;
    memset(&head, 0, sizeof head);
    struct piece lines = {rest.at, (size_t)end}, line;
    while (head_line(&lines, &line) && line.size != 0) {
        const char *colon = memchr(line.at, ':', line.size);
        if (colon == NULL || !head_is_token((struct piece){line.at, (size_t)(colon - line.at)}) ||
            !head_is_value((struct piece){colon + 1, line.size - (size_t)(colon + 1 - line.at)}))
            return -EBADMSG;
        if (++head.count > HEAD_FIELDS - fields)
            return -EMSGSIZE;
    }
    *count = head.count;
    return 0;
}

static int second_chunks(struct log *log, struct piece rest, size_t fields, size_t *trailers)
{
    uint64_t size, taken = 0;
    for (;;) {
        size_t seen = rest.size < MAX_LINE ? rest.size : MAX_LINE;
        const char *end = seen != 0 ? memchr(rest.at, '\n', seen) : NULL;
        if (end == NULL)
            return rest.size >= MAX_LINE ? -EBADMSG : -ENODATA;
        if (end == rest.at || end[-1] != '\r' || !chunk_size((struct piece){rest.at, (size_t)(end - rest.at) - 1}, &size))
            return -EBADMSG;
        rest.size -= (size_t)(end - rest.at) + 1;
        rest.at = end + 1;
        if (size > MAX_BODY - taken)
            return -EFBIG;
        if (size == 0)
            return second_trailers(rest, fields, trailers);
        size_t there = size < rest.size ? (size_t)size : rest.size;
        put(log, rest.at, there);
        taken += size;
        rest.at += there;
        rest.size -= there;
        if (there < size)
            return -ENODATA;
        if ((rest.size > 0 && rest.at[0] != '\r') || (rest.size > 1 && rest.at[1] != '\n'))
            return -EBADMSG;
        if (rest.size < 2)
            return -ENODATA;
        rest.at += 2;
        rest.size -= 2;
    }
}

static void second_receive(struct log *log, struct piece rest, bool is_head)
{
    struct second_head head;
    size_t trailers = 0;
    int status = 0;
    log->size = log->body = 0;
    for (int interim = 0;; interim++) {
        ptrdiff_t end = head_end(rest.at, rest.size);
        if (end <= 0) {
            put_end(log, end < 0 ? -EBADMSG : rest.size != 0 ? -ENODATA : -EPIPE, 0);
            return;
        }
        second_response(&head, rest.at, (size_t)end);
        bool is_interim = head.status < 200 && head.status != 101;
        if (head.is_wrong || (is_interim && interim == MAX_INTERIM)) {
            put_end(log, -EBADMSG, 0);
            return;
        }
        rest.at += end;
        rest.size -= (size_t)end;
        if (!is_interim)
            break;
        put_head(log, head.status, head.minor, head.count);
    }
    bool has_body = !is_head && head.status >= 200 && head.status != 204 && head.status != 304;
    uint64_t length = !has_body ? 0 : head.lengths != 0 ? head.length : BIDE_HTTP_UNKNOWN;
    if (has_body && head.codings == 0 && head.lengths != 0 && length > MAX_BODY) {
        put_end(log, -EFBIG, 0);
        return;
    }
    put_head(log, head.status, head.minor, head.count);
    if (has_body && head.is_chunked) {
        status = second_chunks(log, rest, head.count, &trailers);
    } else if (has_body && length == BIDE_HTTP_UNKNOWN) {
        put(log, rest.at, rest.size < MAX_BODY ? rest.size : MAX_BODY);
        status = rest.size > MAX_BODY ? -EFBIG : 0;
    } else {
        put(log, rest.at, rest.size < length ? rest.size : (size_t)length);
        status = rest.size < length ? -ENODATA : 0;
    }
    put_end(log, status, trailers);
}

/* ---- The library's ---- */

static struct fixture {
    bide_memory_pipe there, back;
    bide_memory_end ours, theirs;
    char there_memory[PIPE], back_memory[PIPE];
    bide_http_client client;
    char memory[BIDE_HTTP_CLIENT_MEMORY];
    struct log log;
    struct receiver {
        bide_task task;
        bide_spawned spawned;
        size_t read; /* at once */
        int status;
        char body[1000];
    } receiver;
} f;

static void on_informational(bide_http_client *client)
{
    put_head(&f.log, client->response.status, client->response.minor, client->response.field_count);
}

bide_coroutine(receiver_body)
{
    bide_begin(receiver_body, struct receiver * self);
    bide_await_status(self->status, bide_http_client_recv(&f.client));
    if (self->status == -EMSGSIZE) /* (too many fields, which the second parser does not tell from a wrong head) */
        self->status = -EBADMSG;
    if (self->status < 0)
        bide_return(0);
    put_head(&f.log, f.client.response.status, f.client.response.minor, f.client.response.field_count);
    do {
        bide_await_status(self->status, bide_http_client_read(&f.client, self->body, self->read));
        FUZZ_REQUIRE(self->status == 0 || f.client.count == 0);
        put(&f.log, self->body, f.client.count);
    } while (self->status == 0 && f.client.count != 0);
    bide_end();
}

static void write_some(const char *data, size_t size)
{
    bide_stream_operation operation;
    if (size == 0)
        return;
    char *copy = fuzz_copy(data, size);
    FUZZ_REQUIRE(bide_sync_wait(bide_stream_write(&operation, bide_memory_stream(&f.theirs), copy, size)) == 0);
    free(copy);
}

/* `first` bytes, then `step` at once, then the end; the body is read in pieces of `read` bytes. */
static void receive(struct piece data, bool is_head, size_t first, size_t step, size_t read)
{
    const bide_http_client_options options = {.max_fields = HEAD_FIELDS, .max_body = MAX_BODY};
    bide_event_waiter wait;
    fuzz_parses++;
    bide_memory_pipe_init(&f.there, f.there_memory, PIPE);
    bide_memory_pipe_init(&f.back, f.back_memory, PIPE);
    f.ours = (bide_memory_end){&f.there, &f.back};
    f.theirs = (bide_memory_end){&f.back, &f.there};
    f.log.size = f.log.body = 0;
    FUZZ_REQUIRE(bide_http_client_init(&f.client, bide_memory_stream(&f.ours), f.memory, sizeof f.memory, &options) == 0);
    f.client.on_informational = on_informational;
    FUZZ_REQUIRE(bide_http_client_start_request(&f.client, is_head ? "HEAD" : "GET", "/", "a") == 0);
    f.receiver.read = read;
    write_some(data.at, first);
    bide_spawn(&f.receiver.spawned, &bide_default_context, bide_task_init(&f.receiver.task, &receiver_body));
    for (size_t at = first; at < data.size && !bide_event_is_set(&f.receiver.spawned.ended); at += step)
        write_some(data.at + at, data.size - at < step ? data.size - at : step);
    bide_memory_pipe_destroy(&f.there);
    FUZZ_REQUIRE(bide_sync_wait(bide_event_wait(&wait, &f.receiver.spawned.ended)) == 0);
    put_end(&f.log, f.receiver.status, f.receiver.status == 0 ? f.client.input.trailer_count : 0);
    bide_memory_pipe_destroy(&f.back);
}

/* The names of trailers that a parser of heads notes: whether they may be there is not decided by the grammar. */
static bool has_framing_in_trailers(const char *data, size_t size)
{
    static const char *const names[] = {"content-length", "transfer-encoding", "connection", "upgrade", "proxy-connection",
                                        "host", "expect"};
    size_t found = 0;
    for (size_t at = 0; at < size; at++)
        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
            found += size - at >= strlen(names[i]) && strncasecmp(data + at, names[i], strlen(names[i])) == 0 &&
                     memmem(data, at, "\r\n\r\n", 4) != NULL;
    return found != 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
    static struct log second;
    if (size == 0 || size > INPUT)
        return 0;
    bool is_head = input[0] & 1;
    struct piece data = {(const char *)input + 1, size - 1};
    if (has_framing_in_trailers(data.at, data.size)) { /* compared with itself alone */
        receive(data, is_head, data.size, 1, sizeof f.receiver.body);
        second = f.log;
    } else {
        second_receive(&second, data, is_head);
    }
    for (size_t way = 0; way < 8; way++) {
        size_t cut = way / 2 == 0 ? data.size : way / 2 == 1 ? 0 : data.size * (way / 2 - 1) / 3;
        receive(data, is_head, cut, way / 2 == 1 ? 1 : data.size + 1, way % 2 != 0 ? 3 : sizeof f.receiver.body);
        FUZZ_REQUIRE(f.log.size == second.size && memcmp(f.log.text, second.text, second.size) == 0);
    }
    return 0;
}

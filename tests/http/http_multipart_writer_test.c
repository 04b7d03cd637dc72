/*
 * Bodies of the multipart writer: their bytes, their length, what is refused, and that the library's reader finds the parts
 * in them. With the argument "--write" it writes a body for http_multipart_writer_test.py, behind a line with its type.
 */
#include "http_peer.h"

#include <bide/http_multipart_writer.h>

enum { BODY = 1 << 16 };

static const bide_http_form_part sample[] = {
    {.name = "title", .size = 5},
    {.name = "a\"b\r\nc\\d", .filename = "x \"y\"\n.txt", .size = 3},
    {.name = "gr\xc3\xb6\xc3\x9f" "e", .filename = "", .type = "text/plain; charset=utf-8", .size = 0},
    {.name = "", .type = "image/png", .size = 8},
};
static const char *const sample_data[] = {"hello", "\r\n-", "", "\x89PNG\r\n\x1a\n"};

enum { PARTS = sizeof sample / sizeof *sample };

/* Writes the sample. Returns its size. */
static size_t write_sample(bide_http_multipart_writer *writer, char *body)
{
    size_t used = 0;
    for (size_t i = 0; i < PARTS; i++) {
        ptrdiff_t count = bide_http_multipart_begin_part(writer, &sample[i], body + used, BODY - used);
        assert_true(count > 0);
        used += (size_t)count;
        memcpy(body + used, sample_data[i], (size_t)sample[i].size);
        used += (size_t)sample[i].size;
    }
    ptrdiff_t count = bide_http_multipart_end(writer, body + used, BODY - used);
    assert_in_range(count, 1, 40);
    return used + (size_t)count;
}

/* ---- Bytes ---- */

static void heads_are_those_of_browsers(void **state)
{
    static char body[BODY], expected[BODY];
    bide_http_multipart_writer writer;
    (void)state;
    assert_int_equal(bide_http_multipart_writer_init(&writer), 0);
    assert_memory_equal(writer.type, "multipart/form-data; boundary=", 30);
    const char *b = writer.type + 30;
    assert_int_equal(strlen(b), 32);
    int wanted = snprintf(expected, sizeof expected,
                          "--%s\r\nContent-Disposition: form-data; name=\"title\"\r\n\r\nhello"
                          "\r\n--%s\r\nContent-Disposition: form-data; name=\"a%%22b%%0D%%0Ac\\d\"; filename=\"x %%22y%%22%%0A.txt\"\r\n"
                          "Content-Type: application/octet-stream\r\n\r\n\r\n-"
                          "\r\n--%s\r\nContent-Disposition: form-data; name=\"gr\xc3\xb6\xc3\x9f" "e\"; filename=\"\"\r\n"
                          "Content-Type: text/plain; charset=utf-8\r\n\r\n"
                          "\r\n--%s\r\nContent-Disposition: form-data; name=\"\"\r\nContent-Type: image/png\r\n\r\n\x89PNG\r\n\x1a\n"
                          "\r\n--%s--\r\n",
                          b, b, b, b, b);
    size_t size = write_sample(&writer, body);
    assert_int_equal(size, wanted);
    assert_memory_equal(body, expected, size);
}

static void boundaries_differ(void **state)
{
    bide_http_multipart_writer one_writer, other;
    (void)state;
    assert_int_equal(bide_http_multipart_writer_init(&one_writer), 0);
    assert_int_equal(bide_http_multipart_writer_init(&other), 0);
    assert_string_not_equal(one_writer.type, other.type);
}

static void a_body_without_parts_is_its_end(void **state)
{
    char body[64];
    uint64_t length;
    bide_http_multipart_writer writer;
    (void)state;
    assert_int_equal(bide_http_multipart_writer_init(&writer), 0);
    assert_int_equal(bide_http_multipart_length(&writer, NULL, 0, &length), 0);
    assert_int_equal(length, 38);
    assert_int_equal(bide_http_multipart_end(&writer, body, sizeof body), 38);
    assert_memory_equal(body, "--", 2);
    assert_memory_equal(body + 34, "--\r\n", 4);
}

static void texts_that_readers_could_take_otherwise_are_refused(void **state)
{
    static const bide_http_form_part rows[] = {
        {.name = NULL},
        {.name = "a\x01"},
        {.name = "a\x7f"},
        {.name = "a\\"},
        {.name = "a\\\\b"},
        {.name = "a", .filename = "b\\"},
        {.name = "a", .filename = "\x1f"},
        {.name = "a", .type = "text/plain\r\nX: y"},
        {.name = "a", .type = "text/plain\n"},
    };
    char head[512];
    uint64_t length = 7;
    bide_http_multipart_writer writer;
    (void)state;
    assert_int_equal(bide_http_multipart_writer_init(&writer), 0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(bide_http_multipart_begin_part(&writer, &rows[i], head, sizeof head), -EINVAL);
        assert_int_equal(bide_http_multipart_length(&writer, &rows[i], 1, &length), -EINVAL);
    }
    assert_int_equal(length, 7);
    assert_true(bide_http_multipart_begin_part(&writer, &sample[0], head, sizeof head) > 0);
    assert_memory_equal(head, "--", 2); /* (it is the first) */
}

/* ---- Bounds ---- */

static void a_length_is_that_of_the_body(void **state)
{
    static char body[BODY];
    uint64_t length;
    bide_http_multipart_writer writer;
    (void)state;
    assert_int_equal(bide_http_multipart_writer_init(&writer), 0);
    assert_int_equal(bide_http_multipart_length(&writer, sample, PARTS, &length), 0);
    assert_int_equal(length, write_sample(&writer, body));
    const bide_http_form_part unknown[] = {{.name = "a", .size = 3}, {.name = "b", .size = BIDE_HTTP_UNKNOWN}};
    assert_int_equal(bide_http_multipart_length(&writer, unknown, 2, &length), 0);
    assert_true(length == BIDE_HTTP_UNKNOWN);
    const bide_http_form_part large[] = {{.name = "a", .size = UINT64_MAX / 2}, {.name = "b", .size = UINT64_MAX / 2}};
    assert_int_equal(bide_http_multipart_length(&writer, large, 1, &length), 0);
    assert_true(length > UINT64_MAX / 2 && length < UINT64_MAX / 2 + 1000);
    assert_int_equal(bide_http_multipart_length(&writer, large, 2, &length), -EFBIG);
    /* the largest length below BIDE_HTTP_UNKNOWN, and one byte more */
    bide_http_form_part most = {.name = "a", .size = 0};
    assert_int_equal(bide_http_multipart_length(&writer, &most, 1, &length), 0);
    most.size = UINT64_MAX - 1 - length;
    assert_int_equal(bide_http_multipart_length(&writer, &most, 1, &length), 0);
    assert_true(length == UINT64_MAX - 1);
    most.size++;
    assert_int_equal(bide_http_multipart_length(&writer, &most, 1, &length), -EFBIG);
}

static void what_does_not_fit_has_not_begun(void **state)
{
    bide_http_multipart_writer writer;
    bool fits = false;
    (void)state;
    assert_int_equal(bide_http_multipart_writer_init(&writer), 0);
    for (size_t size = 0; !fits; size++) {
        char *out = malloc(size != 0 ? size : 1);
        assert_non_null(out);
        ptrdiff_t count = bide_http_multipart_begin_part(&writer, &sample[1], out, size);
        fits = count >= 0;
        if (fits) {
            assert_int_equal(count, size);
            assert_memory_equal(out, "--", 2); /* (no part has begun before) */
        } else {
            assert_int_equal(count, -EMSGSIZE);
        }
        free(out);
    }
    for (size_t size = 0; size <= 40; size++) {
        char end[40];
        assert_int_equal(bide_http_multipart_end(&writer, end, size), size < 40 ? -EMSGSIZE : 40);
    }
}

/* ---- The library's reader ---- */

static char received[BODY];

struct reading_handler {
    bide_http_exchange exchange;
    bide_http_multipart parts;
    int status;
    char data[7];
    char memory[1024];
};

static void note(const void *data, size_t size)
{
    size_t used = strlen(received);
    for (size_t i = 0; i < size; i++)
        used += (size_t)snprintf(received + used, sizeof received - used, ((const char *)data)[i] == '\n' ? "$" : "%c",
                                 ((const char *)data)[i]);
}

static void note_text(bide_slice text)
{
    note(text.data != NULL ? text.data : "-", text.data != NULL ? text.size : 1);
    note("|", 1);
}

bide_coroutine(reading_body)
{
    bide_begin(reading_body, struct reading_handler * self);
    handled.begun++;
    self->status = bide_http_multipart_init(&self->parts, &self->exchange, self->memory, sizeof self->memory, NULL);
    if (self->status < 0)
        bide_return(self->status);
    for (;;) {
        bide_try(bide_http_next_part(&self->parts));
        if (!self->parts.has_part)
            break;
        note_text(self->parts.name);
        note_text(self->parts.filename);
        note_text(self->parts.type);
        do {
            bide_try(bide_http_read_part(&self->parts, self->data, sizeof self->data));
            note(self->data, self->parts.count);
        } while (self->parts.count != 0);
        note(";", 1);
    }
    bide_finally();
    handled.ended++;
    bide_end();
}

static void the_librarys_reader_finds_the_parts(void **state)
{
    static const char expected[] = "title|-|-|hello;"
                                   "a%22b%0D%0Ac\\d|x %22y%22%0A.txt|application/octet-stream|\r$-;"
                                   "gr\xc3\xb6\xc3\x9f" "e||text/plain; charset=utf-8|;"
                                   "|-|image/png|\x89PNG\r$\x1a$;";
    static peer server;
    static char body[BODY], request[2 * BODY];
    bide_http_multipart_writer writer;
    (void)state;
    peer_init(&server, &(bide_http_options){.handler = {&reading_body, sizeof(struct reading_handler)}});
    for (int in_chunks = 0; in_chunks < 2; in_chunks++) {
        assert_int_equal(bide_http_multipart_writer_init(&writer), 0);
        size_t size = write_sample(&writer, body);
        size_t used = (size_t)snprintf(request, sizeof request, "POST / HTTP/1.1\r\nHost: a\r\nContent-Type: %s\r\n", writer.type);
        used += (size_t)snprintf(request + used, sizeof request - used, in_chunks ? "Transfer-Encoding: chunked\r\n\r\n%zx\r\n"
                                                                                  : "Content-Length: %zu\r\n\r\n", size);
        memcpy(request + used, body, size);
        used += size;
        used += (size_t)snprintf(request + used, sizeof request - used, "%s", in_chunks ? "\r\n0\r\n\r\n" : "");
        memset(received, 0, sizeof received);
        assert_int_equal(peer_say_bytes(&server, request, used), 0);
        assert_int_equal(atoi(server.output + 9), 200);
        assert_string_equal(received, expected);
    }
    peer_end(&server);
}

int main(int count, char **arguments)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(heads_are_those_of_browsers),
        cmocka_unit_test(boundaries_differ),
        cmocka_unit_test(a_body_without_parts_is_its_end),
        cmocka_unit_test(texts_that_readers_could_take_otherwise_are_refused),
        cmocka_unit_test(a_length_is_that_of_the_body),
        cmocka_unit_test(what_does_not_fit_has_not_begun),
        cmocka_unit_test(the_librarys_reader_finds_the_parts),
    };
    if (count > 1 && strcmp(arguments[1], "--write") == 0) {
        static char body[BODY];
        bide_http_multipart_writer writer;
        if (bide_http_multipart_writer_init(&writer) < 0)
            return 1;
        size_t size = write_sample(&writer, body);
        return printf("%s\n", writer.type) < 0 || fwrite(body, 1, size, stdout) != size || fflush(stdout) != 0;
    }
    return cmocka_run_group_tests_name("http_multipart_writer", tests, NULL, NULL);
}

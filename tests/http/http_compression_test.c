/*
 * Compressed responses, decompressed by zlib in the test: which responses are compressed, their heads, bodies in
 * pieces and with flushes, bodies that end early, handlers that fail or are cancelled, and missing memory.
 */
#include "http_peer.h"

#define ZLIB_CONST
#include <zlib.h>

enum { TEXT = 200000 };

static char text[TEXT];
static char plain[PEER_OUTPUT];
static bide_http_compression compression;
static peer one;

/* What the handler does. */
static struct {
    const char *type;
    const char *fields[4][2];
    int status;
    size_t size;      /* of the body, from the beginning of `text` */
    bool has_length;  /* it is announced */
    size_t length;    /* the announced one, if it is not `size` */
    size_t piece;     /* of a write; 0: bide_http_respond */
    unsigned flushes; /* after so many writes; 0: none */
    int ends_with;
    bool allows, forbids;
    bool has_trailer;
} script;

static int trailer_status;
static int last_status;

struct handler {
    bide_http_exchange exchange;
    size_t at;
    unsigned writes;
    int status;
};

static size_t handler_next(const struct handler *self)
{
    return script.size - self->at < script.piece ? script.size - self->at : script.piece;
}

bide_coroutine(handler_body)
{
    bide_begin(handler_body, struct handler * self);
    handled.begun++;
    if (script.type != NULL)
        bide_http_add(&self->exchange, "Content-Type", script.type);
    for (int i = 0; i < 4 && script.fields[i][0] != NULL; i++)
        bide_http_add(&self->exchange, script.fields[i][0], script.fields[i][1]);
    if (script.status != 0)
        self->exchange.status = script.status;
    if (script.allows || script.forbids)
        bide_http_set_compression(&self->exchange, script.allows);
    if (script.piece == 0) {
        bide_try(bide_http_respond(&self->exchange, text, script.size));
        bide_return(script.ends_with);
    }
    if (script.has_length)
        (void)bide_http_start_response(&self->exchange,
                                       script.length != 0 ? script.length : script.size);
    self->writes = 0;
    for (self->at = 0; self->at < script.size; self->at += handler_next(self)) {
        bide_await_status(last_status,
                          bide_http_write(&self->exchange, text + self->at, handler_next(self)));
        if (last_status < 0)
            bide_return(last_status);
        if (script.flushes != 0 && ++self->writes % script.flushes == 0)
            bide_try(bide_http_flush(&self->exchange));
    }
    if (script.has_trailer)
        trailer_status = bide_http_add_trailer(&self->exchange, "X-Sum", "1");
    bide_return(script.ends_with);
    bide_finally();
    handled.ended++;
    bide_end();
}

static void set_up_with(const bide_http_compression_options *options)
{
    assert_int_equal(bide_http_compression_init(&compression, options), 0);
    peer_init(&one, &(bide_http_options){.handler = {&handler_body, sizeof(struct handler)},
                                         .compression = &compression});
    memset(&script, 0, sizeof script);
    script.type = "text/plain";
    script.size = 5000;
}

static void tear_down_peer(void)
{
    assert_int_equal(compression.active, 0);
    bide_http_compression_destroy(&compression);
    peer_end(&one);
}

static int set_up(void **state)
{
    static const char words[] =
        "the quick brown fox jumps over the lazy dog again and again 0123456789";
    uint32_t draw = 1;
    (void)state;
    for (size_t i = 0; i < TEXT; i++) {
        draw = draw * 1664525U + 1013904223U;
        text[i] = words[(draw >> 24) % (sizeof words - 1)];
    }
    set_up_with(NULL);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    tear_down_peer();
    return 0;
}

/* ---- The second implementation: chunks are taken apart here, and the rest is zlib's ---- */

static char body[PEER_OUTPUT];

/* Takes the chunks of `from` apart. Returns the body's size, or -1 if its end is missing. */
static ptrdiff_t take_chunks_apart(const char *from, const char *end)
{
    size_t size = 0;
    for (;;) {
        char *at;
        unsigned long chunk = strtoul(from, &at, 16);
        if (at + 2 > end || memcmp(at, "\r\n", 2) != 0)
            return -1;
        from = at + 2;
        if (chunk == 0)
            return from + 2 == end && memcmp(from, "\r\n", 2) == 0 ? (ptrdiff_t)size : -1;
        if ((size_t)(end - from) < chunk + 2)
            return -1;
        memcpy(body + size, from, chunk);
        size += chunk;
        from += chunk + 2;
    }
}

/* Decompresses into `plain`. Returns its size, or -1 if it is spoilt or does not end. */
static ptrdiff_t decompress(const char *data, size_t size)
{
    z_stream stream;
    memset(&stream, 0, sizeof stream);
    assert_int_equal(inflateInit2(&stream, 15 + 16), Z_OK);
    stream.next_in = (const Bytef *)data;
    stream.avail_in = (uInt)size;
    stream.next_out = (Bytef *)plain;
    stream.avail_out = sizeof plain;
    int result = inflate(&stream, Z_FINISH);
    ptrdiff_t count = (ptrdiff_t)(sizeof plain - stream.avail_out);
    bool is_whole = result == Z_STREAM_END && stream.avail_in == 0;
    inflateEnd(&stream);
    return is_whole ? count : -1;
}

#define REQUEST(fields) "GET / HTTP/1.1\r\nHost: a\r\n" fields "\r\n"

/* The head has this line. */
static bool has_line(const char *line)
{
    char whole[256];
    const char *end = strstr(one.output, "\r\n\r\n");
    assert_non_null(end);
    snprintf(whole, sizeof whole, "\r\n%s\r\n", line);
    const char *at = strstr(one.output, whole);
    return at != NULL && at < end + 2;
}

/* Is the response compressed, and is its body that of the script? */
static bool is_compressed(void)
{
    const char *begin = strstr(one.output, "\r\n\r\n") + 4;
    const char *end = one.output + one.output_size;
    if (!has_line("Content-Encoding: gzip")) {
        assert_int_equal(end - begin, script.size);
        assert_memory_equal(begin, text, script.size);
        return false;
    }
    assert_true(has_line("Vary: Accept-Encoding"));
    assert_null(strstr(one.output, "Content-Length"));
    ptrdiff_t size = take_chunks_apart(begin, end);
    assert_true(size > 0);
    assert_int_equal(decompress(body, (size_t)size), script.size);
    assert_memory_equal(plain, text, script.size);
    return true;
}

/* Sends the request with this field and tells whether the response is compressed. */
static bool compresses_for(const char *fields)
{
    char request[512];
    snprintf(request, sizeof request, "GET / HTTP/1.1\r\nHost: a\r\n%s\r\n", fields);
    assert_int_equal(peer_say(&one, request), 0);
    return is_compressed();
}

/* ---- Tests ---- */

static void a_text_is_compressed(void **state)
{
    (void)state;
    assert_true(compresses_for("Accept-Encoding: gzip\r\n"));
    assert_true(one.output_size < script.size * 3 / 4);
    script.size = TEXT;
    assert_true(compresses_for("Accept-Encoding: gzip\r\n"));
    assert_int_equal(compression.stats.responses, 2);
    assert_int_equal(compression.stats.in, 5000 + TEXT);
}

static void the_client_chooses(void **state)
{
    static const struct {
        const char *field;
        bool compresses;
    } rows[] = {
        {"", false},
        {"Accept-Encoding: \r\n", false},
        {"Accept-Encoding: identity\r\n", false},
        {"Accept-Encoding: br\r\n", false},
        {"Accept-Encoding: GZIP\r\n", true},
        {"Accept-Encoding: x-gzip\r\n", true},
        {"Accept-Encoding: deflate, gzip, br\r\n", true},
        {"Accept-Encoding: gzip;q=0\r\n", false},
        {"Accept-Encoding: gzip;q=0.000\r\n", false},
        {"Accept-Encoding: gzip; q=0.001\r\n", true},
        {"Accept-Encoding: gzip;q=1.0\r\n", true},
        {"Accept-Encoding: gzip;q=1.1\r\n", false},
        {"Accept-Encoding: gzip;q=x\r\n", false},
        {"Accept-Encoding: gzip;q=0.5, identity;q=1\r\n", false},
        {"Accept-Encoding: gzip;q=0.5, identity;q=0.5\r\n", true},
        {"Accept-Encoding: gzip;q=0.5, identity;q=0\r\n", true},
        {"Accept-Encoding: *\r\n", true},
        {"Accept-Encoding: *;q=0\r\n", false},
        {"Accept-Encoding: gzip;q=0, *\r\n", false},
        {"Accept-Encoding: *;q=0, gzip\r\n", true},
        {"Accept-Encoding: br\r\nAccept-Encoding: gzip\r\n", true},
        {"Accept-Encoding: gzip;q=0, gzip\r\n", false},
        {"Accept-Encoding: ,, ;,gzip\r\n", true},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (compresses_for(rows[i].field) != rows[i].compresses)
            fail_msg("%s", rows[i].field);
        assert_true(has_line("Vary: Accept-Encoding"));
    }
}

static void only_these_types_are_compressed(void **state)
{
    static const struct {
        const char *type;
        bool compresses;
    } rows[] = {
        {"text/html; charset=utf-8", true},
        {"TEXT/HTML", true},
        {"application/json", true},
        {"application/json;x", true},
        {"image/svg+xml", true},
        {"image/png", false},
        {"application/gzip", false},
        {"video/mp4", false},
        {"text/event-stream", false},
        {"application/jsonx", false},
        {"application/jso", false},
        {NULL, false},
        {"text", false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        script.type = rows[i].type;
        if (compresses_for("Accept-Encoding: gzip\r\n") != rows[i].compresses)
            fail_msg("%s", rows[i].type);
        assert_int_equal(has_line("Vary: Accept-Encoding"), rows[i].compresses);
    }
}

static void the_options_name_types_and_sizes(void **state)
{
    (void)state;
    tear_down_peer();
    set_up_with(&(bide_http_compression_options){
        .types = "image/*,text/event-stream", .min_length = 100, .level = 9});
    script.type = "image/png";
    assert_true(compresses_for("Accept-Encoding: gzip\r\n"));
    script.type = "text/event-stream";
    assert_true(compresses_for("Accept-Encoding: gzip\r\n"));
    script.type = "text/plain";
    assert_false(compresses_for("Accept-Encoding: gzip\r\n"));
    script.type = "image/png";
    script.size = 100;
    assert_true(compresses_for("Accept-Encoding: gzip\r\n"));
    script.size = 99;
    assert_false(compresses_for("Accept-Encoding: gzip\r\n"));
    bide_http_compression other;
    assert_int_equal(
        bide_http_compression_init(&other, &(bide_http_compression_options){.level = 10}), -EINVAL);
    assert_int_equal(
        bide_http_compression_init(&other, &(bide_http_compression_options){.level = -1}), -EINVAL);
}

static void short_bodies_and_those_that_forbid_it_stay_as_they_are(void **state)
{
    (void)state;
    script.size = 1023;
    assert_false(compresses_for("Accept-Encoding: gzip\r\n"));
    script.size = 1024;
    assert_true(compresses_for("Accept-Encoding: gzip\r\n"));
    static const char *const fields[][2] = {{"Content-Encoding", "br"},
                                            {"Content-Range", "bytes 0-1023/2000"},
                                            {"Trailer", "X-Sum"},
                                            {"Cache-Control", "public, No-Transform"}};
    for (size_t i = 0; i < 4; i++) {
        script.fields[0][0] = fields[i][0];
        script.fields[0][1] = fields[i][1];
        if (compresses_for("Accept-Encoding: gzip\r\n"))
            fail_msg("%s", fields[i][0]);
    }
    script.fields[0][0] = NULL;
    script.status = 206;
    assert_false(compresses_for("Accept-Encoding: gzip\r\n"));
    script.status = 404;
    assert_true(compresses_for("Accept-Encoding: gzip\r\n"));
    /* a client of HTTP/1.0 */
    script.status = 0;
    assert_int_equal(peer_say(&one, "GET / HTTP/1.0\r\nAccept-Encoding: gzip\r\n\r\n"), 0);
    assert_false(is_compressed());
}

static void a_handler_may_forbid_it_or_ask_for_it(void **state)
{
    (void)state;
    script.forbids = true;
    assert_false(compresses_for("Accept-Encoding: gzip\r\n"));
    tear_down_peer();
    set_up_with(&(bide_http_compression_options){.only_if_asked = true});
    assert_false(compresses_for("Accept-Encoding: gzip\r\n"));
    assert_false(has_line("Vary: Accept-Encoding"));
    script.allows = true;
    assert_true(compresses_for("Accept-Encoding: gzip\r\n"));
}

static void the_tag_becomes_weak_and_ranges_are_not_offered(void **state)
{
    (void)state;
    script.fields[0][0] = "Accept-Ranges";
    script.fields[0][1] = "bytes";
    script.fields[1][0] = "ETag";
    script.fields[1][1] = "\"a\"";
    script.fields[2][0] = "X-After";
    script.fields[2][1] = "1";
    assert_true(compresses_for("Accept-Encoding: gzip\r\n"));
    assert_true(has_line("ETag: W/\"a\"") && has_line("X-After: 1") &&
                !has_line("Accept-Ranges: bytes"));
    assert_false(compresses_for(""));
    assert_true(has_line("ETag: \"a\"") && has_line("X-After: 1") &&
                has_line("Accept-Ranges: bytes"));
    /* in the other order, and of a tag that is weak already */
    script.fields[0][0] = "ETag";
    script.fields[0][1] = "W/\"a\"";
    script.fields[1][0] = "Accept-Ranges";
    script.fields[1][1] = "bytes";
    assert_true(compresses_for("Accept-Encoding: gzip\r\n"));
    assert_true(has_line("ETag: W/\"a\"") && has_line("X-After: 1") &&
                !has_line("Accept-Ranges: bytes"));
    script.fields[0][1] = "\"a\"";
    assert_true(compresses_for("Accept-Encoding: gzip\r\n"));
    assert_true(has_line("ETag: W/\"a\"") && has_line("X-After: 1") &&
                !has_line("Accept-Ranges: bytes"));
}

static void an_unchanged_response_has_the_tag_that_the_client_knows(void **state)
{
    (void)state;
    script.status = 304;
    script.type = NULL;
    script.size = 0;
    script.fields[0][0] = "ETag";
    script.fields[0][1] = "\"a\"";
    assert_int_equal(
        peer_say(&one, REQUEST("Accept-Encoding: gzip\r\nIf-None-Match: \"b\", W/\"a\"\r\n")), 0);
    assert_true(has_line("ETag: W/\"a\"") && has_line("Vary: Accept-Encoding"));
    assert_int_equal(peer_say(&one, REQUEST("Accept-Encoding: gzip\r\nIf-None-Match: \"a\"\r\n")),
                     0);
    assert_true(has_line("ETag: \"a\"") && has_line("Vary: Accept-Encoding"));
}

static void vary_is_named_once(void **state)
{
    (void)state;
    script.fields[0][0] = "Vary";
    script.fields[0][1] = "Origin, accept-encoding";
    assert_int_equal(peer_say(&one, REQUEST("Accept-Encoding: gzip\r\n")), 0);
    assert_true(has_line("Content-Encoding: gzip") && !has_line("Vary: Accept-Encoding"));
    script.fields[0][1] = "Origin";
    assert_true(compresses_for("Accept-Encoding: gzip\r\n"));
}

static void head_has_the_fields_of_get(void **state)
{
    char head[1024];
    (void)state;
    for (int i = 0; i < 2; i++) {
        script.piece = i == 0 ? 0 : 100;
        assert_true(compresses_for("Accept-Encoding: gzip\r\n"));
        size_t size = (size_t)(strstr(one.output, "\r\n\r\n") + 4 - one.output);
        memcpy(head, one.output, size);
        assert_int_equal(peer_say(&one,
                                  "HEAD / HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n"
                                  "HEAD / HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n"),
                         0);
        assert_int_equal(one.output_size, 2 * size);
        assert_memory_equal(one.output, head, size);
        assert_memory_equal(one.output + size, head, size);
    }
    assert_int_equal(compression.stats.responses, 2);
}

static void pieces_and_flushes_arrive_in_order(void **state)
{
    unsigned executions = 0;
    (void)state;
    script.size = 30000;
    for (int i = 0; i < 2; i++)
        for (size_t piece = 1; piece < 40000; piece = piece * 3 + 1)
            for (unsigned flushes = 0; flushes < 4; flushes++)
                for (size_t room = 64; room <= 4096; room *= 8) {
                    script.has_length = i != 0;
                    script.piece = piece;
                    script.flushes = flushes;
                    one.piece = room;
                    assert_true(compresses_for("Accept-Encoding: gzip\r\n"));
                    executions++;
                }
    printf("# %u executions\n", executions);
}

static void a_flush_sends_all_that_was_written(void **state)
{
    (void)state;
    script.piece = 4000;
    script.flushes = 1;
    assert_true(compresses_for("Accept-Encoding: gzip\r\n"));
    ptrdiff_t size =
        take_chunks_apart(strstr(one.output, "\r\n\r\n") + 4, one.output + one.output_size);
    const char *mark = memmem(body, (size_t)size, "\0\0\xff\xff", 4);
    assert_non_null(mark);
    /* what stands before the mark of the first flush is the first piece */
    z_stream stream;
    memset(&stream, 0, sizeof stream);
    assert_int_equal(inflateInit2(&stream, 15 + 16), Z_OK);
    stream.next_in = (const Bytef *)body;
    stream.avail_in = (uInt)(mark + 4 - body);
    stream.next_out = (Bytef *)plain;
    stream.avail_out = sizeof plain;
    assert_int_equal(inflate(&stream, Z_SYNC_FLUSH), Z_OK);
    assert_int_equal(sizeof plain - stream.avail_out, 4000);
    inflateEnd(&stream);
}

static void a_body_that_is_cut_off_has_no_end(void **state)
{
    (void)state;
    script.piece = 100;
    script.has_length = true;
    script.length = 6000;
    assert_int_equal(peer_say(&one, REQUEST("Accept-Encoding: gzip\r\n") REQUEST("")), -ENODATA);
    const char *begin = strstr(one.output, "\r\n\r\n");
    assert_true(begin == NULL || take_chunks_apart(begin + 4, one.output + one.output_size) == -1);
    /* and no more is taken than was announced */
    script.length = 4950;
    assert_int_equal(peer_say(&one, REQUEST("Accept-Encoding: gzip\r\n")), 0);
    assert_int_equal(last_status, -EMSGSIZE);
    assert_int_equal(strncmp(one.output, "HTTP/1.1 500 ", 13), 0);
}

static void a_complete_response_is_not_replaced_and_another_is(void **state)
{
    (void)state;
    script.ends_with = -EIO;
    assert_true(compresses_for("Accept-Encoding: gzip\r\n"));
    assert_int_equal(strncmp(one.output, "HTTP/1.1 200 ", 13), 0);
    script.piece = 100;
    script.has_length = true;
    assert_true(compresses_for("Accept-Encoding: gzip\r\n"));
    assert_int_equal(peer_say(&one, "HEAD / HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n"),
                     0);
    assert_int_equal(strncmp(one.output, "HTTP/1.1 200 ", 13), 0);
    script.has_length = false;
    assert_int_equal(peer_say(&one, REQUEST("Accept-Encoding: gzip\r\n") REQUEST("")), 0);
    assert_int_equal(strncmp(one.output, "HTTP/1.1 500 ", 13), 0);
    assert_false(has_line("Content-Encoding: gzip"));
    assert_non_null(strstr(one.output, "\r\n\r\n500 Internal Server Error\nHTTP/1.1 500 "));
}

static void trailers_are_refused_unless_they_are_announced(void **state)
{
    (void)state;
    script.piece = 1000;
    script.has_trailer = true;
    assert_true(compresses_for("Accept-Encoding: gzip\r\n"));
    assert_int_equal(trailer_status, -EINVAL);
    script.fields[0][0] = "Trailer";
    script.fields[0][1] = "X-Sum";
    assert_int_equal(peer_say(&one, REQUEST("Accept-Encoding: gzip\r\n")), 0);
    assert_int_equal(trailer_status, 0);
    assert_non_null(strstr(one.output, "\r\n0\r\nX-Sum: 1\r\n\r\n"));
}

static void requests_that_follow_each_other_share_an_encoder(void **state)
{
    (void)state;
    one.piece = 1000;
    assert_int_equal(
        peer_say(&one, REQUEST("Accept-Encoding: gzip\r\n") REQUEST("Accept-Encoding: gzip\r\n")),
        0);
    assert_int_equal(compression.idle_count, 1);
    assert_int_equal(compression.stats.responses, 2);
}

static void above_the_limit_responses_are_not_compressed(void **state)
{
    (void)state;
    compression.active = compression.options.max_active;
    assert_false(compresses_for("Accept-Encoding: gzip\r\n"));
    assert_true(has_line("Vary: Accept-Encoding"));
    assert_int_equal(compression.stats.skipped, 1);
    compression.active = 0;
}

static struct {
    bide_allocator allocator;
    unsigned left;
    size_t used;
} scarce;

static void *allocate_scarce(bide_allocator *allocator, size_t size)
{
    (void)allocator;
    if (scarce.left == 0)
        return NULL;
    scarce.left--;
    scarce.used += size;
    return malloc(size);
}

static void deallocate_scarce(bide_allocator *allocator, void *memory, size_t size)
{
    (void)allocator;
    scarce.used -= size;
    free(memory);
}

static void without_memory_responses_are_not_compressed(void **state)
{
    (void)state;
    scarce.allocator = (bide_allocator){allocate_scarce, deallocate_scarce};
    bool compresses = false;
    for (unsigned count = 0; !compresses; count++) {
        assert_true(count < 20);
        tear_down_peer();
        set_up_with(&(bide_http_compression_options){.allocator = &scarce.allocator});
        scarce.left = count;
        compresses = compresses_for("Accept-Encoding: gzip\r\n");
        assert_int_equal(compression.stats.skipped, !compresses);
    }
    assert_true(compression.idle_count == 1 && scarce.used > 200000);
    bide_http_compression_destroy(&compression);
    assert_int_equal(scarce.used, 0);
}

static void a_cancelled_handler_gives_its_encoder_back(void **state)
{
    (void)state;
    script.size = TEXT;
    script.piece = 5000;
    for (unsigned turns = 1; turns < 60; turns++) {
        one.piece = 64;
        one.stop_after = turns;
        (void)peer_say(&one, REQUEST("Accept-Encoding: gzip\r\n"));
        assert_int_equal(compression.active, 0);
    }
}

static void a_client_that_leaves_ends_it(void **state)
{
    (void)state;
    script.size = TEXT;
    script.piece = 5000;
    one.reads_not = true;
    one.piece = 64;
    assert_true(peer_say(&one, REQUEST("Accept-Encoding: gzip\r\n")) < 0);
    assert_int_equal(compression.active, 0);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        TEST(a_text_is_compressed),
        TEST(the_client_chooses),
        TEST(only_these_types_are_compressed),
        TEST(the_options_name_types_and_sizes),
        TEST(short_bodies_and_those_that_forbid_it_stay_as_they_are),
        TEST(a_handler_may_forbid_it_or_ask_for_it),
        TEST(the_tag_becomes_weak_and_ranges_are_not_offered),
        TEST(an_unchanged_response_has_the_tag_that_the_client_knows),
        TEST(vary_is_named_once),
        TEST(head_has_the_fields_of_get),
        TEST(pieces_and_flushes_arrive_in_order),
        TEST(a_flush_sends_all_that_was_written),
        TEST(a_body_that_is_cut_off_has_no_end),
        TEST(a_complete_response_is_not_replaced_and_another_is),
        TEST(trailers_are_refused_unless_they_are_announced),
        TEST(requests_that_follow_each_other_share_an_encoder),
        TEST(above_the_limit_responses_are_not_compressed),
        TEST(without_memory_responses_are_not_compressed),
        TEST(a_cancelled_handler_gives_its_encoder_back),
        TEST(a_client_that_leaves_ends_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

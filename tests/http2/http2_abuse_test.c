/*
 * Invalid and abusive HTTP/2: heads that could be read as another request, heads that are too long,
 * requests that cost the client nothing but the server much, and randomly corrupted frames.
 */
#include "http2_talk.h"
#include "bide/http.h"

/* ---- Heads ---- */

enum { RESET = 1, OUTRIGHT = 2 }; /* or a status */

struct head_row {
    const char *what;
    int outcome;
    const char *const fields[10][2];
    const char *body;
};

#define USUAL {":method", "POST"}, {":scheme", "http"}, {":authority", "a.test"}, {":path", "/count"}

static const struct head_row heads[] = {
    {"a valid request", 200, {USUAL, {"x-a", "b"}}, NULL},
    {"a name with a space", RESET, {USUAL, {"x a", "b"}}, NULL},
    {"a name with a colon", RESET, {USUAL, {"x:a", "b"}}, NULL},
    {"no name", RESET, {USUAL, {"", "b"}}, NULL},
    {"a value with the end of a line", RESET, {USUAL, {"x-a", "b\r\nx-b: c"}}, NULL},
    {"a value with a line feed", RESET, {USUAL, {"x-a", "b\nc"}}, NULL},
    {"a value with a control character", RESET, {USUAL, {"x-a", "b\x01"}}, NULL},
    {"Connection", RESET, {USUAL, {"connection", "close"}}, NULL},
    {"Keep-Alive", RESET, {USUAL, {"keep-alive", "1"}}, NULL},
    {"Proxy-Connection", RESET, {USUAL, {"proxy-connection", "close"}}, NULL},
    {"Transfer-Encoding", RESET, {USUAL, {"transfer-encoding", "chunked"}}, NULL},
    {"Upgrade", RESET, {USUAL, {"upgrade", "h2c"}}, NULL},
    {"TE other than trailers", RESET, {USUAL, {"te", "gzip"}}, NULL},
    {"TE: trailers", 200, {USUAL, {"te", "trailers"}}, NULL},
    {"two lengths", RESET, {USUAL, {"content-length", "3"}, {"content-length", "3"}}, "abc"},
    {"two lengths that differ", RESET, {USUAL, {"content-length", "3"}, {"content-length", "4"}}, "abc"},
    {"an invalid length", RESET, {USUAL, {"content-length", "3x"}}, "abc"},
    {"a negative length", RESET, {USUAL, {"content-length", "-3"}}, "abc"},
    {"a length with a sign", RESET, {USUAL, {"content-length", "+3"}}, "abc"},
    {"a correct length", 200, {USUAL, {"content-length", "3"}}, "abc"},
    {"a body that is longer", RESET, {USUAL, {"content-length", "2"}}, "abc"},
    {"a body that is shorter", RESET, {USUAL, {"content-length", "4"}}, "abc"},
    {"no body although one was announced", RESET, {USUAL, {"content-length", "4"}}, NULL},
    {"no method", RESET, {{":scheme", "http"}, {":authority", "a"}, {":path", "/count"}}, NULL},
    {"no scheme", RESET, {{":method", "GET"}, {":authority", "a"}, {":path", "/count"}}, NULL},
    {"no path", RESET, {{":method", "GET"}, {":authority", "a"}, {":scheme", "http"}}, NULL},
    {"an empty path", RESET, {{":method", "GET"}, {":scheme", "http"}, {":authority", "a"}, {":path", ""}}, NULL},
    {"a path without a slash", RESET, {{":method", "GET"}, {":scheme", "http"}, {":authority", "a"}, {":path", "count"}}, NULL},
    {"a path with a space", OUTRIGHT, {{":method", "GET"}, {":scheme", "http"}, {":authority", "a"}, {":path", "/a b HTTP/1.1"}}, NULL},
    {"a path with the end of a line", RESET, {{":method", "GET"}, {":scheme", "http"}, {":authority", "a"}, {":path", "/\r\nx: y"}}, NULL},
    {"two methods", RESET, {USUAL, {":method", "GET"}}, NULL},
    {"two paths", RESET, {USUAL, {":path", "/hello"}}, NULL},
    {"two authorities", RESET, {USUAL, {":authority", "b"}}, NULL},
    {"a pseudo field after other fields", RESET, {{":method", "GET"}, {":scheme", "http"}, {"x-a", "b"}, {":path", "/hello"}}, NULL},
    {"an unknown pseudo field", RESET, {USUAL, {":what", "x"}}, NULL},
    {"a pseudo field of responses", RESET, {USUAL, {":status", "200"}}, NULL},
    {"a method with a space", RESET, {{":method", "GET /"}, {":scheme", "http"}, {":authority", "a"}, {":path", "/hello"}}, NULL},
    {"Host equal to the authority", 200, {USUAL, {"host", "A.test"}}, NULL},
    {"a different Host", OUTRIGHT, {USUAL, {"host", "b.test"}}, NULL},
    {"two Host fields", RESET, {USUAL, {"host", "a.test"}, {"host", "a.test"}}, NULL},
    {"an authority with a slash", OUTRIGHT, {{":method", "GET"}, {":scheme", "http"}, {":authority", "a/b"}, {":path", "/hello"}}, NULL},
    {"an authority with a user", OUTRIGHT, {{":method", "GET"}, {":scheme", "http"}, {":authority", "u@a"}, {":path", "/hello"}}, NULL},
    {"an authority with letters for a port", OUTRIGHT, {{":method", "GET"}, {":scheme", "http"}, {":authority", "a:b"}, {":path", "/hello"}}, NULL},
    {"an authority with an open bracket", OUTRIGHT, {{":method", "GET"}, {":scheme", "http"}, {":authority", "[::1"}, {":path", "/hello"}}, NULL},
    {"an authority with an invalid escape", OUTRIGHT, {{":method", "GET"}, {":scheme", "http"}, {":authority", "%zz"}, {":path", "/hello"}}, NULL},
    {"an authority of IPv6", 200, {{":method", "GET"}, {":scheme", "http"}, {":authority", "[::1]:8080"}, {":path", "/hello"}}, NULL},
    {"an unknown expectation", 417, {USUAL, {"expect", "much"}}, NULL},
};

/* The stream was ended, or the connection was (RFC 9113, 5.4.1), by a PROTOCOL_ERROR. */
static bool is_error(const ask *ask)
{
    return ask->code == NGHTTP2_PROTOCOL_ERROR || one.client.goaway == NGHTTP2_PROTOCOL_ERROR;
}

/* The request was rejected before a handler saw it. */
static bool is_as_expected(const struct head_row *row, const ask *ask, unsigned begun)
{
    switch (row->outcome) {
    case 200:
        return ask->code == NGHTTP2_NO_ERROR && ask->status == 200 && begun == 1;
    case RESET:
        /* (an error in the body is found after the handler has started) */
        return is_error(ask) && (begun == 0 || row->body != NULL);
    case OUTRIGHT:
        return begun == 0 && (ask->status == 400 || is_error(ask));
    default:
        return begun == 0 && ask->status == row->outcome;
    }
}

static void ambiguous_heads_are_rejected(void **state)
{
    (void)state;
    unsigned wrong = 0;
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        const struct head_row *row = &heads[i];
        one.client.ask_count = 0;
        one.client.is_lenient = true;
        ask *ask = talk2_post(&one, "", row->body, row->body != NULL ? strlen(row->body) : 0);
        ask->fields = row->fields;
        ask->is_bare = true;
        int status = talk2_run(&one);
        if (status != 0 || !is_as_expected(row, ask, handled.begun)) {
            printf("# %s: status %d, code %d, begun %u, connection's end %d\n", row->what, ask->status, (int)ask->code,
                   handled.begun, status);
            wrong++;
        }
    }
    assert_int_equal(wrong, 0);
}

static struct seen {
    char host[64], field[64], cookie[128], path[64], query[64], method[16];
    int major;
    size_t fields;
} seen;

static void copy(char *to, size_t size, bide_slice text)
{
    snprintf(to, size, "%.*s", (int)text.size, text.data != NULL ? text.data : "");
}

struct look {
    bide_http_exchange exchange;
};

bide_coroutine(look_body)
{
    bide_begin(look_body, struct look * self);
    const bide_http_request *request = &self->exchange.request;
    copy(seen.host, sizeof seen.host, request->host);
    copy(seen.field, sizeof seen.field, bide_http_request_field(&self->exchange, "Host"));
    copy(seen.cookie, sizeof seen.cookie, bide_http_request_field(&self->exchange, "cookie"));
    copy(seen.path, sizeof seen.path, request->path);
    copy(seen.query, sizeof seen.query, request->query);
    copy(seen.method, sizeof seen.method, request->method_name);
    seen.major = request->major;
    seen.fields = request->field_count;
    bide_try(bide_http_respond(&self->exchange, NULL, 0));
    bide_end();
}

static void a_handler_sees_the_same_as_with_http_1(void **state)
{
    static const char *const fields[][2] = {{"cookie", "a=1"}, {"x-a", "b"}, {"cookie", "b=2"}, {"cookie", "c=3"}, {NULL, NULL}};
    (void)state;
    use(&(bide_http_options){.handler = {&look_body, sizeof(struct look)}}, NULL);
    ask *ask = talk2_ask(&one, "/some/path?and=query");
    ask->fields = fields;
    assert_int_equal(talk2_run(&one), 0);
    assert_int_equal(ask->status, 200);
    assert_string_equal(seen.host, "example.org");
    assert_string_equal(seen.field, "example.org");
    assert_string_equal(seen.cookie, "a=1; b=2; c=3");
    assert_string_equal(seen.path, "/some/path");
    assert_string_equal(seen.query, "and=query");
    assert_string_equal(seen.method, "GET");
    assert_int_equal(seen.major, 2);
    assert_int_equal(seen.fields, 3);
}

/* ---- Limits ---- */

static unsigned refused_count;
static char refused_line[400];

static void note_refused(bide_http_connection *connection, bide_slice line, int status)
{
    (void)connection;
    refused_count++;
    if (status == 413)
        snprintf(refused_line, sizeof refused_line, "%.*s", (int)line.size, line.data);
}

static void oversized_requests_are_rejected(void **state)
{
    static char path[3000], value[3000];
    static const char *fields[80][2];
    (void)state;
    use(&(bide_http_options){.max_head = 2000, .max_target = 100, .max_fields = 10, .max_body = 10, .refused = note_refused}, NULL);
    path[0] = '/';
    memset(path + 1, 'x', 200);
    memset(value, 'y', sizeof value - 1);
    talk2_ask(&one, path); /* 414 */
    ask *long_value = talk2_ask(&one, "/hello"), *many = talk2_ask(&one, "/hello");
    fields[0][0] = "x-a";
    fields[0][1] = value;
    long_value->fields = (const char *const(*)[2])fields;
    static const char *few[20][2];
    for (int i = 0; i < 12; i++) {
        few[i][0] = "x-a";
        few[i][1] = "b";
    }
    many->fields = (const char *const(*)[2])few;
    ask *said = talk2_post(&one, "/count", "0123456789a", 11), *chunks = talk2_post(&one, "/count", "0123456789a", 11);
    static const char *const length[][2] = {{"content-length", "11"}, {NULL, NULL}};
    said->fields = length;
    ask *fits = talk2_post(&one, "/count", "0123456789", 10);
    assert_int_equal(talk2_run(&one), 0);
    assert_int_equal(one.asks[0].status, 414);
    assert_int_equal(long_value->status, 431);
    assert_int_equal(many->status, 431);
    assert_int_equal(said->status, 413);
    assert_int_equal(chunks->status, 413);
    assert_int_equal(fits->status, 200);
    assert_int_equal(one.server.stats.refused, 4);
    assert_int_equal(refused_count, 4);
    assert_string_equal(refused_line, "POST /count HTTP/2.0");
}

/* ---- Floods ---- */

static char flood[1 << 20];
static size_t flood_size;

static void put_bytes(const void *data, size_t size)
{
    assert_true(size <= sizeof flood - flood_size);
    memcpy(flood + flood_size, data, size);
    flood_size += size;
}

static void put_frame(uint8_t type, uint8_t flags, uint32_t stream, const void *data, size_t size)
{
    unsigned char head[9] = {(unsigned char)(size >> 16), (unsigned char)(size >> 8), (unsigned char)size, type, flags,
                             (unsigned char)(stream >> 24), (unsigned char)(stream >> 16), (unsigned char)(stream >> 8),
                             (unsigned char)stream};
    put_bytes(head, sizeof head);
    if (size != 0)
        put_bytes(data, size);
}

/* GET /slow, in HPACK: indexed :method GET, :scheme http, literals for :authority and :path */
static const char slow_head[] = "\x82\x86\x01\x01" "a" "\x04\x05" "/slow";
static const char bad_head[] = "\x82\x86\x01\x01" "a" "\x04\x05" "/slow" "\x40\x01" "x" "\x01" "\n";
static const char hello_head[] = "\x82\x86\x01\x01" "a" "\x04\x06" "/hello";
static const char post_head[] = "\x83\x86\x01\x01" "a" "\x04\x06" "/count";

static int say_flood(void)
{
    one.client.raw = flood;
    one.client.raw_size = flood_size;
    one.client.ask_count = 0;
    one.client.keeps = true;
    return talk2_run(&one);
}

static void begin_flood(void)
{
    flood_size = 0;
}

static void was_told_to_calm_down(void)
{
    assert_int_equal(one.http2.stats.floods, 1);
    assert_true(one.client.goaway == NGHTTP2_ENHANCE_YOUR_CALM || one.status == -EBADMSG);
    assert_true(one.took < 3 * SECOND);
}

static void streams_that_are_reset_at_once_are_bounded(void **state)
{
    (void)state;
    begin_flood();
    for (uint32_t i = 0; i < 5000; i++) {
        put_frame(NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS | NGHTTP2_FLAG_END_STREAM, 2 * i + 1, slow_head, sizeof slow_head - 1);
        put_frame(NGHTTP2_RST_STREAM, 0, 2 * i + 1, "\0\0\0\x08", 4);
    }
    (void)say_flood();
    was_told_to_calm_down();
    assert_in_range(one.http2.stats.streams, 1, 250);
    assert_true(handled.begun <= 250);
}

static void requests_that_are_none_are_bounded(void **state)
{
    static const char head[] = "\x82\x86\x01\x01" "a" "\x04\x05" "/slow" "\x40\x01" "X" "\x01" "b";
    (void)state;
    begin_flood();
    for (uint32_t i = 0; i < 10000; i++)
        put_frame(NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS | NGHTTP2_FLAG_END_STREAM, 2 * i + 1, head, sizeof head - 1);
    (void)say_flood();
    assert_int_equal(handled.begun, 0);
    assert_true(one.client.goaway != UINT32_MAX && one.took < 3 * SECOND && one.http2.stats.streams < 300);
    begin_flood(); /* too many requests */
    one.http2.stats.streams = 0;
    for (uint32_t i = 0; i < 10000; i++)
        put_frame(NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS | NGHTTP2_FLAG_END_STREAM, 2 * i + 1, slow_head, sizeof slow_head - 1);
    (void)say_flood();
    assert_true(one.took < 20 * SECOND && one.http2.stats.streams < 300);
}

static void frames_that_say_nothing_are_bounded(void **state)
{
    static const struct {
        const char *what;
        uint8_t type, flags;
        uint32_t stream;
        const char *data;
        size_t size;
    } rows[] = {
        {"PING", NGHTTP2_PING, 0, 0, "12345678", 8},
        {"SETTINGS", NGHTTP2_SETTINGS, 0, 0, "", 0},
        {"PRIORITY", NGHTTP2_PRIORITY, 0, 3, "\0\0\0\0\x10", 5},
        {"WINDOW_UPDATE", NGHTTP2_WINDOW_UPDATE, 0, 0, "\0\0\0\x01", 4},
        {"WINDOW_UPDATE of a stream", NGHTTP2_WINDOW_UPDATE, 0, 1, "\0\0\0\x01", 4},
        {"empty DATA", NGHTTP2_DATA, 0, 1, "", 0},
        {"DATA of padding only", NGHTTP2_DATA, NGHTTP2_FLAG_PADDED, 1, "\3\0\0\0", 4},
        {"an unknown frame", 0x42, 0, 0, "x", 1},
        {"an unknown frame of a stream", 0xff, 0, 1, "", 0},
        {"ALTSVC", 0x0a, 0, 1, "\0\0a", 3},
        {"DATA of a stream that the server has reset", NGHTTP2_DATA, 0, 3, "x", 1},
        {"HEADERS of a stream that the server has reset", NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, 3, "\x88", 1},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        begin_flood();
        one.http2.stats.floods = 0;
        put_frame(NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, 1, post_head, sizeof post_head - 1);
        if (rows[i].stream == 3 && rows[i].type <= NGHTTP2_HEADERS) /* (a value with a line feed) */
            put_frame(NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, 3, bad_head, sizeof bad_head - 1);
        for (int n = 0; n < 20000; n++)
            put_frame(rows[i].type, rows[i].flags, rows[i].stream, rows[i].data, rows[i].size);
        (void)say_flood();
        if (one.http2.stats.floods != 1)
            printf("# %s\n", rows[i].what);
        was_told_to_calm_down();
    }
}

/* Useful frames are not charged: much more of them than of the budget. */
static void frames_that_say_something_are_free(void **state)
{
    (void)state;
    use(NULL, &(bide_http2_options){.max_idle_frames = 20});
    begin_flood();
    put_frame(NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, 1, post_head, sizeof post_head - 1);
    for (int n = 0; n < 5000; n++)
        put_frame(NGHTTP2_DATA, 0, 1, "x", 1);
    put_frame(NGHTTP2_DATA, NGHTTP2_FLAG_END_STREAM, 1, "", 0);
    for (uint32_t i = 1; i < 1000; i++)
        put_frame(NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS | NGHTTP2_FLAG_END_STREAM, 2 * i + 1, hello_head, sizeof hello_head - 1);
    (void)say_flood();
    assert_int_equal(one.http2.stats.floods, 0);
    assert_int_equal(handled.read, 5000);
    assert_int_equal(handled.begun, 1000);
}

/* RFC 9113, 5.1 and 5.1.1. Each frame arrives by itself, so the response to an earlier one has been sent. */
static void frames_of_ended_streams_are_errors(void **state)
{
    enum { END = NGHTTP2_FLAG_END_HEADERS | NGHTTP2_FLAG_END_STREAM };
    static const struct {
        const char *what;
        uint32_t first, reset, id; /* the stream of a request; of a RST_STREAM, or 0; of the last frame */
        uint8_t type, flags;
        uint32_t code;
    } rows[] = {
        {"DATA after the end", 1, 0, 1, NGHTTP2_DATA, 0, NGHTTP2_STREAM_CLOSED},
        {"HEADERS after the end", 1, 0, 1, NGHTTP2_HEADERS, END, NGHTTP2_STREAM_CLOSED},
        {"CONTINUATION after the end", 1, 0, 1, NGHTTP2_CONTINUATION, END, NGHTTP2_PROTOCOL_ERROR},
        {"DATA after a reset", 1, 1, 1, NGHTTP2_DATA, 0, NGHTTP2_STREAM_CLOSED},
        {"HEADERS after a reset", 1, 1, 1, NGHTTP2_HEADERS, END, NGHTTP2_STREAM_CLOSED},
        {"DATA of an idle stream", 1, 0, 3, NGHTTP2_DATA, 0, NGHTTP2_PROTOCOL_ERROR},
        {"RST_STREAM of an idle stream", 1, 3, 1, NGHTTP2_PING, 0, NGHTTP2_PROTOCOL_ERROR},
        {"an even stream", 1, 0, 2, NGHTTP2_HEADERS, END, NGHTTP2_PROTOCOL_ERROR},
        {"WINDOW_UPDATE after the end", 1, 0, 1, NGHTTP2_WINDOW_UPDATE, 0, UINT32_MAX},
        {"PRIORITY after the end", 1, 0, 1, NGHTTP2_PRIORITY, 0, UINT32_MAX},
        {"the next stream", 1, 0, 3, NGHTTP2_HEADERS, END, UINT32_MAX},
    };
    (void)state;
    unsigned wrong = 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        bool has_body = rows[i].reset == 1;
        begin_flood();
        put_frame(NGHTTP2_HEADERS, has_body ? NGHTTP2_FLAG_END_HEADERS : END, rows[i].first, has_body ? post_head : hello_head,
                  (has_body ? sizeof post_head : sizeof hello_head) - 1);
        for (int n = 0; n < 20; n++) /* (time for the response) */
            put_frame(NGHTTP2_PING, 0, 0, "12345678", 8);
        if (rows[i].reset != 0)
            put_frame(NGHTTP2_RST_STREAM, 0, rows[i].reset, "\0\0\0\x08", 4);
        if (rows[i].type == NGHTTP2_HEADERS)
            put_frame(rows[i].type, rows[i].flags, rows[i].id, hello_head, sizeof hello_head - 1);
        else if (rows[i].type == NGHTTP2_PRIORITY)
            put_frame(rows[i].type, rows[i].flags, rows[i].id, "\0\0\0\0\x10", 5);
        else if (rows[i].type == NGHTTP2_PING)
            put_frame(rows[i].type, rows[i].flags, 0, "12345678", 8);
        else
            put_frame(rows[i].type, rows[i].flags, rows[i].id, "\0\0\0\1", 4);
        one.client.piece = 1;
        (void)say_flood();
        /* (without an error, the connection ends because it is idle) */
        uint32_t code = one.client.goaway == NGHTTP2_NO_ERROR ? UINT32_MAX : one.client.goaway;
        if (code != rows[i].code) {
            printf("# %s: %u\n", rows[i].what, code);
            wrong++;
        }
    }
    assert_int_equal(wrong, 0);
}

/* Handlers that wait and do not read their bodies hold back no other request. */
static void waiting_uploads_leave_others_their_window(void **state)
{
    static char body[200000];
    (void)state;
    for (size_t windows = 0; windows < 2; windows++) {
        use(NULL, &(bide_http2_options){.all_windows = windows == 0 ? 0 : 1});
        for (int i = 0; i < 40; i++)
            talk2_post(&one, "/slow", body, sizeof body);
        ask *last = talk2_post(&one, "/count-and-note", body, sizeof body);
        assert_int_equal(talk2_run(&one), 0);
        assert_int_equal(last->status, 200);
        for (int i = 0; i < 40; i++)
            assert_int_equal(one.asks[i].status, 200);
        if (windows == 0)
            assert_true(handled.counted_at < 2 * SECOND); /* (the loop's time starts at 1 s) */
        else
            assert_true(handled.counted_at >= 5 * SECOND); /* (it waits until the others have ended) */
    }
}

/* A connection has one stream at least, and others if the server's budget allows it. */
static void all_connections_share_a_number_of_streams(void **state)
{
    (void)state;
    use(NULL, &(bide_http2_options){.max_all_streams = 3});
    for (int i = 0; i < 10; i++)
        talk2_ask(&one, "/slow");
    assert_int_equal(talk2_run(&one), 0);
    int served = 0, refused = 0;
    for (int i = 0; i < 10; i++) {
        served += one.asks[i].status == 200;
        refused += one.asks[i].code == NGHTTP2_REFUSED_STREAM;
    }
    assert_int_equal(served, 3);
    assert_int_equal(refused, 7);
    assert_int_equal(one.http2.stats.refused, 7);
}

static void a_head_without_an_end_is_bounded(void **state)
{
    (void)state;
    begin_flood();
    put_frame(NGHTTP2_HEADERS, NGHTTP2_FLAG_END_STREAM, 1, slow_head, sizeof slow_head - 1);
    for (int n = 0; n < 20000; n++)
        put_frame(NGHTTP2_CONTINUATION, 0, 1, "\x40\x01" "a" "\x01" "b", 5);
    (void)say_flood();
    assert_int_equal(handled.begun, 0);
    assert_true(one.took < 3 * SECOND);
    /* an incomplete head is waited for no longer than a request */
    begin_flood();
    put_frame(NGHTTP2_HEADERS, NGHTTP2_FLAG_END_STREAM, 1, slow_head, sizeof slow_head - 1);
    (void)say_flood();
    assert_int_equal(handled.begun, 0);
    assert_true(one.took < 320 * SECOND);
}

/* (nghttp2's client does not send them) */
static void upper_case_names_are_rejected(void **state)
{
    static const char head[] = "\x83\x86\x01\x01" "a" "\x04\x06" "/count" "\x40\x03" "x-a" "\x01" "b";
    char upper[sizeof head];
    (void)state;
    begin_flood();
    put_frame(NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS | NGHTTP2_FLAG_END_STREAM, 1, head, sizeof head - 1);
    (void)say_flood();
    assert_int_equal(handled.begun, 1);
    memcpy(upper, head, sizeof head);
    *strchr(upper, 'x') = 'X';
    begin_flood();
    put_frame(NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS | NGHTTP2_FLAG_END_STREAM, 1, upper, sizeof head - 1);
    (void)say_flood();
    assert_int_equal(handled.begun, 0);
}

static void excess_streams_are_rejected(void **state)
{
    (void)state;
    use(NULL, &(bide_http2_options){.max_streams = 10});
    begin_flood();
    for (uint32_t i = 0; i < 100; i++)
        put_frame(NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS | NGHTTP2_FLAG_END_STREAM, 2 * i + 1, slow_head, sizeof slow_head - 1);
    (void)say_flood();
    assert_in_range(handled.begun, 0, 10);
}

/* ---- Random corruption ---- */

static uint64_t random_state;

static size_t draw(size_t below)
{
    return below == 0 ? 0 : (size_t)(testing_random(&random_state) % below);
}

/* Composes a sequence of mostly valid frames. */
static void compose(void)
{
    static const char settings[] = "\0\x04\0\0\x10\0";
    begin_flood();
    if (draw(20) != 0)
        put_bytes(NGHTTP2_CLIENT_MAGIC, sizeof NGHTTP2_CLIENT_MAGIC - 1);
    put_frame(NGHTTP2_SETTINGS, 0, 0, settings, 6 * draw(2));
    for (size_t n = 1 + draw(12); n != 0; n--) {
        uint32_t stream = 1 + 2 * (uint32_t)draw(4);
        uint8_t flags = (uint8_t)(draw(4) == 0 ? draw(256) : draw(2) * NGHTTP2_FLAG_END_STREAM);
        switch (draw(8)) {
        case 0:
        case 1:
            put_frame(NGHTTP2_HEADERS, flags | (draw(8) != 0 ? NGHTTP2_FLAG_END_HEADERS : 0), stream, slow_head, sizeof slow_head - 1);
            break;
        case 2:
            put_frame(NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, stream, post_head, sizeof post_head - 1);
            break;
        case 3:
            put_frame(NGHTTP2_DATA, flags, stream, "0123456789", draw(11));
            break;
        case 4:
            put_frame(NGHTTP2_RST_STREAM, flags, stream, "\0\0\0\x08", 4);
            break;
        case 5:
            put_frame(NGHTTP2_WINDOW_UPDATE, 0, (uint32_t)draw(2) * stream, "\0\0\x01\0", 4);
            break;
        case 6:
            put_frame((uint8_t)draw(12), flags, (uint32_t)draw(9), "0123456789", draw(11));
            break;
        default:
            put_frame(NGHTTP2_PING, flags & 1, 0, "12345678", 8);
            break;
        }
    }
    for (size_t times = draw(5); times != 0; times--)
        flood[draw(flood_size)] = (char)draw(256);
    if (draw(3) == 0)
        flood_size = draw(flood_size) + 1;
}

static void corrupted_frames_end_the_connection_or_do_nothing(void **state)
{
    (void)state;
    random_state = testing_seed();
    for (uint32_t round = rounds_of(10000); round != 0; round--) {
        compose();
        one.seed = draw(2) == 0 ? 0 : 1 + draw(1000000);
        one.client.piece = draw(3) == 0 ? 1 + draw(30) : 0;
        one.client.is_raw = true;
        one.client.keeps = draw(2) == 0;
        one.client.raw = flood;
        one.client.raw_size = flood_size;
        one.client.ask_count = 0;
        one.vanish_after = draw(4) == 0 ? 1 + (unsigned)draw(40) : 0;
        assert_true(talk2_run(&one) <= 0);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin_talk, end_talk)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(ambiguous_heads_are_rejected),
        TEST(a_handler_sees_the_same_as_with_http_1),
        TEST(oversized_requests_are_rejected),
        TEST(streams_that_are_reset_at_once_are_bounded),
        TEST(requests_that_are_none_are_bounded),
        TEST(frames_that_say_nothing_are_bounded),
        TEST(frames_that_say_something_are_free),
        TEST(frames_of_ended_streams_are_errors),
        TEST(waiting_uploads_leave_others_their_window),
        TEST(all_connections_share_a_number_of_streams),
        TEST(a_head_without_an_end_is_bounded),
        TEST(upper_case_names_are_rejected),
        TEST(excess_streams_are_rejected),
        TEST(corrupted_frames_end_the_connection_or_do_nothing),
    };
    return cmocka_run_group_tests_name("http2_abuse", tests, NULL, NULL);
}

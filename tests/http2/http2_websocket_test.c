/*
 * WebSockets over HTTP/2: RFC 8441. The client is nghttp2's (http2_peer.h); the frames of the WebSocket are the body of its
 * request, and of the response.
 */
#include "http2_talk.h"
#include "testing.h"

#include <errno.h>

enum { MESSAGE = 3000 };

/* What the handlers have seen and ended with. */
static struct {
    char head[200];
    int status, upgraded;
    unsigned code;
} seen;

static uint64_t think_time; /* behind each message, nanoseconds */

/* Sends each message back. */
struct session {
    bide_http_exchange exchange;
    bide_websocket websocket;
    bide_http_websocket_operation upgrade;
    bide_websocket_recv_operation receive;
    bide_websocket_send_operation send;
    bide_sleep sleep;
    int status;
    char message[MESSAGE];
};

bide_coroutine(session_body)
{
    bide_begin(session_body, struct session * self);
    bide_http_request *request = &self->exchange.request;
    snprintf(seen.head, sizeof seen.head, "%.*s %.*s %.*s HTTP/%d %.*s", (int)request->method_name.size,
             request->method_name.data, (int)request->path.size, request->path.data, (int)request->query.size,
             request->query.data != NULL ? request->query.data : "", request->major, (int)request->upgrade.size,
             request->upgrade.data);
    bide_await_status(seen.upgraded, bide_http_accept_websocket(&self->upgrade, &self->exchange, &self->websocket,
                                                                &(bide_websocket_options){.max_message = MESSAGE},
                                                                "chat, log"));
    if (seen.upgraded < 0)
        bide_return(seen.upgraded);
    for (;;) {
        bide_await_status(self->status, bide_websocket_recv(&self->receive, &self->websocket, self->message, MESSAGE));
        if (self->status < 0)
            break;
        bide_await_status(self->status, bide_websocket_send(&self->send, &self->websocket, self->receive.kind, self->message,
                                                            self->receive.count));
        if (self->status < 0)
            break;
        if (think_time != 0)
            bide_try(bide_sleep_for(&self->sleep, think_time));
    }
    seen.status = self->status;
    seen.code = self->websocket.end.code;
    bide_return(self->status);
    bide_end();
}

static const bide_http_options echoes = {.handler = {&session_body, sizeof(struct session)}};

static const char *const opening[][2] = {{":method", "CONNECT"},
                                         {":protocol", "websocket"},
                                         {":scheme", "https"},
                                         {":path", "/chat?room=1"},
                                         {":authority", "example.org"},
                                         {"sec-websocket-version", "13"},
                                         {"sec-websocket-protocol", "log, chat"},
                                         {NULL, NULL}};

/* ---- The client's frames ---- */

static char frames[16384];
static size_t frames_size;

static void add_frame(int first, const void *data, size_t size)
{
    static const uint8_t key[4] = {0x37, 0xfa, 0x21, 0x3d};
    char *at = frames + frames_size;
    *at++ = (char)first;
    *at++ = (char)(0x80 | (size < 126 ? size : 126));
    if (size >= 126) {
        *at++ = (char)(size >> 8);
        *at++ = (char)size;
    }
    memcpy(at, key, sizeof key);
    at += sizeof key;
    for (size_t i = 0; i < size; i++)
        *at++ = (char)(((const uint8_t *)data)[i] ^ key[i % 4]);
    frames_size = (size_t)(at - frames);
}

static ask *open_websocket(const char *const (*fields)[2])
{
    ask *ask = talk2_post(&one, "", frames, frames_size);
    ask->is_bare = true;
    ask->fields = fields;
    return ask;
}

static ask *converse(void)
{
    memset(&seen, 0, sizeof seen);
    frames_size = 0;
    add_frame(0x01, "hel", 3);
    add_frame(0x89, "ping", 4);
    add_frame(0x80, "lo", 2);
    add_frame(0x82, "", 0);
    add_frame(0x88, "\x03\xe8", 2);
    return open_websocket(opening);
}

/* ---- Tests ---- */

static void a_handler_accepts_it_as_with_http1(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 40; seed++) {
        use(&echoes, NULL);
        one.seed = seed;
        one.client.piece = seed % 4 == 0 ? 0 : seed % 4 == 1 ? 1 : seed % 16;
        ask *ask = converse();
        assert_int_equal(talk2_run(&one), 0);
        assert_int_equal(ask->status, 200);
        assert_true(ask->has_ended);
        assert_int_equal(ask->code, NGHTTP2_NO_ERROR);
        assert_string_equal(seen.head, "GET /chat room=1 HTTP/2 websocket");
        assert_int_equal(seen.status, -EPIPE);
        assert_int_equal(seen.code, 1000);
        /* (the pong may stand before or behind the first message) */
        static const char hello[] = "\x81\x05hello", pong[] = "\x8a\x04ping", rest[] = "\x82\0\x88\x02\x03\xe8";
        assert_int_equal(ask->size, 7 + 6 + 6);
        bool is_first = memcmp(ask->answer, pong, 6) == 0;
        assert_memory_equal(ask->answer + (is_first ? 0 : 7), pong, 6);
        assert_memory_equal(ask->answer + (is_first ? 6 : 0), hello, 7);
        assert_memory_equal(ask->answer + 13, rest, 6);
        assert_non_null(strstr(ask->fields_seen, "sec-websocket-protocol: chat\n"));
        assert_null(strstr(ask->fields_seen, "sec-websocket-accept"));
        assert_null(strstr(ask->fields_seen, "upgrade"));
        assert_null(strstr(ask->fields_seen, "connection"));
    }
}

/* Windows hold back both sides, and other requests go on. */
static void messages_larger_than_windows_pass(void **state)
{
    static char message[MESSAGE];
    (void)state;
    use(&echoes, &(bide_http2_options){.window = 1000});
    one.client.window = 100;
    for (size_t i = 0; i < sizeof message; i++)
        message[i] = (char)('a' + i % 26);
    memset(&seen, 0, sizeof seen);
    frames_size = 0;
    add_frame(0x81, message, MESSAGE);
    add_frame(0x88, "\x03\xe8", 2);
    ask *one_of_two = open_websocket(opening), *other = open_websocket(opening);
    assert_int_equal(talk2_run(&one), 0);
    for (ask *ask = one_of_two; ask != NULL; ask = ask == other ? NULL : other) {
        assert_int_equal(ask->status, 200);
        assert_int_equal(ask->code, NGHTTP2_NO_ERROR);
        assert_int_equal(ask->size, 4 + MESSAGE + 4);
        assert_memory_equal(ask->answer, "\x81\x7e\x0b\xb8", 4);
        assert_memory_equal(ask->answer + 4, message, MESSAGE);
    }
}

/* Also after a message that the client's window has let through in parts. */
static void the_deadlines_of_requests_are_off(void **state)
{
    static char message[MESSAGE];
    (void)state;
    for (uint32_t window = 0; window <= 100; window += 100) {
        use(&echoes, NULL);
        one.client.window = window;
        think_time = 4000 * SECOND;
        memset(&seen, 0, sizeof seen);
        frames_size = 0;
        add_frame(0x82, message, MESSAGE);
        add_frame(0x82, message, MESSAGE - 1000);
        add_frame(0x88, "\x03\xe8", 2);
        ask *ask = open_websocket(opening);
        assert_int_equal(talk2_run(&one), 0);
        think_time = 0;
        assert_int_equal(seen.status, -EPIPE);
        assert_int_equal(ask->code, NGHTTP2_NO_ERROR);
        assert_int_equal(ask->size, 4 + MESSAGE + 4 + MESSAGE - 1000 + 4);
        assert_true(one.took >= 2 * 4000 * SECOND);
    }
}

static void the_end_of_the_stream_without_a_close_is_no_clean_end(void **state)
{
    (void)state;
    use(&echoes, NULL);
    memset(&seen, 0, sizeof seen);
    frames_size = 0;
    add_frame(0x81, "a", 1);
    ask *ask = open_websocket(opening);
    assert_int_equal(talk2_run(&one), 0);
    assert_int_equal(ask->status, 200);
    assert_int_equal(ask->size, 3);
    assert_int_equal(seen.status, -ENODATA);
    assert_int_equal(ask->code, NGHTTP2_CANCEL);
}

static void requests_for_something_else_are_rejected(void **state)
{
    static const char *const unknown[][2] = {{":method", "CONNECT"}, {":protocol", "other"}, {":scheme", "https"},
                                             {":path", "/"}, {":authority", "a"}, {"sec-websocket-version", "13"}, {NULL, NULL}};
    static const char *const old[][2] = {{":method", "CONNECT"}, {":protocol", "websocket"}, {":scheme", "https"},
                                         {":path", "/"}, {":authority", "a"}, {"sec-websocket-version", "8"}, {NULL, NULL}};
    static const char *const no_version[][2] = {{":method", "CONNECT"}, {":protocol", "websocket"}, {":scheme", "https"},
                                                {":path", "/"}, {":authority", "a"}, {NULL, NULL}};
    static const char *const bad_host[][2] = {{":method", "CONNECT"}, {":protocol", "websocket"}, {":scheme", "https"},
                                              {":path", "/"}, {":authority", "a:b"}, {"sec-websocket-version", "13"}, {NULL, NULL}};
    (void)state;
    use(&echoes, NULL);
    frames_size = 0;
    memset(&seen, 0, sizeof seen);
    ask *asks[] = {open_websocket(unknown), open_websocket(old), open_websocket(no_version), open_websocket(bad_host)};
    assert_int_equal(talk2_run(&one), 0);
    assert_int_equal(asks[0]->status, 400);
    assert_int_equal(asks[1]->status, 426);
    assert_non_null(strstr(asks[1]->fields_seen, "sec-websocket-version: 13\n"));
    assert_int_equal(asks[2]->status, 400);
    assert_int_equal(asks[3]->status, 400);
}

/* ":protocol" belongs to CONNECT. */
static void a_get_with_a_protocol_is_reset(void **state)
{
    static const char *const fields[][2] = {{":method", "GET"}, {":protocol", "websocket"}, {":scheme", "https"},
                                            {":path", "/"}, {":authority", "a"}, {NULL, NULL}};
    (void)state;
    use(&echoes, NULL);
    one.client.is_lenient = true;
    frames_size = 0;
    memset(&seen, 0, sizeof seen);
    ask *ask = open_websocket(fields);
    assert_int_equal(talk2_run(&one), 0);
    assert_int_equal(ask->status, 0);
    if (ask->code != NGHTTP2_PROTOCOL_ERROR) /* an error of the stream may also end the connection (RFC 9113, 5.4.1) */
        assert_int_equal(one.client.goaway, NGHTTP2_PROTOCOL_ERROR);
    assert_string_equal(seen.head, "");
}

/* A 2xx would tell the client that its stream is a WebSocket. */
static void a_handler_that_does_not_upgrade_accepts_nothing(void **state)
{
    static const char *const fields[][2] = {{":method", "CONNECT"}, {":protocol", "websocket"}, {":scheme", "https"},
                                            {":path", "/hello"}, {":authority", "a"}, {"sec-websocket-version", "13"}, {NULL, NULL}};
    (void)state;
    frames_size = 0;
    add_frame(0x81, "a", 1);
    ask *ask = open_websocket(fields);
    assert_int_equal(talk2_run(&one), 0);
    assert_int_equal(ask->status, 501);
    assert_string_equal(ask->answer, "hello");
}

/* The settings, the first frame, allow an extended CONNECT. */
static void the_settings_announce_it(void **state)
{
    static char copy[4096];
    (void)state;
    use(&echoes, NULL);
    one.client.copy = copy;
    one.client.copy_max = sizeof copy;
    (void)converse();
    assert_int_equal(talk2_run(&one), 0);
    size_t size = (size_t)(uint8_t)copy[1] << 8 | (uint8_t)copy[2];
    bool is_announced = false;
    assert_int_equal(copy[3], NGHTTP2_SETTINGS);
    for (size_t at = 9; at < 9 + size; at += 6)
        is_announced |= memcmp(copy + at, "\0\x08\0\0\0\1", 6) == 0;
    assert_true(is_announced);
}

/* At whatever moment: the handler ends, and nothing is left (talk2_run). */
static void a_reset_or_a_lost_connection_ends_the_handler(void **state)
{
    (void)state;
    for (unsigned after = 1; after < 40; after++) {
        for (int way = 0; way < 4; way++) {
            use(&echoes, NULL);
            ask *ask = converse();
            ask->stops_midway = true;
            ask->body_size -= way == 3 ? 8 : 0; /* (without the close) */
            one.client.piece = 5;
            *(way == 0 ? &one.vanish_after : way == 1 ? &one.destroy_after : &one.reset_after) = after;
            (void)talk2_run(&one);
        }
    }
}

/* What a log would print. */
static char logged[200];

static void log_end(bide_http_exchange *exchange, int error)
{
    bide_slice agent = bide_http_request_field(exchange, "User-Agent");
    (void)error;
    snprintf(logged, sizeof logged, "%.*s %.*s %.*s, %d trailers", (int)exchange->request.method_name.size,
             exchange->request.method_name.data, (int)exchange->request.target.size, exchange->request.target.data,
             (int)agent.size, agent.data != NULL ? agent.data : "",
             bide_http_request_trailer(exchange, "x-trailer").data != NULL);
}

/* The memory of fields has the texts for logs. */
static void trailers_behind_it_are_left_out(void **state)
{
    static const char *const fields[][2] = {{":method", "CONNECT"}, {":protocol", "websocket"}, {":scheme", "https"},
                                            {":path", "/chat"}, {":authority", "a"}, {"user-agent", "test"},
                                            {"sec-websocket-version", "13"}, {NULL, NULL}};
    static const uint8_t five = 4;
    (void)state;
    for (size_t max = 8; max <= 16; max += 8) { /* with 8 there is room for the method and the target */
        use(&(bide_http_options){.handler = {&session_body, sizeof(struct session)}, .ended = log_end, .max_fields = max}, NULL);
        memset(&seen, 0, sizeof seen);
        frames_size = 0;
        add_frame(0x81, "a", 1);
        ask *ask = open_websocket(fields);
        ask->trailer = "of the client";
        one.client.sizes = &five; /* with pauses: they arrive when the handler has accepted it */
        one.client.size_count = 1;
        assert_int_equal(talk2_run(&one), 0);
        assert_int_equal(ask->status, 200);
        assert_int_equal(seen.status, -ENODATA);
        assert_string_equal(logged, max == 16 ? "GET /chat test, 0 trailers" : "GET /chat , 0 trailers");
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin_talk, end_talk)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_handler_accepts_it_as_with_http1),
        TEST(messages_larger_than_windows_pass),
        TEST(the_deadlines_of_requests_are_off),
        TEST(the_end_of_the_stream_without_a_close_is_no_clean_end),
        TEST(trailers_behind_it_are_left_out),
        TEST(requests_for_something_else_are_rejected),
        TEST(a_get_with_a_protocol_is_reset),
        TEST(a_handler_that_does_not_upgrade_accepts_nothing),
        TEST(the_settings_announce_it),
        TEST(a_reset_or_a_lost_connection_ends_the_handler),
    };
    return cmocka_run_group_tests_name("http2_websocket", tests, NULL, NULL);
}

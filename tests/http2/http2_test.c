/*
 * HTTP/2 runs the handlers of the HTTP/1.1 tests on streams. All ways in which a stream or a connection
 * can end.
 */
#include "http2_talk.h"
#include "bide/http.h"

static void answered(const ask *ask, int status, const char *body)
{
    if (ask->status != status || ask->code != NGHTTP2_NO_ERROR)
        printf("# %s: %d, code %u\n", ask->path, ask->status, ask->code);
    assert_true(ask->has_ended);
    assert_int_equal(ask->code, NGHTTP2_NO_ERROR);
    assert_int_equal(ask->status, status);
    if (body != NULL)
        assert_string_equal(ask->answer, body);
}

static void was_reset(const ask *ask, uint32_t code)
{
    assert_true(ask->has_ended);
    assert_int_equal(ask->code, code);
}

/* A GOAWAY says which requests were processed: later ones are not, also if they came with the others. */
static void what_a_goaway_disclaims_is_not_processed(void **state)
{
    (void)state;
    use(&(bide_http_options){.max_requests = 4}, NULL);
    for (int i = 0; i < 10; i++)
        talk2_ask(&one, "/hello");
    assert_int_equal(talk2_run(&one), 0);
    assert_int_equal(one.server.stats.requests, 4);
    assert_int_equal(handled.begun, 4);
    for (int i = 0; i < 4; i++)
        answered(&one.asks[i], 200, "hello");
    for (int i = 4; i < 10; i++)
        was_reset(&one.asks[i], NGHTTP2_REFUSED_STREAM);
}

/* ---- Responses ---- */

static void a_handler_of_http_1_answers(void **state)
{
    (void)state;
    ask *ask = talk2_ask(&one, "/hello");
    assert_int_equal(talk2_run(&one), 0);
    answered(ask, 200, "hello");
    assert_string_equal(ask->fields_seen, ":status: 200\ndate: Sun, 06 Nov 1994 08:49:37 GMT\n"
                                          "content-type: text/plain\ncontent-length: 5\n");
}

static void many_requests_at_a_time_are_answered(void **state)
{
    (void)state;
    for (int i = 0; i < 100; i++)
        talk2_ask(&one, "/hello");
    assert_int_equal(talk2_run(&one), 0);
    for (int i = 0; i < 100; i++)
        answered(&one.asks[i], 200, "hello");
    assert_int_equal(one.server.stats.requests, 100);
}

static void bodies_and_trailers_go_both_ways(void **state)
{
    (void)state;
    static char body[200000];
    for (size_t i = 0; i < sizeof body; i++)
        body[i] = (char)('a' + i % 23);
    ask *echo = talk2_post(&one, "/echo", body, sizeof body);
    ask *small = talk2_post(&one, "/echo", "abc", 3);
    small->trailer = "t";
    ask *chunks = talk2_ask(&one, "/chunks");
    ask *large = talk2_ask(&one, "/large");
    ask *count = talk2_post(&one, "/count", "", 0);
    assert_int_equal(talk2_run(&one), 0);
    answered(echo, 200, NULL);
    assert_int_equal(echo->size, sizeof body);
    assert_memory_equal(echo->answer, body, sizeof echo->answer - 1);
    answered(small, 200, "abc");
    assert_string_equal(handled.trailer, "t");
    answered(chunks, 200, "abcdeabcdeabcde");
    assert_string_equal(chunks->sum, "15");
    answered(large, 200, NULL);
    assert_int_equal(large->size, 300000);
    answered(count, 200, "counted");
}

static void responses_without_a_body_have_none(void **state)
{
    (void)state;
    ask *head = talk2_ask(&one, "/hello");
    ask *chunks = talk2_ask(&one, "/chunks");
    ask *nothing = talk2_ask(&one, "/nothing");
    head->method = chunks->method = "HEAD";
    assert_int_equal(talk2_run(&one), 0);
    answered(head, 200, "");
    answered(chunks, 200, "");
    answered(nothing, 204, "");
}

static void a_failing_handler_is_reported(void **state)
{
    (void)state;
    ask *fails = talk2_ask(&one, "/fails"), *early = talk2_ask(&one, "/fails-early"), *none = talk2_ask(&one, "/none");
    ask *late = talk2_ask(&one, "/fails-late"), *short_one = talk2_ask(&one, "/short");
    ask *status = talk2_ask(&one, "/late-status"), *upgrade = talk2_ask(&one, "/upgrade");
    assert_int_equal(talk2_run(&one), 0);
    answered(fails, 500, "500 Internal Server Error\n");
    answered(early, 500, "500 Internal Server Error\n");
    answered(none, 404, "404 Not Found\n");
    was_reset(late, NGHTTP2_INTERNAL_ERROR); /* part of it was sent */
    assert_string_equal(late->answer, "some");
    was_reset(short_one, NGHTTP2_INTERNAL_ERROR);
    answered(status, 404, "no");
    answered(upgrade, 500, NULL);
}

static void a_client_that_expects_100_continue_gets_it(void **state)
{
    (void)state;
    static const char *const fields[][2] = {{"expect", "100-continue"}, {NULL, NULL}};
    ask *ask = talk2_post(&one, "/count", "abc", 3);
    ask->fields = fields;
    ask->stops_midway = true; /* the body does not arrive until the server asks for it */
    assert_int_equal(talk2_run(&one), 0);
    answered(ask, 408, NULL);
    assert_int_equal(ask->interim, 1);
}

static void an_interim_response_comes_before_the_response(void **state)
{
    (void)state;
    ask *hints = talk2_ask(&one, "/hints");
    ask *hello = talk2_ask(&one, "/hello");
    assert_int_equal(talk2_run(&one), 0);
    answered(hints, 200, "hello");
    assert_int_equal(hints->interim, 1);
    answered(hello, 200, "hello");
    assert_int_equal(hello->interim, 0);
}

static void an_unread_body_is_stopped(void **state)
{
    (void)state;
    static char body[500000];
    ask *ask = talk2_post(&one, "/hello", body, sizeof body);
    for (int i = 0; i < 20; i++) /* (the sum of their windows exceeds the connection's window) */
        talk2_post(&one, "/hello", body, sizeof body);
    struct ask *after = talk2_post(&one, "/count", body, sizeof body);
    assert_int_equal(talk2_run(&one), 0);
    answered(ask, 200, "hello");
    answered(after, 200, "counted");
    assert_int_equal(handled.read, sizeof body);
}

/* A request that is answered early is received to its end: a reset could cost the client the response. */
static void an_unread_body_is_dropped(void **state)
{
    (void)state;
    static char body[3000000];
    ask *whole = talk2_post(&one, "/hello", body, 1000000);
    ask *fails = talk2_post(&one, "/fails", body, 1000000);
    ask *missing = talk2_post(&one, "/none", body, 1000000);
    ask *trailed = talk2_post(&one, "/hello", body, 1000000);
    trailed->trailer = "t";
    assert_int_equal(talk2_run(&one), 0);
    answered(whole, 200, "hello");
    answered(fails, 500, NULL);
    answered(missing, 404, NULL);
    answered(trailed, 200, "hello");
    for (int i = 0; i < 4; i++)
        assert_int_equal(one.asks[i].sent, 1000000);
    assert_int_equal(one.http2.stats.resets, 0);
    /* more than max_body: the stream is reset */
    one.client.ask_count = 0;
    ask *more = talk2_post(&one, "/hello", body, sizeof body);
    assert_int_equal(talk2_run(&one), 0);
    answered(more, 200, "hello");
    assert_in_range(more->sent, 1048576, 1048576 + 200000);
    /* a client that pauses: so is its stream */
    one.client.ask_count = 0;
    ask *stops = talk2_post(&one, "/hello", body, 1000), *hello = talk2_ask(&one, "/hello");
    stops->stops_midway = true;
    uint64_t timed_out = one.server.stats.timed_out;
    assert_int_equal(talk2_run(&one), 0);
    answered(stops, 200, "hello");
    answered(hello, 200, "hello");
    assert_in_range(one.took, 2 * SECOND, 3 * SECOND);
    assert_int_equal(one.server.stats.timed_out, timed_out);
}

static void unread_data_returns_to_the_connections_window(void **state)
{
    (void)state;
    static char body[500000];
    for (int i = 0; i < 20; i++) /* they exhaust the connection's window until their handlers end */
        talk2_post(&one, "/slow", body, sizeof body);
    ask *after = talk2_post(&one, "/count", body, sizeof body);
    assert_int_equal(talk2_run(&one), 0);
    answered(&one.asks[0], 200, "slow");
    answered(after, 200, "counted");
}

/* The client sends as much as the default window allows before it learns of a smaller window. */
static void a_body_that_precedes_the_settings_is_received(void **state)
{
    (void)state;
    static char body[100000];
    static const bide_http_options patient = {.first_byte_timeout = BIDE_FOREVER, .header_timeout = BIDE_FOREVER, .keepalive_timeout = BIDE_FOREVER,
                                              .body_idle_timeout = BIDE_FOREVER, .request_timeout = BIDE_FOREVER};
    use(&patient, &(bide_http2_options){.window = 1000});
    ask *ask = talk2_post(&one, "/count", body, sizeof body);
    for (one.seed = 1; one.seed <= 50; one.seed++) { /* in some orders the client sends first */
        assert_int_equal(talk2_run(&one), 0);
        answered(ask, 200, "counted");
        assert_int_equal(handled.read, sizeof body);
    }
}

struct gives_up {
    bide_http_exchange exchange;
    bide_with_deadline_operation limited;
    bide_sleep sleep;
    char *data;
    int status;
};

/* Writes for a second, then continues without completing the write. */
bide_coroutine(gives_up_body)
{
    bide_begin(gives_up_body, struct gives_up * self);
    self->data = calloc(1, 100000);
    bide_await_status(self->status,
                      bide_with_deadline(&self->limited, bide_now(bide_this_context()) + SECOND,
                                         bide_http_write(&self->exchange, self->data, 100000)));
    assert_int_equal(self->status, -ETIMEDOUT);
    free(self->data);
    bide_try(bide_sleep_for(&self->sleep, 3 * SECOND));
    bide_return(-EIO);
    bide_end();
}

static void a_write_that_ends_early_leaves_nothing_behind(void **state)
{
    (void)state;
    use(&(bide_http_options){.handler = {&gives_up_body, sizeof(struct gives_up)}}, NULL);
    one.client.no_window = true;
    one.window_at = 2 * SECOND;
    ask *ask = talk2_ask(&one, "/");
    assert_int_equal(talk2_run(&one), 0);
    was_reset(ask, NGHTTP2_CANCEL); /* with the code of the first error */
    assert_int_equal(ask->size, 0);
    assert_in_range(one.took, 4 * SECOND, 5 * SECOND);
}

/* ---- Clients that leave ---- */

static struct {
    unsigned count, incidents;
    int status, error;
} left;

static void note_left(bide_http_exchange *exchange, int error)
{
    left.count++;
    left.status = exchange->status;
    left.error = error;
}

static void note_incident(bide_http_server *server, const bide_http_incident *incident)
{
    (void)server;
    printf("# %d, error %d, %s\n", incident->status, incident->error, incident->reason != NULL ? incident->reason : "-");
    left.incidents++;
}

/* They reset their stream, or end the connection, before the response has begun or in the middle of it. */
static void a_client_that_leaves_is_no_incident(void **state)
{
    (void)state;
    use(&(bide_http_options){.ended = note_left, .incident = note_incident}, NULL);
    for (int i = 0; i < 4; i++) {
        bool is_midway = i % 2 == 1;
        memset(&left, 0, sizeof left);
        one.client.ask_count = 0;
        one.client.window = 1000; /* of a body of 300,000 bytes */
        one.client.no_window = true;
        one.reset_after = i < 2 ? 30 : 0;
        one.vanish_after = i < 2 ? 0 : 30;
        (void)talk2_ask(&one, is_midway ? "/large" : "/slow");
        (void)talk2_run(&one);
        assert_int_equal(handled.begun, 1);
        assert_int_equal(left.count, 1);
        assert_int_equal(left.error, -ECONNRESET);
        assert_int_equal(left.status, is_midway ? 200 : 499);
        assert_int_equal(left.incidents, 0);
    }
}

static unsigned began[2]; /* exchanges whose handler has not begun when they end, and whose handler has */

static void note_begin(bide_http_exchange *exchange, int error)
{
    (void)error;
    began[bide_http_handler_began(exchange)]++;
}

/* The request and its reset arrive together. */
static void an_end_says_whether_the_handler_has_begun(void **state)
{
    /* the preface, SETTINGS, HEADERS (GET, https, /, host a) and RST_STREAM of stream 1 */
    static const char raw[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0"
                              "\0\0\6\1\5\0\0\0\1\x82\x87\x84\x41\1a\0\0\4\3\0\0\0\0\1\0\0\0\x08";
    (void)state;
    use(&(bide_http_options){.ended = note_begin}, NULL);
    memset(began, 0, sizeof began);
    (void)talk2_ask(&one, "/hello");
    assert_int_equal(talk2_run(&one), 0);
    assert_int_equal(began[0], 0);
    assert_int_equal(began[1], 1);
    use(&(bide_http_options){.ended = note_begin}, NULL);
    memset(began, 0, sizeof began);
    one.client.raw = raw;
    one.client.raw_size = sizeof raw - 1;
    one.client.is_raw = true;
    (void)talk2_run(&one);
    assert_int_equal(handled.begun, 0);
    assert_int_equal(began[0], 1);
    assert_int_equal(began[1], 0);
}

struct tunnel {
    bide_http_exchange exchange;
    bide_reader_operation read;
    bide_writer_operation write;
    char buffer[64];
};

bide_coroutine(tunnel_body)
{
    bide_begin(tunnel_body, struct tunnel * self);
    bide_try(bide_http_upgrade(&self->exchange, NULL));
    for (;;) {
        bide_try_or_break(bide_reader_read(&self->read, bide_http_reader(&self->exchange), self->buffer,
                                           sizeof self->buffer));
        bide_try(bide_writer_write(&self->write, bide_http_writer(&self->exchange), self->buffer, self->read.count));
        bide_try(bide_writer_flush(&self->write, bide_http_writer(&self->exchange)));
    }
    bide_end();
}

static void a_tunnel_goes_both_ways(void **state)
{
    static const char *const fields[][2] = {{":method", "CONNECT"}, {":authority", "a.test:80"}, {NULL, NULL}};
    static char body[10000];
    (void)state;
    memset(body, 'x', sizeof body);
    use(&(bide_http_options){.handler = {&tunnel_body, sizeof(struct tunnel)}}, NULL);
    ask *ask = talk2_post(&one, "", body, sizeof body);
    ask->is_bare = true;
    ask->fields = fields;
    assert_int_equal(talk2_run(&one), 0);
    answered(ask, 200, NULL);
    assert_int_equal(ask->size, sizeof body);
}

static void close_after_takes_no_more_requests(void **state)
{
    (void)state;
    ask *ask = talk2_ask(&one, "/last");
    one.client.keeps = true;
    assert_int_equal(talk2_run(&one), 0);
    answered(ask, 200, "");
    assert_int_equal(one.client.goaway, NGHTTP2_NO_ERROR);
}

static void a_connection_ends_after_so_many_requests(void **state)
{
    (void)state;
    use(&(bide_http_options){.max_requests = 2}, NULL);
    for (int i = 0; i < 3; i++)
        talk2_ask(&one, "/hello");
    one.client.keeps = true;
    assert_int_equal(talk2_run(&one), 0);
    answered(&one.asks[0], 200, "hello");
    answered(&one.asks[1], 200, "hello");
    assert_int_equal(one.asks[2].status, 0);
}

/* ---- What a handler finds ---- */

static struct {
    const bide_http_connection *outer, *own;
    size_t count;
    char text[64];
} found;

bide_coroutine(look_body)
{
    bide_begin(look_body, struct peer_handler * self);
    found.own = self->exchange.connection;
    found.outer = bide_http_outer_connection(self->exchange.connection);
    do
        bide_try(bide_http_read(&self->exchange, found.text, sizeof found.text));
    while (self->exchange.count != 0);
    const bide_http_field *fields = bide_http_request_trailers(&self->exchange, &found.count);
    found.text[0] = '\0';
    if (found.count != 0)
        snprintf(found.text, sizeof found.text, "%.*s: %.*s", (int)fields->name.size, fields->name.data,
                 (int)fields->value.size, fields->value.data);
    bide_try(bide_http_respond(&self->exchange, "seen", 4));
    bide_end();
}

static void a_handler_finds_the_connection_and_all_trailers(void **state)
{
    (void)state;
    static const char plain[] = "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
                                "1\r\nx\r\n0\r\nX-One: 1\r\nX-Two: 2\r\n\r\n";
    use(&(bide_http_options){.handler = {&look_body, sizeof(struct peer_handler)}}, NULL);
    ask *ask = talk2_post(&one, "/", "abc", 3);
    ask->trailer = "t";
    assert_int_equal(talk2_run(&one), 0);
    answered(ask, 200, "seen");
    assert_ptr_equal(found.outer, &one.connection);
    assert_ptr_not_equal(found.own, found.outer);
    assert_int_equal(found.count, 1);
    assert_string_equal(found.text, "x-trailer: t");
    one.protocol = "http/1.1";
    one.client.ask_count = 0;
    one.client.raw = plain;
    one.client.raw_size = sizeof plain - 1;
    one.client.is_raw = true;
    assert_int_equal(talk2_run(&one), 0);
    assert_ptr_equal(found.outer, &one.connection);
    assert_ptr_equal(found.own, found.outer);
    assert_int_equal(found.count, 2);
    assert_string_equal(found.text, "X-One: 1");
}

/* ---- Protocol selection ---- */

static const char http_1[] = "GET /hello HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";

static void say(const char *data, size_t size, bool is_all)
{
    one.client.raw = data;
    one.client.raw_size = size;
    one.client.is_raw = is_all;
}

static void the_negotiated_protocol_is_used(void **state)
{
    (void)state;
    use(NULL, &(bide_http2_options){.is_plain = true});
    one.protocol = "http/1.1";
    talk2_ask(&one, "/hello");
    assert_int_equal(talk2_run(&one), -EBADMSG); /* the preface is not a request of HTTP/1.1. */
    assert_int_equal(one.asks[0].status, 0);
    assert_int_equal(one.http2.stats.connections, 0);
    one.protocol = "h2";
    say(http_1, sizeof http_1 - 1, true);
    assert_int_equal(talk2_run(&one), -EBADMSG);
    assert_int_equal(handled.begun, 0);
    one.protocol = "http/1.1";
    one.client.ask_count = 0;
    assert_int_equal(talk2_run(&one), 0);
    assert_int_equal(handled.begun, 1);
}

static void pieces_make_no_difference(void **state)
{
    (void)state;
    for (size_t piece = 1; piece < 40; piece++) {
        one.client.piece = piece;
        one.client.ask_count = 0;
        talk2_post(&one, "/echo", "abcdefgh", 8);
        talk2_ask(&one, "/chunks");
        assert_int_equal(talk2_run(&one), 0);
        answered(&one.asks[0], 200, "abcdefgh");
        answered(&one.asks[1], 200, "abcdeabcdeabcde");
    }
}

/* ---- Ends ---- */

static void times_end_streams_alone(void **state)
{
    (void)state;
    use(&(bide_http_options){.request_timeout = 3 * SECOND}, NULL);
    ask *slow = talk2_ask(&one, "/slow"), *hello = talk2_ask(&one, "/hello");
    ask *stops = talk2_post(&one, "/count", "abc", 3);
    stops->stops_midway = true;
    assert_int_equal(talk2_run(&one), 0);
    answered(slow, 503, NULL);
    answered(hello, 200, "hello");
    answered(stops, 408, NULL);
    assert_int_equal(one.server.stats.timed_out, 2);
    assert_in_range(one.took, 5 * SECOND, 6 * SECOND); /* (with the linger_timeout of the unfinished request) */
}

static void a_window_that_is_not_opened_is_not_waited_for(void **state)
{
    (void)state;
    one.client.no_window = true;
    ask *waits = talk2_ask(&one, "/large"), *ended = talk2_ask(&one, "/hello"), *chunks = talk2_ask(&one, "/chunks");
    assert_int_equal(talk2_run(&one), 0);
    was_reset(waits, NGHTTP2_CANCEL);
    was_reset(ended, NGHTTP2_CANCEL); /* its handler has ended long ago */
    was_reset(chunks, NGHTTP2_CANCEL);
    assert_in_range(one.took, 30 * SECOND, 31 * SECOND);
}

static void a_connection_without_requests_ends(void **state)
{
    (void)state;
    one.client.keeps = true;
    ask *ask = talk2_ask(&one, "/hello");
    assert_int_equal(talk2_run(&one), 0);
    answered(ask, 200, "hello");
    assert_int_equal(one.client.goaway, NGHTTP2_NO_ERROR);
    assert_in_range(one.took, 60 * SECOND, 63 * SECOND);
    one.client.ask_count = 0;
    assert_int_equal(talk2_run(&one), 0);
    assert_in_range(one.took, 10 * SECOND, 13 * SECOND);
}

static void a_shutdown_lets_requests_end(void **state)
{
    (void)state;
    one.drain_at = SECOND;
    one.client.keeps = true;
    ask *slow = talk2_ask(&one, "/slow");
    assert_int_equal(talk2_run(&one), 0);
    answered(slow, 200, "slow");
    assert_int_equal(one.client.goaway, NGHTTP2_NO_ERROR);
    assert_in_range(one.took, 5 * SECOND, 6 * SECOND);
}

static void ask_for_all(void)
{
    static char body[100000];
    one.client.ask_count = 0;
    talk2_ask(&one, "/hello");
    talk2_post(&one, "/echo", body, sizeof body);
    talk2_ask(&one, "/large");
    talk2_ask(&one, "/slow");
    talk2_post(&one, "/count", body, 1000)->stops_midway = true;
    talk2_ask(&one, "/chunks");
    talk2_post(&one, "/hello", body, sizeof body);
}

/* No connection waited for the slow request. (A seed may let time pass.) */
static void waited_for_nothing(void)
{
    assert_true(one.seed != 0 || one.took < 5 * SECOND);
}

static void a_reset_stops_the_handler(void **state)
{
    (void)state;
    for (unsigned after = 1; after < 60; after++) {
        one.seed = after % 2 == 0 ? after : 0;
        one.reset_after = after;
        ask_for_all();
        int status = talk2_run(&one); /* (the client may disconnect before the handlers end) */
        assert_true(status == 0 || status == -ENODATA || one.seed != 0);
        waited_for_nothing();
        for (size_t i = 0; i < one.client.ask_count; i++)
            assert_true(one.asks[i].has_ended || one.seed != 0);
    }
    assert_true(one.http2.stats.resets != 0);
}

static void a_vanished_client_leaves_nothing(void **state)
{
    (void)state;
    for (unsigned after = 1; after < 60; after++) {
        one.seed = after % 2 == 0 ? after : 0;
        one.vanish_after = after;
        ask_for_all();
        assert_true(talk2_run(&one) <= 0);
        waited_for_nothing();
    }
}

static void a_cancelled_connection_leaves_nothing(void **state)
{
    (void)state;
    for (unsigned after = 1; after < 60; after++) {
        one.seed = after % 2 == 0 ? after : 0;
        one.stop_after = after;
        ask_for_all();
        int status = talk2_run(&one);
        assert_true(status == -ECANCELED || one.seed != 0);
        waited_for_nothing();
    }
}

static void a_destroyed_connection_leaves_nothing(void **state)
{
    (void)state;
    for (unsigned after = 1; after < 60; after++) {
        one.seed = after % 2 == 0 ? after : 0;
        one.destroy_after = after;
        ask_for_all();
        (void)talk2_run(&one);
    }
}

/* ---- Memory ---- */

static struct lacking {
    bide_allocator allocator;
    size_t calls, fails; /* the nth call */
} lacking;

static void *lack(bide_allocator *allocator, size_t size)
{
    struct lacking *self = (struct lacking *)allocator;
    return ++self->calls == self->fails ? NULL : bide_heap.allocate(&bide_heap, size);
}

static void give_back(bide_allocator *allocator, void *memory, size_t size)
{
    (void)allocator;
    bide_heap.deallocate(&bide_heap, memory, size);
}

static void each_allocation_may_fail(void **state)
{
    (void)state;
    unsigned resets = 0, lost = 0;
    lacking.allocator = (bide_allocator){lack, give_back};
    use(NULL, &(bide_http2_options){.allocator = &lacking.allocator});
    for (size_t n = 1;; n++) {
        lacking.calls = 0;
        lacking.fails = n;
        one.client.ask_count = 0;
        talk2_post(&one, "/echo", "abc", 3)->trailer = "t";
        talk2_ask(&one, "/hello");
        talk2_ask(&one, "/chunks");
        int status = talk2_run(&one);
        if (lacking.calls < n)
            break;
        assert_true(status == 0 || status == -ENOMEM);
        lost += status == -ENOMEM;
        for (size_t i = 0; status == 0 && i < 3; i++) {
            resets += one.asks[i].code != NGHTTP2_NO_ERROR;
            assert_true(one.asks[i].code != NGHTTP2_NO_ERROR || one.asks[i].status == 200 ||
                        one.asks[i].status == 503);
        }
    }
    assert_true(resets != 0 && lost != 0);
}

static void memory_is_bounded(void **state)
{
    (void)state;
    use(NULL, &(bide_http2_options){.max_memory = 600000});
    for (int i = 0; i < 50; i++)
        talk2_ask(&one, "/slow");
    int status = talk2_run(&one);
    assert_int_equal(status, 0);
    unsigned ended = 0, refused = 0;
    for (int i = 0; i < 50; i++) {
        ended += one.asks[i].status == 200;
        refused += one.asks[i].code == NGHTTP2_REFUSED_STREAM;
    }
    assert_true(ended > 3 && refused > 3);
    assert_int_equal(ended + refused, 50);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin_talk, end_talk)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_a_goaway_disclaims_is_not_processed),
        TEST(a_handler_of_http_1_answers),
        TEST(many_requests_at_a_time_are_answered),
        TEST(bodies_and_trailers_go_both_ways),
        TEST(a_handler_finds_the_connection_and_all_trailers),
        TEST(responses_without_a_body_have_none),
        TEST(a_failing_handler_is_reported),
        TEST(a_client_that_expects_100_continue_gets_it),
        TEST(an_interim_response_comes_before_the_response),
        TEST(an_unread_body_is_stopped),
        TEST(an_unread_body_is_dropped),
        TEST(unread_data_returns_to_the_connections_window),
        TEST(a_body_that_precedes_the_settings_is_received),
        TEST(a_write_that_ends_early_leaves_nothing_behind),
        TEST(a_client_that_leaves_is_no_incident),
        TEST(an_end_says_whether_the_handler_has_begun),
        TEST(a_tunnel_goes_both_ways),
        TEST(close_after_takes_no_more_requests),
        TEST(a_connection_ends_after_so_many_requests),
        TEST(the_negotiated_protocol_is_used),
        TEST(pieces_make_no_difference),
        TEST(times_end_streams_alone),
        TEST(a_window_that_is_not_opened_is_not_waited_for),
        TEST(a_connection_without_requests_ends),
        TEST(a_shutdown_lets_requests_end),
        TEST(a_reset_stops_the_handler),
        TEST(a_vanished_client_leaves_nothing),
        TEST(a_cancelled_connection_leaves_nothing),
        TEST(a_destroyed_connection_leaves_nothing),
        TEST(each_allocation_may_fail),
        TEST(memory_is_bounded),
    };
    return cmocka_run_group_tests_name("http2", tests, NULL, NULL);
}

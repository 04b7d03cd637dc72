/*
 * Pipelined requests to a server of HTTP/1.1, over plain streams and TLS: a complete response leaves the server while
 * the next handler waits, and is not lost if the next request breaks off, or if its interim response is cancelled.
 */
#include "tls_pair.h"

#include <bide/http.h>

static struct {
    pair pair;
    bide_http_server http;
    bide_http_connection connection;
    char *memory;
    struct runner serving;
    bide_event goes;          /* the handler of "/waits" completes; that of "/impatient" continues */
    bide_stop_source give_up; /* for the handler of "/impatient" */
    bide_event has_begun, has_given_up;
    bool sends_hints;
    int status; /* of its first wait */
    char output[8192];
    size_t output_size;
} f;

struct handler {
    bide_http_exchange exchange;
    char buffer[16];
    bide_event_waiter wait;
    bide_with_stop_operation limited;
};

static bide_awaiter *wait_impatiently(struct handler *self)
{
    bide_event_set(&f.has_begun);
    return bide_with_stop(&self->limited, &f.give_up,
                          f.sends_hints ? bide_http_send_interim(&self->exchange, 103, NULL, 0)
                                        : bide_http_read(&self->exchange, self->buffer,
                                                         sizeof self->buffer));
}

bide_coroutine(handler_body)
{
    bide_begin(handler_body, struct handler * self);
    if (bide_http_is(self->exchange.request.path, "/waits"))
        bide_try(bide_event_wait(&self->wait, &f.goes));
    if (bide_http_is(self->exchange.request.path, "/impatient")) {
        bide_await_status(f.status, wait_impatiently(self));
        bide_event_set(&f.has_given_up);
        bide_try(bide_event_wait(&self->wait, &f.goes));
    }
    if (bide_http_is(self->exchange.request.path, "/rash")) { /* its stop was requested before */
        bide_event_set(&f.has_begun);
        bide_try(bide_event_wait(&self->wait, &f.goes));
        bide_await_status(f.status,
                          bide_with_stop(&self->limited, &f.give_up,
                                         bide_http_send_interim(&self->exchange, 103, NULL, 0)));
    }
    do {
        bide_try(bide_http_read(&self->exchange, self->buffer, sizeof self->buffer));
    } while (self->exchange.count != 0);
    bide_try(bide_http_respond(&self->exchange, self->exchange.request.path.data,
                               self->exchange.request.path.size));
    bide_end();
}

static int64_t constant_clock(void)
{
    return 784111777;
}

#define ANSWER(path, size)                                                            \
    "HTTP/1.1 200 OK\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nContent-Length: " size \
    "\r\n\r\n" path
#define GET(path)  "GET " path " HTTP/1.1\r\nHost: a\r\n\r\n"
#define POST(path) "POST " path " HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n"

/* ---- The client ---- */

static void say(const char *text)
{
    side *client = &f.pair.client;
    assert_int_equal(world_wait(f.pair.world, bide_stream_write(&client->write, client->stream,
                                                                text, strlen(text))),
                     0);
}

/* Reads until as many bytes have arrived as the text has. All bytes so far are the text. */
static void expect(const char *text)
{
    side *client = &f.pair.client;
    while (f.output_size < strlen(text)) {
        assert_int_equal(
            world_wait(f.pair.world,
                       bide_stream_read(&client->read, client->stream, f.output + f.output_size,
                                        sizeof f.output - 1 - f.output_size)),
            0);
        size_t count = bide_stream_count(&client->read, client->stream);
        assert_true(count != 0);
        f.output_size += count;
    }
    f.output[f.output_size] = '\0';
    assert_string_equal(f.output, text);
}

/* Ends the client's output, and returns the status of the server's connection. */
static int finish(void)
{
    side *client = &f.pair.client;
    assert_int_equal(
        world_wait(f.pair.world, bide_stream_shutdown_output(&client->write, client->stream)), 0);
    return end(f.pair.world, &f.serving);
}

/* Runs it over each kind of stream, plain and with TLS. */
static void over_each_stream(void **state, void (*run)(void))
{
    world *world = world_of(state);
    bide_tls_config *client = usual_client();
    bide_tls_config *server = usual_server();
    bide_http_options options = {.handler = {&handler_body, sizeof(struct handler)},
                                 .clock = constant_clock,
                                 .allows_half_close = true,
                                 .linger_timeout =
                                     UINT64_C(600000000000)}; /* (however slow this machine is) */
    for (below kind = 0; kind < BELOWS; kind++)
        for (int is_plain = 0; is_plain < 2; is_plain++) {
            f.output_size = 0;
            bide_event_init(&f.goes, false);
            bide_event_init(&f.has_begun, false);
            bide_event_init(&f.has_given_up, false);
            bide_stop_source_init(&f.give_up);
            assert_int_equal(bide_http_server_init(&f.http, &options), 0);
            f.memory = malloc(bide_http_memory_size(&f.http));
            assert_non_null(f.memory);
            pair_open(&f.pair, world, kind);
            if (is_plain) {
                f.pair.client.stream = f.pair.client.below;
                f.pair.server.stream = f.pair.server.below;
            } else {
                pair_greet_well(&f.pair, client, server, "server.test");
            }
            begin(world, &f.serving,
                  bide_http_serve(&f.connection, &f.http, f.pair.server.stream, f.memory));
            run();
            pair_close(&f.pair);
            free(f.memory);
        }
    bide_tls_config_release(client);
    bide_tls_config_release(server);
}

/* ---- The tests ---- */

static void wait_before_the_body(void)
{
    say(GET("/one") POST("/two") "abc");
    expect(ANSWER("/one", "4"));
    say("defghi");
    expect(ANSWER("/one", "4") ANSWER("/two", "4"));
    assert_int_equal(finish(), 0);
}

static void a_client_may_wait_for_a_response_before_it_sends_the_next_body(void **state)
{
    over_each_stream(state, wait_before_the_body);
}

static void break_off(void)
{
    say(GET("/one") GET("/two") POST("/three") "abc");
    assert_int_equal(finish(), -ENODATA);
    expect(ANSWER("/one", "4") ANSWER("/two", "4"));
}

static void a_later_request_that_breaks_off_loses_no_response(void **state)
{
    over_each_stream(state, break_off);
}

/* The client reads only after the server has found that the second request breaks off. */
static void break_off_before_reading(void)
{
    static char path[3002], request[4096], wanted[4096];
    side *client = &f.pair.client;
    memset(path, 'x', sizeof path - 1);
    path[0] = '/';
    snprintf(request, sizeof request, GET("%s") "%s", path, POST("/two") "abc");
    snprintf(wanted, sizeof wanted, ANSWER("%s", "3001"), path);
    say(request);
    if (f.pair.kind == SMALL_PIPES && !world_is("pool")) /* (there it is on another thread) */
        while (!f.connection.output.is_sent_early)
            turn(f.pair.world);
    assert_int_equal(
        world_wait(f.pair.world, bide_stream_shutdown_output(&client->write, client->stream)), 0);
    for (int i = 0; i < 20; i++)
        turn(f.pair.world);
    expect(wanted);
    assert_int_equal(end(f.pair.world, &f.serving), -ENODATA);
}

static void a_slow_client_that_breaks_off_loses_no_response(void **state)
{
    over_each_stream(state, break_off_before_reading);
}

static void wait_for_the_handler(void)
{
    say(GET("/one") GET("/waits") GET("/two"));
    expect(ANSWER("/one", "4"));
    bide_event_set(&f.goes);
    expect(ANSWER("/one", "4") ANSWER("/waits", "6") ANSWER("/two", "4"));
    assert_int_equal(finish(), 0);
}

static void a_handler_that_waits_holds_no_earlier_response(void **state)
{
    over_each_stream(state, wait_for_the_handler);
}

/* The earlier response waits for the client, and the interim response for that. */
static void give_up(void)
{
    static const char *const heads[] = {
        "POST /impatient HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 9\r\n\r\n",
        POST("/impatient")};
    static char path[3002], request[4096], wanted[8192];
    bide_event_waiter wait;
    memset(path, 'x', sizeof path - 1);
    path[0] = '/';
    snprintf(request, sizeof request, GET("%s") "%s", path, heads[f.sends_hints]);
    int size = snprintf(wanted, sizeof wanted, ANSWER("%s", "3001") "%s", path,
                        f.sends_hints ? "HTTP/1.1 103 Early Hints\r\n\r\n"
                                      : "HTTP/1.1 100 Continue\r\n\r\n");
    say(request);
    assert_int_equal(world_wait(f.pair.world, bide_event_wait(&wait, &f.has_begun)), 0);
    for (int i = 0; i < 5; i++)
        turn(f.pair.world);
    bide_stop_request(&f.give_up);
    assert_int_equal(world_wait(f.pair.world, bide_event_wait(&wait, &f.has_given_up)), 0);
    if (f.status != 0 || !f.sends_hints || f.pair.kind == SMALL_PIPES)
        assert_int_equal(f.status, -ECANCELED);
    expect(wanted); /* while the handler waits for something else */
    bide_event_set(&f.goes);
    say("abcdefghi" GET("/two"));
    strcpy(wanted + size, ANSWER("/impatient", "10") ANSWER("/two", "4"));
    expect(wanted);
    assert_int_equal(finish(), 0);
}

static void an_interim_response_that_is_cancelled_spoils_no_other(void **state)
{
    for (int i = 0; i < 2; i++) {
        f.sends_hints = i == 1;
        over_each_stream(state, give_up);
    }
}

/* The handler ends while the read of the server, which watched its client, is being cancelled for the interim response. */
static void be_rash(void)
{
    static const char wanted[] = "HTTP/1.1 103 Early Hints\r\n\r\n" ANSWER("/rash", "5") ANSWER("/two", "4");
    static char first[sizeof wanted];
    bide_event_waiter wait;
    bide_stop_request(&f.give_up);
    say(GET("/rash"));
    assert_int_equal(world_wait(f.pair.world, bide_event_wait(&wait, &f.has_begun)), 0);
    for (int i = 0; i < 5; i++)
        turn(f.pair.world);
    bide_event_set(&f.goes);
    memcpy(first, wanted, strlen(wanted) - strlen(ANSWER("/two", "4")));
    expect(first);
    assert_int_equal(f.status, -ECANCELED);
    say(GET("/two"));
    expect(wanted);
    assert_int_equal(finish(), 0);
}

static void a_connection_goes_on_after_an_interim_response_that_was_cancelled(void **state)
{
    over_each_stream(state, be_rash);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        world_test(a_client_may_wait_for_a_response_before_it_sends_the_next_body),
        world_test(a_later_request_that_breaks_off_loses_no_response),
        world_test(a_slow_client_that_breaks_off_loses_no_response),
        world_test(a_handler_that_waits_holds_no_earlier_response),
        world_test(an_interim_response_that_is_cancelled_spoils_no_other),
        world_test(a_connection_goes_on_after_an_interim_response_that_was_cancelled),
    };
    return cmocka_run_group_tests(tests, make_everyone, free_everyone);
}

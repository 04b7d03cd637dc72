/* The HTTP client: responses, in pieces of any size; and the client together with the server. */
#include "http_peer.h"
#include "bide/http.h"

static struct conversation {
    bide_sim_loop loop;
    bide_http_server server;
    bide_http_connection connection;
    bide_memory_pipe to_server, to_client;
    bide_memory_end server_end, client_end;
    char to_server_memory[512], to_client_memory[512];
    char server_memory[PEER_MEMORY];
    _Alignas(16) char client_memory[BIDE_HTTP_CLIENT_MEMORY];
    bide_http_client client;

    const char *method, *target;
    const char *body; /* of the request; NULL: none */
    bool in_chunks, asks_first;
    void (*on_informational)(bide_http_client *client);
    int times;

    char got[8192];
    size_t size;
    int status, server_status;
    bool continued, reusable;
    char trailer[32];

    struct actor {
        bide_task task;
        bide_branch branch;
        int i;
    } main, serving, asking;
    bide_scope scope;
} c;

static char script[2 * BIDE_HTTP_CLIENT_MEMORY]; /* the output of a server that only sends */

bide_coroutine(serve)
{
    bide_begin(serve, struct actor * self);
    (void)self;
    bide_await_status(c.server_status, bide_http_serve(&c.connection, &c.server,
                                                       bide_memory_stream(&c.server_end), c.server_memory));
    bide_memory_pipe_destroy(&c.to_client);
    bide_memory_pipe_reject(&c.to_server);
    bide_end();
}

bide_coroutine(ask)
{
    bide_begin(ask, struct actor * self);
    for (self->i = 0; self->i < c.times; self->i++) {
        c.size = 0;
        assert_int_equal(bide_http_client_start_request(&c.client, c.method, c.target, "example.org"), 0);
        assert_int_equal(bide_http_client_add(&c.client, "Accept", "*/*"), 0);
        if (c.asks_first) {
            assert_int_equal(bide_http_client_add(&c.client, "Expect", "100-continue"), 0);
            assert_int_equal(bide_http_client_finish_head(&c.client, strlen(c.body)), 0);
            bide_try(bide_http_client_continue(&c.client));
            c.continued = c.client.continues;
        } else if (c.body != NULL && !c.in_chunks) {
            assert_int_equal(bide_http_client_finish_head(&c.client, strlen(c.body)), 0);
        }
        if (c.body != NULL && (!c.asks_first || c.continued))
            bide_try(bide_http_client_write(&c.client, c.body, strlen(c.body)));
        if (c.body != NULL && c.in_chunks)
            assert_int_equal(bide_http_client_add_trailer(&c.client, "X-Trailer", "sum"), 0);
        bide_try(bide_http_client_recv(&c.client));
        do {
            bide_try(bide_http_client_read(&c.client, c.got + c.size, sizeof c.got - c.size));
            c.size += c.client.count;
        } while (c.client.count != 0);
        bide_slice trailer = bide_http_client_trailer(&c.client, "x-sum");
        if (trailer.size != 0)
            memcpy(c.trailer, trailer.data, trailer.size);
        c.reusable = bide_http_client_is_reusable(&c.client);
    }
    bide_finally();
    bide_memory_pipe_destroy(&c.to_server);
    bide_end();
}

bide_coroutine(converse_body)
{
    bide_begin(converse_body, struct actor * self);
    (void)self;
    bide_scope_init(&c.scope, bide_this_frame());
    bide_scope_spawn(&c.scope, &c.serving.branch, bide_task_init(&c.serving.task, &serve));
    bide_scope_spawn(&c.scope, &c.asking.branch, bide_task_init(&c.asking.task, &ask));
    bide_try(bide_scope_join(&c.scope));
    bide_end();
}

static int converse(const char *method, const char *target, const char *body, int times)
{
    bide_http_options options = {.handler = {&http_peer_body, sizeof(struct peer_handler)}, .clock = peer_clock};
    memset(&handled, 0, sizeof handled);
    memset(c.trailer, 0, sizeof c.trailer);
    bide_sim_loop_init(&c.loop, 1);
    assert_int_equal(bide_http_server_init(&c.server, &options), 0);
    assert_true(bide_http_memory_size(&c.server) <= sizeof c.server_memory);
    bide_memory_pipe_init(&c.to_server, c.to_server_memory, sizeof c.to_server_memory);
    bide_memory_pipe_init(&c.to_client, c.to_client_memory, sizeof c.to_client_memory);
    c.server_end = (bide_memory_end){&c.to_server, &c.to_client};
    c.client_end = (bide_memory_end){&c.to_client, &c.to_server};
    assert_int_equal(bide_http_client_init(&c.client, bide_memory_stream(&c.client_end), c.client_memory,
                                           sizeof c.client_memory, NULL), 0);
    c.client.on_informational = c.on_informational;
    c.method = method;
    c.target = target;
    c.body = body;
    c.times = times;
    int status = bide_sim_loop_wait(&c.loop, bide_task_init(&c.main.task, &converse_body));
    c.in_chunks = false;
    c.asks_first = false;
    c.on_informational = NULL;
    return status;
}

static void asks_and_is_answered_again_and_again(void **state)
{
    (void)state;
    assert_int_equal(converse("GET", "/hello", NULL, 3), 0);
    assert_int_equal(c.client.response.status, 200);
    assert_true(bide_http_is(bide_http_client_field(&c.client, "content-type"), "text/plain"));
    assert_int_equal(c.size, 5);
    assert_memory_equal(c.got, "hello", 5);
    assert_true(c.reusable);
    assert_int_equal(handled.begun, 3);
    assert_int_equal(c.server_status, 0);
}

static void sends_a_body_and_gets_one_with_trailers(void **state)
{
    (void)state;
    c.in_chunks = true;
    assert_int_equal(converse("POST", "/echo", "some text", 2), 0);
    assert_memory_equal(c.got, "some text", 9);
    assert_string_equal(handled.trailer, "sum");
    assert_int_equal(converse("GET", "/chunks", NULL, 1), 0);
    assert_int_equal(c.size, 15);
    assert_string_equal(c.trailer, "15");
}

static void waits_until_the_body_is_wanted(void **state)
{
    (void)state;
    c.asks_first = true;
    assert_int_equal(converse("POST", "/count", "some text", 1), 0);
    assert_true(c.continued);
    assert_memory_equal(c.got, "counted", 7);
    assert_int_equal(handled.read, 9);
    c.asks_first = true;
    assert_int_equal(converse("POST", "/nowhere", "some text", 1), 0);
    assert_false(c.continued);
    assert_int_equal(c.client.response.status, 404);
    assert_false(c.reusable);
}

static unsigned hints;

static void keep_hints(bide_http_client *client)
{
    bide_slice link = bide_http_client_field(client, "link");
    assert_int_equal(client->response.status, 103);
    assert_int_equal(client->response.field_count, 1);
    assert_int_equal(link.size, 21);
    assert_memory_equal(link.data, "</a.css>; rel=preload", 21);
    hints++;
}

static void interim_responses_are_skipped_or_seen(void **state)
{
    (void)state;
    hints = 0;
    assert_int_equal(converse("GET", "/hints", NULL, 2), 0);
    assert_int_equal(c.client.response.status, 200);
    assert_int_equal(hints, 0);
    c.on_informational = keep_hints;
    assert_int_equal(converse("GET", "/hints", NULL, 2), 0);
    assert_int_equal(c.client.response.status, 200);
    assert_int_equal(c.size, 5);
    assert_true(c.reusable);
    assert_int_equal(hints, 2);
}

static void a_head_has_no_body(void **state)
{
    (void)state;
    assert_int_equal(converse("HEAD", "/hello", NULL, 2), 0);
    assert_int_equal(c.size, 0);
    assert_int_equal(c.client.response.length, 5);
    assert_true(c.reusable);
    assert_int_equal(converse("GET", "/nothing", NULL, 2), 0);
    assert_int_equal(c.client.response.status, 204);
    assert_int_equal(c.size, 0);
    assert_true(c.reusable);
}

bide_coroutine(scripted_server_body)
{
    bide_begin(scripted_server_body, struct actor * self);
    (void)self;
    static bide_stream_operation operation;
    bide_try(bide_stream_write(&operation, bide_memory_stream(&c.server_end), script, strlen(script)));
    bide_end();
}

/*
 * Interim responses fill the input buffer, and the head of the final one ends near the end of the buffer.
 * The client can still read the body and its trailers.
 */
static void a_head_at_the_end_of_the_buffer_leaves_room_for_its_body(void **state)
{
    static const char interim[] = "HTTP/1.1 102 Processing\r\nX-A: %0*d\r\n\r\n";
    static const char head[] = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    static const char body[] = "5\r\nhello\r\n0\r\nX-Sum: yes\r\n\r\n";
    static char pipe[2 * BIDE_HTTP_CLIENT_MEMORY];
    (void)state;
    for (int before = -40; before <= 40; before++) {
        memset(c.trailer, 0, sizeof c.trailer);
        bide_sim_loop_init(&c.loop, 1);
        bide_memory_pipe_init(&c.to_server, c.to_server_memory, sizeof c.to_server_memory);
        bide_memory_pipe_init(&c.to_client, pipe, sizeof pipe);
        c.server_end = (bide_memory_end){&c.to_client, &c.to_client};
        c.client_end = (bide_memory_end){&c.to_client, &c.to_server};
        assert_int_equal(bide_http_client_init(&c.client, bide_memory_stream(&c.client_end), c.client_memory,
                                               sizeof c.client_memory, NULL), 0);
        int each = ((int)c.client.reader.size - before - (int)strlen(head)) / 2 - ((int)strlen(interim) - 4);
        int size = snprintf(script, sizeof script, interim, each, 0);
        size += snprintf(script + size, sizeof script - (size_t)size, interim, each, 0);
        snprintf(script + size, sizeof script - (size_t)size, "%s%s", head, body);
        assert_int_equal(bide_sim_loop_wait(&c.loop, bide_task_init(&c.serving.task, &scripted_server_body)), 0);
        c.method = "GET";
        c.target = "/";
        c.body = NULL;
        c.times = 1;
        assert_int_equal(bide_sim_loop_wait(&c.loop, bide_task_init(&c.asking.task, &ask)), 0);
        assert_int_equal(c.size, 5);
        assert_memory_equal(c.got, "hello", 5);
        assert_string_equal(c.trailer, "yes");
    }
}

/* The client's own limit is no fault of the server's response. */
static void a_response_with_too_many_fields_does_not_fit(void **state)
{
    (void)state;
    for (int fields = 3; fields <= 6; fields++) {
        bide_sim_loop_init(&c.loop, 1);
        bide_memory_pipe_init(&c.to_server, c.to_server_memory, sizeof c.to_server_memory);
        bide_memory_pipe_init(&c.to_client, c.to_client_memory, sizeof c.to_client_memory);
        c.server_end = (bide_memory_end){&c.to_client, &c.to_client};
        c.client_end = (bide_memory_end){&c.to_client, &c.to_server};
        assert_int_equal(bide_http_client_init(&c.client, bide_memory_stream(&c.client_end), c.client_memory,
                                               sizeof c.client_memory, &(bide_http_client_options){.max_fields = 4}), 0);
        strcpy(script, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n");
        for (int i = 1; i < fields; i++)
            strcat(script, "X-A: b\r\n");
        strcat(script, "\r\n");
        assert_int_equal(bide_sim_loop_wait(&c.loop, bide_task_init(&c.serving.task, &scripted_server_body)), 0);
        c.method = "GET";
        c.target = "/";
        c.body = NULL;
        c.times = 1;
        assert_int_equal(bide_sim_loop_wait(&c.loop, bide_task_init(&c.asking.task, &ask)), fields <= 4 ? 0 : -EMSGSIZE);
    }
}

/* Only the framing of a response matters to the client. */
static void fields_of_requests_mean_nothing_in_a_response(void **state)
{
    (void)state;
    bide_sim_loop_init(&c.loop, 1);
    bide_memory_pipe_init(&c.to_server, c.to_server_memory, sizeof c.to_server_memory);
    bide_memory_pipe_init(&c.to_client, c.to_client_memory, sizeof c.to_client_memory);
    c.server_end = (bide_memory_end){&c.to_client, &c.to_client};
    c.client_end = (bide_memory_end){&c.to_client, &c.to_server};
    assert_int_equal(bide_http_client_init(&c.client, bide_memory_stream(&c.client_end), c.client_memory,
                                           sizeof c.client_memory, NULL), 0);
    strcpy(script, "HTTP/1.1 200 OK\r\nHost: a b\r\nHost: c\r\nExpect: nothing\r\nContent-Length: 2\r\n\r\nhi");
    assert_int_equal(bide_sim_loop_wait(&c.loop, bide_task_init(&c.serving.task, &scripted_server_body)), 0);
    c.method = "GET";
    c.target = "/";
    c.body = NULL;
    c.times = 1;
    assert_int_equal(bide_sim_loop_wait(&c.loop, bide_task_init(&c.asking.task, &ask)), 0);
    assert_int_equal(c.size, 2);
    assert_memory_equal(c.got, "hi", 2);
}

/* Begins a request over pipes, whose body has `length` bytes. The server has sent `script`. */
static void promise_body(uint64_t length)
{
    bide_sim_loop_init(&c.loop, 1);
    bide_memory_pipe_init(&c.to_server, c.to_server_memory, sizeof c.to_server_memory);
    bide_memory_pipe_init(&c.to_client, c.to_client_memory, sizeof c.to_client_memory);
    c.server_end = (bide_memory_end){&c.to_client, &c.to_client};
    c.client_end = (bide_memory_end){&c.to_client, &c.to_server};
    assert_int_equal(bide_http_client_init(&c.client, bide_memory_stream(&c.client_end), c.client_memory,
                                           sizeof c.client_memory, NULL), 0);
    assert_int_equal(bide_sim_loop_wait(&c.loop, bide_task_init(&c.serving.task, &scripted_server_body)), 0);
    assert_int_equal(bide_http_client_start_request(&c.client, "POST", "/", "a"), 0);
    assert_int_equal(bide_http_client_add(&c.client, "Expect", "100-continue"), 0);
    assert_int_equal(bide_http_client_finish_head(&c.client, length), 0);
}

/* The server would wait for the rest, and the client for the server. */
static void a_body_shorter_than_promised_fails(void **state)
{
    (void)state;
    for (size_t written = 0; written < 10; written += 3) {
        strcpy(script, "HTTP/1.1 100 Continue\r\n\r\n");
        promise_body(10);
        assert_int_equal(bide_sim_loop_wait(&c.loop, bide_http_client_continue(&c.client)), 0);
        assert_true(c.client.continues);
        assert_int_equal(bide_sim_loop_wait(&c.loop, bide_http_client_write(&c.client, "ten bytes.", written)), 0);
        for (int i = 0; i < 2; i++)
            assert_int_equal(bide_sim_loop_wait(&c.loop, bide_http_client_recv(&c.client)), -EINVAL);
        assert_false(bide_http_client_is_reusable(&c.client));
    }
}

static void a_response_before_the_body_has_ended_is_received(void **state)
{
    (void)state;
    strcpy(script, "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\n\r\n");
    promise_body(10);
    assert_int_equal(bide_sim_loop_wait(&c.loop, bide_http_client_continue(&c.client)), 0);
    assert_true(c.client.continues);
    assert_int_equal(bide_sim_loop_wait(&c.loop, bide_http_client_write(&c.client, "ten", 3)), 0);
    assert_int_equal(bide_sim_loop_wait(&c.loop, bide_http_client_recv(&c.client)), 0);
    assert_int_equal(c.client.response.status, 413);
    assert_false(bide_http_client_is_reusable(&c.client));
}

/* The same, if its only write is never awaited. */
static void a_body_whose_write_never_begins_fails(void **state)
{
    static const uint64_t lengths[] = {10, BIDE_HTTP_UNKNOWN};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        strcpy(script, "HTTP/1.1 100 Continue\r\n\r\n");
        promise_body(lengths[i]);
        assert_int_equal(bide_sim_loop_wait(&c.loop, bide_http_client_continue(&c.client)), 0);
        bide_await_later(bide_http_client_write(&c.client, "ten bytes.", 10));
        assert_int_equal(bide_sim_loop_wait(&c.loop, bide_http_client_recv(&c.client)), -EINVAL);
        assert_false(bide_http_client_is_reusable(&c.client));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(asks_and_is_answered_again_and_again),
        cmocka_unit_test(sends_a_body_and_gets_one_with_trailers),
        cmocka_unit_test(waits_until_the_body_is_wanted),
        cmocka_unit_test(interim_responses_are_skipped_or_seen),
        cmocka_unit_test(a_head_has_no_body),
        cmocka_unit_test(a_head_at_the_end_of_the_buffer_leaves_room_for_its_body),
        cmocka_unit_test(a_response_with_too_many_fields_does_not_fit),
        cmocka_unit_test(fields_of_requests_mean_nothing_in_a_response),
        cmocka_unit_test(a_body_shorter_than_promised_fails),
        cmocka_unit_test(a_response_before_the_body_has_ended_is_received),
        cmocka_unit_test(a_body_whose_write_never_begins_fails),
    };
    return cmocka_run_group_tests_name("http_client", tests, NULL, NULL);
}

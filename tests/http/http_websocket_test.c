/*
 * WebSockets over HTTP: a handler that echoes, and a client, on one loop. Invalid requests are sent byte by
 * byte.
 */
#include "../io/runner.h"
#include "bide/http.h"

typedef struct session {
    bide_http_exchange exchange;
    bide_http_websocket_operation upgrade;
    bide_websocket websocket;
    bide_websocket_recv_operation receive;
    bide_websocket_send_operation send;
    char message[4096];
} session;

static struct {
    int status; /* of the last upgrade */
    bool is_kept; /* the handler keeps that to itself */
    bide_websocket_destroy end;
} seen;

bide_coroutine(session_body)
{
    bide_begin(session_body, session * self);
    bide_await_status(seen.status,
                      bide_http_accept_websocket(&self->upgrade, &self->exchange, &self->websocket,
                                                 &(bide_websocket_options){.max_message = 4096},
                                                 "echo, chat"));
    if (seen.status != 0)
        bide_return(seen.is_kept ? 0 : seen.status); /* as bide_try does */
    for (;;) {
        bide_try_or_break(
            bide_websocket_recv(&self->receive, &self->websocket, self->message, 4096));
        bide_try(bide_websocket_send(&self->send, &self->websocket, self->receive.kind,
                                     self->message, self->receive.count));
    }
    seen.end = self->websocket.end;
    bide_end();
}

typedef struct fixture {
    world *world;
    bide_http_server http;
    bide_address address;
    bide_spawned running;
    bide_descriptor client;
} fixture;

static void shut_down(void *fixture_)
{
    fixture *f = fixture_;
    bide_close(&f->client);
    bide_http_server_shut_down(&f->http, BIDE_FOREVER);
}

static void open_server(fixture *f, void **state)
{
    bide_io_operation operation;
    bide_http_options options = {.handler = {&session_body, sizeof(session)}, .max_connections = 4};
    memset(f, 0, sizeof *f);
    f->world = world_of(state);
    bide_descriptor_init_closed(&f->client);
    assert_int_equal(bide_http_server_init(&f->http, &options), 0);
    assert_int_equal(bide_address_ip(&f->address, "127.0.0.1", 0), 0);
    assert_int_equal(
        world_wait(f->world, bide_listen(&operation, &f->http.server.listener, &f->address, 8)), 0);
    assert_int_equal(bide_local_address(&f->http.server.listener, &f->address), 0);
    bide_spawn(&f->running, f->world->context, bide_http_server_run(&f->http));
    assert_int_equal(world_wait(f->world, bide_connect(&operation, &f->client, &f->address)), 0);
}

static void close_server(fixture *f)
{
    bide_event_waiter wait;
    call_inside(f->world, shut_down, f);
    assert_int_equal(world_wait(f->world, bide_event_wait(&wait, &f->running.ended)), 0);
    assert_int_equal(f->running.root.status, 0);
}

/* Sends a request and reads until the output contains `until`. */
static void ask(fixture *f, const char *request, size_t size, const char *until, char answer[2048])
{
    bide_io_operation operation;
    size_t count = 0;
    assert_int_equal(world_wait(f->world, bide_send(&operation, &f->client, request, size)), 0);
    do {
        assert_int_equal(
            world_wait(f->world, bide_recv(&operation, &f->client, answer + count, 2047 - count)),
            0);
        assert_true(operation.count != 0);
        count += operation.count;
        answer[count] = '\0';
    } while (memmem(answer, count, until, strlen(until)) == NULL);
}

static void a_client_opens_one_and_talks_over_it(void **state)
{
    fixture f;
    char memory[BIDE_HTTP_CLIENT_MEMORY], message[4096];
    bide_http_client client;
    bide_websocket websocket;
    bide_http_websocket_operation opening;
    bide_websocket_send_operation send;
    bide_websocket_recv_operation receive;
    bide_websocket_close_operation closing;
    bide_websocket_options options = {0};
    open_server(&f, state);
    assert_int_equal(bide_http_client_init(&client, bide_socket_stream(&f.client), memory,
                                           sizeof memory, NULL),
                     0);
    assert_int_equal(
        world_wait(f.world, bide_http_open_websocket(&opening, &client, &websocket, &options,
                                                     "/chat", "localhost", "log, chat")),
        0);
    assert_true(bide_http_is(bide_http_client_field(&client, "Sec-WebSocket-Protocol"), "chat"));
    for (size_t size = 0; size < 4096; size = size * 2 + 1) {
        memset(message, 'x', size);
        assert_int_equal(
            world_wait(f.world,
                       bide_websocket_send(&send, &websocket, BIDE_WEBSOCKET_TEXT, message, size)),
            0);
        memset(message, 0, sizeof message);
        assert_int_equal(world_wait(f.world, bide_websocket_recv(&receive, &websocket, message,
                                                                    sizeof message)),
                         0);
        assert_int_equal(receive.count, size);
        assert_true(size == 0 || (message[0] == 'x' && message[size - 1] == 'x'));
    }
    assert_int_equal(world_wait(f.world, bide_websocket_close(&closing, &websocket, 1000, "done")),
                     0);
    close_server(&f);
    assert_string_equal(seen.end.reason, "done");
    assert_true(seen.end.is_clean);
}

static bool sends_at_once(const fixture *f)
{
    int value = -1;
    assert_int_equal(bide_socket_option(&f->client, BIDE_OPTION_NO_DELAY, &value), 0);
    return value != 0;
}

static void clients_send_small_pieces_at_once(void **state)
{
    static char room[2][BIDE_WEBSOCKET_BUFFER_MIN];
    static bide_websocket websocket;
    char memory[BIDE_HTTP_CLIENT_MEMORY];
    bide_http_client client;
    bide_http_client_options keeps = {.keeps_delay = true};
    bide_websocket_options options = {.read_buffer = room[0],
                                      .read_buffer_size = sizeof room[0],
                                      .write_buffer = room[1],
                                      .write_buffer_size = sizeof room[1]};
    fixture f;
    open_server(&f, state);
    bide_stream stream = bide_socket_stream(&f.client);
    assert_false(sends_at_once(&f));
    assert_int_equal(bide_http_client_init(&client, stream, memory, sizeof memory, &keeps), 0);
    assert_int_equal(bide_websocket_init(&websocket, stream, &options), 0); /* a server's */
    assert_false(sends_at_once(&f));
    options.role = BIDE_WEBSOCKET_CLIENT;
    assert_int_equal(bide_websocket_init(&websocket, stream, &options), 0);
    assert_true(sends_at_once(&f));
    assert_int_equal(bide_set_no_delay(&f.client, false), 0);
    assert_int_equal(bide_http_client_init(&client, stream, memory, sizeof memory, NULL), 0);
    assert_true(sends_at_once(&f));
    close_server(&f);
}

/* The server's response arrives up to some byte; then the client is stopped or destroyed. */
static void an_opening_client_can_end_at_each_byte(void **state)
{
    static const char answer[] =
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";
    world *world = world_of(state);
    for (size_t size = 0; size < sizeof answer; size++) {
        for (int how = STOP; how <= DESTROY; how += 3) {
            char there[1024], back[1024], memory[BIDE_HTTP_CLIENT_MEMORY];
            bide_memory_pipe pipes[2];
            bide_memory_end ours = {&pipes[0], &pipes[1]}, theirs = {&pipes[1], &pipes[0]};
            bide_http_client client;
            bide_websocket websocket;
            bide_websocket_options options = {0};
            bide_http_websocket_operation opening;
            bide_stream_operation write;
            struct runner runner;
            bide_memory_pipe_init(&pipes[0], there, sizeof there);
            bide_memory_pipe_init(&pipes[1], back, sizeof back);
            assert_int_equal(bide_http_client_init(&client, bide_memory_stream(&ours), memory,
                                                   sizeof memory, NULL),
                             0);
            begin_by(world, &runner,
                     bide_http_open_websocket(&opening, &client, &websocket, &options, "/",
                                              "localhost", NULL),
                     how);
            if (size != 0)
                assert_int_equal(
                    world_wait(world, bide_stream_write(&write, bide_memory_stream(&theirs),
                                                        answer, size)),
                    0);
            turn(world);
            assert_int_equal(runner.has_ended, size == sizeof answer - 1);
            if (how == DESTROY) {
                destroy(world, &runner);
            } else {
                if (!runner.has_ended)
                    call_inside(world, stop, &runner);
                end(world, &runner);
            }
            if (runner.has_ended) /* (the key differs) */
                assert_int_equal(runner.status, size == sizeof answer - 1 ? -EPROTO : -ECANCELED);
        }
    }
}

#define REQUEST(version, more)                                                                \
    "GET /chat HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: keep-alive, " \
    "Upgrade\r\n"                                                                             \
    "Sec-WebSocket-Version: " version "\r\n" more "\r\n"
#define KEY "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"

static void bytes_behind_the_request_are_frames(void **state)
{
    static const char request[] = REQUEST("13", KEY) "\x81\x82\0\0\0\0hi\x88\x80\0\0\0\0";
    fixture f;
    char answer[2048];
    open_server(&f, state);
    ask(&f, request, sizeof request - 1, "\x81\x02hi\x88", answer);
    assert_non_null(strstr(answer, "HTTP/1.1 101 "));
    assert_non_null(strstr(answer, "\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"));
    assert_null(strstr(answer, "Sec-WebSocket-Protocol"));
    close_server(&f);
    assert_int_equal(seen.end.code, BIDE_WEBSOCKET_NO_CODE);
}

static void several_lines_of_protocols_are_one_list(void **state)
{
    static const struct {
        const char *request, *chosen;
    } cases[] = {
        {REQUEST("13", KEY "Sec-WebSocket-Protocol: x\r\nSec-WebSocket-Protocol: chat\r\n"), "chat"},
        {REQUEST("13", KEY "Sec-WebSocket-Protocol: chat\r\nSec-WebSocket-Protocol: x, echo\r\n"), "echo"},
        {REQUEST("13", KEY "Sec-WebSocket-Protocol: x\r\nSec-WebSocket-Protocol: y\r\n"), NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fixture f;
        char answer[2048], expected[100];
        open_server(&f, state);
        ask(&f, cases[i].request, strlen(cases[i].request), "\r\n\r\n", answer);
        assert_memory_equal(answer, "HTTP/1.1 101 ", 13);
        snprintf(expected, sizeof expected, "\r\nSec-WebSocket-Protocol: %s\r\n", cases[i].chosen);
        if (cases[i].chosen != NULL)
            assert_non_null(strstr(answer, expected));
        else
            assert_null(strstr(answer, "Sec-WebSocket-Protocol"));
        close_server(&f);
    }
}

static void a_request_for_none_is_answered(void **state)
{
    static const struct {
        const char *request, *status;
        int error;
    } cases[] = {
        {"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", "HTTP/1.1 400 ", -EINVAL},
        {REQUEST("8", KEY), "HTTP/1.1 426 ", -EPROTONOSUPPORT},
        {REQUEST("13", "Sec-WebSocket-Key: short\r\n"), "HTTP/1.1 400 ", -EINVAL},
        {REQUEST("13", ""), "HTTP/1.1 400 ", -EINVAL},
        {REQUEST("13", KEY KEY), "HTTP/1.1 400 ", -EINVAL},
        {REQUEST("13", KEY "Sec-WebSocket-Version: 13\r\n"), "HTTP/1.1 400 ", -EINVAL},
        {"POST / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" KEY
         "Sec-WebSocket-Version: 13\r\nContent-Length: 0\r\n\r\n",
         "HTTP/1.1 400 ", -EINVAL},
    };
    for (size_t i = 0; i < 2 * (sizeof cases / sizeof *cases); i++) {
        fixture f;
        char answer[2048];
        seen.is_kept = i % 2 == 1;
        open_server(&f, state);
        ask(&f, cases[i / 2].request, strlen(cases[i / 2].request), "is required.\n", answer);
        assert_memory_equal(answer, cases[i / 2].status, strlen(cases[i / 2].status));
        assert_int_equal(strstr(answer, "Sec-WebSocket-Version: 13") != NULL,
                         cases[i / 2].error == -EPROTONOSUPPORT);
        close_server(&f);
        assert_int_equal(seen.status, cases[i / 2].error);
    }
}

/*
 * Several lines of extensions are one list, with one member at most, which was offered. The protocol and the accepted key
 * have one line.
 */
static void an_answer_has_one_value_of_each_field(void **state)
{
    static const struct {
        const char *fields;
        bool offers;
        int status;
    } cases[] = {
        {"", false, 0},
        {"Sec-WebSocket-Protocol: chat\r\n", false, 0},
        {"Sec-WebSocket-Protocol:\r\n", false, -EPROTO},
        {"Sec-WebSocket-Protocol: chat\r\nSec-WebSocket-Protocol:\r\n", false, -EPROTO},
        {"Sec-WebSocket-Protocol: chat\r\nSec-WebSocket-Protocol: chat\r\n", false, -EPROTO},
        {"Sec-WebSocket-Protocol: chat\r\nSec-WebSocket-Protocol: log\r\n", false, -EPROTO},
        {"Sec-WebSocket-Protocol: chat\r\nSec-WebSocket-Protocol: chat\r\n", true, -EPROTO},
        {"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n", false, -EPROTO},
        {"Sec-WebSocket-Extensions:\r\n", false, 0},
        {"Sec-WebSocket-Extensions: xy\r\n", false, -EPROTO},
        {"Sec-WebSocket-Extensions:\r\nSec-WebSocket-Extensions: xy\r\n", false, -EPROTO},
        {"Sec-WebSocket-Extensions:\r\nSec-WebSocket-Extensions: permessage-deflate\r\n", true, 0},
        {"Sec-WebSocket-Extensions: permessage-deflate\r\nSec-WebSocket-Extensions: xy\r\n", true, -EPROTO},
        {"Sec-WebSocket-Extensions: permessage-deflate\r\nSec-WebSocket-Extensions: permessage-deflate\r\n", true, -EPROTO},
    };
    world *world = world_of(state);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char there[1024], back[1024], memory[BIDE_HTTP_CLIENT_MEMORY], request[1024], answer[1024];
        char accept[BIDE_WEBSOCKET_ACCEPT + 1];
        bide_memory_pipe pipes[2];
        bide_memory_end ours = {&pipes[0], &pipes[1]}, theirs = {&pipes[1], &pipes[0]};
        bide_http_client client;
        bide_websocket websocket;
        bide_websocket_deflate deflate;
        bide_websocket_options options = {0};
        bide_http_websocket_operation opening;
        bide_stream_operation operation;
        struct runner runner;
        if (cases[i].offers && bide_websocket_deflate_init(&deflate, NULL) == -ENOTSUP)
            continue;
        options.deflate = cases[i].offers ? &deflate : NULL;
        bide_memory_pipe_init(&pipes[0], there, sizeof there);
        bide_memory_pipe_init(&pipes[1], back, sizeof back);
        assert_int_equal(bide_http_client_init(&client, bide_memory_stream(&ours), memory, sizeof memory, NULL), 0);
        begin_by(world, &runner, bide_http_open_websocket(&opening, &client, &websocket, &options, "/", "localhost", "chat, log"),
                 STOP);
        assert_int_equal(world_wait(world, bide_stream_read(&operation, bide_memory_stream(&theirs), request, 1023)), 0);
        request[bide_stream_count(&operation, bide_memory_stream(&theirs))] = '\0';
        const char *key = strstr(request, "Sec-WebSocket-Key: ");
        assert_non_null(key);
        bide_websocket_headers headers = {.upgrade = {"websocket", 9}, .connection = {"upgrade", 7}, .version = {"13", 2},
                                          .key = {key + 19, 24}};
        assert_int_equal(bide_websocket_check_request(&headers, accept), 0);
        int size = snprintf(answer, sizeof answer,
                            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                            "Sec-WebSocket-Accept: %s\r\n%s\r\n", accept, cases[i].fields);
        assert_int_equal(world_wait(world, bide_stream_write(&operation, bide_memory_stream(&theirs), answer, (size_t)size)), 0);
        end(world, &runner);
        assert_int_equal(runner.status, cases[i].status);
        if (cases[i].offers)
            bide_websocket_deflate_destroy(&deflate);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        world_test(a_client_opens_one_and_talks_over_it),
        world_test(clients_send_small_pieces_at_once),
        world_test(an_opening_client_can_end_at_each_byte),
        world_test(bytes_behind_the_request_are_frames),
        world_test(several_lines_of_protocols_are_one_list),
        world_test(an_answer_has_one_value_of_each_field),
        world_test(a_request_for_none_is_answered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * WebSockets of the HTTP/2 client (RFC 8441): against the library's server, and against a peer that sends frames of a
 * script, for settings and answers that the library's server does not send.
 */
#include "http2_client_peer.h"

#include <bide/http2_websocket.h>

static talk3 one;

enum { MESSAGE = 3000, SOCKETS = 8 };

/* ---- The server ---- */

static struct {
    int status; /* the handler's last operation */
    unsigned code;
    bool is_clean;
    unsigned accepted, ended;
    char origin[64];
} seen;

struct session {
    bide_http_exchange exchange;
    bide_websocket websocket;
    bide_http_websocket_operation upgrade;
    bide_websocket_recv_operation receive;
    bide_websocket_send_operation send;
    bide_websocket_close_operation close;
    int status;
    char message[MESSAGE];
};

bide_coroutine(session_body)
{
    bide_begin(session_body, struct session * self);
    handled.begun++;
    if (path_is(&self->exchange, "/hello"))
        bide_try(bide_http_respond(&self->exchange, "hello", 5));
    else if (path_is(&self->exchange, "/forbidden")) {
        self->exchange.status = 403;
        bide_try(bide_http_respond(&self->exchange, "not for you", 11));
    } else {
        bide_slice origin = bide_http_request_field(&self->exchange, "origin");
        snprintf(seen.origin, sizeof seen.origin, "%.*s", (int)origin.size, origin.data != NULL ? origin.data : "");
        bide_try(bide_http_accept_websocket(&self->upgrade, &self->exchange, &self->websocket,
                                            &(bide_websocket_options){.max_message = MESSAGE}, "chat, log"));
        seen.accepted++;
        if (self->exchange.request.target.size > 8 && memcmp(self->exchange.request.target.data, "/closes", 7) == 0)
            bide_try(bide_websocket_close(&self->close, &self->websocket, 4000, "no more"));
        else
            for (;;) {
                bide_await_status(self->status, bide_websocket_recv(&self->receive, &self->websocket, self->message, MESSAGE));
                if (self->status < 0)
                    break;
                bide_await_status(self->status, bide_websocket_send(&self->send, &self->websocket, self->receive.kind,
                                                                    self->message, self->receive.count));
                if (self->status < 0)
                    break;
            }
        seen.status = self->status;
        seen.code = self->websocket.end.code;
        seen.is_clean = self->websocket.end.is_clean;
        seen.ended++;
    }
    bide_finally();
    handled.ended++;
    bide_end();
}

/* ---- The client ---- */

typedef struct ws {
    bide_websocket websocket;
    bide_http2_websocket_operation opening;
    bide_websocket_recv_operation receive;
    bide_websocket_send_operation send;
    bide_websocket_close_operation close;
    bide_with_deadline_operation limited;
    char buffers[2][1024];
    const char *protocols;
    const char *protocol; /* of the request; NULL: "websocket" */
    size_t sizes;         /* of the messages: up to */
    uint64_t deadline;    /* of each operation; 0: none */
    size_t message_size;
    int opened, closed, last;
    bool is_plain; /* its request is a GET */
    char agreed[16], reason[32];
    char message[MESSAGE];
} ws;

static ws sockets[SOCKETS];

static ws *ws_of(job *job)
{
    return &sockets[job - one.jobs];
}

static bide_awaiter *limited(ws *ws, bide_awaiter *awaiter)
{
    return ws->deadline == 0 ? awaiter : bide_with_deadline(&ws->limited, one.began + ws->deadline, awaiter);
}

static int begin_request(job *job)
{
    ws *ws = ws_of(job);
    int status = ws->is_plain ? bide_http2_request_init(&job->request, &one.client, "GET", job->path, "example.org")
                              : bide_http2_request_init_protocol(&job->request, &one.client,
                                                                 ws->protocol != NULL ? ws->protocol : "websocket",
                                                                 job->path, "example.org");
    if (status == 0)
        status = bide_http2_request_add(&job->request, "Origin", "https://example.org");
    return status;
}

static bide_websocket_options options_of(ws *ws)
{
    return (bide_websocket_options){.read_buffer = ws->buffers[0],
                                    .read_buffer_size = sizeof ws->buffers[0],
                                    .write_buffer = ws->buffers[1],
                                    .write_buffer_size = sizeof ws->buffers[1],
                                    .max_message = MESSAGE};
}

bide_coroutine(ws_body)
{
    bide_begin(ws_body, job * self);
    ws_of(self)->opened = ws_of(self)->closed = ws_of(self)->last = 1;
    self->status = begin_request(self);
    if (self->status < 0)
        bide_return(0);
    bide_websocket_options options = options_of(ws_of(self));
    bide_await_status(self->status, limited(ws_of(self), bide_http2_open_websocket(&ws_of(self)->opening, &self->request,
                                                                                  &ws_of(self)->websocket, &options,
                                                                                  ws_of(self)->protocols)));
    ws_of(self)->opened = self->status;
    self->code = self->request.response.status;
    if (self->code != 0)
        self->talk->order[self->talk->answered++] = (unsigned)(self - self->talk->jobs);
    job_keep_text(ws_of(self)->agreed, sizeof ws_of(self)->agreed,
                  bide_http2_request_field(&self->request, "sec-websocket-protocol"));
    if (self->status == -ECONNREFUSED && self->code != 0) { /* the answer can be read */
        bide_try(bide_http2_request_read(&self->request, self->buffer, sizeof self->buffer));
        job_keep(self, self->request.count);
    }
    if (self->status < 0)
        bide_return(0);
    for (ws_of(self)->message_size = 0; ws_of(self)->message_size < ws_of(self)->sizes;
         ws_of(self)->message_size = ws_of(self)->message_size * 2 + 1) {
        memset(ws_of(self)->message, 'x', ws_of(self)->message_size);
        bide_await_status(ws_of(self)->last,
                          limited(ws_of(self), bide_websocket_send(&ws_of(self)->send, &ws_of(self)->websocket,
                                                                   BIDE_WEBSOCKET_BINARY, ws_of(self)->message,
                                                                   ws_of(self)->message_size)));
        if (ws_of(self)->last < 0)
            bide_return(0);
        memset(ws_of(self)->message, 0, MESSAGE);
        bide_await_status(ws_of(self)->last,
                          limited(ws_of(self), bide_websocket_recv(&ws_of(self)->receive, &ws_of(self)->websocket,
                                                                   ws_of(self)->message, MESSAGE)));
        if (ws_of(self)->last < 0)
            bide_return(0);
        assert_int_equal(ws_of(self)->receive.count, ws_of(self)->message_size);
        assert_int_equal(strspn(ws_of(self)->message, "x"), ws_of(self)->message_size);
    }
    if (ws_of(self)->sizes != 0)
        bide_await_status(ws_of(self)->closed,
                          limited(ws_of(self), bide_websocket_close(&ws_of(self)->close, &ws_of(self)->websocket, 1000, "done")));
    else
        bide_await_status(ws_of(self)->last,
                          limited(ws_of(self), bide_websocket_recv(&ws_of(self)->receive, &ws_of(self)->websocket,
                                                                   ws_of(self)->message, MESSAGE)));
    strncpy(ws_of(self)->reason, ws_of(self)->websocket.end.reason, sizeof ws_of(self)->reason - 1);
    bide_finally();
    self->ends++;
    bide_http2_request_close(&self->request);
    bide_end();
}

static job *open_at(const char *path)
{
    job *job = talk3_job(&one, path);
    memset(ws_of(job), 0, sizeof *ws_of(job));
    ws_of(job)->sizes = MESSAGE;
    job->does = &ws_body;
    return job;
}

static int begin_talk(void **state)
{
    (void)state;
    talk3_init(&one);
    one.server.options.handler = (bide_http_handler){&session_body, sizeof(struct session)};
    one.server.options.max_frame_size = sizeof(struct session);
    free(one.memory);
    one.memory = malloc(bide_http_memory_size(&one.server));
    memset(&seen, 0, sizeof seen);
    return 0;
}

static int end_talk(void **state)
{
    (void)state;
    talk3_end(&one);
    return 0;
}

/* ---- Against the library's server ---- */

static void it_talks_beside_other_requests(void **state)
{
    (void)state;
    for (one.seed = 0; one.seed < 20; one.seed++) {
        one.job_count = 0;
        memset(&seen, 0, sizeof seen);
        one.options.window = one.seed % 3 == 0 ? 200 : 0; /* smaller than messages */
        one.options.max_body = 4;                         /* is of responses */
        one.pipe = one.seed % 4 == 0 ? 64 : 0;
        job *chat = open_at("/chat"), *other = talk3_job(&one, "/hello"), *log = open_at("/log");
        one.options.max_body = 5;
        ws_of(chat)->protocols = "none, chat";
        ws_of(log)->protocols = "log";
        assert_int_equal(talk3_run(&one), 0);
        for (job *job = chat; job != NULL; job = job == chat ? log : NULL) {
            assert_int_equal(ws_of(job)->opened, 0);
            assert_int_equal(ws_of(job)->last, 0);
            assert_int_equal(ws_of(job)->closed, 0);
            assert_int_equal(job->code, 200);
            assert_true(ws_of(job)->websocket.end.is_clean);
        }
        assert_string_equal(ws_of(chat)->agreed, "chat");
        assert_string_equal(ws_of(log)->agreed, "log");
        assert_string_equal(other->answer, "hello");
        assert_string_equal(seen.origin, "https://example.org");
        assert_int_equal(seen.accepted, 2);
        assert_int_equal(seen.ended, 2);
        assert_int_equal(seen.status, -EPIPE);
        assert_int_equal(seen.code, 1000);
        assert_true(seen.is_clean);
    }
}

static void the_server_may_close_it(void **state)
{
    (void)state;
    job *job = open_at("/closes-it");
    ws_of(job)->sizes = 0; /* only receives */
    assert_int_equal(talk3_run(&one), 0);
    assert_int_equal(ws_of(job)->opened, 0);
    assert_int_equal(ws_of(job)->last, -EPIPE);
    assert_int_equal(ws_of(job)->websocket.end.code, 4000);
    assert_string_equal(ws_of(job)->reason, "no more");
    assert_true(ws_of(job)->websocket.end.is_clean);
    assert_true(seen.is_clean);
}

static void a_refusal_is_a_response(void **state)
{
    (void)state;
    job *job = open_at("/forbidden"), *unknown = open_at("/chat"), *plain = open_at("/hello");
    ws_of(unknown)->protocol = "other";
    assert_int_equal(talk3_run(&one), 0);
    assert_int_equal(ws_of(job)->opened, -ECONNREFUSED);
    assert_int_equal(job->code, 403);
    assert_string_equal(job->answer, "not for you");
    assert_int_equal(ws_of(unknown)->opened, -ECONNREFUSED);
    assert_int_equal(unknown->code, 400);
    assert_string_equal(unknown->answer, "A WebSocket handshake is required.\n");
    assert_int_equal(ws_of(plain)->opened, -ECONNREFUSED); /* its 200 would have accepted the WebSocket */
    assert_int_equal(plain->code, 501);
}

static void requests_of_other_kinds_are_invalid(void **state)
{
    static const struct {
        const char *protocol, *target, *authority;
    } rows[] = {
        {"", "/", "a"}, {"web socket", "/", "a"}, {"websocket", "", "a"}, {"websocket", "*", "a"},
        {"websocket", "a:1", "a:1"}, {"websocket", "/", ""}, {"websocket", "/ ", "a"},
    };
    (void)state;
    assert_int_equal(bide_http2_client_init(&one.client, bide_memory_stream(&one.client_end), NULL), 0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        bide_http2_request request;
        assert_int_equal(bide_http2_request_init_protocol(&request, &one.client, rows[i].protocol, rows[i].target,
                                                          rows[i].authority), -EINVAL);
        bide_http2_request_close(&request);
    }
    bide_http2_client_destroy(&one.client);
    job *job = open_at("/chat");
    ws_of(job)->is_plain = true;
    assert_int_equal(talk3_run(&one), 0);
    assert_int_equal(ws_of(job)->opened, -EINVAL);
    assert_int_equal(seen.accepted, 0);
}

/* At whatever moment: both sides end, and nothing is left (talk3_run). */
static void it_may_end_at_each_moment(void **state)
{
    (void)state;
    for (int way = 0; way < 3; way++) {
        unsigned opened = 0, refused = 0;
        for (uint64_t after = 1; after < 60; after++) {
            one.job_count = 0;
            one.destroy_at = one.drain_at = 0;
            memset(&seen, 0, sizeof seen);
            one.seed = after;
            one.destroys_running = true; /* (a client that has not begun to run ends no request) */
            one.pipe = 64;
            one.loop.now = 0;
            job *job = open_at("/chat");
            uint64_t at = after * 2000;
            if (way == 0)
                ws_of(job)->deadline = at;
            else if (way == 1)
                one.destroy_at = at;
            else
                one.drain_at = at;
            (void)talk3_run(&one);
            opened += ws_of(job)->opened == 0;
            refused += ws_of(job)->opened < 0;
            if (ws_of(job)->opened == -ECANCELED) /* of a request that was sent */
                assert_true(way == 1);
            else if (ws_of(job)->opened < 0)
                assert_int_equal(ws_of(job)->opened, way == 0 ? -ETIMEDOUT : -ECONNREFUSED);
            assert_int_equal(seen.accepted, seen.ended);
        }
        printf("# way %d: opened %u, not opened %u\n", way, opened, refused);
        assert_true(way != 0 || (opened != 0 && refused != 0));
    }
}

/* ---- Against frames of a script ---- */

/* Frames: size (below 256), type, flags, stream (below 256). */
#define HEAD(size, type, flags, id) "\0\0" size type flags "\0\0\0" id
#define BYTES(text)                 text, sizeof(text) - 1
#define SETTINGS                    HEAD("\0", "\4", "\0", "\0")
#define ALLOWING                    HEAD("\6", "\4", "\0", "\0") "\0\x08\0\0\0\1"
#define FORBIDDING                  HEAD("\6", "\4", "\0", "\0") "\0\x08\0\0\0\0"
#define OK(flags, id)               HEAD("\1", "\1", flags, id) "\x88" /* ":status: 200" */

static void a_server_without_the_setting_gets_no_request(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        one.job_count = one.step_count = 0;
        job *job = open_at("/chat");
        if (i == 0)
            talk3_step(&one, 0, BYTES(SETTINGS));
        else
            talk3_step(&one, 0, BYTES(FORBIDDING));
        assert_int_equal(talk3_run(&one), 0);
        assert_int_equal(ws_of(job)->opened, -EPROTONOSUPPORT);
        assert_int_equal(one.heads, 0);
        assert_int_equal(job->code, 0);
    }
}

/* ... and is not held until a stream is free. */
static void a_server_without_the_setting_and_without_a_free_stream_is_no_wait(void **state)
{
    (void)state;
    job *other = talk3_job(&one, "/hello"), *held = talk3_job(&one, "/hello"), *job = open_at("/chat"),
        *next = open_at("/chat");
    other->deadline = held->deadline = 100 * SECOND; /* the server never answers */
    ws_of(job)->deadline = ws_of(next)->deadline = 50 * SECOND;
    talk3_step(&one, 0, BYTES(HEAD("\14", "\4", "\0", "\0") "\0\3\0\0\0\1" "\0\x08\0\0\0\0"));
    assert_int_equal(talk3_run(&one), -ETIMEDOUT); /* of the others */
    assert_int_equal(one.heads, 1);
    assert_int_equal(ws_of(job)->opened, -EPROTONOSUPPORT);
    assert_int_equal(ws_of(next)->opened, -EPROTONOSUPPORT);
}

/* The settings come behind another request, which passes. */
static void it_waits_for_the_settings_and_holds_no_other_request(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        one.job_count = one.step_count = 0;
        job *job = open_at("/chat"), *other = talk3_job(&one, "/hello");
        if (i == 0)
            talk3_step(&one, 1, BYTES(SETTINGS OK("\5", "\1")));
        else
            talk3_step(&one, 1, BYTES(ALLOWING OK("\5", "\1")));
        if (i == 1)
            talk3_step(&one, 2, BYTES(OK("\4", "\3") HEAD("\4", "\0", "\1", "\3") "\x88\x02\x03\xe8"));
        assert_int_equal(talk3_run(&one), 0);
        assert_int_equal(other->code, 200);
        assert_int_equal(ws_of(job)->opened, i == 0 ? -EPROTONOSUPPORT : 0);
        assert_int_equal(one.heads, i == 0 ? 1 : 2);
    }
}

static void wrong_answers_are_refused(void **state)
{
    (void)state;
    for (int i = 0; i < 5; i++) {
        one.job_count = one.step_count = 0;
        job *job = open_at("/chat");
        ws_of(job)->protocols = "chat";
        talk3_step(&one, 0, BYTES(ALLOWING));
        if (i == 0) /* a subprotocol that was not offered */
            talk3_step(&one, 1, BYTES(HEAD("\36", "\1", "\4", "\1") "\x88\0\x16sec-websocket-protocol\4none"));
        else if (i == 1) /* an extension that was not offered */
            talk3_step(&one, 1, BYTES(HEAD("\36", "\1", "\4", "\1") "\x88\0\x18sec-websocket-extensions\2xy"));
        else if (i == 2) /* the same, on a second line */
            talk3_step(&one, 1, BYTES(HEAD("\71", "\1", "\4", "\1") "\x88\0\x18sec-websocket-extensions\0\0\x18sec-websocket-extensions\2xy"));
        else if (i == 3) /* the offered subprotocol twice */
            talk3_step(&one, 1, BYTES(HEAD("\73", "\1", "\4", "\1") "\x88\0\x16sec-websocket-protocol\4chat\0\x16sec-websocket-protocol\4chat"));
        else /* a reset */
            talk3_step(&one, 1, BYTES(HEAD("\4", "\3", "\0", "\1") "\0\0\0\x0d"));
        assert_int_equal(talk3_run(&one), 0);
        assert_int_equal(ws_of(job)->opened, i < 4 ? -EPROTO : -EPROTONOSUPPORT);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin_talk, end_talk)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(it_talks_beside_other_requests),
        TEST(the_server_may_close_it),
        TEST(a_refusal_is_a_response),
        TEST(requests_of_other_kinds_are_invalid),
        TEST(it_may_end_at_each_moment),
        TEST(a_server_without_the_setting_gets_no_request),
        TEST(a_server_without_the_setting_and_without_a_free_stream_is_no_wait),
        TEST(it_waits_for_the_settings_and_holds_no_other_request),
        TEST(wrong_answers_are_refused),
    };
    return cmocka_run_group_tests_name("http2_client_websocket", tests, NULL, NULL);
}

/*
 * Tunnels of the HTTP/2 client (CONNECT), against a peer that sends frames of a script: what opens one, how each direction
 * ends, and what refuses one.
 */
#include "http2_client_peer.h"

#include <nghttp2/nghttp2.h>

static talk3 one;

static int begin_talk(void **state)
{
    (void)state;
    talk3_init(&one);
    return 0;
}

static int end_talk(void **state)
{
    (void)state;
    talk3_end(&one);
    return 0;
}

/* Frames: size (below 256), type, flags, stream (below 256). */
#define HEAD(size, type, flags, id) "\0\0" size type flags "\0\0\0" id
#define BYTES(text)                 text, sizeof(text) - 1
#define SETTINGS                    HEAD("\0", "\4", "\0", "\0")
#define OK(flags, id)               HEAD("\1", "\1", flags, id) "\x88" /* ":status: 200" */
#define NOT_FOUND(flags, id)        HEAD("\1", "\1", flags, id) "\x8d"
#define DATA(size, flags, id)       HEAD(size, "\0", flags, id)
#define RESET(id, code)             HEAD("\4", "\3", "\0", id) "\0\0\0" code

/* What came of a tunnel. */
static struct {
    bide_stream_operation operation;
    int early, opened, wrote, read, ended, closed, late;
    size_t wrote_count;
    bool ends_output; /* after its write */
    bool closes;      /* while it reads */
    char text[64];
    size_t size;
} t;

struct closer {
    bide_task task;
    bide_branch branch;
    bide_scope scope;
    bide_sleep sleep;
    job *job;
};

static struct closer closer;

/* The stream is closed while the tunnel is read. */
bide_coroutine(closer_body)
{
    bide_begin(closer_body, struct closer * self);
    bide_await(bide_sleep_for(&self->sleep, SECOND));
    bide_stream stream = bide_http2_request_stream(&self->job->request);
    t.closed = stream.table->close(stream);
    bide_end();
}

bide_coroutine(tunnel_body)
{
    bide_begin(tunnel_body, job * self);
    bide_scope_init(&closer.scope, bide_this_frame());
    self->status = bide_http2_request_init(&self->request, &self->talk->client, "CONNECT", self->path, self->path);
    if (self->status < 0)
        bide_return(0);
    assert_int_equal(bide_http2_request_finish_head(&self->request, 0), -EINVAL);
    assert_int_equal(bide_http2_request_set_body(&self->request, "a", 1), -EINVAL);
    bide_await_status(t.early, bide_http2_request_write(&self->request, "early", 5));
    bide_await_status(self->status, bide_http2_request_recv(&self->request));
    t.opened = self->status;
    if (self->status < 0)
        bide_return(0);
    self->code = self->request.response.status;
    assert_int_equal(bide_http2_request_add_trailer(&self->request, "a", "b"), -EINVAL);
    bide_await_status(t.wrote, bide_stream_write(&t.operation, bide_http2_request_stream(&self->request), "ping", 4));
    t.wrote_count = bide_stream_count(&t.operation, bide_http2_request_stream(&self->request));
    if (t.ends_output)
        bide_await_status(t.ended, bide_stream_shutdown_output(&t.operation, bide_http2_request_stream(&self->request)));
    if (t.closes) {
        closer.job = self;
        bide_scope_spawn(&closer.scope, &closer.branch, bide_task_init(&closer.task, &closer_body));
    }
    do {
        bide_await_status(t.read, bide_stream_read(&t.operation, bide_http2_request_stream(&self->request), t.text + t.size,
                                                   sizeof t.text - 1 - t.size));
        if (t.read < 0)
            break;
        self->size = bide_stream_count(&t.operation, bide_http2_request_stream(&self->request));
        t.size += self->size;
    } while (self->size != 0);
    bide_await_status(t.late, bide_stream_write(&t.operation, bide_http2_request_stream(&self->request), "late", 4));
    bide_finally();
    bide_scope_destroy(&closer.scope);
    self->ends++;
    bide_http2_request_close(&self->request);
    bide_end();
}

static job *tunnel_to(const char *authority)
{
    job *job = talk3_job(&one, authority);
    memset(&t, 0, sizeof t);
    job->does = &tunnel_body;
    return job;
}

/* The fields of the request, as lines. */
static void read_request(char *text, size_t size)
{
    nghttp2_hd_inflater *inflater;
    uint8_t *at = one.request;
    size_t left = one.request_size;
    assert_int_equal(nghttp2_hd_inflate_new(&inflater), 0);
    text[0] = '\0';
    for (int flags = 0; (flags & NGHTTP2_HD_INFLATE_FINAL) == 0;) {
        nghttp2_nv field;
        ssize_t taken = nghttp2_hd_inflate_hd2(inflater, &field, &flags, at, left, 1);
        assert_true(taken >= 0);
        at += taken;
        left -= (size_t)taken;
        size_t used = strlen(text);
        if ((flags & NGHTTP2_HD_INFLATE_EMIT) != 0)
            snprintf(text + used, size - used, "%.*s %.*s\n", (int)field.namelen, (const char *)field.name,
                     (int)field.valuelen, (const char *)field.value);
    }
    nghttp2_hd_inflate_del(inflater);
}

static void a_tunnel_goes_both_ways(void **state)
{
    char text[256];
    (void)state;
    for (one.seed = 0; one.seed < 10; one.seed++) {
        one.job_count = one.step_count = 0;
        one.options.max_body = 3; /* is of responses */
        job *job = tunnel_to("far.example:443");
        t.ends_output = one.seed % 2 != 0;
        talk3_step(&one, 0, BYTES(SETTINGS));
        talk3_step(&one, 1, BYTES(OK("\4", "\1") DATA("\4", "\0", "\1") "pong"));
        talk3_step(&one, 1, BYTES(DATA("\5", "\1", "\1") " more"));
        one.steps[2].pause = SECOND;
        assert_int_equal(talk3_run(&one), 0);
        read_request(text, sizeof text);
        assert_string_equal(text, ":method CONNECT\n:authority far.example:443\n");
        assert_int_equal(t.early, -EINVAL);
        assert_int_equal(job->status, 0);
        assert_int_equal(job->code, 200);
        assert_int_equal(one.heads, 1);
        assert_int_equal(job->request.response.length, 0); /* (it is closed) */
        assert_int_equal(t.wrote, 0);
        assert_int_equal(t.wrote_count, 4);
        assert_int_equal(t.read, 0);
        assert_string_equal(t.text, "pong more");
        assert_int_equal(t.ended, 0);
        /* the other end has ended its output, which ends no more than that: */
        assert_int_equal(t.late, t.ends_output ? -EINVAL : 0);
        assert_int_equal(one.data, t.ends_output ? 4 : 8);
        assert_int_equal(one.ends, t.ends_output);
        assert_int_equal(one.resets, !t.ends_output);
    }
}

static void a_tunnel_that_is_refused_has_a_response(void **state)
{
    (void)state;
    job *job = tunnel_to("far.example:443");
    talk3_step(&one, 0, BYTES(SETTINGS));
    talk3_step(&one, 1, BYTES(NOT_FOUND("\4", "\1")));
    talk3_step(&one, 1, BYTES(DATA("\2", "\1", "\1") "no"));
    one.steps[2].pause = SECOND;
    assert_int_equal(talk3_run(&one), 0);
    assert_int_equal(job->code, 404);
    assert_int_equal(t.wrote, -EINVAL);
    assert_int_equal(t.read, 0);
    assert_string_equal(t.text, "no");
    assert_int_equal(one.data, 0);
    assert_int_equal(one.ends, 1); /* the request's output */
    assert_int_equal(one.resets, 0);
}

static void a_tunnel_ends_with_its_stream(void **state)
{
    (void)state;
    job *job = tunnel_to("far.example:443");
    talk3_step(&one, 0, BYTES(SETTINGS));
    talk3_step(&one, 1, BYTES(OK("\4", "\1") DATA("\4", "\0", "\1") "pong"));
    talk3_step(&one, 1, BYTES(RESET("\1", "\12"))); /* CONNECT_ERROR */
    one.steps[2].pause = SECOND;
    assert_int_equal(talk3_run(&one), 0);
    assert_int_equal(job->code, 200);
    assert_string_equal(t.text, "pong");
    assert_int_equal(t.read, -ECONNRESET);
    assert_int_equal(t.late, -ECONNRESET);
}

static void a_stream_that_is_closed_ends_its_reader(void **state)
{
    (void)state;
    job *job = tunnel_to("far.example:443");
    t.closes = true;
    talk3_step(&one, 0, BYTES(SETTINGS));
    talk3_step(&one, 1, BYTES(OK("\4", "\1")));
    assert_int_equal(talk3_run(&one), 0);
    assert_int_equal(job->code, 200);
    assert_int_equal(t.closed, 0);
    assert_int_equal(t.read, -EPIPE);
    assert_int_equal(t.late, -EPIPE);
    assert_int_equal(one.resets, 1);
    assert_int_equal(one.reset_code, 8);
}

/* A request that is no tunnel has no stream to end. */
static void only_a_tunnel_is_a_stream(void **state)
{
    bide_http2_request request;
    bide_stream_operation operation;
    (void)state;
    bide_memory_pipe_init(&one.to_server, one.to_memory, PEER_PIPE);
    bide_memory_pipe_init(&one.from_server, one.from_memory, PEER_PIPE);
    one.client_end = (bide_memory_end){&one.from_server, &one.to_server};
    assert_int_equal(bide_http2_client_init(&one.client, bide_memory_stream(&one.client_end), NULL), 0);
    assert_int_equal(bide_http2_request_init(&request, &one.client, "GET", "/", "a"), 0);
    assert_int_equal(bide_sync_wait(bide_stream_shutdown_output(&operation, bide_http2_request_stream(&request))), -EINVAL);
    bide_http2_request_close(&request);
    bide_http2_client_destroy(&one.client);
}

int main(void)
{
#define talk_test(name) cmocka_unit_test_setup_teardown(name, begin_talk, end_talk)
    const struct CMUnitTest tests[] = {
        talk_test(a_tunnel_goes_both_ways),
        talk_test(a_tunnel_that_is_refused_has_a_response),
        talk_test(a_tunnel_ends_with_its_stream),
        talk_test(a_stream_that_is_closed_ends_its_reader),
        talk_test(only_a_tunnel_is_a_stream),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

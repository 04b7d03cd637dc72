/*
 * A write of a response is destroyed or cancelled before it begins or while it waits, and its handler goes on as if all
 * were sent: the response is not complete. By kinds of body, and by HTTP/1.1 and HTTP/2.
 */
#include "http2_peer.h"

#include <bide/http_compression.h>

enum { BODY = 200000, PIECE = 256 };

enum kind { LENGTH, UNKNOWN, GZIP_LENGTH, GZIP_UNKNOWN, FILE_LENGTH, KINDS };

/* HELD: the write is in a scope that has no room for it. AGAIN: the same, and the rest of the body is written then. */
enum cut { HELD, AGAIN, STOPPED, DESTROYED, CANCELLED, CUTS };

static struct {
    enum kind kind;
    enum cut cut;
    bide_sim_loop *loop;
    bide_memory_io *io;
    bide_descriptor file;
    bide_http_compression compression;
    char body[BODY];
    int status; /* of the write */
    int again;  /* of the one behind it */
} cuts;

struct cutter {
    bide_http_exchange exchange;
    bide_scope scope;
    bide_branch first, branch;
    bide_event never;
    bide_event_waiter wait;
    bide_sleep sleep;
    bide_file_operation operation;
};

static bide_awaiter *write_of(struct cutter *self)
{
    return cuts.kind == FILE_LENGTH ? bide_http_write_file(&self->exchange, &cuts.file, 0, BODY - 1)
                                    : bide_http_write(&self->exchange, cuts.body, BODY - 1);
}

bide_coroutine(cutter_body)
{
    bide_begin(cutter_body, struct cutter * self);
    handled.begun++;
    bool waits = cuts.cut == HELD || cuts.cut == AGAIN;
    bide_scope_init_with(&self->scope, bide_this_frame(), &(bide_scope_options){.max_running = waits});
    if (path_is(&self->exchange, "/next")) {
        bide_try(bide_http_respond(&self->exchange, "next", 4));
        bide_return(0);
    }
    if (cuts.kind == FILE_LENGTH) {
        assert_int_equal(bide_memory_io_create(&cuts.io, cuts.loop, NULL), 0);
        bide_try(bide_open(&self->operation, &cuts.file, "/file", O_RDWR | O_CREAT, 0600));
        bide_try(bide_write_at(&self->operation, &cuts.file, cuts.body, BODY, 0));
    }
    bide_http_add(&self->exchange, "Content-Type", "text/plain");
    assert_int_equal(bide_http_start_response(&self->exchange, cuts.kind == UNKNOWN || cuts.kind == GZIP_UNKNOWN
                                                                   ? BIDE_HTTP_UNKNOWN
                                                                   : BODY),
                     0);
    bide_event_init(&self->never, false);
    if (cuts.cut == HELD || cuts.cut == AGAIN)
        bide_scope_spawn(&self->scope, &self->first, bide_event_wait(&self->wait, &self->never));
    if (cuts.cut == STOPPED)
        bide_scope_stop(&self->scope);
    bide_scope_spawn(&self->scope, &self->branch, write_of(self));
    if (cuts.cut != STOPPED)
        bide_try(bide_sleep_for(&self->sleep, SECOND));
    if (cuts.cut == STOPPED || cuts.cut == CANCELLED) {
        bide_scope_stop(&self->scope);
        bide_await_status(cuts.status, bide_scope_join(&self->scope));
    }
    bide_scope_destroy(&self->scope);
    if (cuts.cut == AGAIN)
        bide_await_status(cuts.again, bide_http_write(&self->exchange, cuts.body, 1));
    bide_return(0); /* as if all were sent */
    bide_finally();
    bide_scope_destroy(&self->scope);
    if (cuts.io != NULL && path_is(&self->exchange, "/cut")) {
        bide_close(&cuts.file);
        bide_memory_io_destroy(cuts.io);
        cuts.io = NULL;
    }
    handled.ended++;
    bide_end();
}

static bide_http_options options_of_cuts(void)
{
    return (bide_http_options){.handler = {&cutter_body, sizeof(struct cutter)}, .compression = &cuts.compression};
}

static void begin_cuts(void)
{
    uint32_t random = 1;
    assert_int_equal(bide_http_compression_init(&cuts.compression, NULL), 0);
    for (size_t i = 0; i < BODY; i++) /* (compression makes it no smaller) */
        cuts.body[i] = (char)((random = random * 1103515245 + 12345) >> 16);
}

/* What the handler has seen. */
static void check_cut(void)
{
    bool was_cancelled = cuts.cut == STOPPED || cuts.cut == CANCELLED;
    assert_int_equal(cuts.status, was_cancelled ? -ECANCELED : 1);
    assert_int_equal(cuts.again, cuts.cut == AGAIN ? -ECANCELED : 1);
    assert_int_equal(cuts.compression.active, 0);
}

static void start_cut(int i)
{
    cuts.kind = (enum kind)(i / CUTS);
    cuts.cut = (enum cut)(i % CUTS);
    cuts.status = cuts.again = 1;
    printf("# kind %d, cut %d\n", cuts.kind, cuts.cut);
}

static const char *accepted(void)
{
    return cuts.kind == GZIP_LENGTH || cuts.kind == GZIP_UNKNOWN ? "gzip" : "identity";
}

static void a_write_that_is_cut_completes_no_response(void **state)
{
    static peer one;
    const bide_http_options options = options_of_cuts();
    (void)state;
    begin_cuts();
    peer_init(&one, &options);
    cuts.loop = &one.loop;
    one.piece = PIECE; /* so much in a second */
    one.read_pause = SECOND;
    for (int i = 0; i < KINDS * CUTS; i++) {
        char input[200];
        start_cut(i);
        snprintf(input, sizeof input,
                 "GET /cut HTTP/1.1\r\nHost: a\r\nAccept-Encoding: %s\r\n\r\nGET /next HTTP/1.1\r\nHost: a\r\n\r\n", accepted());
        assert_int_equal(peer_say(&one, input), -ECANCELED);
        check_cut();
        assert_int_equal(handled.begun, 1); /* the connection has ended */
        assert_true(one.output_size < BODY);
        assert_null(memmem(one.output, one.output_size, "\r\n0\r\n\r\n", 7));
    }
    peer_end(&one);
    bide_http_compression_destroy(&cuts.compression);
}

static void a_write_that_is_cut_resets_its_stream(void **state)
{
    static talk2 one;
    const bide_http_options options = options_of_cuts();
    (void)state;
    begin_cuts();
    talk2_init_with(&one, &options, NULL);
    cuts.loop = &one.loop;
    for (int i = 0; i < KINDS * CUTS; i++) {
        start_cut(i);
        const char *const fields[][2] = {{"accept-encoding", accepted()}, {NULL, NULL}};
        one.client.ask_count = 0;
        one.client.no_window = true; /* the client takes no more than this of a stream */
        one.client.window = 1000;
        ask *cut = talk2_ask(&one, "/cut");
        cut->fields = fields;
        ask *next = talk2_ask(&one, "/next");
        assert_int_equal(talk2_run(&one), 0);
        check_cut();
        assert_int_equal(handled.begun, 2);
        assert_true(cut->has_ended);
        assert_int_equal(cut->code, NGHTTP2_INTERNAL_ERROR);
        assert_int_equal(next->status, 200); /* the connection goes on */
        assert_string_equal(next->answer, "next");
    }
    talk2_end(&one);
    bide_http_compression_destroy(&cuts.compression);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_write_that_is_cut_completes_no_response),
        cmocka_unit_test(a_write_that_is_cut_resets_its_stream),
    };
    return cmocka_run_group_tests_name("http_write_cut", tests, NULL, NULL);
}

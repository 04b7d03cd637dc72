/*
 * How HTTP/2 connections share a server, its turns and its limits: counts of requests, in memory, under a test loop. The clients
 * write frames as bytes and count the heads of responses.
 */
#include "../http/http_peer.h"

#include <bide/http2.h>
#include <nghttp2/nghttp2.h>

enum { LINES = 10, EACH = 100, TURN = 16 /* the library's number of requests in a turn */, BYTES = 16384 };

/* A client and its connection at the server. */
typedef struct line {
    unsigned number;
    bide_http_connection connection;
    bide_memory_pipe to_server, from_server;
    bide_memory_end server_end, client_end;
    char to_memory[PEER_PIPE], from_memory[PEER_PIPE];
    char *memory;
    bide_scope serving_scope;
    bide_stop_source stop;
    bide_with_stop_operation stopping;
    int status;

    /* requests to send */
    unsigned to_ask; /* UINT_MAX: as long as `goes_on` */
    unsigned at_a_time;
    bool is_odd; /* the last head is one invalid field. */
    unsigned asked;
    char bytes[BYTES];
    size_t size;

    /* responses */
    unsigned served;
    unsigned answers; /* heads of responses */
    unsigned goaways;
    unsigned resets;
    unsigned char head[9]; /* of the current frame */
    size_t head_size, left;
    char input[4096];
    bool has_ended;
    bide_auto_event answered;

    struct line_task {
        bide_task task;
        struct line *line;
        bide_branch branch;
        bide_stream_operation operation;
        bide_auto_event_waiter wait;
        int status;
    } serving, asking, hearing;
} line;

static struct {
    bide_sim_loop loop;
    bide_sim_record_ record;
    bide_http_server server;
    bide_http2 http2;
    line lines[LINES];
    unsigned count;
    bool goes_on;
    bool waits; /* a handler waits until all that was sent has been received, and then reads its body */
    size_t body; /* bytes of each request's body */
    size_t max_live, max_opened, max_memory;
    unsigned max_apart; /* the maximum difference between the progress of two clients */
    bide_scope scope;

    /* after this many turns of a coroutine, of the first connection; 0: never */
    unsigned destroy_after, stop_after;
    struct turns_task {
        bide_task task;
        bide_branch branch;
        bide_sleep sleep;
        unsigned i;
    } main, acting;
} f;

/* ---- The server ---- */

struct handler {
    bide_http_exchange exchange;
    bide_sleep sleep;
    char buffer[1000];
    size_t size;
};

/* Notes the difference in progress between clients with remaining requests. */
static void look(void)
{
    unsigned min = UINT_MAX, max = 0;
    for (unsigned i = 0; i < f.count; i++) {
        if (f.lines[i].served >= f.lines[i].to_ask)
            return;
        min = f.lines[i].served < min ? f.lines[i].served : min;
        max = f.lines[i].served > max ? f.lines[i].served : max;
    }
    if (max - min > f.max_apart)
        f.max_apart = max - min;
}

bide_coroutine(handler_body)
{
    bide_begin(handler_body, struct handler * self);
    self->exchange.status = 204;
    f.lines[self->exchange.request.path.data[1] - '0'].served++;
    if (f.http2.stats.live > f.max_live)
        f.max_live = f.http2.stats.live;
    look();
    if (!f.waits)
        bide_return(0);
    bide_try(bide_sleep_for(&self->sleep, SECOND));
    if (f.http2.opened > f.max_opened)
        f.max_opened = f.http2.opened;
    if (f.http2.stats.memory > f.max_memory)
        f.max_memory = f.http2.stats.memory;
    self->size = 0;
    do {
        bide_try(bide_http_read(&self->exchange, self->buffer, sizeof self->buffer));
        self->size += self->exchange.count;
    } while (self->exchange.count != 0);
    assert_int_equal(self->size, f.body);
    bide_end();
}

bide_coroutine(serve_line)
{
    bide_begin(serve_line, struct line_task * self);
    bide_await_status(self->line->status,
                      bide_with_stop(&self->line->stopping, &self->line->stop,
                                     bide_http2_serve(&self->line->connection, &f.http2,
                                                      bide_memory_stream(&self->line->server_end), self->line->memory,
                                                      "h2")));
    bide_finally();
    bide_memory_pipe_destroy(&self->line->from_server);
    bide_memory_pipe_reject(&self->line->to_server);
    bide_end();
}

/* ---- The clients ---- */

static void put(line *line, const void *data, size_t size)
{
    assert_true(size <= sizeof line->bytes - line->size);
    memcpy(line->bytes + line->size, data, size);
    line->size += size;
}

static void put_frame(line *line, uint8_t type, uint8_t flags, uint32_t stream, const void *data, size_t size)
{
    unsigned char head[9] = {(unsigned char)(size >> 16), (unsigned char)(size >> 8), (unsigned char)size, type, flags,
                             (unsigned char)(stream >> 24), (unsigned char)(stream >> 16), (unsigned char)(stream >> 8),
                             (unsigned char)stream};
    put(line, head, sizeof head);
    put(line, data, size);
}

static bool is_last(const line *line)
{
    return line->asked == line->to_ask || (line->to_ask == UINT_MAX && !f.goes_on);
}

/* Composes the next requests. */
static void gather(line *line)
{
    char head[] = "\x82\x86\x01\x01" "a" "\x04\x02" "/0"; /* GET http://a/0, in HPACK */
    enum { FLAGS = NGHTTP2_FLAG_END_HEADERS | NGHTTP2_FLAG_END_STREAM };
    head[sizeof head - 2] = (char)('0' + line->number);
    line->size = 0;
    if (line->asked == 0) {
        put(line, NGHTTP2_CLIENT_MAGIC, sizeof NGHTTP2_CLIENT_MAGIC - 1);
        put_frame(line, NGHTTP2_SETTINGS, 0, 0, "", 0);
    }
    for (unsigned i = 0; i < line->at_a_time && line->asked < line->to_ask; i++) {
        static const char body[BYTES];
        uint32_t stream = 2 * line->asked++ + 1;
        put_frame(line, NGHTTP2_HEADERS, f.body != 0 ? NGHTTP2_FLAG_END_HEADERS : FLAGS, stream, head, sizeof head - 1);
        if (f.body != 0)
            put_frame(line, NGHTTP2_DATA, NGHTTP2_FLAG_END_STREAM, stream, body, f.body);
    }
    if (line->is_odd && line->asked == line->to_ask)
        put_frame(line, NGHTTP2_HEADERS, FLAGS, 2 * line->asked + 1, head, 1);
}

bide_coroutine(ask_line)
{
    bide_begin(ask_line, struct line_task * self);
    do {
        gather(self->line);
        bide_await_status(self->status, bide_stream_write(&self->operation, bide_memory_stream(&self->line->client_end),
                                                          self->line->bytes, self->line->size));
        while (self->status == 0 && self->line->answers + self->line->resets < self->line->asked + self->line->is_odd &&
               !self->line->has_ended)
            bide_try(bide_auto_event_wait(&self->wait, &self->line->answered));
    } while (self->status == 0 && !is_last(self->line) && !self->line->has_ended);
    if (self->line->to_ask != UINT_MAX && self->line->number != 0)
        f.goes_on = false;
    bide_memory_pipe_destroy(&self->line->to_server);
    bide_end();
}

static void hear(line *line, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (line->left != 0) {
            line->left--;
            continue;
        }
        line->head[line->head_size++] = (unsigned char)line->input[i];
        if (line->head_size != sizeof line->head)
            continue;
        line->head_size = 0;
        line->left = (size_t)line->head[0] << 16 | (size_t)line->head[1] << 8 | line->head[2];
        line->answers += line->head[3] == NGHTTP2_HEADERS;
        line->goaways += line->head[3] == NGHTTP2_GOAWAY;
        line->resets += line->head[3] == NGHTTP2_RST_STREAM;
    }
}

bide_coroutine(hear_line)
{
    bide_begin(hear_line, struct line_task * self);
    for (;;) {
        bide_await_status(self->status, bide_stream_read(&self->operation, bide_memory_stream(&self->line->client_end),
                                                         self->line->input, sizeof self->line->input));
        size_t size = bide_stream_count(&self->operation, bide_memory_stream(&self->line->client_end));
        if (self->status < 0 || size == 0)
            break;
        hear(self->line, size);
        bide_auto_event_set(&self->line->answered);
    }
    self->line->has_ended = true;
    bide_auto_event_set(&self->line->answered);
    bide_end();
}

/* ---- A run ---- */

/* Interferes with the first connection. */
bide_coroutine(act_body)
{
    bide_begin(act_body, struct turns_task * self);
    for (self->i = 0; self->i < f.destroy_after + f.stop_after; self->i++)
        bide_await(bide_sleep_for(&self->sleep, 0));
    if (f.stop_after != 0)
        bide_stop_request(&f.lines[0].stop);
    if (f.destroy_after != 0) {
        bide_scope_destroy(&f.lines[0].serving_scope);
        bide_memory_pipe_destroy(&f.lines[0].from_server); /* (the server may not have started) */
        bide_memory_pipe_reject(&f.lines[0].to_server);
    }
    bide_end();
}

static void spawn(bide_scope *scope, struct line_task *task, line *line, const bide_point *body)
{
    task->line = line;
    bide_scope_spawn(scope, &task->branch, bide_task_init(&task->task, body));
}

bide_coroutine(main_body)
{
    bide_begin(main_body, struct turns_task * self);
    bide_scope_init(&f.scope, bide_this_frame());
    for (self->i = 0; self->i < f.count; self->i++) { /* the first requests arrive before they are served */
        spawn(&f.scope, &f.lines[self->i].asking, &f.lines[self->i], &ask_line);
        spawn(&f.scope, &f.lines[self->i].hearing, &f.lines[self->i], &hear_line);
    }
    for (self->i = 0; self->i < f.count; self->i++) {
        bide_scope_init(&f.lines[self->i].serving_scope, bide_this_frame());
        spawn(&f.lines[self->i].serving_scope, &f.lines[self->i].serving, &f.lines[self->i], &serve_line);
    }
    bide_scope_spawn(&f.scope, &f.acting.branch, bide_task_init(&f.acting.task, &act_body));
    bide_await(bide_scope_join(&f.scope));
    for (self->i = f.destroy_after != 0; self->i < f.count; self->i++)
        bide_await(bide_scope_join(&f.lines[self->i].serving_scope));
    bide_end();
}

static int set_up(void **state)
{
    (void)state;
    memset(&f, 0, sizeof f);
    assert_int_equal(bide_http_server_init(&f.server, &(bide_http_options){.handler = {&handler_body, sizeof(struct handler)},
                                                                           .clock = peer_clock,
                                                                           .first_byte_timeout = BIDE_FOREVER, /* (a timer drawn from a seed */
                                                                           .header_timeout = BIDE_FOREVER,  /* may fire early) */
                                                                           .body_idle_timeout = BIDE_FOREVER,
                                                                           .keepalive_timeout = BIDE_FOREVER,
                                                                           .request_timeout = BIDE_FOREVER,
                                                                           .linger_timeout = BIDE_FOREVER}), 0);
    assert_int_equal(bide_http2_init(&f.http2, &f.server, NULL), 0);
    for (unsigned i = 0; i < LINES; i++) {
        f.lines[i].memory = malloc(bide_http_memory_size(&f.server));
        assert_non_null(f.lines[i].memory);
    }
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    for (unsigned i = 0; i < LINES; i++)
        free(f.lines[i].memory);
    return 0;
}

/* Client `number` sends `to_ask` requests, `at_a_time` together. */
static void asks(unsigned number, unsigned to_ask, unsigned at_a_time)
{
    line *line = &f.lines[number];
    line->number = number;
    line->to_ask = to_ask;
    line->at_a_time = at_a_time;
    line->asked = line->served = line->answers = line->resets = line->goaways = 0;
    line->head_size = line->left = 0;
    line->has_ended = line->is_odd = false;
    line->status = 1;
    bide_auto_event_init(&line->answered, false);
    bide_stop_source_init(&line->stop);
    bide_memory_pipe_init(&line->to_server, line->to_memory, PEER_PIPE);
    bide_memory_pipe_init(&line->from_server, line->from_memory, PEER_PIPE);
    line->server_end = (bide_memory_end){&line->to_server, &line->from_server};
    line->client_end = (bide_memory_end){&line->from_server, &line->to_server};
    if (f.count <= number)
        f.count = number + 1;
}

/* Seed 0: in order of arrival. */
static void run(uint64_t seed)
{
    static const uint16_t plain = 0;
    f.max_live = f.max_opened = f.max_memory = 0;
    f.max_apart = 0;
    f.goes_on = true;
    bide_sim_loop_init(&f.loop, seed);
    f.record = (bide_sim_record_){.given = &plain};
    if (seed == 0)
        f.loop.record = &f.record;
    assert_int_equal(bide_sim_loop_wait(&f.loop, bide_task_init(&f.main.task, &main_body)), 0);
    assert_int_equal(f.http2.stats.live, 0);
    assert_int_equal(f.http2.stats.memory, 0);
    assert_int_equal(f.http2.waiting, 0);
    assert_int_equal(f.http2.sessions, 0);
}

static void was_answered(unsigned number)
{
    const line *line = &f.lines[number];
    if (line->status != 0 || line->answers != line->asked)
        printf("# line %u: %d, asked %u, served %u, answers %u, resets %u\n", number, line->status, line->asked, line->served, line->answers, line->resets);
    assert_int_equal(line->status, 0);
    assert_int_equal(line->served, line->asked);
    assert_int_equal(line->answers, line->asked);
}

static void connections_that_ask_for_much_are_served_in_turns(void **state)
{
    (void)state;
    for (unsigned i = 0; i < LINES; i++)
        asks(i, EACH, EACH);
    run(0);
    for (unsigned i = 0; i < LINES; i++)
        was_answered(i);
    assert_in_range(f.max_apart, 1, 2 * TURN);
}

static void requests_that_end_at_once_have_the_memory_of_few(void **state)
{
    static const unsigned each[] = {EACH, TURN - 1}; /* more than one turn each, and less */
    (void)state;
    for (unsigned k = 0; k < 2; k++) {
        for (unsigned i = 0; i < LINES; i++)
            asks(i, each[k], each[k]);
        run(0);
        assert_in_range(f.max_live, TURN - 1, 3 * TURN);
    }
}

static void a_connection_that_asks_without_end_leaves_others_their_part(void **state)
{
    enum { ONES = 50 };
    (void)state;
    asks(0, UINT_MAX, EACH);
    asks(1, ONES, 1);
    run(0);
    was_answered(0);
    was_answered(1);
    assert_in_range(f.lines[0].served, ONES, ONES * 3 * TURN);
}

static void many_connections_with_one_request_are_served_in_one_round(void **state)
{
    (void)state;
    asks(0, UINT_MAX, EACH);
    for (unsigned i = 1; i < LINES; i++)
        asks(i, EACH, 1);
    run(0);
    for (unsigned i = 0; i < LINES; i++)
        was_answered(i);
    assert_in_range(f.lines[0].served, EACH, EACH * 3 * TURN);
}

static void a_head_that_ends_with_a_turn_is_processed(void **state)
{
    (void)state;
    for (unsigned asked = TURN - 1; asked <= TURN + 1; asked++) {
        asks(0, asked, asked);
        f.lines[0].is_odd = true;
        run(0);
        assert_int_equal(f.lines[0].resets + f.lines[0].goaways, 1);
        if (f.lines[0].goaways == 0) /* (an error of the stream may also end the connection) */
            was_answered(0);
    }
}

static void in_any_order_all_are_answered(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 100; seed++) {
        asks(0, 3 * EACH, EACH);
        asks(1, EACH, EACH);
        asks(2, 10, 1);
        run(seed);
        for (unsigned i = 0; i < 3; i++)
            was_answered(i);
    }
}

/* However a connection is cancelled, the others continue: the holder of the turn passes it on. */
static void cut_short_at_each_point(unsigned *after)
{
    enum { MOST = 2000 };
    bool was_whole = false;
    for (*after = 1; !was_whole; ++*after) {
        assert_true(*after < MOST);
        for (unsigned i = 0; i < 3; i++)
            asks(i, EACH, EACH);
        run(0);
        was_answered(1);
        was_answered(2);
        was_whole = f.lines[0].answers == EACH && f.lines[0].status == 0;
    }
    assert_true(*after > 20);
    *after = 0;
}

static void a_connection_that_is_destroyed_leaves_its_turn_to_others(void **state)
{
    (void)state;
    cut_short_at_each_point(&f.destroy_after);
}

static void a_connection_that_is_stopped_leaves_its_turn_to_others(void **state)
{
    (void)state;
    cut_short_at_each_point(&f.stop_after);
}

/* ---- Limits of all connections together ---- */

/* However many connections ask for as much as they may, each has a request, and all have so many. */
static void a_number_of_streams_is_shared_by_all_connections(void **state)
{
    (void)state;
    f.waits = true;
    for (unsigned most = 1; most <= LINES * EACH; most = most * 2 + 1) {
        f.http2.options.max_all_streams = most;
        f.http2.stats.refused = 0;
        for (unsigned i = 0; i < LINES; i++)
            asks(i, EACH, EACH);
        run(0);
        unsigned served = 0, resets = 0;
        for (unsigned i = 0; i < LINES; i++) {
            const line *line = &f.lines[i];
            assert_int_equal(line->status, 0);
            assert_true(line->served >= 1);
            assert_int_equal(line->answers, line->served);
            assert_int_equal(line->answers + line->resets, EACH);
            served += line->served;
            resets += line->resets;
        }
        assert_int_equal(f.http2.stats.refused, resets);
        assert_int_equal(f.max_live, served);
        assert_in_range(served, most < LINES ? LINES : most, most + LINES - 1);
    }
}

/* Bodies that no handler reads open the windows of their connections for so many bytes, in all connections. */
static void a_number_of_bytes_is_shared_by_all_connections(void **state)
{
    enum { BODY = 4000, WINDOWS = 21000 };
    (void)state;
    f.waits = true;
    f.body = BODY;
    f.http2.options.all_windows = WINDOWS;
    for (unsigned i = 0; i < LINES; i++)
        asks(i, 3, 3);
    run(0);
    for (unsigned i = 0; i < LINES; i++)
        was_answered(i);
    assert_int_equal(f.max_live, LINES * 3);
    assert_in_range(f.max_opened, WINDOWS - BODY, WINDOWS);
}

/* Requests that find no memory are refused, or their connection ends, and the others are served. */
static void memory_is_shared_by_all_connections(void **state)
{
    (void)state;
    f.waits = true;
    for (size_t most = 1000000; most <= 4000000; most += 1000000) {
        f.http2.options.max_memory = most;
        for (unsigned i = 0; i < LINES; i++)
            asks(i, EACH, EACH);
        run(0);
        unsigned served = 0;
        for (unsigned i = 0; i < LINES; i++) {
            const line *line = &f.lines[i];
            served += line->answers;
            if (line->status == -ENOMEM)
                continue;
            assert_int_equal(line->status, 0);
            assert_int_equal(line->answers, line->served);
            assert_int_equal(line->answers + line->resets, EACH);
        }
        assert_in_range(served, 1, LINES * EACH - 1);
        assert_in_range(f.max_memory, most / 2, most);
    }
}

int main(void)
{
#define turns_test(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        turns_test(connections_that_ask_for_much_are_served_in_turns),
        turns_test(requests_that_end_at_once_have_the_memory_of_few),
        turns_test(a_connection_that_asks_without_end_leaves_others_their_part),
        turns_test(many_connections_with_one_request_are_served_in_one_round),
        turns_test(a_head_that_ends_with_a_turn_is_processed),
        turns_test(in_any_order_all_are_answered),
        turns_test(a_connection_that_is_destroyed_leaves_its_turn_to_others),
        turns_test(a_connection_that_is_stopped_leaves_its_turn_to_others),
        turns_test(a_number_of_streams_is_shared_by_all_connections),
        turns_test(a_number_of_bytes_is_shared_by_all_connections),
        turns_test(memory_is_shared_by_all_connections),
    };
    return cmocka_run_group_tests_name("http2_turns", tests, NULL, NULL);
}

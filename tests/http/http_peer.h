/*
 * A conversation with an HTTP server in memory, under a test loop with virtual time. The input arrives in
 * pieces. The output is collected until the server has ended the connection or has timed out.
 *
 * http_peer_body defines the paths that the server's handler knows.
 */
#ifndef BIDE_TESTS_IO_HTTP_PEER_H
#define BIDE_TESTS_IO_HTTP_PEER_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "testing.h"

#include <bide/bide.h>
#include <bide/http.h>

#include "../../src/simulation/sim_loop.h"

#include <errno.h>
#include <stdbool.h>

enum { PEER_OUTPUT = 1 << 20, PEER_PIPE = 65536, PEER_MEMORY = 131072 };

#define MILLISECOND UINT64_C(1000000)
#define SECOND      UINT64_C(1000000000)

/* ---- The handler ---- */

struct peer_handler {
    bide_http_exchange exchange;
    char buffer[256];
    size_t total;
    int i;
    bide_sleep sleep;
};

static struct {
    unsigned begun;
    unsigned ended;
    uint64_t counted_at; /* when "/count-and-note" had read its body, since the loop's start */
    int slept; /* the status of the last wait of "/slow" and its like */
    int error; /* the status of the last body */
    size_t read;
    char body[4096]; /* the start of the bytes that were read */
    size_t body_size;
    char trailer[64];
} handled;

static inline bool path_is(const bide_http_exchange *exchange, const char *path)
{
    return bide_http_is(exchange->request.path, path);
}

static inline void keep_body(const char *data, size_t size)
{
    size_t room = sizeof handled.body - handled.body_size;
    size_t count = size < room ? size : room;
    memcpy(handled.body + handled.body_size, data, count);
    handled.body_size += count;
    handled.read += size;
}

bide_coroutine(http_peer_body)
{
    bide_begin(http_peer_body, struct peer_handler * self);
    handled.begun++;
    if (path_is(&self->exchange, "/hello")) {
        bide_http_add(&self->exchange, "Content-Type", "text/plain");
        bide_try(bide_http_respond(&self->exchange, "hello", 5));
    } else if (path_is(&self->exchange, "/hints")) {
        static const bide_http_field link = {{"Link", 4}, {"</a.css>; rel=preload", 21}};
        bide_try(bide_http_send_interim(&self->exchange, 103, &link, 1));
        bide_try(bide_sleep_for(&self->sleep, SECOND));
        bide_try(bide_http_respond(&self->exchange, "hello", 5));
    } else if (path_is(&self->exchange, "/blanks")) { /* in its response, and what it has received */
        do {
            bide_try(bide_http_read(&self->exchange, self->buffer, sizeof self->buffer));
        } while (self->exchange.count != 0);
        bide_slice given = bide_http_request_field(&self->exchange, "X-Given");
        bide_slice trailer = bide_http_request_trailer(&self->exchange, "X-Trailer");
        if (trailer.size < sizeof handled.trailer)
            memcpy(handled.trailer, trailer.data, trailer.size);
        bide_http_add(&self->exchange, "Content-Type", "\t a b ");
        bide_http_add(&self->exchange, "X-Empty", " ");
        bide_try(bide_http_write(&self->exchange, given.data, given.size));
        (void)bide_http_add_trailer(&self->exchange, "X-Sum", " 7 ");
    } else if (path_is(&self->exchange, "/nothing")) {
        self->exchange.status = 204;
    } else if (path_is(&self->exchange, "/fails")) {
        bide_return(-EIO);
    } else if (path_is(&self->exchange, "/fails-behind")) {
        bide_return(-EREMOTEIO);
    } else if (path_is(&self->exchange, "/fails-to-find")) {
        bide_return(-EHOSTDOWN);
    } else if (path_is(&self->exchange, "/fails-in-time")) {
        bide_return(-ETIMEDOUT);
    } else if (path_is(&self->exchange, "/fails-by")) { /* with the error of the query */
        bide_return(-atoi(self->exchange.request.query.data));
    } else if (path_is(&self->exchange, "/responds-and-fails")) {
        self->exchange.status = 426;
        bide_try(bide_http_respond(&self->exchange, "complete", 8));
        bide_return(-EINVAL);
    } else if (path_is(&self->exchange, "/responds-and-waits")) {
        bide_try(bide_http_respond(&self->exchange, "complete", 8));
        bide_try(bide_sleep_for(&self->sleep, 5 * SECOND));
    } else if (path_is(&self->exchange, "/unchanged-and-fails")) {
        self->exchange.status = 304;
        bide_try(bide_http_flush(&self->exchange));
        bide_return(-EIO);
    } else if (path_is(&self->exchange, "/last")) {
        bide_http_close_after(&self->exchange);
    } else if (path_is(&self->exchange, "/fails-late")) {
        bide_try(bide_http_write(&self->exchange, "some", 4));
        bide_try(bide_http_flush(&self->exchange));
        bide_return(-EIO);
    } else if (path_is(&self->exchange, "/fails-early")) {
        bide_http_add(&self->exchange, "X-Lost", "yes");
        bide_try(bide_http_write(&self->exchange, "some", 4));
        bide_return(-EIO);
    } else if (path_is(&self->exchange, "/short")) {
        (void)bide_http_start_response(&self->exchange, 10);
        bide_try(bide_http_write(&self->exchange, "some", 4));
    } else if (path_is(&self->exchange, "/chunks")) {
        for (self->i = 0; self->i < 3; self->i++) {
            bide_try(bide_http_write(&self->exchange, "abc", 3));
            bide_try(bide_http_write(&self->exchange, "de", 2));
            bide_try(bide_http_flush(&self->exchange));
        }
        (void)bide_http_add_trailer(&self->exchange, "X-Sum", "15");
    } else if (path_is(&self->exchange, "/large")) {
        static char large[300000];
        memset(large, 'x', sizeof large);
        bide_try(bide_http_respond(&self->exchange, large, sizeof large));
    } else if (path_is(&self->exchange, "/so-many")) { /* bytes as the query says */
        static char many[8192];
        memset(many, 'm', sizeof many);
        bide_try(bide_http_respond(&self->exchange, many, (size_t)atoi(self->exchange.request.query.data)));
    } else if (path_is(&self->exchange, "/pauses")) { /* in the middle of a body */
        assert_int_equal(bide_http_start_response(&self->exchange, 2 * sizeof self->buffer), 0);
        memset(self->buffer, 'p', sizeof self->buffer);
        bide_try(bide_http_write(&self->exchange, self->buffer, sizeof self->buffer));
        bide_try(bide_sleep_for(&self->sleep, 5 * SECOND));
        bide_try(bide_http_write(&self->exchange, self->buffer, sizeof self->buffer));
    } else if (path_is(&self->exchange, "/field")) {
        static char value[901];
        memset(value, 'v', sizeof value - 1);
        assert_int_equal(bide_http_add(&self->exchange, "X-Long", value), 0);
        bide_try(bide_http_respond(&self->exchange, "field", 5));
    } else if (path_is(&self->exchange, "/slow")) {
        bide_await_status(handled.slept, bide_sleep_for(&self->sleep, 5 * SECOND));
        if (handled.slept < 0)
            bide_return(handled.slept);
        bide_try(bide_http_respond(&self->exchange, "slow", 4));
    } else if (path_is(&self->exchange, "/stays")) { /* completes although it is cancelled */
        bide_await_status(handled.slept, bide_sleep_for(&self->sleep, 5 * SECOND));
        bide_try(bide_http_respond(&self->exchange, "stayed", 6));
    } else if (path_is(&self->exchange, "/half")) { /* waits twice, the second time for a client that must be there */
        bide_http_set_half_close(&self->exchange, true);
        bide_try(bide_sleep_for(&self->sleep, 5 * SECOND));
        bide_http_set_half_close(&self->exchange, false);
        bide_await_status(handled.slept, bide_sleep_for(&self->sleep, 5 * SECOND));
        if (handled.slept < 0)
            bide_return(handled.slept);
        bide_try(bide_http_respond(&self->exchange, "half", 4));
    } else if (path_is(&self->exchange, "/reads-slowly")) { /* waits, reads the body, waits */
        bide_try(bide_sleep_for(&self->sleep, SECOND));
        do {
            bide_try(bide_http_read(&self->exchange, self->buffer, sizeof self->buffer));
            keep_body(self->buffer, self->exchange.count);
        } while (self->exchange.count != 0);
        bide_await_status(handled.slept, bide_sleep_for(&self->sleep, 5 * SECOND));
        if (handled.slept < 0)
            bide_return(handled.slept);
        bide_try(bide_http_respond(&self->exchange, "read", 4));
    } else if (path_is(&self->exchange, "/late-status")) {
        bide_http_add(&self->exchange, "X-One", "1");
        self->exchange.status = 404;
        bide_http_add(&self->exchange, "X-Two", "2");
        bide_try(bide_http_respond(&self->exchange, "no", 2));
    } else if (path_is(&self->exchange, "/upgrade")) {
        bide_http_add(&self->exchange, "X-Accept", "yes");
        bide_try(bide_http_upgrade(&self->exchange, "echo"));
        bide_http_set_deadline(&self->exchange, bide_now(bide_this_context()) + 100 * SECOND);
        for (;;) {
            static bide_reader_operation read;
            static bide_writer_operation write;
            bide_try_or_break(bide_reader_read(&read, bide_http_reader(&self->exchange),
                                               self->buffer, sizeof self->buffer));
            bide_try(bide_writer_write(&write, bide_http_writer(&self->exchange), self->buffer,
                                       read.count));
            bide_try(bide_writer_flush(&write, bide_http_writer(&self->exchange)));
        }
    } else if (path_is(&self->exchange, "/upgrade-and-ends")) {
        bide_try(bide_http_upgrade(&self->exchange, "echo"));
        static bide_writer_operation write;
        bide_try(bide_writer_write(&write, bide_http_writer(&self->exchange), "bye", 3));
        bide_try(bide_writer_flush(&write, bide_http_writer(&self->exchange)));
    } else if (path_is(&self->exchange, "/echo")) {
        for (;;) {
            bide_try(bide_http_read(&self->exchange, self->buffer, sizeof self->buffer));
            if (self->exchange.count == 0)
                break;
            keep_body(self->buffer, self->exchange.count);
            bide_try(bide_http_write(&self->exchange, self->buffer, self->exchange.count));
        }
        bide_slice trailer = bide_http_request_trailer(&self->exchange, "x-trailer");
        if (trailer.size != 0 && trailer.size < sizeof handled.trailer)
            memcpy(handled.trailer, trailer.data, trailer.size);
    } else if (path_is(&self->exchange, "/count") || path_is(&self->exchange, "/count-and-note")) {
        for (;;) {
            bide_try(bide_http_read(&self->exchange, self->buffer, sizeof self->buffer));
            if (self->exchange.count == 0)
                break;
            keep_body(self->buffer, self->exchange.count);
        }
        if (!path_is(&self->exchange, "/count"))
            handled.counted_at = bide_now(bide_this_context());
        bide_try(bide_http_respond(&self->exchange, "counted", 7));
    } else {
        bide_return(-ENOENT);
    }
    bide_finally();
    handled.ended++;
    bide_end();
}

/* ---- A conversation ---- */

typedef struct peer {
    bide_sim_loop loop;
    bide_sim_record_ record;
    uint64_t seed; /* of the loop; 0: no random choices */
    bide_http_server server;
    bide_http_connection connection;
    bide_memory_pipe to_server, from_server;
    bide_memory_end server_end, client_end;
    char to_memory[PEER_PIPE], from_memory[PEER_PIPE];
    char *memory;

    /* the input */
    const char *input;
    size_t input_size, piece, fed;
    const uint8_t *sizes; /* of the pieces, less 1, in turn; NULL: `piece` */
    size_t size_count, size_at;
    size_t cut;        /* pauses after this many bytes; 0: never */
    size_t cut_until;  /* the pause lasts until this many bytes of output have arrived; 0: one millisecond */
    bool ends;         /* ends the output after the input */
    bool reads_not;    /* does not read the server's output */
    uint64_t read_pause; /* before each read of the server's output; 0: none */
    uint64_t pause;    /* after each piece; 0: none */
    unsigned stop_after; /* turns of another coroutine, after which the server's coroutine is cancelled; 0: never */
    uint64_t drain_at;   /* after this time the server is shut down; 0: never */
    bide_auto_event *drain_on; /* when it is set, the server is shut down; NULL: never */
    bide_stop_source stop;
    bide_with_stop_operation stopping;
    uint64_t began, took;

    /* the output */
    char *output;
    size_t output_size;
    size_t first_size;     /* of the output that the first read has got */
    uint64_t first_output; /* when it was read, since the loop's start */
    bide_auto_event has_output;
    int status; /* of the server's connection */
    bool has_ended;

    struct peer_task {
        bide_task task;
        struct peer *peer;
        bide_branch branch;
        bide_stream_operation operation;
        bide_sleep sleep;
        bide_auto_event_waiter wait;
        int status;
        unsigned i;
    } main, serving, feeding, draining, stopper, drainer;
    bide_scope scope;
} peer;

bide_coroutine(peer_serve)
{
    bide_begin(peer_serve, struct peer_task * self);
    bide_await_status(self->peer->status,
                      bide_with_stop(&self->peer->stopping, &self->peer->stop,
                                     bide_http_serve(&self->peer->connection, &self->peer->server,
                                                     bide_memory_stream(&self->peer->server_end),
                                                     self->peer->memory)));
    self->peer->has_ended = true;
    self->peer->took = bide_now(bide_this_context()) - self->peer->began;
    bide_memory_pipe_destroy(&self->peer->from_server);
    bide_memory_pipe_reject(&self->peer->to_server);
    bide_end();
}

static inline size_t next_piece_of(const peer *peer)
{
    size_t left = peer->input_size - peer->fed;
    size_t piece = peer->sizes != NULL ? peer->sizes[peer->size_at] + (size_t)1 : peer->piece;
    size_t size = piece != 0 && piece < left ? piece : left;
    if (peer->cut > peer->fed && peer->cut - peer->fed < size)
        size = peer->cut - peer->fed;
    return size;
}

bide_coroutine(peer_feed)
{
    bide_begin(peer_feed, struct peer_task * self);
    while (self->peer->fed != self->peer->input_size) {
        bide_await_status(self->status,
                          bide_stream_write(&self->operation,
                                            bide_memory_stream(&self->peer->client_end),
                                            self->peer->input + self->peer->fed,
                                            next_piece_of(self->peer)));
        self->peer->fed += bide_stream_count(&self->operation,
                                             bide_memory_stream(&self->peer->client_end));
        if (self->status < 0)
            bide_return(0);
        if (self->peer->sizes != NULL)
            self->peer->size_at = (self->peer->size_at + 1) % self->peer->size_count;
        if (self->peer->fed == self->peer->cut && self->peer->cut_until == 0)
            bide_await(bide_sleep_for(&self->sleep, MILLISECOND));
        while (self->peer->fed == self->peer->cut && self->peer->output_size < self->peer->cut_until &&
               !self->peer->has_ended)
            bide_await(bide_auto_event_wait(&self->wait, &self->peer->has_output));
        if (self->peer->pause != 0)
            bide_await(bide_sleep_for(&self->sleep, self->peer->pause));
    }
    if (self->peer->ends)
        bide_memory_pipe_destroy(&self->peer->to_server);
    bide_end();
}

bide_coroutine(peer_drain)
{
    bide_begin(peer_drain, struct peer_task * self);
    while (!self->peer->reads_not) {
        if (self->peer->read_pause != 0)
            bide_await(bide_sleep_for(&self->sleep, self->peer->read_pause));
        bide_await_status(self->status,
                          bide_stream_read(&self->operation,
                                           bide_memory_stream(&self->peer->client_end),
                                           self->peer->output + self->peer->output_size,
                                           PEER_OUTPUT - self->peer->output_size));
        size_t count = bide_stream_count(&self->operation,
                                         bide_memory_stream(&self->peer->client_end));
        if (self->status < 0 || count == 0)
            break;
        if (self->peer->output_size == 0) {
            self->peer->first_size = count;
            self->peer->first_output = bide_now(bide_this_context()) - self->peer->began;
        }
        self->peer->output_size += count;
        assert_true(self->peer->output_size < PEER_OUTPUT);
        bide_auto_event_set(&self->peer->has_output);
    }
    bide_auto_event_set(&self->peer->has_output);
    bide_end();
}

/* Requests a stop of the server's connection. */
bide_coroutine(peer_stop)
{
    bide_begin(peer_stop, struct peer_task * self);
    for (self->i = 0; self->i < self->peer->stop_after; self->i++)
        bide_await(bide_sleep_for(&self->sleep, 0));
    bide_stop_request(&self->peer->stop);
    bide_end();
}

bide_coroutine(peer_shut_down)
{
    bide_begin(peer_shut_down, struct peer_task * self);
    if (self->peer->drain_on != NULL)
        bide_await(bide_auto_event_wait(&self->wait, self->peer->drain_on));
    else
        bide_await(bide_sleep_for(&self->sleep, self->peer->drain_at));
    bide_http_server_shut_down(&self->peer->server, BIDE_FOREVER);
    bide_end();
}

bide_coroutine(peer_main)
{
    bide_begin(peer_main, struct peer_task * self);
    self->peer->began = bide_now(bide_this_context());
    bide_scope_init(&self->peer->scope, bide_this_frame());
    bide_scope_spawn(&self->peer->scope, &self->peer->serving.branch,
                     bide_task_init(&self->peer->serving.task, &peer_serve));
    bide_scope_spawn(&self->peer->scope, &self->peer->feeding.branch,
                     bide_task_init(&self->peer->feeding.task, &peer_feed));
    bide_scope_spawn(&self->peer->scope, &self->peer->draining.branch,
                     bide_task_init(&self->peer->draining.task, &peer_drain));
    if (self->peer->stop_after != 0)
        bide_scope_spawn(&self->peer->scope, &self->peer->stopper.branch,
                         bide_task_init(&self->peer->stopper.task, &peer_stop));
    if (self->peer->drain_at != 0 || self->peer->drain_on != NULL)
        bide_scope_spawn(&self->peer->scope, &self->peer->drainer.branch,
                         bide_task_init(&self->peer->drainer.task, &peer_shut_down));
    bide_try(bide_scope_join(&self->peer->scope));
    bide_finally();
    bide_scope_destroy(&self->peer->scope);
    bide_end();
}

static inline int64_t peer_clock(void)
{
    return 784111777; /* Sun, 06 Nov 1994 08:49:37 GMT */
}

/* Prepares a peer whose server has these options, with the tests' handler and clock. */
static inline void peer_init(peer *peer, const bide_http_options *given)
{
    bide_http_options options = given != NULL ? *given : (bide_http_options){.read_buffer_size = 0};
    if (options.handler.body == NULL && options.select_handler == NULL)
        options.handler = (bide_http_handler){&http_peer_body, sizeof(struct peer_handler)};
    options.clock = peer_clock;
    assert_int_equal(bide_http_server_init(&peer->server, &options), 0);
    assert_true(bide_http_memory_size(&peer->server) <= PEER_MEMORY);
    peer->memory = malloc(bide_http_memory_size(&peer->server));
    peer->output = malloc(PEER_OUTPUT + 1);
    assert_non_null(peer->memory);
    assert_non_null(peer->output);
    peer->seed = 0;
    peer->piece = 0;
    peer->sizes = NULL;
    peer->cut = 0;
    peer->cut_until = 0;
    peer->ends = true; /* and waits for the responses: */
    peer->server.options.allows_half_close = true;
    peer->reads_not = false;
    peer->read_pause = 0;
    peer->pause = 0;
    peer->stop_after = 0;
    peer->drain_at = 0;
    peer->drain_on = NULL;
}

static inline void peer_end(peer *peer)
{
    free(peer->memory);
    free(peer->output);
}

static inline bide_awaiter *peer_begin(peer *peer, const char *input, size_t size)
{
    size_t room = peer->piece != 0 && peer->piece < PEER_PIPE ? peer->piece : PEER_PIPE;
    memset(&handled, 0, sizeof handled);
    bide_sim_loop_init(&peer->loop, peer->seed);
    if (peer->seed == 0) {
        static const uint16_t plain = 0;
        peer->record = (bide_sim_record_){.given = &plain};
        peer->loop.record = &peer->record;
    }
    bide_memory_pipe_init(&peer->to_server, peer->to_memory, room);
    bide_memory_pipe_init(&peer->from_server, peer->from_memory, room < 64 ? 64 : room);
    peer->server_end = (bide_memory_end){&peer->to_server, &peer->from_server};
    peer->client_end = (bide_memory_end){&peer->from_server, &peer->to_server};
    peer->input = input;
    peer->input_size = size;
    peer->fed = peer->size_at = 0;
    peer->output_size = 0;
    peer->first_size = 0;
    peer->has_ended = false;
    bide_auto_event_init(&peer->has_output, false);
    peer->main.peer = peer->serving.peer = peer->feeding.peer = peer->draining.peer = peer;
    peer->stopper.peer = peer->drainer.peer = peer;
    peer->server.is_draining = false;
    bide_stop_source_init(&peer->stop);
    return bide_task_init(&peer->main.task, &peer_main);
}

/*
 * Sends all of `input`. peer->output is the terminated output. Returns the status of the
 * connection.
 */
static inline int peer_say_bytes(peer *peer, const char *input, size_t size)
{
    int status = bide_sim_loop_wait(&peer->loop, peer_begin(peer, input, size));
    if (status != 0)
        printf("# %d: loop's seed %llu, piece %zu, cut %zu, ends %d, fed %zu of %zu, state %d, connection's end %d %d\n",
               status, (unsigned long long)peer->seed, peer->piece, peer->cut, peer->ends, peer->fed, size,
               peer->connection.state, peer->has_ended, peer->status);
    assert_int_equal(status, 0);
    assert_true(peer->has_ended);
    assert_int_equal(handled.begun, handled.ended);
    peer->output[peer->output_size] = '\0';
    return peer->status;
}

static inline int peer_say(peer *peer, const char *input)
{
    return peer_say_bytes(peer, input, strlen(input));
}

#endif

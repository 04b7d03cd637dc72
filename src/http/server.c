/*
 * Connections of an HTTP server.
 *
 *     serve      runs `talk` under a stop source of the connection's own, and then ends the connection
 *     talk       takes a head, runs the handler, ends the response; and so on
 *     watcher    asks that source to stop when the time is over (watch.h)
 *
 *     FRESH --first byte--> HEAD --its end--> EXCHANGE --its end--> IDLE --first byte--> HEAD
 *
 * 1. What is written goes into the writer's buffer, and leaves it when it is full, or when `talk` has
 *    to wait for the next head. So a response goes out in one call, and those of several requests that
 *    came together do too.
 * 2. A time that is over, and a request that is refused, end the connection. So its source is asked
 *    once, and what tells the client of it is sent outside, under a deadline of its own.
 * 3. If the connection ends with bytes that were not read, the system would tell the client to forget
 *    what it has not read either. So the output is ended, and the rest is read and dropped for a while.
 * 4. Whoever shuts the server down asks the sources of those that are IDLE or FRESH. They wait for
 *    nothing but a first byte, so no request is lost that had been taken. The others end when they would
 *    be IDLE next.
 */
#define _GNU_SOURCE
#include "server.h"

#include "parse.h"

#include "bide/coroutine.h"
#include "bide/http_log.h"
#include "bide/extend/http.h"

#include <errno.h>
#include <stdalign.h>
#include <string.h>
#include <time.h>

#define SECONDS(n) ((n) * UINT64_C(1000000000))

enum {
    MIN_INPUT = 2048,
    MIN_OUTPUT = 512,
    BEHIND_HEAD = 1024,
    KEPT = 64 /* of the heap: it gives back to the system what the next connection has page by page */
};

/* ---- The server ---- */

static int64_t system_clock(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME_COARSE, &now);
    return now.tv_sec;
}

static void default_size(size_t *value, size_t size)
{
    if (*value == 0)
        *value = size;
}

static void default_number(uint64_t *value, uint64_t number)
{
    if (*value == 0)
        *value = number;
}

static void set_defaults(bide_http_options *options)
{
    default_size(&options->read_buffer_size, 8192);
    default_size(&options->write_buffer_size, 8192);
    default_size(&options->max_head, options->read_buffer_size - BEHIND_HEAD);
    default_size(&options->max_target, options->max_head);
    default_size(&options->max_fields, 64);
    default_number(&options->max_body, 1048576);
    default_number(&options->max_requests, UINT64_MAX);
    default_number(&options->first_byte_timeout, SECONDS(10));
    default_number(&options->header_timeout, SECONDS(10));
    default_number(&options->body_idle_timeout, SECONDS(30));
    default_number(&options->keepalive_timeout, SECONDS(60));
    default_number(&options->request_timeout, SECONDS(300));
    default_number(&options->linger_timeout, SECONDS(2));
    if (options->clock == NULL)
        options->clock = system_clock;
    if (options->select_handler == NULL)
        options->max_frame_size = options->handler.size;
    if (options->slots == NULL && options->allocator == NULL)
        options->allocator = &bide_heap;
}

static size_t aligned(size_t size)
{
    return (size + alignof(max_align_t) - 1) & ~(alignof(max_align_t) - 1);
}

size_t bide_http_memory_size(const bide_http_server *server)
{
    const bide_http_options *options = &server->options;
    return aligned(options->max_frame_size) + aligned(options->max_fields * sizeof(bide_http_field)) +
           aligned(options->read_buffer_size) + aligned(options->write_buffer_size);
}

/* What bide_server has of each connection. Its memory follows. */
typedef struct slot {
    bide_connection connection;
    bide_http_connection http;
} slot;

size_t bide_http_slot_size(const bide_http_server *server)
{
    return aligned(sizeof(slot)) + bide_http_memory_size(server);
}

bide_coroutine(bide_http_accepted)
{
    bide_begin(bide_http_accepted, slot * self);
    bide_try(bide_http_serve(&self->http, self->connection.server->argument,
                             bide_socket_stream(&self->connection.socket),
                             (char *)self + aligned(sizeof *self)));
    bide_end();
}

int bide_http_server_init(bide_http_server *server, const bide_http_options *options)
{
    if (!bide_http_is_here_)
        return -ENOTSUP;
    server->options = *options;
    set_defaults(&server->options);
    options = &server->options;
    if ((options->select_handler == NULL && options->handler.body == NULL) ||
        options->max_frame_size < sizeof(bide_http_exchange) || options->read_buffer_size < MIN_INPUT ||
        options->write_buffer_size < MIN_OUTPUT || options->max_head > options->read_buffer_size - BEHIND_HEAD)
        return -EINVAL;
    memset(&server->stats, 0, sizeof server->stats);
    server->argument = options->argument;
    server->connections = NULL;
    server->protocol = NULL;
    server->second = INT64_MIN;
    server->is_draining = false;
    bide_server_options accepting = {
        .body = &bide_http_accepted,
        .size = bide_http_slot_size(server),
        .max_connections = options->max_connections != 0 ? options->max_connections : 1,
        .slots = options->slots,
        .allocator = options->allocator,
        .spare_connections = options->allocator == &bide_heap ? KEPT : 0,
    };
    int status = bide_server_init(&server->server, &accepting);
    server->server.argument = server;
    return status;
}

/* (what is accepted inherits it; a socket of the machine has none) */
bide_awaiter *bide_http_server_run(bide_http_server *server)
{
    (void)bide_set_no_delay(&server->server.listener, true);
    return bide_server_run(&server->server);
}

void bide_http_server_shut_down(bide_http_server *server, uint64_t deadline)
{
    server->is_draining = true;
    for (bide_http_connection *at = server->connections; at != NULL; at = at->next)
        if (at->state == HTTP_CARRIED)
            server->protocol->drain(server->protocol, at);
        else if (at->state == HTTP_FRESH || at->state == HTTP_IDLE) /* 4 */
            bide_stop_request(&at->stop);
    bide_server_shut_down(&server->server, deadline);
}

/* ---- Times ---- */

bide_coroutine(watcher_body)
{
    bide_begin(watcher_body, bide_http_watcher_ * self);
    for (;;) {
        self->connection->watch.armed = self->connection->watch.until;
        bide_await(bide_with_deadline(&self->limited, self->connection->watch.armed,
                                      bide_auto_event_wait(&self->wait, &self->nudge)));
        if (bide_stop_requested(bide_this_context()->stop))
            bide_return(0);
        if (bide_now(bide_this_context()) >= self->connection->watch.until)
            break;
    }
    self->connection->server->stats.timed_out++;
    bide_stop_request_with(&self->connection->stop, -ETIMEDOUT);
    bide_end();
}

/* The time of what a connection waits for: the head of a request. */
static void watch_head(bide_http_connection *connection, const bide_context *context)
{
    const bide_http_options *options = &connection->server->options;
    bide_http_watch *watch = &connection->watch;
    bool has_some = bide_reader_buffered(&connection->reader) != 0;
    if (connection->state == HTTP_HEAD) /* its time runs */
        return;
    if (has_some)
        connection->state = HTTP_HEAD;
    http_watch_until(watch, http_later(bide_now(context), has_some ? options->header_timeout
                                       : connection->state == HTTP_FRESH ? options->first_byte_timeout
                                                                         : options->keepalive_timeout));
}

static void watch_exchange(bide_http_connection *connection, const bide_context *context)
{
    bide_http_watch *watch = &connection->watch;
    connection->began = bide_now(context);
    watch->whole = http_later(connection->began, connection->server->options.request_timeout);
    http_watch_until(watch, watch->whole);
}

/* ---- One request after the other ---- */

/* One read into the buffer, between two exchanges. */
static bide_awaiter *fill(bide_http_connection *connection)
{
    connection->input.base = 0;
    return bide_http_input_fill_(&connection->input);
}

/* What has come by it. False: no more comes. */
static bool filled(bide_http_connection *connection)
{
    size_t before = bide_reader_buffered(&connection->reader);
    bide_http_input_filled_(&connection->input, connection->status);
    return bide_reader_buffered(&connection->reader) != before;
}

/* No more comes: 0 if nobody waits for it. */
static int how_it_ended(const bide_http_connection *connection)
{
    if (connection->status < 0)
        return connection->status;
    return bide_reader_buffered(&connection->reader) != 0 ? -ENODATA : 0;
}

/* There is none: 404. */
bide_coroutine(nothing_found)
{
    bide_begin(nothing_found, bide_http_exchange * self);
    (void)self;
    bide_return(-ENOENT);
    bide_end();
}

static const bide_http_handler *choose(bide_http_connection *connection)
{
    static const bide_http_handler none = {&nothing_found, sizeof(bide_http_exchange)};
    const bide_http_options *options = &connection->server->options;
    if (options->select_handler == NULL)
        return &options->handler;
    const bide_http_handler *handler = options->select_handler(connection->exchange);
    return handler != NULL && handler->size <= options->max_frame_size ? handler : &none;
}

bide_awaiter *bide_http_begin_handler_(bide_http_connection *connection)
{
    return bide_task_init(&connection->exchange->task, choose(connection)->body);
}

void bide_http_report_end_(bide_http_connection *connection, int error)
{
    const bide_http_options *options = &connection->server->options;
    if (options->log != NULL)
        bide_http_log_exchange(options->log, connection->exchange);
    if (options->ended != NULL)
        options->ended(connection->exchange, error);
}

/* Drops what is left of a body. True: it has ended. -> `is_spoilt`: it will not. */
static bool drop_body(bide_http_connection *connection)
{
    bide_http_input *input = &connection->input;
    if (http_input_has_ended(input))
        return true;
    if (input->must_continue) {
        connection->closes = true;
        return true;
    }
    uint64_t before = input->taken;
    bool has_ended = bide_http_input_drop_(input);
    connection->dropped += input->taken - before;
    if (input->error != 0 || connection->dropped > HTTP_DROPPED) {
        connection->closes = true;
        return true;
    }
    return has_ended;
}

/* The head of a response that was under way could not say that it is the last. */
static bool is_done_by_draining(const bide_http_connection *connection)
{
    return connection->server->is_draining && bide_reader_buffered(&connection->reader) == 0;
}

/* ---- What is not HTTP/1.1 ---- */

enum { IS_CARRIED = 1 }; /* (no status of a response) */

/* Is it the carrier's? 0: no; -EAGAIN: more has to come before it is known. */
static int look_for_preface(const bide_http_connection *connection)
{
    const bide_http_protocol *carrier = connection->server->protocol;
    const bide_reader *reader = &connection->reader;
    size_t size = bide_reader_buffered(reader);
    if (connection->carried == HTTP_CARRIED_SURELY)
        return IS_CARRIED;
    if (size > carrier->preface.size)
        size = carrier->preface.size;
    if (size != 0 && memcmp(bide_reader_peek(reader), carrier->preface.data, size) != 0)
        return 0;
    return size == carrier->preface.size ? IS_CARRIED : -EAGAIN;
}

static int take(bide_http_connection *connection)
{
    if (BIDE_UNLIKELY(connection->carried != HTTP_CARRIED_NOT)) {
        int status = look_for_preface(connection);
        if (status != 0)
            return status;
        connection->carried = HTTP_CARRIED_NOT;
    }
    return bide_http_take_head_(connection);
}

static bide_awaiter *begin_carrier(bide_http_connection *connection)
{
    connection->refusal = 0;
    connection->state = HTTP_CARRIED;
    http_watch_until(&connection->watch, BIDE_FOREVER);
    return connection->server->protocol->serve(connection->server->protocol, connection);
}

bide_coroutine(talk_body)
{
    bide_begin(talk_body, bide_http_talk_ * self);
    bide_http_connection *connection = self->connection;
    for (;;) {
        while ((connection->refusal = take(connection)) == -EAGAIN) {
            if (bide_writer_buffered(&connection->writer) != 0) { /* 1 */
                bide_try(bide_http_output_flush_(&connection->output));
                connection = self->connection;
            }
            watch_head(connection, bide_this_context());
            bide_await_status(self->connection->status, fill(connection));
            connection = self->connection;
            if (!filled(connection))
                bide_return(how_it_ended(connection));
        }
        if (connection->refusal == IS_CARRIED) {
            bide_await_status(self->connection->status, begin_carrier(connection));
            bide_return(self->connection->status);
        }
        if (connection->refusal != 0) {
            connection->server->stats.refused++;
            bide_return(-EBADMSG);
        }
        connection->state = HTTP_EXCHANGE;
        watch_exchange(connection, bide_this_context());
        if (http_output_room(&connection->output) < HTTP_HEAD_ROOM &&
            bide_writer_buffered(&connection->writer) != 0) {
            bide_try(bide_http_output_flush_(&connection->output));
            connection = self->connection;
        }
        bide_await_status(self->connection->status,
                          bide_http_begin_handler_(connection));
        connection = self->connection;
        if (connection->is_upgraded) {
            bide_http_report_end_(connection, connection->status);
            bide_return(connection->status);
        }
        if (bide_stop_requested(bide_this_context()->stop) && connection->status < 0) {
            connection->refusal = connection->input.status == -ETIMEDOUT ? 408 : 503;
            bide_http_report_end_(connection, connection->status);
            bide_return(connection->status);
        }
        while ((connection->status = bide_http_end_exchange_(connection, connection->status)) ==
               -EAGAIN) {
            bide_try(bide_http_output_flush_(&connection->output));
            connection = self->connection;
            connection->status = 0;
        }
        bide_http_report_end_(connection, connection->status);
        if (connection->status < 0)
            bide_return(connection->status);
        if (connection->output.closes)
            connection->closes = true;
        for (connection->dropped = 0; !drop_body(connection);) {
            if (bide_writer_buffered(&connection->writer) != 0) {
                bide_try(bide_http_output_flush_(&connection->output));
                connection = self->connection;
            }
            http_watch_wait(&connection->watch, bide_this_context());
            bide_await_status(self->connection->status, bide_http_input_fill_(&connection->input));
            connection = self->connection;
            if (!filled(connection))
                bide_return(connection->status);
        }
        if (connection->closes || is_done_by_draining(connection)) /* 4 */
            break;
        connection->state = HTTP_IDLE;
    }
    bide_end();
}

/* ---- The connection ---- */

void bide_http_init_connection_(bide_http_connection *connection, char *memory)
{
    bide_http_server *server = connection->server;
    const bide_http_options *options = &server->options;
    connection->exchange = (void *)memory;
    connection->exchange->connection = connection;
    connection->exchange->server = server;
    memory += aligned(options->max_frame_size);
    connection->fields = (void *)memory;
    memory += aligned(options->max_fields * sizeof(bide_http_field));
    bide_reader_init(&connection->reader, connection->stream, memory, options->read_buffer_size);
    memory += aligned(options->read_buffer_size);
    bide_writer_init(&connection->writer, connection->stream, memory, options->write_buffer_size);
    connection->input.reader = &connection->reader;
    connection->input.watch = &connection->watch;
    connection->input.output = &connection->output;
    connection->input.status = 0;
    bide_http_input_begin_(&connection->input, HTTP_FRAMING_LENGTH, 0); /* a refused head has no body */
    connection->output.writer = &connection->writer;
    connection->output.watch = &connection->watch;
    connection->output.is_framed = false;
    connection->output.is_request = false;
    bide_http_output_begin_(&connection->output);
    connection->watch.between = options->body_idle_timeout;
    connection->watch.until = BIDE_FOREVER;
    connection->watch.whole = BIDE_FOREVER;
    connection->watch.armed = BIDE_FOREVER;
    connection->watch.nudge = &connection->watcher.nudge;
    bide_auto_event_init(&connection->watcher.nudge, false);
    connection->requests = 0;
    connection->scanned = 0;
    connection->lines = 0;
    connection->state = HTTP_FRESH;
    connection->closes = false;
    connection->is_upgraded = false;
    connection->carriers = NULL;
    connection->refusal = 0;
    connection->talk.connection = connection;
    connection->sender.connection = connection;
    connection->peer[0] = '\0';
    connection->watcher.connection = connection;
    bide_stop_source_init(&connection->stop);
}

static void link_in(bide_http_connection *connection)
{
    bide_http_server *server = connection->server;
    connection->next = server->connections;
    connection->before = &server->connections;
    if (connection->next != NULL)
        connection->next->before = &connection->next;
    server->connections = connection;
    server->stats.connections++;
    server->stats.live++;
}

static void take_out(bide_http_connection *connection)
{
    *connection->before = connection->next;
    if (connection->next != NULL)
        connection->next->before = connection->before;
    connection->server->stats.live--;
}

/* How a connection ends whose `talk` has ended with `status`: what is left to be done is `last`. */
static bool prepare_last(bide_http_connection *connection, const bide_context *context)
{
    bool was_waiting = connection->state == HTTP_IDLE || connection->state == HTTP_FRESH;
    int status = connection->status;
    if (bide_stop_requested(context->stop) || connection->is_upgraded ||
        connection->output.error != 0)
        return false;
    if (status == -ETIMEDOUT && connection->state == HTTP_HEAD)
        connection->refusal = 408;
    if (status == -ECANCELED && was_waiting) {
        connection->status = 0;
        return false;
    }
    if (connection->state == HTTP_CARRIED) /* its carrier has said all */
        return status == 0 || status == -EBADMSG || status == -ETIMEDOUT;
    if (connection->refusal != 0) {
        if (connection->output.is_sent && connection->state == HTTP_EXCHANGE)
            return false;
        bide_http_write_rejection_(connection, connection->refusal);
        return connection->output.error == 0;
    }
    return status == 0 && bide_writer_buffered(&connection->writer) != 0;
}

/* Are there bytes that will not be read? 3 */
static bool has_unread(const bide_http_connection *connection)
{
    return !connection->reader.has_ended &&
           (connection->refusal != 0 || connection->carried != HTTP_CARRIED_NOT ||
            bide_reader_buffered(&connection->reader) != 0 ||
            !http_input_has_ended(&connection->input));
}

/* Sends what is left, and takes leave. */
bide_coroutine(last_body)
{
    bide_begin(last_body, bide_http_talk_ * self);
    bide_try(bide_writer_flush(&self->connection->output.write, &self->connection->writer));
    if (!has_unread(self->connection))
        bide_return(0);
    bide_try(bide_stream_shutdown_output(&self->connection->writer.operation,
                                    self->connection->stream));
    do {
        self->connection->reader.begin = 0;
        self->connection->reader.end = 0;
        self->connection->input.base = 0;
        bide_try(bide_http_input_fill_(&self->connection->input));
    } while (bide_stream_count(&self->connection->reader.operation, self->connection->stream) !=
             0);
    bide_end();
}

bide_coroutine(serve_body)
{
    bide_begin(serve_body, bide_http_connection * self);
    if (bide_this_context()->stop != NULL)
        bide_stop_source_attach(&self->stop, bide_this_context()->stop);
    link_in(self);
    bide_scope_init(&self->scope, bide_this_frame());
    if (self->server->is_draining)
        bide_stop_request(&self->stop);
    bide_scope_spawn(&self->scope, &self->watcher.branch,
                     bide_task_init(&self->watcher.task, &watcher_body));
    bide_await_status(self->status,
                      bide_with_stop(&self->phase, &self->stop,
                                     bide_task_init(&self->talk.task, &talk_body)));
    bide_stop_source_detach(&self->stop);
    bide_scope_stop(&self->scope);
    bide_await(bide_scope_join(&self->scope));
    if (prepare_last(self, bide_this_context())) {
        self->state = HTTP_CLOSING;
        bide_await(bide_with_deadline(
            &self->watcher.limited,
            http_later(bide_now(bide_this_context()), self->server->options.linger_timeout),
            bide_task_init(&self->talk.task, &last_body)));
    }
    bide_return(self->status);
    bide_finally();
    bide_scope_destroy(&self->scope);
    bide_stop_source_detach(&self->stop);
    take_out(self);
    bide_end();
}

bide_awaiter *bide_http_serve(bide_http_connection *connection, bide_http_server *server,
                              bide_stream stream, void *memory)
{
    connection->server = server;
    connection->stream = stream;
    bide_http_init_connection_(connection, memory);
    connection->carried = server->protocol != NULL && server->protocol->preface.size != 0
                              ? HTTP_CARRIED_MAYBE
                              : HTTP_CARRIED_NOT;
    return bide_task_init(&connection->task, &serve_body);
}

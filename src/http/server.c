/*
 * Connections of an HTTP server.
 *
 *     body       runs `loop` under the connection's own stop source, and then closes the connection
 *     loop       parses a head, runs the handler, ends the response; repeats
 *     watcher    requests a stop of that source when the deadline has passed (watch.h)
 *     guard      while a handler waits, sends the output of earlier exchanges and reads; requests a stop of that
 *                source when the client leaves
 *
 *     FRESH --first byte--> HEAD --its end--> EXCHANGE --its end--> IDLE --first byte--> HEAD
 *     FRESH, HEAD --preface--> CARRIED (extend/http.h)
 *     any --loop has ended, something is left to send--> CLOSING
 *
 * Threads: everything runs on the loop's thread. That thread also shuts the server down.
 *
 * Why it is correct:
 * 1. Output goes into the writer's buffer. The buffer is sent when it is full, and when `loop` waits
 *    for the next head or for a body that it drops. A response is therefore sent in one call, and so are
 *    the responses of several requests that arrived together. When a handler has suspended, for whatever
 *    it waits, the guard sends the output of earlier exchanges. A handler that never suspends cannot hold
 *    them for long. The close sends them too, if the current exchange has failed before it started to send
 *    its response. The guard also sends interim responses. If it reads, that is cancelled first.
 *    So no wait holds a complete response, and no failure or cancellation in a later request loses it. A stream
 *    such as TLS may have taken bytes that it has not sent. So the close also ends the output of the stream
 *    if the guard's send was cancelled, even if the buffer is empty.
 * 2. A timeout and a rejected request end the connection. The stop source is therefore requested only
 *    once, and the last response is sent outside of it, under a deadline of its own.
 * 3. If a connection is closed with unread bytes, the system resets it, and the client may lose the
 *    response. The output is therefore ended first, and the input is read and dropped: up to `max_body`
 *    bytes, as long as no pause exceeds `linger_timeout`, for at most `body_idle_timeout`, or `linger_timeout` after a client
 *    that was too slow. An upgraded connection ends the same way, so that the client of a WebSocket sees the close frame.
 * 4. A shutdown requests a stop of IDLE and FRESH connections only. These wait for a first byte and have no
 *    buffered output, so no accepted request and no response is lost. Other connections end when they would
 *    become IDLE.
 * 5. One coroutine reads at a time. The guard reads only while a handler runs and the handler does not
 *    read: the body has been read, or the rest of it is buffered. It reads into the connection's buffer,
 *    so no byte of a later request is lost. The guard runs after the handler has suspended for the first
 *    time, because it was posted before; a handler that never waits costs no read. If the handler ends
 *    first, `loop` does not start a second read: it waits for that of the guard (`is_joined`); if that was cancelled
 *    for an interim response, `loop` reads then. A head
 *    may move in the buffer when it is parsed, and its handler may read: so `loop` cancels the guard's
 *    read before it parses buffered bytes, and waits until it has ended. Trailers are in the free part
 *    of the buffer, and an upgraded connection is read by the handler: in both cases the guard does not
 *    read.
 * 6. A full buffer stops the guard. The end of the input behind a buffer full of requests is therefore
 *    found later. The guard does not read while it sends, so a client that takes no output and ends its own is
 *    also found later; a reset is found at once.
 * 7. The server's list contains exactly the connections between the start and the end of their body;
 *    counts.live is its length.
 */
#define _GNU_SOURCE
#include "server.h"

#include "compress.h"
#include "parse.h"

#include "bide/coroutine.h"
#include "bide/extend/http.h"

#include "../system/portable.h"

#include <errno.h>
#include <stdalign.h>
#include <string.h>
#include <time.h>

#define HTTP_SERVER_SECONDS(n) ((n)*UINT64_C(1000000000))

/* The slots that are kept for later connections. A heap might return their pages to the system. */
enum { HTTP_SERVER_CACHED_SLOTS = 64 };

/* ---- The server ---- */

static int64_t http_server_system_clock(void)
{
    struct timespec now;
    (void)clock_gettime(PORTABLE_REALTIME_COARSE, &now);
    return now.tv_sec;
}

static void http_server_default_size(size_t *value, size_t size)
{
    if (*value == 0)
        *value = size;
}

static void http_server_default_number(uint64_t *value, uint64_t number)
{
    if (*value == 0)
        *value = number;
}

static void http_server_set_defaults(bide_http_options *options)
{
    http_server_default_size(&options->read_buffer_size, 8192);
    http_server_default_size(&options->write_buffer_size, 8192);
    http_server_default_size(&options->max_head, options->read_buffer_size - HTTP_ROOM_BEHIND_HEAD);
    http_server_default_size(&options->max_target, options->max_head);
    http_server_default_size(&options->max_fields, 64);
    http_server_default_number(&options->max_body, 1048576);
    http_server_default_number(&options->max_requests, UINT64_MAX);
    http_server_default_number(&options->first_byte_timeout, HTTP_SERVER_SECONDS(10));
    http_server_default_number(&options->header_timeout, HTTP_SERVER_SECONDS(10));
    http_server_default_number(&options->body_idle_timeout, HTTP_SERVER_SECONDS(30));
    http_server_default_number(&options->keepalive_timeout, HTTP_SERVER_SECONDS(60));
    http_server_default_number(&options->request_timeout, HTTP_SERVER_SECONDS(300));
    http_server_default_number(&options->linger_timeout, HTTP_SERVER_SECONDS(2));
    if (options->clock == NULL)
        options->clock = http_server_system_clock;
    if (options->select_handler == NULL)
        options->max_frame_size = options->handler.size;
    if (options->slots == NULL && options->allocator == NULL)
        options->allocator = &bide_heap;
}

static size_t http_server_align(size_t size)
{
    return (size + alignof(max_align_t) - 1) & ~(alignof(max_align_t) - 1);
}

/* The size of the frames of the first `count` layers. */
static size_t http_layers_size(const bide_http_options *options, size_t count)
{
    size_t size = 0;
    for (size_t i = 0; i < count; i++)
        size += http_server_align(options->layers[i].size);
    return size;
}

size_t bide_http_memory_size(const bide_http_server *server)
{
    const bide_http_options *options = &server->options;
    return http_server_align(options->max_frame_size) +
           http_layers_size(options, options->layer_count) +
           http_server_align(options->max_fields * sizeof(bide_http_field)) +
           http_server_align(options->read_buffer_size) +
           http_server_align(options->write_buffer_size);
}

/* One connection of bide_server. Its buffers follow. */
typedef struct http_slot {
    bide_connection connection;
    bide_http_connection http;
} http_slot;

size_t bide_http_slot_size(const bide_http_server *server)
{
    return http_server_align(sizeof(http_slot)) + bide_http_memory_size(server);
}

bide_coroutine(bide_http_accepted)
{
    bide_begin(bide_http_accepted, http_slot * self);
    bide_try(bide_http_serve(&self->http, self->connection.server->argument,
                             bide_socket_stream(&self->connection.socket),
                             (char *)self + http_server_align(sizeof *self)));
    bide_end();
}

static void http_check_handler(const bide_http_handler *handler)
{
#if BIDE_DEBUG
    bide_check_frame_size_(handler->body, handler->size, "bide_http_handler.size",
                           handler->body->code->file, handler->body->line);
#else
    (void)handler;
#endif
}

#undef bide_http_server_init
int bide_http_server_init(bide_http_server *server, const bide_http_options *options)
{
    if (!bide_http_is_buffered_)
        return -ENOTSUP;
    server->options = *options;
    http_server_set_defaults(&server->options);
    options = &server->options;
    if ((options->select_handler == NULL && options->handler.body == NULL) ||
        options->max_frame_size < sizeof(bide_http_exchange) ||
        options->read_buffer_size < HTTP_MIN_INPUT ||
        options->write_buffer_size < HTTP_MIN_OUTPUT ||
        options->max_head > options->read_buffer_size - HTTP_ROOM_BEHIND_HEAD ||
        (options->layers == NULL && options->layer_count != 0))
        return -EINVAL;
    if (options->select_handler == NULL)
        http_check_handler(&options->handler);
    for (size_t i = 0; i < options->layer_count; i++) {
        if (options->layers[i].body == NULL ||
            options->layers[i].size < sizeof(bide_http_layer_frame))
            return -EINVAL;
        http_check_handler(&(bide_http_handler){options->layers[i].body, options->layers[i].size});
    }
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
        .spare_connections = options->allocator == &bide_heap ? HTTP_SERVER_CACHED_SLOTS : 0,
    };
    int status = bide_server_init(&server->server, &accepting);
    server->server.argument = server;
    return status;
}

/*
 * Accepted sockets inherit TCP_NODELAY from the listener. The call fails on other sockets, which do not
 * need it.
 */
bide_awaiter *bide_http_server_run(bide_http_server *server)
{
    (void)bide_set_no_delay(&server->server.listener, true);
    return bide_server_run(&server->server);
}

void bide_http_server_shut_down(bide_http_server *server, uint64_t deadline)
{
    server->is_draining = true;
    for (bide_http_connection *at = server->connections; at != NULL; at = at->next)
        if (at->state == HTTP_CONNECTION_CARRIED)
            server->protocol->drain(server->protocol, at);
        else if (at->state == HTTP_CONNECTION_FRESH || at->state == HTTP_CONNECTION_IDLE) /* 4 */
            bide_stop_request(&at->stop);
    bide_server_shut_down(&server->server, deadline);
}

/* ---- The watcher ---- */

bide_coroutine(http_watcher_body)
{
    bide_begin(http_watcher_body, bide_http_watcher_ * self);
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

/* Sets the deadline for the head of the next request. */
static void http_watch_head(bide_http_connection *connection, const bide_context *context)
{
    const bide_http_options *options = &connection->server->options;
    bide_http_watch *watch = &connection->watch;
    bool has_some = bide_reader_buffered(&connection->reader) != 0;
    if (connection->state == HTTP_CONNECTION_HEAD) /* the deadline for this head is set */
        return;
    if (has_some)
        connection->state = HTTP_CONNECTION_HEAD;
    http_watch_until(watch,
                     http_later(bide_now(context), has_some ? options->header_timeout
                                                   : connection->state == HTTP_CONNECTION_FRESH
                                                       ? options->first_byte_timeout
                                                       : options->keepalive_timeout));
}

static void http_watch_exchange(bide_http_connection *connection, const bide_context *context)
{
    bide_http_watch *watch = &connection->watch;
    connection->began = bide_now(context);
    watch->whole = http_later(connection->began, connection->server->options.request_timeout);
    http_watch_until(watch, watch->whole);
}

/* ---- The guard: 5 ---- */

void bide_http_abandon_(bide_http_connection *connection)
{
    bide_assert(connection->is_handled && !connection->is_upgraded);
    if (connection->has_left)
        return;
    connection->has_left = true;
    connection->closes = true;
    /* (a handler that no stop reaches may wait for it) */
    bide_http_output_end_early_(&connection->output);
    bide_stop_request(&connection->stop);
}

static bool http_guard_is_needed(const bide_http_connection *connection)
{
    const bide_http_request *request = &connection->exchange->request;
    return request->upgrade.size == 0 && request->method != BIDE_HTTP_CONNECT;
}

/* The handler will read no more from the stream. */
static bool http_guard_has_body(const bide_http_connection *connection)
{
    const bide_http_input *input = &connection->input;
    return input->error == 0 && input->trailer_count == 0 &&
           (http_input_has_ended(input) ||
            (input->state == HTTP_INPUT_LENGTH && !input->is_bounded &&
             input->left <= bide_reader_buffered(&connection->reader)));
}

static bool http_guard_may_read(const bide_http_connection *connection)
{
    const bide_reader *reader = &connection->reader;
    return connection->is_handled && !connection->is_upgraded && !connection->has_left &&
           !reader->has_ended && http_guard_is_needed(connection) &&
           http_guard_has_body(connection) &&
           (reader->end < reader->size || reader->begin > connection->input.base); /* 6 */
}

static void http_guard_on_end(bide_http_guard_ *self)
{
    bide_http_connection *connection = self->connection;
    if (connection->is_handled && !connection->is_upgraded &&
        (self->status < 0 || (http_guard_is_needed(connection) && connection->reader.has_ended &&
                              !connection->allows_half_close)))
        bide_http_abandon_(connection);
}

/* The handler waits, and holds the output of earlier exchanges. It does not send it itself: 1 */
static bool http_guard_must_send(const bide_http_connection *connection)
{
    const bide_http_output *output = &connection->output;
    return connection->is_handled && !connection->is_upgraded && !connection->has_left &&
           output->error == 0 && !output->is_sending && http_output_earlier(output) != 0;
}

static void http_guard_on_filled(bide_http_guard_ *self)
{
    bide_http_connection *connection = self->connection;
    self->is_reading = false;
    self->result = self->status;
    connection->output.early_pause = NULL;
    bide_http_input_filled_(&connection->input, self->status);
    if (self->is_joined)
        bide_auto_event_set(&self->filled);
    self->is_joined = false;
}

static void http_guard_open(bide_http_guard_ *self, const bide_context *context)
{
    bide_stop_source_init(&self->stop);
    bide_stop_source_attach(&self->stop, context->stop);
}

static void http_guard_close(bide_http_guard_ *self)
{
    bide_stop_source_detach(&self->stop);
}

static bide_awaiter *http_guard_read(bide_http_guard_ *self)
{
    self->is_reading = true;
    self->connection->output.early_pause = &self->stop;
    return bide_with_stop(&self->phase, &self->stop,
                          bide_http_input_fill_(&self->connection->input));
}

bide_coroutine(http_guard_body)
{
    bide_begin(http_guard_body, bide_http_guard_ * self);
    http_guard_open(self, bide_this_context());
    while (!bide_stop_requested(bide_this_context()->stop)) {
        bide_await_status(self->status, bide_auto_event_wait(&self->wait, &self->start));
        if (self->status < 0)
            break;
        while (self->status == 0 && http_guard_must_send(self->connection)) {
            bide_await_status(self->status,
                              bide_http_output_send_early_(&self->connection->output));
            self->status = bide_http_output_take_back_(&self->connection->output, self->status);
        }
        while (self->status == 0 && http_guard_may_read(self->connection)) {
            bide_await_status(self->status, http_guard_read(self));
            http_guard_on_filled(self);
        }
        if (bide_stop_requested(&self->stop)) { /* the read was cancelled: 1, 5 */
            if (self->status == -ECANCELED)
                self->status = 0;
            http_guard_close(self);
            http_guard_open(self, bide_this_context());
        }
        if (!bide_stop_requested(bide_this_context()->stop))
            http_guard_on_end(self);
    }
    bide_return(0);
    bide_finally();
    bide_http_output_withdraw_(&self->connection->output);
    bide_http_output_end_early_(&self->connection->output);
    self->is_reading = false;
    http_guard_close(self);
    bide_end();
}

/* The guard reads, and there are bytes to parse: 5 */
static bool http_guard_is_in_the_way(const bide_http_connection *connection)
{
    return connection->guard.is_reading && bide_reader_buffered(&connection->reader) != 0;
}

/* Cancels the guard's read and waits for its end. */
static bide_awaiter *http_guard_cancel(bide_http_connection *connection)
{
    bide_http_guard_ *guard = &connection->guard;
    guard->is_joined = true;
    bide_stop_request(&guard->stop);
    return bide_auto_event_wait(&guard->join, &guard->filled);
}

/* ---- The connection loop ---- */

/* Reads once into the buffer, between two exchanges; or waits until the guard has. */
static bide_awaiter *http_connection_fill(bide_http_connection *connection)
{
    bide_http_guard_ *guard = &connection->guard;
    if (guard->is_reading) { /* 5 */
        guard->is_joined = true;
        guard->before = bide_reader_buffered(&connection->reader);
        return bide_auto_event_wait(&guard->join, &guard->filled);
    }
    guard->before = SIZE_MAX;
    connection->input.base = 0;
    return bide_http_input_fill_(&connection->input);
}

/* Adds the bytes of a read. Returns false at the end of the input or on an error. */
static bool http_connection_on_filled(bide_http_connection *connection)
{
    size_t before = connection->guard.before;
    if (before != SIZE_MAX) { /* the guard has added them */
        if (connection->status == 0 && connection->guard.result == -ECANCELED)
            return true; /* its read was cancelled for an interim response: another follows */
        if (connection->status == 0)
            connection->status = connection->guard.result;
    } else {
        before = bide_reader_buffered(&connection->reader);
        bide_http_input_filled_(&connection->input, connection->status);
    }
    return bide_reader_buffered(&connection->reader) != before;
}

/* Reads once, of a body that nobody reads. */
static bide_awaiter *http_connection_fill_body(bide_http_connection *connection)
{
    bide_assert(!connection->guard.is_reading); /* 5 */
    connection->guard.before = SIZE_MAX;
    return bide_http_input_fill_(&connection->input);
}

static bide_awaiter *http_connection_run_handler(bide_http_connection *connection)
{
    connection->is_handled = true;
    connection->allows_half_close = connection->server->options.allows_half_close;
    if (http_guard_is_needed(connection) || bide_writer_buffered(&connection->writer) != 0)
        bide_auto_event_set(&connection->guard.start);
    return bide_http_begin_handler_(connection);
}

/* The handler was cancelled because its client has left. */
static void http_connection_on_left(bide_http_connection *connection)
{
    if (connection->output.state < HTTP_OUTPUT_BODY)
        connection->exchange->status = HTTP_CLIENT_LEFT;
    connection->status = -ECONNRESET;
}

/* The status of a connection whose input has ended: 0 unless a read failed or a request is partial. */
static int http_connection_status(const bide_http_connection *connection)
{
    if (connection->status < 0)
        return connection->status;
    return bide_reader_buffered(&connection->reader) != 0 ? -ENODATA : 0;
}

/* The router has found no handler: 404. */
bide_coroutine(http_not_found_body)
{
    bide_begin(http_not_found_body, bide_http_exchange * self);
    (void)self;
    bide_return(-ENOENT);
    bide_end();
}

static const bide_http_handler *http_choose_handler(bide_http_connection *connection)
{
    static const bide_http_handler none = {&http_not_found_body, sizeof(bide_http_exchange)};
    const bide_http_options *options = &connection->server->options;
    bool selects = options->select_handler != NULL;
    const bide_http_handler *handler =
        selects ? options->select_handler(connection->exchange) : &options->handler;
    if (handler == NULL || handler->size > options->max_frame_size)
        return &none;
    if (selects)
        http_check_handler(handler);
    connection->exchange->is_chosen = true;
    return handler;
}

/* Starts the layer of that index, or the handler. */
static bide_awaiter *http_start_layer(bide_http_connection *connection, size_t index)
{
    const bide_http_options *options = &connection->server->options;
    if (index == options->layer_count)
        return bide_task_init(&connection->exchange->task, http_choose_handler(connection)->body);
    bide_http_layer_frame *layer = (void *)(connection->layers + http_layers_size(options, index));
    layer->exchange = connection->exchange;
    layer->argument = options->layers[index].argument;
    layer->index = index;
    return bide_task_init(&layer->task, options->layers[index].body);
}

bide_awaiter *bide_http_next(bide_http_layer_frame *layer)
{
    return http_start_layer(layer->exchange->connection, layer->index + 1);
}

bide_awaiter *bide_http_begin_handler_(bide_http_connection *connection)
{
    bide_awaiter *handler = http_start_layer(connection, 0);
    return connection->server->options.compression == NULL
               ? handler
               : bide_http_compress_run_(connection, handler);
}

/*
 * Drops buffered bytes of the request's body. Returns true if the body has ended, or if its rest will
 * not be read because the connection closes.
 */
static bool http_connection_drop_body(bide_http_connection *connection)
{
    bide_http_input *input = &connection->input;
    if (http_input_has_ended(input) || connection->closes)
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

/*
 * The connection ends because of a shutdown that came too late for the response's head to announce it.
 * No further request is buffered.
 */
static bool http_connection_is_drained(const bide_http_connection *connection)
{
    return connection->server->is_draining && bide_reader_buffered(&connection->reader) == 0;
}

/* ---- The carrier ---- */

enum { HTTP_IS_CARRIED = 1 }; /* differs from every status */

/* Looks for the carrier's preface. Returns 0 (none), HTTP_IS_CARRIED, or -EAGAIN (needs data). */
static int http_connection_match_preface(const bide_http_connection *connection)
{
    const bide_http_protocol *protocol = connection->server->protocol;
    const bide_reader *reader = &connection->reader;
    size_t size = bide_reader_buffered(reader);
    if (connection->transport == HTTP_PROTOCOL_YES)
        return HTTP_IS_CARRIED;
    if (size > protocol->preface.size)
        size = protocol->preface.size;
    if (size != 0 && memcmp(bide_reader_peek(reader), protocol->preface.data, size) != 0)
        return 0;
    return size == protocol->preface.size ? HTTP_IS_CARRIED : -EAGAIN;
}

static int http_connection_parse_next_head(bide_http_connection *connection)
{
    bide_assert(connection->state == HTTP_CONNECTION_FRESH ||
                connection->state == HTTP_CONNECTION_IDLE ||
                connection->state == HTTP_CONNECTION_HEAD);
    if (BIDE_UNLIKELY(connection->transport != HTTP_PROTOCOL_NO)) {
        int status = http_connection_match_preface(connection);
        if (status != 0)
            return status;
        connection->transport = HTTP_PROTOCOL_NO;
    }
    return bide_http_take_head_(connection);
}

static bide_awaiter *http_connection_start_protocol(bide_http_connection *connection)
{
    connection->rejection = 0;
    connection->state = HTTP_CONNECTION_CARRIED;
    http_watch_until(&connection->watch, BIDE_FOREVER);
    return connection->server->protocol->serve(connection->server->protocol, connection);
}

bide_coroutine(http_connection_loop)
{
    bide_begin(http_connection_loop, bide_http_talk_ * self);
    bide_http_connection *connection = self->connection;
    for (;;) {
        if (http_guard_is_in_the_way(connection)) {
            http_watch_head(connection, bide_this_context()); /* 4: it is not IDLE */
            bide_try(http_guard_cancel(connection));
            connection = self->connection;
        }
        while ((connection->rejection = http_connection_parse_next_head(connection)) == -EAGAIN) {
            /* the connection may end in one of the waits below */
            connection->rejection = 0;
            if (bide_writer_buffered(&connection->writer) != 0) { /* 1 */
                if (connection->state == HTTP_CONNECTION_IDLE)
                    connection->state = HTTP_CONNECTION_EXCHANGE; /* 4 */
                bide_try(bide_http_output_flush_(&connection->output));
                connection = self->connection;
                if (connection->state == HTTP_CONNECTION_EXCHANGE &&
                    http_connection_is_drained(connection))
                    bide_return(0);
                connection->state = HTTP_CONNECTION_IDLE; /* (the flush had a deadline of its own) */
            }
            http_watch_head(connection, bide_this_context());
            bide_await_status(self->connection->status, http_connection_fill(connection));
            connection = self->connection;
            if (!http_connection_on_filled(connection))
                bide_return(http_connection_status(connection));
        }
        if (connection->rejection == HTTP_IS_CARRIED) {
            bide_await_status(self->connection->status, http_connection_start_protocol(connection));
            bide_return(self->connection->status);
        }
        if (connection->rejection != 0) {
            connection->server->stats.refused++;
            bide_return(-EBADMSG);
        }
        connection->state = HTTP_CONNECTION_EXCHANGE;
        http_watch_exchange(connection, bide_this_context());
        if (bide_writer_buffered(&connection->writer) != 0 &&
            !bide_http_output_reserve_(&connection->output, HTTP_HEAD_ROOM)) {
            bide_try(bide_http_output_flush_(&connection->output));
            connection = self->connection;
        }
        bide_await_status(self->connection->status, http_connection_run_handler(connection));
        connection = self->connection;
        connection->is_handled = false;
        if (connection->is_upgraded) {
            bide_http_report_end_(connection, connection->status);
            bide_return(connection->status);
        }
        if (connection->has_left && connection->status < 0 && !bide_http_is_complete_(connection)) {
            http_connection_on_left(connection);
            bide_http_report_end_(connection, connection->status);
            bide_return(connection->status);
        }
        if (bide_stop_requested(bide_this_context()->stop) && connection->status < 0 &&
            !bide_http_is_complete_(connection)) {
            connection->rejection = connection->input.status == -ETIMEDOUT ? 408 : 503;
            if (!connection->output.is_sent)
                connection->exchange->status = connection->rejection;
            bide_http_report_end_(connection, connection->status);
            bide_return(connection->status);
        }
        while ((connection->status = bide_http_end_exchange_(connection, connection->status)) ==
               -EAGAIN) {
            bide_await_status(self->connection->status,
                              bide_http_output_flush_(&connection->output));
            connection = self->connection;
            if (connection->status < 0)
                break; /* its end is reported */
            connection->status = 0;
        }
        bide_http_report_end_(connection, connection->status);
        if (connection->status < 0)
            bide_return(connection->status);
        if (connection->output.closes || bide_stop_requested(bide_this_context()->stop))
            connection->closes = true;
        for (connection->dropped = 0; !http_connection_drop_body(connection);) {
            if (bide_writer_buffered(&connection->writer) != 0) {
                bide_try(bide_http_output_flush_(&connection->output));
                connection = self->connection;
            }
            http_watch_start_wait(&connection->watch, HTTP_WATCH_READ, bide_this_context());
            bide_await_status(self->connection->status, http_connection_fill_body(connection));
            connection = self->connection;
            http_watch_stop_wait(&connection->watch, HTTP_WATCH_READ);
            if (!http_connection_on_filled(connection))
                bide_return(connection->status);
        }
        if (connection->closes || http_connection_is_drained(connection)) /* 4 */
            break;
        connection->state = HTTP_CONNECTION_IDLE;
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
    connection->accepted = connection;
    memory += http_server_align(options->max_frame_size);
    connection->layers = memory;
    memory += http_layers_size(options, options->layer_count);
    connection->fields = (void *)memory;
    memory += http_server_align(options->max_fields * sizeof(bide_http_field));
    bide_reader_init(&connection->reader, connection->stream, memory, options->read_buffer_size);
    memory += http_server_align(options->read_buffer_size);
    bide_writer_init(&connection->writer, connection->stream, memory, options->write_buffer_size);
    bide_assert(memory + http_server_align(options->write_buffer_size) ==
                (char *)connection->exchange + bide_http_memory_size(server));
    connection->input.reader = &connection->reader;
    connection->input.watch = &connection->watch;
    connection->input.output = &connection->output;
    connection->input.status = 0;
    bide_http_input_start_(&connection->input, HTTP_FRAMING_LENGTH,
                           0); /* a rejected head has no body */
    bide_http_output_init_(&connection->output, &connection->writer, &connection->watch);
    connection->watch.between = options->body_idle_timeout;
    connection->watch.whole = BIDE_FOREVER;
    connection->watch.armed = BIDE_FOREVER;
    connection->watch.nudge = &connection->watcher.nudge;
    http_watch_until(&connection->watch, BIDE_FOREVER);
    bide_auto_event_init(&connection->watcher.nudge, false);
    connection->requests = 0;
    connection->scanned = 0;
    connection->lines = 0;
    connection->state = HTTP_CONNECTION_FRESH;
    connection->closes = false;
    connection->is_upgraded = false;
    connection->is_handled = false;
    connection->allows_half_close = false;
    connection->has_left = false;
    connection->protocols = NULL;
    connection->encoder = NULL;
    bide_http_compress_start_(connection);
    connection->rejection = 0;
    connection->talk.connection = connection;
    connection->sender.connection = connection;
    connection->peer[0] = '\0';
    connection->watcher.connection = connection;
    connection->guard.connection = connection;
    connection->guard.before = SIZE_MAX;
    connection->guard.status = 0;
    connection->guard.result = 0;
    connection->guard.is_reading = false;
    connection->guard.is_joined = false;
    bide_auto_event_init(&connection->guard.start, false);
    bide_auto_event_init(&connection->guard.filled, false);
    bide_stop_source_init(&connection->stop);
}

static void http_connection_link(bide_http_connection *connection)
{
    bide_http_server *server = connection->server;
    connection->next = server->connections;
    connection->before = &server->connections;
    if (connection->next != NULL)
        connection->next->before = &connection->next;
    bide_assert((server->connections == NULL) == (server->stats.live == 0)); /* 7 */
    server->connections = connection;
    server->stats.connections++;
    server->stats.live++;
}

static void http_connection_unlink(bide_http_connection *connection)
{
    bide_http_server *server = connection->server;
    bide_assert(server->stats.live != 0 && *connection->before == connection); /* 7 */
    bide_assert(connection->next == NULL || connection->next->before == &connection->next);
    *connection->before = connection->next;
    if (connection->next != NULL)
        connection->next->before = connection->before;
    server->stats.live--;
    bide_assert((server->connections == NULL) == (server->stats.live == 0));
}

/* The input contains, or may yet contain, bytes that will not be read: 3 */
static bool http_connection_has_unread(const bide_http_connection *connection)
{
    return !connection->reader.has_ended &&
           (connection->rejection != 0 || connection->is_upgraded ||
            connection->transport != HTTP_PROTOCOL_NO ||
            bide_reader_buffered(&connection->reader) != 0 ||
            !http_input_has_ended(&connection->input));
}

/* The guard's send was cancelled: the stream may have taken bytes that it has not sent. */
static bool http_connection_was_cut(const bide_http_connection *connection)
{
    return connection->output.early_status == -ECANCELED;
}

/*
 * The exchange has failed: removes its unsent response. Returns true if output of earlier exchanges is left, and
 * can be sent: 1
 */
static bool http_connection_keeps_earlier(bide_http_connection *connection)
{
    bide_http_output *output = &connection->output;
    size_t earlier = http_output_earlier(output);
    bool is_broken = (output->early_status < 0 && !http_connection_was_cut(connection)) ||
                     (output->error != 0 && output->state == HTTP_OUTPUT_NOTHING);
    bide_assert(!output->is_sent_early);
    connection->writer.end = connection->writer.begin + (is_broken ? 0 : earlier);
    return bide_writer_buffered(&connection->writer) != 0 ||
           (!is_broken && http_connection_was_cut(connection));
}

/*
 * Decides how a connection ends after its loop has ended with `status`. Returns true if there is
 * something left to send.
 */
static bool http_connection_prepare_close(bide_http_connection *connection,
                                          const bide_context *context)
{
    bool was_waiting =
        connection->state == HTTP_CONNECTION_IDLE || connection->state == HTTP_CONNECTION_FRESH;
    int status = connection->status;
    bide_assert(connection->state != HTTP_CONNECTION_CLOSING);
    if (bide_stop_requested(context->stop))
        return false;
    if (connection->output.error != 0)
        return !connection->is_upgraded && http_connection_keeps_earlier(connection);
    if (connection->is_upgraded)
        return true;
    if (status == -ETIMEDOUT && connection->state == HTTP_CONNECTION_HEAD)
        connection->rejection = 408;
    if (status == -ECANCELED && was_waiting) {
        connection->status = 0;
        return false;
    }
    if (connection->state == HTTP_CONNECTION_CARRIED) /* the carrier has sent everything */
        return status == 0 || status == -EBADMSG || status == -ETIMEDOUT;
    if (connection->rejection != 0) {
        if (connection->output.is_sent && connection->state == HTTP_CONNECTION_EXCHANGE)
            return false;
        if (connection->state != HTTP_CONNECTION_EXCHANGE)
            bide_http_report_rejection_(connection);
        bide_http_write_rejection_(connection, connection->rejection);
        return connection->output.error == 0;
    }
    if (status != 0)
        return http_connection_keeps_earlier(connection);
    return bide_writer_buffered(&connection->writer) != 0 ||
           http_connection_has_unread(connection) || http_connection_was_cut(connection);
}

/* A step of the close has `linger_timeout`; all of them together have `watch.whole`. */
static bide_awaiter *http_connection_limit(bide_http_connection *connection,
                                           const bide_context *context, bide_awaiter *step)
{
    uint64_t until = http_later(bide_now(context), connection->server->options.linger_timeout);
    if (until > connection->watch.whole)
        until = connection->watch.whole;
    return bide_with_deadline(&connection->watcher.limited, until, step);
}

static void http_connection_start_close(bide_http_connection *connection,
                                        const bide_context *context)
{
    const bide_http_options *options = &connection->server->options;
    bool was_slow = connection->status == -ETIMEDOUT;
    uint64_t whole = was_slow || options->body_idle_timeout < options->linger_timeout
                         ? options->linger_timeout
                         : options->body_idle_timeout;
    connection->state = HTTP_CONNECTION_CLOSING;
    connection->dropped = 0;
    connection->watch.whole = http_later(bide_now(context), whole);
}

static bide_awaiter *http_connection_flush_last(bide_http_connection *connection)
{
    if (connection->is_upgraded) /* the handler has flushed */
        return bide_stream_ended(&connection->writer.operation, 0);
    return bide_writer_flush(&connection->output.write, &connection->writer);
}

static bide_awaiter *http_connection_drop_input(bide_http_connection *connection)
{
    connection->reader.begin = 0;
    connection->reader.end = 0;
    connection->input.base = 0;
    return bide_http_input_fill_(&connection->input);
}

/* Counts the dropped bytes. Returns false at the end of the input, or if it is too long. */
static bool http_connection_drops_more(bide_http_connection *connection)
{
    size_t count = bide_stream_count(&connection->reader.operation, connection->stream);
    connection->dropped += count;
    return count != 0 && connection->dropped <= connection->server->options.max_body;
}

/* Flushes the output, ends it, and drops the remaining input: 3 */
bide_coroutine(http_connection_close_body)
{
    bide_begin(http_connection_close_body, bide_http_talk_ * self);
    http_connection_start_close(self->connection, bide_this_context());
    bide_try(http_connection_limit(self->connection, bide_this_context(),
                                   http_connection_flush_last(self->connection)));
    if (!http_connection_has_unread(self->connection) && !http_connection_was_cut(self->connection))
        bide_return(0);
    bide_try(http_connection_limit(self->connection, bide_this_context(),
                                   bide_stream_shutdown_output(&self->connection->writer.operation,
                                                               self->connection->stream)));
    if (!http_connection_has_unread(self->connection))
        bide_return(0);
    do {
        bide_try(http_connection_limit(self->connection, bide_this_context(),
                                       http_connection_drop_input(self->connection)));
    } while (http_connection_drops_more(self->connection));
    bide_end();
}

bide_coroutine(http_connection_body)
{
    bide_begin(http_connection_body, bide_http_connection * self);
    if (bide_this_context()->stop != NULL)
        bide_stop_source_attach(&self->stop, bide_this_context()->stop);
    http_connection_link(self);
    bide_scope_init(&self->scope, bide_this_frame());
    if (self->server->is_draining)
        bide_stop_request(&self->stop);
    bide_scope_spawn(&self->scope, &self->watcher.branch,
                     bide_task_init(&self->watcher.task, &http_watcher_body));
    bide_scope_spawn(&self->scope, &self->guard.branch,
                     bide_task_init(&self->guard.task, &http_guard_body));
    bide_await_status(self->status,
                      bide_with_stop(&self->phase, &self->stop,
                                     bide_task_init(&self->talk.task, &http_connection_loop)));
    bide_stop_source_detach(&self->stop);
    bide_scope_stop(&self->scope);
    bide_await(bide_scope_join(&self->scope));
    if (http_connection_prepare_close(self, bide_this_context()))
        bide_await(bide_task_init(&self->talk.task, &http_connection_close_body));
    bide_return(self->status);
    bide_finally();
    bide_scope_destroy(&self->scope);
    bide_stop_source_detach(&self->stop);
    http_connection_unlink(self);
    bide_end();
}

bide_awaiter *bide_http_serve(bide_http_connection *connection, bide_http_server *server,
                              bide_stream stream, void *memory)
{
    connection->server = server;
    connection->stream = stream;
    bide_http_init_connection_(connection, memory);
    connection->output.early_sender = &connection->guard.start;
    connection->transport = server->protocol != NULL && server->protocol->preface.size != 0
                                ? HTTP_PROTOCOL_MAYBE
                                : HTTP_PROTOCOL_NO;
    return bide_task_init(&connection->task, &http_connection_body);
}

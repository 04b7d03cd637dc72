/*
 * Connections of HTTP/2.
 *
 *     body       the carrier's coroutine: runs the next three; after them, ends the streams
 *     reader     reads and feeds nghttp2, whose callbacks create streams (session.c)
 *     writer     sends the output of nghttp2
 *     watcher    stops streams whose deadline has passed, and ends the connection (watch.h)
 *     request    one for each stream (request.c), in a scope of their own
 *
 * Threads: everything runs on the loop's thread.
 *
 * Why it is correct:
 * 1. One coroutine at a time uses nghttp2: all run on one thread, and none waits inside its calls.
 *    The callbacks only change a stream and set events.
 * 2. The writer gathers all available output, up to about 65 KB, and sends it in one call. Requests that
 *    were received together run before the writer: their coroutines were posted before the event was
 *    set. Responses that end together are therefore sent together.
 * 3. The reader, the writer and the watcher end with an error when the connection has ended, which
 *    stops the other two. HTTP2_ENDED marks an end that is not an error. After that, only the streams'
 *    requests still call nghttp2. They change the session, but its output is no longer read.
 * 4. On destruction the writer is destroyed before the streams, so no memory is freed that is being
 *    sent. The data of a write is in the connection's own buffer, which lives until then.
 * 5. A connection without streams has deadlines of its own: for the first request and for the next one.
 *    After GOAWAY the client has `linger` to disconnect.
 * 6. The reader feeds nghttp2 in turns of HTTP2_TURN requests; other coroutines run between two turns.
 *    A turn ends by pausing nghttp2 behind a field. Output is gathered meanwhile, and sent after the
 *    last turn or when the buffer is nearly full. Responses that end together are still sent together,
 *    and a connection with endless requests does not block others.
 * 7. One connection of a server has a turn at a time, in order of arrival. It keeps the turn while other
 *    coroutines run, once, if at least as many requests wait for their first run as there are
 *    connections. Requests that end at once therefore reuse the memory of a few, which stays in the
 *    cache. Each connection is served at least as often as one of HTTP/1.1, which has one request at
 *    a time.
 */
#include "internal.h"

#include "../http/watch.h"

#include "bide/coroutine.h"

#include <errno.h>
#include <string.h>

enum { HTTP2_ENDED = -ESHUTDOWN }; /* 3 */

/* ---- The writer ---- */

/* Copies output of nghttp2. The part that does not fit stays pending. */
static void http2_output_put(http2_connection *connection, const uint8_t *data, size_t size)
{
    bide_assert(connection->output != NULL && connection->output_size <= HTTP2_OUTPUT);
    size_t room = HTTP2_OUTPUT - connection->output_size;
    size_t count = size < room ? size : room;
    memcpy(connection->output + connection->output_size, data, count);
    connection->output_size += count;
    connection->pending = data + count;
    connection->pending_size = size - count;
}

/* Gathers output. Returns 0 or a negative errno. */
static int http2_output_gather(http2_connection *connection)
{
    if (connection->error != 0)
        return connection->error;
    if (connection->output == NULL &&
        (connection->pending_size != 0 || nghttp2_session_want_write(connection->session))) {
        connection->output = bide_http2_take_piece_(&connection->http2->outputs);
        if (connection->output == NULL)
            connection->output = bide_http2_allocate_(connection->http2, HTTP2_OUTPUT);
        if (connection->output == NULL)
            return -ENOMEM;
    }
    while (connection->output != NULL && HTTP2_OUTPUT - connection->output_size >= HTTP2_FRAME) {
        const uint8_t *data = connection->pending;
        size_t before = connection->output_size;
        ssize_t size = connection->pending_size != 0
                           ? (ssize_t)connection->pending_size
                           : nghttp2_session_mem_send(connection->session, &data);
        if (size < 0)
            return bide_http2_errno_((int)size);
        if (size != 0)
            http2_output_put(connection, data, (size_t)size);
        else if (connection->output_size == before)
            break;
    }
    return 0;
}

/* There is no output: releases the buffer. Returns true if the connection has ended. */
static bool http2_output_has_ended(http2_connection *connection)
{
    bide_assert(connection->output_size == 0 && connection->pending_size == 0);
    bide_http2_give_piece_(connection->http2, &connection->http2->outputs, connection->output,
                           HTTP2_OUTPUT);
    connection->output = NULL;
    return !nghttp2_session_want_read(connection->session) ||
           (connection->is_going_away && connection->stream_count == 0);
}

/* The next turn of this connection will produce more output, and there is room for it: 6. */
static bool http2_output_awaits_turn(const http2_connection *connection)
{
    return connection->is_paused && HTTP2_OUTPUT - connection->output_size >= HTTP2_FRAME;
}

static void http2_watch_writing(http2_connection *connection, uint64_t now)
{
    connection->write_deadline =
        http_later(now, connection->http->server->options.body_idle_timeout);
    if (connection->write_deadline < connection->armed)
        bide_auto_event_set(&connection->nudge);
}

bide_coroutine(http2_writer_body)
{
    bide_begin(http2_writer_body, http2_task * self);
    for (;;) {
        self->owner->now = bide_now(bide_this_context());
        self->status = http2_output_gather(self->owner);
        if (self->status < 0)
            bide_return(self->status);
        if (self->owner->output_size == 0 && http2_output_has_ended(self->owner))
            bide_return(HTTP2_ENDED);
        if (self->owner->output_size == 0 || http2_output_awaits_turn(self->owner)) {
            bide_try(bide_auto_event_wait(&self->wait, &self->owner->output_needed));
            continue;
        }
        http2_watch_writing(self->owner, self->owner->now);
        bide_try(bide_stream_write(&self->operation, self->owner->http->stream, self->owner->output,
                                   self->owner->output_size));
        self->owner->write_deadline = BIDE_FOREVER;
        self->owner->output_size = 0;
    }
    bide_end();
}

/* ---- The reader ---- */

static int http2_input_feed(http2_connection *connection)
{
    bide_reader *reader = &connection->http->reader;
    size_t size = bide_reader_buffered(reader);
    bide_assert(connection->has_turn && !connection->is_stopping); /* 3, 7 */
    connection->started_in_turn = 0;
    connection->is_paused = false;
    bide_http2_settle_frames_(connection);
    ssize_t taken = nghttp2_session_mem_recv(connection->session,
                                             (const uint8_t *)bide_reader_peek(reader), size);
    bide_auto_event_set(&connection->output_needed);
    bide_assert(taken < 0 || (size_t)taken <= size);
    bide_assert(connection->started_in_turn <= HTTP2_TURN); /* 6 */
    if (taken == NGHTTP2_ERR_FLOODED)
        bide_http2_report_flood_(connection);
    if (taken < 0)
        return bide_http2_errno_((int)taken);
    bide_http2_charge_frames_(connection, (const unsigned char *)bide_reader_peek(reader),
                              (size_t)taken);
    /* (after the session has ended, nghttp2 ignores the rest) */
    bide_reader_consume(reader, connection->is_paused ? (size_t)taken : size);
    return 0;
}

/* (nghttp2 may pause in a head whose bytes have all been received) */
static bool http2_has_input(const http2_connection *connection)
{
    return connection->is_paused || bide_reader_buffered(&connection->http->reader) != 0;
}

/* 7 */
static bool http2_is_crowded(const bide_http2 *http2)
{
    return http2->waiting >= HTTP2_TURN && http2->waiting >= http2->sessions;
}

static void http2_release_turn(http2_connection *connection)
{
    if (connection->has_turn)
        bide_mutex_unlock(&connection->turn);
    connection->has_turn = false;
}

static bide_awaiter *http2_input_fill(http2_connection *connection,
                                      bide_stream_operation *operation)
{
    bide_reader *reader = &connection->http->reader;
    reader->begin = 0;
    reader->end = 0;
    return bide_stream_read(operation, reader->stream, reader->buffer, reader->size);
}

bide_coroutine(http2_reader_body)
{
    bide_begin(http2_reader_body, http2_task * self);
    for (;;) {
        while (http2_has_input(self->owner)) {
            bide_try(bide_mutex_lock(&self->owner->turn, &self->owner->http2->turn));
            bide_assert(!self->owner->has_turn);
            self->owner->has_turn = true;
            self->owner->now = bide_now(bide_this_context());
            self->status = http2_input_feed(self->owner);
            if (self->status < 0)
                bide_return(self->status);
            if (!http2_is_crowded(self->owner->http2))
                http2_release_turn(self->owner);
            if (self->owner->has_turn || self->owner->is_paused)
                bide_await(bide_schedule(&self->owner->yield, bide_this_context()->scheduler));
            http2_release_turn(self->owner);
        }
        bide_try(http2_input_fill(self->owner, &self->operation));
        self->owner->http->reader.end =
            bide_stream_count(&self->operation, self->owner->http->reader.stream);
        if (self->owner->http->reader.end == 0)
            break;
    }
    self->owner->http->reader.has_ended = true;
    bide_return(self->owner->stream_count == 0 ? HTTP2_ENDED : -ENODATA);
    bide_finally();
    http2_release_turn(self->owner);
    bide_end();
}

/* ---- The watcher: 5 ---- */

static uint64_t http2_earlier(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/*
 * Stops everything whose deadline has passed, and sets connection->armed to the next deadline. Returns
 * 0 or -ETIMEDOUT.
 */
static int http2_expire_due(http2_connection *connection, uint64_t now)
{
    http2_stream *next;
    const bide_http_options *options = &connection->http->server->options;
    connection->now = now;
    for (http2_stream *stream = connection->streams; stream != NULL; stream = next) {
        next = stream->next;
        if (stream->http.watch.until <= now) {
            connection->http->server->stats.timed_out += !stream->is_draining;
            bide_http2_expire_stream_(stream);
        }
    }
    if (connection->write_deadline <= now)
        return -ETIMEDOUT;
    if (connection->idle_deadline <= now) {
        if (connection->is_going_away)
            return -ETIMEDOUT;
        connection->is_going_away = true;
        connection->http->server->stats.timed_out++;
        connection->idle_deadline = http_later(now, options->linger_timeout);
        bide_http2_note_(connection,
                         nghttp2_session_terminate_session(connection->session, NGHTTP2_NO_ERROR));
    }
    connection->armed = http2_earlier(connection->idle_deadline, connection->write_deadline);
    for (http2_stream *stream = connection->streams; stream != NULL; stream = stream->next)
        connection->armed = http2_earlier(connection->armed, stream->http.watch.until);
    for (http2_stream *stream = connection->streams; stream != NULL; stream = stream->next)
        stream->http.watch.armed = connection->armed;
    return 0;
}

bide_coroutine(http2_watcher_body)
{
    bide_begin(http2_watcher_body, http2_task * self);
    for (;;) {
        self->status = http2_expire_due(self->owner, bide_now(bide_this_context()));
        if (self->status < 0)
            bide_return(self->status);
        bide_await(bide_with_deadline(&self->limited, self->owner->armed,
                                      bide_auto_event_wait(&self->wait, &self->owner->nudge)));
        if (bide_stop_requested(bide_this_context()->stop))
            bide_return(0);
    }
    bide_end();
}

/* ---- The connection ---- */

/* Stops all streams. nghttp2 is not called any more. */
static void http2_stop_streams(http2_connection *connection, int error)
{
    http2_stream *next;
    connection->is_stopping = true;
    for (http2_stream *stream = connection->streams; stream != NULL; stream = next) {
        next = stream->next;
        bide_http2_stop_stream_(stream, error);
    }
}

static void http2_spawn(http2_connection *connection, http2_task *task, const bide_point *body)
{
    task->owner = connection;
    bide_scope_spawn(&connection->io, &task->branch, bide_task_init(&task->task, body));
}

static void http2_free_connection(http2_connection *connection)
{
    bide_http2 *http2 = connection->http2;
    http2_stop_streams(connection, -ECANCELED);
    bide_assert(connection->streams == NULL && connection->stream_count == 0);
    bide_assert(!connection->has_turn && http2->sessions != 0);
    nghttp2_session_del(connection->session);
    bide_http2_give_piece_(http2, &http2->outputs, connection->output, HTTP2_OUTPUT);
    connection->http->protocols = NULL;
    bide_http2_deallocate_(http2, connection, sizeof *connection);
    if (--http2->sessions != 0)
        return;
    bide_http2_free_pieces_(http2, &http2->streams, bide_http2_stream_size_(http2));
    bide_http2_free_pieces_(http2, &http2->outputs, HTTP2_OUTPUT);
    bide_assert(http2->stats.memory == 0 && http2->stats.live == 0); /* memory.c, 1 */
    bide_assert(http2->waiting == 0 && http2->opened == 0);
}

static int http2_connection_status(int status)
{
    return status == HTTP2_ENDED ? 0 : status;
}

static http2_connection *http2_connection_of(const bide_http_talk_ *other_protocol)
{
    return other_protocol->connection->protocols;
}

static void http2_open_scopes(http2_connection *connection, bide_frame *owner, uint64_t now)
{
    connection->now = now;
    connection->idle_deadline =
        http_later(now, connection->http->server->options.first_byte_timeout);
    bide_scope_init(&connection->scope, owner);
    bide_scope_init(&connection->io, owner);
    http2_spawn(connection, &connection->reader, &http2_reader_body);
    http2_spawn(connection, &connection->writer, &http2_writer_body);
    http2_spawn(connection, &connection->watcher, &http2_watcher_body);
}

bide_coroutine(http2_connection_body)
{
    bide_begin(http2_connection_body, bide_http_talk_ * self);
    http2_open_scopes(self->connection->protocols, bide_this_frame(),
                      bide_now(bide_this_context()));
    bide_await_status(http2_connection_of(self)->status,
                      bide_scope_join(&http2_connection_of(self)->io));
    http2_connection_of(self)->status = http2_connection_status(http2_connection_of(self)->status);
    http2_stop_streams(http2_connection_of(self), http2_connection_of(self)->status < 0
                                                      ? http2_connection_of(self)->status
                                                      : -ECONNRESET);
    bide_await(bide_scope_join(&http2_connection_of(self)->scope));
    bide_return(http2_connection_of(self)->status);
    bide_finally();
    bide_scope_destroy(&http2_connection_of(self)->io); /* 4 */
    bide_scope_destroy(&http2_connection_of(self)->scope);
    http2_free_connection(http2_connection_of(self));
    bide_end();
}

/* Returns 0 or a negative errno. After an error there is no connection. */
static int http2_make_connection(bide_http2 *http2, bide_http_connection *http)
{
    http2_connection *connection = bide_http2_allocate_(http2, sizeof *connection);
    if (connection == NULL)
        return -ENOMEM;
    memset(connection, 0, sizeof *connection);
    connection->http2 = http2;
    connection->http = http;
    connection->resets_left = http2->options.max_resets;
    connection->frames.left = http2->options.max_idle_frames;
    connection->highest = -1;
    connection->preface_left = sizeof NGHTTP2_CLIENT_MAGIC - 1;
    connection->write_deadline = BIDE_FOREVER;
    connection->armed = BIDE_FOREVER;
    bide_auto_event_init(&connection->output_needed, false);
    bide_auto_event_init(&connection->nudge, false);
    int status = bide_http2_open_session_(connection);
    if (status < 0) {
        nghttp2_session_del(connection->session);
        bide_http2_deallocate_(http2, connection, sizeof *connection);
        return status;
    }
    http->protocols = connection;
    http2->stats.connections++;
    http2->sessions++;
    (void)bide_http_peer(http->exchange);
    return 0;
}

/* There was no memory for the connection. */
bide_coroutine(http2_reject_body)
{
    bide_begin(http2_reject_body, bide_http_talk_ * self);
    (void)self;
    bide_return(-ENOMEM);
    bide_end();
}

static bide_awaiter *http2_protocol_serve(bide_http_protocol *protocol, bide_http_connection *http)
{
    int status = http2_make_connection(bide_container_of(protocol, bide_http2, protocol), http);
    http->other_protocol.connection = http;
    return bide_task_init(&http->other_protocol.task,
                          status == 0 ? &http2_connection_body : &http2_reject_body);
}

static void http2_protocol_drain(bide_http_protocol *protocol, bide_http_connection *http)
{
    (void)protocol;
    if (http->protocols != NULL)
        bide_http2_take_leave_(http->protocols);
}

/* ---- The server ---- */

const char *const bide_http2_protocols[] = {"h2", "http/1.1", NULL};

#undef bide_http2_init
int bide_http2_init(bide_http2 *http2, bide_http_server *server, const bide_http2_options *given)
{
    static const char preface[] = NGHTTP2_CLIENT_MAGIC;
    enum {
        WHOLE_WINDOW = 1 << 20,
        ALL_WINDOWS = 64 << 20,
        WINDOW = 65535,
        STREAMS = 100,
        RESETS = 200,
        IDLE_FRAMES = 1000
    };
    bide_http2_options options = given != NULL ? *given : (bide_http2_options){.window = 0};
    if (options.max_streams == 0)
        options.max_streams = STREAMS;
    if (options.window == 0)
        options.window = WINDOW;
    if (options.connection_window == 0)
        options.connection_window = options.window > WHOLE_WINDOW ? options.window : WHOLE_WINDOW;
    if (options.max_resets == 0)
        options.max_resets = RESETS;
    if (options.max_idle_frames == 0)
        options.max_idle_frames = IDLE_FRAMES;
    if (options.max_all_streams == 0)
        options.max_all_streams = SIZE_MAX;
    if (options.all_windows == 0)
        options.all_windows = ALL_WINDOWS;
    if (options.max_memory == 0)
        options.max_memory = SIZE_MAX;
    if (options.allocator == NULL)
        options.allocator = &bide_heap;
    if (options.window > INT32_MAX || options.connection_window > INT32_MAX ||
        options.connection_window < WINDOW)
        return -EINVAL;
    http2->protocol.preface =
        options.is_plain ? (bide_slice){preface, sizeof preface - 1} : (bide_slice){NULL, 0};
    http2->protocol.serve = http2_protocol_serve;
    http2->protocol.drain = http2_protocol_drain;
    http2->server = server;
    http2->options = options;
    memset(&http2->stats, 0, sizeof http2->stats);
    http2->sessions = 0;
    http2->waiting = 0;
    http2->opened = 0;
    bide_mutex_init(&http2->turn);
    http2->streams = http2->outputs = (bide_http2_spare_){NULL, 0};
    server->protocol = &http2->protocol;
    return 0;
}

bide_awaiter *bide_http2_serve(bide_http_connection *connection, bide_http2 *http2,
                               bide_stream stream, void *memory, const char *protocol)
{
    if (protocol == NULL) /* the first bytes decide, if options.is_plain */
        return bide_http_serve(connection, http2->server, stream, memory);
    return bide_http_transport_serve(connection, http2->server, stream, memory,
                                     strcmp(protocol, "h2") == 0);
}

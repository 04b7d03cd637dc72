/*
 * Connections of HTTP/2.
 *
 *     serve      the carrier's coroutine: runs the three below, and when they have ended, ends the streams
 *     reader     reads, and has nghttp2 take it in, whose calls make streams (session.c)
 *     writer     sends what nghttp2 gives, when there may be something
 *     watcher    asks streams to stop whose time is over, and ends the connection (watch.h)
 *     request    one for each stream (request.c), in a scope of their own
 *
 * 1. nghttp2 is used by one coroutine at a time, since all run on one thread and none waits inside
 *    of its calls; what its calls of us do is to change a stream and to set events.
 * 2. What is gathered, and then sent in one call, is all that there is at that time, up to some 32
 *    KB. The writer's turn comes after those of the requests that came together, since their
 *    coroutines were posted before the event was set. So responses that end together leave
 *    together.
 * 3. The reader, the writer and the watcher end with an error when the connection has ended, which
 *    ends the other two. ENDED says that it was not one. Then nothing of nghttp2's will be called
 *    any more but by the streams' requests, which change the session, but nobody looks at it.
 * 4. When it is destroyed, the writer goes before the streams, and so nothing that is being sent is
 *    freed. What is sent is in the connection's own buffer, which stays until then.
 * 5. Times without streams are the connection's: the first request, and the next one. A client that
 *    is told that the connection ends (GOAWAY) has `linger` to go.
 * 6. What has come is taken in by turns of HTTP2_TURN requests, and between two of them the others
 *    run: nghttp2 is paused behind a field, and goes on there. What is gathered meanwhile is sent
 *    after the last turn, or when it is much. So responses that end together still leave together,
 *    and no connection that asks without end keeps others from theirs.
 * 7. One connection of a server has a turn at a time, first come, first served. It keeps it while
 *    others run, once, if as many requests wait for their first run as there are connections. So
 *    requests that end at once have the memory of few, which stays in the cache; and each connection
 *    is served no less often than one of HTTP/1.1, which has one request at a time.
 */
#include "internal.h"

#include "../http/watch.h"

#include "bide/coroutine.h"

#include <errno.h>
#include <string.h>

enum { ENDED = -ESHUTDOWN }; /* 3 */

/* ---- What is sent ---- */

/* Copies what nghttp2 has given. What finds no room waits. */
static void put(http2_connection *connection, const uint8_t *data, size_t size)
{
    size_t room = HTTP2_OUTPUT - connection->filled;
    size_t count = size < room ? size : room;
    memcpy(connection->output + connection->filled, data, count);
    connection->filled += count;
    connection->rest = data + count;
    connection->rest_size = size - count;
}

/* Gathers: 0 or a negative errno. */
static int gather(http2_connection *connection)
{
    if (connection->error != 0)
        return connection->error;
    if (connection->output == NULL &&
        (connection->rest_size != 0 || nghttp2_session_want_write(connection->session))) {
        connection->output = bide_http2_take_piece_(&connection->http2->outputs);
        if (connection->output == NULL)
            connection->output = bide_http2_allocate_(connection->http2, HTTP2_OUTPUT);
        if (connection->output == NULL)
            return -ENOMEM;
    }
    while (connection->output != NULL && HTTP2_OUTPUT - connection->filled >= HTTP2_FRAME) {
        const uint8_t *data = connection->rest;
        size_t before = connection->filled;
        ssize_t size = connection->rest_size != 0
                           ? (ssize_t)connection->rest_size
                           : nghttp2_session_mem_send(connection->session, &data);
        if (size < 0)
            return bide_http2_errno_((int)size);
        if (size != 0)
            put(connection, data, (size_t)size);
        else if (connection->filled == before)
            break;
    }
    return 0;
}

/* Nothing waits to be sent: the buffer is not needed, and perhaps nothing else. */
static bool is_over(http2_connection *connection)
{
    bide_http2_give_piece_(connection->http2, &connection->http2->outputs, connection->output,
                     HTTP2_OUTPUT);
    connection->output = NULL;
    return !nghttp2_session_want_read(connection->session) ||
           (connection->is_leaving && connection->live == 0);
}

/* Requests of what has come are still to be taken in, and there is room for their responses: 6. */
static bool gathers_more(const http2_connection *connection)
{
    return connection->is_paused && HTTP2_OUTPUT - connection->filled >= HTTP2_FRAME;
}

static void watch_writing(http2_connection *connection, uint64_t now)
{
    connection->write_until = http_later(now, connection->http->server->options.body_idle_timeout);
    if (connection->write_until < connection->armed)
        bide_auto_event_set(&connection->nudge);
}

bide_coroutine(writer_body)
{
    bide_begin(writer_body, http2_task * self);
    for (;;) {
        self->owner->now = bide_now(bide_this_context());
        self->status = gather(self->owner);
        if (self->status < 0)
            bide_return(self->status);
        if (self->owner->filled == 0 && is_over(self->owner))
            bide_return(ENDED);
        if (self->owner->filled == 0 || gathers_more(self->owner)) {
            bide_try(bide_auto_event_wait(&self->wait, &self->owner->work));
            continue;
        }
        watch_writing(self->owner, self->owner->now);
        bide_try(bide_stream_write(&self->operation, self->owner->http->stream, self->owner->output,
                                   self->owner->filled));
        self->owner->write_until = BIDE_FOREVER;
        self->owner->filled = 0;
    }
    bide_end();
}

/* ---- What comes ---- */

static int feed(http2_connection *connection)
{
    bide_reader *reader = &connection->http->reader;
    size_t size = bide_reader_buffered(reader);
    connection->begun = 0;
    connection->is_paused = false;
    ssize_t taken = nghttp2_session_mem_recv(connection->session,
                                             (const uint8_t *)bide_reader_peek(reader), size);
    bide_auto_event_set(&connection->work);
    if (taken == NGHTTP2_ERR_FLOODED)
        connection->http2->stats.floods++;
    if (taken < 0)
        return bide_http2_errno_((int)taken);
    /* (what it has not taken otherwise comes after its end) */
    bide_reader_consume(reader, connection->is_paused ? (size_t)taken : size);
    return 0;
}

/* (a head may be paused in whose bytes have all come) */
static bool has_input(const http2_connection *connection)
{
    return connection->is_paused || bide_reader_buffered(&connection->http->reader) != 0;
}

/* 7 */
static bool is_crowded(const bide_http2 *http2)
{
    return http2->waiting >= HTTP2_TURN && http2->waiting >= http2->sessions;
}

static void end_turn(http2_connection *connection)
{
    if (connection->has_turn)
        bide_mutex_unlock(&connection->turn);
    connection->has_turn = false;
}

static bide_awaiter *fill(http2_connection *connection, bide_stream_operation *operation)
{
    bide_reader *reader = &connection->http->reader;
    reader->begin = 0;
    reader->end = 0;
    return bide_stream_read(operation, reader->stream, reader->buffer, reader->size);
}

bide_coroutine(reader_body)
{
    bide_begin(reader_body, http2_task * self);
    for (;;) {
        while (has_input(self->owner)) {
            bide_try(bide_mutex_lock(&self->owner->turn, &self->owner->http2->turn));
            self->owner->has_turn = true;
            self->owner->now = bide_now(bide_this_context());
            self->status = feed(self->owner);
            if (self->status < 0)
                bide_return(self->status);
            if (!is_crowded(self->owner->http2))
                end_turn(self->owner);
            if (self->owner->has_turn || self->owner->is_paused)
                bide_await(
                    bide_schedule(&self->owner->after_others, bide_this_context()->scheduler));
            end_turn(self->owner);
        }
        bide_try(fill(self->owner, &self->operation));
        self->owner->http->reader.end =
            bide_stream_count(&self->operation, self->owner->http->reader.stream);
        if (self->owner->http->reader.end == 0)
            break;
    }
    self->owner->http->reader.has_ended = true;
    bide_return(self->owner->live == 0 ? ENDED : -ENODATA);
    bide_finally();
    end_turn(self->owner);
    bide_end();
}

/* ---- Times: 5 ---- */

static uint64_t earlier(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Ends what is over: 0, or -ETIMEDOUT. When the next is, is connection->armed. */
static int look(http2_connection *connection, uint64_t now)
{
    http2_stream *next;
    const bide_http_options *options = &connection->http->server->options;
    connection->now = now;
    for (http2_stream *stream = connection->streams; stream != NULL; stream = next) {
        next = stream->next;
        if (stream->http.watch.until <= now) {
            connection->http->server->stats.timed_out++;
            bide_http2_expire_stream_(stream);
        }
    }
    if (connection->write_until <= now)
        return -ETIMEDOUT;
    if (connection->until <= now) {
        if (connection->is_leaving)
            return -ETIMEDOUT;
        connection->is_leaving = true;
        connection->http->server->stats.timed_out++;
        connection->until = http_later(now, options->linger_timeout);
        bide_http2_note_(connection,
                   nghttp2_session_terminate_session(connection->session, NGHTTP2_NO_ERROR));
    }
    connection->armed = earlier(connection->until, connection->write_until);
    for (http2_stream *stream = connection->streams; stream != NULL; stream = stream->next)
        connection->armed = earlier(connection->armed, stream->http.watch.until);
    for (http2_stream *stream = connection->streams; stream != NULL; stream = stream->next)
        stream->http.watch.armed = connection->armed;
    return 0;
}

bide_coroutine(watcher_body)
{
    bide_begin(watcher_body, http2_task * self);
    for (;;) {
        self->status = look(self->owner, bide_now(bide_this_context()));
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

/* No stream goes on; and nghttp2 does nothing any more. */
static void stop_streams(http2_connection *connection, int error)
{
    http2_stream *next;
    connection->is_joining = true;
    for (http2_stream *stream = connection->streams; stream != NULL; stream = next) {
        next = stream->next;
        bide_http2_stop_stream_(stream, error);
    }
}

static void spawn(http2_connection *connection, http2_task *task, const bide_point *body)
{
    task->owner = connection;
    bide_scope_spawn(&connection->io, &task->branch, bide_task_init(&task->task, body));
}

static void free_connection(http2_connection *connection)
{
    bide_http2 *http2 = connection->http2;
    stop_streams(connection, -ECANCELED);
    nghttp2_session_del(connection->session);
    bide_http2_give_piece_(http2, &http2->outputs, connection->output, HTTP2_OUTPUT);
    connection->http->carriers = NULL;
    bide_http2_deallocate_(http2, connection, sizeof *connection);
    if (--http2->sessions != 0)
        return;
    bide_http2_free_pieces_(http2, &http2->streams, bide_http2_stream_size_(http2));
    bide_http2_free_pieces_(http2, &http2->outputs, HTTP2_OUTPUT);
}

static int how_it_ended(int status)
{
    return status == ENDED ? 0 : status;
}

static http2_connection *of(const bide_http_talk_ *carrying)
{
    return carrying->connection->carriers;
}

static void open_scopes(http2_connection *connection, bide_frame *owner, uint64_t now)
{
    connection->now = now;
    connection->until = http_later(now, connection->http->server->options.first_byte_timeout);
    bide_scope_init(&connection->scope, owner);
    bide_scope_init(&connection->io, owner);
    spawn(connection, &connection->reader, &reader_body);
    spawn(connection, &connection->writer, &writer_body);
    spawn(connection, &connection->watcher, &watcher_body);
}

bide_coroutine(serve_body)
{
    bide_begin(serve_body, bide_http_talk_ * self);
    open_scopes(self->connection->carriers, bide_this_frame(), bide_now(bide_this_context()));
    bide_await_status(of(self)->status, bide_scope_join(&of(self)->io));
    of(self)->status = how_it_ended(of(self)->status);
    stop_streams(of(self), of(self)->status < 0 ? of(self)->status : -ECONNRESET);
    bide_await(bide_scope_join(&of(self)->scope));
    bide_return(of(self)->status);
    bide_finally();
    bide_scope_destroy(&of(self)->io); /* 4 */
    bide_scope_destroy(&of(self)->scope);
    free_connection(of(self));
    bide_end();
}

/* 0, or a negative errno: then there is none. */
static int make_connection(bide_http2 *http2, bide_http_connection *http)
{
    http2_connection *connection = bide_http2_allocate_(http2, sizeof *connection);
    if (connection == NULL)
        return -ENOMEM;
    memset(connection, 0, sizeof *connection);
    connection->http2 = http2;
    connection->http = http;
    connection->resets_left = http2->options.max_resets;
    connection->idle_left = http2->options.max_idle_frames;
    connection->write_until = BIDE_FOREVER;
    connection->armed = BIDE_FOREVER;
    bide_auto_event_init(&connection->work, false);
    bide_auto_event_init(&connection->nudge, false);
    int status = bide_http2_open_session_(connection);
    if (status < 0) {
        nghttp2_session_del(connection->session);
        bide_http2_deallocate_(http2, connection, sizeof *connection);
        return status;
    }
    http->carriers = connection;
    http2->stats.connections++;
    http2->sessions++;
    (void)bide_http_peer(http->exchange);
    return 0;
}

/* There was no memory for it. */
bide_coroutine(refuse_body)
{
    bide_begin(refuse_body, bide_http_talk_ * self);
    (void)self;
    bide_return(-ENOMEM);
    bide_end();
}

static bide_awaiter *serve(bide_http_protocol *carrier, bide_http_connection *http)
{
    int status = make_connection(bide_container_of(carrier, bide_http2, protocol), http);
    http->carrying.connection = http;
    return bide_task_init(&http->carrying.task, status == 0 ? &serve_body : &refuse_body);
}

static void drain(bide_http_protocol *carrier, bide_http_connection *http)
{
    (void)carrier;
    if (http->carriers != NULL)
        bide_http2_take_leave_(http->carriers);
}

/* ---- The server ---- */

const char *const bide_http2_protocols[] = {"h2", "http/1.1", NULL};

int bide_http2_init(bide_http2 *http2, bide_http_server *server, const bide_http2_options *given)
{
    static const char preface[] = NGHTTP2_CLIENT_MAGIC;
    enum {
        WHOLE_WINDOW = 1 << 20,
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
    if (options.max_memory == 0)
        options.max_memory = SIZE_MAX;
    if (options.allocator == NULL)
        options.allocator = &bide_heap;
    if (options.window > INT32_MAX || options.connection_window > INT32_MAX ||
        options.connection_window < WINDOW)
        return -EINVAL;
    http2->protocol.preface = options.is_plain ? (bide_slice){preface, sizeof preface - 1}
                                              : (bide_slice){NULL, 0};
    http2->protocol.serve = serve;
    http2->protocol.drain = drain;
    http2->server = server;
    http2->options = options;
    memset(&http2->stats, 0, sizeof http2->stats);
    http2->sessions = 0;
    http2->waiting = 0;
    bide_mutex_init(&http2->turn);
    http2->streams = http2->outputs = (bide_http2_spare_){NULL, 0};
    server->protocol = &http2->protocol;
    return 0;
}

bide_awaiter *bide_http2_serve(bide_http_connection *connection, bide_http2 *http2,
                               bide_stream stream, void *memory, const char *protocol)
{
    return bide_http_transport_serve(connection, http2->server, stream, memory,
                                   protocol != NULL && strcmp(protocol, "h2") == 0);
}

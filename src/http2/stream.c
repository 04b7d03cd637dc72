/*
 * A stream of HTTP/2 as the bide_stream from which its exchange reads and to which it writes.
 *
 * Threads: all functions run on the loop's thread, some of them inside a call of nghttp2.
 *
 * Why it is correct:
 * 1. Received data goes into a ring that is as large as the stream's window; nghttp2 accepts no more.
 *    Until the client has acknowledged the settings, it may use the default window. All data that it
 *    sends before that is received before that, so the ring has the larger of both sizes.
 *    A read opens the window of the stream again. The window of the connection is opened as soon as data
 *    arrives, so a request that is not read holds back no other; `opened` bytes of a ring, and of all rings
 *    of the server, are such. If these exceed `all_windows`, a read opens the connection's window for the
 *    rest. For data that will never be read, only the connection's window is opened.
 * 2. Output stays in the exchange's memory. nghttp2 requests as much as the client's windows allow, and
 *    that part is copied behind the frame's header into the connection's output. A write that is
 *    cancelled or destroyed withdraws its vectors, so nothing refers to them afterwards.
 * 3. Callbacks of nghttp2 set events, which post. No coroutine of a stream runs inside a callback.
 * 4. A response may end before its request. Some clients lose the response if the stream is reset then.
 *    The rest of the request is therefore dropped, up to `max_body` bytes, with the deadlines of a
 *    connection of HTTP/1.1 that ends (../http/server.c, 3). After that the stream is reset.
 */
#include "internal.h"

#include "../http/watch.h"
#include "../net/vectors.h"

#include "bide/coroutine.h"

#include <errno.h>
#include <string.h>

/* An operation, in the memory of a bide_stream_operation. */
typedef struct http2_operation {
    bide_task task;
    http2_stream *stream;
    char *data;
    size_t size;
    size_t count;
    bide_single_consumer_auto_event_waiter wait;
    int status;
} http2_operation;

_Static_assert(sizeof(http2_operation) <= sizeof((bide_stream_operation *)0)->room,
               "there is room for it");

static http2_operation *http2_operation_of(bide_stream_operation *operation)
{
    return (http2_operation *)(void *)operation;
}

/* ---- Input: 1 ---- */

static size_t http2_min(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Opens the connection's window for received bytes, if the server's budget allows it. */
static void http2_open_early(http2_stream *stream, size_t size)
{
    http2_connection *connection = stream->owner;
    bide_http2 *http2 = connection->http2;
    bide_assert(http2->opened <= http2->options.all_windows);
    if (size > http2->options.all_windows - http2->opened)
        return;
    http2->opened += size;
    stream->ring.opened += size;
    bide_http2_note_(connection, nghttp2_session_consume_connection(connection->session, size));
}

size_t bide_http2_empty_ring_(http2_stream *stream)
{
    size_t held =
        bide_http2_ring_settle_(&stream->ring, stream->ring.count, &stream->owner->http2->opened);
    stream->ring.count = 0;
    bide_assert(stream->ring.opened == 0);
    return held;
}

int bide_http2_take_body_(http2_stream *stream, const char *data, size_t size)
{
    bide_http2_ring_ *ring = &stream->ring;
    if (ring->data == NULL) {
        uint64_t length = stream->http.exchange->request.length;
        size_t max = bide_http2_ring_window_(stream->owner->session, stream->id,
                                             stream->owner->http2->options.window);
        ring->size = length != 0 && length < max ? (size_t)length : max;
        ring->data = bide_http2_allocate_for_stream_(stream->owner->http2, ring->size);
    }
    if (ring->data == NULL)
        return -ENOMEM;
    bide_assert(size <= ring->size - ring->count); /* 1 */
    if (size > ring->size - ring->count)
        return -ENOMEM;
    bide_http2_ring_put_(ring, data, size);
    http2_open_early(stream, size);
    bide_single_consumer_auto_event_set(&stream->readable);
    return 0;
}

/* Returns 0, -EAGAIN, or an error. */
static int http2_try_read(http2_operation *operation)
{
    http2_stream *stream = operation->stream;
    http2_connection *connection = stream->owner;
    if (stream->error != 0)
        return stream->error;
    if (stream->ring.count == 0)
        return stream->input_ended ? 0 : -EAGAIN;
    size_t held = bide_http2_ring_settle_(
        &stream->ring, http2_min(operation->size, stream->ring.count), &connection->http2->opened);
    operation->count = bide_http2_ring_take_(&stream->ring, operation->data, operation->size);
    bide_http2_note_(connection, nghttp2_session_consume_stream(connection->session, stream->id,
                                                                operation->count));
    bide_http2_note_(connection, nghttp2_session_consume_connection(connection->session, held));
    return 0;
}

static bool http2_read_ready(bide_awaiter *awaiter)
{
    http2_operation *operation = bide_container_of(awaiter, http2_operation, task.frame.awaiter);
    int status = http2_try_read(operation);
    if (status == -EAGAIN)
        return false;
    operation->task.frame.error = status;
    return true;
}

static bide_next http2_read_step_(bide_frame *frame, unsigned depth);
static const bide_coroutine_type *const http2_read_type_ = &bide_task_type;
static const bide_coroutine_code http2_read_code = {http2_read_step_, "http2_read", __FILE__,
                                                    &http2_read_type_, NULL};
static const bide_point http2_read_start =
    BIDE_POINT_START_READY(http2_read_ready, &http2_read_code);

bide_body(http2_read)
{
    bide_begin(http2_read, http2_operation * self);
    while ((self->status = http2_try_read(self)) == -EAGAIN)
        bide_try(bide_single_consumer_auto_event_wait(&self->wait, &self->stream->readable));
    bide_return(self->status);
    bide_end();
}

static bide_awaiter *http2_stream_read(bide_stream stream, bide_stream_operation *operation,
                                       void *data, size_t size)
{
    http2_operation *self = http2_operation_of(operation);
    self->stream = stream.object;
    self->data = data;
    self->size = size;
    self->count = 0;
    return bide_task_init(&self->task, &http2_read_start);
}

/* ---- Output: 2 ---- */

/* Skips `size` bytes of the vectors. */
static void http2_skip(http2_stream *stream, size_t size)
{
    vectors_pass(&stream->vectors, &stream->offset, &stream->left, size);
}

/* Makes nghttp2 request the output. */
static int http2_submit(http2_stream *stream)
{
    nghttp2_session *session = stream->owner->session;
    bide_assert(!stream->is_closed || stream->error != 0);
    if (stream->is_closed)
        return stream->error;
    while (!stream->is_submitted &&
           stream->left != 0) { /* (interim heads may precede the final one) */
        ptrdiff_t size =
            bide_http2_submit_head_(stream, (char *)stream->vectors->iov_base + stream->offset,
                                    stream->vectors->iov_len - stream->offset);
        if (size < 0)
            return (int)size;
        http2_skip(stream, (size_t)size);
    }
    if (stream->is_submitted && (stream->left != 0 || stream->is_finished)) {
        int status = nghttp2_session_resume_data(session, stream->id);
        if (status != 0 &&
            status != NGHTTP2_ERR_INVALID_ARGUMENT) /* (nghttp2 requests the data already) */
            return bide_http2_errno_(status);
    }
    bide_auto_event_set(&stream->owner->output_needed);
    return 0;
}

ssize_t bide_http2_give_body_(nghttp2_session *session, int32_t id, uint8_t *buffer, size_t length,
                              uint32_t *flags, nghttp2_data_source *source, void *connection)
{
    http2_stream *stream = source->ptr;
    const bide_http_output *output = &stream->http.output;
    (void)session;
    (void)id;
    (void)buffer;
    (void)connection;
    if (stream->left == 0 && !stream->is_finished)
        return NGHTTP2_ERR_DEFERRED;
    size_t count = http2_min(length, stream->left);
    *flags |= NGHTTP2_DATA_FLAG_NO_COPY;
    if (stream->is_finished && count == stream->left) {
        *flags |= NGHTTP2_DATA_FLAG_EOF;
        if (output->chunk != SIZE_MAX) {
            *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
            if (bide_http2_submit_trailers_(stream, stream->http.writer.buffer + output->chunk,
                                            stream->http.writer.end - output->chunk) != 0)
                return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
        }
    }
    return (ssize_t)count;
}

int bide_http2_put_body_(nghttp2_session *session, nghttp2_frame *frame, const uint8_t *head,
                         size_t length, nghttp2_data_source *source, void *user)
{
    enum { HEAD = 9 };
    http2_stream *stream = source->ptr;
    http2_connection *connection = user;
    char *at = connection->output + connection->output_size;
    (void)session;
    (void)frame;
    if (HEAD + length >
        HTTP2_OUTPUT -
            connection->output_size) /* (nghttp2 may produce several frames in one call) */
        return NGHTTP2_ERR_WOULDBLOCK;
    bide_assert(connection->output != NULL && length <= stream->left);
    memcpy(at, head, HEAD);
    at += HEAD;
    connection->output_size += HEAD + length;
    while (length != 0) {
        size_t count = http2_min(length, stream->vectors->iov_len - stream->offset);
        memcpy(at, (const char *)stream->vectors->iov_base + stream->offset, count);
        at += count;
        length -= count;
        http2_skip(stream, count);
    }
    if (stream->left == 0 && !stream->is_finished)
        bide_single_consumer_auto_event_set(&stream->written);
    else if (!stream->http.is_upgraded || stream->is_finished) /* (no deadlines after an upgrade) */
        http_watch_start_wait_at(&stream->http.watch, HTTP_WATCH_WRITE, connection->now);
    return 0;
}

static void http2_take_back_vectors(http2_operation *operation)
{
    http2_stream *stream = operation->stream;
    bide_assert(stream->left <= operation->size);
    operation->count = operation->size - stream->left;
    stream->left = 0;
    stream->vectors = NULL;
}

bide_coroutine(http2_write)
{
    bide_begin(http2_write, http2_operation * self);
    self->status = http2_submit(self->stream);
    if (self->status < 0)
        bide_return(self->status);
    while (self->stream->left != 0) {
        bide_try(bide_single_consumer_auto_event_wait(&self->wait, &self->stream->written));
        if (self->stream->error != 0 && self->stream->left != 0)
            bide_return(self->stream->error);
    }
    bide_finally();
    http2_take_back_vectors(self);
    bide_end();
}

static bide_awaiter *http2_start_write(http2_operation *self, http2_stream *stream,
                                       const struct iovec *vectors, size_t size)
{
    bide_assert(stream->left == 0 && !stream->is_finished); /* one write at a time */
    self->stream = stream;
    self->size = size;
    self->count = 0;
    stream->vectors = vectors;
    stream->offset = 0;
    stream->left = size;
    http2_skip(stream, 0);
    return bide_task_init(&self->task, &http2_write);
}

static bide_awaiter *http2_stream_write_vectors(bide_stream stream,
                                                bide_stream_operation *operation,
                                                const struct iovec *vectors, int count)
{
    size_t size = 0;
    for (int i = 0; i < count; i++)
        size += vectors[i].iov_len;
    return http2_start_write(http2_operation_of(operation), stream.object, vectors, size);
}

static void http2_set_vector(struct iovec *vector, const void *data, size_t size)
{
    __extension__ union {
        const void *read;
        void *write;
    } pointer = {.read = data};
    vector->iov_base = pointer.write;
    vector->iov_len = size;
}

static bide_awaiter *http2_stream_write(bide_stream stream, bide_stream_operation *operation,
                                        const void *data, size_t size)
{
    http2_stream *self = stream.object;
    http2_set_vector(&self->vector, data, size);
    return http2_start_write(http2_operation_of(operation), self, &self->vector, size);
}

static size_t http2_stream_count(const bide_stream_operation *operation)
{
    return ((const http2_operation *)(const void *)operation)->count;
}

/* The end of the exchange ends the stream. */
static bide_awaiter *http2_stream_end_output(bide_stream stream, bide_stream_operation *operation)
{
    (void)stream;
    return bide_stream_ended(operation, 0);
}

static int http2_stream_close(bide_stream stream)
{
    bide_http2_reset_stream_(stream.object, NGHTTP2_CANCEL);
    return 0;
}

bide_stream bide_http2_stream_of_(http2_stream *stream)
{
    static const bide_stream_table table = {
        .name = "http2",
        .read = http2_stream_read,
        .write = http2_stream_write,
        .write_vectors = http2_stream_write_vectors,
        .count = http2_stream_count,
        .shutdown_output = http2_stream_end_output,
        .close = http2_stream_close,
    };
    return (bide_stream){&table, stream};
}

/* ---- The end ---- */

void bide_http2_reset_stream_(http2_stream *stream, uint32_t code)
{
    if (!stream->is_closed)
        bide_http2_note_(
            stream->owner,
            nghttp2_submit_rst_stream(stream->owner->session, NGHTTP2_FLAG_NONE, stream->id, code));
}

/* The deadline for the next byte of a request that is dropped. */
static void http2_watch_drain(http2_stream *stream)
{
    bide_http_watch *watch = &stream->http.watch;
    uint64_t until = http_later(stream->owner->now, stream->http.server->options.linger_timeout);
    http_watch_until(watch, until < watch->whole ? until : watch->whole);
}

/* 4 */
void bide_http2_drain_stream_(http2_stream *stream)
{
    http2_connection *connection = stream->owner;
    const bide_http_options *options = &stream->http.server->options;
    uint64_t whole = options->body_idle_timeout > options->linger_timeout
                         ? options->body_idle_timeout
                         : options->linger_timeout;
    if (stream->is_closed || stream->is_draining)
        return;
    if (stream->http.input.must_continue) { /* the client does not send the body */
        bide_http2_reset_stream_(stream, NGHTTP2_NO_ERROR);
        return;
    }
    stream->is_draining = true;
    stream->http.watch.whole = http_later(connection->now, whole);
    size_t unread = stream->ring.count;
    size_t held = bide_http2_empty_ring_(stream);
    bide_http2_note_(connection, nghttp2_session_consume_connection(connection->session, held));
    bide_http2_note_(connection,
                     nghttp2_session_consume_stream(connection->session, stream->id, unread));
    stream->dropped += unread;
    http2_watch_drain(stream);
}

void bide_http2_drop_body_(http2_stream *stream, size_t size)
{
    http2_connection *connection = stream->owner;
    uint64_t max = stream->http.server->options.max_body;
    stream->dropped += size;
    if (stream->dropped <= max) {
        bide_http2_note_(connection,
                         nghttp2_session_consume(connection->session, stream->id, size));
        if (stream->is_draining)
            http2_watch_drain(stream);
        return;
    }
    bide_http2_note_(connection, nghttp2_session_consume_connection(connection->session, size));
    if (stream->is_draining)
        bide_http2_reset_stream_(stream, NGHTTP2_NO_ERROR);
}

/*
 * The rest of the response is in the writer's buffer. nghttp2 fetches it, independently of the
 * coroutine.
 */
void bide_http2_end_stream_(http2_stream *stream)
{
    bide_writer *writer = &stream->http.writer;
    const bide_http_output *output = &stream->http.output;
    size_t end = output->chunk != SIZE_MAX ? output->chunk : writer->end;
    bide_assert(stream->left == 0 && !stream->is_finished);
    stream->is_finished = true;
    http2_set_vector(&stream->vector, writer->buffer + writer->begin, end - writer->begin);
    stream->vectors = &stream->vector;
    stream->offset = 0;
    stream->left = end - writer->begin;
    http_watch_start_wait_at(&stream->http.watch, HTTP_WATCH_WRITE, stream->owner->now);
    if (http2_submit(stream) < 0)
        bide_http2_reset_stream_(stream, NGHTTP2_INTERNAL_ERROR);
}

/*
 * A stream, as the bide_stream that its exchange reads from and writes to.
 *
 * 1. What comes is put into a ring, which is as large as the window: nghttp2 lets no more come. The
 *    window is opened for what the exchange has taken, and the connection's too; what nobody takes
 *    any more is the connection's again.
 * 2. What goes stays where the exchange has it, until nghttp2 asks for as much as the client's
 *    windows let it have, and it is copied behind the frame's head into the connection's output. So
 *    an operation that is cut short, or destroyed, takes its vectors back, and nothing refers to
 *    them.
 * 3. All of it is on one thread. nghttp2's calls set events, which post, and so nothing of a stream
 *    runs inside them.
 */
#include "internal.h"

#include "../http/watch.h"
#include "../net/vectors.h"

#include "bide/coroutine.h"

#include <errno.h>
#include <string.h>

/* One operation: in the room of a bide_stream_operation. */
typedef struct http2_operation {
    bide_task task;
    http2_stream *stream;
    char *data;
    size_t size;
    size_t count;
    bide_single_consumer_auto_event_waiter wait;
    int status;
} http2_operation;

_Static_assert(sizeof(http2_operation) <= sizeof(bide_stream_operation), "there is room for it");

static http2_operation *operation_of(bide_stream_operation *operation)
{
    return (http2_operation *)(void *)operation;
}

/* ---- What comes: 1 ---- */

static size_t min(size_t a, size_t b)
{
    return a < b ? a : b;
}

int bide_http2_take_body_(http2_stream *stream, const char *data, size_t size)
{
    const bide_http2 *http2 = stream->owner->http2;
    if (stream->ring == NULL) {
        uint64_t length = stream->http.exchange->request.length;
        size_t max = http2->options.window;
        stream->ring_size = length != 0 && length < max ? (size_t)length : max;
        stream->ring = bide_http2_allocate_for_stream_(stream->owner->http2, stream->ring_size);
    }
    if (stream->ring == NULL || size > stream->ring_size - stream->count)
        return -ENOMEM;
    size_t end = (stream->begin + stream->count) % stream->ring_size;
    size_t first = min(size, stream->ring_size - end);
    memcpy(stream->ring + end, data, first);
    memcpy(stream->ring, data + first, size - first);
    stream->count += size;
    bide_single_consumer_auto_event_set(&stream->came);
    return 0;
}

static size_t take_from_ring(http2_stream *stream, char *data, size_t size)
{
    size_t count = min(size, stream->count);
    size_t first = min(count, stream->ring_size - stream->begin);
    memcpy(data, stream->ring + stream->begin, first);
    memcpy(data + first, stream->ring, count - first);
    stream->begin = (stream->begin + count) % stream->ring_size;
    stream->count -= count;
    return count;
}

/* 0, -EAGAIN, or an error. */
static int attempt_read(http2_operation *operation)
{
    http2_stream *stream = operation->stream;
    http2_connection *connection = stream->owner;
    if (stream->error != 0)
        return stream->error;
    if (stream->count == 0)
        return stream->is_whole ? 0 : -EAGAIN;
    operation->count = take_from_ring(stream, operation->data, operation->size);
    bide_http2_note_(connection,
               nghttp2_session_consume(connection->session, stream->id, operation->count));
    return 0;
}

static bool read_ready(bide_awaiter *awaiter)
{
    http2_operation *operation = bide_container_of(awaiter, http2_operation, task.frame.awaiter);
    int status = attempt_read(operation);
    if (status == -EAGAIN)
        return false;
    operation->task.frame.error = status;
    return true;
}

static bide_next http2_read_step_(bide_frame *frame, unsigned depth);
static const bide_coroutine_type *const http2_read_type_ = &bide_task_type;
static const bide_coroutine_code http2_read_code = {http2_read_step_, "http2_read", __FILE__,
                                                    &http2_read_type_, NULL};
static const bide_point http2_read_start = BIDE_POINT_START_READY(read_ready, &http2_read_code);

bide_body(http2_read)
{
    bide_begin(http2_read, http2_operation * self);
    while ((self->status = attempt_read(self)) == -EAGAIN)
        bide_try(bide_single_consumer_auto_event_wait(&self->wait, &self->stream->came));
    bide_return(self->status);
    bide_end();
}

static bide_awaiter *stream_read(bide_stream stream, bide_stream_operation *operation, void *data,
                                 size_t size)
{
    http2_operation *self = operation_of(operation);
    self->stream = stream.object;
    self->data = data;
    self->size = size;
    self->count = 0;
    return bide_task_init(&self->task, &http2_read_start);
}

/* ---- What goes: 2 ---- */

/* Passes over `size` bytes of the vectors. */
static void pass(http2_stream *stream, size_t size)
{
    vectors_pass(&stream->vectors, &stream->offset, &stream->left, size);
}

/* Has nghttp2 ask for them. */
static int submit(http2_stream *stream)
{
    nghttp2_session *session = stream->owner->session;
    if (stream->is_closed)
        return stream->error;
    while (!stream->is_submitted && stream->left != 0) { /* (an interim one may come before it) */
        ptrdiff_t size =
            bide_http2_submit_head_(stream, (char *)stream->vectors->iov_base + stream->offset,
                              stream->vectors->iov_len - stream->offset);
        if (size < 0)
            return (int)size;
        pass(stream, (size_t)size);
    }
    if (stream->is_submitted && (stream->left != 0 || stream->is_finished)) {
        int status = nghttp2_session_resume_data(session, stream->id);
        if (status != 0 &&
            status != NGHTTP2_ERR_INVALID_ARGUMENT) /* (which says that it asks already) */
            return bide_http2_errno_(status);
    }
    bide_auto_event_set(&stream->owner->work);
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
    size_t count = min(length, stream->left);
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
    char *at = connection->output + connection->filled;
    (void)session;
    (void)frame;
    if (HEAD + length > HTTP2_OUTPUT - connection->filled) /* (several come in one call) */
        return NGHTTP2_ERR_WOULDBLOCK;
    memcpy(at, head, HEAD);
    at += HEAD;
    connection->filled += HEAD + length;
    while (length != 0) {
        size_t count = min(length, stream->vectors->iov_len - stream->offset);
        memcpy(at, (const char *)stream->vectors->iov_base + stream->offset, count);
        at += count;
        length -= count;
        pass(stream, count);
    }
    if (stream->left == 0 && !stream->is_finished)
        bide_single_consumer_auto_event_set(&stream->gone);
    else
        http_watch_wait_at(&stream->http.watch, connection->now);
    return 0;
}

static void take_back(http2_operation *operation)
{
    http2_stream *stream = operation->stream;
    operation->count = operation->size - stream->left;
    stream->left = 0;
    stream->vectors = NULL;
}

bide_coroutine(http2_write)
{
    bide_begin(http2_write, http2_operation * self);
    self->status = submit(self->stream);
    if (self->status < 0)
        bide_return(self->status);
    while (self->stream->left != 0) {
        bide_try(bide_single_consumer_auto_event_wait(&self->wait, &self->stream->gone));
        if (self->stream->error != 0 && self->stream->left != 0)
            bide_return(self->stream->error);
    }
    bide_finally();
    take_back(self);
    bide_end();
}

static bide_awaiter *begin_writing(http2_operation *self, http2_stream *stream,
                                   const struct iovec *vectors, size_t size)
{
    self->stream = stream;
    self->size = size;
    self->count = 0;
    stream->vectors = vectors;
    stream->offset = 0;
    stream->left = size;
    pass(stream, 0);
    return bide_task_init(&self->task, &http2_write);
}

static bide_awaiter *stream_write_vectors(bide_stream stream, bide_stream_operation *operation,
                                          const struct iovec *vectors, int count)
{
    size_t size = 0;
    for (int i = 0; i < count; i++)
        size += vectors[i].iov_len;
    return begin_writing(operation_of(operation), stream.object, vectors, size);
}

static void point_at(struct iovec *vector, const void *data, size_t size)
{
    __extension__ union {
        const void *read;
        void *write;
    } pointer = {.read = data};
    vector->iov_base = pointer.write;
    vector->iov_len = size;
}

static bide_awaiter *stream_write(bide_stream stream, bide_stream_operation *operation,
                                  const void *data, size_t size)
{
    http2_stream *self = stream.object;
    point_at(&self->only, data, size);
    return begin_writing(operation_of(operation), self, &self->only, size);
}

static size_t stream_count(const bide_stream_operation *operation)
{
    return ((const http2_operation *)(const void *)operation)->count;
}

/* The exchange's end is the stream's. */
static bide_awaiter *stream_end_output(bide_stream stream, bide_stream_operation *operation)
{
    (void)stream;
    return bide_stream_ended(operation, 0);
}

static int stream_close(bide_stream stream)
{
    bide_http2_reset_stream_(stream.object, NGHTTP2_CANCEL);
    return 0;
}

bide_stream bide_http2_stream_of_(http2_stream *stream)
{
    static const bide_stream_table table = {
        .name = "http2",
        .read = stream_read,
        .write = stream_write,
        .write_vectors = stream_write_vectors,
        .count = stream_count,
        .shutdown_output = stream_end_output,
        .close = stream_close,
    };
    return (bide_stream){&table, stream};
}

/* ---- The end ---- */

void bide_http2_reset_stream_(http2_stream *stream, uint32_t code)
{
    if (!stream->is_closed)
        bide_http2_note_(stream->owner, nghttp2_submit_rst_stream(stream->owner->session,
                                                            NGHTTP2_FLAG_NONE, stream->id, code));
}

/* What is left is in the writer's buffer: nghttp2 asks for it, whatever becomes of the coroutine. */
void bide_http2_end_stream_(http2_stream *stream)
{
    bide_writer *writer = &stream->http.writer;
    const bide_http_output *output = &stream->http.output;
    size_t end = output->chunk != SIZE_MAX ? output->chunk : writer->end;
    stream->is_finished = true;
    point_at(&stream->only, writer->buffer + writer->begin, end - writer->begin);
    stream->vectors = &stream->only;
    stream->offset = 0;
    stream->left = end - writer->begin;
    http_watch_wait_at(&stream->http.watch, stream->owner->now);
    if (submit(stream) < 0)
        bide_http2_reset_stream_(stream, NGHTTP2_INTERNAL_ERROR);
}

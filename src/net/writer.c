/*
 * Writers: buffered writing to a stream.
 *
 *     buffer |......|=========|..........|
 *                 begin      end        size
 *
 * An operation is a task. Its `ready` attempts it on the buffer alone, so a write that fits into the
 * buffer does not suspend. Otherwise its body writes to the stream, one operation at a time, and
 * attempts again after each. One operation uses a writer at a time, on the stream's threads.
 *
 * 1. An operation copies bytes into the buffer and adds them to its `count` in the same step. So
 *    bytes that are counted are sent, or stay in the buffer for the next operation.
 * 2. Bytes leave the buffer when a write of the stream ends, by its `count`, whatever its status. If
 *    the coroutine is destroyed during the write, `finally` does the same: the write has been
 *    withdrawn by then, and its count is final.
 */
#define _GNU_SOURCE
#include "bide/stream.h"

#include "../coroutine/internal.h"
#include "../io/const_cast.h"
#include "size_min.h"
#include "vectors.h"

#include "bide/coroutine.h"

#include <errno.h>
#include <string.h>

void bide_writer_init(bide_writer *writer, bide_stream stream, void *buffer, size_t size)
{
    writer->stream = stream;
    writer->buffer = buffer;
    writer->size = size;
    writer->begin = 0;
    writer->end = 0;
    writer->of_buffer = 0;
    writer->is_writing = false;
}

/* The next bytes that the operation has to take: the rest of a vector. At least one is left. */
static char *writer_next_piece(const bide_writer_operation *operation, size_t *size)
{
    *size = operation->vectors->iov_len - operation->offset;
    return (char *)operation->vectors->iov_base + operation->offset;
}

/* Counts the next `count` bytes as taken, and passes over empty vectors. */
static void writer_advance(bide_writer_operation *operation, size_t count)
{
    bide_assert(count <= operation->rest);
    operation->count += count;
    vectors_pass(&operation->vectors, &operation->offset, &operation->rest, count);
}

/* Copies the next `count` bytes into the buffer, which has room for them: 1. */
static void writer_append(bide_writer_operation *operation, size_t count)
{
    bide_writer *writer = operation->writer;
    size_t buffered = bide_writer_buffered(writer);
    bide_assert(writer->begin <= writer->end && writer->end <= writer->size &&
                !writer->is_writing && count <= writer->size - buffered);
    if (writer->begin != 0) {
        memmove(writer->buffer, writer->buffer + writer->begin, buffered);
        writer->begin = 0;
        writer->end = buffered;
    }
    while (count != 0) {
        size_t size;
        const char *piece = writer_next_piece(operation, &size);
        size = size_min(size, count);
        memcpy(writer->buffer + writer->end, piece, size);
        writer->end += size;
        writer_advance(operation, size);
        count -= size;
    }
}

/* Attempts the operation on the buffer alone. -EAGAIN: bytes must be sent first. */
static int writer_attempt(bide_writer_operation *operation)
{
    bide_writer *writer = operation->writer;
    size_t buffered = bide_writer_buffered(writer);
    if (operation->is_flush)
        return buffered == 0 && operation->rest == 0 ? 0 : -EAGAIN;
    if (operation->rest > writer->size - buffered)
        return -EAGAIN;
    writer_append(operation, operation->rest);
    return 0;
}

/* Fills the vectors with the buffered bytes and the operation's own; as many as there is room for. */
static int writer_gather(bide_writer_operation *operation)
{
    bide_writer *writer = operation->writer;
    int count = 0;
    size_t rest = operation->rest;
    size_t offset = operation->offset;
    if (writer->of_buffer != 0) {
        writer->vectors[count].iov_base = writer->buffer + writer->begin;
        writer->vectors[count++].iov_len = writer->of_buffer;
    }
    for (const struct iovec *at = operation->vectors; rest != 0 && count < BIDE_WRITER_VECTORS_;
         at++) {
        size_t size = at->iov_len - offset;
        if (size != 0) {
            writer->vectors[count].iov_base = (char *)at->iov_base + offset;
            writer->vectors[count++].iov_len = size;
        }
        rest -= size;
        offset = 0;
    }
    return count;
}

/* Starts a write of the stream. */
static bide_awaiter *writer_start_write(bide_writer_operation *operation)
{
    bide_writer *writer = operation->writer;
    bide_stream stream = writer->stream;
    size_t size = 0;
    if (BIDE_UNLIKELY(writer->is_writing))
        bide_misused_behind_("two operations of a writer are under way at once",
                             &operation->task.frame);
    writer->of_buffer = bide_writer_buffered(writer);
    operation->status = -ECANCELED; /* stays if the coroutine is destroyed */
    if (stream.table->write_vectors != NULL) {
        int count = writer_gather(operation);
        bide_assert(count > 0);
        writer->is_writing = true;
        if (count > 1)
            return stream.table->write_vectors(stream, &writer->operation, writer->vectors, count);
        return bide_stream_write(&writer->operation, stream, writer->vectors[0].iov_base,
                                 writer->vectors[0].iov_len);
    }
    char *piece = operation->rest != 0 ? writer_next_piece(operation, &size) : NULL;
    /* Small pieces are collected until the buffer is full. */
    if (!operation->is_flush && size < writer->size) {
        writer_append(operation, size_min(operation->rest, writer->size - writer->of_buffer));
        writer->of_buffer = bide_writer_buffered(writer);
    }
    bide_assert(writer->begin <= writer->end && writer->end <= writer->size &&
                (writer->of_buffer != 0 || size != 0));
    writer->is_writing = true;
    if (writer->of_buffer != 0)
        return bide_stream_write(&writer->operation, stream, writer->buffer + writer->begin,
                                 writer->of_buffer);
    return bide_stream_write(&writer->operation, stream, piece, size);
}

/* The write of the stream has ended with `status`, or was withdrawn: 2. */
static void writer_finish_write(bide_writer_operation *operation)
{
    bide_writer *writer = operation->writer;
    size_t count = bide_stream_count(&writer->operation, writer->stream);
    size_t of_buffer = size_min(count, writer->of_buffer);
    bide_assert(writer->is_writing && writer->of_buffer <= bide_writer_buffered(writer));
    writer->is_writing = false;
    writer->begin += of_buffer;
    bide_assert(writer->begin <= writer->end && writer->end <= writer->size);
    if (writer->begin == writer->end) {
        writer->begin = 0;
        writer->end = 0;
    }
    writer_advance(operation, count - of_buffer);
    if (count == 0 && operation->status == 0) /* it would be retried forever */
        operation->status = -EIO;
}

static bool writer_ready(bide_awaiter *awaiter)
{
    bide_writer_operation *operation =
        bide_container_of(awaiter, bide_writer_operation, task.frame.awaiter);
    if (operation->is_end || writer_attempt(operation) != 0)
        return false;
    operation->task.frame.error = 0;
    return true;
}

static bide_next writer_operation_step_(bide_frame *frame, unsigned depth);
static const bide_coroutine_type *const writer_operation_type_ = &bide_task_type;
static const bide_coroutine_code writer_operation_code = {
    writer_operation_step_, "writer_operation", __FILE__, &writer_operation_type_, NULL};
static const bide_point writer_operation_start =
    BIDE_POINT_START_READY(writer_ready, &writer_operation_code);

bide_body(writer_operation)
{
    bide_begin(writer_operation, bide_writer_operation * self);
    while (writer_attempt(self) != 0) {
        bide_await_status(self->status, writer_start_write(self));
        writer_finish_write(self);
        if (self->status < 0)
            bide_return(self->status);
    }
    if (self->is_end)
        bide_try(bide_stream_shutdown_output(&self->writer->operation, self->writer->stream));
    bide_finally();
    if (self->writer->is_writing)
        writer_finish_write(self);
    bide_end();
}

static bide_awaiter *writer_operation_init(bide_writer_operation *operation, bide_writer *writer,
                                           const struct iovec *vectors, size_t size)
{
    operation->writer = writer;
    operation->vectors = vectors;
    operation->offset = 0;
    operation->rest = size;
    operation->count = 0;
    writer_advance(operation, 0); /* over empty vectors */
    operation->is_flush = false;
    operation->is_end = false;
    return bide_task_init(&operation->task, &writer_operation_start);
}

bide_awaiter *bide_writer_write(bide_writer_operation *operation, bide_writer *writer,
                                const void *data, size_t size)
{
    operation->only.iov_base = io_as_data(data);
    operation->only.iov_len = size;
    return writer_operation_init(operation, writer, &operation->only, size);
}

bide_awaiter *bide_writer_write_vectors(bide_writer_operation *operation, bide_writer *writer,
                                        const struct iovec *vectors, int count)
{
    size_t size = 0;
    for (int i = 0; i < count; i++)
        size += vectors[i].iov_len;
    return writer_operation_init(operation, writer, vectors, size);
}

bide_awaiter *bide_writer_flush(bide_writer_operation *operation, bide_writer *writer)
{
    bide_awaiter *awaiter = writer_operation_init(operation, writer, NULL, 0);
    operation->is_flush = true;
    return awaiter;
}

bide_awaiter *bide_writer_finish(bide_writer_operation *operation, bide_writer *writer)
{
    bide_awaiter *awaiter = bide_writer_flush(operation, writer);
    operation->is_end = true;
    return awaiter;
}

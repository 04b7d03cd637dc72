/*
 * Streams, readers and writers.
 *
 * An operation of a reader or a writer is a task. Its `ready` attempts it on the buffer alone, so
 * that what is buffered costs no suspension. Otherwise its body does one operation of the stream
 * after the other, and attempts it again after each.
 *
 *     reader   buffer |......|=========|..........|
 *                          begin      end        size
 *
 * 1. What comes from the stream is added to the buffer at once when the stream's operation has
 *    ended, whatever that ended with, by the count that it tells. If the coroutine is destroyed in
 *    the wait, that is done by `finally`, for then the stream's operation has been withdrawn and
 *    has said what it moved until then. So nothing that has left the stream is lost.
 * 2. Bytes leave the buffer when the operation ends with 0, all at once. A coroutine that is
 *    destroyed before it has been told has them put back (`give_back`): no other operation of the
 *    reader has begun since, so they stand right before `begin`. Only what was read past the
 *    buffer, or skipped, is gone by and by, and is told of by `count`.
 * 3. A bide_reader_read past the buffer, which is empty then, asks for no more than the buffer
 *    holds. So 2 holds for it too: its bytes are copied back.
 * 4. A writer's buffer is added to by the operation that has counted the bytes, and taken from when
 *    the stream has said how many it has sent, as in 1.
 */
#define _GNU_SOURCE
#include "bide/stream.h"

#include "../io/const_cast.h"
#include "vectors.h"

#include "bide/coroutine.h"

#include <errno.h>
#include <string.h>

static size_t min(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* ---- Descriptors ---- */

static size_t descriptor_count(const bide_stream_operation *operation)
{
    return operation->io.count;
}

static int descriptor_close(bide_stream stream)
{
    return bide_close(stream.object);
}

static bide_awaiter *socket_read(bide_stream stream, bide_stream_operation *operation, void *data,
                                 size_t size)
{
    return bide_recv(&operation->io, stream.object, data, size);
}

static bide_awaiter *socket_write(bide_stream stream, bide_stream_operation *operation,
                                  const void *data, size_t size)
{
    return bide_send(&operation->io, stream.object, data, size);
}

static bide_awaiter *socket_write_vectors(bide_stream stream, bide_stream_operation *operation,
                                          const struct iovec *vectors, int count)
{
    struct msghdr *message = &operation->message.message;
    memset(message, 0, sizeof *message);
    message->msg_iov = io_as_data(vectors);
    message->msg_iovlen = (size_t)count;
    return bide_sendmsg(&operation->message.io, stream.object, message, MSG_NOSIGNAL);
}

static bide_awaiter *socket_end_output(bide_stream stream, bide_stream_operation *operation)
{
    return bide_stream_ended(operation, bide_shutdown(stream.object, BIDE_HALF_OUTPUT));
}

bide_stream bide_socket_stream(bide_descriptor *socket)
{
    static const bide_stream_table table = {
        .name = "socket",
        .read = socket_read,
        .write = socket_write,
        .write_vectors = socket_write_vectors,
        .count = descriptor_count,
        .shutdown_output = socket_end_output,
        .close = descriptor_close,
    };
    bide_stream stream = {&table, socket};
    return stream;
}

static bide_awaiter *file_read(bide_stream stream, bide_stream_operation *operation, void *data,
                               size_t size)
{
    return bide_read(&operation->file, stream.object, data, size);
}

static bide_awaiter *file_write(bide_stream stream, bide_stream_operation *operation,
                                const void *data, size_t size)
{
    return bide_write(&operation->file, stream.object, data, size);
}

static bide_awaiter *file_write_vectors(bide_stream stream, bide_stream_operation *operation,
                                        const struct iovec *vectors, int count)
{
    return bide_writev(&operation->file, stream.object, vectors, count, -1);
}

static bide_awaiter *file_end_output(bide_stream stream, bide_stream_operation *operation)
{
    return bide_stream_ended(operation, bide_close(stream.object));
}

bide_stream bide_file_stream(bide_descriptor *file)
{
    static const bide_stream_table table = {
        .name = "file",
        .read = file_read,
        .write = file_write,
        .write_vectors = file_write_vectors,
        .count = descriptor_count,
        .shutdown_output = file_end_output,
        .close = descriptor_close,
    };
    bide_stream stream = {&table, file};
    return stream;
}

/* ---- Reading: on the buffer alone ---- */

void bide_reader_init(bide_reader *reader, bide_stream stream, void *buffer, size_t size)
{
    reader->stream = stream;
    reader->buffer = buffer;
    reader->size = size;
    reader->begin = 0;
    reader->end = 0;
    reader->has_ended = false;
    reader->is_reading = false;
    reader->is_direct = false;
}

/* What it asks for is not buffered. */
static int needs_more(const bide_reader_operation *operation)
{
    const bide_reader *reader = operation->reader;
    if (!reader->has_ended)
        return -EAGAIN;
    return bide_reader_buffered(reader) != 0 || operation->count != 0 ? -ENODATA : -EPIPE;
}

/* It has the next `taken` bytes, of which `count` are the result, where they are. */
static int have(bide_reader_operation *operation, size_t count, size_t taken)
{
    bide_reader *reader = operation->reader;
    operation->data = reader->buffer + reader->begin;
    operation->count = count;
    operation->taken = taken;
    reader->begin += taken;
    return 0;
}

/* It gets the next `count` bytes into its own memory. */
static void get(bide_reader_operation *operation, size_t count)
{
    bide_reader *reader = operation->reader;
    if (count == 0)
        return;
    memcpy(operation->data + operation->count, reader->buffer + reader->begin, count);
    operation->count += count;
    reader->begin += count;
}

static int attempt_read(bide_reader_operation *operation)
{
    size_t count = min(bide_reader_buffered(operation->reader), operation->size);
    if (operation->count != 0 || operation->size == 0) /* it was read past the buffer; 3 */
        return 0;
    if (count == 0)
        return needs_more(operation);
    get(operation, count);
    operation->taken = count;
    return 0;
}

static int attempt_exact(bide_reader_operation *operation)
{
    bide_reader *reader = operation->reader;
    size_t buffered = bide_reader_buffered(reader);
    if (operation->size <= reader->size) {
        if (buffered < operation->size)
            return needs_more(operation);
        get(operation, operation->size);
        operation->taken = operation->size;
        return 0;
    }
    get(operation, min(buffered, operation->size - operation->count));
    return operation->count == operation->size ? 0 : needs_more(operation);
}

/* Where the delimiter is, counted from `begin`. False: it is not there. */
static bool find(bide_reader_operation *operation, size_t *place)
{
    const bide_reader *reader = operation->reader;
    const char *begin = reader->buffer + reader->begin;
    size_t buffered = bide_reader_buffered(reader);
    const char *found = buffered > operation->scanned
                            ? memchr(begin + operation->scanned, operation->delimiter,
                                     buffered - operation->scanned)
                            : NULL;
    operation->scanned = buffered;
    *place = found != NULL ? (size_t)(found - begin) : 0;
    return found != NULL;
}

static int attempt_until(bide_reader_operation *operation)
{
    const bide_reader *reader = operation->reader;
    size_t place;
    if (find(operation, &place))
        return have(operation, place + 1, place + 1);
    return bide_reader_buffered(reader) == reader->size ? -EMSGSIZE : needs_more(operation);
}

static int attempt_line(bide_reader_operation *operation)
{
    const bide_reader *reader = operation->reader;
    size_t buffered = bide_reader_buffered(reader);
    size_t place;
    if (find(operation, &place)) {
        bool returns = place != 0 && reader->buffer[reader->begin + place - 1] == '\r';
        return have(operation, returns ? place - 1 : place, place + 1);
    }
    if (reader->has_ended && buffered != 0)
        return have(operation, buffered, buffered);
    return buffered == reader->size ? -EMSGSIZE : needs_more(operation);
}

static int attempt_fill(bide_reader_operation *operation)
{
    const bide_reader *reader = operation->reader;
    size_t buffered = bide_reader_buffered(reader);
    if (buffered >= operation->size)
        return have(operation, buffered, 0);
    return operation->size > reader->size ? -EMSGSIZE : needs_more(operation);
}

static int attempt_skip(bide_reader_operation *operation)
{
    bide_reader *reader = operation->reader;
    size_t count = min(bide_reader_buffered(reader), operation->size - operation->count);
    operation->count += count;
    reader->begin += count;
    return operation->count == operation->size ? 0 : needs_more(operation);
}

/* ---- Reading: more ---- */

/* Begins to read from the stream: into the buffer, or past it. */
static bide_awaiter *begin_reading(bide_reader_operation *operation)
{
    bide_reader *reader = operation->reader;
    size_t buffered = bide_reader_buffered(reader);
    size_t wanted = operation->size - operation->count;
    if (BIDE_UNLIKELY(reader->is_reading))
        bide_platform.misuse("two operations of a reader are under way at once", "bide_reader",
                             __FILE__, __LINE__);
    if (buffered != 0 && reader->begin != 0)
        memmove(reader->buffer, reader->buffer + reader->begin, buffered);
    reader->begin = 0;
    reader->end = buffered;
    reader->is_reading = true;
    reader->is_direct = buffered == 0 && wanted >= reader->size &&
                        (operation->attempt_ == attempt_read ||
                         (operation->is_exact && operation->size > reader->size));
    operation->status = -ECANCELED; /* if it is destroyed */
    if (reader->is_direct)
        return bide_stream_read(&reader->operation, reader->stream,
                                operation->data + operation->count,
                                operation->is_exact ? wanted : reader->size); /* 3 */
    return bide_stream_read(&reader->operation, reader->stream, reader->buffer + buffered,
                            reader->size - buffered);
}

/* The stream's operation has ended with `status`, or was withdrawn. 1 */
static void end_reading(bide_reader_operation *operation)
{
    bide_reader *reader = operation->reader;
    size_t count = bide_stream_count(&reader->operation, reader->stream);
    reader->is_reading = false;
    if (!reader->is_direct) {
        reader->end += count;
    } else if (operation->is_exact || operation->status == 0) {
        operation->count += count;
    } else if (count != 0) { /* 3 */
        memcpy(reader->buffer, operation->data, count);
        reader->end = count;
    }
    if (operation->status == 0 && count == 0)
        reader->has_ended = true;
}

/* The result will have no user: 2. */
static void reader_give_back(bide_frame *frame)
{
    bide_reader_operation *operation = bide_container_of(frame, bide_reader_operation, task.frame);
    bide_reader *reader = operation->reader;
    if (operation->attempt_ == attempt_read && operation->taken == 0 && operation->count != 0) {
        memcpy(reader->buffer, operation->data, operation->count); /* 3 */
        reader->begin = 0;
        reader->end = operation->count;
        operation->count = 0;
        return;
    }
    if (operation->taken == 0)
        return;
    reader->begin -= operation->taken;
    operation->taken = 0;
    operation->count = 0;
}

static bool reader_ready(bide_awaiter *awaiter)
{
    bide_reader_operation *operation =
        bide_container_of(awaiter, bide_reader_operation, task.frame.awaiter);
    int status = operation->attempt_(operation);
    if (status == -EAGAIN)
        return false;
    operation->task.frame.error = status;
    return true;
}

static bide_next reader_operation_step_(bide_frame *frame, unsigned depth);
static const bide_coroutine_type reader_type = {.name = "task", .release = reader_give_back};
static const bide_coroutine_type *const reader_operation_type_ = &reader_type;
static const bide_coroutine_code reader_operation_code = {
    reader_operation_step_, "reader_operation", __FILE__, &reader_operation_type_, NULL};
static const bide_point reader_operation_start =
    BIDE_POINT_START_READY(reader_ready, &reader_operation_code);

bide_body(reader_operation)
{
    bide_begin(reader_operation, bide_reader_operation * self);
    for (;;) {
        int status = self->attempt_(self);
        if (status != -EAGAIN)
            bide_return(status);
        bide_await_status(self->status, begin_reading(self));
        end_reading(self);
        if (self->status < 0)
            bide_return(self->status);
    }
    bide_finally();
    if (self->reader->is_reading)
        end_reading(self);
    bide_end();
}

static bide_awaiter *reader_begin(bide_reader_operation *operation, bide_reader *reader, void *data,
                                  size_t size, int (*attempt)(bide_reader_operation *operation))
{
    operation->reader = reader;
    operation->data = data;
    operation->count = 0;
    operation->size = size;
    operation->taken = 0;
    operation->scanned = 0;
    operation->attempt_ = attempt;
    operation->is_exact = attempt == attempt_exact;
    return bide_task_init(&operation->task, &reader_operation_start);
}

bide_awaiter *bide_reader_read(bide_reader_operation *operation, bide_reader *reader, void *data,
                               size_t size)
{
    return reader_begin(operation, reader, data, size, attempt_read);
}

bide_awaiter *bide_reader_read_exact(bide_reader_operation *operation, bide_reader *reader,
                                     void *data, size_t size)
{
    return reader_begin(operation, reader, data, size, attempt_exact);
}

bide_awaiter *bide_reader_read_until(bide_reader_operation *operation, bide_reader *reader,
                                     char delimiter)
{
    operation->delimiter = delimiter;
    return reader_begin(operation, reader, NULL, 0, attempt_until);
}

bide_awaiter *bide_reader_read_line(bide_reader_operation *operation, bide_reader *reader)
{
    operation->delimiter = '\n';
    return reader_begin(operation, reader, NULL, 0, attempt_line);
}

bide_awaiter *bide_reader_fill(bide_reader_operation *operation, bide_reader *reader, size_t size)
{
    return reader_begin(operation, reader, NULL, size, attempt_fill);
}

bide_awaiter *bide_reader_skip(bide_reader_operation *operation, bide_reader *reader, size_t size)
{
    return reader_begin(operation, reader, NULL, size, attempt_skip);
}

/* ---- Writing ---- */

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

/* What is next to be taken: the rest of a vector. There is some. */
static char *next_piece(const bide_writer_operation *operation, size_t *size)
{
    *size = operation->vectors->iov_len - operation->offset;
    return (char *)operation->vectors->iov_base + operation->offset;
}

/* `count` bytes were taken, of the rest. */
static void advance(bide_writer_operation *operation, size_t count)
{
    operation->count += count;
    vectors_pass(&operation->vectors, &operation->offset, &operation->rest, count);
}

/* Takes the next `count` bytes, for which there is room, into the buffer. 4 */
static void put(bide_writer_operation *operation, size_t count)
{
    bide_writer *writer = operation->writer;
    size_t buffered = bide_writer_buffered(writer);
    if (writer->begin != 0) {
        memmove(writer->buffer, writer->buffer + writer->begin, buffered);
        writer->begin = 0;
        writer->end = buffered;
    }
    while (count != 0) {
        size_t size;
        const char *piece = next_piece(operation, &size);
        size = min(size, count);
        memcpy(writer->buffer + writer->end, piece, size);
        writer->end += size;
        advance(operation, size);
        count -= size;
    }
}

/* On the buffer alone: 0, or there is something to be sent first. */
static int attempt_write(bide_writer_operation *operation)
{
    bide_writer *writer = operation->writer;
    size_t buffered = bide_writer_buffered(writer);
    if (operation->is_flush)
        return buffered == 0 && operation->rest == 0 ? 0 : -EAGAIN;
    if (operation->rest > writer->size - buffered)
        return -EAGAIN;
    put(operation, operation->rest);
    return 0;
}

/* All of what is buffered and of what is to be written, as far as the vectors go. */
static int gather(bide_writer_operation *operation)
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

/* Begins to write to the stream. */
static bide_awaiter *begin_writing(bide_writer_operation *operation)
{
    bide_writer *writer = operation->writer;
    bide_stream stream = writer->stream;
    size_t size = 0;
    if (BIDE_UNLIKELY(writer->is_writing))
        bide_platform.misuse("two operations of a writer are under way at once", "bide_writer",
                             __FILE__, __LINE__);
    writer->is_writing = true;
    operation->status = -ECANCELED; /* if it is destroyed */
    writer->of_buffer = bide_writer_buffered(writer);
    if (stream.table->write_vectors != NULL) {
        int count = gather(operation);
        if (count > 1)
            return stream.table->write_vectors(stream, &writer->operation, writer->vectors, count);
        return bide_stream_write(&writer->operation, stream, writer->vectors[0].iov_base,
                                 writer->vectors[0].iov_len);
    }
    char *piece = operation->rest != 0 ? next_piece(operation, &size) : NULL;
    /* small pieces are gathered in the buffer, which is then full */
    if (!operation->is_flush && size < writer->size) {
        put(operation, min(operation->rest, writer->size - writer->of_buffer));
        writer->of_buffer = bide_writer_buffered(writer);
    }
    if (writer->of_buffer != 0)
        return bide_stream_write(&writer->operation, stream, writer->buffer + writer->begin,
                                 writer->of_buffer);
    return bide_stream_write(&writer->operation, stream, piece, size);
}

/* The stream's operation has ended with `status`, or was withdrawn. 4 */
static void end_writing(bide_writer_operation *operation)
{
    bide_writer *writer = operation->writer;
    size_t count = bide_stream_count(&writer->operation, writer->stream);
    size_t of_buffer = min(count, writer->of_buffer);
    writer->is_writing = false;
    writer->begin += of_buffer;
    if (writer->begin == writer->end) {
        writer->begin = 0;
        writer->end = 0;
    }
    advance(operation, count - of_buffer);
    if (count == 0 && operation->status == 0) /* it would go on for ever */
        operation->status = -EIO;
}

static bool writer_ready(bide_awaiter *awaiter)
{
    bide_writer_operation *operation =
        bide_container_of(awaiter, bide_writer_operation, task.frame.awaiter);
    if (operation->is_end || attempt_write(operation) != 0)
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
    while (attempt_write(self) != 0) {
        bide_await_status(self->status, begin_writing(self));
        end_writing(self);
        if (self->status < 0)
            bide_return(self->status);
    }
    if (self->is_end)
        bide_try(bide_stream_shutdown_output(&self->writer->operation, self->writer->stream));
    bide_finally();
    if (self->writer->is_writing)
        end_writing(self);
    bide_end();
}

static bide_awaiter *writer_begin(bide_writer_operation *operation, bide_writer *writer,
                                  const struct iovec *vectors, size_t size)
{
    operation->writer = writer;
    operation->vectors = vectors;
    operation->offset = 0;
    operation->rest = size;
    operation->count = 0;
    advance(operation, 0); /* over those that are empty */
    operation->is_flush = false;
    operation->is_end = false;
    return bide_task_init(&operation->task, &writer_operation_start);
}

bide_awaiter *bide_writer_write(bide_writer_operation *operation, bide_writer *writer,
                                const void *data, size_t size)
{
    operation->only.iov_base = io_as_data(data);
    operation->only.iov_len = size;
    return writer_begin(operation, writer, &operation->only, size);
}

bide_awaiter *bide_writer_write_vectors(bide_writer_operation *operation, bide_writer *writer,
                                        const struct iovec *vectors, int count)
{
    size_t size = 0;
    for (int i = 0; i < count; i++)
        size += vectors[i].iov_len;
    return writer_begin(operation, writer, vectors, size);
}

bide_awaiter *bide_writer_flush(bide_writer_operation *operation, bide_writer *writer)
{
    bide_awaiter *awaiter = writer_begin(operation, writer, NULL, 0);
    operation->is_flush = true;
    return awaiter;
}

bide_awaiter *bide_writer_finish(bide_writer_operation *operation, bide_writer *writer)
{
    bide_awaiter *awaiter = bide_writer_flush(operation, writer);
    operation->is_end = true;
    return awaiter;
}

/* ---- Copying ---- */

/* Begins to send what is buffered, of both. */
static bide_awaiter *begin_sending(bide_copy_operation *copy)
{
    const bide_reader *from = copy->from;
    size_t size = bide_reader_buffered(from);
    if (size > copy->max - copy->count)
        size = (size_t)(copy->max - copy->count);
    bide_awaiter *awaiter =
        bide_writer_write(&copy->write, copy->to, from->buffer + from->begin, size);
    copy->write.is_flush = true;
    copy->is_writing = true;
    return awaiter;
}

/* It has ended, or was destroyed: what was sent has left the reader. */
static void end_sending(bide_copy_operation *copy)
{
    copy->is_writing = false;
    copy->count += copy->write.count;
    bide_reader_consume(copy->from, copy->write.count);
}

bide_coroutine(copy_body)
{
    bide_begin(copy_body, bide_copy_operation * self);
    for (;;) {
        bide_await_status(self->status, begin_sending(self));
        end_sending(self);
        if (self->status < 0 || self->count == self->max)
            bide_return(self->status);
        bide_await_status(self->status, bide_reader_fill(&self->fill, self->from, 1));
        if (self->status == -EPIPE && self->from->has_ended)
            bide_return(0);
        if (self->status < 0)
            bide_return(self->status);
    }
    bide_finally();
    if (self->is_writing)
        end_sending(self);
    bide_end();
}

bide_awaiter *bide_copy(bide_copy_operation *operation, bide_reader *from, bide_writer *to,
                        uint64_t max)
{
    operation->from = from;
    operation->to = to;
    operation->max = max;
    operation->count = 0;
    operation->is_writing = false;
    return bide_task_init(&operation->task, &copy_body);
}

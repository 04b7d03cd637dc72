/*
 * Readers: buffered reading from a stream.
 *
 *     buffer |......|=========|..........|
 *                 begin      end        size
 *
 * An operation is a task. Its `ready` attempts it on the buffer alone, so an operation whose bytes
 * are buffered does not suspend. Otherwise its body reads from the stream, one operation at a time,
 * and attempts again after each. One operation uses a reader at a time, on the stream's threads.
 *
 * 1. Bytes that leave the stream are never lost. When a read of the stream ends, for whatever
 *    reason, its `count` is added to the buffer at once. If the coroutine is destroyed during the
 *    read, `finally` adds the count: the read has been withdrawn by then, and its count is final.
 * 2. Bytes leave the buffer all at once, when the operation ends with 0. If the coroutine is
 *    destroyed before it resumes with the result, `reader_release` puts them back. No other
 *    operation of the reader has started since, so they still precede `begin`. Two operations are
 *    exceptions: a bide_reader_read_exact of more bytes than the buffer holds, and a
 *    bide_reader_skip. They consume bytes as these arrive, and `count` reports how many.
 * 3. A bide_reader_read that bypasses the buffer starts when the buffer is empty, and reads at most
 *    the buffer's size. So 2 holds for it too: its bytes are copied back into the buffer.
 */
#define _GNU_SOURCE
#include "bide/stream.h"

#include "../coroutine/internal.h"
#include "size_min.h"

#include "bide/coroutine.h"

#include <errno.h>
#include <string.h>

/* ---- Attempts, on the buffer alone ---- */

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

/* The status of an attempt that the buffered bytes do not satisfy. */
static int reader_needs_more(const bide_reader_operation *operation)
{
    const bide_reader *reader = operation->reader;
    if (!reader->has_ended)
        return -EAGAIN;
    return bide_reader_buffered(reader) != 0 || operation->count != 0 ? -ENODATA : -EPIPE;
}

/* Completes with the next `count` bytes in place; `taken` bytes leave the buffer. */
static int reader_lend(bide_reader_operation *operation, size_t count, size_t taken)
{
    bide_reader *reader = operation->reader;
    bide_assert(count <= bide_reader_buffered(reader) && taken <= bide_reader_buffered(reader));
    operation->data = reader->buffer + reader->begin;
    operation->count = count;
    operation->taken = taken;
    reader->begin += taken;
    return 0;
}

/* Moves the next `count` bytes to the caller's memory. */
static void reader_copy_out(bide_reader_operation *operation, size_t count)
{
    bide_reader *reader = operation->reader;
    if (count == 0)
        return;
    bide_assert(count <= bide_reader_buffered(reader) &&
                count <= operation->size - operation->count);
    memcpy(operation->data + operation->count, reader->buffer + reader->begin, count);
    operation->count += count;
    reader->begin += count;
}

static int reader_attempt_read(bide_reader_operation *operation)
{
    size_t count = size_min(bide_reader_buffered(operation->reader), operation->size);
    if (operation->count != 0 || operation->size == 0) /* the read bypassed the buffer: 3 */
        return 0;
    if (count == 0)
        return reader_needs_more(operation);
    reader_copy_out(operation, count);
    operation->taken = count;
    return 0;
}

static int reader_attempt_exact(bide_reader_operation *operation)
{
    bide_reader *reader = operation->reader;
    size_t buffered = bide_reader_buffered(reader);
    if (operation->size <= reader->size) {
        if (buffered < operation->size)
            return reader_needs_more(operation);
        reader_copy_out(operation, operation->size);
        operation->taken = operation->size;
        return 0;
    }
    reader_copy_out(operation, size_min(buffered, operation->size - operation->count));
    return operation->count == operation->size ? 0 : reader_needs_more(operation);
}

/* Finds the delimiter; `*place` counts from `begin`. Bytes are scanned once. */
static bool reader_find(bide_reader_operation *operation, size_t *place)
{
    const bide_reader *reader = operation->reader;
    const char *begin = reader->buffer + reader->begin;
    size_t buffered = bide_reader_buffered(reader);
    bide_assert(operation->scanned <= reader->size);
    const char *found = buffered > operation->scanned
                            ? memchr(begin + operation->scanned, operation->delimiter,
                                     buffered - operation->scanned)
                            : NULL;
    operation->scanned = buffered;
    *place = found != NULL ? (size_t)(found - begin) : 0;
    return found != NULL;
}

static int reader_attempt_until(bide_reader_operation *operation)
{
    const bide_reader *reader = operation->reader;
    size_t place;
    if (reader_find(operation, &place))
        return reader_lend(operation, place + 1, place + 1);
    return bide_reader_buffered(reader) == reader->size ? -EMSGSIZE : reader_needs_more(operation);
}

static int reader_attempt_line(bide_reader_operation *operation)
{
    const bide_reader *reader = operation->reader;
    size_t buffered = bide_reader_buffered(reader);
    size_t place;
    if (reader_find(operation, &place)) {
        bool has_return = place != 0 && reader->buffer[reader->begin + place - 1] == '\r';
        return reader_lend(operation, has_return ? place - 1 : place, place + 1);
    }
    if (reader->has_ended && buffered != 0)
        return reader_lend(operation, buffered, buffered);
    return buffered == reader->size ? -EMSGSIZE : reader_needs_more(operation);
}

static int reader_attempt_fill(bide_reader_operation *operation)
{
    const bide_reader *reader = operation->reader;
    size_t buffered = bide_reader_buffered(reader);
    if (buffered >= operation->size)
        return reader_lend(operation, buffered, 0);
    return operation->size > reader->size ? -EMSGSIZE : reader_needs_more(operation);
}

static int reader_attempt_skip(bide_reader_operation *operation)
{
    bide_reader *reader = operation->reader;
    size_t count = size_min(bide_reader_buffered(reader), operation->size - operation->count);
    operation->count += count;
    reader->begin += count;
    return operation->count == operation->size ? 0 : reader_needs_more(operation);
}

/* ---- Reads of the stream ---- */

/* Starts a read of the stream, into the buffer or directly into the caller's memory. */
static bide_awaiter *reader_start_read(bide_reader_operation *operation)
{
    bide_reader *reader = operation->reader;
    size_t buffered = bide_reader_buffered(reader);
    size_t wanted = operation->size - operation->count;
    bide_assert(reader->begin <= reader->end && reader->end <= reader->size &&
                operation->taken == 0);
    if (BIDE_UNLIKELY(reader->is_reading))
        bide_misused_behind_("two operations of a reader are under way at once",
                             &operation->task.frame);
    if (buffered != 0 && reader->begin != 0)
        memmove(reader->buffer, reader->buffer + reader->begin, buffered);
    reader->begin = 0;
    reader->end = buffered;
    reader->is_reading = true;
    reader->is_direct = buffered == 0 && wanted >= reader->size &&
                        (operation->attempt_ == reader_attempt_read ||
                         (operation->is_exact && operation->size > reader->size));
    operation->status = -ECANCELED; /* stays if the coroutine is destroyed */
    if (reader->is_direct)
        return bide_stream_read(&reader->operation, reader->stream,
                                operation->data + operation->count,
                                operation->is_exact ? wanted : reader->size); /* 3 */
    return bide_stream_read(&reader->operation, reader->stream, reader->buffer + buffered,
                            reader->size - buffered);
}

/* The read of the stream has ended with `status`, or was withdrawn: 1. */
static void reader_finish_read(bide_reader_operation *operation)
{
    bide_reader *reader = operation->reader;
    size_t count = bide_stream_count(&reader->operation, reader->stream);
    bide_assert(reader->is_reading && reader->begin == 0);
    reader->is_reading = false;
    if (!reader->is_direct) {
        bide_assert(count <= reader->size - reader->end);
        reader->end += count;
    } else if (operation->is_exact || operation->status == 0) {
        bide_assert(reader->end == 0 && count <= operation->size - operation->count);
        operation->count += count;
    } else if (count != 0) { /* 3 */
        bide_assert(reader->end == 0 && count <= reader->size);
        memcpy(reader->buffer, operation->data, count);
        reader->end = count;
    }
    if (operation->status == 0 && count == 0)
        reader->has_ended = true;
}

/* The coroutine is destroyed before it resumes with the result: 2. */
static void reader_release(bide_frame *frame)
{
    bide_reader_operation *operation = bide_container_of(frame, bide_reader_operation, task.frame);
    bide_reader *reader = operation->reader;
    if (operation->attempt_ == reader_attempt_read && operation->taken == 0 &&
        operation->count != 0) {
        bide_assert(bide_reader_buffered(reader) == 0 && operation->count <= reader->size);
        memcpy(reader->buffer, operation->data, operation->count); /* 3 */
        reader->begin = 0;
        reader->end = operation->count;
        operation->count = 0;
        return;
    }
    if (operation->taken == 0)
        return;
    bide_assert(!reader->is_reading && reader->begin >= operation->taken);
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
static const bide_coroutine_type reader_type = {.name = "task", .release = reader_release};
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
        bide_await_status(self->status, reader_start_read(self));
        reader_finish_read(self);
        if (self->status < 0)
            bide_return(self->status);
    }
    bide_finally();
    if (self->reader->is_reading)
        reader_finish_read(self);
    bide_end();
}

static bide_awaiter *reader_operation_init(bide_reader_operation *operation, bide_reader *reader,
                                           void *data, size_t size,
                                           int (*attempt)(bide_reader_operation *operation))
{
    operation->reader = reader;
    operation->data = data;
    operation->count = 0;
    operation->size = size;
    operation->taken = 0;
    operation->scanned = 0;
    operation->attempt_ = attempt;
    operation->is_exact = attempt == reader_attempt_exact;
    return bide_task_init(&operation->task, &reader_operation_start);
}

bide_awaiter *bide_reader_read(bide_reader_operation *operation, bide_reader *reader, void *data,
                               size_t size)
{
    return reader_operation_init(operation, reader, data, size, reader_attempt_read);
}

bide_awaiter *bide_reader_read_exact(bide_reader_operation *operation, bide_reader *reader,
                                     void *data, size_t size)
{
    return reader_operation_init(operation, reader, data, size, reader_attempt_exact);
}

bide_awaiter *bide_reader_read_until(bide_reader_operation *operation, bide_reader *reader,
                                     char delimiter)
{
    operation->delimiter = delimiter;
    return reader_operation_init(operation, reader, NULL, 0, reader_attempt_until);
}

bide_awaiter *bide_reader_read_line(bide_reader_operation *operation, bide_reader *reader)
{
    operation->delimiter = '\n';
    return reader_operation_init(operation, reader, NULL, 0, reader_attempt_line);
}

bide_awaiter *bide_reader_fill(bide_reader_operation *operation, bide_reader *reader, size_t size)
{
    return reader_operation_init(operation, reader, NULL, size, reader_attempt_fill);
}

bide_awaiter *bide_reader_skip(bide_reader_operation *operation, bide_reader *reader, size_t size)
{
    return reader_operation_init(operation, reader, NULL, size, reader_attempt_skip);
}

/*
 * Pipes in memory: a ring of bytes between one reader and one writer.
 *
 * Each side counts the bytes that it has moved, modulo twice the ring's size. So the difference of the
 * counts is the number of bytes in the ring, and a count alone determines the place in the ring, for
 * any size. Reader and writer may run on different threads: the reader alone stores `taken`, the
 * writer alone stores `written`. This file has no other part of streams in it, because the model
 * checker explores it.
 *
 * 1. The writer stores `written` (release) after it has copied bytes in; the reader loads it
 *    (acquire) before it copies them out. The reader stores `taken` (release) after it has copied
 *    bytes out; the writer loads it (acquire) before it overwrites them. Each side owns its own
 *    count, and loads it relaxed.
 * 2. `ended` is stored (release) after the last `written`. The reader loads it (acquire) before it
 *    loads `written`. So a reader that finds it set sees all the bytes. `refused` orders nothing.
 * 3. No wake-up is lost. After each change of 1 or 2, a side sets the other side's event. The event
 *    stays set until it is consumed, and its set releases the change. Each side waits for its event
 *    only after a failed attempt, and attempts again after each wait.
 */
#include "bide/stream.h"

#include "../io/const_cast.h"

#include "size_min.h"
#include "bide/coroutine.h"

#include <errno.h>
#include <string.h>

#if BIDE_CHECK
/* The checker observes copies through this function; gcc does not substitute it for memcpy itself. */
void *__tsan_memcpy(void *to, const void *from, size_t size);
#define memcpy __tsan_memcpy
#endif

/* ---- Operations that have already ended ---- */

static bool stream_ended_ready(bide_awaiter *awaiter)
{
    (void)awaiter;
    return true;
}

static int stream_ended_resume(bide_awaiter *awaiter)
{
    return ((bide_stream_operation *)(void *)awaiter)->ended.status;
}

bide_awaiter *bide_stream_ended(bide_stream_operation *operation, int status)
{
    static const bide_awaiter_ops ops = {
        .ready = stream_ended_ready,
        .resume = stream_ended_resume,
        .name = "bide_stream_ended",
    };
    operation->ended.awaiter.ops = &ops;
    operation->ended.status = status;
    operation->table = NULL; /* awaited by itself, it has moved nothing */
    return &operation->ended.awaiter;
}

/* ---- Memory ---- */

void bide_memory_pipe_init(bide_memory_pipe *pipe, void *buffer, size_t size)
{
    pipe->buffer = buffer;
    pipe->size = size;
    bide_atomic_init(&pipe->written, 0);
    bide_atomic_init(&pipe->taken, 0);
    bide_atomic_init(&pipe->ended, false);
    bide_atomic_init(&pipe->refused, false);
    bide_single_consumer_auto_event_init(&pipe->bytes, false);
    bide_single_consumer_auto_event_init(&pipe->room, false);
}

void bide_memory_pipe_destroy(bide_memory_pipe *pipe)
{
    bide_atomic_store(&pipe->ended, true, release); /* 2 */
    bide_single_consumer_auto_event_set(&pipe->room);
    bide_single_consumer_auto_event_set(&pipe->bytes);
}

void bide_memory_pipe_reject(bide_memory_pipe *pipe)
{
    bide_atomic_store(&pipe->refused, true, relaxed); /* 2, 3 */
    bide_single_consumer_auto_event_set(&pipe->room);
    bide_single_consumer_auto_event_set(&pipe->bytes);
}

/* The bytes in the ring: the difference of two counts. */
static size_t memory_pipe_filled(const bide_memory_pipe *pipe, size_t written, size_t taken)
{
    size_t filled = written >= taken ? written - taken : 2 * pipe->size - (taken - written);
    bide_assert(filled <= pipe->size);
    return filled;
}

static size_t memory_pipe_add(const bide_memory_pipe *pipe, size_t total, size_t count)
{
    size_t until_wrap = 2 * pipe->size - total;
    bide_assert(total < 2 * pipe->size && count <= pipe->size);
    return count < until_wrap ? total + count : count - until_wrap;
}

/* Copies `count` bytes out of the ring, beginning at the count `from`. */
static void memory_pipe_copy_out(const bide_memory_pipe *pipe, size_t from, char *data,
                                 size_t count)
{
    size_t place = from < pipe->size ? from : from - pipe->size;
    size_t first = size_min(count, pipe->size - place);
    memcpy(data, pipe->buffer + place, first);
    memcpy(data + first, pipe->buffer, count - first);
}

/* Copies `count` bytes into the ring, beginning at the count `from`. */
static void memory_pipe_copy_in(bide_memory_pipe *pipe, size_t from, const char *data, size_t count)
{
    size_t place = from < pipe->size ? from : from - pipe->size;
    size_t first = size_min(count, pipe->size - place);
    memcpy(pipe->buffer + place, data, first);
    memcpy(pipe->buffer, data + first, count - first);
}

static int memory_pipe_attempt_read(bide_memory_operation *operation)
{
    bide_memory_pipe *pipe = operation->pipe;
    bool ended = bide_atomic_load(&pipe->ended, acquire); /* 2, before `written` */
    size_t taken = bide_atomic_load(&pipe->taken, relaxed);
    size_t written = bide_atomic_load(&pipe->written, acquire); /* 1 */
    size_t count = size_min(memory_pipe_filled(pipe, written, taken), operation->size);
    if (bide_atomic_load(&pipe->refused, relaxed))
        return -EPIPE;
    if (count == 0)
        return ended ? 0 : -EAGAIN;
    memory_pipe_copy_out(pipe, taken, operation->data, count);
    operation->count = count;
    bide_atomic_store(&pipe->taken, memory_pipe_add(pipe, taken, count), release); /* 1 */
    bide_single_consumer_auto_event_set(&pipe->room);
    return 0;
}

static int memory_pipe_attempt_write(bide_memory_operation *operation)
{
    bide_memory_pipe *pipe = operation->pipe;
    size_t written = bide_atomic_load(&pipe->written, relaxed);
    if (bide_atomic_load(&pipe->refused, relaxed) || bide_atomic_load(&pipe->ended, relaxed))
        return -EPIPE;
    size_t taken = bide_atomic_load(&pipe->taken, acquire); /* 1 */
    size_t room = pipe->size - memory_pipe_filled(pipe, written, taken);
    size_t count = size_min(room, operation->size - operation->count);
    bide_assert(operation->count <= operation->size);
    if (count != 0) {
        memory_pipe_copy_in(pipe, written, operation->data + operation->count, count);
        operation->count += count;
        bide_atomic_store(&pipe->written, memory_pipe_add(pipe, written, count), release); /* 1 */
        bide_single_consumer_auto_event_set(&pipe->bytes);
    }
    return operation->count == operation->size ? 0 : -EAGAIN;
}

static bool memory_pipe_ready(bide_awaiter *awaiter)
{
    bide_memory_operation *operation =
        bide_container_of(awaiter, bide_memory_operation, task.frame.awaiter);
    int status = operation->attempt_(operation);
    if (status == -EAGAIN)
        return false;
    operation->task.frame.error = status;
    return true;
}

static bide_next memory_pipe_operation_step_(bide_frame *frame, unsigned depth);
static const bide_coroutine_type *const memory_pipe_operation_type_ = &bide_task_type;
static const bide_coroutine_code memory_pipe_operation_code = {memory_pipe_operation_step_,
                                                               "memory_pipe_operation", __FILE__,
                                                               &memory_pipe_operation_type_, NULL};
static const bide_point memory_pipe_operation_start =
    BIDE_POINT_START_READY(memory_pipe_ready, &memory_pipe_operation_code);

bide_body(memory_pipe_operation)
{
    bide_begin(memory_pipe_operation, bide_memory_operation * self);
    for (;;) {
        int status = self->attempt_(self);
        if (status != -EAGAIN)
            bide_return(status);
        bide_try(bide_single_consumer_auto_event_wait(
            &self->wait,
            self->attempt_ == memory_pipe_attempt_write ? &self->pipe->room : &self->pipe->bytes));
    }
    bide_end();
}

static bide_awaiter *memory_pipe_start(bide_stream_operation *operation, bide_memory_pipe *pipe,
                                       void *data, size_t size,
                                       int (*attempt)(bide_memory_operation *operation))
{
    bide_memory_operation *memory = &operation->memory;
    memory->count = 0;
    if (pipe == NULL)
        return bide_stream_ended(operation, -EPIPE);
    memory->pipe = pipe;
    memory->data = data;
    memory->size = size;
    memory->attempt_ = attempt;
    return bide_task_init(&memory->task, &memory_pipe_operation_start);
}

static bide_awaiter *memory_pipe_read(bide_stream stream, bide_stream_operation *operation,
                                      void *data, size_t size)
{
    const bide_memory_end *end = stream.object;
    return memory_pipe_start(operation, end->input, data, size, memory_pipe_attempt_read);
}

static bide_awaiter *memory_pipe_write(bide_stream stream, bide_stream_operation *operation,
                                       const void *data, size_t size)
{
    const bide_memory_end *end = stream.object;
    return memory_pipe_start(operation, end->output, io_as_data(data), size,
                             memory_pipe_attempt_write);
}

static size_t memory_pipe_count(const bide_stream_operation *operation)
{
    return operation->memory.count;
}

static bide_awaiter *memory_pipe_end_output(bide_stream stream, bide_stream_operation *operation)
{
    const bide_memory_end *end = stream.object;
    if (end->output != NULL)
        bide_memory_pipe_destroy(end->output);
    return bide_stream_ended(operation, 0);
}

static int memory_pipe_close(bide_stream stream)
{
    const bide_memory_end *end = stream.object;
    if (end->input != NULL)
        bide_memory_pipe_reject(end->input);
    if (end->output != NULL)
        bide_memory_pipe_destroy(end->output);
    return 0;
}

bide_stream bide_memory_stream(bide_memory_end *end)
{
    static const bide_stream_table table = {
        .name = "memory",
        .read = memory_pipe_read,
        .write = memory_pipe_write,
        .write_vectors = NULL,
        .count = memory_pipe_count,
        .shutdown_output = memory_pipe_end_output,
        .close = memory_pipe_close,
    };
    bide_stream stream = {&table, end};
    return stream;
}

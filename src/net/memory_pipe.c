/*
 * The pipe in memory: a ring of bytes with one reader and one writer, each with a count of its own,
 * which runs on for ever. It is a file of its own because it is all that threads have in common of
 * streams.
 *
 * 1. `written` is stored (release) after the bytes, and loaded (acquire) by the reader before it
 *    copies them. `taken` is stored (release) after they have been copied, and loaded (acquire) by
 *    the writer before it overwrites them. Each side knows its own count.
 * 2. `ended` is stored (release) after the last `written`, and loaded (acquire) before `written`
 *    is: so a reader that finds it has all counted bytes in view. `refused` carries nothing with
 *    it.
 * 3. No wake-up is lost: each change of 1 and 2 is followed by a set of the other side's event,
 *    which remembers it, and releases what was changed before; and each side waits for its event
 *    only after an attempt, and attempts again after each wait.
 */
#include "bide/stream.h"

#include "../io/const_cast.h"

#include "bide/coroutine.h"

#include <errno.h>
#include <string.h>

#if BIDE_CHECK
/* The checker sees what is copied by this; gcc does not put it in place of memcpy. */
void *__tsan_memcpy(void *to, const void *from, size_t size);
#define memcpy __tsan_memcpy
#endif

static size_t min(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* ---- Operations that have ended ---- */

static bool has_ended(bide_awaiter *awaiter)
{
    (void)awaiter;
    return true;
}

static int ended_resume(bide_awaiter *awaiter)
{
    return ((bide_stream_operation *)(void *)awaiter)->ended.status;
}

bide_awaiter *bide_stream_ended(bide_stream_operation *operation, int status)
{
    static const bide_awaiter_ops ops = {
        .ready = has_ended,
        .resume = ended_resume,
        .name = "bide_stream_ended",
    };
    operation->ended.awaiter.ops = &ops;
    operation->ended.status = status;
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

/* Copies out of the ring, or into it: the bytes from this count on. */
static void copy_out(const bide_memory_pipe *pipe, size_t from, char *data, size_t count)
{
    size_t place = from % pipe->size;
    size_t first = min(count, pipe->size - place);
    memcpy(data, pipe->buffer + place, first);
    memcpy(data + first, pipe->buffer, count - first);
}

static void copy_in(bide_memory_pipe *pipe, size_t from, const char *data, size_t count)
{
    size_t place = from % pipe->size;
    size_t first = min(count, pipe->size - place);
    memcpy(pipe->buffer + place, data, first);
    memcpy(pipe->buffer, data + first, count - first);
}

static int attempt_take(bide_memory_operation *operation)
{
    bide_memory_pipe *pipe = operation->pipe;
    bool ended = bide_atomic_load(&pipe->ended, acquire); /* 2, before `written` */
    size_t taken = bide_atomic_load(&pipe->taken, relaxed);
    size_t count =
        min(bide_atomic_load(&pipe->written, acquire) - taken, operation->size); /* 1 */
    if (bide_atomic_load(&pipe->refused, relaxed))
        return -EPIPE;
    if (count == 0)
        return ended ? 0 : -EAGAIN;
    copy_out(pipe, taken, operation->data, count);
    operation->count = count;
    bide_atomic_store(&pipe->taken, taken + count, release); /* 1 */
    bide_single_consumer_auto_event_set(&pipe->room);
    return 0;
}

static int attempt_put(bide_memory_operation *operation)
{
    bide_memory_pipe *pipe = operation->pipe;
    size_t written = bide_atomic_load(&pipe->written, relaxed);
    if (bide_atomic_load(&pipe->refused, relaxed) || bide_atomic_load(&pipe->ended, relaxed))
        return -EPIPE;
    size_t room = pipe->size - (written - bide_atomic_load(&pipe->taken, acquire)); /* 1 */
    size_t count = min(room, operation->size - operation->count);
    if (count != 0) {
        copy_in(pipe, written, operation->data + operation->count, count);
        operation->count += count;
        bide_atomic_store(&pipe->written, written + count, release); /* 1 */
        bide_single_consumer_auto_event_set(&pipe->bytes);
    }
    return operation->count == operation->size ? 0 : -EAGAIN;
}

static bool memory_ready(bide_awaiter *awaiter)
{
    bide_memory_operation *operation =
        bide_container_of(awaiter, bide_memory_operation, task.frame.awaiter);
    int status = operation->attempt_(operation);
    if (status == -EAGAIN)
        return false;
    operation->task.frame.error = status;
    return true;
}

static bide_next memory_operation_step_(bide_frame *frame, unsigned depth);
static const bide_coroutine_type *const memory_operation_type_ = &bide_task_type;
static const bide_coroutine_code memory_operation_code = {
    memory_operation_step_, "memory_operation", __FILE__, &memory_operation_type_, NULL};
static const bide_point memory_operation_start =
    BIDE_POINT_START_READY(memory_ready, &memory_operation_code);

bide_body(memory_operation)
{
    bide_begin(memory_operation, bide_memory_operation * self);
    for (;;) {
        int status = self->attempt_(self);
        if (status != -EAGAIN)
            bide_return(status);
        bide_try(bide_single_consumer_auto_event_wait(
            &self->wait, self->attempt_ == attempt_put ? &self->pipe->room : &self->pipe->bytes));
    }
    bide_end();
}

static bide_awaiter *memory_begin(bide_stream_operation *operation, bide_memory_pipe *pipe,
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
    return bide_task_init(&memory->task, &memory_operation_start);
}

static bide_awaiter *memory_read(bide_stream stream, bide_stream_operation *operation, void *data,
                                 size_t size)
{
    const bide_memory_end *end = stream.object;
    return memory_begin(operation, end->input, data, size, attempt_take);
}

static bide_awaiter *memory_write(bide_stream stream, bide_stream_operation *operation,
                                  const void *data, size_t size)
{
    const bide_memory_end *end = stream.object;
    return memory_begin(operation, end->output, io_as_data(data), size, attempt_put);
}

static size_t memory_count(const bide_stream_operation *operation)
{
    return operation->memory.count;
}

static bide_awaiter *memory_end_output(bide_stream stream, bide_stream_operation *operation)
{
    const bide_memory_end *end = stream.object;
    if (end->output != NULL)
        bide_memory_pipe_destroy(end->output);
    return bide_stream_ended(operation, 0);
}

static int bide_simulated_close_(bide_stream stream)
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
        .read = memory_read,
        .write = memory_write,
        .write_vectors = NULL,
        .count = memory_count,
        .shutdown_output = memory_end_output,
        .close = bide_simulated_close_,
    };
    bide_stream stream = {&table, end};
    return stream;
}

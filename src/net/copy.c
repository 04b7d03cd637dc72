/*
 * Copying from a reader to a writer.
 *
 * The writer takes bytes straight from the reader's buffer. They leave that buffer when the write has
 * ended, by the write's `count`, whatever its status. If the coroutine is destroyed during the write,
 * `finally` does the same: the write has been withdrawn by then, and its count is final.
 */
#include "bide/stream.h"

#include "bide/coroutine.h"

#include <errno.h>

/* Starts a write of the bytes that both buffers hold. */
static bide_awaiter *copy_start_write(bide_copy_operation *copy)
{
    const bide_reader *from = copy->from;
    size_t size = bide_reader_buffered(from);
    bide_assert(!copy->is_writing && copy->count <= copy->max);
    if (size > copy->max - copy->count)
        size = (size_t)(copy->max - copy->count);
    bide_awaiter *awaiter =
        bide_writer_write(&copy->write, copy->to, from->buffer + from->begin, size);
    copy->write.is_flush = true;
    copy->is_writing = true;
    return awaiter;
}

/* The write has ended or was withdrawn: the bytes that it took leave the reader. */
static void copy_finish_write(bide_copy_operation *copy)
{
    bide_assert(copy->is_writing && copy->write.count <= bide_reader_buffered(copy->from) &&
                copy->write.count <= copy->max - copy->count);
    copy->is_writing = false;
    copy->count += copy->write.count;
    bide_reader_consume(copy->from, copy->write.count);
}

bide_coroutine(stream_copy)
{
    bide_begin(stream_copy, bide_copy_operation * self);
    for (;;) {
        bide_await_status(self->status, copy_start_write(self));
        copy_finish_write(self);
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
        copy_finish_write(self);
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
    return bide_task_init(&operation->task, &stream_copy);
}

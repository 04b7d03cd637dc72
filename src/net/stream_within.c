/*
 * Reads and writes of a stream within bounds: at least so many bytes, until a time, with a limit of each
 * pause, and out of a budget of bytes.
 *
 * The operation awaits one operation of the stream after the other, each under the earlier of its two
 * times. The bytes that one has moved are counted when it has ended. If the coroutine is destroyed
 * meanwhile, `finally` counts them: the operation of the stream has been withdrawn by then, and its count
 * is final. So `count` and the budget are right whatever it ends with.
 *
 * Others may share the budget meanwhile, so what an operation may move is taken out of it first, and the
 * rest is given back: a read takes what its next operation of the stream may bring, and a write takes all
 * of its bytes at once, because it is refused as a whole or not at all.
 */
#include "bide/stream.h"

#include "bide/coroutine.h"
#include "bide/sleep.h"

#include "../io/const_cast.h"
#include "size_min.h"

#include <errno.h>

enum { STREAM_WITHIN_PIECE = 16384 };

/* The time until which the next operation of the stream has to end. */
static uint64_t stream_within_time(const bide_stream_within_operation *within,
                                   const bide_context *context)
{
    const bide_stream_bounds *bounds = &within->bounds;
    uint64_t time = bounds->deadline != 0 ? bounds->deadline : BIDE_FOREVER;
    if (bounds->pause != 0 && bounds->pause != BIDE_FOREVER) {
        uint64_t now = bide_now(context);
        uint64_t end = now + bounds->pause < now ? BIDE_FOREVER : now + bounds->pause;
        if (end < time)
            time = end;
    }
    return time;
}

/* Takes bytes that may move out of the budget. It has so many. */
static void stream_within_reserve(bide_stream_within_operation *within, size_t size)
{
    if (within->bounds.budget == NULL)
        return;
    bide_assert(within->reserved == 0 && size <= *within->bounds.budget);
    *within->bounds.budget -= size;
    within->reserved = size;
}

/* The reserved bytes that have not moved go back to the budget. */
static void stream_within_give_back(bide_stream_within_operation *within)
{
    if (within->bounds.budget != NULL)
        *within->bounds.budget += within->reserved;
    within->reserved = 0;
}

static bide_awaiter *stream_within_start(bide_stream_within_operation *within,
                                         const bide_context *context)
{
    const bide_stream_bounds *bounds = &within->bounds;
    size_t size = within->size - within->count;
    char *data = within->data + within->count;
    bide_assert(!within->is_moving && size != 0);
    within->is_moving = true;
    within->is_beyond = !within->is_write && bounds->budget != NULL && *bounds->budget == 0;
    if (within->is_beyond) {
        data = &within->beyond;
        size = 1;
    } else if (!within->is_write) {
        if (bounds->budget != NULL && size > *bounds->budget)
            size = (size_t)*bounds->budget;
        stream_within_reserve(within, size);
    }
    if (within->is_write && bounds->pause != 0)
        size = size_min(size, STREAM_WITHIN_PIECE);
    bide_awaiter *awaiter = within->is_write
                                ? bide_stream_write(&within->operation, within->stream, data, size)
                                : bide_stream_read(&within->operation, within->stream, data, size);
    uint64_t time = stream_within_time(within, context);
    return time == BIDE_FOREVER ? awaiter : bide_with_deadline(&within->limited, time, awaiter);
}

/* The operation of the stream has ended or was withdrawn. Returns how many bytes it has moved. */
static size_t stream_within_finish(bide_stream_within_operation *within)
{
    size_t moved = bide_stream_count(&within->operation, within->stream);
    bide_assert(within->is_moving);
    within->is_moving = false;
    if (within->is_beyond) {
        if (moved == 0 || *within->bounds.budget == 0)
            return moved;
        /* Another operation has given back meanwhile: the byte is in the budget after all. */
        within->is_beyond = false;
        within->data[within->count] = within->beyond;
        stream_within_reserve(within, moved);
    }
    bide_assert(moved <= within->size - within->count);
    within->count += moved;
    if (within->bounds.budget != NULL) {
        bide_assert(moved <= within->reserved);
        within->reserved -= moved;
    }
    if (!within->is_write)
        stream_within_give_back(within);
    return moved;
}

bide_coroutine(stream_read_within_body)
{
    bide_begin(stream_read_within_body, bide_stream_within_operation * self);
    if (self->size == 0 || self->bounds.min > self->size)
        bide_return(-EINVAL);
    do {
        bide_await_status(self->status, stream_within_start(self, bide_this_context()));
        size_t moved = stream_within_finish(self);
        if (self->status < 0 || moved == 0)
            bide_return(self->status);
        if (self->is_beyond)
            bide_return(-EMSGSIZE);
    } while (self->count < self->bounds.min);
    bide_return(0);
    bide_finally();
    if (self->is_moving)
        stream_within_finish(self);
    bide_end();
}

bide_coroutine(stream_write_within_body)
{
    bide_begin(stream_write_within_body, bide_stream_within_operation * self);
    if (self->bounds.budget != NULL && self->size > *self->bounds.budget)
        bide_return(-EMSGSIZE);
    stream_within_reserve(self, self->size);
    while (self->count < self->size) {
        bide_await_status(self->status, stream_within_start(self, bide_this_context()));
        stream_within_finish(self);
        if (self->status < 0)
            bide_return(self->status);
    }
    bide_return(0);
    bide_finally();
    if (self->is_moving)
        stream_within_finish(self);
    stream_within_give_back(self);
    bide_end();
}

static bide_awaiter *stream_within_init(bide_stream_within_operation *within, bide_stream stream,
                                        void *data, size_t size, const bide_stream_bounds *bounds,
                                        bool is_write)
{
    within->stream = stream;
    within->data = data;
    within->size = size;
    within->bounds = *bounds;
    within->count = within->reserved = 0;
    within->is_write = is_write;
    within->is_moving = within->is_beyond = false;
    return bide_task_init(&within->task,
                          is_write ? &stream_write_within_body : &stream_read_within_body);
}

bide_awaiter *bide_stream_read_within(bide_stream_within_operation *operation, bide_stream stream,
                                      void *data, size_t size, const bide_stream_bounds *bounds)
{
    return stream_within_init(operation, stream, data, size, bounds, false);
}

bide_awaiter *bide_stream_write_within(bide_stream_within_operation *operation, bide_stream stream,
                                       const void *data, size_t size,
                                       const bide_stream_bounds *bounds)
{
    return stream_within_init(operation, stream, io_as_data(data), size, bounds, true);
}

/*
 * Data that the kernel receives as a stream, for receivers (receiver.c has the chunks that are kept, and
 * the argument).
 *
 * 1. A stream is one multishot receive: an operation without a coroutine, in the line of its socket that
 *    needs no order. It takes a provided buffer for each chunk, when its poll has found data. It is in the
 *    ring from an await until so many chunks are kept as may be, or until it ends by itself.
 * 2. `next` waits in the socket's line of input, and is served from the chunks that are kept.
 * 3. A stream that was cancelled may complete with more chunks before it ends. They are kept beyond the
 *    bound, at most as many as the kernel has buffers.
 * 4. Kernels before 6.0 reject the first stream with -EINVAL. Then each receive is an entry of its own,
 *    as that of bide_recv_provided.
 */
#define _GNU_SOURCE
#include "receiver.h"

#include "buffer_pool.h"
#include "loop.h"
#include "operation.h"

#if BIDE_HAS_LIBURING

#include "uring.h"

enum { RECEIVES_STREAM = 1 << 1 }; /* IORING_RECV_MULTISHOT, missing in older headers */

bide_receiver *bide_uring_receiver_of_(const bide_io_operation *operation)
{
    bide_receiver *receiver;
    if (operation->code != BIDE_IO_RECV_NEXT || operation->arguments.provided.pool->ring == NULL ||
        loop_of(operation->io)->uring->lacks_streams)
        return NULL;
    receiver = bide_container_of(operation, bide_receiver, next);
    return receiver;
}

/* Whether `next` waits for a chunk, first of its line. */
static bool receiver_waits(const bide_receiver *receiver)
{
    return receiver->socket->lines[BIDE_IO_INPUT].first == &receiver->next &&
           (receiver->next.state & IO_CLOSING) == 0;
}

/* Starts the stream, unless it runs, or the kernel has not confirmed yet that it has stopped. */
static void uring_start_recv_stream(bide_loop *loop, bide_receiver *receiver)
{
    bide_io_operation *stream = &receiver->stream;
    if ((stream->state & (IO_IN_RING | IO_CANCEL_IN_RING)) != 0)
        return;
    struct io_uring_sqe *entry = bide_uring_new_entry_(loop->uring);
    io_uring_prep_recv(entry, bide_descriptor_fd(receiver->socket), NULL, 0, 0);
    entry->ioprio |= IORING_RECVSEND_POLL_FIRST | RECEIVES_STREAM;
    entry->flags |= IOSQE_BUFFER_SELECT;
    entry->buf_group = receiver->pool->group;
    bide_uring_set_data_(entry, stream, URING_OF_OPERATION);
    stream->io = &loop->io;
    stream->status = 0;
    stream->arguments.provided.pool = receiver->pool;
    bide_io_enlist_quietly_(&loop->io, stream);
    stream->state |= IO_IN_RING;
}

void bide_uring_serve_receiver_(bide_loop *loop, bide_receiver *receiver)
{
    if (!receiver_waits(receiver))
        return;
    if (bide_receiver_take_(receiver))
        bide_uring_end_(loop, &receiver->next, BIDE_IO_DONE);
    else
        uring_start_recv_stream(loop, receiver);
}

void bide_uring_received_(bide_loop *loop, bide_io_operation *stream, int result, unsigned flags)
{
    bide_receiver *receiver = bide_container_of(stream, bide_receiver, stream);
    loop->uring->has_streams = true;
    bide_uring_take_buffer_(stream, result, flags);
    if (result <= 0)
        return;
    bide_receiver_keep_(receiver, stream->arguments.provided.data, (size_t)result);
    bide_uring_serve_receiver_(loop, receiver);
    if (receiver->kept >= receiver->max)
        bide_uring_put_cancel_(loop->uring, stream);
}

void bide_uring_recv_stream_ended_(bide_loop *loop, bide_io_operation *stream, int result)
{
    bide_receiver *receiver = bide_container_of(stream, bide_receiver, stream);
    bide_assert((stream->state & (IO_IN_RING | IO_CANCEL_IN_RING)) == 0);
    stream->status = -ECANCELED;
    if ((stream->state & IO_FORGETTING) != 0)
        return;
    bide_io_remove(&loop->io, stream);
    stream->state = 0;
    if (result == -EINVAL && !loop->uring->has_streams) { /* 4 */
        loop->uring->lacks_streams = true;
        if (receiver_waits(receiver))
            bide_uring_put_(loop->uring, &receiver->next);
        return;
    }
    if (result == -ENOBUFS && receiver->kept == 0 && receiver_waits(receiver)) {
        bide_uring_found_no_buffer_(loop, &receiver->next);
        return;
    }
    if (result <= 0 && result != -ENOBUFS && result != -ECANCELED && result != -EINTR) {
        receiver->has_end = true;
        receiver->end = result;
    }
    bide_uring_serve_receiver_(loop, receiver);
}

#endif

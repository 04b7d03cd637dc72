/*
 * Receivers: the chunks that are kept. The io_uring back end keeps them (uring_recv.c); elsewhere none is.
 *
 *     kernel --stream--> kept: first -> ... -> last, then the end --take--> next
 *
 * Threads: all of it runs on the thread of the socket's io, except bide_receiver_init.
 *
 * 1. A kept chunk stays in the buffer that the kernel has filled, which counts as lent. The pool has a
 *    record of each buffer, in the memory of its ring. So to keep a chunk needs no memory, and cannot
 *    fail. A receiver keeps no more chunks than the pool has buffers.
 * 2. The stream is the only receive that is in the kernel, and `next` the only one that takes what it
 *    has received. So chunks are taken in the order of their completions, which is that of the data.
 * 3. `next` is in the socket's line of input like any receive, and never in the ring while there is a
 *    stream. So it is cancelled, destroyed and closed without the kernel, and loses nothing: what arrives
 *    later is kept.
 * 4. An end of the stream, which is the peer's or an error of the socket, is kept behind the chunks. The
 *    kernel reports an error once, so it must not be lost. After it was taken the next await starts a new
 *    stream, which reports what recv(2) would.
 * 5. If the pool has no buffer the stream ends, and the data is still in the socket. `next` then waits for
 *    a buffer like any receive (buffer_pool.c), and its retry is a call. There is no stream at that time,
 *    and nothing is kept, so the call receives the next bytes.
 */
#define _GNU_SOURCE
#include "receiver.h"

#include "buffer_pool.h"
#include "operation.h"

#include "../system/fork.h"

#include <string.h>

void bide_receiver_init(bide_receiver *receiver, bide_descriptor *socket, bide_buffer_pool *pool,
                        unsigned max)
{
    static const bide_awaiter_ops ops = BIDE_IO_OPS("bide_receiver");
    memset(receiver, 0, sizeof *receiver);
    receiver->socket = socket;
    receiver->pool = pool;
    receiver->max = max != 0 ? max : 1;
    bide_io_operation_init(&receiver->stream, &ops, BIDE_IO_RECV_STREAM, socket);
}

bide_awaiter *bide_receiver_next(bide_receiver *receiver)
{
    static const bide_awaiter_ops ops = BIDE_IO_OPS("bide_receiver_next");
    bide_io_operation_init(&receiver->next, &ops, BIDE_IO_RECV_NEXT, receiver->socket);
    receiver->next.arguments.provided.pool = receiver->pool;
    receiver->next.arguments.provided.data = NULL;
    return &receiver->next.awaiter;
}

void bide_receiver_keep_(bide_receiver *receiver, const void *data, size_t size)
{
    bide_buffer_pool *pool = receiver->pool;
    unsigned number = (unsigned)((size_t)((const char *)data - pool->memory) / pool->size);
    bide_assert(number < pool->count && receiver->kept < pool->count); /* 1 */
    pool->records[number].size = (uint32_t)size;
    if (receiver->kept++ == 0)
        receiver->first = number;
    else
        pool->records[receiver->last].next = number;
    receiver->last = number;
}

/* The oldest chunk, which is kept no more; NULL: none. */
static void *receiver_pop(bide_receiver *receiver, size_t *size)
{
    bide_buffer_pool *pool = receiver->pool;
    unsigned number = receiver->first;
    if (receiver->kept == 0)
        return NULL;
    *size = pool->records[number].size;
    receiver->kept--;
    if (receiver->kept != 0)
        receiver->first = pool->records[number].next;
    return pool->memory + (size_t)number * pool->size;
}

bool bide_receiver_take_(bide_receiver *receiver)
{
    bide_io_operation *next = &receiver->next;
    size_t size = 0;
    bool again;
    void *data = receiver_pop(receiver, &size);
    if (data == NULL && !receiver->has_end)
        return false;
    next->arguments.provided.data = data;
    if (data == NULL)
        receiver->has_end = false; /* 4 */
    bide_io_take_result(next, data != NULL ? (ptrdiff_t)size : receiver->end, &again);
    return true;
}

static void receiver_discard_stream(bide_io *io, void *argument)
{
    bide_io_operation *stream = argument;
    if ((stream->state & IO_WAITING) != 0 && !bide_is_inherited_(io->generation))
        io->table->discard(io, stream);
    stream->state = 0;
}

void bide_receiver_destroy(bide_receiver *receiver)
{
    bide_io_operation *stream = &receiver->stream;
    size_t size;
    void *data;
    if ((receiver->next.state & IO_WAITING) != 0)
        bide_platform.misuse("a receiver is destroyed while it is awaited", "bide_receiver_destroy",
                             __FILE__, __LINE__);
    if (stream->io != NULL)
        bide_io_call_remote_(stream->io, receiver_discard_stream, stream);
    while ((data = receiver_pop(receiver, &size)) != NULL)
        bide_buffer_release(receiver->pool, data);
    receiver->has_end = false;
}

/*
 * The data of a socket as a stream of chunks: one request to the kernel receives all of them, into
 * buffers that are lent when data has arrived. Floor: io.
 *
 *     bide_receiver_init(&self->receiver, &self->socket, self->pool, 4);
 *     for (;;) {
 *         bide_try(bide_receiver_next(&self->receiver));
 *         if (bide_receiver_size(&self->receiver) == 0)
 *             break;                                   // the peer closed cleanly, and no buffer was lent
 *         use(bide_receiver_data(&self->receiver), bide_receiver_size(&self->receiver));
 *         bide_buffer_release(self->pool, bide_receiver_data(&self->receiver));
 *     }
 *     bide_finally();
 *     bide_receiver_destroy(&self->receiver);
 *     bide_close(&self->socket);
 *
 * Each await returns the next chunk, in order, as bide_recv_provided does. On an io_uring the kernel
 * continues to receive between the awaits (multishot receive): a chunk that has arrived costs no entry
 * and no system call of its own. Such chunks are kept, at most as many as bide_receiver_init says. Then
 * the request is cancelled, and further data waits in the socket, until all that is kept was taken and
 * another is awaited. The kernel may receive some more before the cancellation; those chunks are kept
 * too. Chunks that are kept occupy buffers of the pool.
 *
 * Many receivers may share a pool, and an idle one holds no buffer. If all buffers are lent, data waits in
 * the sockets, and nothing is lost: receivers that are awaited get released buffers in turn. Since chunks
 * that are kept occupy buffers, a coroutine that does not take them must not wait for data of another
 * receiver of the same pool.
 *
 * On epoll, in memory, and on kernels before 6.0, a chunk is received when it is awaited.
 *
 * From the first await to bide_receiver_destroy all that arrives is the receiver's: another receive on
 * the socket would get none of it, or a part. The socket's loop uses it, on that loop's thread.
 *
 * Why it is correct: src/io/receiver.c.
 */
#ifndef BIDE_RECEIVER_H
#define BIDE_RECEIVER_H

#include "bide/buffer_pool.h"
#include "bide/extend/io.h"

BIDE_EXTERN_C_BEGIN

typedef struct bide_receiver {
    bide_descriptor *socket;
    bide_buffer_pool *pool;
    bide_io_operation next;   /* that waits for a chunk, or has one */
    bide_io_operation stream; /* in the kernel, or not */
    unsigned max;             /* with so many chunks kept the stream is cancelled */
    unsigned kept;            /* buffers, linked by the pool's records: */
    unsigned first;
    unsigned last;
    int end; /* with which the stream has ended, behind all that is kept */
    bool has_end;
} bide_receiver;

/*
 * Prepares one for `socket`, of any type. Both, and the pool, stay until bide_receiver_destroy. About
 * `max` chunks, 1 or more, are kept at most.
 * Threads: the loop's. Progress: wait-free.
 */
void bide_receiver_init(bide_receiver *receiver, bide_descriptor *socket, bide_buffer_pool *pool,
                        unsigned max);

/*
 * Receives the next chunk: at least a byte, and at most a buffer of the pool, which is lent until
 * bide_buffer_release. A size of 0 is the end, and nothing is lent. Of a datagram socket: one datagram.
 * One at a time.
 * Threads: the loop's. Errors: those of recv(2); -EPIPE (closed meanwhile), -EBADF (closed before),
 * -ECANCELED, -ETIMEDOUT, -ENOTSUP (no loop, or a pool whose workers have loops). Suspends: if nothing
 * was kept. Cancel-safe: yes, nothing is lost: a chunk that arrives later is the next one's. Progress:
 * that of the system calls.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_receiver_next(bide_receiver *receiver);

/*
 * The chunk of an await that has ended with 0; NULL and 0: the end.
 * Threads: the loop's. Progress: wait-free.
 */
BIDE_INLINE void *bide_receiver_data(const bide_receiver *receiver)
{
    return receiver->next.arguments.provided.data;
}

BIDE_INLINE size_t bide_receiver_size(const bide_receiver *receiver)
{
    return receiver->next.count;
}

/*
 * How many chunks are kept that nobody has taken.
 * Threads: the loop's. Progress: wait-free.
 */
BIDE_INLINE unsigned bide_receiver_pending(const bide_receiver *receiver)
{
    return receiver->kept;
}

/*
 * Ends it: the kernel receives no more, and what is kept is discarded. Nothing waits for a chunk; one
 * that was given stays lent. Before or after the socket is closed, once or more often, also after
 * bide_receiver_init alone, and of a struct of zeros.
 * Threads: the loop's. Progress: blocks until the kernel has let go of it; linear in what is kept.
 */
void bide_receiver_destroy(bide_receiver *receiver);

BIDE_EXTERN_C_END

#endif

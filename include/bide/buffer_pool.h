/*
 * Receiving into buffers that are lent when data has arrived: idle connections hold no buffer.
 * Floor: io.
 *
 *     static char memory[64][4096];
 *     bide_buffer_pool_init(&pool, memory, sizeof memory[0], 64);
 *
 *     bide_try(bide_recv_provided(&self->receive, &self->socket, self->pool));
 *     if (self->receive.count == 0) ... the peer closed cleanly, and no buffer was lent
 *     use(bide_provided_buffer(&self->receive), self->receive.count);
 *     bide_buffer_release(self->pool, bide_provided_buffer(&self->receive));
 *
 * A pool has buffers of one size, in the caller's memory. It belongs to the loop whose coroutines
 * use it first, until it is ended; that loop's thread uses it. A waiting receive has no buffer: on
 * an io_uring the kernel takes one when data has arrived (a provided buffer ring; if the kernel has
 * none, and on epoll, the loop does).
 *
 * If all buffers are lent, a receive that has data waits until one is given back, and the data stays
 * in the socket. Waiting receives are served in turn, before later ones.
 *
 * Why it is correct: src/io/buffer_pool.c.
 */
#ifndef BIDE_BUFFER_POOL_H
#define BIDE_BUFFER_POOL_H

#include "bide/extend/io.h"

BIDE_EXTERN_C_BEGIN

typedef struct bide_buffer_pool bide_buffer_pool;

struct bide_buffer_pool {
    char *memory;
    size_t size;
    unsigned count;
    unsigned in_use;
    unsigned fresh;           /* the first that was never lent; those behind it were not either */
    void *free;               /* that were given back, linked through their first bytes */
    bide_io_operation *first; /* that wait for one */
    bide_io_operation *last;
    bide_io_operation *served; /* is being tried with one that was given back */
    bide_io *io;               /* to which it belongs; NULL: none yet */
    const struct bide_buffer_hooks_ *hooks;
    void *ring;        /* that the kernel takes from; or NULL */
    struct bide_buffer_record_ *records; /* behind the ring: of kept buffers (receiver.h) */
    unsigned provided; /* there */
    unsigned window;   /* at most so many are */
    uint16_t group;
};

/*
 * Prepares one of `count` buffers, 1 to 32768, of `size` bytes each, at least that of a pointer.
 * `memory` has room for all, and stays until bide_buffer_pool_destroy. The buffers that were given
 * back last are lent first, and buffers that are never needed are not touched. Other numbers are
 * misuse, which is reported where BIDE_DEBUG is 1.
 * Threads: before it is shared. Progress: wait-free.
 */
void bide_buffer_pool_init(bide_buffer_pool *pool, void *memory, size_t size, unsigned count);

#define bide_buffer_pool_init(pool, memory, size, count)                                          \
    bide_buffer_pool_init(pool, memory,                                                           \
                          BIDE_COUNT_IN_(size, sizeof(void *), SIZE_MAX,                          \
                                         "buffers are smaller than a pointer", #pool),            \
                          (unsigned)BIDE_COUNT_IN_(count, 1, 32768,                               \
                                                   "a pool of no buffers, or of more than 32768", \
                                                   #pool))

/*
 * Ends it. Nothing waits in it, nothing is lent, and its loop is there; where it is in use it tells
 * of misuse. It may be called after bide_buffer_pool_init alone.
 * Threads: the loop's. Progress: that of the system call.
 */
void bide_buffer_pool_destroy(bide_buffer_pool *pool);

/*
 * Receives what has come, at least a byte and at most a buffer of the pool, which is lent until
 * bide_buffer_release; waits for both. A count of 0 is the end, and nothing is lent. Of a datagram
 * socket: one datagram.
 * Threads: the loop's. Errors: those of recv(2); -EPIPE (closed meanwhile), -ECANCELED, -ETIMEDOUT,
 * -ENOTSUP (no loop). Suspends: if there is nothing yet, or no buffer; always on an io_uring.
 * Cancel-safe: yes, nothing was received, nor lent. Progress: that of the system calls.
 */
BIDE_KEY_SCOPED(bide_provided_buffer);
BIDE_MUST_AWAIT
bide_awaiter *bide_recv_provided(bide_io_operation *operation, bide_descriptor *socket,
                                 bide_buffer_pool *pool);

/*
 * The buffer that was lent to a receive that has ended with 0; NULL: none, it was the end.
 * Threads: the loop's. Progress: wait-free.
 */
BIDE_INLINE void *bide_provided_buffer(const bide_io_operation *operation)
{
    return operation->arguments.provided.data;
}

/*
 * Gives a buffer back; NULL is left as it is. A receive that waits for one has it then.
 * Threads: the loop's. Progress: that of the system calls.
 */
void bide_buffer_release(bide_buffer_pool *pool, void *data);

BIDE_EXTERN_C_END

#endif

/*
 * The connections to a listener as a stream: one request to the kernel accepts all of them.
 * Floor: io.
 *
 *     int kept[64];
 *     bide_acceptor acceptor;
 *     bide_acceptor_init(&acceptor, &listener, kept, 64);
 *     for (;;) {
 *         bide_try(bide_acceptor_next(&self->next, &acceptor, &self->connection, &self->peer));
 *         ... hand it to a coroutine
 *     }
 *     bide_finally();
 *     bide_acceptor_destroy(&self->acceptor);
 *     bide_close(&self->listener);
 *
 * Each await returns the next connection, in order of arrival, as bide_accept does. On an io_uring
 * the kernel continues to accept between the awaits (multishot accept). Those connections wait in the
 * queue, which is the caller's memory, and taking one costs no system call. When the queue is full,
 * the multishot request is cancelled, and further connections wait in the listener's backlog until
 * the queue is empty and another is awaited. Connections that the kernel accepts before the
 * cancellation are kept in memory of the library's, at most as many as the backlog held.
 *
 * From the first await to the end all connections of the listener are the acceptor's; a bide_accept
 * on it would get none. The listener's loop uses it, on that loop's thread.
 *
 * On epoll a connection costs one call in any case. So the call is made when the connection is
 * awaited, and waiting connections stay in the backlog.
 *
 * Why it is correct: src/io/acceptor.c.
 */
#ifndef BIDE_ACCEPTOR_H
#define BIDE_ACCEPTOR_H

#include "bide/address.h"
#include "bide/extend/io.h"

BIDE_EXTERN_C_BEGIN

typedef struct bide_acceptor {
    bide_descriptor *listener;
    bide_io_operation stream; /* in the kernel, or not */
    bool is_served;
    unsigned size;
    unsigned first; /* in `queue` */
    unsigned count;
    int *queue; /* descriptors, of the caller's memory */
    int *more;  /* descriptors that came when it was full; or NULL */
    size_t more_size;
    size_t more_first;
    size_t more_count;
    uint64_t dropped;
} bide_acceptor;

/*
 * Prepares one for `listener`, which stays until bide_acceptor_destroy. `queue` has room for `size`
 * descriptors, 1 or more.
 * Threads: the loop's. Progress: wait-free.
 */
void bide_acceptor_init(bide_acceptor *acceptor, bide_descriptor *listener, int *queue,
                        unsigned size);

/*
 * The next connection, in *accepted, which was closed or was nothing; and the other end's address in
 * *peer, unless that is NULL. It belongs to no loop yet. An address of length 0: the other end was
 * gone before it could be asked for. Several may wait, and are served in turn.
 * Threads: the loop's. Errors: those of accept(2), and the next await continues the stream; -EPIPE
 * (the listener was closed meanwhile), -EBADF (before), -ECANCELED, -ETIMEDOUT, -ENOTSUP (no loop).
 * Suspends: if no connection has come. Cancel-safe: yes, none is lost. Progress: that of the system
 * calls.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_acceptor_next(bide_io_operation *operation, bide_acceptor *acceptor,
                                 bide_descriptor *accepted, bide_address *peer);

/*
 * How many connections are kept that nobody has taken.
 * Threads: the loop's. Progress: wait-free.
 */
BIDE_INLINE size_t bide_acceptor_pending(const bide_acceptor *acceptor)
{
    return acceptor->count + acceptor->more_count;
}

/*
 * How many connections were closed since there was no memory to keep them.
 * Threads: the loop's. Progress: wait-free.
 */
BIDE_INLINE uint64_t bide_acceptor_dropped(const bide_acceptor *acceptor)
{
    return acceptor->dropped;
}

/*
 * Ends it: the kernel accepts no more, and connections that are kept are closed. Nothing waits for
 * one. Before or after the listener is closed, once or more often, also after bide_acceptor_init
 * alone.
 * Threads: the loop's. Progress: blocks until the kernel has let go of it; linear in what is kept.
 */
void bide_acceptor_destroy(bide_acceptor *acceptor);

BIDE_EXTERN_C_END

#endif

/*
 * Connections that the kernel accepts as a stream, for acceptors (acceptor.c has the queue, and its
 * argument).
 *
 * 1. A stream is one multishot accept: an operation without a coroutine, in the line of its
 *    listener that needs no order. It is in the ring while accepts wait, and until the queue is
 *    full.
 * 2. Accepts of the acceptor wait in the listener's line of input, and never enter the ring. They
 *    are served from the queue, in order.
 */
#define _GNU_SOURCE
#include "acceptor.h"
#include "loop.h"

#if BIDE_HAS_LIBURING

#include "uring.h"

/* The first accept of the line, if it waits for this acceptor; or NULL. */
static bide_io_operation *first_accept_of(const bide_acceptor *acceptor)
{
    bide_io_operation *first = acceptor->listener->lines[BIDE_IO_INPUT].first;
    return first != NULL && bide_uring_acceptor_of_(first) == acceptor &&
                   (first->state & IO_CLOSING) == 0
               ? first
               : NULL;
}

/* Starts the stream, unless it runs, or the kernel has not confirmed yet that it has stopped. */
static void uring_start_stream(bide_loop *loop, bide_acceptor *acceptor)
{
    bide_io_operation *stream = &acceptor->stream;
    if ((stream->state & (IO_IN_RING | IO_CANCEL_IN_RING)) != 0)
        return;
    struct io_uring_sqe *entry = bide_uring_new_entry_(loop->uring);
    io_uring_prep_multishot_accept(entry, bide_descriptor_fd(acceptor->listener), NULL, NULL,
                                   SOCK_CLOEXEC | SOCK_NONBLOCK);
    bide_uring_set_data_(entry, stream, URING_OF_OPERATION);
    stream->io = &loop->io;
    stream->status = 0;
    bide_io_enlist_quietly_(&loop->io, stream);
    stream->state |= IO_IN_RING;
}

void bide_uring_serve_(bide_loop *loop, bide_acceptor *acceptor)
{
    bide_io_operation *accept;
    int fd;
    if (acceptor->is_served) /* the end of an accept below has put the next one in front */
        return;
    acceptor->is_served = true;
    while ((accept = first_accept_of(acceptor)) != NULL &&
           (fd = bide_io_acceptor_take_(acceptor)) >= 0) {
        bide_io_acceptor_give_(accept, fd);
        bide_uring_end_(loop, accept, BIDE_IO_DONE);
    }
    acceptor->is_served = false;
    if (accept != NULL)
        uring_start_stream(loop, acceptor);
}

void bide_uring_accepted_(bide_loop *loop, bide_io_operation *stream, int fd)
{
    bide_acceptor *acceptor = bide_container_of(stream, bide_acceptor, stream);
    bide_io_acceptor_keep_(acceptor, fd);
    bide_uring_serve_(loop, acceptor);
    if (io_acceptor_is_full(acceptor))
        bide_uring_put_cancel_(loop->uring, stream);
}

void bide_uring_stream_ended_(bide_loop *loop, bide_io_operation *stream, int result)
{
    bide_acceptor *acceptor = bide_container_of(stream, bide_acceptor, stream);
    bool again;
    bide_assert((stream->state & (IO_IN_RING | IO_CANCEL_IN_RING)) == 0);
    stream->status = -ECANCELED;
    if ((stream->state & IO_FORGETTING) != 0)
        return;
    bide_io_remove(&loop->io, stream);
    stream->state = 0;
    bide_io_operation *accept = first_accept_of(acceptor);
    if (accept != NULL && result < 0 && result != -ECANCELED &&
        bide_io_take_result(accept, result, &again))
        bide_uring_end_(loop, accept, BIDE_IO_DONE);
    bide_uring_serve_(loop, acceptor);
}

#endif

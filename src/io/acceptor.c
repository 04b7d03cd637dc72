/*
 * The connections that an acceptor keeps. The io_uring back end fills it (uring_accept.c); on epoll
 * it stays empty.
 *
 *     connections --> queue |2 1 0|--> overflow 5 4 3
 *
 * Threads: all of it runs on the thread of the listener's io, except bide_acceptor_init.
 *
 * 1. Connections are taken in the order in which they arrived. A new one is added to the overflow
 *    (`more`) if the queue is full, or the overflow is not empty. So all of the queue is older than
 *    all of the overflow, and one is taken from the overflow only if the queue is empty.
 * 2. The stream is an operation without a coroutine, in the line of the listener that needs no
 *    order. So closing the listener ends it like any other operation.
 * 3. A connection that the kernel reports after the stream was cancelled is kept like any other. It
 *    has left the backlog, and only the coroutine that takes it, or bide_acceptor_destroy, may close
 *    it.
 */
#define _GNU_SOURCE
#include "acceptor.h"

#include "operation.h"

#include "bide/socket.h"

#include "../system/fork.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void bide_acceptor_init(bide_acceptor *acceptor, bide_descriptor *listener, int *queue,
                        unsigned size)
{
    static const bide_awaiter_ops ops = BIDE_IO_OPS("bide_acceptor");
    memset(acceptor, 0, sizeof *acceptor);
    acceptor->listener = listener;
    acceptor->queue = queue;
    acceptor->size = size;
    bide_io_operation_init(&acceptor->stream, &ops, BIDE_IO_ACCEPT_STREAM, listener);
}

bide_awaiter *bide_acceptor_next(bide_io_operation *operation, bide_acceptor *acceptor,
                                 bide_descriptor *accepted, bide_address *peer)
{
    static const bide_awaiter_ops ops = BIDE_IO_OPS("bide_acceptor_next");
    bide_descriptor_init_closed(accepted);
    bide_io_operation_init(operation, &ops, BIDE_IO_ACCEPT, acceptor->listener);
    operation->arguments.accept.accepted = accepted;
    operation->arguments.accept.peer = peer;
    operation->arguments.accept.acceptor = acceptor;
    return &operation->awaiter;
}

/* Makes room in the overflow for one more; false: there is no memory. */
static bool acceptor_reserve(bide_acceptor *acceptor)
{
    if (acceptor->more_first + acceptor->more_count < acceptor->more_size)
        return true;
    size_t size = acceptor->more_size != 0 ? 2 * acceptor->more_size : 64;
    int *more = realloc(acceptor->more, size * sizeof *more);
    if (more == NULL)
        return false;
    acceptor->more = more;
    acceptor->more_size = size;
    return true;
}

void bide_io_acceptor_keep_(bide_acceptor *acceptor, int fd)
{
    if (!io_acceptor_is_full(acceptor) && acceptor->more_count == 0) { /* 1 */
        unsigned place = (acceptor->first + acceptor->count++) % acceptor->size;
        bide_assert(place < acceptor->size);
        acceptor->queue[place] = fd;
    } else if (acceptor_reserve(acceptor)) {
        acceptor->more[acceptor->more_first + acceptor->more_count++] = fd;
    } else {
        acceptor->dropped++;
        close(fd);
    }
}

int bide_io_acceptor_take_(bide_acceptor *acceptor)
{
    int fd;
    bide_assert(acceptor->count <= acceptor->size);
    if (acceptor->count != 0) {
        fd = acceptor->queue[acceptor->first];
        acceptor->first = (acceptor->first + 1) % acceptor->size;
        acceptor->count--;
        return fd;
    }
    if (acceptor->more_count == 0)
        return -1;
    fd = acceptor->more[acceptor->more_first++];
    if (--acceptor->more_count == 0) {
        free(acceptor->more);
        acceptor->more = NULL;
        acceptor->more_size = 0;
        acceptor->more_first = 0;
    }
    return fd;
}

void bide_io_acceptor_give_(bide_io_operation *operation, int fd)
{
    bide_address *peer = operation->arguments.accept.peer;
    bool again;
    bide_io_take_result(operation, fd, &again);
    if (peer == NULL)
        return;
    if (bide_peer_address(operation->arguments.accept.accepted, peer) != 0) {
        memset(&peer->any, 0, sizeof peer->any);
        peer->length = 0;
    }
}

static void acceptor_discard_stream(bide_io *io, void *argument)
{
    bide_io_operation *stream = argument;
    if ((stream->state & IO_WAITING) != 0 && !bide_is_inherited_(io->generation))
        io->table->discard(io, stream);
    stream->state = 0;
}

void bide_acceptor_destroy(bide_acceptor *acceptor)
{
    bide_io_operation *stream = &acceptor->stream;
    int fd;
    if (stream->io != NULL)
        bide_io_call_remote_(stream->io, acceptor_discard_stream, stream);
    while ((fd = bide_io_acceptor_take_(acceptor)) >= 0)
        close(fd);
    bide_assert(acceptor->count == 0 && acceptor->more_count == 0);
}

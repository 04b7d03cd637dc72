/*
 * A file to a socket, by way of a pipe.
 *
 *     file --fill: may block--> pipe --drain: waits for the socket--> socket
 *
 * 1. A piece is no larger than the pipe, and the pipe is empty when it is filled: so only the file can
 *    make that wait. It is drained to the last byte before it is filled again.
 * 2. `count` is what was drained. What is in the pipe when it ends early was read and not sent; it is
 *    still in the file.
 * 3. The pipe is closed when nothing of it is in a back end: the coroutine ends, or is destroyed, only
 *    after its operation has ended, or is forgotten.
 */
#define _GNU_SOURCE
#include "bide/send_file.h"

#include "bide/coroutine.h"

#include "operation.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

enum { PIECE = 65536 };

static bide_awaiter *begin_filling(bide_send_file_operation *send)
{
    static const bide_awaiter_ops ops = BIDE_IO_OPS("bide_send_file");
    bide_io_operation *operation =
        io_file_init(&send->fill, &ops, BIDE_IO_SPLICE_FROM_FILE, send->file);
    uint64_t left = send->most - send->count;
    operation->arguments.splice.pipe = send->pipe[1];
    operation->arguments.splice.offset = send->offset + (int64_t)send->count;
    operation->arguments.splice.size = left < PIECE ? (size_t)left : PIECE;
    return &operation->awaiter;
}

static bide_awaiter *begin_draining(bide_send_file_operation *send)
{
    static const bide_awaiter_ops ops = BIDE_IO_OPS("bide_send_file");
    size_t size = send->fill.operation.count;
    bide_io_operation_init(&send->drain, &ops, BIDE_IO_SPLICE_TO_SOCKET, send->socket);
    send->drain.is_whole = true;
    send->drain.arguments.splice.pipe = send->pipe[0];
    send->drain.arguments.splice.size = size;
    send->is_sending = true;
    return &send->drain.awaiter;
}

static void end_draining(bide_send_file_operation *send)
{
    send->is_sending = false;
    send->count += send->drain.count;
}

static bool are_open(const bide_send_file_operation *send)
{
    return bide_descriptor_is_open(send->socket) && bide_descriptor_is_open(send->file);
}

static int open_pipe(bide_send_file_operation *send, bide_io *io)
{
    int error = 0;
    if (io_calls(io) != NULL)
        error = io_calls(io)->pipe(io, send->pipe);
    else if (pipe2(send->pipe, O_CLOEXEC | O_NONBLOCK) != 0)
        error = -errno;
    if (error < 0) {
        send->pipe[0] = -1;
        send->pipe[1] = -1;
    }
    return error;
}

static void close_pipe(bide_send_file_operation *send, bide_io *io)
{
    for (int i = 0; i < 2; i++) {
        if (send->pipe[i] >= 0)
            io_close_number(io, send->pipe[i]);
        send->pipe[i] = -1;
    }
}

bide_coroutine(send_file_body)
{
    bide_begin(send_file_body, bide_send_file_operation * self);
    if (!are_open(self))
        bide_return(-EBADF);
    self->status = open_pipe(self, io_of_context(bide_this_context()));
    if (self->status < 0)
        bide_return(self->status);
    while (self->count < self->most) {
        if (!are_open(self)) /* closed between two pieces: as in one */
            bide_return(-EPIPE);
        bide_await_status(self->status, begin_filling(self));
        if (self->status < 0)
            bide_return(self->status);
        if (self->fill.operation.count == 0) /* the end of the file */
            bide_return(0);
        if (!are_open(self))
            bide_return(-EPIPE);
        bide_await_status(self->status, begin_draining(self));
        end_draining(self);
        if (self->status < 0)
            bide_return(self->status);
    }
    bide_finally();
    if (self->is_sending)
        end_draining(self);
    close_pipe(self, io_of_context(bide_this_context()));
    bide_end();
}

bide_awaiter *bide_send_file(bide_send_file_operation *operation, bide_descriptor *socket,
                             bide_descriptor *file, int64_t offset, uint64_t most)
{
    operation->socket = socket;
    operation->file = file;
    operation->offset = offset;
    operation->most = most;
    operation->count = 0;
    operation->is_sending = false;
    operation->pipe[0] = -1;
    operation->pipe[1] = -1;
    return bide_task_init(&operation->task, &send_file_body);
}

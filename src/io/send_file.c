/*
 * A file to a socket, by turns. A turn begins with what of the file is in memory, which the loop
 * sends itself; then, if there is more, goes a piece of what is not, by way of a pipe.
 *
 *     file --move: what is in memory; waits for the socket--> socket
 *     file --fill: may block--> pipe --drain: waits for the socket--> socket
 *
 * 1. A piece is no larger than the pipe, and the pipe is empty when it is filled: so only the file
 *    can make that wait. It is drained to the last byte before the next turn.
 * 2. `count` is what was moved and what was drained. What is in the pipe when it ends early was
 *    read and not sent; it is still in the file.
 * 3. The pipe is closed when nothing of it is in a back end: the coroutine ends, or is destroyed,
 *    only after its operation has ended, or is forgotten.
 * 4. A move waits in the socket's line, so nothing but its call looks at the file, and that first
 *    looks whether it is open yet.
 * 5. What one move may send is bounded, and costs as much of the budget as it takes time (move.c).
 *    So a socket that is never full holds the loop for no longer than any other operation that is
 *    always ready.
 */
#define _GNU_SOURCE
#include "bide/send_file.h"

#include "bide/coroutine.h"

#include "operation.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

enum { PIECE = 65536, MOVED_AT_ONCE = 262144 };

/* What is left, and no more than `max`. */
static size_t next_size(const bide_send_file_operation *send, size_t max)
{
    uint64_t left = send->max - send->count;
    return left < max ? (size_t)left : max;
}

static bide_awaiter *begin_moving(bide_send_file_operation *send)
{
    static const bide_awaiter_ops ops = BIDE_IO_OPS("bide_send_file");
    bide_io_operation_init(&send->drain, &ops, BIDE_IO_SEND_FILE, send->socket);
    send->drain.arguments.send_file.file = send->file;
    send->drain.arguments.send_file.offset = send->offset + (int64_t)send->count;
    send->drain.arguments.send_file.size = next_size(send, MOVED_AT_ONCE);
    send->is_sending = true;
    return &send->drain.awaiter;
}

static bide_awaiter *begin_filling(bide_send_file_operation *send)
{
    static const bide_awaiter_ops ops = BIDE_IO_OPS("bide_send_file");
    bide_io_operation *operation =
        io_file_init(&send->fill, &ops, BIDE_IO_SPLICE_FROM_FILE, send->file);
    operation->arguments.splice.pipe = send->pipe[1];
    operation->arguments.splice.offset = send->offset + (int64_t)send->count;
    operation->arguments.splice.size = next_size(send, PIECE);
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

/* What was moved, or drained, is counted. */
static void end_sending(bide_send_file_operation *send)
{
    send->is_sending = false;
    send->count += send->drain.count;
}

static bool are_open(const bide_send_file_operation *send)
{
    return bide_descriptor_is_open(send->socket) && bide_descriptor_is_open(send->file);
}

/* Opens it, if it is not. */
static int need_pipe(bide_send_file_operation *send, bide_io *io)
{
    int error = 0;
    if (send->pipe[0] >= 0)
        return 0;
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
            bide_io_close_number_(io, send->pipe[i]);
        send->pipe[i] = -1;
    }
}

bide_coroutine(send_file_body)
{
    bide_begin(send_file_body, bide_send_file_operation * self);
    if (!are_open(self))
        bide_return(-EBADF);
    self->moves = io_calls(io_of_context(bide_this_context())) == NULL;
    while (self->count < self->max) {
        if (!are_open(self)) /* closed between two pieces: as in one */
            bide_return(-EPIPE);
        if (self->moves) {
            bide_await_status(self->status, begin_moving(self));
            end_sending(self);
            if (self->status < 0)
                bide_return(self->status);
            bide_io_found found = self->drain.arguments.send_file.found;
            if (found == BIDE_IO_FOUND_ALL)
                continue;
            if (found == BIDE_IO_FOUND_END)
                bide_return(0);
            self->moves = found == BIDE_IO_FOUND_SOME;
            if (!are_open(self))
                bide_return(-EPIPE);
        }
        self->status = need_pipe(self, io_of_context(bide_this_context()));
        if (self->status < 0)
            bide_return(self->status);
        bide_await_status(self->status, begin_filling(self));
        if (self->status < 0)
            bide_return(self->status);
        if (self->fill.operation.count == 0) /* the end of the file */
            bide_return(0);
        if (!are_open(self))
            bide_return(-EPIPE);
        bide_await_status(self->status, begin_draining(self));
        end_sending(self);
        if (self->status < 0)
            bide_return(self->status);
    }
    bide_finally();
    if (self->is_sending)
        end_sending(self);
    close_pipe(self, io_of_context(bide_this_context()));
    bide_end();
}

bide_awaiter *bide_send_file(bide_send_file_operation *operation, bide_descriptor *socket,
                             bide_descriptor *file, int64_t offset, uint64_t max)
{
    operation->socket = socket;
    operation->file = file;
    operation->offset = offset;
    operation->max = max;
    operation->count = 0;
    operation->is_sending = false;
    operation->pipe[0] = -1;
    operation->pipe[1] = -1;
    return bide_task_init(&operation->task, &send_file_body);
}

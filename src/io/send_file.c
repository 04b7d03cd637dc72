/*
 * A file to a socket, in rounds. A round begins with the part of the file that is in the page
 * cache, which the loop sends itself. If the file continues after it, one piece goes through a
 * pipe.
 *
 *     file --move: in the page cache; waits for the socket--> socket
 *     file --fill: may block--> pipe --drain: waits for the socket--> socket
 *
 * A socket in blocking mode: neither sendfile(2) nor splice(2) has a flag to keep it from waiting, and
 * the mode belongs to all that share the socket. So the pieces go through a buffer. So they do on other systems than
 * Linux.
 *
 *     file --fill: a read--> buffer --drain: a send, which waits for the socket--> socket
 *
 * Threads: it is a coroutine of the loop's thread.
 *
 * 1. A piece is no larger than the pipe, and the pipe is empty when it is filled. So only the file
 *    makes a fill wait. The pipe is drained to the last byte before the next round.
 * 2. `count` is the number of bytes that were moved and drained. Bytes that are in the pipe when it
 *    ends early were read and not sent; they are still in the file.
 * 3. The pipe is closed, or the buffer freed, when no back end refers to it: the coroutine ends, or is
 *    destroyed, only after its operation has ended, or is forgotten.
 * 4. A move waits in the socket's line, so nothing but its call uses the file, and the call checks
 *    first that the file is still open.
 * 5. The bytes that one move may send are bounded, and cost as much of the budget as they take time
 *    (splice_calls.c). So a socket that is never full holds up the loop no longer than any other operation
 *    that is always ready.
 */
#define _GNU_SOURCE
#include "bide/send_file.h"

#include "bide/coroutine.h"

#include "operation.h"

#include "../system/portable.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* Whether there are sendfile(2) and splice(2) as Linux has them. */
#ifdef __linux__
enum { SEND_FILE_MOVES = 1 };
#else
enum { SEND_FILE_MOVES = 0 };
#endif

enum { MAX_FILL = 65536, MAX_MOVE = 262144 };

/* The size of the rest, or `max` if that is less. */
static size_t send_file_rest(const bide_send_file_operation *send, size_t max)
{
    uint64_t left = send->max - send->count;
    return left < max ? (size_t)left : max;
}

static bide_awaiter *send_file_move(bide_send_file_operation *send)
{
    static const bide_awaiter_ops ops = BIDE_IO_OPS("bide_send_file");
    bide_io_operation_init(&send->drain, &ops, BIDE_IO_SEND_FILE, send->socket);
    send->drain.arguments.send_file.file = send->file;
    send->drain.arguments.send_file.offset = send->offset + (int64_t)send->count;
    send->drain.arguments.send_file.size = send_file_rest(send, MAX_MOVE);
    send->is_sending = true;
    return &send->drain.awaiter;
}

static bide_awaiter *send_file_fill(bide_send_file_operation *send)
{
    static const bide_awaiter_ops ops = BIDE_IO_OPS("bide_send_file");
    bide_io_code code = send->copies ? BIDE_IO_READ : BIDE_IO_SPLICE_FROM_FILE;
    bide_io_operation *operation = io_file_init(&send->fill, &ops, code, send->file);
    int64_t offset = send->offset + (int64_t)send->count;
    size_t size = send_file_rest(send, MAX_FILL);
    if (send->copies) {
        operation->arguments.bytes.data = send->buffer;
        operation->arguments.bytes.size = size;
        operation->arguments.bytes.offset = offset;
    } else {
        operation->arguments.splice.pipe = send->pipe[1];
        operation->arguments.splice.offset = offset;
        operation->arguments.splice.size = size;
    }
    return &operation->awaiter;
}

static bide_awaiter *send_file_drain(bide_send_file_operation *send)
{
    static const bide_awaiter_ops ops = BIDE_IO_OPS("bide_send_file");
    size_t size = send->fill.operation.count;
    bide_io_code code = send->copies ? BIDE_IO_SEND : BIDE_IO_SPLICE_TO_SOCKET;
    bide_io_operation_init(&send->drain, &ops, code, send->socket);
    send->drain.is_whole = true;
    if (send->copies) {
        send->drain.arguments.bytes.data = send->buffer;
        send->drain.arguments.bytes.size = size;
    } else {
        send->drain.arguments.splice.pipe = send->pipe[0];
        send->drain.arguments.splice.size = size;
    }
    send->is_sending = true;
    return &send->drain.awaiter;
}

/* Counts the bytes that a move or a drain has sent. */
static void send_file_count_sent(bide_send_file_operation *send)
{
    send->is_sending = false;
    send->count += send->drain.count;
}

static bool send_file_ends_are_open(const bide_send_file_operation *send)
{
    return bide_descriptor_is_open(send->socket) && bide_descriptor_is_open(send->file);
}

/* Whether its socket is in blocking mode. */
static bool send_file_may_block(const bide_send_file_operation *send)
{
    struct stat about;
    int fd = bide_descriptor_fd(send->socket);
    int flags = fcntl(fd, F_GETFL);
    return flags >= 0 && (flags & O_NONBLOCK) == 0 && fstat(fd, &about) == 0 &&
           S_ISSOCK(about.st_mode);
}

/* Makes the pipe or the buffer for a piece, if there is none yet. */
static int send_file_need_way(bide_send_file_operation *send, bide_io *io)
{
    int error = 0;
    if (send->copies) {
        if (send->buffer == NULL)
            send->buffer = malloc(MAX_FILL);
        return send->buffer != NULL ? 0 : -ENOMEM;
    }
    if (send->pipe[0] >= 0)
        return 0;
    if (io_calls(io) != NULL)
        error = io_calls(io)->pipe(io, send->pipe);
    else if (portable_pipe(send->pipe, true) != 0)
        error = -errno;
    if (error < 0) {
        send->pipe[0] = -1;
        send->pipe[1] = -1;
    }
    return error;
}

static void send_file_release_way(bide_send_file_operation *send, bide_io *io)
{
    free(send->buffer);
    send->buffer = NULL;
    for (int i = 0; i < 2; i++) {
        if (send->pipe[i] >= 0)
            bide_io_close_number_(io, send->pipe[i]);
        send->pipe[i] = -1;
    }
}

bide_coroutine(send_file_body)
{
    bide_begin(send_file_body, bide_send_file_operation * self);
    if (!send_file_ends_are_open(self))
        bide_return(-EBADF);
    self->moves = io_calls(io_of_context(bide_this_context())) == NULL;
    self->copies = self->moves && (!SEND_FILE_MOVES || send_file_may_block(self));
    if (self->copies && self->offset < 0)
        bide_return(-EINVAL);
    self->moves = self->moves && !self->copies;
    while (self->count < self->max) {
        if (!send_file_ends_are_open(self)) /* closed between two pieces: as in one */
            bide_return(-EPIPE);
        if (self->moves) {
            bide_await_status(self->status, send_file_move(self));
            send_file_count_sent(self);
            if (self->status < 0)
                bide_return(self->status);
            bide_io_found found = self->drain.arguments.send_file.found;
            if (found == BIDE_IO_FOUND_ALL)
                continue;
            if (found == BIDE_IO_FOUND_END)
                bide_return(0);
            self->moves = found == BIDE_IO_FOUND_SOME;
            if (!send_file_ends_are_open(self))
                bide_return(-EPIPE);
        }
        self->status = send_file_need_way(self, io_of_context(bide_this_context()));
        if (self->status < 0)
            bide_return(self->status);
        bide_await_status(self->status, send_file_fill(self));
        if (self->status < 0)
            bide_return(self->status);
        if (self->fill.operation.count == 0) /* the end of the file */
            bide_return(0);
        if (!send_file_ends_are_open(self))
            bide_return(-EPIPE);
        bide_await_status(self->status, send_file_drain(self));
        send_file_count_sent(self);
        if (self->status < 0)
            bide_return(self->status);
    }
    bide_finally();
    if (self->is_sending)
        send_file_count_sent(self);
    send_file_release_way(self, io_of_context(bide_this_context()));
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
    operation->buffer = NULL;
    return bide_task_init(&operation->task, &send_file_body);
}

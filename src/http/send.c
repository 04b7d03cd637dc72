/*
 * Bytes of files as parts of a response. What fits into the writer's buffer is read into it, behind the
 * head, so that both leave in one call. If the system has the bytes in memory, they are read at once;
 * otherwise as the loop reads files.
 */
#define _GNU_SOURCE
#include "server.h"

#include "../io/operation.h"

#include "bide/coroutine.h"
#include "bide/file.h"

#include <errno.h>
#include <string.h>
#include <sys/uio.h>

enum { SENT_AT_ONCE = 1048576 }; /* between two looks at the clock */

static bool is_socket(bide_stream stream)
{
    return stream.table == bide_socket_stream(NULL).table;
}

/* Reads what the system has in memory. -EAGAIN: it has to be waited for. */
static ptrdiff_t read_now(const bide_descriptor *file, char *data, size_t size, int64_t offset)
{
    struct iovec bytes = {data, size};
    ptrdiff_t count = preadv2(file->fd, &bytes, 1, offset, RWF_NOWAIT);
    if (count > 0)
        io_written(data, (size_t)count);
    return count >= 0 ? count : -EAGAIN;
}

/* Is the file one of the system's? */
static bool is_of_system(const bide_context *context)
{
    return io_calls(io_of_context(context)) == NULL;
}

static size_t next_size(const bide_http_sender_ *self, uint64_t max)
{
    return (size_t)(self->left < max ? self->left : max);
}

static size_t room_behind(const bide_writer *writer)
{
    return writer->size - writer->end;
}

/* `count` bytes were read into the buffer: 0, or -ENODATA, since there are no more. */
static int take_bytes(bide_http_sender_ *self, size_t count)
{
    if (count == 0)
        return -ENODATA;
    self->connection->writer.end += count;
    self->offset += (int64_t)count;
    self->left -= count;
    return 0;
}

/* By way of the buffer. */
bide_coroutine(copy_body)
{
    bide_begin(copy_body, bide_http_sender_ * self);
    while (self->left != 0) {
        bide_writer *writer = &self->connection->writer;
        if (room_behind(writer) == 0) {
            bide_try(bide_http_output_flush_(&self->connection->output));
            continue;
        }
        size_t size = next_size(self, room_behind(writer));
        ptrdiff_t count = is_of_system(bide_this_context())
                              ? read_now(self->file, writer->buffer + writer->end, size, self->offset)
                              : -EAGAIN;
        self->status = count >= 0 ? take_bytes(self, (size_t)count) : -EAGAIN;
        if (self->status == -EAGAIN) {
            bide_await_status(self->status,
                              bide_read_at(&self->read, self->file, writer->buffer + writer->end,
                                           size, self->offset));
            if (self->status == 0)
                self->status = take_bytes(self, self->read.operation.count);
        }
        if (self->status < 0) {
            self->connection->output.error = self->status;
            bide_return(self->status);
        }
    }
    bide_end();
}

/* From the file to the socket. */
bide_coroutine(send_body)
{
    bide_begin(send_body, bide_http_sender_ * self);
    bide_try(bide_http_output_flush_(&self->connection->output));
    while (self->left != 0) {
        http_watch_wait(&self->connection->watch, bide_this_context());
        bide_await_status(self->status,
                          bide_send_file(&self->send, self->connection->stream.object, self->file,
                                         self->offset, next_size(self, SENT_AT_ONCE)));
        http_watch_go_on(&self->connection->watch);
        self->offset += (int64_t)self->send.count;
        self->left -= self->send.count;
        if (self->status == 0 && self->send.count == 0)
            self->status = -ENODATA;
        if (self->status < 0) {
            self->connection->output.error = self->status;
            bide_return(self->status);
        }
    }
    bide_end();
}

bide_awaiter *bide_http_write_file(bide_http_exchange *exchange, bide_descriptor *file,
                                   uint64_t offset, uint64_t length)
{
    bide_http_connection *connection = exchange->connection;
    bide_http_output *output = &connection->output;
    bide_http_sender_ *sender = &connection->sender;
    if (output->error != 0)
        return bide_http_output_fail_(output, output->error);
    if (output->state != HTTP_OUTPUT_BODY || output->framing != HTTP_FRAMING_LENGTH)
        return bide_http_output_fail_(output, -EINVAL);
    int status = bide_http_output_count_(output, length);
    if (status != 0 || output->has_no_body || length == 0)
        return bide_http_output_fail_(output, status);
    sender->file = file;
    sender->offset = (int64_t)offset;
    sender->left = length;
    bool copies = length <= room_behind(&connection->writer) || !is_socket(connection->stream);
    return bide_task_init(&sender->task, copies ? &copy_body : &send_body);
}

const char *bide_http_peer(bide_http_exchange *exchange)
{
    bide_http_connection *connection = exchange->connection;
    bide_address address;
    if (connection->peer[0] != '\0')
        return connection->peer;
    connection->peer[0] = '-';
    connection->peer[1] = '\0';
    if (is_socket(connection->stream) &&
        bide_peer_address(connection->stream.object, &address) == 0 &&
        address.any.generic.sa_family != AF_UNIX) {
        char text[BIDE_ADDRESS_TEXT];
        bide_address_print(&address, text, sizeof text);
        const char *begin = text[0] == '[' ? text + 1 : text;
        const char *end = text[0] == '[' ? strchr(text, ']') : strrchr(text, ':');
        size_t size = end != NULL ? (size_t)(end - begin) : strlen(begin);
        if (size < sizeof connection->peer) {
            memcpy(connection->peer, begin, size);
            connection->peer[size] = '\0';
        }
    }
    return connection->peer;
}

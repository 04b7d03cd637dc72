/*
 * Sends parts of files in a response. A part that fits into the writer's buffer is read into it,
 * behind the head, so both leave in one call. Bytes in the page cache are read at once; other bytes are
 * read as the loop reads files. A larger part goes from the file to the socket (send_file.h).
 *
 * Threads: all functions run on the loop's thread.
 *
 * Why it is correct: bytes are counted when they are in the buffer, or were sent. If the file ends early, a read fails, or
 * the operation is destroyed, bytes may have left that were not counted, and the announced length is wrong. The output
 * then has an error, and the connection is closed. An operation that never began has set is_unfinished (output.c, 3).
 */
#define _GNU_SOURCE
#include "server.h"

#include "compress.h"

#include "../io/operation.h"

#include "bide/coroutine.h"
#include "bide/file.h"
#include "../io/nowait.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

enum {
    HTTP_SENDER_PIECE = 1048576, /* the bytes that are sent before the deadline is renewed */
    HTTP_SENDER_MORE = 65536     /* the bytes of a long part that are copied at once */
};

static bool http_sender_is_socket(bide_stream stream)
{
    return stream.table == bide_socket_stream(NULL).table;
}

/* Reads from the page cache. Returns -EAGAIN if the bytes are not there. */
static ptrdiff_t http_sender_read_cached(const bide_descriptor *file, char *data, size_t size,
                                         int64_t offset)
{
    struct iovec bytes = {data, size};
    ptrdiff_t count = preadv2(bide_descriptor_fd(file), &bytes, 1, offset, RWF_NOWAIT);
    if (count > 0)
        io_written(data, (size_t)count);
    return count >= 0 ? count : -EAGAIN;
}

/* The loop uses the system's files, not simulated ones. */
static bool http_sender_uses_system(const bide_context *context)
{
    return io_calls(io_of_context(context)) == NULL;
}

static size_t http_sender_next_size(const bide_http_sender_ *self, uint64_t max)
{
    return (size_t)(self->left < max ? self->left : max);
}

static size_t http_sender_room(const bide_writer *writer)
{
    return writer->size - writer->end;
}

static void http_sender_pass(bide_http_sender_ *self, size_t count)
{
    bide_assert(count <= self->left);
    self->offset += (int64_t)count;
    self->left -= count;
}

static void http_sender_count(bide_http_sender_ *self, size_t count)
{
    int status = bide_http_output_count_(&self->connection->output, count);
    bide_assert(status == 0); /* the whole part was checked */
    (void)status;
    http_sender_pass(self, count);
}

/*
 * Adds `count` bytes that were read into the buffer. Returns 0, or -ENODATA at the end of the
 * file.
 */
static int http_sender_account(bide_http_sender_ *self, size_t count)
{
    if (count == 0)
        return -ENODATA;
    bide_assert(count <= http_sender_room(&self->connection->writer));
    self->connection->writer.end += count;
    http_sender_count(self, count);
    return 0;
}

/* A part whose rest is missing makes the message invalid, also if the operation is being destroyed. */
static void http_sender_note_end(bide_http_sender_ *self)
{
    bide_http_output *output = &self->connection->output;
    if (self->left != 0 && output->error == 0)
        output->error = -ECANCELED;
}

/*
 * Reads the next piece of a long part, if the page cache has it and the server's memory is the heap.
 * Returns its size, 0 if the buffer is to be used, or -ENODATA at the end of the file.
 */
static ptrdiff_t http_sender_read_more(bide_http_sender_ *self, const bide_context *context)
{
    if (self->more == NULL && self->left >= 2 * (uint64_t)HTTP_SENDER_MORE &&
        self->connection->server->options.allocator == &bide_heap &&
        http_sender_uses_system(context))
        self->more = malloc(HTTP_SENDER_MORE); /* without it, the buffer is used */
    if (self->more == NULL)
        return 0;
    ptrdiff_t count = http_sender_read_cached(
        self->file, self->more, http_sender_next_size(self, HTTP_SENDER_MORE), self->offset);
    if (count <= 0)
        return count == 0 ? -ENODATA : 0;
    return count;
}

/* Copies the part through the buffer, or, while the page cache has it, in larger pieces. */
bide_coroutine(http_sender_copy_body)
{
    bide_begin(http_sender_copy_body, bide_http_sender_ * self);
    self->connection->output.is_unfinished = false;
    while (self->left != 0) {
        bide_writer *writer = &self->connection->writer;
        ptrdiff_t more = http_sender_read_more(self, bide_this_context());
        if (more > 0) {
            bide_try(bide_http_output_write_(&self->connection->output, self->more, (size_t)more));
            http_sender_pass(self, self->connection->output.size);
            continue;
        }
        if (more < 0) {
            self->connection->output.error = (int)more;
            bide_return((int)more);
        }
        if (http_sender_room(writer) == 0) {
            bide_try(bide_http_output_flush_(&self->connection->output));
            continue;
        }
        size_t size = http_sender_next_size(self, http_sender_room(writer));
        ptrdiff_t count = http_sender_uses_system(bide_this_context())
                              ? http_sender_read_cached(self->file, writer->buffer + writer->end,
                                                        size, self->offset)
                              : -EAGAIN;
        self->status = count >= 0 ? http_sender_account(self, (size_t)count) : -EAGAIN;
        if (self->status == -EAGAIN) {
            bide_await_status(self->status,
                              bide_read_at(&self->read, self->file, writer->buffer + writer->end,
                                           size, self->offset));
            if (self->status == 0)
                self->status = http_sender_account(self, self->read.operation.count);
        }
        if (self->status < 0) {
            self->connection->output.error = self->status;
            bide_return(self->status);
        }
    }
    bide_finally();
    free(self->more);
    http_sender_note_end(self);
    bide_end();
}

/* Sends the part from the file to the socket. */
bide_coroutine(http_sender_send_body)
{
    bide_begin(http_sender_send_body, bide_http_sender_ * self);
    self->connection->output.is_unfinished = false;
    bide_try(bide_http_output_flush_(&self->connection->output));
    while (self->left != 0) {
        http_watch_start_wait(&self->connection->watch, HTTP_WATCH_WRITE, bide_this_context());
        bide_await_status(self->status,
                          bide_send_file(&self->send, self->connection->stream.object, self->file,
                                         self->offset,
                                         http_sender_next_size(self, HTTP_SENDER_PIECE)));
        http_watch_stop_wait(&self->connection->watch, HTTP_WATCH_WRITE);
        http_sender_count(self, self->send.count);
        if (self->status == 0 && self->send.count == 0)
            self->status = -ENODATA;
        if (self->status < 0) {
            self->connection->output.error = self->status;
            bide_return(self->status);
        }
    }
    bide_finally();
    http_watch_stop_wait(&self->connection->watch, HTTP_WATCH_WRITE);
    http_sender_note_end(self);
    bide_end();
}

bide_awaiter *bide_http_write_file(bide_http_exchange *exchange, bide_descriptor *file,
                                   uint64_t offset, uint64_t length)
{
    bide_http_connection *connection = exchange->connection;
    bide_http_output *output = &connection->output;
    bide_http_sender_ *sender = &connection->sender;
    if (bide_http_output_settle_(output) != 0)
        return bide_http_output_fail_(output, output->error);
    if (connection->encoding != HTTP_ENCODING_NONE && output->state == HTTP_OUTPUT_BODY)
        return bide_http_compress_file_(connection, file, offset, length);
    if (output->state != HTTP_OUTPUT_BODY || output->framing != HTTP_FRAMING_LENGTH)
        return bide_http_output_fail_(output, -EINVAL);
    int status = bide_http_output_check_(output, length);
    if (status == 0 && output->has_no_body)
        status = bide_http_output_count_(output, length);
    if (status != 0 || output->has_no_body || length == 0)
        return bide_http_output_fail_(output, status);
    sender->file = file;
    sender->offset = (int64_t)offset;
    sender->left = length;
    sender->more = NULL;
    output->is_unfinished = true;
    bool copies = length <= http_sender_room(&connection->writer) ||
                  !http_sender_is_socket(connection->stream);
    return bide_task_init(&sender->task, copies ? &http_sender_copy_body : &http_sender_send_body);
}

const char *bide_http_peer(bide_http_exchange *exchange)
{
    bide_http_connection *connection = exchange->connection;
    bide_address address;
    if (connection->peer[0] != '\0')
        return connection->peer;
    connection->peer[0] = '-';
    connection->peer[1] = '\0';
    if (http_sender_is_socket(connection->stream) &&
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

/*
 * Streams over a socket or a file.
 *
 * Each stream is a table of functions over a descriptor. An operation of the stream is the matching
 * operation of the descriptor. So it keeps that operation's threads and its rules for cancellation.
 * Ending the output completes at once: it shuts down one direction of a socket, and closes a file.
 */
#define _GNU_SOURCE
#include "bide/stream.h"

#include "../io/const_cast.h"

#include <string.h>

static size_t descriptor_count(const bide_stream_operation *operation)
{
    return operation->io.count;
}

static int descriptor_close(bide_stream stream)
{
    return bide_close(stream.object);
}

static bide_awaiter *socket_read(bide_stream stream, bide_stream_operation *operation, void *data,
                                 size_t size)
{
    return bide_recv(&operation->io, stream.object, data, size);
}

static bide_awaiter *socket_write(bide_stream stream, bide_stream_operation *operation,
                                  const void *data, size_t size)
{
    return bide_send(&operation->io, stream.object, data, size);
}

static bide_awaiter *socket_write_vectors(bide_stream stream, bide_stream_operation *operation,
                                          const struct iovec *vectors, int count)
{
    struct msghdr *message = &operation->message.message;
    memset(message, 0, sizeof *message);
    message->msg_iov = io_as_data(vectors);
    message->msg_iovlen = (size_t)count;
    return bide_sendmsg(&operation->message.io, stream.object, message, MSG_NOSIGNAL);
}

static bide_awaiter *socket_end_output(bide_stream stream, bide_stream_operation *operation)
{
    return bide_stream_ended(operation, bide_shutdown(stream.object, BIDE_HALF_OUTPUT));
}

/* The call fails on sockets that are not TCP's, which do not need it. */
static void socket_set_no_delay(bide_stream stream)
{
    (void)bide_set_no_delay(stream.object, true);
}

bide_stream bide_socket_stream(bide_descriptor *socket)
{
    static const bide_stream_table table = {
        .name = "socket",
        .read = socket_read,
        .write = socket_write,
        .write_vectors = socket_write_vectors,
        .count = descriptor_count,
        .shutdown_output = socket_end_output,
        .close = descriptor_close,
        .set_no_delay = socket_set_no_delay,
    };
    bide_stream stream = {&table, socket};
    return stream;
}

static bide_awaiter *file_read(bide_stream stream, bide_stream_operation *operation, void *data,
                               size_t size)
{
    return bide_read(&operation->file, stream.object, data, size);
}

static bide_awaiter *file_write(bide_stream stream, bide_stream_operation *operation,
                                const void *data, size_t size)
{
    return bide_write(&operation->file, stream.object, data, size);
}

static bide_awaiter *file_write_vectors(bide_stream stream, bide_stream_operation *operation,
                                        const struct iovec *vectors, int count)
{
    return bide_writev(&operation->file, stream.object, vectors, count, -1);
}

static bide_awaiter *file_end_output(bide_stream stream, bide_stream_operation *operation)
{
    return bide_stream_ended(operation, bide_close(stream.object));
}

bide_stream bide_file_stream(bide_descriptor *file)
{
    static const bide_stream_table table = {
        .name = "file",
        .read = file_read,
        .write = file_write,
        .write_vectors = file_write_vectors,
        .count = descriptor_count,
        .shutdown_output = file_end_output,
        .close = descriptor_close,
    };
    bide_stream stream = {&table, file};
    return stream;
}

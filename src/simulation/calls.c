/*
 * What operations on descriptors in memory do, where src/io/calls.c has the system's calls; and the
 * calls that are made on them directly. None waits: where one would, it returns -EAGAIN.
 */
#define _GNU_SOURCE
#include "memory.h"

#include "../io/buffer_pool.h"

enum { CHUNK = 4096 };

/* ---- Bytes ---- */

/* A message of one piece; `vector` is for it, and stays. */
static void message_init(memory_message *message, struct iovec *vector, void *data, size_t size,
                         int flags)
{
    *vector = (struct iovec){data, size};
    bide_simulated_bytes_init_(&message->bytes, vector, 1, 0);
    message->flags = flags;
    message->header = NULL;
}

static ptrdiff_t receive(memory_node *node, memory_message *message)
{
    return node->kind->receive != NULL ? node->kind->receive(node, message)
           : node->kind->is_socket     ? -ENOTCONN
                                       : -EINVAL;
}

static ptrdiff_t send_to(memory_node *node, memory_message *message)
{
    return node->kind->send != NULL ? node->kind->send(node, message)
           : node->kind->is_socket  ? -EPIPE
                                    : -EINVAL;
}

static ptrdiff_t move_bytes(memory_node *node, bide_io_operation *operation, bool sends)
{
    memory_message message;
    struct iovec vector;
    size_t size;
    void *data = io_rest(operation, &size);
    message_init(&message, &vector, data, size, operation->flags);
    return sends ? send_to(node, &message) : receive(node, &message);
}

static ptrdiff_t move_message(memory_node *node, struct msghdr *header, int flags, bool sends)
{
    memory_message message;
    bide_simulated_bytes_init_(&message.bytes, header->msg_iov, header->msg_iovlen, 0);
    message.flags = flags;
    message.header = header;
    return sends ? send_to(node, &message) : receive(node, &message);
}

/* Of read and write: a file's are at an offset, others have none. */
static ptrdiff_t move_vectors(memory_node *node, const struct iovec *vectors, size_t count,
                              size_t skip, int64_t offset, bool sends)
{
    memory_message message;
    bide_simulated_bytes_init_(&message.bytes, vectors, count, skip);
    message.flags = 0;
    message.header = NULL;
    if (node->kind->is_file) {
        if (offset >= 0)
            offset += (int64_t)skip;
        return sends ? bide_simulated_file_write_(node, &message.bytes, offset)
                     : bide_simulated_file_read_(node, &message.bytes, offset);
    }
    if (offset >= 0)
        return -ESPIPE;
    return sends ? send_to(node, &message) : receive(node, &message);
}

static ptrdiff_t read_or_write(memory_node *node, const bide_io_operation *operation)
{
    bool sends = operation->code == BIDE_IO_WRITE || operation->code == BIDE_IO_WRITE_VECTOR;
    size_t skip = sends ? operation->count : 0;
    if (operation->code == BIDE_IO_READ_VECTOR || operation->code == BIDE_IO_WRITE_VECTOR) {
        if (operation->arguments.vector.count < 0)
            return -EINVAL;
        return move_vectors(node, operation->arguments.vector.vectors,
                            (size_t)operation->arguments.vector.count, skip,
                            operation->arguments.vector.offset, sends);
    }
    struct iovec vector = {operation->arguments.bytes.data, operation->arguments.bytes.size};
    return move_vectors(node, &vector, 1, skip, operation->arguments.bytes.offset, sends);
}

/* ---- Many, and lent ---- */

static ptrdiff_t move_batch(memory_node *node, bide_io_operation *operation, bool sends)
{
    size_t first = sends ? operation->count : 0;
    ptrdiff_t moved = 0;
    for (size_t i = first; i < operation->arguments.batch.count; i++) {
        bide_message *message = &operation->arguments.batch.messages[i];
        ptrdiff_t size = move_message(node, &message->header, 0, sends);
        if (size < 0)
            return moved != 0 ? moved : size;
        message->size = (unsigned)size;
        moved++;
    }
    return moved;
}

/* Takes a buffer for the time of the call, and keeps it if something has come. */
static ptrdiff_t receive_lent(memory_node *node, bide_io_operation *operation)
{
    bide_buffer_pool *pool = operation->arguments.lent.pool;
    memory_message message;
    struct iovec vector;
    if ((node->kind->ready(node) & POLLIN) == 0)
        return -EAGAIN;
    void *data = bide_io_pool_take_(pool, operation);
    if (data == NULL) {
        bide_io_pool_wait_(operation);
        return -EAGAIN;
    }
    message_init(&message, &vector, data, pool->size, 0);
    ptrdiff_t size = receive(node, &message);
    if (size > 0) {
        operation->arguments.lent.data = data;
        pool->lent++;
    } else {
        bide_io_pool_put_(pool, data);
    }
    return size;
}

/* ---- Splices ---- */

static ptrdiff_t splice_from_file(memory_world *world, const bide_io_operation *operation)
{
    char chunk[CHUNK];
    memory_message message;
    struct iovec vector;
    size_t size = operation->arguments.splice.size, moved = 0;
    int64_t offset = operation->arguments.splice.offset;
    memory_node *file = bide_simulated_node_of_(world, operation->descriptor->fd);
    memory_node *pipe = bide_simulated_node_of_(world, operation->arguments.splice.pipe);
    if (file == NULL || pipe == NULL)
        return -EBADF;
    if (pipe->kind != &bide_simulated_pipe_kind_ || !file->kind->is_file)
        return -EINVAL;
    while (moved < size) {
        message_init(&message, &vector, chunk, size - moved < CHUNK ? size - moved : CHUNK, 0);
        ptrdiff_t count = bide_simulated_file_read_(file, &message.bytes, offset + (int64_t)moved);
        if (count <= 0)
            return moved != 0 ? (ptrdiff_t)moved : count;
        message_init(&message, &vector, chunk, (size_t)count, 0);
        count = send_to(pipe, &message);
        if (count < 0)
            return moved != 0 ? (ptrdiff_t)moved : count;
        moved += (size_t)count;
    }
    return (ptrdiff_t)moved;
}

static void take_from(memory_node *node, char *chunk, size_t size)
{
    memory_message message;
    struct iovec vector;
    while (size != 0) {
        message_init(&message, &vector, chunk, size, 0);
        size -= (size_t)receive(node, &message); /* (it has them) */
    }
}

/* What the next bytes of `from` are goes to `to` as well. */
static ptrdiff_t copy_next(memory_node *from, memory_node *to, char *chunk, size_t size)
{
    memory_message message;
    struct iovec vector;
    message_init(&message, &vector, chunk, size < CHUNK ? size : CHUNK, MSG_PEEK);
    ptrdiff_t count = receive(from, &message);
    if (count <= 0)
        return count;
    message_init(&message, &vector, chunk, (size_t)count, 0);
    return send_to(to, &message);
}

static ptrdiff_t move_on(memory_node *from, memory_node *to, size_t size)
{
    char chunk[CHUNK];
    size_t moved = 0;
    while (moved < size) {
        ptrdiff_t count = copy_next(from, to, chunk, size - moved);
        if (count <= 0)
            return moved != 0 ? (ptrdiff_t)moved : count;
        take_from(from, chunk, (size_t)count);
        moved += (size_t)count;
    }
    return (ptrdiff_t)moved;
}

static ptrdiff_t splice_to_socket(memory_node *socket, const bide_io_operation *operation)
{
    memory_node *pipe = bide_simulated_node_of_(socket->world, operation->arguments.splice.pipe);
    return pipe == NULL
               ? -EBADF
               : move_on(pipe, socket, operation->arguments.splice.size - operation->count);
}

static bool is_spliced(const memory_node *node)
{
    return node->kind == &bide_simulated_pipe_kind_ || node->kind == &bide_simulated_stream_kind_;
}

static bool are_ends_of_one_pipe(const memory_node *one, const memory_node *other)
{
    return one->kind == &bide_simulated_pipe_kind_ && other->kind == &bide_simulated_pipe_kind_ &&
           memory_stream_of(one)->link == memory_stream_of(other)->link;
}

static ptrdiff_t splice_now(bide_io *io, int from_fd, int to_fd, size_t size)
{
    memory_world *world = memory_world_of(io);
    memory_node *from = bide_simulated_node_of_(world, from_fd), *to = bide_simulated_node_of_(world, to_fd);
    if (from == NULL || to == NULL)
        return -EBADF;
    if (from->kind->is_file || to->kind->is_file)
        return -EOPNOTSUPP;
    if (!is_spliced(from) || !is_spliced(to) || are_ends_of_one_pipe(from, to) ||
        (from->kind != &bide_simulated_pipe_kind_ && to->kind != &bide_simulated_pipe_kind_))
        return -EINVAL;
    ptrdiff_t moved = move_on(from, to, size);
    bide_simulated_settle_(world);
    return moved;
}

static ptrdiff_t tee_now(bide_io *io, int from_fd, int to_fd, size_t size)
{
    char chunk[CHUNK];
    memory_world *world = memory_world_of(io);
    memory_node *from = bide_simulated_node_of_(world, from_fd), *to = bide_simulated_node_of_(world, to_fd);
    if (from == NULL || to == NULL)
        return -EBADF;
    if (from->kind != &bide_simulated_pipe_kind_ || to->kind != &bide_simulated_pipe_kind_ ||
        are_ends_of_one_pipe(from, to))
        return -EINVAL;
    ptrdiff_t copied = copy_next(from, to, chunk, size);
    bide_simulated_settle_(world);
    return copied;
}

/* ---- All of them ---- */

static ptrdiff_t poll_it(const memory_node *node, unsigned wanted)
{
    unsigned found = node->kind->ready(node) & (wanted | POLLERR | POLLHUP);
    return found != 0 ? (ptrdiff_t)found : -EAGAIN;
}

static ptrdiff_t of_a_socket(memory_node *node, bide_io_operation *operation)
{
    switch (operation->code) {
    case BIDE_IO_RECV:
        return move_bytes(node, operation, false);
    case BIDE_IO_SEND_ZERO_COPY:
        operation->arguments.bytes.was_copied = true;
        return move_bytes(node, operation, true);
    case BIDE_IO_SEND:
        return move_bytes(node, operation, true);
    case BIDE_IO_RECVMSG:
        return move_message(node, operation->arguments.message, operation->flags, false);
    case BIDE_IO_SENDMSG:
        return move_message(node, operation->arguments.message, operation->flags, true);
    case BIDE_IO_RECV_BATCH:
        return move_batch(node, operation, false);
    case BIDE_IO_SEND_BATCH:
        return move_batch(node, operation, true);
    case BIDE_IO_RECV_PROVIDED:
        return receive_lent(node, operation);
    case BIDE_IO_SPLICE_TO_SOCKET:
        return splice_to_socket(node, operation);
    case BIDE_IO_CONNECT:
        return bide_simulated_connected_(node);
    default:
        return bide_simulated_accept_(node, operation->arguments.accept.peer);
    }
}

ptrdiff_t bide_simulated_call_(memory_world *world, bide_io_operation *operation)
{
    memory_node *node =
        operation->descriptor != NULL ? bide_simulated_node_of_(world, operation->descriptor->fd) : NULL;
    if (node == NULL && operation->descriptor != NULL)
        return -EBADF;
    switch (operation->code) {
    case BIDE_IO_READ:
    case BIDE_IO_WRITE:
    case BIDE_IO_READ_VECTOR:
    case BIDE_IO_WRITE_VECTOR:
        return read_or_write(node, operation);
    case BIDE_IO_POLL:
        return poll_it(node, operation->arguments.poll.wanted);
    case BIDE_IO_SPLICE_FROM_FILE:
        return splice_from_file(world, operation);
    default:
        break;
    }
    if (operation->code >= BIDE_IO_OPEN)
        return bide_simulated_file_call_(world, operation);
    return node->kind->is_socket ? of_a_socket(node, operation) : -ENOTSOCK;
}

/* ---- Directly ---- */

static int close_number(bide_io *io, int fd)
{
    memory_world *world = memory_world_of(io);
    int error = bide_simulated_close_(world, fd);
    bide_simulated_settle_(world);
    return error;
}

static int shut_down(bide_io *io, int fd, int how)
{
    memory_world *world = memory_world_of(io);
    memory_node *node = bide_simulated_node_of_(world, fd);
    if (node == NULL)
        return -EBADF;
    if (node->kind->shut == NULL)
        return -ENOTSOCK;
    int error = node->kind->shut(node, how);
    bide_simulated_settle_(world);
    return error;
}

static int get_name(bide_io *io, int fd, bide_address *address)
{
    const memory_node *node = bide_simulated_node_of_(memory_world_of(io), fd);
    if (node == NULL)
        return -EBADF;
    if (node->kind->get_name == NULL)
        return -ENOTSOCK;
    node->kind->get_name(node, address);
    return 0;
}

static int get_peer(bide_io *io, int fd, bide_address *address)
{
    const memory_node *node = bide_simulated_node_of_(memory_world_of(io), fd);
    if (node == NULL)
        return -EBADF;
    if (node->kind->get_peer == NULL)
        return node->kind->is_socket ? -ENOTCONN : -ENOTSOCK;
    return node->kind->get_peer(node, address);
}

static int set_option(bide_io *io, int fd, int level, int name, int value)
{
    memory_world *world = memory_world_of(io);
    memory_node *node = bide_simulated_node_of_(world, fd);
    if (node == NULL)
        return -EBADF;
    int error = bide_simulated_set_option_(node, level, name, value);
    bide_simulated_settle_(world);
    return error;
}

static int get_option(bide_io *io, int fd, int level, int name, int *value)
{
    memory_node *node = bide_simulated_node_of_(memory_world_of(io), fd);
    return node != NULL ? bide_simulated_get_option_(node, level, name, value) : -EBADF;
}

static int poll_now(bide_io *io, int fd, unsigned events)
{
    const memory_node *node = bide_simulated_node_of_(memory_world_of(io), fd);
    ptrdiff_t found = node != NULL ? poll_it(node, events) : POLLNVAL;
    return found > 0 ? (int)found : 0;
}

static int open_now(bide_io *io, const char *path, int flags, unsigned mode)
{
    return bide_simulated_open_(memory_world_of(io), path, flags, mode);
}

static int open_pipe(bide_io *io, int *fds)
{
    return bide_simulated_pipe_(memory_world_of(io), fds);
}

static int seek(bide_io *io, int fd, int64_t offset)
{
    memory_node *node = bide_simulated_node_of_(memory_world_of(io), fd);
    return node == NULL ? -EBADF : node->kind->is_file ? bide_simulated_seek_(node, offset) : -ESPIPE;
}

const bide_io_calls bide_simulated_calls_ = {
    .close = close_number,
    .shutdown = shut_down,
    .getsockname = get_name,
    .getpeername = get_peer,
    .setsockopt = set_option,
    .getsockopt = get_option,
    .poll = poll_now,
    .open = open_now,
    .pipe = open_pipe,
    .splice = splice_now,
    .tee = tee_now,
    .lseek = seek,
};

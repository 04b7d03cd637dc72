/*
 * The rows of the io in memory, in place of the system calls of src/io/calls.c, and the calls on
 * its descriptors. No call waits: instead it returns -EAGAIN.
 */
#define _GNU_SOURCE
#include "memory.h"

#include "../io/buffer_pool.h"

#include <limits.h>

enum { CHUNK = 4096 };

/* ---- Bytes ---- */

/* A message of one piece, which refers to `vector`. */
static void message_in_memory_init(memory_message *message, struct iovec *vector, void *data,
                                   size_t size, int flags)
{
    *vector = (struct iovec){data, size};
    bide_sim_bytes_init_(&message->bytes, vector, 1, 0);
    message->flags = flags;
    message->header = NULL;
}

static ptrdiff_t sim_receive(memory_node *node, memory_message *message)
{
    return node->kind->receive != NULL ? node->kind->receive(node, message)
           : node->kind->is_socket     ? -ENOTCONN
                                       : -EINVAL;
}

static ptrdiff_t sim_send(memory_node *node, memory_message *message)
{
    return node->kind->send != NULL ? node->kind->send(node, message)
           : node->kind->is_socket  ? -EPIPE
                                    : -EINVAL;
}

static ptrdiff_t sim_move_bytes(memory_node *node, bide_io_operation *operation, bool sends)
{
    memory_message message;
    struct iovec vector;
    size_t size;
    void *data = io_rest(operation, &size);
    message_in_memory_init(&message, &vector, data, size, operation->flags);
    return sends ? sim_send(node, &message) : sim_receive(node, &message);
}

static ptrdiff_t sim_recv(sim_environment *environment, memory_node *node,
                          bide_io_operation *operation)
{
    (void)environment;
    return sim_move_bytes(node, operation, false);
}

static ptrdiff_t sim_send_bytes(sim_environment *environment, memory_node *node,
                                bide_io_operation *operation)
{
    (void)environment;
    return sim_move_bytes(node, operation, true);
}

static ptrdiff_t sim_send_copied(sim_environment *environment, memory_node *node,
                                 bide_io_operation *operation)
{
    operation->arguments.bytes.was_copied = true;
    return sim_send_bytes(environment, node, operation);
}

static ptrdiff_t sim_move_message(memory_node *node, struct msghdr *header, int flags, bool sends)
{
    memory_message message;
    bide_sim_bytes_init_(&message.bytes, header->msg_iov, header->msg_iovlen, 0);
    message.flags = flags;
    message.header = header;
    return sends ? sim_send(node, &message) : sim_receive(node, &message);
}

static ptrdiff_t sim_recvmsg(sim_environment *environment, memory_node *node,
                             bide_io_operation *operation)
{
    (void)environment;
    return sim_move_message(node, operation->arguments.message, operation->flags, false);
}

static ptrdiff_t sim_sendmsg(sim_environment *environment, memory_node *node,
                             bide_io_operation *operation)
{
    (void)environment;
    return sim_move_message(node, operation->arguments.message, operation->flags, true);
}

/* A file is read and written at an offset; a node that is no file has none. */
static ptrdiff_t sim_move_vectors(memory_node *node, const struct iovec *vectors, size_t count,
                                  size_t skip, int64_t offset, bool sends)
{
    memory_message message;
    bide_sim_bytes_init_(&message.bytes, vectors, count, skip);
    message.flags = 0;
    message.header = NULL;
    if (node->kind->is_file) {
        if (offset >= 0)
            offset += (int64_t)skip;
        return sends ? bide_sim_file_write_(node, &message.bytes, offset)
                     : bide_sim_file_read_(node, &message.bytes, offset);
    }
    if (offset >= 0)
        return -ESPIPE;
    if (node->kind->is_socket && message.bytes.left == 0 && (!sends || count == 0))
        return 0; /* (a receive would take a datagram) */
    return sends ? sim_send(node, &message) : sim_receive(node, &message);
}

static ptrdiff_t sim_read(sim_environment *environment, memory_node *node,
                          bide_io_operation *operation)
{
    struct iovec vector = {operation->arguments.bytes.data, operation->arguments.bytes.size};
    (void)environment;
    return sim_move_vectors(node, &vector, 1, 0, operation->arguments.bytes.offset, false);
}

static ptrdiff_t sim_write(sim_environment *environment, memory_node *node,
                           bide_io_operation *operation)
{
    struct iovec vector = {operation->arguments.bytes.data, operation->arguments.bytes.size};
    (void)environment;
    return sim_move_vectors(node, &vector, 1, operation->count, operation->arguments.bytes.offset,
                            true);
}

static ptrdiff_t sim_readv(sim_environment *environment, memory_node *node,
                           bide_io_operation *operation)
{
    (void)environment;
    int count = operation->arguments.vector.count;
    if (count < 0)
        return -EINVAL;
    return sim_move_vectors(node, operation->arguments.vector.vectors,
                            (size_t)(count < IOV_MAX ? count : IOV_MAX),
                            0, /* (as a call of the system) */
                            operation->arguments.vector.offset, false);
}

static ptrdiff_t sim_writev(sim_environment *environment, memory_node *node,
                            bide_io_operation *operation)
{
    (void)environment;
    if (operation->arguments.vector.count < 0)
        return -EINVAL;
    return sim_move_vectors(node, operation->arguments.vector.vectors,
                            (size_t)operation->arguments.vector.count, operation->count,
                            operation->arguments.vector.offset, true);
}

/* ---- Batches, and buffers of a pool ---- */

static ptrdiff_t sim_move_batch(memory_node *node, bide_io_operation *operation, size_t first,
                                bool sends)
{
    ptrdiff_t moved = 0;
    for (size_t i = first; i < operation->arguments.batch.count; i++) {
        bide_message *message = &operation->arguments.batch.messages[i];
        ptrdiff_t size = sim_move_message(node, &message->header, 0, sends);
        if (size < 0)
            return moved != 0 ? moved : size;
        message->size = (unsigned)size;
        moved++;
    }
    return moved;
}

static ptrdiff_t sim_recv_batch(sim_environment *environment, memory_node *node,
                                bide_io_operation *operation)
{
    (void)environment;
    return sim_move_batch(node, operation, 0, false);
}

static ptrdiff_t sim_send_batch(sim_environment *environment, memory_node *node,
                                bide_io_operation *operation)
{
    (void)environment;
    return sim_move_batch(node, operation, operation->count, true);
}

/* Takes a buffer for the call, and keeps it if the call received bytes. */
static ptrdiff_t sim_recv_provided(sim_environment *environment, memory_node *node,
                                   bide_io_operation *operation)
{
    bide_buffer_pool *pool = operation->arguments.provided.pool;
    memory_message message;
    struct iovec vector;
    (void)environment;
    if ((node->kind->ready(node) & POLLIN) == 0)
        return -EAGAIN;
    void *data = bide_buffer_pool_pop_(pool, operation);
    if (data == NULL) {
        bide_buffer_pool_wait_(operation);
        return -EAGAIN;
    }
    message_in_memory_init(&message, &vector, data, pool->size, 0);
    ptrdiff_t size = sim_receive(node, &message);
    if (size > 0) {
        operation->arguments.provided.data = data;
        pool->in_use++;
    } else {
        bide_buffer_pool_push_(pool, data);
    }
    return size;
}

/* ---- Splices ---- */

static ptrdiff_t sim_splice_from_file(sim_environment *environment, memory_node *file,
                                      bide_io_operation *operation)
{
    char chunk[CHUNK];
    memory_message message;
    struct iovec vector;
    size_t size = operation->arguments.splice.size, moved = 0;
    int64_t offset = operation->arguments.splice.offset;
    memory_node *pipe = bide_sim_node_of_(environment, operation->arguments.splice.pipe);
    if (pipe == NULL)
        return -EBADF;
    if (pipe->kind != &bide_sim_pipe_kind_ || !file->kind->is_file)
        return -EINVAL;
    while (moved < size) {
        message_in_memory_init(&message, &vector, chunk,
                               size - moved < CHUNK ? size - moved : CHUNK, 0);
        ptrdiff_t count = bide_sim_file_read_(file, &message.bytes, offset + (int64_t)moved);
        if (count <= 0)
            return moved != 0 ? (ptrdiff_t)moved : count;
        message_in_memory_init(&message, &vector, chunk, (size_t)count, 0);
        count = sim_send(pipe, &message);
        if (count < 0)
            return moved != 0 ? (ptrdiff_t)moved : count;
        moved += (size_t)count;
    }
    return (ptrdiff_t)moved;
}

static ptrdiff_t sim_copy_range(sim_environment *environment, memory_node *to,
                                bide_io_operation *operation)
{
    char chunk[CHUNK];
    memory_message message;
    struct iovec vector;
    size_t size = operation->arguments.copy.size, moved = 0;
    memory_node *from =
        bide_sim_node_of_(environment, bide_descriptor_fd(operation->arguments.copy.file));
    if (from == NULL)
        return -EBADF;
    if (!from->kind->is_file)
        return -EINVAL;
    int error = bide_sim_file_check_copy_(from, operation->arguments.copy.from, to,
                                          operation->arguments.copy.to, size);
    if (error != 0)
        return error;
    while (moved < size) {
        message_in_memory_init(&message, &vector, chunk,
                               size - moved < CHUNK ? size - moved : CHUNK, 0);
        ptrdiff_t count = bide_sim_file_read_(from, &message.bytes,
                                              operation->arguments.copy.from + (int64_t)moved);
        if (count > 0) {
            message_in_memory_init(&message, &vector, chunk, (size_t)count, 0);
            count = bide_sim_file_write_(to, &message.bytes,
                                         operation->arguments.copy.to + (int64_t)moved);
        }
        if (count <= 0)
            return moved != 0 ? (ptrdiff_t)moved : count;
        moved += (size_t)count;
    }
    return (ptrdiff_t)moved;
}

static void sim_discard(memory_node *node, char *chunk, size_t size)
{
    memory_message message;
    struct iovec vector;
    while (size != 0) {
        message_in_memory_init(&message, &vector, chunk, size, 0);
        size -= (size_t)sim_receive(node, &message); /* (it has that many) */
    }
}

/* Copies the next bytes of `from`, which keeps them, to `to`. */
static ptrdiff_t sim_copy_next(memory_node *from, memory_node *to, char *chunk, size_t size)
{
    memory_message message;
    struct iovec vector;
    message_in_memory_init(&message, &vector, chunk, size < CHUNK ? size : CHUNK, MSG_PEEK);
    ptrdiff_t count = sim_receive(from, &message);
    if (count <= 0)
        return count;
    message_in_memory_init(&message, &vector, chunk, (size_t)count, 0);
    return sim_send(to, &message);
}

static ptrdiff_t sim_splice_bytes(memory_node *from, memory_node *to, size_t size)
{
    char chunk[CHUNK];
    size_t moved = 0;
    while (moved < size) {
        ptrdiff_t count = sim_copy_next(from, to, chunk, size - moved);
        if (count <= 0)
            return moved != 0 ? (ptrdiff_t)moved : count;
        sim_discard(from, chunk, (size_t)count);
        moved += (size_t)count;
    }
    return (ptrdiff_t)moved;
}

static ptrdiff_t sim_splice_to_socket(sim_environment *environment, memory_node *socket,
                                      bide_io_operation *operation)
{
    memory_node *pipe = bide_sim_node_of_(environment, operation->arguments.splice.pipe);
    if (pipe == NULL)
        return -EBADF;
    return sim_splice_bytes(pipe, socket, operation->arguments.splice.size - operation->count);
}

static bool sim_can_be_spliced(const memory_node *node)
{
    return node->kind == &bide_sim_pipe_kind_ || node->kind == &bide_sim_stream_kind_;
}

static bool are_ends_of_one_pipe(const memory_node *one, const memory_node *other)
{
    return one->kind == &bide_sim_pipe_kind_ && other->kind == &bide_sim_pipe_kind_ &&
           memory_stream_of(one)->link == memory_stream_of(other)->link;
}

static ptrdiff_t sim_splice(bide_io *io, int from_fd, int to_fd, size_t size)
{
    sim_environment *environment = sim_environment_of(io);
    memory_node *from = bide_sim_node_of_(environment, from_fd),
                *to = bide_sim_node_of_(environment, to_fd);
    if (from == NULL || to == NULL)
        return -EBADF;
    if (from->kind->is_file || to->kind->is_file)
        return -EOPNOTSUPP;
    if (!sim_can_be_spliced(from) || !sim_can_be_spliced(to) || are_ends_of_one_pipe(from, to) ||
        (from->kind != &bide_sim_pipe_kind_ && to->kind != &bide_sim_pipe_kind_))
        return -EINVAL;
    ptrdiff_t moved = sim_splice_bytes(from, to, size);
    bide_sim_settle_(environment);
    return moved;
}

static ptrdiff_t sim_tee(bide_io *io, int from_fd, int to_fd, size_t size)
{
    char chunk[CHUNK];
    sim_environment *environment = sim_environment_of(io);
    memory_node *from = bide_sim_node_of_(environment, from_fd),
                *to = bide_sim_node_of_(environment, to_fd);
    if (from == NULL || to == NULL)
        return -EBADF;
    if (from->kind != &bide_sim_pipe_kind_ || to->kind != &bide_sim_pipe_kind_ ||
        are_ends_of_one_pipe(from, to))
        return -EINVAL;
    ptrdiff_t copied = sim_copy_next(from, to, chunk, size);
    bide_sim_settle_(environment);
    return copied;
}

/* ---- Sockets ---- */

static ptrdiff_t sim_poll_node(const memory_node *node, unsigned wanted)
{
    unsigned found = node->kind->ready(node) & (wanted | POLLERR | POLLHUP);
    return found != 0 ? (ptrdiff_t)found : -EAGAIN;
}

static ptrdiff_t sim_poll(sim_environment *environment, memory_node *node,
                          bide_io_operation *operation)
{
    (void)environment;
    return sim_poll_node(node, operation->arguments.poll.wanted);
}

static ptrdiff_t sim_case(sim_environment *environment, memory_node *node,
                          bide_io_operation *operation)
{
    (void)environment;
    ptrdiff_t found = sim_poll_node(node, POLLIN);
    return found > 0 ? bide_io_end_case_(operation) : found;
}

static ptrdiff_t sim_connect(sim_environment *environment, memory_node *node,
                             bide_io_operation *operation)
{
    (void)environment;
    (void)operation;
    return bide_sim_connected_(node);
}

static ptrdiff_t sim_accept(sim_environment *environment, memory_node *node,
                            bide_io_operation *operation)
{
    (void)environment;
    return bide_sim_accept_(node, operation->arguments.accept.peer);
}

ptrdiff_t bide_sim_call_nothing_(sim_environment *environment, memory_node *node,
                                 bide_io_operation *operation)
{
    (void)environment;
    (void)node;
    (void)operation;
    return -ENOTSUP;
}

/* ---- Opening ---- */

void bide_sim_take_opened_(sim_environment *environment, bide_descriptor *descriptor, int fd)
{
    bide_assert(bide_sim_node_of_(environment, fd) != NULL);
    bide_descriptor_init(descriptor, fd);
    descriptor->bits = IO_PROBED;
    bide_io_adopt(&environment->io, descriptor);
}

static int sim_open_connection(sim_environment *environment, bide_io_operation *operation)
{
    if (operation->arguments.connect.options != NULL)
        return -EOPNOTSUPP;
    return bide_sim_connect_(environment, operation->arguments.connect.address);
}

static int sim_open_listener(sim_environment *environment, bide_io_operation *operation)
{
    if (operation->arguments.listen.options != NULL)
        return -EOPNOTSUPP;
    return bide_sim_listen_(environment, operation->arguments.listen.address,
                            operation->arguments.listen.backlog, operation->flags);
}

static int sim_open_receiver(sim_environment *environment, bide_io_operation *operation)
{
    if (operation->arguments.listen.options != NULL)
        return -EOPNOTSUPP;
    return bide_sim_open_datagrams_(environment, operation->arguments.listen.address,
                                    operation->flags);
}

static int sim_open_pair(sim_environment *environment, bide_io_operation *operation)
{
    int fds[2];
    int error = bide_sim_socket_pair_(environment, fds);
    if (error != 0)
        return error;
    bide_sim_take_opened_(environment, operation->arguments.accept.accepted, fds[1]);
    return fds[0];
}

int bide_sim_open_own_(sim_environment *environment, bide_io_operation *operation)
{
    int fd = bide_sim_rows_[operation->code].open(environment, operation);
    if (fd < 0)
        return fd;
    bide_sim_take_opened_(environment, operation->descriptor, fd);
    return 0;
}

/* ---- The rows ---- */

#define ON_SOCKET(row_call)                                              \
    {                                                                    \
        .call = (row_call), .node = MEMORY_ON_SOCKET, .error = -ENOTSOCK \
    }
#define ON_FILE(row_call, row_error)                                     \
    {                                                                    \
        .call = (row_call), .node = MEMORY_ON_FILE, .error = (row_error) \
    }
#define AT_ONCE(row_open)                                  \
    {                                                      \
        .call = bide_sim_call_nothing_, .open = (row_open) \
    }

const memory_row bide_sim_rows_[] = {
    [BIDE_IO_RECV] = ON_SOCKET(sim_recv),
    [BIDE_IO_SEND] = ON_SOCKET(sim_send_bytes),
    [BIDE_IO_RECVMSG] = ON_SOCKET(sim_recvmsg),
    [BIDE_IO_SENDMSG] = ON_SOCKET(sim_sendmsg),
    [BIDE_IO_ACCEPT] = ON_SOCKET(sim_accept),
    [BIDE_IO_CONNECT] = {.call = sim_connect,
                         .node = MEMORY_ON_SOCKET,
                         .error = -ENOTSOCK,
                         .open = sim_open_connection},
    [BIDE_IO_READ] = {.call = sim_read},
    [BIDE_IO_WRITE] = {.call = sim_write},
    [BIDE_IO_READ_VECTOR] = {.call = sim_readv},
    [BIDE_IO_WRITE_VECTOR] = {.call = sim_writev},
    [BIDE_IO_POLL] = {.call = sim_poll},
    [BIDE_IO_ACCEPT_STREAM] = {.call = bide_sim_call_nothing_},
    [BIDE_IO_RECV_PROVIDED] = ON_SOCKET(sim_recv_provided),
    [BIDE_IO_RECV_NEXT] = ON_SOCKET(sim_recv_provided),
    [BIDE_IO_RECV_STREAM] = {.call = bide_sim_call_nothing_},
    [BIDE_IO_RECV_BATCH] = ON_SOCKET(sim_recv_batch),
    [BIDE_IO_SEND_BATCH] = ON_SOCKET(sim_send_batch),
    [BIDE_IO_SEND_ZERO_COPY] = ON_SOCKET(sim_send_copied),
    [BIDE_IO_SPLICE_TO_SOCKET] = ON_SOCKET(sim_splice_to_socket),
    [BIDE_IO_SEND_FILE] = {.call = bide_sim_call_nothing_},
    [BIDE_IO_CASE] = {.call = sim_case},

    [BIDE_IO_LISTEN] = AT_ONCE(sim_open_listener),
    [BIDE_IO_BIND] = AT_ONCE(sim_open_receiver),
    [BIDE_IO_PAIR] = AT_ONCE(sim_open_pair),

    [BIDE_IO_OPEN] = {.call = bide_sim_call_open_},
    [BIDE_IO_SYNC] = ON_FILE(bide_sim_call_sync_, -EINVAL),
    [BIDE_IO_ALLOCATE] = {.call = bide_sim_call_allocate_},
    [BIDE_IO_TRUNCATE] = ON_FILE(bide_sim_call_truncate_, -EINVAL),
    [BIDE_IO_STAT] = {.call = bide_sim_call_stat_},
    [BIDE_IO_RENAME] = {.call = bide_sim_call_rename_},
    [BIDE_IO_UNLINK] = {.call = bide_sim_call_unlink_},
    [BIDE_IO_MAKE_DIRECTORY] = {.call = bide_sim_call_make_directory_},
    [BIDE_IO_LINK] = {.call = bide_sim_call_link_},
    [BIDE_IO_SYMLINK] = {.call = bide_sim_call_nothing_},
    [BIDE_IO_READLINK] = {.call = bide_sim_call_readlink_},
    [BIDE_IO_REALPATH] = {.call = bide_sim_call_nothing_},
    [BIDE_IO_STATX] = {.call = bide_sim_call_statx_},
    [BIDE_IO_STATFS] = {.call = bide_sim_call_nothing_},
    [BIDE_IO_CHMOD] = {.call = bide_sim_call_chmod_},
    [BIDE_IO_CHOWN] = {.call = bide_sim_call_nothing_},
    [BIDE_IO_UTIMES] = {.call = bide_sim_call_nothing_},
    [BIDE_IO_OPEN_TEMPORARY] = {.call = bide_sim_call_open_temporary_},
    [BIDE_IO_COPY_RANGE] = ON_FILE(sim_copy_range, -EINVAL),
    [BIDE_IO_SPLICE_FROM_FILE] = {.call = sim_splice_from_file},
    [BIDE_IO_READ_DIRECTORY] = ON_FILE(bide_sim_call_read_directory_, -ENOTDIR),
    [BIDE_IO_MAP] = {.call = bide_sim_call_nothing_},
    [BIDE_IO_PREFAULT] = {.call = bide_sim_call_nothing_},
};

BIDE_STATIC_ASSERT(sizeof bide_sim_rows_ / sizeof *bide_sim_rows_ == BIDE_IO_CODES,
                   "every code has a row");

bool bide_sim_has_row_(bide_io_code code)
{
    const memory_row *row = &bide_sim_rows_[code];
    return row->call != NULL &&
           (row->open != NULL) == (bide_io_rows_[code].opens == IO_OPENS_OWN) &&
           (row->error != 0) == (row->node != MEMORY_ON_ANY);
}

ptrdiff_t bide_sim_io_call_(sim_environment *environment, bide_io_operation *operation)
{
    const memory_row *row = &bide_sim_rows_[operation->code];
    memory_node *node =
        operation->descriptor != NULL ? bide_sim_node_of_(environment, io_fd(operation)) : NULL;
    if (node == NULL && operation->descriptor != NULL)
        return -EBADF;
    if ((row->node == MEMORY_ON_SOCKET && !node->kind->is_socket) ||
        (row->node == MEMORY_ON_FILE && !node->kind->is_file))
        return row->error;
    return row->call(environment, node, operation);
}

/* ---- Calls on descriptors ---- */

static int sim_close(bide_io *io, int fd)
{
    sim_environment *environment = sim_environment_of(io);
    int error = bide_sim_close_(environment, fd);
    bide_sim_settle_(environment);
    return error;
}

static int sim_shutdown(bide_io *io, int fd, int how)
{
    sim_environment *environment = sim_environment_of(io);
    memory_node *node = bide_sim_node_of_(environment, fd);
    if (node == NULL)
        return -EBADF;
    if (node->kind->shut == NULL)
        return -ENOTSOCK;
    int error = node->kind->shut(node, how);
    bide_sim_settle_(environment);
    return error;
}

static int sim_getsockname(bide_io *io, int fd, bide_address *address)
{
    const memory_node *node = bide_sim_node_of_(sim_environment_of(io), fd);
    if (node == NULL)
        return -EBADF;
    if (node->kind->get_name == NULL)
        return -ENOTSOCK;
    node->kind->get_name(node, address);
    return 0;
}

static int sim_getpeername(bide_io *io, int fd, bide_address *address)
{
    const memory_node *node = bide_sim_node_of_(sim_environment_of(io), fd);
    if (node == NULL)
        return -EBADF;
    if (node->kind->get_peer == NULL)
        return node->kind->is_socket ? -ENOTCONN : -ENOTSOCK;
    return node->kind->get_peer(node, address);
}

static int sim_setsockopt(bide_io *io, int fd, int level, int name, int value)
{
    sim_environment *environment = sim_environment_of(io);
    memory_node *node = bide_sim_node_of_(environment, fd);
    if (node == NULL)
        return -EBADF;
    int error = bide_sim_set_option_(node, level, name, value);
    bide_sim_settle_(environment);
    return error;
}

static int sim_getsockopt(bide_io *io, int fd, int level, int name, int *value)
{
    memory_node *node = bide_sim_node_of_(sim_environment_of(io), fd);
    return node != NULL ? bide_sim_get_option_(node, level, name, value) : -EBADF;
}

static int sim_poll_now(bide_io *io, int fd, unsigned events)
{
    const memory_node *node = bide_sim_node_of_(sim_environment_of(io), fd);
    ptrdiff_t found = node != NULL ? sim_poll_node(node, events) : POLLNVAL;
    return found > 0 ? (int)found : 0;
}

static int sim_open(bide_io *io, const char *path, int flags, unsigned mode)
{
    return bide_sim_open_(sim_environment_of(io), path, flags, mode);
}

static int sim_pipe(bide_io *io, int *fds)
{
    return bide_sim_pipe_(sim_environment_of(io), fds);
}

static int sim_lseek(bide_io *io, int fd, int64_t offset)
{
    memory_node *node = bide_sim_node_of_(sim_environment_of(io), fd);
    return node == NULL ? -EBADF : node->kind->is_file ? bide_sim_seek_(node, offset) : -ESPIPE;
}

const bide_io_calls bide_sim_calls_ = {
    .close = sim_close,
    .shutdown = sim_shutdown,
    .getsockname = sim_getsockname,
    .getpeername = sim_getpeername,
    .setsockopt = sim_setsockopt,
    .getsockopt = sim_getsockopt,
    .poll = sim_poll_now,
    .open = sim_open,
    .pipe = sim_pipe,
    .splice = sim_splice,
    .tee = sim_tee,
    .lseek = sim_lseek,
    .resolve = bide_sim_resolve_,
    .resolve_records = bide_sim_resolve_records_,
};

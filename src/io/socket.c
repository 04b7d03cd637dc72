/*
 * Operations on sockets, and calls on them that never wait. Operations: any thread; calls: the
 * thread of the socket's io.
 */
#define _GNU_SOURCE
#include "bide/socket.h"

#include "const_cast.h"
#include "operation.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/uio.h>

static void socket_open_init(bide_io_operation *operation, const bide_awaiter_ops *ops,
                             bide_io_code code, bide_descriptor *descriptor,
                             const bide_address *address, int flags)
{
    bide_descriptor_init_closed(descriptor);
    bide_io_operation_init(operation, ops, code, descriptor);
    operation->flags = flags;
    operation->arguments.listen.address = address;
}

bide_awaiter *bide_listen_with(bide_io_operation *operation, bide_descriptor *listener,
                               const bide_address *address, int backlog, int flags)
{
    static const bide_awaiter_ops ops = BIDE_IO_OPS("bide_listen");
    socket_open_init(operation, &ops, BIDE_IO_LISTEN, listener, address, flags);
    operation->arguments.listen.type = SOCK_STREAM;
    operation->arguments.listen.backlog = backlog;
    return &operation->awaiter;
}

bide_awaiter *bide_listen(bide_io_operation *operation, bide_descriptor *listener,
                          const bide_address *address, int backlog)
{
    return bide_listen_with(operation, listener, address, backlog, 0);
}

bide_awaiter *bide_bind(bide_io_operation *operation, bide_descriptor *receiver,
                        const bide_address *address, int flags)
{
    static const bide_awaiter_ops ops = BIDE_IO_OPS("bide_bind");
    socket_open_init(operation, &ops, BIDE_IO_BIND, receiver, address, flags);
    operation->arguments.listen.type = SOCK_DGRAM;
    return &operation->awaiter;
}

bide_awaiter *bide_socket_pair(bide_io_operation *operation, bide_descriptor *one,
                               bide_descriptor *other)
{
    static const bide_awaiter_ops ops = BIDE_IO_OPS("bide_socket_pair");
    bide_descriptor_init_closed(one);
    bide_descriptor_init_closed(other);
    bide_io_operation_init(operation, &ops, BIDE_IO_PAIR, one);
    operation->arguments.accept.accepted = other;
    operation->arguments.accept.peer = NULL;
    return &operation->awaiter;
}

bide_awaiter *bide_accept(bide_io_operation *operation, bide_descriptor *listener,
                          bide_descriptor *accepted, bide_address *peer)
{
    static const bide_awaiter_ops ops = BIDE_IO_OPS_IN_CHOICE("bide_accept");
    bide_descriptor_init_closed(accepted);
    bide_io_operation_init(operation, &ops, BIDE_IO_ACCEPT, listener);
    operation->arguments.accept.accepted = accepted;
    operation->arguments.accept.peer = peer;
    operation->arguments.accept.acceptor = NULL;
    return &operation->awaiter;
}

bide_awaiter *bide_connect(bide_io_operation *operation, bide_descriptor *connection,
                           const bide_address *address)
{
    static const bide_awaiter_ops ops = BIDE_IO_OPS("bide_connect");
    bide_descriptor_init_closed(connection);
    bide_io_operation_init(operation, &ops, BIDE_IO_CONNECT, connection);
    operation->arguments.address = address;
    return &operation->awaiter;
}

static void socket_bytes_init(bide_io_operation *operation, const bide_awaiter_ops *ops,
                              bide_io_code code, bide_descriptor *descriptor, const void *data,
                              size_t size)
{
    bide_io_operation_init(operation, ops, code, descriptor);
    operation->arguments.bytes.data = io_as_data(data);
    operation->arguments.bytes.size = size;
    operation->arguments.bytes.offset = -1;
}

bide_awaiter *bide_recv(bide_io_operation *operation, bide_descriptor *socket, void *buffer,
                        size_t size)
{
    static const bide_awaiter_ops ops = BIDE_IO_OPS_IN_CHOICE("bide_recv");
    socket_bytes_init(operation, &ops, BIDE_IO_RECV, socket, buffer, size);
    return &operation->awaiter;
}

bide_awaiter *bide_send(bide_io_operation *operation, bide_descriptor *socket, const void *data,
                        size_t size)
{
    static const bide_awaiter_ops ops = BIDE_IO_OPS("bide_send");
    socket_bytes_init(operation, &ops, BIDE_IO_SEND, socket, data, size);
    operation->is_whole = size != 0;
    return &operation->awaiter;
}

static void socket_message_init(bide_io_operation *operation, const bide_awaiter_ops *ops,
                                bide_io_code code, bide_descriptor *socket,
                                const struct msghdr *message, int flags)
{
    bide_io_operation_init(operation, ops, code, socket);
    operation->arguments.message = io_as_data(message);
    operation->flags = flags;
}

bide_awaiter *bide_recvmsg(bide_io_operation *operation, bide_descriptor *socket,
                           struct msghdr *message, int flags)
{
    static const bide_awaiter_ops ops = BIDE_IO_OPS_IN_CHOICE("bide_recvmsg");
    socket_message_init(operation, &ops, BIDE_IO_RECVMSG, socket, message, flags);
    return &operation->awaiter;
}

bide_awaiter *bide_sendmsg(bide_io_operation *operation, bide_descriptor *socket,
                           const struct msghdr *message, int flags)
{
    static const bide_awaiter_ops ops = BIDE_IO_OPS("bide_sendmsg");
    socket_message_init(operation, &ops, BIDE_IO_SENDMSG, socket, message, flags);
    return &operation->awaiter;
}

static int datagram_resume(bide_awaiter *awaiter)
{
    bide_datagram *datagram = bide_container_of(awaiter, bide_datagram, operation.awaiter);
    if (datagram->address != NULL && datagram->operation.status == 0)
        datagram->address->length = datagram->message.msg_namelen;
    return datagram->operation.status;
}

static int datagram_attempt(bide_awaiter *awaiter, bide_choice *choice)
{
    int status = bide_io_attempt(awaiter, choice);
    return status != -EAGAIN ? datagram_resume(awaiter) : status;
}

static void datagram_init(bide_datagram *datagram, const void *data, size_t size,
                          const bide_address *address, socklen_t length)
{
    datagram->bytes.iov_base = io_as_data(data);
    datagram->bytes.iov_len = size;
    memset(&datagram->message, 0, sizeof datagram->message);
    datagram->message.msg_iov = &datagram->bytes;
    datagram->message.msg_iovlen = 1;
    datagram->address = io_as_data(address);
    if (address != NULL) {
        datagram->message.msg_name = &datagram->address->any;
        datagram->message.msg_namelen = length;
    }
}

bide_awaiter *bide_recv_from(bide_datagram *datagram, bide_descriptor *socket, void *buffer,
                             size_t size, bide_address *from)
{
    static const bide_awaiter_ops ops = {
        .suspend = bide_io_suspend,
        .resume = datagram_resume,
        .cancel = bide_io_cancel,
        .withdraw = bide_io_withdraw,
        .name = "bide_recv_from",
        .attempt = datagram_attempt,
        .undo = BIDE_UNDO_ATTEMPT,
    };
    datagram_init(datagram, buffer, size, from, sizeof from->any);
    socket_message_init(&datagram->operation, &ops, BIDE_IO_RECVMSG, socket, &datagram->message, 0);
    return &datagram->operation.awaiter;
}

bide_awaiter *bide_send_to(bide_datagram *datagram, bide_descriptor *socket, const void *data,
                           size_t size, const bide_address *to)
{
    static const bide_awaiter_ops ops = BIDE_IO_OPS("bide_send_to");
    datagram_init(datagram, data, size, to, to->length);
    socket_message_init(&datagram->operation, &ops, BIDE_IO_SENDMSG, socket, &datagram->message, 0);
    return &datagram->operation.awaiter;
}

static bide_awaiter *socket_batch_init(bide_io_operation *operation, const bide_awaiter_ops *ops,
                                       bide_io_code code, bide_descriptor *socket,
                                       bide_message *messages, unsigned count)
{
    bide_io_operation_init(operation, ops, code, socket);
    operation->arguments.batch.messages = messages;
    operation->arguments.batch.count = count;
    operation->is_whole = code == BIDE_IO_SEND_BATCH;
    return &operation->awaiter;
}

bide_awaiter *bide_recv_batch(bide_io_operation *operation, bide_descriptor *socket,
                              bide_message *messages, unsigned count)
{
    static const bide_awaiter_ops ops = BIDE_IO_OPS_IN_CHOICE("bide_recv_batch");
    return socket_batch_init(operation, &ops, BIDE_IO_RECV_BATCH, socket, messages, count);
}

bide_awaiter *bide_send_batch(bide_io_operation *operation, bide_descriptor *socket,
                              bide_message *messages, unsigned count)
{
    static const bide_awaiter_ops ops = BIDE_IO_OPS("bide_send_batch");
    return socket_batch_init(operation, &ops, BIDE_IO_SEND_BATCH, socket, messages, count);
}

bide_awaiter *bide_send_zero_copy(bide_io_operation *operation, bide_descriptor *socket,
                                  const void *data, size_t size)
{
    static const bide_awaiter_ops ops = BIDE_IO_OPS("bide_send_zero_copy");
    socket_bytes_init(operation, &ops, BIDE_IO_SEND_ZERO_COPY, socket, data, size);
    operation->is_whole = size != 0;
    operation->arguments.bytes.was_copied = false;
    return &operation->awaiter;
}

int bide_shutdown(bide_descriptor *socket, bide_half half)
{
    static const int halves[] = {SHUT_RD, SHUT_WR, SHUT_RDWR};
    if (!bide_descriptor_is_open(socket))
        return -EBADF;
    if (io_calls(io_of(socket)) != NULL)
        return io_calls(io_of(socket))
            ->shutdown(io_of(socket), bide_descriptor_fd(socket), halves[half]);
    return shutdown(bide_descriptor_fd(socket), halves[half]) == 0 ? 0 : -errno;
}

int bide_local_address(const bide_descriptor *socket, bide_address *address)
{
    if (io_calls(io_of(socket)) != NULL)
        return io_calls(io_of(socket))
            ->getsockname(io_of(socket), bide_descriptor_fd(socket), address);
    address->length = sizeof address->any;
    return getsockname(bide_descriptor_fd(socket), &address->any.generic, &address->length) == 0
               ? 0
               : -errno;
}

int bide_peer_address(const bide_descriptor *socket, bide_address *address)
{
    if (io_calls(io_of(socket)) != NULL)
        return io_calls(io_of(socket))
            ->getpeername(io_of(socket), bide_descriptor_fd(socket), address);
    address->length = sizeof address->any;
    return getpeername(bide_descriptor_fd(socket), &address->any.generic, &address->length) == 0
               ? 0
               : -errno;
}

static int socket_set_option(bide_descriptor *socket, int level, int name, int value)
{
    if (io_calls(io_of(socket)) != NULL)
        return io_calls(io_of(socket))
            ->setsockopt(io_of(socket), bide_descriptor_fd(socket), level, name, value);
    return setsockopt(bide_descriptor_fd(socket), level, name, &value, sizeof value) == 0 ? 0
                                                                                          : -errno;
}

int bide_set_no_delay(bide_descriptor *socket, bool at_once)
{
    return socket_set_option(socket, IPPROTO_TCP, TCP_NODELAY, at_once);
}

/* (indexed by bide_option) */
static const struct {
    int level;
    int name;
} socket_options[] = {
    {IPPROTO_TCP, TCP_NODELAY},   {SOL_SOCKET, SO_KEEPALIVE}, {IPPROTO_TCP, TCP_KEEPIDLE},
    {IPPROTO_TCP, TCP_KEEPINTVL}, {IPPROTO_TCP, TCP_KEEPCNT}, {IPPROTO_TCP, TCP_USER_TIMEOUT},
    {SOL_SOCKET, SO_RCVBUF},      {SOL_SOCKET, SO_SNDBUF},    {IPPROTO_TCP, TCP_NOTSENT_LOWAT},
    {SOL_SOCKET, SO_BROADCAST},   {SOL_SOCKET, SO_REUSEPORT}, {SOL_SOCKET, SO_PASSCRED},
    {SOL_SOCKET, SO_ERROR},
};

static bool is_socket_option(bide_option option)
{
    return (size_t)option < sizeof socket_options / sizeof *socket_options;
}

int bide_set_socket_option(bide_descriptor *socket, bide_option option, int value)
{
    if (!is_socket_option(option))
        return -EINVAL;
    return socket_set_option(socket, socket_options[option].level, socket_options[option].name,
                             value);
}

int bide_socket_option(const bide_descriptor *socket, bide_option option, int *value)
{
    socklen_t length = sizeof *value;
    if (!is_socket_option(option))
        return -EINVAL;
    if (io_calls(io_of(socket)) != NULL)
        return io_calls(io_of(socket))
            ->getsockopt(io_of(socket), bide_descriptor_fd(socket), socket_options[option].level,
                         socket_options[option].name, value);
    return getsockopt(bide_descriptor_fd(socket), socket_options[option].level,
                      socket_options[option].name, value, &length) == 0
               ? 0
               : -errno;
}

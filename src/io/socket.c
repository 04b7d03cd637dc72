/*
 * Operations on sockets, and calls on them that never wait. Operations: any thread; calls: the
 * thread of the socket's io.
 */
#define _GNU_SOURCE
#define __APPLE_USE_RFC_3542 /* IPV6_PKTINFO and its like */
#include "bide/socket.h"

#include "calls.h"
#include "const_cast.h"
#include "operation.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>
#include <string.h>
#include <sys/uio.h>

/* (newer than some C libraries) */
#ifdef __linux__
#ifndef TCP_FASTOPEN_CONNECT
#define TCP_FASTOPEN_CONNECT 30
#endif
#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif
#endif
#if !defined TCP_KEEPIDLE && defined TCP_KEEPALIVE
#define TCP_KEEPIDLE TCP_KEEPALIVE
#endif

static void socket_open_init(bide_io_operation *operation, const bide_awaiter_ops *ops,
                             bide_io_code code, bide_descriptor *descriptor,
                             const bide_address *address, int flags,
                             const bide_socket_options *options)
{
    bide_descriptor_init_closed(descriptor);
    bide_io_operation_init(operation, ops, code, descriptor);
    operation->flags = flags;
    operation->arguments.listen.address = address;
    operation->arguments.listen.options = options;
}

bide_awaiter *bide_listen_using(bide_io_operation *operation, bide_descriptor *listener,
                                const bide_address *address, int backlog, int flags,
                                const bide_socket_options *options)
{
    static const bide_awaiter_ops ops = BIDE_IO_OPS("bide_listen");
    socket_open_init(operation, &ops, BIDE_IO_LISTEN, listener, address, flags, options);
    operation->arguments.listen.type = SOCK_STREAM;
    operation->arguments.listen.backlog = backlog;
    return &operation->awaiter;
}

bide_awaiter *bide_listen_with(bide_io_operation *operation, bide_descriptor *listener,
                               const bide_address *address, int backlog, int flags)
{
    return bide_listen_using(operation, listener, address, backlog, flags, NULL);
}

bide_awaiter *bide_listen(bide_io_operation *operation, bide_descriptor *listener,
                          const bide_address *address, int backlog)
{
    return bide_listen_using(operation, listener, address, backlog, 0, NULL);
}

bide_awaiter *bide_bind_using(bide_io_operation *operation, bide_descriptor *receiver,
                              const bide_address *address, int flags,
                              const bide_socket_options *options)
{
    static const bide_awaiter_ops ops = BIDE_IO_OPS("bide_bind");
    socket_open_init(operation, &ops, BIDE_IO_BIND, receiver, address, flags, options);
    operation->arguments.listen.type = SOCK_DGRAM;
    return &operation->awaiter;
}

bide_awaiter *bide_bind(bide_io_operation *operation, bide_descriptor *receiver,
                        const bide_address *address, int flags)
{
    return bide_bind_using(operation, receiver, address, flags, NULL);
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

bide_awaiter *bide_connect_using(bide_io_operation *operation, bide_descriptor *connection,
                                 const bide_address *address, const bide_socket_options *options)
{
    static const bide_awaiter_ops ops = BIDE_IO_OPS("bide_connect");
    bide_descriptor_init_closed(connection);
    bide_io_operation_init(operation, &ops, BIDE_IO_CONNECT, connection);
    operation->arguments.connect.address = address;
    operation->arguments.connect.options = options;
    return &operation->awaiter;
}

bide_awaiter *bide_connect(bide_io_operation *operation, bide_descriptor *connection,
                           const bide_address *address)
{
    return bide_connect_using(operation, connection, address, NULL);
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

/* The system's name of an option, and that for IP version 6, if it is another one. */
typedef struct socket_option {
    int level;
    int name;
    int name_6; /* at IPPROTO_IPV6; 0: it has no other */
} socket_option;

/* An option that the system does not have. */
#define SOCKET_OPTION_MISSING \
    {                         \
        -1, -1, 0             \
    }

static const socket_option socket_options[] = {
    [BIDE_OPTION_NO_DELAY] = {IPPROTO_TCP, TCP_NODELAY, 0},
    [BIDE_OPTION_KEEP_ALIVE] = {SOL_SOCKET, SO_KEEPALIVE, 0},
    [BIDE_OPTION_KEEP_IDLE] = {IPPROTO_TCP, TCP_KEEPIDLE, 0},
    [BIDE_OPTION_KEEP_INTERVAL] = {IPPROTO_TCP, TCP_KEEPINTVL, 0},
    [BIDE_OPTION_KEEP_COUNT] = {IPPROTO_TCP, TCP_KEEPCNT, 0},
#ifdef TCP_USER_TIMEOUT
    [BIDE_OPTION_USER_TIMEOUT] = {IPPROTO_TCP, TCP_USER_TIMEOUT, 0},
#else
    [BIDE_OPTION_USER_TIMEOUT] = SOCKET_OPTION_MISSING,
#endif
    [BIDE_OPTION_RECV_BUFFER] = {SOL_SOCKET, SO_RCVBUF, 0},
    [BIDE_OPTION_SEND_BUFFER] = {SOL_SOCKET, SO_SNDBUF, 0},
#ifdef TCP_NOTSENT_LOWAT
    [BIDE_OPTION_UNSENT] = {IPPROTO_TCP, TCP_NOTSENT_LOWAT, 0},
#else
    [BIDE_OPTION_UNSENT] = SOCKET_OPTION_MISSING,
#endif
    [BIDE_OPTION_BROADCAST] = {SOL_SOCKET, SO_BROADCAST, 0},
    [BIDE_OPTION_REUSE_PORT] = {SOL_SOCKET, SO_REUSEPORT, 0},
#ifdef SO_PASSCRED
    [BIDE_OPTION_PASS_CREDENTIALS] = {SOL_SOCKET, SO_PASSCRED, 0},
#else
    [BIDE_OPTION_PASS_CREDENTIALS] = SOCKET_OPTION_MISSING,
#endif
    [BIDE_OPTION_ERROR] = {SOL_SOCKET, SO_ERROR, 0},
    [BIDE_OPTION_REUSE_ADDRESS] = {SOL_SOCKET, SO_REUSEADDR, 0},
    [BIDE_OPTION_LINGER] = {SOL_SOCKET, SO_LINGER, 0},
#ifdef SO_MARK
    [BIDE_OPTION_MARK] = {SOL_SOCKET, SO_MARK, 0},
#else
    [BIDE_OPTION_MARK] = SOCKET_OPTION_MISSING,
#endif
    [BIDE_OPTION_HOP_LIMIT] = {IPPROTO_IP, IP_TTL, IPV6_UNICAST_HOPS},
    [BIDE_OPTION_TRAFFIC_CLASS] = {IPPROTO_IP, IP_TOS, IPV6_TCLASS},
    [BIDE_OPTION_PACKET_INFO] = {IPPROTO_IP, IP_PKTINFO, IPV6_RECVPKTINFO},
    [BIDE_OPTION_RECV_HOP_LIMIT] = {IPPROTO_IP, IP_RECVTTL, IPV6_RECVHOPLIMIT},
    [BIDE_OPTION_MULTICAST_HOPS] = {IPPROTO_IP, IP_MULTICAST_TTL, IPV6_MULTICAST_HOPS},
    [BIDE_OPTION_MULTICAST_LOOP] = {IPPROTO_IP, IP_MULTICAST_LOOP, IPV6_MULTICAST_LOOP},
    [BIDE_OPTION_MULTICAST_INTERFACE] = {IPPROTO_IP, IP_MULTICAST_IF, IPV6_MULTICAST_IF},
#ifdef UDP_SEGMENT
    [BIDE_OPTION_SEGMENT_SIZE] = {IPPROTO_UDP, UDP_SEGMENT, 0},
#else
    [BIDE_OPTION_SEGMENT_SIZE] = SOCKET_OPTION_MISSING,
#endif
#ifdef UDP_GRO
    [BIDE_OPTION_RECV_SEGMENTS] = {IPPROTO_UDP, UDP_GRO, 0},
#else
    [BIDE_OPTION_RECV_SEGMENTS] = SOCKET_OPTION_MISSING,
#endif
    [BIDE_OPTION_FAST_OPEN] = {IPPROTO_TCP, TCP_FASTOPEN, 0},
#ifdef TCP_FASTOPEN_CONNECT
    [BIDE_OPTION_FAST_OPEN_CONNECT] = {IPPROTO_TCP, TCP_FASTOPEN_CONNECT, 0},
#else
    [BIDE_OPTION_FAST_OPEN_CONNECT] = SOCKET_OPTION_MISSING,
#endif
};

static bool is_socket_option(bide_option option)
{
    return (size_t)option < sizeof socket_options / sizeof *socket_options;
}

static bool is_socket_of_version_6(const bide_descriptor *socket)
{
#ifdef SO_DOMAIN
    int family = 0;
    socklen_t length = sizeof family;
    return io_calls(io_of(socket)) == NULL &&
           getsockopt(bide_descriptor_fd(socket), SOL_SOCKET, SO_DOMAIN, &family, &length) == 0 &&
           family == AF_INET6;
#else
    struct sockaddr_storage own = {0};
    socklen_t length = sizeof own;
    return io_calls(io_of(socket)) == NULL &&
           getsockname(bide_descriptor_fd(socket), (struct sockaddr *)&own, &length) == 0 &&
           own.ss_family == AF_INET6;
#endif
}

/* The options whose value is a struct for the system. */
static int socket_set_struct(const bide_descriptor *socket, bide_option option, int value)
{
    int fd = bide_descriptor_fd(socket), result;
    if (option == BIDE_OPTION_LINGER) {
        const struct linger linger = {value >= 0, value >= 0 ? value : 0};
        result = setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
    } else {
        const struct ip_mreqn interface = {.imr_ifindex = value};
        result = setsockopt(fd, IPPROTO_IP, IP_MULTICAST_IF, &interface, sizeof interface);
    }
    return result == 0 ? 0 : -errno;
}

int bide_set_socket_option(bide_descriptor *socket, bide_option option, int value)
{
    if (!is_socket_option(option))
        return -EINVAL;
    const socket_option *row = &socket_options[option];
    if (row->level < 0)
        return -ENOPROTOOPT;
    bool has_struct = option == BIDE_OPTION_LINGER || option == BIDE_OPTION_MULTICAST_INTERFACE;
    bool is_6 = row->name_6 != 0 && is_socket_of_version_6(socket);
    if (has_struct && io_calls(io_of(socket)) != NULL)
        return -EOPNOTSUPP;
    if (is_6) {
        int error = socket_set_option(socket, IPPROTO_IPV6, row->name_6, value);
        if (error != 0)
            return error;
    }
    int error = has_struct ? socket_set_struct(socket, option, value)
                           : socket_set_option(socket, row->level, row->name, value);
    return is_6 ? 0 : error; /* (of version 4 in a socket of version 6: if it can have it) */
}

int bide_socket_option(const bide_descriptor *socket, bide_option option, int *value)
{
    socklen_t length = sizeof *value;
    if (!is_socket_option(option))
        return -EINVAL;
    const socket_option *row = &socket_options[option];
    if (row->level < 0)
        return -ENOPROTOOPT;
    if (io_calls(io_of(socket)) != NULL)
        return io_calls(io_of(socket))
            ->getsockopt(io_of(socket), bide_descriptor_fd(socket), row->level, row->name, value);
    int fd = bide_descriptor_fd(socket);
    if (option == BIDE_OPTION_LINGER) {
        struct linger linger = {0, 0};
        length = sizeof linger;
        if (getsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, &length) != 0)
            return -errno;
        *value = linger.l_onoff != 0 ? linger.l_linger : -1;
        return 0;
    }
    bool is_6 = row->name_6 != 0 && is_socket_of_version_6(socket);
    if (option == BIDE_OPTION_MULTICAST_INTERFACE && !is_6)
        return -EOPNOTSUPP; /* the system reports an address */
    return getsockopt(fd, is_6 ? IPPROTO_IPV6 : row->level, is_6 ? row->name_6 : row->name, value,
                      &length) == 0
               ? 0
               : -errno;
}

/* ---- Before connect and bind ---- */

int bide_socket_prepare_(bide_descriptor *socket, const bide_socket_options *options)
{
    if (options == NULL)
        return 0;
    int fd = bide_descriptor_fd(socket);
#ifdef SO_BINDTODEVICE
    if (options->device != NULL && setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, options->device,
                                              (socklen_t)strlen(options->device)) != 0)
        return -errno;
#else
    if (options->device != NULL)
        return -ENOPROTOOPT;
#endif
    for (unsigned i = 0; i < options->count; i++) {
        int error =
            bide_set_socket_option(socket, options->values[i].option, options->values[i].value);
        if (error != 0)
            return error;
    }
    if (options->local != NULL &&
        bind(fd, &options->local->any.generic, options->local->length) != 0)
        return -errno;
    return 0;
}

/* ---- Groups ---- */

static int socket_change_group(bide_descriptor *socket, const bide_address *group,
                               unsigned interface, int name)
{
    struct group_req request;
    int level = group->any.generic.sa_family == AF_INET6 ? IPPROTO_IPV6 : IPPROTO_IP;
    if (!bide_descriptor_is_open(socket))
        return -EBADF;
    if (io_calls(io_of(socket)) != NULL)
        return -EOPNOTSUPP;
    if (group->length > sizeof request.gr_group)
        return -EINVAL;
    memset(&request, 0, sizeof request);
    request.gr_interface = interface;
    memcpy(&request.gr_group, &group->any, group->length);
    return setsockopt(bide_descriptor_fd(socket), level, name, &request, sizeof request) == 0
               ? 0
               : -errno;
}

int bide_join_group(bide_descriptor *socket, const bide_address *group, unsigned interface)
{
    return socket_change_group(socket, group, interface, MCAST_JOIN_GROUP);
}

int bide_leave_group(bide_descriptor *socket, const bide_address *group, unsigned interface)
{
    return socket_change_group(socket, group, interface, MCAST_LEAVE_GROUP);
}

/* ---- What came with a datagram ---- */

static void packet_take(bide_packet_info *info, const struct cmsghdr *control)
{
    const unsigned char *data = CMSG_DATA(control);
    size_t size = control->cmsg_len - CMSG_LEN(0);
    int number = 0;
    if (control->cmsg_level == IPPROTO_IP && control->cmsg_type == IP_PKTINFO &&
        size >= sizeof(struct in_pktinfo)) {
        struct in_pktinfo found;
        memcpy(&found, data, sizeof found);
        bide_address_bytes(&info->to, &found.ipi_addr, sizeof found.ipi_addr, 0);
        info->interface = (unsigned)found.ipi_ifindex;
        info->has_to = true;
    } else if (control->cmsg_level == IPPROTO_IPV6 && control->cmsg_type == IPV6_PKTINFO &&
               size >= sizeof(struct in6_pktinfo)) {
        struct in6_pktinfo found;
        memcpy(&found, data, sizeof found);
        if (info->has_to) /* (version 4 on a socket of version 6: it has come) */
            return;
        bide_address_bytes(&info->to, &found.ipi6_addr, sizeof found.ipi6_addr, 0);
        info->interface = found.ipi6_ifindex;
        info->has_to = true;
    } else if (size >= sizeof number &&
               ((control->cmsg_level == IPPROTO_IP && control->cmsg_type == IP_TTL) ||
                (control->cmsg_level == IPPROTO_IPV6 && control->cmsg_type == IPV6_HOPLIMIT))) {
        memcpy(&number, data, sizeof number);
        info->hop_limit = number;
#ifdef UDP_GRO
    } else if (control->cmsg_level == IPPROTO_UDP && control->cmsg_type == UDP_GRO) {
        uint16_t small = 0;
        if (size >= sizeof number) {
            memcpy(&number, data, sizeof number);
        } else if (size >= sizeof small) {
            memcpy(&small, data, sizeof small);
            number = small;
        }
        info->segment_size = (unsigned)number;
#endif
    }
}

void bide_packet_info_get(bide_packet_info *info, const struct msghdr *message)
{
    struct msghdr *at_message = io_as_data(message);
    memset(info, 0, sizeof *info);
    info->hop_limit = -1;
    for (struct cmsghdr *at = CMSG_FIRSTHDR(at_message); at != NULL;
         at = CMSG_NXTHDR(at_message, at))
        packet_take(info, at);
}

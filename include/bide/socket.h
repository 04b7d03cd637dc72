/*
 * Sockets: streams and datagrams, over IP and Unix domain sockets. Floor: io.
 *
 *     bide_try(bide_listen(&self->listen, &self->listener, &address, 128));
 *     for (;;) {
 *         bide_try(bide_accept(&self->accept, &self->listener, &connection->socket, NULL));
 *         ... spawn a coroutine that does:
 *             bide_try(bide_recv(&self->receive, &self->socket, self->buffer, sizeof self->buffer));
 *             if (self->receive.count == 0) ... the peer closed cleanly
 *             bide_try(bide_send(&self->send, &self->socket, self->buffer, self->receive.count));
 *
 * Each operation's struct has a bide_io_operation, the caller's memory until the operation has ended.
 * Its `count` is then the number of bytes that were moved (of datagrams in a batch), whatever the
 * status. So a cancelled operation loses nothing: exactly that much was sent or received.
 *
 * Coroutines of a loop (loop.h) await these operations, on that loop's thread; so do those of a pool
 * whose workers have loops (io_pool.h). Under another scheduler an operation fails with -ENOTSUP. If a
 * stop was requested before an operation begins, the operation ends at once and does nothing, even if
 * it would not have had to wait.
 *
 * Why it is correct: src/io/operation.c.
 */
#ifndef BIDE_SOCKET_H
#define BIDE_SOCKET_H

#include "bide/address.h"
#include "bide/extend/io.h"

BIDE_EXTERN_C_BEGIN

/*
 * Opens a stream socket that listens on `address`, in *listener, which was closed or was nothing.
 * `backlog`: how many connections may wait to be accepted. An address may be used again at once
 * after another program has left it.
 * Threads: the loop's. Errors: those of socket(2), bind(2) and listen(2); -ENOTSUP (no loop).
 * Suspends: never. Cancel-safe: yes. Progress: that of the system calls.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_listen(bide_io_operation *operation, bide_descriptor *listener,
                          const bide_address *address, int backlog);

/*
 * The same with flags: BIDE_LISTEN_REUSE_PORT and its like (address.h).
 * Threads: the loop's. Errors: as bide_listen. Suspends: never. Cancel-safe: yes. Progress: as
 * bide_listen.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_listen_with(bide_io_operation *operation, bide_descriptor *listener,
                               const bide_address *address, int backlog, int flags);

/*
 * Opens a datagram socket with that address, in *receiver, which was closed or was nothing. Flags as
 * above.
 * Threads: the loop's. Errors: those of socket(2) and bind(2); -ENOTSUP (no loop). Suspends: never.
 * Cancel-safe: yes. Progress: that of the system calls.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_bind(bide_io_operation *operation, bide_descriptor *receiver,
                        const bide_address *address, int flags);

/*
 * Opens two stream sockets that are connected to each other.
 * Threads: the loop's. Errors: those of socketpair(2); -ENOTSUP (no loop). Suspends: never.
 * Cancel-safe: yes. Progress: that of the system call.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_socket_pair(bide_io_operation *operation, bide_descriptor *one,
                               bide_descriptor *other);

/*
 * Waits for a connection to `listener` and puts it into *accepted, which was closed or was nothing;
 * and the other end's address into *peer, unless that is NULL. The new descriptor belongs to no loop
 * yet. If no descriptor is available (-EMFILE, -ENFILE) the connection stays in the queue. A
 * listener in blocking mode may be put into nonblocking mode, also for other processes that share
 * it.
 * Threads: the loop's. Errors: those of accept(2); -EPIPE (closed meanwhile), -ECANCELED,
 * -ETIMEDOUT. Suspends: if no connection waits. Cancel-safe: yes: it accepts a connection or none; if
 * none, other waiting accepts of the socket get the next ones.
 * Progress: that of the system calls.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_accept(bide_io_operation *operation, bide_descriptor *listener,
                          bide_descriptor *accepted, bide_address *peer);

/*
 * Opens a stream socket in *connection, which was closed or was nothing, and connects it to
 * `address`, which stays until it has ended. After an error it is closed. If the queue of a Unix
 * listener is full, an io_uring waits for room. On epoll, where nothing reports that, it ends with
 * -ECONNREFUSED: try again later.
 * Threads: the loop's. Errors: those of socket(2) and connect(2); -ECANCELED, -ETIMEDOUT, -ENOTSUP
 * (no loop). Suspends: unless it is done at once. Cancel-safe: yes, it is closed.
 * Progress: that of the system calls.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_connect(bide_io_operation *operation, bide_descriptor *connection,
                           const bide_address *address);

/*
 * Receives up to `size` bytes, 1 or more, into `buffer`, the operation's until it has ended; waits
 * for at least one. A count of 0 is the end: the other side has sent all. Of a datagram socket: one
 * datagram, whose rest is dropped if it is larger.
 * Threads: the loop's. Errors: those of recv(2); -EPIPE (closed meanwhile), -ECANCELED, -ETIMEDOUT.
 * Suspends: if there is nothing yet; always on an io_uring. Cancel-safe: yes, nothing was received.
 * Progress: that of the system calls.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_recv(bide_io_operation *operation, bide_descriptor *socket, void *buffer,
                        size_t size);

/*
 * Sends all of `size` bytes of `data`, which stay until it has ended. Of a datagram socket that is
 * connected: one datagram. Sending to an end that is gone ends with -EPIPE, and raises no signal.
 * Threads: the loop's. Errors: those of send(2); -EPIPE (also: closed meanwhile), -ECANCELED,
 * -ETIMEDOUT. Suspends: if they do not fit into the socket's buffer; always on an io_uring.
 * Cancel-safe: yes, `count` says how many bytes were sent. Progress: that of the system calls.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_send(bide_io_operation *operation, bide_descriptor *socket, const void *data,
                        size_t size);

/*
 * recvmsg(2): into several buffers, with the sender's address and control data, such as descriptors
 * of others. `message` and all that it names stay until it has ended; flags are recvmsg's.
 * Descriptors that come are closed on exec.
 * Threads: the loop's. Errors: as bide_recv. Suspends: as bide_recv. Cancel-safe: yes.
 * Progress: that of the system calls.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_recvmsg(bide_io_operation *operation, bide_descriptor *socket,
                           struct msghdr *message, int flags);

/*
 * sendmsg(2): from several buffers, to an address, with control data. It sends as much as goes at
 * once: `count` says how much. `message` and all that it names stay until it has ended.
 * Threads: the loop's. Errors: as bide_send. Suspends: as bide_send. Cancel-safe: yes, nothing was
 * sent. Progress: that of the system calls.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_sendmsg(bide_io_operation *operation, bide_descriptor *socket,
                           const struct msghdr *message, int flags);

/* One datagram with an address. The caller's memory until it has ended. */
typedef struct bide_datagram {
    bide_io_operation operation;
    struct msghdr message;
    struct iovec bytes;
    bide_address *address;
} bide_datagram;

/*
 * Receives one datagram, and puts the sender's address into *from, unless that is NULL.
 * datagram->operation.count says how many bytes.
 * Threads: the loop's. Errors: as bide_recv. Suspends: as bide_recv. Cancel-safe: yes, none was
 * received. Progress: that of the system calls.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_recv_from(bide_datagram *datagram, bide_descriptor *socket, void *buffer,
                             size_t size, bide_address *from);

/*
 * Sends one datagram to `to`.
 * Threads: the loop's. Errors: as bide_send. Suspends: as bide_send. Cancel-safe: yes, it was not
 * sent. Progress: that of the system calls.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_send_to(bide_datagram *datagram, bide_descriptor *socket, const void *data,
                           size_t size, const bide_address *to);

/* ---- Many datagrams at once ---- */

/* One of several. The system's mmsghdr, which not every program may name. */
typedef struct bide_message {
    struct msghdr header; /* as for recvmsg(2) and sendmsg(2) */
    unsigned size;        /* of what was received or sent; set by the operation */
} bide_message;

/*
 * Prepares a message of one piece of memory, and an address: for bide_recv_batch the sender's is put
 * there, whose length is then header.msg_namelen; NULL: it is not wanted, or the socket is connected.
 * All stays where it is until the operation has ended; to receive again, prepare it again.
 * Threads: one at a time. Progress: wait-free.
 */
BIDE_INLINE void bide_message_init(bide_message *message, struct iovec *bytes,
                                   bide_address *address)
{
    message->header.msg_name = address != NULL ? &address->any : NULL;
    message->header.msg_namelen = address != NULL ? address->length : 0;
    message->header.msg_iov = bytes;
    message->header.msg_iovlen = 1;
    message->header.msg_control = NULL;
    message->header.msg_controllen = 0;
    message->header.msg_flags = 0;
    message->size = 0;
}

/*
 * Receives as many datagrams as there are, up to `count`, 1 or more, by one call of the system; waits
 * for one. operation->count is how many, and the `size` of each how many bytes it has. An address
 * that is given has its room in its `length`.
 * Threads: the loop's. Errors: those of recvmmsg(2); -EPIPE (closed meanwhile), -ECANCELED,
 * -ETIMEDOUT, -ENOTSUP (no loop). Suspends: if there is none. Cancel-safe: yes, none was received.
 * Progress: that of the system calls.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_recv_batch(bide_io_operation *operation, bide_descriptor *socket,
                              bide_message *messages, unsigned count);

/*
 * Sends all of `count` datagrams, 1 or more, in order, by as few calls of the system as it takes.
 * operation->count is how many were sent, whatever it ended with: the error is that of the next.
 * Threads: the loop's. Errors: those of sendmmsg(2); -EPIPE (closed meanwhile), -ECANCELED,
 * -ETIMEDOUT, -ENOTSUP (no loop). Suspends: if they do not fit into the socket's buffer.
 * Cancel-safe: yes, `count` says how many were sent. Progress: that of the system calls.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_send_batch(bide_io_operation *operation, bide_descriptor *socket,
                              bide_message *messages, unsigned count);

/* ---- Without a copy ---- */

/*
 * Sends all of `size` bytes, 1 or more, as bide_send does, and lets the kernel send them from where
 * they are. It ends when the kernel has sent them and needs `data` no more, which is when the other
 * end has acknowledged them; so await it beside what else is to be done. It pays for some 10 KB and
 * more. On an io_uring that can; elsewhere, on epoll, and of sockets that cannot, the bytes are
 * copied, and it ends when they have been taken: bide_was_copied.
 *
 * If its coroutine is destroyed, or the socket closed, before it has ended, neither waits for the
 * other end: a connection whose bytes the kernel still needs is reset, and what was sent may not
 * come. To have it come, ask the coroutine to stop, and wait for its end.
 * Threads: the loop's. Errors: as bide_send. Suspends: as bide_send. Cancel-safe: yes, `count` says
 * how many bytes were sent; it ends when the kernel needs `data` no more. Progress: that of the
 * system calls.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_send_zero_copy(bide_io_operation *operation, bide_descriptor *socket,
                                  const void *data, size_t size);

/*
 * Whether the kernel has copied the bytes of a bide_send_zero_copy that has ended, or some of them.
 * Threads: the loop's. Progress: wait-free.
 */
BIDE_INLINE bool bide_was_copied(const bide_io_operation *operation)
{
    return operation->arguments.bytes.was_copied;
}

/* Which half of a connection. */
typedef enum bide_half { BIDE_HALF_INPUT, BIDE_HALF_OUTPUT, BIDE_HALF_BOTH } bide_half;

/*
 * Ends one half of a connection, or both: after the output's end the other side reads to the end.
 * Threads: the loop's. Errors: those of shutdown(2), -EBADF (it is closed). Progress: that of the
 * system call.
 */
int bide_shutdown(bide_descriptor *socket, bide_half half);

/*
 * The address that a socket has here, and that of the other end.
 * Threads: the loop's. Errors: those of getsockname(2) and getpeername(2), -EBADF. Progress: that of
 * the system call.
 */
int bide_local_address(const bide_descriptor *socket, bide_address *address);
int bide_peer_address(const bide_descriptor *socket, bide_address *address);

/*
 * Sends small pieces at once (TCP_NODELAY), or gathers them.
 * Threads: the loop's. Errors: those of setsockopt(2). Progress: that of the system call.
 */
int bide_set_no_delay(bide_descriptor *socket, bool at_once);

/* Options of a socket, to set and get: each a number, or 0 and 1. */
typedef enum bide_option {
    BIDE_OPTION_NO_DELAY,      /* TCP_NODELAY */
    BIDE_OPTION_KEEP_ALIVE,    /* SO_KEEPALIVE */
    BIDE_OPTION_KEEP_IDLE,     /* TCP_KEEPIDLE: seconds until it asks whether the other end lives */
    BIDE_OPTION_KEEP_INTERVAL, /* TCP_KEEPINTVL: seconds between two times */
    BIDE_OPTION_KEEP_COUNT,    /* TCP_KEEPCNT: how many have no answer until it is gone */
    BIDE_OPTION_USER_TIMEOUT,  /* TCP_USER_TIMEOUT: milliseconds without an acknowledgement */
    BIDE_OPTION_RECV_BUFFER,   /* SO_RCVBUF: bytes; the system answers twice of it */
    BIDE_OPTION_SEND_BUFFER,   /* SO_SNDBUF: likewise */
    BIDE_OPTION_UNSENT,        /* TCP_NOTSENT_LOWAT: it takes no more while so many bytes wait */
    BIDE_OPTION_BROADCAST,     /* SO_BROADCAST */
    BIDE_OPTION_REUSE_PORT,    /* SO_REUSEPORT: before it is bound */
    BIDE_OPTION_PASS_CREDENTIALS, /* SO_PASSCRED: of each message its sender (fd_passing.h) */
    BIDE_OPTION_ERROR,            /* SO_ERROR: to be asked alone; takes it off */
    BIDE_OPTION_REUSE_ADDRESS,    /* SO_REUSEADDR: before it is bound; of a listener it is set */
    BIDE_OPTION_LINGER, /* SO_LINGER: 0: a close resets the connection; more: a close blocks the thread
                           until all is sent, up to so many seconds; -1: neither */
    BIDE_OPTION_MARK,          /* SO_MARK: of its packets, for routing and filters; privileged */
    BIDE_OPTION_HOP_LIMIT,     /* IP_TTL, IPV6_UNICAST_HOPS: 1 to 255; -1: the system's */
    BIDE_OPTION_TRAFFIC_CLASS, /* IP_TOS, IPV6_TCLASS */
    BIDE_OPTION_PACKET_INFO,   /* IP_PKTINFO, IPV6_RECVPKTINFO: datagrams come with the address that
                                   they were sent to (bide_packet_info) */
    BIDE_OPTION_RECV_HOP_LIMIT, /* IP_RECVTTL, IPV6_RECVHOPLIMIT: and with their hop limit */
    BIDE_OPTION_MULTICAST_HOPS, /* IP_MULTICAST_TTL, IPV6_MULTICAST_HOPS: 1 at first */
    BIDE_OPTION_MULTICAST_LOOP, /* IP_MULTICAST_LOOP, IPV6_MULTICAST_LOOP: this host gets it, too */
    BIDE_OPTION_MULTICAST_INTERFACE, /* IP_MULTICAST_IF, IPV6_MULTICAST_IF: the index of
                                        the sending interface; 0: the system's
                                        choice. Of version 4 it cannot be asked
                                        (-EOPNOTSUPP) */
    BIDE_OPTION_SEGMENT_SIZE, /* UDP_SEGMENT: a send is cut into datagrams of that size; 0: it is one */
    BIDE_OPTION_RECV_SEGMENTS, /* UDP_GRO: a receive may get several datagrams of one size, which is in
                                  bide_packet_info */
    BIDE_OPTION_FAST_OPEN,     /* TCP_FASTOPEN: of a listener; how many such connections may wait */
    BIDE_OPTION_FAST_OPEN_CONNECT, /* TCP_FASTOPEN_CONNECT: before connect, which ends at once then;
                                      the first bytes that are sent go with the request to connect */
} bide_option;

/*
 * Tells a socket of one, and asks it.
 * Threads: the loop's. Errors: -EINVAL (no such option), -EBADF, those of setsockopt(2) and
 * getsockopt(2). Progress: that of the system call.
 */
int bide_set_socket_option(bide_descriptor *socket, bide_option option, int value);
int bide_socket_option(const bide_descriptor *socket, bide_option option, int *value);

/* ---- Options before connect and bind ---- */

/* One option of a new socket. */
typedef struct bide_option_value {
    bide_option option;
    int value;
} bide_option_value;

/*
 * Settings of a socket before it is connected or bound, made in this order: the device, the options, the local
 * address. All zero is a good beginning.
 */
typedef struct bide_socket_options {
    const char *device;              /* SO_BINDTODEVICE: the interface that it uses; or NULL */
    const bide_option_value *values; /* `count` of them */
    unsigned count;
    int type; /* of bide_connect_using: SOCK_STREAM or SOCK_DGRAM; 0: SOCK_STREAM */
    const bide_address
        *local; /* of bide_connect_using: the address here; NULL: the system's choice */
} bide_socket_options;

/*
 * bide_connect with options, which stay until it has ended, as the address does. With SOCK_DGRAM it
 * opens a connected datagram socket: bide_send and bide_recv exchange datagrams with that address alone,
 * and report its errors, such as -ECONNREFUSED.
 * Threads: the loop's. Errors: as bide_connect, and those of setsockopt(2) and bind(2); -EOPNOTSUPP (in
 * memory, if options are given). Suspends: as bide_connect. Cancel-safe: yes, it is closed. Progress:
 * that of the system calls.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_connect_using(bide_io_operation *operation, bide_descriptor *connection,
                                 const bide_address *address, const bide_socket_options *options);

/*
 * bide_listen_with and bide_bind with options.
 * Threads: the loop's. Errors: as bide_listen and bide_bind, and those of setsockopt(2); -EOPNOTSUPP (in
 * memory, if options are given). Suspends: never. Cancel-safe: yes. Progress: that of the system calls.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_listen_using(bide_io_operation *operation, bide_descriptor *listener,
                                const bide_address *address, int backlog, int flags,
                                const bide_socket_options *options);
BIDE_MUST_AWAIT
bide_awaiter *bide_bind_using(bide_io_operation *operation, bide_descriptor *receiver,
                              const bide_address *address, int flags,
                              const bide_socket_options *options);

/* ---- Groups, and what comes with a datagram ---- */

/*
 * Makes a datagram socket receive what is sent to a multicast group, and no longer. `interface`: the
 * index of the one on which it comes (if_nametoindex(3)); 0: the system's choice.
 * Threads: the loop's. Errors: those of setsockopt(2), -EADDRINUSE (it is in the group),
 * -EADDRNOTAVAIL (it is not), -EINVAL (no group), -EBADF, -EOPNOTSUPP (in memory). Progress: that of the
 * system call.
 */
int bide_join_group(bide_descriptor *socket, const bide_address *group, unsigned interface);
int bide_leave_group(bide_descriptor *socket, const bide_address *group, unsigned interface);

/* Data about a datagram that was received. */
typedef struct bide_packet_info {
    bool has_to;
    bide_address to;       /* without a port */
    unsigned interface;    /* the index of the receiving one; 0: unknown */
    int hop_limit;         /* -1: unknown */
    unsigned segment_size; /* of several datagrams in one; 0: it is one */
} bide_packet_info;

/* Control data for a message that has all of that: room for recvmsg(2). */
enum { BIDE_PACKET_CONTROL = 192 };

/*
 * Reads the control data of a message that bide_recvmsg or bide_recv_batch has received, on a socket with
 * BIDE_OPTION_PACKET_INFO, _RECV_HOP_LIMIT or _RECV_SEGMENTS. Its msg_control has BIDE_PACKET_CONTROL bytes
 * or more, aligned as a size_t.
 * Threads: any. Progress: wait-free.
 */
void bide_packet_info_get(bide_packet_info *info, const struct msghdr *message);

/* ---- Listening at a path ---- */

/*
 * A path where a server listens with a Unix socket. A server that was killed leaves its socket's file behind, and
 * bide_listen fails then. This replaces such a leftover, and never anything else:
 *
 *     status = bide_listen_path_init(&where, "/run/user/1000/x");
 *     if (status == 0 && (status = bide_listen_path_open(&where, 0600, 128)) >= 0)
 *         bide_descriptor_init(&server.listener, status);
 *     ... serve ...
 *     bide_listen_path_remove(&where);
 *
 * A child of fork calls bide_listen_path_destroy instead.
 *
 * Why it is correct: src/io/listen_path.c.
 */
typedef struct bide_listen_path {
    char path[108]; /* with its zero */

    /* of the library */
    int directory;  /* for its lock; -1: none */
    int file;       /* the socket's file; -1: none */
    unsigned waits; /* that are left for the lock */
} bide_listen_path;

/*
 * Copies `path`, and opens its directory if it is this user's. The descriptor stays open for
 * bide_listen_path_open and bide_listen_path_remove, also if the directory cannot be opened later.
 * Threads: before it is shared. Errors: -EINVAL (`path` is empty), -ENAMETOOLONG. Progress: that of the system calls.
 */
int bide_listen_path_init(bide_listen_path *where, const char *path);

/*
 * Creates a stream socket that listens at the path, and returns its descriptor, which is nonblocking and the caller's.
 * The file has that mode, less the umask. If the path exists, it is replaced only if it is a socket of this user's to
 * which nobody listens. Of several processes that do this at once, one listens and the others fail with -EADDRINUSE, if
 * the directory is this user's. For that it is locked (flock(2)). Another process may hold that lock, which is waited for
 * 2 s in all calls together; then this continues without it.
 * Threads: one at a time. Errors: -EADDRINUSE (somebody listens there), -EEXIST (there is something else), -EINVAL (it
 * was not initialised, or is open), those of socket(2), bind(2) and listen(2). Progress: blocks for 2 s at most.
 */
int bide_listen_path_open(bide_listen_path *where, unsigned mode, int backlog);

/*
 * Instead of bide_listen_path_open, for a successor: it has received the descriptor of the socket that listens at the path
 * (fd_passing.h), and the file becomes its own, which bide_listen_path_remove removes. The predecessor calls
 * bide_listen_path_destroy.
 * Threads: one at a time. Errors: -EEXIST (the path is no socket of this user's), -EINVAL (as bide_listen_path_open), those
 * of open(2). Progress: that of the system calls.
 */
int bide_listen_path_adopt(bide_listen_path *where);

/*
 * Removes the file, if the path still has that socket, and closes the descriptors of `where`. The listening descriptor
 * stays open. A successor's socket stays. So does this one, as a leftover, if another process
 * holds the lock all the time. May be called after errors of the other functions.
 * Threads: one at a time. Progress: blocks for 2 s at most.
 */
void bide_listen_path_remove(bide_listen_path *where);

/*
 * Closes the descriptors of `where`, and leaves the file. For a child of fork, in which the socket is its parent's, and
 * for a server whose successor has the socket. May be called after errors of the other functions, and twice.
 * Threads: one at a time; in a child of fork, also in a handler of pthread_atfork. Progress: that of close(2).
 */
void bide_listen_path_destroy(bide_listen_path *where);

BIDE_EXTERN_C_END

#endif

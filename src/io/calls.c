/*
 * The system calls behind the operations. A call on a descriptor that polls does not wait: if it
 * would, it returns -EAGAIN.
 *
 * A descriptor that other processes share (a terminal, an inherited pipe) may be in blocking mode,
 * and changing the mode would change it for them too. Such a descriptor is polled before the call:
 * polls_first in the operation table. Another process may take the data between the poll and the
 * call, so the call itself is made with RWF_NOWAIT if the kernel supports it for that descriptor. A
 * write is no larger than what a pipe that polls as writable accepts. The kernel does not support it for
 * terminals and other devices, and a terminal that polls as writable may accept a single byte. So their
 * calls are made on a thread that may wait, after a poll (IO_CALLS_WAIT).
 */
#define _GNU_SOURCE
#include "calls.h"

#include "bide/address.h"
#include "bide/socket.h"
#include "const_cast.h"
#include "buffer_pool.h"
#include "operation.h"
#include "nowait.h"

#include "../system/portable.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#ifdef __linux__
#include <sys/sysmacros.h>
#endif
#include <sys/uio.h>
#include <unistd.h>

/* A failed call returns -1 with errno. */
static ptrdiff_t result_or_errno(ptrdiff_t result)
{
    return result != -1 ? result : io_error();
}

/* ---- Descriptors in blocking mode ---- */

enum { MEMORY_DEVICES = 1 }; /* the number of /dev/null and its like, whose calls never wait */

void bide_io_probe_(bide_descriptor *descriptor)
{
    struct stat about;
    int flags = fcntl(bide_descriptor_fd(descriptor), F_GETFL);
    descriptor->bits |= IO_PROBED;
    if (flags >= 0 && (flags & O_NONBLOCK) == 0)
        descriptor->bits |= IO_IS_BLOCKING;
    if (flags >= 0 && (flags & O_APPEND) != 0)
        descriptor->bits |= IO_APPENDS;
#ifdef O_DIRECT
    if (flags >= 0 && (flags & O_DIRECT) != 0)
        descriptor->bits |= IO_DIRECT;
#endif
    /* (lseek succeeds on some that have no position, an eventfd among them) */
    if (pread(bide_descriptor_fd(descriptor), NULL, 0, 0) >= 0 || errno != ESPIPE)
        descriptor->bits |= IO_SEEKS;
    if (fstat(bide_descriptor_fd(descriptor), &about) != 0)
        return;
    if (!S_ISSOCK(about.st_mode))
        descriptor->bits |= IO_NO_SOCKET;
    if (S_ISREG(about.st_mode) || S_ISDIR(about.st_mode) || S_ISBLK(about.st_mode))
        descriptor->bits |= IO_FILE;
    if (S_ISCHR(about.st_mode) && major(about.st_rdev) != MEMORY_DEVICES &&
        (descriptor->bits & IO_IS_BLOCKING) != 0)
        descriptor->bits |= IO_CALLS_WAIT;
}

/* It polls, but its calls wait. */
static bool is_in_blocking_mode(const bide_descriptor *descriptor)
{
    return (descriptor->bits & (IO_IS_BLOCKING | IO_FILE)) == IO_IS_BLOCKING;
}

/* (a thread that may wait does not look at the bits, which belong to the loop) */
static bool must_not_wait(const bide_io_operation *operation)
{
    return (operation->flags & IO_CALL_MAY_WAIT) == 0 && is_in_blocking_mode(operation->descriptor);
}

bool bide_io_would_wait_(const bide_io_operation *operation)
{
    const bide_descriptor *descriptor = operation->descriptor;
    if (!is_in_blocking_mode(descriptor))
        return false;
    struct pollfd polled = {bide_descriptor_fd(descriptor),
                            io_direction(operation) == BIDE_IO_INPUT ? POLLIN : POLLOUT, 0};
    return poll(&polled, 1, 0) == 0;
}

/* It must not wait, and is of a socket, whose calls have a flag for that. (The bits are known.) */
static bool is_of_blocking_socket(const bide_io_operation *operation)
{
    return must_not_wait(operation) && (operation->descriptor->bits & IO_NO_SOCKET) == 0;
}

/* The largest part of `size` that can be written without waiting. */
static size_t max_write(const bide_io_operation *operation, size_t size)
{
    return must_not_wait(operation) && size > PIPE_BUF ? PIPE_BUF : size;
}

/* Whether the kernel does not support RWF_NOWAIT for that descriptor. */
static bool has_no_nowait(ptrdiff_t result)
{
    return result < 0 && (errno == EOPNOTSUPP || errno == ENOSYS || errno == EINVAL);
}

static bool is_listening(const bide_descriptor *socket)
{
    int listens = 0;
    socklen_t size = sizeof listens;
    return getsockopt(bide_descriptor_fd(socket), SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) ==
               0 &&
           listens != 0;
}

/*
 * Its call fails, whatever a poll finds: the descriptor has no position, or is not open in its direction; or
 * one of accept and listener stands without the other.
 */
static bool fails_at_once(const bide_io_operation *operation)
{
    const bide_descriptor *descriptor = operation->descriptor;
    const bide_io_row_ *row = bide_io_row_of_(operation);
    int flags = fcntl(bide_descriptor_fd(descriptor), F_GETFL);
    int other = row->direction == BIDE_IO_INPUT ? O_WRONLY : O_RDONLY;
    return (io_direction(operation) == BIDE_IO_FREE && (descriptor->bits & IO_SEEKS) == 0) ||
           (flags >= 0 && (flags & O_ACCMODE) == other) ||
           (operation->code == BIDE_IO_ACCEPT) != is_listening(descriptor);
}

ptrdiff_t bide_io_call(bide_io_operation *operation)
{
    const bide_io_row_ *row = bide_io_row_of_(operation);
    if (row->polls_first &&
        (row->blocks == IO_BLOCKS_NEVER || (operation->flags & IO_CALL_MAY_WAIT) == 0)) {
        if ((operation->descriptor->bits & IO_PROBED) == 0)
            bide_io_probe_(operation->descriptor);
        if (bide_io_would_wait_(operation) && !fails_at_once(operation))
            return -EAGAIN;
    }
    return row->call(operation);
}

/* ---- Reading and writing ---- */

ptrdiff_t bide_call_read_(bide_io_operation *operation)
{
    int fd = io_fd(operation);
    int64_t offset = operation->arguments.bytes.offset;
    const struct iovec bytes = {operation->arguments.bytes.data, operation->arguments.bytes.size};
    if (offset >= 0)
        return result_or_errno(pread(fd, bytes.iov_base, bytes.iov_len, offset));
    if (must_not_wait(operation)) {
        ptrdiff_t result = preadv2(fd, &bytes, 1, -1, RWF_NOWAIT);
        if (result > 0)
            io_written(bytes.iov_base, (size_t)result);
        if (!has_no_nowait(result))
            return result_or_errno(result);
    }
    return result_or_errno(read(fd, bytes.iov_base, bytes.iov_len));
}

static ptrdiff_t write_bytes(const bide_io_operation *operation, const void *data, size_t size,
                             int64_t offset)
{
    int fd = io_fd(operation);
    if (offset < 0 &&
        is_of_blocking_socket(operation)) /* (in parts, it would be several datagrams) */
        return result_or_errno(send(fd, data, size, MSG_DONTWAIT));
    size = max_write(operation, size);
    if (offset >= 0)
        return result_or_errno(pwrite(fd, data, size, offset));
    if (must_not_wait(operation)) {
        const struct iovec bytes = {io_as_data(data), size};
        ptrdiff_t result = pwritev2(fd, &bytes, 1, -1, RWF_NOWAIT);
        if (!has_no_nowait(result))
            return result_or_errno(result);
    }
    return result_or_errno(write(fd, data, size));
}

/* The offset of the next byte; -1: the descriptor's position. */
static int64_t offset_of_rest(const bide_io_operation *operation)
{
    int64_t offset = operation->arguments.bytes.offset; /* (or of the vector: operation.h) */
    return offset >= 0 ? offset + (int64_t)operation->count : offset;
}

ptrdiff_t bide_call_write_(bide_io_operation *operation)
{
    size_t size;
    const void *rest = io_rest(operation, &size);
    return write_bytes(operation, rest, size, offset_of_rest(operation));
}

io_vectors bide_io_rest_of_vectors_(const bide_io_operation *operation)
{
    const struct iovec *vectors = operation->arguments.vector.vectors;
    size_t skip = operation->count;
    int i = 0;
    while (i < operation->arguments.vector.count && skip >= vectors[i].iov_len)
        skip -= vectors[i++].iov_len;
    io_vectors rest = {vectors + i, operation->arguments.vector.count - i, NULL, 0};
    if (skip != 0) {
        bide_assert(i < operation->arguments.vector.count);
        rest.count = 0;
        rest.data = (char *)vectors[i].iov_base + skip;
        rest.size = vectors[i].iov_len - skip;
    }
    return rest;
}

static void note_vectors(const struct iovec *vectors, ptrdiff_t left)
{
    for (; IO_MUST_NOTE_WRITES && left > 0; vectors++) {
        size_t size = (size_t)left < vectors->iov_len ? (size_t)left : vectors->iov_len;
        io_written(vectors->iov_base, size);
        left -= (ptrdiff_t)size;
    }
}

ptrdiff_t bide_call_readv_(bide_io_operation *operation)
{
    int fd = io_fd(operation);
    const struct iovec *vectors = operation->arguments.vector.vectors;
    int count = operation->arguments.vector.count;
    int64_t offset = operation->arguments.vector.offset;
    if (count > IOV_MAX)
        count = IOV_MAX;
    if (offset < 0 && must_not_wait(operation)) {
        ptrdiff_t result = preadv2(fd, vectors, count, -1, RWF_NOWAIT);
        note_vectors(vectors, result);
        if (!has_no_nowait(result))
            return result_or_errno(result);
    }
    return result_or_errno(offset >= 0 ? preadv(fd, vectors, count, offset)
                                       : readv(fd, vectors, count));
}

ptrdiff_t bide_call_writev_(bide_io_operation *operation)
{
    int fd = io_fd(operation);
    io_vectors rest = bide_io_rest_of_vectors_(operation);
    int64_t offset = offset_of_rest(operation);
    if (rest.data != NULL)
        return write_bytes(operation, rest.data, rest.size, offset);
    if (offset < 0 && rest.count != 0 && is_of_blocking_socket(operation)) {
        const struct msghdr message = {.msg_iov = (struct iovec *)io_as_data(rest.vectors),
                                       .msg_iovlen =
                                           (size_t)(rest.count < IOV_MAX ? rest.count : IOV_MAX)};
        return result_or_errno(sendmsg(fd, &message, MSG_DONTWAIT));
    }
    if (rest.count != 0 && rest.vectors[0].iov_len > max_write(operation, rest.vectors[0].iov_len))
        return write_bytes(operation, rest.vectors[0].iov_base, rest.vectors[0].iov_len, offset);
    int count = rest.count > IOV_MAX ? IOV_MAX : rest.count;
    if (must_not_wait(operation))
        count = 1;
    return result_or_errno(offset >= 0 ? pwritev(fd, rest.vectors, count, offset)
                                       : writev(fd, rest.vectors, count));
}

/* ---- Sockets ---- */

ptrdiff_t bide_call_recv_(bide_io_operation *operation)
{
    size_t size;
    void *rest = io_rest(operation, &size);
    return result_or_errno(recv(io_fd(operation), rest, size, operation->flags | MSG_DONTWAIT));
}

ptrdiff_t bide_call_send_(bide_io_operation *operation)
{
    size_t size;
    const void *rest = io_rest(operation, &size);
    return result_or_errno(
        send(io_fd(operation), rest, size, operation->flags | MSG_DONTWAIT | MSG_NOSIGNAL));
}

/* (MSG_ZEROCOPY would report its completion in the socket's error queue) */
ptrdiff_t bide_call_send_copied_(bide_io_operation *operation)
{
    size_t size;
    const void *rest = io_rest(operation, &size);
    operation->arguments.bytes.was_copied = true;
    return result_or_errno(send(io_fd(operation), rest, size, MSG_DONTWAIT | MSG_NOSIGNAL));
}

ptrdiff_t bide_call_recvmsg_(bide_io_operation *operation)
{
    return result_or_errno(recvmsg(io_fd(operation), operation->arguments.message,
                                   operation->flags | MSG_DONTWAIT | MSG_CMSG_CLOEXEC));
}

ptrdiff_t bide_call_sendmsg_(bide_io_operation *operation)
{
    return result_or_errno(sendmsg(io_fd(operation), operation->arguments.message,
                                   operation->flags | MSG_DONTWAIT | MSG_NOSIGNAL));
}

/* Takes a buffer for the call, and keeps it if the call received bytes. */
ptrdiff_t bide_call_recv_provided_(bide_io_operation *operation)
{
    bide_buffer_pool *pool = operation->arguments.provided.pool;
    void *data = bide_buffer_pool_pop_(pool, operation);
    if (data == NULL) {
        bide_buffer_pool_wait_(operation);
        return -EAGAIN;
    }
    ptrdiff_t result = result_or_errno(recv(io_fd(operation), data, pool->size, MSG_DONTWAIT));
    if (result > 0) {
        operation->arguments.provided.data = data;
        pool->in_use++;
    } else {
        bide_buffer_pool_push_(pool, data);
    }
    return result;
}

/* The system's array of messages, which is ours from `skip` on. */
static struct mmsghdr *batch_rest(const bide_io_operation *operation, size_t skip)
{
    BIDE_STATIC_ASSERT(sizeof(struct mmsghdr) == sizeof(bide_message) &&
                           offsetof(struct mmsghdr, msg_len) == offsetof(bide_message, size),
                       "a message is the system's");
    return (struct mmsghdr *)(void *)(operation->arguments.batch.messages + skip);
}

#ifdef __APPLE__

/* One message at a time. As the calls of Linux: an error ends it, and is reported if it is the first's. */
static int recvmmsg(int fd, struct mmsghdr *messages, unsigned count, int flags, void *unused)
{
    unsigned done = 0;
    (void)unused;
    for (; done < count; done++) {
        ssize_t size = recvmsg(fd, &messages[done].msg_hdr, flags);
        if (size < 0)
            break;
        messages[done].msg_len = (unsigned)size;
    }
    return done != 0 || count == 0 ? (int)done : -1;
}

static int sendmmsg(int fd, struct mmsghdr *messages, unsigned count, int flags)
{
    unsigned done = 0;
    for (; done < count; done++) {
        ssize_t size = sendmsg(fd, &messages[done].msg_hdr, flags);
        if (size < 0)
            break;
        messages[done].msg_len = (unsigned)size;
    }
    return done != 0 || count == 0 ? (int)done : -1;
}

#endif

ptrdiff_t bide_call_recv_batch_(bide_io_operation *operation)
{
    return result_or_errno(recvmmsg(io_fd(operation), batch_rest(operation, 0),
                                    operation->arguments.batch.count,
                                    MSG_DONTWAIT | MSG_CMSG_CLOEXEC, NULL));
}

ptrdiff_t bide_call_send_batch_(bide_io_operation *operation)
{
    bide_assert(operation->count <= operation->arguments.batch.count);
    return result_or_errno(sendmmsg(io_fd(operation), batch_rest(operation, operation->count),
                                    operation->arguments.batch.count - (unsigned)operation->count,
                                    MSG_DONTWAIT | MSG_NOSIGNAL));
}

ptrdiff_t bide_call_poll_(bide_io_operation *operation)
{
    struct pollfd polled = {io_fd(operation), (short)operation->arguments.poll.wanted, 0};
    int ready = poll(&polled, 1, 0);
    if (ready == 0)
        return -EAGAIN;
    return ready < 0 ? -errno : (unsigned short)polled.revents;
}

/* ---- Connections ---- */

/*
 * A listener in blocking mode, which was inherited. Another process may take the connection between a
 * poll and the call, which has no flag to keep it from waiting, so the mode is changed.
 */
static void leave_blocking_mode(bide_descriptor *listener)
{
    int fd = bide_descriptor_fd(listener);
    int flags = fcntl(fd, F_GETFL);
    if (flags >= 0 && fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0)
        listener->bits &= ~(uint32_t)IO_IS_BLOCKING;
}

ptrdiff_t bide_call_accept_(bide_io_operation *operation)
{
    if (is_in_blocking_mode(operation->descriptor) && is_listening(operation->descriptor))
        leave_blocking_mode(operation->descriptor);
    bide_address *peer = operation->arguments.accept.peer;
    socklen_t length = sizeof peer->any;
    int fd = portable_accept(io_fd(operation), peer != NULL ? &peer->any.generic : NULL,
                             peer != NULL ? &length : NULL);
    if (fd >= 0 && peer != NULL)
        peer->length = length;
    return result_or_errno(fd);
}

static int descriptor_open_socket(bide_descriptor *descriptor, int family, int type)
{
    int fd = portable_socket(family, type, 0, true);
    if (fd < 0)
        return -errno;
    bide_descriptor_init(descriptor, fd);
    descriptor->bits = IO_PROBED;
    if (type == SOCK_STREAM && (family == AF_INET || family == AF_INET6))
        descriptor->bits |= IO_TCP;
    return 0;
}

int bide_io_open_to_connect_(bide_io_operation *operation)
{
    const bide_address *address = operation->arguments.connect.address;
    const bide_socket_options *options = operation->arguments.connect.options;
    int type = options != NULL && options->type != 0 ? options->type : SOCK_STREAM;
    int error = descriptor_open_socket(operation->descriptor, address->any.generic.sa_family, type);
    if (error != 0)
        return error;
    error = bide_socket_prepare_(operation->descriptor, options);
    if (error != 0) {
        bide_io_close_(NULL, operation->descriptor);
        return error;
    }
    operation->state |= IO_OPENED;
    bide_io_adopt(operation->io, operation->descriptor);
    return 0;
}

static ptrdiff_t connect_start(int fd, const bide_address *address)
{
    int error = 0;
    do { /* an interrupted connect may continue; the next one reports it */
        error = connect(fd, &address->any.generic, address->length) == 0 ? 0 : errno;
    } while (error == EINTR);
    switch (error) {
    case 0:
    case EISCONN:
        return 0;
    case EINPROGRESS:
    case EALREADY:
        return -EAGAIN;
    case EAGAIN: /* the backlog of a Unix socket is full, and nothing reports when it is not */
        return -ECONNREFUSED;
    default:
        return -error;
    }
}

static bool has_peer(int fd)
{
    struct sockaddr_storage peer;
    socklen_t length = sizeof peer;
    return getpeername(fd, (struct sockaddr *)&peer, &length) == 0;
}

/* The first call starts to connect; later calls return the outcome. */
ptrdiff_t bide_call_connect_(bide_io_operation *operation)
{
    int fd = io_fd(operation);
    int error = 0;
    socklen_t length = sizeof error;
    if (operation->flags == 0) {
        operation->flags = 1;
        return connect_start(fd, operation->arguments.connect.address);
    }
    struct pollfd polled = {fd, POLLOUT, 0};
    int ready = poll(&polled, 1, 0);
    if (ready == 0)
        return -EAGAIN;
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) != 0)
        return -errno;
    if (ready < 0 && error == 0 && !has_peer(fd)) /* (the system could not poll) */
        return -EAGAIN;
    return -error;
}

static ptrdiff_t open_bound_socket(bide_io_operation *operation, bool listens)
{
    const bide_address *address = operation->arguments.listen.address;
    int family = address->any.generic.sa_family;
    int on = 1;
    int v6_only = (operation->flags & BIDE_LISTEN_V6_ONLY) != 0; /* (the system's default varies) */
    int error =
        descriptor_open_socket(operation->descriptor, family, operation->arguments.listen.type);
    if (error != 0)
        return error;
    error = bide_socket_prepare_(operation->descriptor, operation->arguments.listen.options);
    if (error != 0) {
        bide_io_close_(NULL, operation->descriptor);
        return error;
    }
    int fd = io_fd(operation);
    bool is_inet = family == AF_INET || family == AF_INET6;
    if ((is_inet && listens && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0) ||
        ((operation->flags & BIDE_LISTEN_REUSE_PORT) != 0 &&
         setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on) != 0) ||
        (family == AF_INET6 &&
         setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &v6_only, sizeof v6_only) != 0) ||
        bind(fd, &address->any.generic, address->length) != 0 ||
        (listens && listen(fd, operation->arguments.listen.backlog) != 0)) {
        error = -errno;
        bide_io_close_(NULL, operation->descriptor);
    }
    return error;
}

ptrdiff_t bide_call_listen_(bide_io_operation *operation)
{
    return open_bound_socket(operation, true);
}

ptrdiff_t bide_call_bind_(bide_io_operation *operation)
{
    return open_bound_socket(operation, false);
}

ptrdiff_t bide_call_pair_(bide_io_operation *operation)
{
    int fds[2];
    if (portable_socket_pair(SOCK_STREAM, fds, true) != 0)
        return -errno;
    bide_descriptor *both[2] = {operation->descriptor, operation->arguments.accept.accepted};
    for (int i = 0; i < 2; i++) {
        bide_descriptor_init(both[i], fds[i]);
        both[i]->bits = IO_PROBED;
    }
    return 0;
}

/* ---- Files ---- */

ptrdiff_t bide_call_sync_(bide_io_operation *operation)
{
    int fd = io_fd(operation);
    return result_or_errno(portable_sync(fd, operation->flags != 0));
}

ptrdiff_t bide_call_allocate_(bide_io_operation *operation)
{
#ifdef __linux__
    return result_or_errno(fallocate(io_fd(operation), operation->flags,
                                     operation->arguments.range.offset,
                                     operation->arguments.range.size));
#else
    (void)operation;
    return -ENOSYS;
#endif
}

ptrdiff_t bide_call_truncate_(bide_io_operation *operation)
{
    return result_or_errno(ftruncate(io_fd(operation), operation->arguments.range.size));
}

ptrdiff_t bide_call_stat_(bide_io_operation *operation)
{
    const char *path = operation->arguments.path.path;
    struct stat *about = operation->arguments.path.about;
    return result_or_errno(path == NULL ? fstat(io_fd(operation), about)
                                        : fstatat(AT_FDCWD, path, about, operation->flags));
}

/* Stores the position before the call in `offset`, so that the read can be undone. */
ptrdiff_t bide_call_read_directory_(bide_io_operation *operation)
{
#ifndef __linux__
    (void)operation;
    return -ENOSYS;
#else
    int fd = io_fd(operation);
    void *data = operation->arguments.bytes.data;
    off_t start = lseek(fd, 0, SEEK_CUR);
    if (start < 0)
        return -errno;
    operation->arguments.bytes.offset = start;
    ptrdiff_t size;
    do {
        size = syscall(SYS_getdents64, fd, data, operation->arguments.bytes.size);
        if (size > 0)
            io_written(data, (size_t)size);
    } while (size > 0 && !bide_io_has_entry_(data, (size_t)size));
    return result_or_errno(size);
#endif
}

ptrdiff_t bide_call_map_(bide_io_operation *operation)
{
    void *at = mmap(NULL, operation->arguments.map.size, operation->arguments.map.protection,
                    operation->flags, io_fd(operation), operation->arguments.map.offset);
    if (at == MAP_FAILED)
        return -errno;
    operation->arguments.map.at = at;
    return 0;
}

ptrdiff_t bide_call_prefault_(bide_io_operation *operation)
{
#ifndef __linux__
    (void)operation;
    return -ENOSYS;
#else
    enum { POPULATE_READ = 22, POPULATE_WRITE = 23 }; /* (newer than Debian 12's library) */
    return result_or_errno(madvise(operation->arguments.map.at, operation->arguments.map.size,
                                   operation->flags != 0 ? POPULATE_WRITE : POPULATE_READ));
#endif
}

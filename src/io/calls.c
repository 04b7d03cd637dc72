/*
 * The system calls behind the operations. Of what polls none waits: where one would, it returns
 * -EAGAIN. Some descriptors are in blocking mode, since others share them (a terminal, a pipe that
 * was inherited): those are asked first whether the call would wait, and are told not to, where the
 * kernel can do that. A write is kept to what a pipe that has room takes.
 */
#define _GNU_SOURCE
#include "bide/address.h"
#include "bide/socket.h"
#include "const_cast.h"
#include "buffer_pool.h"
#include "splice_calls.h"
#include "operation.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

void bide_io_probe_fd_(bide_descriptor *descriptor)
{
    struct stat about;
    int flags = fcntl(descriptor->fd, F_GETFL);
    descriptor->bits |= IO_ASKED;
    if (flags >= 0 && (flags & O_NONBLOCK) == 0)
        descriptor->bits |= IO_BLOCKS;
    if (fstat(descriptor->fd, &about) == 0 &&
        (S_ISREG(about.st_mode) || S_ISDIR(about.st_mode) || S_ISBLK(about.st_mode)))
        descriptor->bits |= IO_FILE;
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
        rest.count = 0;
        rest.data = (char *)vectors[i].iov_base + skip;
        rest.size = vectors[i].iov_len - skip;
    }
    return rest;
}

/* Would a call in this direction wait? Of a descriptor that does not say so itself. */
static bool would_wait(const bide_io_operation *operation)
{
    const bide_descriptor *descriptor = operation->descriptor;
    if ((descriptor->bits & (IO_BLOCKS | IO_FILE)) != IO_BLOCKS)
        return false;
    struct pollfd asked = {descriptor->fd,
                           io_direction(operation) == BIDE_IO_INPUT ? POLLIN : POLLOUT, 0};
    return poll(&asked, 1, 0) == 0;
}

/* At most so much may be written without waiting. */
static size_t max(const bide_io_operation *operation, size_t size)
{
    bool blocks = (operation->descriptor->bits & (IO_BLOCKS | IO_FILE)) == IO_BLOCKS;
    return blocks && size > PIPE_BUF ? PIPE_BUF : size;
}

/* Is it in blocking mode, and may others have what a call is about to have? */
static bool is_shared(const bide_io_operation *operation)
{
    return (operation->descriptor->bits & (IO_BLOCKS | IO_FILE)) == IO_BLOCKS;
}

/* Has the kernel refused to make a call without waiting, since it cannot for that descriptor? */
static bool cannot_say(ptrdiff_t result)
{
    return result < 0 && (errno == EOPNOTSUPP || errno == ENOSYS || errno == EINVAL);
}

/*
 * A read at the descriptor's position. One that is shared is ready by now, unless somebody else was
 * faster: so it is told not to wait, where the kernel can do that (pipes and sockets).
 */
static ptrdiff_t do_read(const bide_io_operation *operation)
{
    int fd = operation->descriptor->fd;
    const struct iovec bytes = {operation->arguments.bytes.data, operation->arguments.bytes.size};
    if (is_shared(operation)) {
        ptrdiff_t result = preadv2(fd, &bytes, 1, -1, RWF_NOWAIT);
        if (result > 0)
            io_written(bytes.iov_base, (size_t)result);
        if (!cannot_say(result))
            return result;
    }
    return read(fd, bytes.iov_base, bytes.iov_len);
}

static ptrdiff_t do_write(const bide_io_operation *operation, const void *data, size_t size,
                          int64_t offset)
{
    int fd = operation->descriptor->fd;
    size = max(operation, size);
    if (offset >= 0)
        return pwrite(fd, data, size, offset);
    if (is_shared(operation)) { /* (as do_read) */
        const struct iovec bytes = {io_as_data(data), size};
        ptrdiff_t result = pwritev2(fd, &bytes, 1, -1, RWF_NOWAIT);
        if (!cannot_say(result))
            return result;
    }
    return write(fd, data, size);
}

static ptrdiff_t write_vectors(const bide_io_operation *operation)
{
    int fd = operation->descriptor->fd;
    io_vectors rest = bide_io_rest_of_vectors_(operation);
    int64_t offset = operation->arguments.vector.offset;
    if (offset >= 0)
        offset += (int64_t)operation->count;
    if (rest.count == 0)
        return do_write(operation, rest.data, rest.size, offset);
    if (rest.vectors[0].iov_len > max(operation, rest.vectors[0].iov_len))
        return do_write(operation, rest.vectors[0].iov_base, rest.vectors[0].iov_len, offset);
    int count = rest.count > IOV_MAX ? IOV_MAX : rest.count;
    if ((operation->descriptor->bits & (IO_BLOCKS | IO_FILE)) == IO_BLOCKS)
        count = 1;
    return offset >= 0 ? pwritev(fd, rest.vectors, count, offset) : writev(fd, rest.vectors, count);
}

static ptrdiff_t read_vectors(const bide_io_operation *operation)
{
    int fd = operation->descriptor->fd;
    int count = operation->arguments.vector.count;
    if (count > IOV_MAX)
        count = IOV_MAX;
    int64_t offset = operation->arguments.vector.offset;
    return offset >= 0 ? preadv(fd, operation->arguments.vector.vectors, count, offset)
                       : readv(fd, operation->arguments.vector.vectors, count);
}

static ptrdiff_t do_accept(bide_io_operation *operation)
{
    bide_address *peer = operation->arguments.accept.peer;
    socklen_t length = sizeof peer->any;
    int fd = accept4(operation->descriptor->fd, peer != NULL ? &peer->any.generic : NULL,
                     peer != NULL ? &length : NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd >= 0 && peer != NULL)
        peer->length = length;
    return fd;
}

static int open_socket(bide_descriptor *descriptor, int family, int type)
{
    int fd = socket(family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    bide_descriptor_init(descriptor, fd);
    descriptor->bits = IO_ASKED;
    if (type == SOCK_STREAM && (family == AF_INET || family == AF_INET6))
        descriptor->bits |= IO_BYTES;
    return 0;
}

int bide_io_open_to_connect_(bide_io_operation *operation)
{
    const bide_address *address = operation->arguments.address;
    int error = open_socket(operation->descriptor, address->any.generic.sa_family, SOCK_STREAM);
    if (error == 0)
        bide_io_adopt(operation->io, operation->descriptor);
    return error;
}

/* The first call begins it; later ones ask how it went. */
static ptrdiff_t do_connect(bide_io_operation *operation)
{
    const bide_address *address = operation->arguments.address;
    int fd = operation->descriptor->fd;
    int error = 0;
    socklen_t length = sizeof error;
    if (operation->flags == 0) {
        operation->flags = 1;
        int failed = 0;
        do { /* one that was interrupted may go on; the next says so */
            failed = connect(fd, &address->any.generic, address->length) == 0 ? 0 : errno;
        } while (failed == EINTR);
        if (failed == 0 || failed == EISCONN)
            return 0;
        /* (of a Unix socket whose line of connections is full: EAGAIN; nothing tells of room) */
        return failed == EINPROGRESS || failed == EALREADY ? -EAGAIN
               : failed == EAGAIN                          ? -ECONNREFUSED
                                                           : -failed;
    }
    struct pollfd asked = {fd, POLLOUT, 0};
    if (poll(&asked, 1, 0) == 0)
        return -EAGAIN;
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) != 0)
        return -errno;
    return -error;
}

static ptrdiff_t listen_or_bind(bide_io_operation *operation)
{
    const bide_address *address = operation->arguments.listen.address;
    int family = address->any.generic.sa_family;
    int on = 1;
    int error = open_socket(operation->descriptor, family, operation->arguments.listen.type);
    if (error != 0)
        return error;
    int fd = operation->descriptor->fd;
    bool is_inet = family == AF_INET || family == AF_INET6;
    bool listens = operation->code == BIDE_IO_LISTEN;
    if ((is_inet && listens && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0) ||
        ((operation->flags & BIDE_LISTEN_REUSE_PORT) != 0 &&
         setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on) != 0) ||
        (family == AF_INET6 && (operation->flags & BIDE_LISTEN_V6_ONLY) != 0 &&
         setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on) != 0) ||
        bind(fd, &address->any.generic, address->length) != 0 ||
        (listens && listen(fd, operation->arguments.listen.backlog) != 0)) {
        error = -errno;
        bide_io_close_(NULL, operation->descriptor);
    }
    return error;
}

static ptrdiff_t pair(bide_io_operation *operation)
{
    int fds[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) != 0)
        return -errno;
    bide_descriptor *both[2] = {operation->descriptor, operation->arguments.accept.accepted};
    for (int i = 0; i < 2; i++) {
        bide_descriptor_init(both[i], fds[i]);
        both[i]->bits = IO_ASKED;
    }
    return 0;
}

static ptrdiff_t do_poll(bide_io_operation *operation)
{
    struct pollfd asked = {operation->descriptor->fd, (short)operation->arguments.poll.wanted, 0};
    int ready = poll(&asked, 1, 0);
    if (ready == 0)
        return -EAGAIN;
    return ready < 0 ? -errno : (unsigned short)asked.revents;
}

/* A call that returned -1 has its error in errno; those above return it themselves. */
static ptrdiff_t or_errno(ptrdiff_t result)
{
    return result != -1 ? result : io_error();
}

static ptrdiff_t of_a_path(const bide_io_operation *operation)
{
    const char *path = operation->arguments.path.path;
    switch (operation->code) {
    case BIDE_IO_STAT:
        return path == NULL
                   ? fstat(operation->descriptor->fd, operation->arguments.path.stat)
                   : fstatat(AT_FDCWD, path, operation->arguments.path.stat, operation->flags);
    case BIDE_IO_RENAME:
        return rename(path, operation->arguments.path.other);
    case BIDE_IO_UNLINK:
        return unlinkat(AT_FDCWD, path, operation->flags);
    default:
        return mkdir(path, (mode_t)operation->arguments.path.mode);
    }
}

/* Takes a buffer for the time of the call, and keeps it if something has come. */
static ptrdiff_t receive_lent(bide_io_operation *operation)
{
    bide_buffer_pool *pool = operation->arguments.lent.pool;
    void *data = bide_io_pool_take_(pool, operation);
    if (data == NULL) {
        bide_io_pool_wait_(operation);
        return -EAGAIN;
    }
    ptrdiff_t result = recv(operation->descriptor->fd, data, pool->size, MSG_DONTWAIT);
    int error = errno;
    if (result > 0) {
        operation->arguments.lent.data = data;
        pool->lent++;
    } else {
        bide_io_pool_put_(pool, data);
    }
    return result < 0 ? -error : result;
}

/* The system's array, under our name. */
static struct mmsghdr *messages_of(const bide_io_operation *operation, size_t skip)
{
    BIDE_STATIC_ASSERT(sizeof(struct mmsghdr) == sizeof(bide_message) &&
                           offsetof(struct mmsghdr, msg_len) == offsetof(bide_message, size),
                       "a message is the system's");
    return (struct mmsghdr *)(void *)(operation->arguments.batch.messages + skip);
}

static ptrdiff_t receive_batch(const bide_io_operation *operation)
{
    return recvmmsg(operation->descriptor->fd, messages_of(operation, 0),
                    operation->arguments.batch.count, MSG_DONTWAIT | MSG_CMSG_CLOEXEC, NULL);
}

static ptrdiff_t send_batch(const bide_io_operation *operation)
{
    return sendmmsg(operation->descriptor->fd, messages_of(operation, operation->count),
                    operation->arguments.batch.count - (unsigned)operation->count,
                    MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* Notes where it began, in `offset`, for bide_io_unread_directory_. */
static ptrdiff_t read_directory(bide_io_operation *operation)
{
    int fd = operation->descriptor->fd;
    off_t began = lseek(fd, 0, SEEK_CUR);
    if (began < 0)
        return -1;
    operation->arguments.bytes.offset = began;
    ptrdiff_t size;
    do {
        size = syscall(SYS_getdents64, fd, operation->arguments.bytes.data,
                       operation->arguments.bytes.size);
        if (size > 0)
            io_written(operation->arguments.bytes.data, (size_t)size);
    } while (size > 0 && !bide_io_has_entry_(operation->arguments.bytes.data, (size_t)size));
    return size;
}

void bide_io_unread_directory_(const bide_io_operation *operation)
{
    int fd = operation->descriptor->fd;
    int64_t began = operation->arguments.bytes.offset;
    bide_io *io = operation->io;
    if (operation->count == 0)
        return;
    if (io_calls(io) != NULL)
        io_calls(io)->lseek(io, fd, began);
    else
        lseek(fd, began, SEEK_SET);
}

static ptrdiff_t map(bide_io_operation *operation)
{
    void *at = mmap(NULL, operation->arguments.map.size, operation->arguments.map.protection,
                    operation->flags, operation->descriptor->fd, operation->arguments.map.offset);
    if (at == MAP_FAILED)
        return -1;
    operation->arguments.map.at = at;
    return 0;
}

static ptrdiff_t prefault(const bide_io_operation *operation)
{
    enum { POPULATE_READ = 22, POPULATE_WRITE = 23 }; /* (newer than Debian 12's library) */
    return madvise(operation->arguments.map.at, operation->arguments.map.size,
                   operation->flags != 0 ? POPULATE_WRITE : POPULATE_READ);
}

static ptrdiff_t on_lines(bide_io_operation *operation)
{
    int fd = operation->descriptor->fd;
    size_t size;
    void *rest;
    switch (operation->code) {
    case BIDE_IO_RECV:
    case BIDE_IO_SEND:
        return io_move_bytes(operation);
    case BIDE_IO_SPLICE_TO_SOCKET:
        return bide_io_splice_to_socket_(operation);
    case BIDE_IO_RECV_BATCH:
        return receive_batch(operation);
    case BIDE_IO_SEND_BATCH:
        return send_batch(operation);
    case BIDE_IO_SEND_ZERO_COPY: /* (MSG_ZEROCOPY would tell of its end in a line of errors) */
        operation->arguments.bytes.was_copied = true;
        rest = io_rest(operation, &size);
        return send(fd, rest, size, MSG_DONTWAIT | MSG_NOSIGNAL);
    case BIDE_IO_RECVMSG:
        return recvmsg(fd, operation->arguments.message,
                       operation->flags | MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    case BIDE_IO_SENDMSG:
        return sendmsg(fd, operation->arguments.message,
                       operation->flags | MSG_DONTWAIT | MSG_NOSIGNAL);
    default:
        break;
    }
    if ((operation->descriptor->bits & IO_ASKED) == 0)
        bide_io_probe_fd_(operation->descriptor);
    if (would_wait(operation)) {
        errno = EAGAIN;
        return -1;
    }
    int64_t offset = operation->arguments.bytes.offset;
    switch (operation->code) {
    case BIDE_IO_ACCEPT:
        return do_accept(operation);
    case BIDE_IO_READ:
        return offset >= 0 ? pread(fd, operation->arguments.bytes.data,
                                   operation->arguments.bytes.size, offset)
                           : do_read(operation);
    case BIDE_IO_WRITE:
        rest = io_rest(operation, &size);
        return do_write(operation, rest, size,
                        offset >= 0 ? offset + (int64_t)operation->count : offset);
    case BIDE_IO_READ_VECTOR:
        return read_vectors(operation);
    default:
        return write_vectors(operation);
    }
}

ptrdiff_t bide_io_call(bide_io_operation *operation)
{
    int fd = operation->descriptor != NULL ? operation->descriptor->fd : -1;
    switch (operation->code) {
    case BIDE_IO_CONNECT:
        return do_connect(operation);
    case BIDE_IO_POLL:
        return do_poll(operation);
    case BIDE_IO_RECV_PROVIDED:
        return receive_lent(operation);
    case BIDE_IO_LISTEN:
    case BIDE_IO_BIND:
        return listen_or_bind(operation);
    case BIDE_IO_PAIR:
        return pair(operation);
    case BIDE_IO_SEND_FILE:
        return bide_io_send_file_(operation);
    case BIDE_IO_OPEN:
        return or_errno(open(operation->arguments.open.path,
                             operation->arguments.open.flags | O_CLOEXEC,
                             (mode_t)operation->arguments.open.mode));
    case BIDE_IO_SYNC:
        return or_errno(operation->flags != 0 ? fdatasync(fd) : fsync(fd));
    case BIDE_IO_ALLOCATE:
        return or_errno(fallocate(fd, operation->flags, operation->arguments.range.offset,
                                  operation->arguments.range.size));
    case BIDE_IO_TRUNCATE:
        return or_errno(ftruncate(fd, operation->arguments.range.size));
    case BIDE_IO_READ_DIRECTORY:
        return or_errno(read_directory(operation));
    case BIDE_IO_MAP:
        return or_errno(map(operation));
    case BIDE_IO_PREFAULT:
        return or_errno(prefault(operation));
    case BIDE_IO_SPLICE_FROM_FILE:
        return or_errno(bide_io_splice_from_file_(operation));
    case BIDE_IO_STAT:
    case BIDE_IO_RENAME:
    case BIDE_IO_UNLINK:
    case BIDE_IO_MAKE_DIRECTORY:
        return or_errno(of_a_path(operation));
    default:
        return or_errno(on_lines(operation));
    }
}

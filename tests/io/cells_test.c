/*
 * Operations do what the bare system calls do. Each cell of a table is done twice, on descriptors that are made alike:
 * by the system call, and by the operation in this world. Compared are the status, the count, the position, the bytes
 * that were read, and what the other end, or the file, has got.
 *
 *     sizes      operation × kind of descriptor × size × limit × what lies in it before
 *     modes      operation × kind × size × in blocking mode, or shared × what lies in it before
 *     ends       operation × kind × size × whether it is full × how it is ended: what its count says has been moved
 *     lacks      what opens a descriptor, with none left
 *     little     some of the first, by a user who may pin little memory, or none
 *
 * What would wait has no bare counterpart: the call ends with -EAGAIN, and the operation is stopped.
 *
 * In memory the operations are on descriptors of that world, and the calls on those of the system. It has some of the
 * kinds. BIDE_CELLS=1 names each cell.
 */
#define _GNU_SOURCE
#include "subjects.h"

#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/sendfile.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <sys/wait.h>

/* ---- Operations, in both ways ---- */

typedef enum code {
    READ,
    READ_AT,
    READV,
    READV_AT,
    RECV,
    RECVMSG,
    RECV_PROVIDED,
    RECV_NEXT,
    POLL_INPUT,
    POLL_OUTPUT,
    ACCEPT,
    SYNC,
    TRUNCATE,
    ALLOCATE,
    STAT,
    WRITE, /* from here on they write */
    WRITE_AT,
    WRITEV,
    WRITEV_AT,
    SEND,
    SEND_ZERO_COPY,
    SEND_FILE,
    SENDMSG, /* as much as goes; the others: all */
    CODES
} code;

static const char *const code_names[CODES] = {
    [READ] = "read",
    [READ_AT] = "read_at",
    [READV] = "readv",
    [READV_AT] = "readv_at",
    [RECV] = "recv",
    [RECVMSG] = "recvmsg",
    [RECV_PROVIDED] = "recv_provided",
    [RECV_NEXT] = "receiver_next",
    [POLL_INPUT] = "poll for input",
    [POLL_OUTPUT] = "poll for output",
    [ACCEPT] = "accept",
    [SYNC] = "sync",
    [TRUNCATE] = "truncate",
    [ALLOCATE] = "allocate",
    [STAT] = "stat",
    [WRITE] = "write",
    [WRITE_AT] = "write_at",
    [WRITEV] = "writev",
    [WRITEV_AT] = "writev_at",
    [SEND] = "send",
    [SEND_ZERO_COPY] = "send_zero_copy",
    [SEND_FILE] = "send_file",
    [SENDMSG] = "sendmsg",
};

enum { OFFSET = 1000 };

static bool code_writes(code code)
{
    return code >= WRITE;
}

static bool writes_all(code code)
{
    return code >= WRITE && code < SENDMSG;
}

static bool code_has_size(code code)
{
    return code < POLL_INPUT || code == TRUNCATE || code == ALLOCATE || code >= WRITE;
}

static bool kind_has_messages(kind kind)
{
    return kind == DATAGRAMS || kind == PACKETS || kind == UDP || kind == BOUND_UDP;
}

/* Cells that are none: their contract asks for another size, or how the rest is cut again is not the kernel's. */
static bool is_cell(kind kind, code code, size_t size)
{
    if ((code == RECV_PROVIDED || code == RECV_NEXT) &&
        kind == LISTENER) /* documented: on io_uring it waits for a connection first */
        return false;
    if (code == SEND_FILE &&
        (world_is("memory") || (kind != STREAMS && kind != TCP && kind != CLOSED_PEER)))
        return false;
    if (size == 0 && (code == RECV_PROVIDED || code == RECV_NEXT || code == SEND_ZERO_COPY))
        return false;
    if (code == SEND_ZERO_COPY && kind == TCP &&
        size == SIZE) /* it ends when the other end has got it */
        return false;
    if (size == 0 && world_is("memory") && (code == RECV || code == RECVMSG || kind == DIRECTORY))
        return false;
    return (!kind_has_messages(kind) && kind != DIRECT) || (code != WRITEV && code != WRITEV_AT) ||
           size <= IOV_MAX;
}

/* What an operation did. */
typedef struct outcome {
    int status;
    size_t count;
    long position;
    char got[2 * SIZE]; /* by the other end, or in the file */
    size_t got_size;
    unsigned messages; /* that the other end has got */
} outcome;

static size_t lay_out_vectors(struct iovec *vectors, char *data, size_t size)
{
    size_t count = size < VECTORS ? size : VECTORS;
    for (size_t i = 0, at = 0; i < count; i++) {
        size_t part = i + 1 < count ? size / count : size - at;
        vectors[i] = (struct iovec){data + at, part};
        at += part;
    }
    return count;
}

/* What a stat says that is alike of two descriptors. */
static ptrdiff_t abridge(const struct stat *about)
{
    return (ptrdiff_t)((about->st_mode & S_IFMT) +
                       (S_ISREG(about->st_mode) ? (size_t)about->st_size : 0));
}

static int bare_poll(int fd, int events)
{
    struct pollfd polled = {fd, (short)events, 0};
    int ready = poll(&polled, 1, 0);
    errno = EAGAIN;
    return ready == 0 ? -1 : polled.revents;
}

static int bare_accept(int fd)
{
    int accepted = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    return accepted >= 0 ? close(accepted) : -1;
}

/* A file of `size` bytes. */
static int make_source(const char *data, size_t size)
{
    int fd = memfd_create("source", MFD_CLOEXEC);
    assert_int_equal(pwrite(fd, data, size, 0), size);
    return fd;
}

static ptrdiff_t bare_send_file(int fd, const char *data, size_t size, size_t done)
{
    off_t offset = (off_t)done;
    int source = make_source(data, size);
    ptrdiff_t result = sendfile(fd, source, &offset, size - done);
    int error = errno;
    close(source);
    errno = error;
    return result;
}

/* The bare call, from `done` on; result or negative errno. */
static ptrdiff_t bare_call(code code, int fd, char *data, size_t size, size_t done)
{
    static struct iovec vectors[VECTORS];
    struct iovec bytes = {data, size};
    struct msghdr message = {.msg_iov = &bytes, .msg_iovlen = 1};
    struct stat about;
    size_t count = lay_out_vectors(vectors, data + done, size - done);
    ptrdiff_t result = -1;
    if (count > IOV_MAX)
        count = IOV_MAX;
    switch (code) {
    case READ:
        result = read(fd, data, size);
        break;
    case READ_AT:
        result = pread(fd, data, size, OFFSET);
        break;
    case READV:
        result = readv(fd, vectors, (int)count);
        break;
    case READV_AT:
        result = preadv(fd, vectors, (int)count, OFFSET);
        break;
    case RECV:
    case RECV_PROVIDED:
    case RECV_NEXT:
        result = recv(fd, data, size, MSG_DONTWAIT);
        break;
    case RECVMSG:
        result = recvmsg(fd, &message, MSG_DONTWAIT);
        break;
    case POLL_INPUT:
        result = bare_poll(fd, POLLIN);
        break;
    case POLL_OUTPUT:
        result = bare_poll(fd, POLLOUT);
        break;
    case ACCEPT:
        result = bare_accept(fd);
        break;
    case SYNC:
        result = fsync(fd);
        break;
    case TRUNCATE:
        result = ftruncate(fd, (off_t)size);
        break;
    case ALLOCATE:
        result = fallocate(fd, 0, OFFSET, (off_t)size);
        break;
    case STAT:
        result = fstat(fd, &about) == 0 ? abridge(&about) : -1;
        break;
    case WRITE:
        result = write(fd, data + done, size - done);
        break;
    case WRITE_AT:
        result = pwrite(fd, data + done, size - done, OFFSET + (off_t)done);
        break;
    case WRITEV:
        result = writev(fd, vectors, (int)count);
        break;
    case WRITEV_AT:
        result = pwritev(fd, vectors, (int)count, OFFSET + (off_t)done);
        break;
    case SEND:
    case SEND_ZERO_COPY:
        result = send(fd, data + done, size - done, MSG_DONTWAIT | MSG_NOSIGNAL);
        break;
    case SEND_FILE:
        result = bare_send_file(fd, data, size, done);
        break;
    case SENDMSG:
        result = sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
        break;
    case CODES:
        break;
    }
    return result >= 0 ? result : -errno;
}

static void do_bare(outcome *outcome, code code, const subject *it, char *data, size_t size)
{
    outcome->status = 0;
    outcome->count = 0;
    do {
        ptrdiff_t result = bare_call(code, it->fd, data, size, outcome->count);
        if (result < 0) {
            outcome->status = (int)result;
            return;
        }
        outcome->count += (size_t)result;
    } while (writes_all(code) && outcome->count < size);
}

/* An operation, with what its arguments point at. */
typedef struct act {
    code code;
    char *data;
    bide_descriptor descriptor, accepted;
    bide_file_operation file;
    bide_send_file_operation send_file;
    bide_descriptor source;
    struct iovec bytes;
    struct msghdr message;
    struct stat about;
    bide_buffer_pool pool;
    bide_receiver receiver;
    struct iovec vectors[VECTORS];
    char lent[SIZE];
} act;

static bide_awaiter *init_act(act *act, code code, char *data, size_t size)
{
    bide_file_operation *file = &act->file;
    bide_descriptor *descriptor = &act->descriptor;
    int count = (int)lay_out_vectors(act->vectors, data, size);
    act->code = code;
    act->data = data;
    act->bytes = (struct iovec){data, size};
    act->message = (struct msghdr){.msg_iov = &act->bytes, .msg_iovlen = 1};
    bide_descriptor_init_closed(&act->accepted);
    bide_descriptor_init_closed(&act->source);
    switch (code) {
    case READ:
        return bide_read(file, descriptor, data, size);
    case READ_AT:
        return bide_read_at(file, descriptor, data, size, OFFSET);
    case READV:
        return bide_readv(file, descriptor, act->vectors, count, -1);
    case READV_AT:
        return bide_readv(file, descriptor, act->vectors, count, OFFSET);
    case RECV:
        return bide_recv(&file->operation, descriptor, data, size);
    case RECVMSG:
        return bide_recvmsg(&file->operation, descriptor, &act->message, 0);
    case RECV_PROVIDED:
        bide_buffer_pool_init(&act->pool, act->lent, size, 1);
        return bide_recv_provided(&file->operation, descriptor, &act->pool);
    case RECV_NEXT:
        bide_buffer_pool_init(&act->pool, act->lent, size, 1);
        bide_receiver_init(&act->receiver, descriptor, &act->pool, 1);
        return bide_receiver_next(&act->receiver);
    case POLL_INPUT:
        return bide_poll(&file->operation, descriptor, POLLIN);
    case POLL_OUTPUT:
        return bide_poll(&file->operation, descriptor, POLLOUT);
    case ACCEPT:
        return bide_accept(&file->operation, descriptor, &act->accepted, NULL);
    case SYNC:
        return bide_sync(file, descriptor, BIDE_SYNC_ALL);
    case TRUNCATE:
        return bide_truncate(file, descriptor, (int64_t)size);
    case ALLOCATE:
        return bide_allocate(file, descriptor, 0, OFFSET, (int64_t)size);
    case STAT:
        return bide_stat(file, descriptor, &act->about);
    case WRITE:
        return bide_write(file, descriptor, data, size);
    case WRITE_AT:
        return bide_write_at(file, descriptor, data, size, OFFSET);
    case WRITEV:
        return bide_writev(file, descriptor, act->vectors, count, -1);
    case WRITEV_AT:
        return bide_writev(file, descriptor, act->vectors, count, OFFSET);
    case SEND:
        return bide_send(&file->operation, descriptor, data, size);
    case SEND_ZERO_COPY:
        return bide_send_zero_copy(&file->operation, descriptor, data, size);
    case SEND_FILE:
        bide_descriptor_init(&act->source, make_source(data, size));
        return bide_send_file(&act->send_file, descriptor, &act->source, 0, size);
    case SENDMSG:
        return bide_sendmsg(&file->operation, descriptor, &act->message, 0);
    case CODES:
        break;
    }
    return NULL;
}

static size_t count_of_act(const act *act)
{
    return act->code == SEND_FILE   ? (size_t)act->send_file.count
           : act->code == RECV_NEXT ? bide_receiver_size(&act->receiver)
                                    : act->file.operation.count;
}

/* Of one that has ended: its result, and nothing of it is left. */
static size_t end_act(act *act, int status)
{
    size_t count = count_of_act(act);
    if (act->code == RECV_PROVIDED) {
        void *lent = bide_provided_buffer(&act->file.operation);
        if (status == 0 && count != 0) {
            memcpy(act->data, lent, count);
            bide_buffer_release(&act->pool, lent);
        }
        bide_buffer_pool_destroy(&act->pool);
    }
    if (act->code == RECV_NEXT) {
        if (status == 0 && count != 0) {
            memcpy(act->data, bide_receiver_data(&act->receiver), count);
            bide_buffer_release(&act->pool, bide_receiver_data(&act->receiver));
        }
        bide_receiver_destroy(&act->receiver);
        bide_buffer_pool_destroy(&act->pool);
    }
    if (bide_descriptor_is_open(&act->accepted))
        assert_int_equal(bide_close(&act->accepted), 0);
    if (bide_descriptor_is_open(&act->source))
        assert_int_equal(bide_close(&act->source), 0);
    if (status != 0 || (act->code != STAT && act->code != POLL_INPUT && act->code != POLL_OUTPUT))
        return count;
    return act->code == STAT ? (size_t)abridge(&act->about)
                             : act->file.operation.arguments.poll.found;
}

/* ---- Descriptors of the world in memory ---- */

/* A descriptor of a number; `world` is NULL, or the one in memory. */
static void use_number(world *world, bide_descriptor *descriptor, int fd)
{
    bide_descriptor_init(descriptor, fd);
    if (world->memory != NULL)
        bide_io_adopt(world->test.io, descriptor);
}

static bool is_in_memory(kind kind)
{
    return kind == REGULAR || kind == APPENDED || kind == PIPE_IN || kind == PIPE_OUT ||
           kind == STREAMS || kind == TCP || kind == BOUND_UDP || kind == LISTENER ||
           kind == DIRECTORY || kind == CLOSED_PEER;
}

static int open_in_memory(world *world, const char *path, int flags)
{
    int fd = world_open(world, path, flags);
    assert_true(fd >= 0);
    return fd;
}

static void put_in_memory(world *world, int fd, const char *data, size_t size, size_t *moved)
{
    bide_descriptor descriptor;
    bide_file_operation writing;
    bide_with_deadline_operation limited;
    use_number(world, &descriptor, fd);
    int status =
        world_wait(world, bide_with_deadline(&limited, world_now(world) + 1000,
                                             bide_write(&writing, &descriptor, data, size)));
    assert_true(status == 0 || status == -ETIMEDOUT);
    *moved = writing.operation.count;
    assert_int_equal(bide_descriptor_release(&descriptor), fd);
}

/* Up to `size` bytes that are there. `offset`: -1: from the position. */
static size_t take_in_memory(world *world, int fd, char *data, size_t size, int64_t offset)
{
    bide_descriptor descriptor;
    bide_file_operation reading;
    bide_with_deadline_operation limited;
    struct iovec bytes = {data, size};
    size_t sum = 0;
    use_number(world, &descriptor, fd);
    do {
        bytes = (struct iovec){data + sum, size - sum};
        bide_awaiter *read = bide_readv(&reading, &descriptor, &bytes, 1,
                                        offset >= 0 ? offset + (int64_t)sum : offset);
        if (world_wait(world, bide_with_deadline(&limited, world_now(world) + 1000, read)) != 0)
            break;
        sum += reading.operation.count;
    } while (reading.operation.count != 0 && sum < size);
    assert_int_equal(bide_descriptor_release(&descriptor), fd);
    return sum;
}

static bide_address address_in_memory(world *world, int fd)
{
    bide_descriptor descriptor;
    bide_address address;
    use_number(world, &descriptor, fd);
    assert_int_equal(bide_local_address(&descriptor, &address), 0);
    assert_int_equal(bide_descriptor_release(&descriptor), fd);
    return address;
}

static void connect_in_memory(world *world, subject *made)
{
    bide_descriptor connection;
    bide_io_operation connecting;
    bide_address address = address_in_memory(world, made->fd);
    assert_int_equal(world_wait(world, bide_connect(&connecting, &connection, &address)), 0);
    made->peer = bide_descriptor_release(&connection);
}

static subject make_in_memory(world *world, kind kind)
{
    subject made = {-1, -1};
    bide_descriptor one, other;
    bide_file_operation file;
    bide_address any;
    size_t moved;
    assert_int_equal(bide_address_parse(&any, "127.0.0.1:0"), 0);
    bide_descriptor_init_closed(&one);
    bide_descriptor_init_closed(&other);
    switch (kind) {
    case REGULAR:
    case APPENDED:
        made.peer = open_in_memory(world, "/tmp/difference", O_RDWR | O_CREAT | O_TRUNC);
        put_in_memory(world, made.peer, pattern, ORIGINAL, &moved);
        made.fd =
            open_in_memory(world, "/tmp/difference", O_RDWR | (kind == APPENDED ? O_APPEND : 0));
        world_close(world, made.peer);
        made.peer = -1;
        assert_int_equal(world_wait(world, bide_unlink(&file, "/tmp/difference", 0)), 0);
        return made;
    case DIRECTORY:
        made.fd = open_in_memory(world, "/", O_RDONLY | O_DIRECTORY);
        return made;
    case PIPE_IN:
        assert_int_equal(bide_memory_io_pipe(world->memory, &one, &other), 0);
        break;
    case PIPE_OUT:
        assert_int_equal(bide_memory_io_pipe(world->memory, &other, &one), 0);
        break;
    case STREAMS:
    case CLOSED_PEER:
        assert_int_equal(world_wait(world, bide_socket_pair(&file.operation, &one, &other)), 0);
        if (kind == CLOSED_PEER)
            assert_int_equal(bide_close(&other), 0);
        break;
    case BOUND_UDP:
        assert_int_equal(world_wait(world, bide_bind(&file.operation, &one, &any, 0)), 0);
        assert_int_equal(world_wait(world, bide_bind(&file.operation, &other, &any, 0)), 0);
        break;
    case LISTENER:
        assert_int_equal(world_wait(world, bide_listen(&file.operation, &one, &any, 1)), 0);
        break;
    case TCP:
        assert_int_equal(world_wait(world, bide_listen(&file.operation, &other, &any, 1)), 0);
        made.fd = bide_descriptor_release(&other);
        connect_in_memory(world, &made);
        use_number(world, &other, made.fd);
        assert_int_equal(world_wait(world, bide_accept(&file.operation, &other, &one, NULL)), 0);
        assert_int_equal(bide_close(&other), 0);
        made.fd = bide_descriptor_release(&one);
        return made;
    default:
        assert_true(false);
    }
    made.fd = bide_descriptor_release(&one);
    if (bide_descriptor_is_open(&other))
        made.peer = bide_descriptor_release(&other);
    return made;
}

static void discard_in_memory(world *world, subject *it)
{
    if (it->fd >= 0)
        world_close(world, it->fd);
    if (it->peer >= 0)
        world_close(world, it->peer);
}

/* The subject of an operation. */
static subject make_own(world *world, kind kind)
{
    return world->memory != NULL ? make_in_memory(world, kind) : make(kind);
}

static void discard_own(world *world, subject *it)
{
    if (world->memory != NULL)
        discard_in_memory(world, it);
    else
        discard(it);
}

/* ---- What lies in them before, and after ---- */

/* It comes late: by the network, or through the buffer of a terminal. */
static void wait_for_input(int fd, int size)
{
    struct pollfd ready = {fd, POLLIN, 0};
    int there = 0;
    assert_int_equal(poll(&ready, 1, -1), 1);
    while (ioctl(fd, FIONREAD, &there) == 0 && there < size)
        sched_yield();
}

static void give_before(kind kind, subject *it, int before)
{
    uint64_t one = 1;
    const struct itimerspec soon = {{0, 0}, {0, 1}};
    struct pollfd ready = {it->fd, POLLIN, 0};
    if (before == 0)
        return;
    if (kind <= IN_MEMORY) {
        assert_int_equal(lseek(it->fd, before, SEEK_SET), before);
    } else if (kind == COUNTER) {
        assert_int_equal(write(it->fd, &one, sizeof one), sizeof one);
    } else if (kind == CLOCK) {
        timerfd_settime(it->fd, 0, &soon, NULL);
        poll(&ready, 1, -1);
    } else if (kind == LISTENER) {
        struct sockaddr_in address;
        socklen_t length = sizeof address;
        assert_int_equal(getsockname(it->fd, (struct sockaddr *)&address, &length), 0);
        it->peer = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_int_equal(connect(it->peer, (struct sockaddr *)&address, length), 0);
        poll(&ready, 1, -1);
    } else if (it->peer >= 0 && kind != PIPE_OUT && kind != FIFO_OUT) {
        assert_int_equal(write(it->peer, pattern + 100, (size_t)before), before);
        wait_for_input(it->fd, before);
    }
}

static void give_before_in_memory(world *world, kind kind, subject *it, int before)
{
    static char skipped[SIZE];
    size_t moved;
    if (before == 0 || kind == DIRECTORY || kind == CLOSED_PEER || kind == PIPE_OUT)
        return;
    if (kind == REGULAR || kind == APPENDED) {
        assert_int_equal(take_in_memory(world, it->fd, skipped, (size_t)before, -1), before);
    } else if (kind == LISTENER) {
        connect_in_memory(world, it);
    } else if (kind == BOUND_UDP) {
        bide_datagram datagram;
        bide_descriptor peer;
        bide_address to = address_in_memory(world, it->fd);
        use_number(world, &peer, it->peer);
        assert_int_equal(
            world_wait(world, bide_send_to(&datagram, &peer, pattern + 100, (size_t)before, &to)),
            0);
        assert_int_equal(bide_descriptor_release(&peer), it->peer);
    } else {
        put_in_memory(world, it->peer, pattern + 100, (size_t)before, &moved);
        assert_int_equal(moved, before);
    }
    turn(world);
}

static bool has_input(kind kind, const subject *it)
{
    return it->peer >= 0 && kind != PIPE_OUT && kind != FIFO_OUT;
}

static bool has_output(kind kind, const subject *it)
{
    return it->peer >= 0 && kind != LISTENER && kind != PIPE_IN && kind != FIFO_IN;
}

/* All that is there at the other end, which is `expected` bytes at least. */
static size_t take_all(const subject *it, char *data, size_t size, size_t expected, unsigned *reads)
{
    struct pollfd more = {it->peer, POLLIN, 0};
    size_t sum = 0;
    ptrdiff_t count;
    *reads = 0;
    while (sum < size && poll(&more, 1, sum < expected ? 5000 : 0) > 0 &&
           (count = read(it->peer, data + sum, size - sum)) > 0) {
        sum += (size_t)count;
        ++*reads;
    }
    return sum;
}

static void look_after(outcome *outcome, kind kind, code code, const subject *it)
{
    size_t expected = code_writes(code) ? outcome->count : 0;
    outcome->position = (long)lseek(it->fd, 0, SEEK_CUR);
    outcome->got_size = 0;
    outcome->messages = 0;
    if (kind == DIRECT) /* (whose reads need memory and sizes that are aligned) */
        assert_int_equal(fcntl(it->fd, F_SETFL, fcntl(it->fd, F_GETFL) & ~O_DIRECT), 0);
    if (kind <= IN_MEMORY) {
        ptrdiff_t result = pread(it->fd, outcome->got, sizeof outcome->got, 0);
        outcome->got_size = result > 0 ? (size_t)result : 0;
    } else if (has_output(kind, it)) {
        outcome->got_size =
            take_all(it, outcome->got, sizeof outcome->got, expected, &outcome->messages);
    }
}

static void look_after_in_memory(world *world, outcome *outcome, kind kind, const subject *it)
{
    static char rest[2 * SIZE];
    outcome->position = kind == DIRECTORY ? 0 : -1;
    outcome->got_size = 0;
    outcome->messages = 0;
    if (kind <= IN_MEMORY) {
        size_t left = take_in_memory(world, it->fd, rest, sizeof rest, -1);
        outcome->got_size = take_in_memory(world, it->fd, outcome->got, sizeof outcome->got, 0);
        outcome->position = (long)(outcome->got_size - left); /* (or beyond the end) */
    } else if (has_output(kind, it)) {
        turn(world);
        outcome->got_size = take_in_memory(world, it->peer, outcome->got, sizeof outcome->got, -1);
    }
}

/* ---- Limits: full file systems, one for each way ---- */

enum { UNLIMITED, BY_SIZE, BY_DISK, LIMITS, DISK = 131072 };

static char full_disks[2][40];
static fsblkcnt_t free_blocks; /* of each, while it has no file */

static fsblkcnt_t count_free_blocks(const char *disk)
{
    struct statvfs about;
    assert_int_equal(statvfs(disk, &about), 0);
    return about.f_bfree;
}

/* Mounts them for this process alone, which needs the right to. */
static bool mount_full_disks(void)
{
    if (full_disks[0][0] != '\0')
        return true;
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
        return false;
    for (int i = 0; i < 2; i++) {
        char path[] = "/tmp/bide_difference_XXXXXX";
        assert_non_null(mkdtemp(path));
        if (mount("none", path, "tmpfs", 0, "size=131072") != 0) {
            rmdir(path);
            return false;
        }
        memcpy(full_disks[i], path, sizeof path);
        free_blocks = count_free_blocks(path);
    }
    return true;
}

static void unmount_full_disks(void)
{
    for (int i = 0; i < 2; i++) {
        if (full_disks[i][0] != '\0' && umount2(full_disks[i], MNT_DETACH) == 0)
            rmdir(full_disks[i]);
        full_disks[i][0] = '\0';
    }
}

/*
 * Of two subjects. (io_uring may let go of a file a moment after the operation has ended and the file was closed: a
 * thread of the kernel and the next turn of the ring do it.)
 */
static void use_disk(world *world, int which, int limit)
{
    for (int turns = 0; limit == BY_DISK && count_free_blocks(full_disks[which]) != free_blocks;
         turns++) {
        assert_in_range(turns, 0, 20000);
        turn(world);
    }
    directory_of_files = limit == BY_DISK ? full_disks[which] : "/tmp";
}

static void limit_memory(world *world, int limit)
{
    const bide_memory_io_options options = {.disk = limit == BY_DISK ? DISK : 0};
    if (world->memory != NULL)
        bide_memory_io_change(world->memory, &options);
}

static void limit_size(struct rlimit *unlimited, int limit)
{
    getrlimit(RLIMIT_FSIZE, unlimited);
    struct rlimit limited = *unlimited;
    if (limit == BY_SIZE)
        limited.rlim_cur = LIMIT;
    setrlimit(RLIMIT_FSIZE, &limited);
}

/* ---- A cell ---- */

enum { PLAIN, BLOCKING, SHARED, MODES };

typedef struct cell {
    kind kind;
    code code;
    size_t size;
    int before, limit, mode;
} cell;

static const char *describe_cell(const cell *cell)
{
    static const char *const limits[LIMITS] = {"", ", limited by size", ", full disk"};
    static const char *const modes[MODES] = {"", ", blocking", ", shared"};
    static char text[200];
    snprintf(text, sizeof text, "%s of %s, %zu bytes, %d before%s%s", code_names[cell->code],
             kind_names[cell->kind], cell->size, cell->before, limits[cell->limit],
             modes[cell->mode]);
    return text;
}

static outcome bare, own;
static _Alignas(4096) char bare_data[SIZE], own_data[SIZE]; /* (for O_DIRECT) */

/* How much the operation has moved, as far as is known before it ends. (A thread may have its count.) */
static size_t count_moved(world *world, const cell *cell, const subject *it, const act *act)
{
    int there = 0;
    if (world->memory != NULL || !has_output(cell->kind, it))
        return count_of_act(act);
    assert_int_equal(ioctl(it->peer, FIONREAD, &there), 0);
    return (size_t)there;
}

/*
 * Turns until the operation has ended, or has done what it can without waiting: it has moved something, if the call has,
 * and does not move more.
 */
static void turn_while_it_moves(world *world, const cell *cell, const subject *it, const act *act,
                                const struct runner *runner)
{
    size_t before = 0;
    bool is_awaited = code_writes(cell->code) && bare.count != 0 && world->memory == NULL;
    for (int still = 0; still < 3 && !runner->has_ended; still++) {
        turn(world);
        size_t moved = count_moved(world, cell, it, act);
        if (moved != before || (is_awaited && moved == 0))
            still = 0;
        before = moved;
    }
}

/* The operation of a cell, on a subject whose number it has afterwards: `fd` is replaced if it was shared. */
static void do_operation(world *world, const cell *cell, subject *it, bool waits)
{
    static act act;
    struct runner runner;
    int shared = -1;
    if (cell->mode == SHARED)
        shared = fcntl(it->fd, F_DUPFD_CLOEXEC, 0); /* (the kernel does not know whose it is) */
    if (cell->mode == BLOCKING)
        set_blocking(it->fd, true);
    use_number(world, &act.descriptor, it->fd);
    begin(world, &runner, init_act(&act, cell->code, own_data, cell->size));
    if (waits) {
        turn_while_it_moves(world, cell, it, &act, &runner);
        bide_stop_request(&runner.stop);
    }
    own.status = end(world, &runner);
    own.count = end_act(&act, own.status);
    if (own.status == -ECANCELED && waits)
        own.status = -EAGAIN;
    if (cell->mode == BLOCKING && cell->kind != LISTENER)
        assert_int_equal(fcntl(it->fd, F_GETFL) & O_NONBLOCK, 0);
    if (cell->mode == BLOCKING)
        set_blocking(it->fd, false);
    if (cell->mode == SHARED) {
        assert_int_equal(bide_close(&act.descriptor), 0);
        it->fd = shared;
    } else {
        assert_int_equal(bide_descriptor_release(&act.descriptor), it->fd);
    }
}

/* True: both did the same. */
static bool compare(world *world, const cell *cell)
{
    struct rlimit unlimited;
    kind kind = cell->kind;
    bool is_own_memory = world->memory != NULL;
    if (getenv("BIDE_CELLS") != NULL)
        fprintf(stderr, "%s\n", describe_cell(cell));
    use_disk(world, 0, cell->limit);
    subject one = make(kind);
    use_disk(world, 1, cell->limit);
    subject other = make_own(world, kind);
    use_disk(world, 0, UNLIMITED);
    give_before(kind, &one, cell->before);
    if (is_own_memory)
        give_before_in_memory(world, kind, &other, cell->before);
    else
        give_before(kind, &other, cell->before);
    memcpy(bare_data, pattern, sizeof bare_data);
    memcpy(own_data, pattern, sizeof own_data);
    limit_size(&unlimited, cell->limit);
    limit_memory(world, cell->limit);
    do_bare(&bare, cell->code, &one, bare_data, cell->size);
    /* (a pipe or the buffer of a socket in memory, and a buffer that is filled in small parts) */
    bool is_smaller = (is_own_memory || cell->mode == BLOCKING) && code_writes(cell->code) &&
                      has_output(kind, &other) && bare.status == 0 && bare.count != 0;
    do_operation(world, cell, &other, bare.status == -EAGAIN || is_smaller);
    setrlimit(RLIMIT_FSIZE, &unlimited);
    limit_memory(world, UNLIMITED);
    look_after(&bare, kind, cell->code, &one);
    if (is_own_memory)
        look_after_in_memory(world, &own, kind, &other);
    else
        look_after(&own, kind, cell->code, &other);
    discard(&one);
    discard_own(world, &other);
    /* (how much a socket takes at once is the kernel's choice) */
    if (is_smaller && bare.status == 0 && own.status == -EAGAIN && own.count != 0)
        bare.status = -EAGAIN;
    bool takes_some = code_writes(cell->code) &&
                      (bare.status == -EAGAIN || cell->code == SENDMSG) && bare.count != 0 &&
                      own.count <= cell->size;
    bool same =
        bare.status == own.status && (bare.count == own.count || (takes_some && own.count != 0)) &&
        (bare.position == own.position || (is_own_memory && bare.position > (long)own.got_size)) &&
        memcmp(bare_data, own_data, sizeof own_data) == 0 &&
        (takes_some ? own.got_size >= own.count : bare.got_size == own.got_size) &&
        memcmp(bare.got, own.got, own.got_size < bare.got_size ? own.got_size : bare.got_size) == 0;
    if (kind_has_messages(kind) && !is_own_memory && !takes_some)
        same = same && bare.messages == own.messages;
    if (!same)
        printf("# %s: bare %d, %zu, position %ld, there %zu; own %d, %zu, %ld, %zu%s\n",
               describe_cell(cell), bare.status, bare.count, bare.position, bare.got_size,
               own.status, own.count, own.position, own.got_size,
               memcmp(bare_data, own_data, sizeof own_data) != 0 ? ", other bytes" : "");
    return same;
}

/* ---- The tables ---- */

static bool has_kind(const world *world, kind kind)
{
    return world->memory == NULL || is_in_memory(kind);
}

typedef struct tally {
    unsigned cells, differ;
} tally;

static void count_cell(world *world, tally *tally, const cell *cell)
{
    tally->cells++;
    tally->differ += !compare(world, cell);
}

static void compare_sizes(world *world, tally *tally, kind kind, code code, bool has_full_disks)
{
    static const size_t sizes[] = {3000, 0, 8, 4096, SIZE};
    static const int befores[] = {0, 8, 2000};
    for (size_t i = 0; i < (code_has_size(code) ? sizeof sizes / sizeof *sizes : 1); i++) {
        for (size_t j = 0; j < sizeof befores / sizeof *befores && is_cell(kind, code, sizes[i]);
             j++) {
            if (befores[j] == 2000 && sizes[i] != 8 && sizes[i] != 3000)
                continue;
            bool grows =
                kind <= IN_MEMORY && (code_writes(code) || code == TRUNCATE || code == ALLOCATE);
            for (int limit = 0; limit < (grows ? LIMITS : 1); limit++) {
                if (limit == BY_DISK &&
                    (!has_full_disks || kind == IN_MEMORY || sizes[i] < SIZE || code == TRUNCATE))
                    continue;
                if (limit == BY_SIZE && world->memory != NULL) /* it is the process's */
                    continue;
                count_cell(world, tally, &(cell){kind, code, sizes[i], befores[j], limit, PLAIN});
            }
        }
    }
}

static void operations_do_what_the_calls_do(void **state)
{
    world *world = world_of(state);
    tally tally = {0, 0};
    bool has_full_disks = mount_full_disks();
    if (!has_full_disks)
        printf("# no full disks: this process may not mount\n");
    for (kind kind = 0; kind < KINDS; kind++) {
        for (code code = 0; has_kind(world, kind) && code < CODES; code++)
            compare_sizes(world, &tally, kind, code, has_full_disks);
    }
    unmount_full_disks();
    printf("# sizes: %u cells, %u differ\n", tally.cells, tally.differ);
    assert_int_equal(tally.differ, 0);
}

static void compare_modes(world *world, tally *tally, kind kind, code code, int first)
{
    static const size_t sizes[] = {8, SIZE};
    for (size_t i = 0; i < (code_has_size(code) ? sizeof sizes / sizeof *sizes : 1); i++) {
        for (int before = 0; before <= 8 && is_cell(kind, code, sizes[i]); before += 8) {
            if (before == 8 && sizes[i] != 8)
                continue;
            for (int mode = first; mode < (first == PLAIN ? BLOCKING : MODES); mode++) {
                if (kind == CLOCK && code_writes(code) && mode == BLOCKING &&
                    world_is_by_readiness())
                    continue; /* documented: it waits */
                count_cell(world, tally, &(cell){kind, code, sizes[i], before, UNLIMITED, mode});
            }
        }
    }
}

static void the_mode_of_a_descriptor_changes_nothing(void **state)
{
    world *world = world_of_the_system(state, "its descriptors have no modes");
    tally tally = {0, 0};
    int descriptors = count_descriptors();
    for (kind kind = 0; kind < KINDS; kind++) {
        for (code code = 0; code < CODES; code++)
            compare_modes(world, &tally, kind, code, BLOCKING);
    }
    assert_in_range(count_descriptors(), descriptors,
                    descriptors + KEPT_DESCRIPTORS); /* (that of the threads, which stay) */
    printf("# modes: %u cells, %u differ\n", tally.cells, tally.differ);
    assert_int_equal(tally.differ, 0);
}

/* ---- Little memory that may be pinned ---- */

/* In a process of its own. */
static int compare_with_little(rlim_t pinned)
{
    const struct rlimit little = {pinned, pinned};
    void *state;
    tally tally = {0, 0};
    if (setrlimit(RLIMIT_MEMLOCK, &little) != 0 || setresgid(65534, 65534, 65534) != 0 ||
        setresuid(65534, 65534, 65534) != 0)
        return 2;
    world_begin(&state);
    if (((world *)state)->context == NULL)
        return 2;
    for (kind kind = 0; kind < KINDS; kind++) {
        for (code code = 0; code < CODES; code++)
            compare_modes(state, &tally, kind, code, PLAIN);
    }
    printf("# little: %u cells with %llu bytes that may be pinned, %u differ\n", tally.cells,
           (unsigned long long)pinned, tally.differ);
    fflush(NULL);
    return tally.differ == 0 ? 0 : 4;
}

static void little_memory_that_may_be_pinned_changes_nothing(void **state)
{
    static const rlim_t limits[] = {0, 8 << 20};
    bool is_skipped = true;
    if (!world_is("uring")) {
        printf("# nothing is pinned in this world\n");
        skip();
    }
    (void)world_of(state);
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        int status;
        fflush(NULL);
        pid_t child = fork();
        if (child == 0)
            _exit(compare_with_little(limits[i]));
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status));
        if (WEXITSTATUS(status) == 2) /* it cannot become another user, or has no ring there */
            continue;
        assert_int_equal(WEXITSTATUS(status), 0);
        is_skipped = false;
    }
    if (is_skipped)
        skip();
}

/* ---- Operations that open a descriptor, with none left ---- */

typedef enum opening {
    OPEN,
    OPEN_AT,
    OPEN_TEMPORARY,
    LISTEN,
    BIND,
    PAIR,
    CONNECT,
    CONNECT_DATAGRAMS,
    ACCEPT_ONE,
    OPENINGS
} opening;

typedef struct opener {
    bide_file_operation file;
    bide_descriptor opened, other, listener, client;
    bide_address address;
    bide_socket_options options;
    bide_path_root root;
} opener;

static bide_awaiter *init_opening(opener *it, opening which)
{
    switch (which) {
    case OPEN:
        return bide_open(&it->file, &it->opened, "/dev/null", O_RDONLY, 0);
    case OPEN_AT:
        return bide_open_at(&it->file, &it->opened, &it->root, "/dev/null", O_RDONLY, 0);
    case OPEN_TEMPORARY:
        return bide_open_temporary(&it->file, &it->opened, &it->root, "/tmp", 0, 0600);
    case LISTEN:
        return bide_listen(&it->file.operation, &it->opened, &it->address, 1);
    case BIND:
        return bide_bind(&it->file.operation, &it->opened, &it->address, 0);
    case PAIR:
        return bide_socket_pair(&it->file.operation, &it->opened, &it->other);
    case CONNECT:
        return bide_connect(&it->file.operation, &it->opened, &it->address);
    case CONNECT_DATAGRAMS:
        return bide_connect_using(&it->file.operation, &it->opened, &it->address, &it->options);
    case ACCEPT_ONE:
        return bide_accept(&it->file.operation, &it->listener, &it->opened, NULL);
    case OPENINGS:
        break;
    }
    return NULL;
}

static void an_operation_without_a_descriptor_fails_and_may_be_tried_again(void **state)
{
    world *world = world_of(state);
    static opener it;
    bide_address any;
    int descriptors = count_descriptors();
    unsigned cells = 0;
    assert_int_equal(bide_address_parse(&any, "127.0.0.1:0"), 0);
    for (opening which = 0; which < OPENINGS; which++) {
        it = (opener){.options = {.type = SOCK_DGRAM}, .root = {.directory = NULL}};
        it.address = any;
        if (which == CONNECT_DATAGRAMS && world->memory != NULL)
            continue;
        assert_int_equal(world_wait(world, bide_listen(&it.file.operation, &it.listener, &any, 1)),
                         0);
        if (which == CONNECT || which == ACCEPT_ONE)
            assert_int_equal(bide_local_address(&it.listener, &it.address), 0);
        if (which == CONNECT_DATAGRAMS) /* (a datagram socket needs a port to connect to) */
            assert_int_equal(bide_address_parse(&it.address, "127.0.0.1:9"), 0);
        if (which == ACCEPT_ONE)
            world_connect(world, &it.client, &it.address);
        for (int has_one = 0; has_one < 2; has_one++, cells++) {
            world_lack_descriptors(world, has_one == 0);
            int status = world_wait(world, init_opening(&it, which));
            world_lack_descriptors(world, false);
            assert_int_equal(status, has_one == 0 ? -EMFILE : 0);
            assert_true(bide_descriptor_is_open(&it.opened) == (has_one != 0));
        }
        bide_close(&it.opened);
        bide_close(&it.other);
        bide_close(&it.listener);
        bide_close(&it.client);
    }
    assert_in_range(count_descriptors(), descriptors,
                    descriptors + KEPT_DESCRIPTORS); /* (that of the threads, which stay) */
    printf("# lacks: %u cells\n", cells);
}

/* ---- Ends ---- */

typedef enum way { BEFORE, AFTER, DURING, DURING_OUTSIDE, LATE, DESTROYED, CLOSED, ENDS } way;

static const char *const way_names[ENDS] = {
    "stopped before", "stopped after", "stopped", "stopped from outside",
    "late",           "destroyed",     "closed"};

/* As much as it takes now. */
static size_t fill(int fd)
{
    size_t filled = 0;
    ptrdiff_t count;
    for (size_t part = 4096; part != 0; part /= 8) {
        while ((count = write(fd, pattern, part)) > 0)
            filled += (size_t)count;
    }
    return filled;
}

static size_t fill_own(world *world, int fd)
{
    size_t filled = 0, moved = SIZE;
    if (world->memory == NULL)
        return fill(fd);
    for (; moved == SIZE; filled += moved)
        put_in_memory(world, fd, pattern, SIZE, &moved);
    return filled;
}

static bool would_wait(kind kind, code code, size_t size, bool is_full)
{
    subject it = make(kind);
    if (is_full && it.peer >= 0)
        fill(it.fd);
    do_bare(&bare, code, &it, bare_data, size);
    discard(&it);
    return bare.status == -EAGAIN;
}

/* Returns how much is there at the other end, which is `expected` bytes at least. */
static size_t take_all_own(world *world, const subject *it, size_t expected)
{
    static char text[SIZE];
    size_t sum = 0, count;
    unsigned reads;
    turn(world);
    do {
        size_t left = expected > sum ? expected - sum : 0;
        count = world->memory != NULL ? take_in_memory(world, it->peer, text, sizeof text, -1)
                                      : take_all(it, text, sizeof text, left, &reads);
        sum += count;
    } while (count != 0);
    return sum;
}

/* What comes after an operation that was ended comes to the next one. */
static void check_that_nothing_is_lost(world *world, kind kind, subject *it)
{
    char text[8];
    if (world->memory != NULL) {
        give_before_in_memory(world, kind, it, 8);
        assert_int_equal(take_in_memory(world, it->fd, text, sizeof text, -1), 8);
    } else {
        give_before(kind, it, 8);
        assert_int_equal(read(it->fd, text, sizeof text), 8);
    }
    assert_memory_equal(text, pattern + 100, 8);
}

/*
 * A cell: an operation is ended. What its count says has been moved, and nothing else; the descriptor does what it did
 * before.
 */
static void end_one(world *world, kind kind, code code, size_t size, bool is_full, way way)
{
    static const int how[ENDS] = {[DURING] = STOP,
                                  [DURING_OUTSIDE] = STOP_OUTSIDE,
                                  [LATE] = TIME_OUT,
                                  [DESTROYED] = DESTROY,
                                  [CLOSED] = CLOSE};
    static act act;
    struct runner runner;
    int status = -ECANCELED;
    subject it = make_own(world, kind);
    size_t filled = is_full && has_output(kind, &it) ? fill_own(world, it.fd) : 0;
    use_number(world, &act.descriptor, it.fd);
    bide_awaiter *awaiter = init_act(&act, code, own_data, size);
    if (way == BEFORE) {
        begin_stopped(world, &runner, awaiter);
        assert_int_equal(end(world, &runner), -ECANCELED);
        assert_int_equal(count_of_act(&act), 0);
    } else if (way == AFTER) {
        begin(world, &runner, awaiter);
        status = end(world, &runner);
        assert_int_equal(status, bare.status);
        stop(&runner);
    } else {
        begin_by(world, &runner, awaiter, how[way]);
        if (way != LATE)
            turn(world);
        assert_false(runner.has_ended && way != LATE);
        end_by(world, &runner, &act.descriptor, how[way]);
    }
    size_t count = count_of_act(&act);
    end_act(&act, status);
    if (code_writes(code) && has_output(kind, &it))
        assert_int_equal(take_all_own(world, &it, filled + count), filled + count);
    if (way == CLOSED) {
        assert_true(world->memory != NULL || fcntl(it.fd, F_GETFD) == -1);
        it.fd = -1;
    } else {
        assert_int_equal(bide_descriptor_release(&act.descriptor), it.fd);
    }
    if (way != CLOSED && way > AFTER && !code_writes(code) && code != POLL_OUTPUT &&
        has_input(kind, &it)) {
        assert_int_equal(count, 0);
        check_that_nothing_is_lost(world, kind, &it);
    }
    discard_own(world, &it);
}

/* How much these have room for changes by itself. */
static bool room_changes(kind kind, code code)
{
    return (kind == TCP || kind == TERMINAL || kind == MASTER) &&
           (code_writes(code) || code == POLL_OUTPUT);
}

static unsigned end_in_each_way(world *world, kind kind, code code, size_t size, bool is_full)
{
    unsigned cells = 0;
    bool waits = would_wait(kind, code, size, is_full);
    for (way way = 0; way < (waits && !room_changes(kind, code) ? ENDS : DURING); way++) {
        bool is_smaller = world->memory != NULL && code_writes(code) && size == SIZE;
        if (way == AFTER && (waits || is_smaller || (is_full && room_changes(kind, code))))
            continue;
        if (getenv("BIDE_CELLS") != NULL)
            fprintf(stderr, "%s of %s, %zu bytes, full %d, %s\n", code_names[code],
                    kind_names[kind], size, is_full, way_names[way]);
        end_one(world, kind, code, size, is_full, way);
        cells++;
    }
    return cells;
}

static void operations_end_as_they_are_ended(void **state)
{
    static const size_t sizes[] = {8, SIZE};
    world *world = world_of(state);
    unsigned cells = 0;
    int descriptors = count_descriptors();
    for (kind kind = PIPE_IN; kind < KINDS; kind++) {
        for (code code = 0; has_kind(world, kind) && code < CODES; code++) {
            for (int i = 0; i < (code_has_size(code) ? 2 : 1); i++) {
                for (int is_full = 0; is_full < (code_writes(code) || code == POLL_OUTPUT ? 2 : 1);
                     is_full++) {
                    bool is_never_full = kind == UDP || kind == BOUND_UDP;
                    if (is_cell(kind, code, sizes[i]) && !(is_full && is_never_full))
                        cells += end_in_each_way(world, kind, code, sizes[i], is_full != 0);
                }
            }
        }
    }
    assert_in_range(count_descriptors(), descriptors,
                    descriptors + KEPT_DESCRIPTORS); /* (that of the threads, which stay) */
    printf("# ends: %u cells\n", cells);
}

int main(void)
{
    fill_pattern();
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    const struct CMUnitTest tests[] = {
        world_test(little_memory_that_may_be_pinned_changes_nothing),
        world_test(operations_do_what_the_calls_do),
        world_test(the_mode_of_a_descriptor_changes_nothing),
        world_test(operations_end_as_they_are_ended),
        world_test(an_operation_without_a_descriptor_fails_and_may_be_tried_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * A loop's operations by io_uring. One ring a loop, which one thread enters.
 *
 *     an operation   IN_RING from when its entry is made to when its completion is reaped
 *                    CANCEL_SENT from when a cancel of it is made to when that one's is reaped
 *                    KNOWN between the two: it has completed, and its cancel has not
 *                    POLLING: what is in the ring is a wait until it may be tried again
 *                    SENT: without a copy, and the kernel needs the bytes yet
 *
 * 1. An operation ends when neither it nor a cancel of it is in the ring. Otherwise a late cancel
 *    would hit the next operation at that address, and the kernel would write to memory that has
 *    another use.
 * 2. What an operation that is cancelled has done before counts: if the kernel says that it moved
 *    bytes, or got a connection, it has.
 * 3. A sleep waits for completions. Posts of other threads are one of them: the ring itself waits on
 *    the word of the run loop, with a futex entry that stays in the ring until it is woken. It
 *    compares the word when it is made, after the loop has parked, as a thread that sleeps on it
 *    would; and posters wake it like one. While the loop runs nobody wakes, since the word is not
 *    PARKED, so the entry is good for the next sleep. Kernels without that have the descriptor of
 *    the run loop polled by the ring.
 *    While the process has one thread nobody else posts, and nothing is armed: Linux 6.16 and later
 *    give a process a futex table of its own with its second thread, and forget what a ring waits
 *    for since before. Where the library cannot know of the second thread the descriptor is polled.
 * 4. The futex entry is cancelled, and reaped, before the word may go: a waiter that the kernel
 *    still has there could swallow a wake that is meant for the next word at that address.
 * 5. Completions are deferred until the thread enters the ring for them, and the kernel sets a flag
 *    when there are some. So to look costs a load while there are none.
 * 6. Of a line only the first is in the ring. The kernel would serve several in any order, and mix
 *    what they send.
 * 7. Several datagrams are received, or sent, by one call, which the ring waits for if need be. As
 *    entries each would cost one, and a completion, and they might be mixed up: 6. A splice to a
 *    socket, or a sendfile, is such a call too: as an entry it would go to a thread of the kernel's.
 * 8. A send without a copy completes twice: with its count, and when its bytes are needed no more. It
 *    is IN_RING until the second, so nothing ends before. The first says whether one follows.
 *    The second comes with the other end's acknowledgement, which may never come. Where the thread
 *    has to wait for it, because the coroutine is destroyed or the socket closed, the connection is
 *    reset: then the kernel needs nothing of it any more. To end the operation at SENT instead would
 *    have the kernel send whatever is written to that memory next. To wait for a while before would
 *    hold up the loop, and what comes of it would depend on the network's mood.
 * 9. A receive is tried before it is polled for, also after one that took less than it asked for. To
 *    poll first saves a try where nothing has come. Where there are many connections most have
 *    something by the time of the next entry, and with the poll come 20 at a time, not all.
 */
#define _GNU_SOURCE
#include "acceptor.h"
#include "buffer_pool.h"
#include "loop.h"

#include <errno.h>
#include <stdlib.h>

#if BIDE_HAS_LIBURING

#include "bide/address.h"

#include "../coroutine/observe.h"
#include "../system/single_threaded.h"
#include "../system/descriptors.h"

#include <fcntl.h>
#include <liburing.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/* What the headers of Debian 12 do not have. */
enum {
    OP_FUTEX_WAIT = 51,
    OP_FTRUNCATE = 55,
    REPORTS_USAGE = 1 << 3, /* of sends without a copy */
    FUTEX_OF_32 = 2,
    FUTEX_OF_PROCESS = 128,
    OPCODES = 64,
};

enum {
    IN_RING = IO_OWN,
    CANCEL_SENT = IO_OWN << 1,
    CANCELLED = IO_OWN << 2,
    CLOSING = IO_OWN << 3,
    /* IO_OWN << 4: loop.c */
    KNOWN = IO_OWN << 5,
    POLLING = IO_OWN << 6,
    FORGOTTEN = IO_OWN << 7,
    SENT = IO_OWN << 8,
};

/* What the end of a send without a copy says. */
#define USAGE_COPIED (1u << 31)

/* In the low bits of an entry's data. */
enum { OF_OPERATION = 0, OF_CANCEL = 1, OF_LOOP = 2, KINDS = 3 };

struct loop_uring {
    struct io_uring ring;
    bool is_enabled;
    bool is_armed;      /* an entry in the ring tells of posts */
    bool has_futex;     /* it waits on the word; otherwise it polls the descriptor */
    uint64_t supported; /* a bit for each opcode below OPCODES */
    uint16_t next_group;
    bool tells_no_usage; /* of sends without a copy */
    bool has_buffers;    /* it may take those of a pool by itself */
};

static const uint8_t opcodes[BIDE_IO_CODES] = {
    [BIDE_IO_RECV] = IORING_OP_RECV,
    [BIDE_IO_SEND] = IORING_OP_SEND,
    [BIDE_IO_RECVMSG] = IORING_OP_RECVMSG,
    [BIDE_IO_SENDMSG] = IORING_OP_SENDMSG,
    [BIDE_IO_ACCEPT] = IORING_OP_ACCEPT,
    [BIDE_IO_CONNECT] = IORING_OP_CONNECT,
    [BIDE_IO_READ] = IORING_OP_READ,
    [BIDE_IO_WRITE] = IORING_OP_WRITE,
    [BIDE_IO_READ_VECTOR] = IORING_OP_READV,
    [BIDE_IO_WRITE_VECTOR] = IORING_OP_WRITEV,
    [BIDE_IO_POLL] = IORING_OP_POLL_ADD,
    [BIDE_IO_RECV_PROVIDED] = IORING_OP_RECV,
    [BIDE_IO_RECV_BATCH] = IORING_OP_POLL_ADD,
    [BIDE_IO_SEND_BATCH] = IORING_OP_POLL_ADD,
    [BIDE_IO_SEND_ZERO_COPY] = IORING_OP_SEND_ZC,
    [BIDE_IO_SPLICE_TO_SOCKET] = IORING_OP_POLL_ADD,
    [BIDE_IO_SEND_FILE] = IORING_OP_POLL_ADD,
    [BIDE_IO_OPEN] = IORING_OP_OPENAT,
    [BIDE_IO_SYNC] = IORING_OP_FSYNC,
    [BIDE_IO_ALLOCATE] = IORING_OP_FALLOCATE,
    [BIDE_IO_TRUNCATE] = OP_FTRUNCATE,
    [BIDE_IO_STAT] = OPCODES, /* what the ring fills in is another struct */
    [BIDE_IO_RENAME] = IORING_OP_RENAMEAT,
    [BIDE_IO_UNLINK] = IORING_OP_UNLINKAT,
    [BIDE_IO_MAKE_DIRECTORY] = IORING_OP_MKDIRAT,
    [BIDE_IO_SPLICE_FROM_FILE] = IORING_OP_SPLICE,
    [BIDE_IO_READ_DIRECTORY] = OPCODES, /* the ring has none for these */
    [BIDE_IO_MAP] = OPCODES,
    [BIDE_IO_PREFAULT] = OPCODES,
};

static bool has_opcode(const struct loop_uring *uring, unsigned opcode)
{
    return opcode < OPCODES && (uring->supported >> opcode & 1) != 0;
}

/* ---- Entries ---- */

/* A new entry; makes room if there is none. */
static struct io_uring_sqe *new_entry(struct loop_uring *uring)
{
    struct io_uring_sqe *entry = io_uring_get_sqe(&uring->ring);
    while (entry == NULL) {
        io_uring_submit(&uring->ring);
        entry = io_uring_get_sqe(&uring->ring);
    }
    return entry;
}

static void set_data(struct io_uring_sqe *entry, const void *data, unsigned kind)
{
    entry->user_data = (uintptr_t)data | kind;
}

static void prepare_accept(struct io_uring_sqe *entry, const bide_io_operation *operation)
{
    bide_address *peer = operation->arguments.accept.peer;
    if (peer != NULL)
        peer->length = sizeof peer->any;
    io_uring_prep_accept(entry, operation->descriptor->fd, peer != NULL ? &peer->any.generic : NULL,
                         peer != NULL ? &peer->length : NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
}

static void prepare_write_vectors(struct io_uring_sqe *entry, const bide_io_operation *operation)
{
    int fd = operation->descriptor->fd;
    int64_t offset = operation->arguments.vector.offset;
    io_vectors rest = bide_io_rest_of_vectors_(operation);
    if (offset >= 0)
        offset += (int64_t)operation->count;
    if (rest.count == 0)
        io_uring_prep_write(entry, fd, rest.data, (unsigned)rest.size, (uint64_t)offset);
    else
        io_uring_prep_writev(entry, fd, rest.vectors, (unsigned)rest.count, (uint64_t)offset);
}

/* The size of a call: the ring's is of 32 bits. */
static unsigned size_of(size_t size)
{
    return size < INT32_MAX ? (unsigned)size : INT32_MAX;
}

static void prepare_bytes(struct io_uring_sqe *entry, const bide_io_operation *operation)
{
    int fd = operation->descriptor->fd;
    int64_t offset = operation->arguments.bytes.offset;
    size_t size;
    void *rest = io_rest(operation, &size);
    switch (operation->code) {
    case BIDE_IO_RECV:
        io_uring_prep_recv(entry, fd, operation->arguments.bytes.data,
                           size_of(operation->arguments.bytes.size), operation->flags);
        break;
    case BIDE_IO_SEND_ZERO_COPY:
        io_uring_prep_send_zc(entry, fd, rest, size_of(size), MSG_NOSIGNAL | MSG_WAITALL,
                              loop_of(operation->io)->uring->tells_no_usage ? 0 : REPORTS_USAGE);
        break;
    case BIDE_IO_SEND:
        io_uring_prep_send(entry, fd, rest, size_of(size),
                           operation->flags | MSG_NOSIGNAL |
                               (operation->is_whole ? MSG_WAITALL : 0));
        break;
    case BIDE_IO_READ:
        io_uring_prep_read(entry, fd, operation->arguments.bytes.data,
                           size_of(operation->arguments.bytes.size), (uint64_t)offset);
        break;
    default:
        io_uring_prep_write(entry, fd, rest, size_of(size),
                            (uint64_t)(offset >= 0 ? offset + (int64_t)operation->count : offset));
        break;
    }
}

static void prepare_file(struct io_uring_sqe *entry, const bide_io_operation *operation)
{
    const char *path = operation->arguments.path.path;
    switch (operation->code) {
    case BIDE_IO_OPEN:
        io_uring_prep_openat(entry, AT_FDCWD, operation->arguments.open.path,
                             operation->arguments.open.flags | O_CLOEXEC,
                             (mode_t)operation->arguments.open.mode);
        break;
    case BIDE_IO_SYNC:
        io_uring_prep_fsync(entry, operation->descriptor->fd,
                            operation->flags != 0 ? IORING_FSYNC_DATASYNC : 0);
        break;
    case BIDE_IO_ALLOCATE:
        io_uring_prep_fallocate(entry, operation->descriptor->fd, operation->flags,
                                operation->arguments.range.offset, operation->arguments.range.size);
        break;
    case BIDE_IO_TRUNCATE:
        io_uring_prep_rw(OP_FTRUNCATE, entry, operation->descriptor->fd, NULL, 0,
                         (uint64_t)operation->arguments.range.size);
        break;
    case BIDE_IO_SPLICE_FROM_FILE:
        io_uring_prep_splice(entry, operation->descriptor->fd, operation->arguments.splice.offset,
                             operation->arguments.splice.pipe, -1,
                             (unsigned)operation->arguments.splice.size, 0);
        break;
    case BIDE_IO_RENAME:
        io_uring_prep_renameat(entry, AT_FDCWD, path, AT_FDCWD, operation->arguments.path.other, 0);
        break;
    case BIDE_IO_UNLINK:
        io_uring_prep_unlinkat(entry, AT_FDCWD, path, operation->flags);
        break;
    default:
        io_uring_prep_mkdirat(entry, AT_FDCWD, path, (mode_t)operation->arguments.path.mode);
        break;
    }
}

/* ---- Connections as a stream: acceptor.c ---- */

static void put(struct loop_uring *uring, bide_io_operation *operation);
static void put_poll(struct loop_uring *uring, bide_io_operation *operation);
static void put_cancel(struct loop_uring *uring, bide_io_operation *operation);
static void end(bide_loop *loop, bide_io_operation *operation, bide_io_outcome how);

/* What an accept takes from; NULL: it is a plain one, or no accept. */
static bide_acceptor *acceptor_of(const bide_io_operation *operation)
{
    return operation->code == BIDE_IO_ACCEPT ? operation->arguments.accept.acceptor : NULL;
}

/* The first of those that wait for its connections, if no other kind of accept stands before it. */
static bide_io_operation *waiter_of(const bide_acceptor *acceptor)
{
    bide_io_operation *first = acceptor->listener->lines[BIDE_IO_INPUT].first;
    return first != NULL && acceptor_of(first) == acceptor && (first->state & CLOSING) == 0 ? first
                                                                                            : NULL;
}

/* Has the kernel accept, unless it does, or has not yet said that it has stopped. */
static void put_stream(bide_loop *loop, bide_acceptor *acceptor)
{
    bide_io_operation *stream = &acceptor->stream;
    if ((stream->state & (IN_RING | CANCEL_SENT)) != 0)
        return;
    struct io_uring_sqe *entry = new_entry(loop->uring);
    io_uring_prep_multishot_accept(entry, acceptor->listener->fd, NULL, NULL,
                                   SOCK_CLOEXEC | SOCK_NONBLOCK);
    set_data(entry, stream, OF_OPERATION);
    stream->io = &loop->io;
    stream->status = 0;
    bide_io_enqueue_(&loop->io, stream);
    stream->state |= IN_RING;
}

/* Gives what is kept to those that wait. If there is not enough, the kernel accepts more. */
static void serve(bide_loop *loop, bide_acceptor *acceptor)
{
    bide_io_operation *waiter;
    int fd;
    if (acceptor->is_served) /* an end in the loop below has put the next waiter in front */
        return;
    acceptor->is_served = true;
    while ((waiter = waiter_of(acceptor)) != NULL && (fd = bide_io_acceptor_take_(acceptor)) >= 0) {
        bide_io_acceptor_give_(waiter, fd);
        end(loop, waiter, BIDE_IO_DONE);
    }
    acceptor->is_served = false;
    if (waiter != NULL)
        put_stream(loop, acceptor);
}

/* The kernel has accepted one. */
static void connected(bide_loop *loop, bide_io_operation *stream, int fd)
{
    bide_acceptor *acceptor = bide_container_of(stream, bide_acceptor, stream);
    bide_io_acceptor_keep_(acceptor, fd);
    serve(loop, acceptor);
    if (io_acceptor_is_full(acceptor))
        put_cancel(loop->uring, stream);
}

/* It accepts no more. */
static void stream_ended(bide_loop *loop, bide_io_operation *stream, int result)
{
    bide_acceptor *acceptor = bide_container_of(stream, bide_acceptor, stream);
    bool again;
    stream->status = -ECANCELED;
    if ((stream->state & FORGOTTEN) != 0)
        return;
    bide_io_remove(&loop->io, stream);
    stream->state = 0;
    bide_io_operation *waiter = waiter_of(acceptor);
    if (waiter != NULL && result < 0 && result != -ECANCELED &&
        bide_io_take_result(waiter, result, &again))
        end(loop, waiter, BIDE_IO_DONE);
    serve(loop, acceptor);
}

/* ---- Buffers that are lent: buffer_pool.c ---- */

static void try_now(bide_loop *loop, bide_io_operation *operation);

static void retry(bide_io *io, bide_io_operation *operation)
{
    try_now(loop_of(io), operation);
}

enum { FIRST_WINDOW = 32 };

static unsigned entries_of(const bide_buffer_pool *pool)
{
    unsigned entries = 1;
    while (entries < pool->count)
        entries *= 2;
    return entries;
}

static size_t bytes_of(const bide_buffer_pool *pool)
{
    return entries_of(pool) * sizeof(struct io_uring_buf);
}

/* Hands what is free to the kernel, up to the window: buffer_pool.c, 2. */
static void provide(bide_buffer_pool *pool)
{
    int mask = io_uring_buf_ring_mask(entries_of(pool));
    void *data;
    int count = 0;
    while (pool->ring != NULL && pool->provided + (unsigned)count < pool->window &&
           (data = bide_io_pool_take_(pool, NULL)) != NULL) {
        unsigned number = (unsigned)((size_t)((char *)data - pool->memory) / pool->size);
        io_uring_buf_ring_add(pool->ring, data, (unsigned)pool->size, (unsigned short)number, mask,
                              count++);
    }
    if (count != 0)
        io_uring_buf_ring_advance(pool->ring, count);
    pool->provided += (unsigned)count;
}

static void leave(bide_buffer_pool *pool, bool is_own)
{
    if (pool->ring == NULL)
        return;
    if (is_own)
        io_uring_unregister_buf_ring(&loop_of(pool->io)->uring->ring, pool->group);
    munmap(pool->ring, bytes_of(pool));
    pool->ring = NULL;
}

static const struct bide_buffer_hooks_ buffer_hooks = {retry, provide, leave};

/* The pool is used here first. If the kernel has no use for it, receives are made after a poll. */
static void enter_pool(bide_loop *loop, bide_buffer_pool *pool)
{
    struct loop_uring *uring = loop->uring;
    if (!bide_io_pool_enter_(pool, &loop->io, &buffer_hooks) || !uring->has_buffers)
        return;
    void *ring =
        mmap(NULL, bytes_of(pool), PROT_READ | PROT_WRITE, MAP_ANONYMOUS | MAP_PRIVATE, -1, 0);
    if (ring == MAP_FAILED)
        return;
    struct io_uring_buf_reg wanted = {.ring_addr = (uintptr_t)ring,
                                      .ring_entries = entries_of(pool)};
    int error;
    unsigned tries = 0;
    do {
        wanted.bgid = uring->next_group++;
        error = io_uring_register_buf_ring(&uring->ring, &wanted, 0);
    } while (error == -EEXIST && ++tries <= UINT16_MAX);
    if (error != 0) {
        munmap(ring, bytes_of(pool));
        return;
    }
    madvise(ring, bytes_of(pool), MADV_DONTFORK);
    pool->ring = ring;
    pool->group = wanted.bgid;
    pool->window = FIRST_WINDOW;
    provide(pool);
}

/* The kernel has taken one. */
static void take_buffer(bide_io_operation *operation, int result, unsigned flags)
{
    bide_buffer_pool *pool = operation->arguments.lent.pool;
    char *data = pool->memory + (flags >> IORING_CQE_BUFFER_SHIFT) * pool->size;
    pool->provided--;
    pool->lent++;
    if (pool->provided < pool->window / 2)
        provide(pool);
    if (result > 0) {
        operation->arguments.lent.data = data;
        io_written(data, (size_t)result);
    } else {
        bide_buffer_release(pool, data);
    }
}

/* Its data have come, and the kernel had no buffer for them: buffer_pool.c, 1. */
static void found_no_buffer(bide_loop *loop, bide_io_operation *operation)
{
    bide_buffer_pool *pool = operation->arguments.lent.pool;
    if (pool->provided == 0 && io_pool_has(pool)) { /* more came at once than the window has */
        if (pool->window < pool->count)
            pool->window *= 2;
        provide(pool);
    }
    if (pool->provided != 0)
        put(loop->uring, operation); /* one was given back meanwhile */
    else
        bide_io_pool_wait_(operation);
}

/* ---- What is done when it does not have to wait ---- */

/* Is it a call that is made at once, and waited for if need be? 7 */
static bool is_tried_first(const bide_io_operation *operation)
{
    return operation->code == BIDE_IO_RECV_BATCH || operation->code == BIDE_IO_SEND_BATCH ||
           operation->code == BIDE_IO_SPLICE_TO_SOCKET || operation->code == BIDE_IO_SEND_FILE;
}

/* Does the ring wait only, so that the call is made here? */
static bool is_called_here(const bide_io_operation *operation)
{
    if (is_tried_first(operation))
        return true;
    return operation->code == BIDE_IO_RECV_PROVIDED && operation->arguments.lent.pool->ring == NULL;
}

/* Makes its call, or calls. True: it is done. False: it has to wait. */
static bool is_done_by_calls(bide_io_operation *operation)
{
    bool again;
    while (!bide_io_take_result(operation, bide_io_call(operation), &again)) {
        if (again)
            return false;
    }
    return true;
}

static void try_now(bide_loop *loop, bide_io_operation *operation)
{
    if (is_done_by_calls(operation))
        end(loop, operation, BIDE_IO_DONE);
    else if (!io_waits_for_buffer(operation))
        put(loop->uring, operation);
}

/* ---- Sends without a copy: 8 ---- */

/* Cannot it be sent so? Then it is copied. */
static bool is_to_be_copied(struct loop_uring *uring, bide_io_operation *operation, int result)
{
    if (result == -EINVAL && !uring->tells_no_usage) {
        uring->tells_no_usage = true; /* a kernel that does not say whether it copied */
        return true;
    }
    if (result != -EOPNOTSUPP && result != -EINVAL)
        return false;
    operation->code = BIDE_IO_SEND;
    operation->arguments.bytes.was_copied = true;
    return true;
}

/* What the kernel tells of it: how many bytes, and then that it needs them no more. False: not yet. */
static bool is_released(bide_io_operation *operation, int *result, unsigned flags)
{
    if ((flags & IORING_CQE_F_NOTIF) != 0) {
        operation->arguments.bytes.was_copied |= ((unsigned)*result & USAGE_COPIED) != 0;
        *result = operation->status;
        operation->status = 0;
        operation->state &= (uint16_t)~SENT;
    } else if ((flags & IORING_CQE_F_MORE) != 0) {
        operation->status = *result;
        operation->state |= SENT;
        return false;
    }
    return true;
}

/*
 * Has the kernel need its bytes no more, now: 8. (Those of a datagram it needs only until it has sent
 * it.)
 */
static void abort_sent(const bide_io_operation *operation)
{
    const struct sockaddr nobody = {.sa_family = AF_UNSPEC};
    int type = 0;
    socklen_t size = sizeof type;
    if ((operation->state & SENT) == 0)
        return;
    int fd = operation->descriptor->fd;
    getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size);
    if (type == SOCK_STREAM && connect(fd, &nobody, sizeof nobody) != 0)
        shutdown(fd, SHUT_RDWR);
}

/* ---- Any ---- */

/* Makes the operation's entry, for what is left of it. */
static void put(struct loop_uring *uring, bide_io_operation *operation)
{
    if (acceptor_of(operation) != NULL) {
        serve(loop_of(operation->io), acceptor_of(operation));
        return;
    }
    if (is_called_here(operation)) {
        put_poll(uring, operation);
        return;
    }
    struct io_uring_sqe *entry = new_entry(uring);
    int fd = operation->descriptor != NULL ? operation->descriptor->fd : -1;
    switch (operation->code) {
    case BIDE_IO_RECV:
    case BIDE_IO_SEND:
    case BIDE_IO_SEND_ZERO_COPY:
    case BIDE_IO_READ:
    case BIDE_IO_WRITE:
        prepare_bytes(entry, operation);
        break;
    case BIDE_IO_RECVMSG:
        io_uring_prep_recvmsg(entry, fd, operation->arguments.message,
                              (unsigned)operation->flags | MSG_CMSG_CLOEXEC);
        break;
    case BIDE_IO_SENDMSG:
        io_uring_prep_sendmsg(entry, fd, operation->arguments.message,
                              (unsigned)operation->flags | MSG_NOSIGNAL);
        break;
    case BIDE_IO_ACCEPT:
        prepare_accept(entry, operation);
        break;
    case BIDE_IO_CONNECT:
        io_uring_prep_connect(entry, fd, &operation->arguments.address->any.generic,
                              operation->arguments.address->length);
        break;
    case BIDE_IO_READ_VECTOR:
        io_uring_prep_readv(entry, fd, operation->arguments.vector.vectors,
                            (unsigned)operation->arguments.vector.count,
                            (uint64_t)operation->arguments.vector.offset);
        break;
    case BIDE_IO_WRITE_VECTOR:
        prepare_write_vectors(entry, operation);
        break;
    case BIDE_IO_POLL:
        io_uring_prep_poll_add(entry, fd, operation->arguments.poll.wanted);
        break;
    case BIDE_IO_RECV_PROVIDED: /* (a buffer is taken when the poll has found something) */
        io_uring_prep_recv(entry, fd, NULL, 0, 0);
        entry->ioprio |= IORING_RECVSEND_POLL_FIRST;
        entry->flags |= IOSQE_BUFFER_SELECT;
        entry->buf_group = operation->arguments.lent.pool->group;
        break;
    default:
        prepare_file(entry, operation);
        break;
    }
    set_data(entry, operation, OF_OPERATION);
    operation->state |= IN_RING;
}

/* Waits until it may be tried again. */
static void put_poll(struct loop_uring *uring, bide_io_operation *operation)
{
    struct io_uring_sqe *entry = new_entry(uring);
    io_uring_prep_poll_add(entry, operation->descriptor->fd,
                           io_direction(operation) == BIDE_IO_INPUT ? POLLIN : POLLOUT);
    set_data(entry, operation, OF_OPERATION);
    operation->state |= IN_RING | POLLING;
}

static void put_cancel(struct loop_uring *uring, bide_io_operation *operation)
{
    if ((operation->state & (IN_RING | CANCEL_SENT)) != IN_RING)
        return;
    struct io_uring_sqe *entry = new_entry(uring);
    io_uring_prep_cancel64(entry, (uintptr_t)operation | OF_OPERATION, 0);
    set_data(entry, operation, OF_CANCEL);
    operation->state |= CANCEL_SENT;
}

/* ---- Completions ---- */

/* The kernel has written what it returned. */
static void note_written(const bide_io_operation *operation, ptrdiff_t result)
{
    size_t left = result > 0 ? (size_t)result : 0;
    if (operation->code == BIDE_IO_RECV || operation->code == BIDE_IO_READ) {
        io_written(operation->arguments.bytes.data, left);
    } else if (operation->code == BIDE_IO_READ_VECTOR ||
               operation->code == BIDE_IO_RECVMSG) {
        bool is_message = operation->code == BIDE_IO_RECVMSG;
        const struct msghdr *message = operation->arguments.message;
        const struct iovec *vector =
            is_message ? message->msg_iov : operation->arguments.vector.vectors;
        for (; left != 0; vector++) {
            size_t size = left < vector->iov_len ? left : vector->iov_len;
            io_written(vector->iov_base, size);
            left -= size;
        }
        if (is_message && result >= 0) {
            io_written(message->msg_name, message->msg_namelen);
            io_written(message->msg_control, message->msg_controllen);
        }
    } else if (operation->code == BIDE_IO_ACCEPT && operation->arguments.accept.peer != NULL) {
        io_written(&operation->arguments.accept.peer->any,
                   sizeof operation->arguments.accept.peer->any);
    }
}

/* Takes one out of its line, whose next goes into the ring. */
static void take_out(bide_loop *loop, bide_io_operation *operation)
{
    bide_descriptor *descriptor = operation->descriptor;
    int direction = io_direction(operation);
    bide_io_remove(&loop->io, operation);
    if (descriptor == NULL || direction == BIDE_IO_FREE)
        return;
    bide_io_operation *next = descriptor->lines[direction].first;
    if (next != NULL && (next->state & (IN_RING | CANCEL_SENT | CLOSING)) == 0)
        put(loop->uring, next);
}

static void end(bide_loop *loop, bide_io_operation *operation, bide_io_outcome how)
{
    take_out(loop, operation);
    bide_io_finish_waiting(operation, how);
}

/* Neither it nor a cancel of it is in the ring: it ends with that, or goes on. */
static void finish(bide_loop *loop, bide_io_operation *operation, ptrdiff_t result)
{
    if (operation->code == BIDE_IO_ACCEPT_STREAM) {
        stream_ended(loop, operation, (int)result);
        return;
    }
    bool again = false;
    bool polled = (operation->state & POLLING) != 0 && result >= 0;
    unsigned asked = operation->state & (CANCELLED | CLOSING | FORGOTTEN);
    bool no_buffer = operation->code == BIDE_IO_RECV_PROVIDED && result == -ENOBUFS;
    bool not_so = operation->code == BIDE_IO_SEND_ZERO_COPY &&
                  is_to_be_copied(loop->uring, operation, (int)result);
    bool was_cut =
        result == -ECANCELED || ((result == -EINTR || no_buffer || not_so) && asked != 0);
    operation->state &= (uint16_t) ~(POLLING | KNOWN);
    note_written(operation, polled ? 0 : result);
    if (asked == 0 && not_so) {
        put(loop->uring, operation);
        return;
    }
    if (asked == 0 && no_buffer) {
        found_no_buffer(loop, operation);
        return;
    }
    if (asked == 0 && polled && is_called_here(operation)) {
        try_now(loop, operation);
        return;
    }
    bool done =
        !polled && !(was_cut && asked != 0) && bide_io_take_result(operation, result, &again);
    if (done) {
        if ((asked & FORGOTTEN) == 0)
            end(loop, operation, BIDE_IO_DONE);
    } else if (asked != 0) {
        if ((asked & FORGOTTEN) != 0) {
            operation->status = -ECANCELED;
            return;
        }
        end(loop, operation, (asked & CANCELLED) != 0 ? BIDE_IO_CANCELLED : BIDE_IO_CLOSED);
    } else if (again) {
        put_poll(loop->uring, operation);
    } else {
        put(loop->uring, operation);
    }
}

static void completed(bide_loop *loop, bide_io_operation *operation, int result, unsigned flags)
{
    bool goes_on = (flags & IORING_CQE_F_MORE) != 0;
    if (!goes_on)
        operation->state &= (uint16_t)~IN_RING;
    if (operation->code == BIDE_IO_ACCEPT_STREAM && result >= 0)
        connected(loop, operation, result);
    if (operation->code == BIDE_IO_SEND_ZERO_COPY && !is_released(operation, &result, flags))
        return;
    if (goes_on)
        return;
    if (operation->code == BIDE_IO_RECV_PROVIDED && (flags & IORING_CQE_F_BUFFER) != 0)
        take_buffer(operation, result, flags);
    if ((operation->state & CANCEL_SENT) != 0) { /* 1 */
        operation->state |= KNOWN;
        operation->status = result;
        return;
    }
    finish(loop, operation, result);
}

static void cancel_completed(bide_loop *loop, bide_io_operation *operation)
{
    operation->state &= (uint16_t)~CANCEL_SENT;
    if ((operation->state & KNOWN) == 0)
        return;
    int result = operation->status;
    operation->status = 0;
    finish(loop, operation, result);
}

static void loop_completed(bide_loop *loop)
{
    loop->uring->is_armed = false;
    loop->counts.wakes++;
    if (!loop->uring->has_futex)
        bide_descriptor_lower_(loop->run.fd);
}

/*
 * Goes through what has completed, as much of it as a turn may. (Where nothing has, a peek would enter
 * the kernel for a few more, before what was begun is submitted.)
 */
static void reap(bide_loop *loop)
{
    struct loop_uring *uring = loop->uring;
    struct io_uring_cqe *entry;
    for (int i = 0; i < LOOP_TURN && io_uring_cq_ready(&uring->ring) != 0; i++) {
        io_uring_peek_cqe(&uring->ring, &entry);
        bide_io_operation *operation =
            (bide_io_operation *)(void *)(uintptr_t)(entry->user_data & ~(uint64_t)KINDS);
        unsigned kind = (unsigned)(entry->user_data & KINDS);
        int result = entry->res;
        unsigned flags = entry->flags;
        io_uring_cqe_seen(&uring->ring, entry);
        loop->counts.completions++;
        if (kind == OF_OPERATION)
            completed(loop, operation, result, flags);
        else if (kind == OF_CANCEL)
            cancel_completed(loop, operation);
        else if (operation != NULL)
            loop_completed(loop);
    }
}

/* ---- The loop's side ---- */

static bool has_something(struct io_uring *ring)
{
    return io_uring_sq_ready(ring) != 0 || io_uring_cq_ready(ring) != 0 ||
           (IO_URING_READ_ONCE(*ring->sq.kflags) & (IORING_SQ_TASKRUN | IORING_SQ_CQ_OVERFLOW)) !=
               0;
}

static void look(bide_run_loop *run)
{
    bide_loop *loop = bide_container_of(run, bide_loop, run);
    if (!has_something(&loop->uring->ring))
        return;
    loop->counts.polls++;
    io_uring_submit_and_get_events(&loop->uring->ring);
    reap(loop);
}

/* Has the ring tell of posts: 3. */
static void arm(bide_loop *loop)
{
    struct loop_uring *uring = loop->uring;
    if (uring->is_armed || BIDE_IS_ALONE_) /* 3 */
        return;
    struct io_uring_sqe *entry = new_entry(uring);
    if (uring->has_futex) {
        uint32_t parked;
        bide_atomic(uint32_t) *word = bide_run_loop_word_(&loop->run, &parked);
        io_uring_prep_rw(OP_FUTEX_WAIT, entry, FUTEX_OF_32 | FUTEX_OF_PROCESS, (void *)word, 0,
                         parked);
        entry->addr3 = UINT32_MAX; /* any waker */
    } else {
        io_uring_prep_poll_add(entry, loop->run.fd, POLLIN);
    }
    set_data(entry, loop, OF_LOOP);
    uring->is_armed = true;
}

/* Starts what was begun, and waits for a completion, at most until `deadline`. */
static void wait_for_one(struct loop_uring *uring, uint64_t deadline)
{
    if (deadline == BIDE_FOREVER) {
        io_uring_submit_and_wait(&uring->ring, 1);
        return;
    }
    uint64_t now = bide_platform.now();
    uint64_t span = deadline > now ? deadline - now : 0;
    struct __kernel_timespec left = {.tv_sec = (int64_t)(span / 1000000000),
                                     .tv_nsec = (long long)(span % 1000000000)};
    struct io_uring_cqe *entry;
    io_uring_submit_and_wait_timeout(&uring->ring, &entry, 1, &left, NULL);
}

static void sleep_for_completions(bide_run_loop *run)
{
    bide_loop *loop = bide_container_of(run, bide_loop, run);
    loop->counts.polls++;
    if (io_uring_cq_ready(&loop->uring->ring) != 0 || !bide_run_loop_park_(run))
        return;
    arm(loop);
    loop->counts.sleeps++;
    BIDE_OBSERVE_(thread, (BIDE_OBSERVED_SLEEP));
    loop->is_asleep = true;
    wait_for_one(loop->uring, loop_look_up_at(run->deadline));
    loop->is_asleep = false;
    BIDE_OBSERVE_(thread, (BIDE_OBSERVED_WAKE));
    bide_run_loop_unpark_(run);
}

static void take(bide_run_loop *run)
{
    reap(bide_container_of(run, bide_loop, run));
}

static void enter(bide_run_loop *run)
{
    bide_loop *loop = bide_container_of(run, bide_loop, run);
    if (!loop->has_run) {
        /* (Debian 12's library lacks its function for it) */
        syscall(SYS_io_uring_register, loop->uring->ring.ring_fd, IORING_REGISTER_ENABLE_RINGS,
                NULL, 0);
    }
    bide_loop_begin_on_thread_(loop);
}

/* ---- The table ---- */

/* Those behind it in a line wait for it: 6 */
static bool is_first(const bide_io_operation *operation)
{
    int direction = io_direction(operation);
    return operation->descriptor == NULL || direction == BIDE_IO_FREE ||
           operation->descriptor->lines[direction].first == operation;
}

static bide_frame *begin(bide_io *io, bide_io_operation *operation, bide_frame *frame)
{
    bide_loop *loop = loop_of(io);
    if (bide_loop_do_at_once_(operation))
        return frame;
    if (operation->code == BIDE_IO_SEND_ZERO_COPY &&
        !has_opcode(loop->uring, opcodes[operation->code]))
        is_to_be_copied(loop->uring, operation, -EOPNOTSUPP);
    if (!has_opcode(loop->uring, opcodes[operation->code]))
        return bide_loop_offload_(loop, operation, frame);
    if (operation->code == BIDE_IO_CONNECT) {
        operation->status = bide_io_open_to_connect_(operation);
        if (operation->status != 0)
            return frame;
    }
    if (operation->code == BIDE_IO_RECV_PROVIDED)
        enter_pool(loop, operation->arguments.lent.pool);
    if (acceptor_of(operation) != NULL &&
        operation->descriptor->lines[BIDE_IO_INPUT].first == NULL) {
        int fd = bide_io_acceptor_take_(acceptor_of(operation));
        if (fd >= 0) {
            bide_io_acceptor_give_(operation, fd);
            return frame;
        }
    }
    if (is_tried_first(operation) &&
        operation->descriptor->lines[io_direction(operation)].first == NULL &&
        is_done_by_calls(operation))
        return frame;
    bide_io_enlist(io, operation);
    if (is_first(operation))
        put(loop->uring, operation);
    return NULL;
}

static void cancel(bide_io *io, bide_io_operation *operation)
{
    bide_loop *loop = loop_of(io);
    if (bide_loop_is_offloaded_(operation)) {
        bide_loop_cancel_offloaded_(loop, operation);
        return;
    }
    if ((operation->state & (IN_RING | CANCEL_SENT)) == 0) { /* it waits in line */
        end(loop, operation, BIDE_IO_CANCELLED);
        return;
    }
    operation->state |= CANCELLED;
    put_cancel(loop->uring, operation);
}

static void forget(bide_io *io, bide_io_operation *operation)
{
    bide_loop *loop = loop_of(io);
    if (bide_loop_is_offloaded_(operation)) {
        bide_loop_discard_offloaded_(loop, operation);
        return;
    }
    operation->state |= FORGOTTEN;
    put_cancel(loop->uring, operation);
    while ((operation->state & (IN_RING | CANCEL_SENT)) != 0) {
        abort_sent(operation);
        io_uring_submit_and_wait(&loop->uring->ring, 1);
        reap(loop);
    }
    take_out(loop, operation);
    if (operation->status == 0 || operation->code == BIDE_IO_CONNECT)
        bide_io_release(operation);
}

static void release(bide_io *io, bide_descriptor *descriptor)
{
    bide_loop *loop = loop_of(io);
    for (int direction = 0; direction < BIDE_IO_LINES; direction++) {
        bide_io_operation *next;
        /* (all of them before the first ends, so that no end goes on with the next) */
        for (bide_io_operation *at = descriptor->lines[direction].first; at != NULL; at = at->next)
            at->state |= CLOSING;
        for (bide_io_operation *at = descriptor->lines[direction].first; at != NULL; at = next) {
            next = at->next;
            if (bide_loop_is_offloaded_(at)) {
                bide_loop_discard_offloaded_(loop, at);
                bide_io_finish_waiting(at, at->count != 0 ? BIDE_IO_DONE : BIDE_IO_CLOSED);
                continue;
            }
            if ((at->state & (IN_RING | CANCEL_SENT)) == 0)
                end(loop, at, BIDE_IO_CLOSED);
            else
                put_cancel(loop->uring, at);
        }
        while (descriptor->lines[direction].first != NULL) {
            abort_sent(descriptor->lines[direction].first);
            io_uring_submit_and_wait(&loop->uring->ring, 1);
            reap(loop);
        }
    }
}

static void disarm(bide_loop *loop);

static void leave_thread(bide_run_loop *run)
{
    disarm(bide_container_of(run, bide_loop, run));
}

static const bide_io_table table = {"uring", begin, cancel, forget, release, NULL};
static const struct bide_run_loop_events_ events = {look, sleep_for_completions, take, enter,
                                                    leave_thread};

/* ---- Beginning and end ---- */

static int set_up(struct io_uring *ring, unsigned entries)
{
    struct io_uring_params parameters;
    memset(&parameters, 0, sizeof parameters);
    parameters.flags = IORING_SETUP_R_DISABLED | IORING_SETUP_CLAMP | IORING_SETUP_SINGLE_ISSUER |
                       IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_TASKRUN_FLAG;
    int error = io_uring_queue_init_params(entries, ring, &parameters);
    if (error == 0 && (parameters.features &
                       (IORING_FEAT_EXT_ARG | IORING_FEAT_NODROP | IORING_FEAT_SUBMIT_STABLE)) !=
                          (IORING_FEAT_EXT_ARG | IORING_FEAT_NODROP | IORING_FEAT_SUBMIT_STABLE)) {
        io_uring_queue_exit(ring);
        error = -EOPNOTSUPP;
    }
    return error;
}

static int probe(struct loop_uring *uring)
{
    struct io_uring_probe *found = io_uring_get_probe_ring(&uring->ring);
    if (found == NULL)
        return -ENOMEM;
    for (unsigned i = 0; i < found->ops_len && i < OPCODES; i++) {
        if ((found->ops[i].flags & IO_URING_OP_SUPPORTED) != 0)
            uring->supported |= UINT64_C(1) << i;
    }
    io_uring_free_probe(found);
    for (unsigned code = 0; code <= BIDE_IO_POLL; code++) {
        if (!has_opcode(uring, opcodes[code]))
            return -EOPNOTSUPP;
    }
    const char *without = getenv("BIDE_IO_WITHOUT"); /* for tests: as on older kernels */
    uring->has_futex = BIDE_IS_ALONE_KNOWN_ && has_opcode(uring, OP_FUTEX_WAIT) &&
                       (without == NULL || strcmp(without, "futex") != 0);
    uring->has_buffers = without == NULL || strcmp(without, "futex") != 0; /* (as old) */
    return 0;
}

int bide_loop_uring_create_(bide_loop *loop, unsigned entries)
{
    struct loop_uring *uring = calloc(1, sizeof *uring);
    if (uring == NULL)
        return -ENOMEM;
    int error = set_up(&uring->ring, entries);
    if (error != 0) {
        free(uring);
        return error;
    }
    error = probe(uring);
    if (error == 0 && !uring->has_futex) {
        int fd = bide_run_loop_fd(&loop->run);
        error = fd < 0 ? fd : 0;
    }
    if (error != 0) {
        io_uring_queue_exit(&uring->ring);
        free(uring);
        return error;
    }
    io_uring_ring_dontfork(&uring->ring);
    loop->uring = uring;
    bide_io_init(&loop->io, &table, &loop->run.scheduler);
    loop->run.events = &events;
    return 0;
}

/* 4 */
static void disarm(bide_loop *loop)
{
    struct loop_uring *uring = loop->uring;
    if (!uring->is_armed || !pthread_equal(loop->thread, pthread_self()))
        return;
    struct io_uring_sqe *entry = new_entry(uring);
    io_uring_prep_cancel64(entry, (uintptr_t)loop | OF_LOOP, 0);
    set_data(entry, NULL, OF_LOOP);
    while (uring->is_armed) {
        io_uring_submit_and_wait(&uring->ring, 1);
        reap(loop);
    }
}

void bide_loop_uring_destroy_(bide_loop *loop, bool is_own)
{
    if (is_own) {
        disarm(loop);
        bide_run_loop_close_fd(&loop->run);
        io_uring_queue_exit(&loop->uring->ring);
    } else {
        close(loop->uring->ring.ring_fd);
        if (loop->run.fd >= 0)
            close(loop->run.fd);
    }
    free(loop->uring);
}

#else

int bide_loop_uring_create_(bide_loop *loop, unsigned entries)
{
    (void)loop;
    (void)entries;
    return -ENOSYS;
}

void bide_loop_uring_destroy_(bide_loop *loop, bool is_own)
{
    (void)loop;
    (void)is_own;
}

#endif

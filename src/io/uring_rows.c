/*
 * The rows of io_uring: how the entry of each operation is prepared. The operation table has the
 * rest.
 */
#define _GNU_SOURCE
#include "operation_table.h"

#if BIDE_HAS_LIBURING

#include "bide/address.h"
#include "buffer_pool.h"
#include "calls.h"
#include "uring.h"

#include <fcntl.h>

/* Missing in the headers of Debian 12. */
enum {
    OPCODE_FTRUNCATE = 55,
    SEND_ZC_REPORTS_USAGE = 1 << 3,
};

/* The length of a call: the ring's has 32 bits. */
static unsigned uring_length(size_t size)
{
    return size < INT32_MAX ? (unsigned)size : INT32_MAX;
}

/* The number of vectors of a call. A read ends with them; a write continues. */
static unsigned uring_vectors(int count)
{
    return count < IOV_MAX ? (unsigned)count : IOV_MAX;
}

static void prepare_recv(struct io_uring_sqe *entry, const bide_io_operation *operation)
{
    io_uring_prep_recv(entry, io_fd(operation), operation->arguments.bytes.data,
                       uring_length(operation->arguments.bytes.size), operation->flags);
}

static void prepare_send(struct io_uring_sqe *entry, const bide_io_operation *operation)
{
    size_t size;
    const void *rest = io_rest(operation, &size);
    io_uring_prep_send(entry, io_fd(operation), rest, uring_length(size),
                       operation->flags | MSG_NOSIGNAL | (operation->is_whole ? MSG_WAITALL : 0));
}

static void prepare_send_zero_copy(struct io_uring_sqe *entry, const bide_io_operation *operation)
{
    size_t size;
    const void *rest = io_rest(operation, &size);
    bool has_usage = !loop_of(operation->io)->uring->reports_no_usage;
    io_uring_prep_send_zc(entry, io_fd(operation), rest, uring_length(size),
                          MSG_NOSIGNAL | MSG_WAITALL, has_usage ? SEND_ZC_REPORTS_USAGE : 0);
}

static void prepare_recvmsg(struct io_uring_sqe *entry, const bide_io_operation *operation)
{
    io_uring_prep_recvmsg(entry, io_fd(operation), operation->arguments.message,
                          (unsigned)operation->flags | MSG_CMSG_CLOEXEC);
}

static void prepare_sendmsg(struct io_uring_sqe *entry, const bide_io_operation *operation)
{
    io_uring_prep_sendmsg(entry, io_fd(operation), operation->arguments.message,
                          (unsigned)operation->flags | MSG_NOSIGNAL);
}

static void prepare_accept(struct io_uring_sqe *entry, const bide_io_operation *operation)
{
    bide_address *peer = operation->arguments.accept.peer;
    if (peer != NULL)
        peer->length = sizeof peer->any;
    io_uring_prep_accept(entry, io_fd(operation), peer != NULL ? &peer->any.generic : NULL,
                         peer != NULL ? &peer->length : NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
}

static void prepare_connect(struct io_uring_sqe *entry, const bide_io_operation *operation)
{
    const bide_address *address = operation->arguments.connect.address;
    io_uring_prep_connect(entry, io_fd(operation), &address->any.generic, address->length);
}

bool bide_uring_moves_position_(const bide_io_operation *operation)
{
    const bide_io_row_ *row = bide_io_row_of_(operation);
    uint32_t bits = operation->descriptor != NULL ? operation->descriptor->bits : 0;
    return row->is_positioned && (row->result == IO_RESULT_PART || (bits & IO_DIRECT) != 0) &&
           operation->arguments.bytes.offset < 0 && /* (or of the vector: operation.h) */
           (bits & (IO_FILE | IO_SEEKS)) == (IO_FILE | IO_SEEKS);
}

void bide_uring_move_position_(const bide_io_operation *operation, size_t moved)
{
    bool appends = bide_io_row_of_(operation)->direction == BIDE_IO_OUTPUT &&
                   (operation->descriptor->bits & IO_APPENDS) != 0;
    if (appends)
        lseek(io_fd(operation), 0, SEEK_END);
    else
        lseek(io_fd(operation), (off_t)moved, SEEK_CUR);
}

/* The offset of the next byte; -1: the descriptor's position. */
static uint64_t uring_offset(const bide_io_operation *operation)
{
    int64_t offset = operation->arguments.bytes.offset; /* (or of the vector) */
    if (bide_uring_moves_position_(operation))
        return (uint64_t)lseek(io_fd(operation), 0, SEEK_CUR);
    return (uint64_t)(offset >= 0 ? offset + (int64_t)operation->count : offset);
}

static void prepare_read(struct io_uring_sqe *entry, const bide_io_operation *operation)
{
    io_uring_prep_read(entry, io_fd(operation), operation->arguments.bytes.data,
                       uring_length(operation->arguments.bytes.size), uring_offset(operation));
}

static void prepare_write(struct io_uring_sqe *entry, const bide_io_operation *operation)
{
    size_t size;
    const void *rest = io_rest(operation, &size);
    io_uring_prep_write(entry, io_fd(operation), rest, uring_length(size), uring_offset(operation));
}

static void prepare_readv(struct io_uring_sqe *entry, const bide_io_operation *operation)
{
    io_uring_prep_readv(entry, io_fd(operation), operation->arguments.vector.vectors,
                        uring_vectors(operation->arguments.vector.count), uring_offset(operation));
}

static void prepare_writev(struct io_uring_sqe *entry, const bide_io_operation *operation)
{
    int fd = io_fd(operation);
    io_vectors rest = bide_io_rest_of_vectors_(operation);
    if (rest.data != NULL)
        io_uring_prep_write(entry, fd, rest.data, (unsigned)rest.size, uring_offset(operation));
    else
        io_uring_prep_writev(entry, fd, rest.vectors, uring_vectors(rest.count),
                             uring_offset(operation));
}

/* (the kernel takes a buffer when its poll has found data) */
static void prepare_recv_provided(struct io_uring_sqe *entry, const bide_io_operation *operation)
{
    io_uring_prep_recv(entry, io_fd(operation), NULL, 0, 0);
    entry->ioprio |= IORING_RECVSEND_POLL_FIRST;
    entry->flags |= IOSQE_BUFFER_SELECT;
    entry->buf_group = operation->arguments.provided.pool->group;
}

static void prepare_sync(struct io_uring_sqe *entry, const bide_io_operation *operation)
{
    io_uring_prep_fsync(entry, io_fd(operation), operation->flags != 0 ? IORING_FSYNC_DATASYNC : 0);
}

static void prepare_allocate(struct io_uring_sqe *entry, const bide_io_operation *operation)
{
    io_uring_prep_fallocate(entry, io_fd(operation), operation->flags,
                            operation->arguments.range.offset, operation->arguments.range.size);
}

static void prepare_truncate(struct io_uring_sqe *entry, const bide_io_operation *operation)
{
    io_uring_prep_rw(OPCODE_FTRUNCATE, entry, io_fd(operation), NULL, 0,
                     (uint64_t)operation->arguments.range.size);
}

static void prepare_splice_from_file(struct io_uring_sqe *entry, const bide_io_operation *operation)
{
    io_uring_prep_splice(entry, io_fd(operation), operation->arguments.splice.offset,
                         operation->arguments.splice.pipe, -1,
                         (unsigned)operation->arguments.splice.size, 0);
}

static void prepare_rename(struct io_uring_sqe *entry, const bide_io_operation *operation)
{
    io_uring_prep_renameat(entry, bide_path_fd_(operation->arguments.names.root),
                           operation->arguments.names.path,
                           bide_path_fd_(operation->arguments.names.other_root),
                           operation->arguments.names.other, (unsigned)operation->flags);
}

static void prepare_unlink(struct io_uring_sqe *entry, const bide_io_operation *operation)
{
    io_uring_prep_unlinkat(entry, bide_path_fd_(operation->arguments.path.root),
                           operation->arguments.path.path, operation->flags);
}

static void prepare_make_directory(struct io_uring_sqe *entry, const bide_io_operation *operation)
{
    io_uring_prep_mkdirat(entry, bide_path_fd_(operation->arguments.path.root),
                          operation->arguments.path.path, (mode_t)operation->arguments.path.mode);
}

static void prepare_link(struct io_uring_sqe *entry, const bide_io_operation *operation)
{
    io_uring_prep_linkat(entry, bide_path_fd_(operation->arguments.names.root),
                         operation->arguments.names.path,
                         bide_path_fd_(operation->arguments.names.other_root),
                         operation->arguments.names.other, operation->flags);
}

static void prepare_symlink(struct io_uring_sqe *entry, const bide_io_operation *operation)
{
    io_uring_prep_symlinkat(entry, operation->arguments.path.about,
                            bide_path_fd_(operation->arguments.path.root),
                            operation->arguments.path.path);
}

/* ---- The table ---- */

const uring_row bide_uring_rows_[] = {
    [BIDE_IO_RECV] = {IORING_OP_RECV, true, prepare_recv},
    [BIDE_IO_SEND] = {IORING_OP_SEND, true, prepare_send},
    [BIDE_IO_RECVMSG] = {IORING_OP_RECVMSG, true, prepare_recvmsg},
    [BIDE_IO_SENDMSG] = {IORING_OP_SENDMSG, true, prepare_sendmsg},
    [BIDE_IO_ACCEPT] = {IORING_OP_ACCEPT, true, prepare_accept},
    [BIDE_IO_CONNECT] = {IORING_OP_CONNECT, true, prepare_connect},
    [BIDE_IO_READ] = {IORING_OP_READ, true, prepare_read},
    [BIDE_IO_WRITE] = {IORING_OP_WRITE, true, prepare_write},
    [BIDE_IO_READ_VECTOR] = {IORING_OP_READV, true, prepare_readv},
    [BIDE_IO_WRITE_VECTOR] = {IORING_OP_WRITEV, true, prepare_writev},
    [BIDE_IO_POLL] = {IORING_OP_POLL_ADD, true, NULL},
    [BIDE_IO_ACCEPT_STREAM] = {IORING_OP_ACCEPT, true, NULL}, /* uring_accept.c */
    [BIDE_IO_RECV_PROVIDED] = {IORING_OP_RECV, true, prepare_recv_provided},
    [BIDE_IO_RECV_NEXT] = {IORING_OP_RECV, true, prepare_recv_provided},
    [BIDE_IO_RECV_STREAM] = {IORING_OP_RECV, true, NULL}, /* uring_recv.c */
    [BIDE_IO_RECV_BATCH] = {IORING_OP_POLL_ADD, true, NULL},
    [BIDE_IO_SEND_BATCH] = {IORING_OP_POLL_ADD, true, NULL},
    [BIDE_IO_SEND_ZERO_COPY] = {IORING_OP_SEND_ZC, false, prepare_send_zero_copy},
    [BIDE_IO_SPLICE_TO_SOCKET] = {IORING_OP_POLL_ADD, true, NULL},
    [BIDE_IO_SEND_FILE] = {IORING_OP_POLL_ADD, true, NULL},
    [BIDE_IO_CASE] = {IORING_OP_POLL_ADD, true, NULL},

    /* (never waiting) */
    [BIDE_IO_LISTEN] = {URING_OPCODES, false, NULL},
    [BIDE_IO_BIND] = {URING_OPCODES, false, NULL},
    [BIDE_IO_PAIR] = {URING_OPCODES, false, NULL},

    [BIDE_IO_OPEN] = {IORING_OP_OPENAT, false, bide_uring_prepare_open_},
    [BIDE_IO_SYNC] = {IORING_OP_FSYNC, false, prepare_sync},
    [BIDE_IO_ALLOCATE] = {IORING_OP_FALLOCATE, false, prepare_allocate},
    [BIDE_IO_TRUNCATE] = {OPCODE_FTRUNCATE, false, prepare_truncate},
    [BIDE_IO_STAT] = {IORING_OP_STATX, false, bide_uring_prepare_stat_},
    [BIDE_IO_RENAME] = {IORING_OP_RENAMEAT, false, prepare_rename},
    [BIDE_IO_UNLINK] = {IORING_OP_UNLINKAT, false, prepare_unlink},
    [BIDE_IO_MAKE_DIRECTORY] = {IORING_OP_MKDIRAT, false, prepare_make_directory},
    [BIDE_IO_LINK] = {IORING_OP_LINKAT, false, prepare_link},
    [BIDE_IO_SYMLINK] = {IORING_OP_SYMLINKAT, false, prepare_symlink},
    [BIDE_IO_STATX] = {IORING_OP_STATX, false, bide_uring_prepare_statx_},
    [BIDE_IO_OPEN_TEMPORARY] = {IORING_OP_OPENAT, false, bide_uring_prepare_open_temporary_},
    [BIDE_IO_SPLICE_FROM_FILE] = {IORING_OP_SPLICE, false, prepare_splice_from_file},

    /* (the ring has no opcode for these) */
    [BIDE_IO_READ_DIRECTORY] = {URING_OPCODES, false, NULL},
    [BIDE_IO_MAP] = {URING_OPCODES, false, NULL},
    [BIDE_IO_PREFAULT] = {URING_OPCODES, false, NULL},
    [BIDE_IO_READLINK] = {URING_OPCODES, false, NULL},
    [BIDE_IO_REALPATH] = {URING_OPCODES, false, NULL},
    [BIDE_IO_STATFS] = {URING_OPCODES, false, NULL},
    [BIDE_IO_CHMOD] = {URING_OPCODES, false, NULL},
    [BIDE_IO_CHOWN] = {URING_OPCODES, false, NULL},
    [BIDE_IO_UTIMES] = {URING_OPCODES, false, NULL},
    [BIDE_IO_COPY_RANGE] = {URING_OPCODES, false, NULL},
};

BIDE_STATIC_ASSERT(sizeof bide_uring_rows_ / sizeof *bide_uring_rows_ == BIDE_IO_CODES,
                   "every code has a row");
BIDE_STATIC_ASSERT(IORING_OP_NOP == 0, "a row that is missing has the opcode of a no-op");

bool bide_uring_has_row_(bide_io_code code)
{
    const uring_row *row = &bide_uring_rows_[code];
    const bide_io_row_ *common = &bide_io_rows_[code];
    if (row->opcode == IORING_OP_NOP)
        return false;
    if (common->start == IO_START_BY_BACK_END)
        return true;
    if (row->opcode == URING_OPCODES)
        return common->start == IO_START_AT_ONCE || common->blocks == IO_BLOCKS_ALWAYS;
    return row->opcode == IORING_OP_POLL_ADD || (!common->is_tried_first && row->prepare != NULL);
}

#else

bool bide_uring_has_row_(bide_io_code code)
{
    (void)code;
    return true;
}

#endif

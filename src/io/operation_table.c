/*
 * The rows of the operation table, and how an operation that succeeded in vain is undone.
 */
#define _GNU_SOURCE
#include "operation_table.h"

#include "calls.h"
#include "splice_calls.h"
#include "operation.h"

#include "bide/buffer_pool.h"
#include "bide/socket.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- Undoing ---- */

/* Closes the descriptors that came with a message. */
static void undo_rights(bide_io *io, struct msghdr *message)
{
    for (struct cmsghdr *at = CMSG_FIRSTHDR(message); at != NULL; at = CMSG_NXTHDR(message, at)) {
        if (at->cmsg_level != SOL_SOCKET || at->cmsg_type != SCM_RIGHTS)
            continue;
        for (size_t i = CMSG_LEN(0); i + sizeof(int) <= at->cmsg_len; i += sizeof(int)) {
            int fd;
            memcpy(&fd, (const char *)at + i, sizeof fd);
            bide_io_close_number_(io, fd);
        }
    }
    message->msg_controllen = 0;
}

static void undo_recvmsg(bide_io_operation *operation)
{
    undo_rights(operation->io, operation->arguments.message);
}

static void undo_recv_batch(bide_io_operation *operation)
{
    bide_assert(operation->count <= operation->arguments.batch.count);
    for (size_t i = 0; i < operation->count; i++)
        undo_rights(operation->io, &operation->arguments.batch.messages[i].header);
}

static void undo_accept(bide_io_operation *operation)
{
    bide_close(operation->arguments.accept.accepted);
}

/* (the operation was the only one on its descriptor, and is in no line any more) */
static void undo_connect(bide_io_operation *operation)
{
    bide_io_close_(operation->io, operation->descriptor);
}

static void undo_listen(bide_io_operation *operation)
{
    bide_close(operation->descriptor);
}

static void undo_pair(bide_io_operation *operation)
{
    bide_close(operation->descriptor);
    bide_close(operation->arguments.accept.accepted);
}

static void undo_recv_provided(bide_io_operation *operation)
{
    bide_buffer_release(operation->arguments.provided.pool, operation->arguments.provided.data);
    operation->arguments.provided.data = NULL;
}

static void undo_open(bide_io_operation *operation)
{
    bide_close(operation->arguments.open.opened);
}

/* The entries will be read again. */
static void undo_read_directory(bide_io_operation *operation)
{
    bide_io *io = operation->io;
    int fd = io_fd(operation);
    int64_t start = operation->arguments.bytes.offset;
    if (operation->count == 0)
        return;
    if (io_calls(io) != NULL)
        io_calls(io)->lseek(io, fd, start);
    else
        lseek(fd, start, SEEK_SET);
}

static void undo_map(bide_io_operation *operation)
{
    munmap(operation->arguments.map.at, operation->arguments.map.size);
}

/* ---- The table ---- */

#define ROW_OF_FILE(row_name, row_shape, row_call)                                           \
    .name = (row_name), .call = (row_call), .direction = BIDE_IO_FREE, .shape = (row_shape), \
    .blocks = IO_BLOCKS_ALWAYS

#define ROW_OF_LENT(row_name)                                                            \
    .name = (row_name), .call = bide_call_recv_provided_, .release = undo_recv_provided, \
    .direction = BIDE_IO_INPUT, .shape = IO_SHAPE_LENT, .result = IO_RESULT_COUNT,       \
    .empties_when_short = true, .is_of_one_loop = true

const bide_io_row_ bide_io_rows_[] = {
    /* On a descriptor, in one of its lines. */
    [BIDE_IO_RECV] = {.name = "recv",
                      .call = bide_call_recv_,
                      .direction = BIDE_IO_INPUT,
                      .shape = IO_SHAPE_BYTES,
                      .result = IO_RESULT_COUNT,
                      .empties_when_short = true},
    [BIDE_IO_SEND] = {.name = "send",
                      .call = bide_call_send_,
                      .direction = BIDE_IO_OUTPUT,
                      .shape = IO_SHAPE_BYTES,
                      .result = IO_RESULT_PART},
    [BIDE_IO_RECVMSG] = {.name = "recvmsg",
                         .call = bide_call_recvmsg_,
                         .release = undo_recvmsg,
                         .direction = BIDE_IO_INPUT,
                         .shape = IO_SHAPE_MESSAGE,
                         .result = IO_RESULT_COUNT},
    [BIDE_IO_SENDMSG] = {.name = "sendmsg",
                         .call = bide_call_sendmsg_,
                         .direction = BIDE_IO_OUTPUT,
                         .shape = IO_SHAPE_MESSAGE,
                         .result = IO_RESULT_COUNT},
    [BIDE_IO_ACCEPT] = {.name = "accept",
                        .call = bide_call_accept_,
                        .release = undo_accept,
                        .direction = BIDE_IO_INPUT,
                        .shape = IO_SHAPE_ACCEPT,
                        .opens = IO_OPENS_OTHER,
                        .result = IO_RESULT_CONNECTION,
                        .polls_first = true},
    [BIDE_IO_CONNECT] = {.name = "connect",
                         .call = bide_call_connect_,
                         .release = undo_connect,
                         .direction = BIDE_IO_OUTPUT,
                         .shape = IO_SHAPE_ADDRESS,
                         .start = IO_START_OPENS,
                         .opens = IO_OPENS_OWN,
                         .result = IO_RESULT_CONNECTED},
    [BIDE_IO_READ] = {.name = "read",
                      .call = bide_call_read_,
                      .direction = BIDE_IO_INPUT,
                      .shape = IO_SHAPE_BYTES,
                      .blocks = IO_BLOCKS_ON_FILE,
                      .result = IO_RESULT_COUNT,
                      .is_positioned = true,
                      .polls_first = true},
    [BIDE_IO_WRITE] = {.name = "write",
                       .call = bide_call_write_,
                       .direction = BIDE_IO_OUTPUT,
                       .shape = IO_SHAPE_BYTES,
                       .blocks = IO_BLOCKS_ON_FILE,
                       .result = IO_RESULT_PART,
                       .is_positioned = true,
                       .polls_first = true},
    [BIDE_IO_READ_VECTOR] = {.name = "readv",
                             .call = bide_call_readv_,
                             .direction = BIDE_IO_INPUT,
                             .shape = IO_SHAPE_VECTOR,
                             .blocks = IO_BLOCKS_ON_FILE,
                             .result = IO_RESULT_COUNT,
                             .is_positioned = true,
                             .polls_first = true},
    [BIDE_IO_WRITE_VECTOR] = {.name = "writev",
                              .call = bide_call_writev_,
                              .direction = BIDE_IO_OUTPUT,
                              .shape = IO_SHAPE_VECTOR,
                              .blocks = IO_BLOCKS_ON_FILE,
                              .result = IO_RESULT_PART,
                              .is_positioned = true,
                              .polls_first = true},
    [BIDE_IO_POLL] = {.name = "poll",
                      .call = bide_call_poll_,
                      .direction = BIDE_IO_FREE,
                      .shape = IO_SHAPE_POLL,
                      .result = IO_RESULT_EVENTS},
    [BIDE_IO_ACCEPT_STREAM] = {.name = "accept stream",
                               .direction = BIDE_IO_FREE,
                               .shape = IO_SHAPE_NONE,
                               .start = IO_START_BY_BACK_END,
                               .result = IO_RESULT_STATUS},
    [BIDE_IO_RECV_PROVIDED] = {ROW_OF_LENT("recv provided")},
    [BIDE_IO_RECV_NEXT] = {ROW_OF_LENT("recv next")}, /* (on io_uring: of a stream) */
    [BIDE_IO_RECV_STREAM] = {.name = "recv stream",
                             .direction = BIDE_IO_FREE,
                             .shape = IO_SHAPE_NONE,
                             .start = IO_START_BY_BACK_END,
                             .result = IO_RESULT_STATUS},
    [BIDE_IO_RECV_BATCH] = {.name = "recv batch",
                            .call = bide_call_recv_batch_,
                            .release = undo_recv_batch,
                            .direction = BIDE_IO_INPUT,
                            .shape = IO_SHAPE_BATCH,
                            .result = IO_RESULT_COUNT,
                            .is_tried_first = true},
    [BIDE_IO_SEND_BATCH] = {.name = "send batch",
                            .call = bide_call_send_batch_,
                            .direction = BIDE_IO_OUTPUT,
                            .shape = IO_SHAPE_BATCH,
                            .result = IO_RESULT_PART,
                            .is_tried_first = true},
    [BIDE_IO_SEND_ZERO_COPY] = {.name = "send zero copy",
                                .call = bide_call_send_copied_,
                                .direction = BIDE_IO_OUTPUT,
                                .shape = IO_SHAPE_BYTES,
                                .result = IO_RESULT_PART},
    [BIDE_IO_SPLICE_TO_SOCKET] = {.name = "splice to socket",
                                  .call = bide_call_splice_to_socket_,
                                  .direction = BIDE_IO_OUTPUT,
                                  .shape = IO_SHAPE_SPLICE,
                                  .result = IO_RESULT_PART,
                                  .is_tried_first = true},
    [BIDE_IO_SEND_FILE] = {.name = "send file",
                           .call = bide_call_send_file_,
                           .direction = BIDE_IO_OUTPUT,
                           .shape = IO_SHAPE_SEND_FILE,
                           .result = IO_RESULT_STATUS,
                           .is_tried_first = true},
    [BIDE_IO_CASE] = {.name = "case of a select",
                      .call = bide_call_case_,
                      .direction = BIDE_IO_INPUT,
                      .shape = IO_SHAPE_NONE,
                      .result = IO_RESULT_STATUS,
                      .is_tried_first = true},

    /* Never waiting. */
    [BIDE_IO_LISTEN] = {.name = "listen",
                        .call = bide_call_listen_,
                        .release = undo_listen,
                        .direction = BIDE_IO_FREE,
                        .shape = IO_SHAPE_LISTEN,
                        .start = IO_START_AT_ONCE,
                        .opens = IO_OPENS_OWN},
    [BIDE_IO_BIND] = {.name = "bind",
                      .call = bide_call_bind_,
                      .release = undo_listen,
                      .direction = BIDE_IO_FREE,
                      .shape = IO_SHAPE_LISTEN,
                      .start = IO_START_AT_ONCE,
                      .opens = IO_OPENS_OWN},
    [BIDE_IO_PAIR] = {.name = "socket pair",
                      .call = bide_call_pair_,
                      .release = undo_pair,
                      .direction = BIDE_IO_FREE,
                      .shape = IO_SHAPE_ACCEPT,
                      .start = IO_START_AT_ONCE,
                      .opens = IO_OPENS_OWN},

    /* On files and their names, blocking. */
    [BIDE_IO_OPEN] = {ROW_OF_FILE("open", IO_SHAPE_OPEN, bide_call_open_), .release = undo_open,
                      .opens = IO_OPENS_OTHER, .result = IO_RESULT_FILE},
    [BIDE_IO_SYNC] = {ROW_OF_FILE("sync", IO_SHAPE_NONE, bide_call_sync_)},
    [BIDE_IO_ALLOCATE] = {ROW_OF_FILE("allocate", IO_SHAPE_RANGE, bide_call_allocate_)},
    [BIDE_IO_TRUNCATE] = {ROW_OF_FILE("truncate", IO_SHAPE_RANGE, bide_call_truncate_)},
    [BIDE_IO_STAT] = {ROW_OF_FILE("stat", IO_SHAPE_PATH, bide_call_stat_)},
    [BIDE_IO_RENAME] = {ROW_OF_FILE("rename", IO_SHAPE_NAMES, bide_call_rename_)},
    [BIDE_IO_UNLINK] = {ROW_OF_FILE("unlink", IO_SHAPE_PATH, bide_call_unlink_)},
    [BIDE_IO_MAKE_DIRECTORY] = {ROW_OF_FILE("make directory", IO_SHAPE_PATH,
                                            bide_call_make_directory_)},
    [BIDE_IO_LINK] = {ROW_OF_FILE("link", IO_SHAPE_NAMES, bide_call_link_)},
    [BIDE_IO_SYMLINK] = {ROW_OF_FILE("symlink", IO_SHAPE_PATH, bide_call_symlink_)},
    [BIDE_IO_READLINK] = {ROW_OF_FILE("readlink", IO_SHAPE_PATH, bide_call_readlink_),
                          .result = IO_RESULT_COUNT},
    [BIDE_IO_REALPATH] = {ROW_OF_FILE("realpath", IO_SHAPE_PATH, bide_call_realpath_),
                          .result = IO_RESULT_COUNT},
    [BIDE_IO_STATX] = {ROW_OF_FILE("statx", IO_SHAPE_PATH, bide_call_statx_)},
    [BIDE_IO_STATFS] = {ROW_OF_FILE("statfs", IO_SHAPE_PATH, bide_call_statfs_)},
    [BIDE_IO_CHMOD] = {ROW_OF_FILE("chmod", IO_SHAPE_PATH, bide_call_chmod_)},
    [BIDE_IO_CHOWN] = {ROW_OF_FILE("chown", IO_SHAPE_PATH, bide_call_chown_)},
    [BIDE_IO_UTIMES] = {ROW_OF_FILE("utimes", IO_SHAPE_PATH, bide_call_utimes_)},
    [BIDE_IO_OPEN_TEMPORARY] = {ROW_OF_FILE("open temporary", IO_SHAPE_OPEN,
                                            bide_call_open_temporary_),
                                .release = undo_open, .opens = IO_OPENS_OTHER,
                                .result = IO_RESULT_FILE},
    [BIDE_IO_COPY_RANGE] = {ROW_OF_FILE("copy range", IO_SHAPE_COPY, bide_call_copy_range_),
                            .result = IO_RESULT_COUNT},
    [BIDE_IO_SPLICE_FROM_FILE] = {ROW_OF_FILE("splice from file", IO_SHAPE_SPLICE,
                                              bide_call_splice_from_file_),
                                  .result = IO_RESULT_COUNT},
    [BIDE_IO_READ_DIRECTORY] = {ROW_OF_FILE("read directory", IO_SHAPE_BYTES,
                                            bide_call_read_directory_),
                                .release = undo_read_directory, .result = IO_RESULT_COUNT},
    [BIDE_IO_MAP] = {ROW_OF_FILE("map", IO_SHAPE_MAP, bide_call_map_), .release = undo_map},
    [BIDE_IO_PREFAULT] = {ROW_OF_FILE("prefault", IO_SHAPE_MAP, bide_call_prefault_)},
};

BIDE_STATIC_ASSERT(sizeof bide_io_rows_ / sizeof *bide_io_rows_ == BIDE_IO_CODES,
                   "every code has a row");

size_t bide_io_length_of_shape_(const bide_io_operation *operation)
{
    const bide_io_arguments *arguments = &operation->arguments;
    size_t length = 0;
    switch ((bide_io_shape_)bide_io_row_of_(operation)->shape) {
    case IO_SHAPE_BYTES:
        return arguments->bytes.size;
    case IO_SHAPE_VECTOR:
        for (int i = 0; i < arguments->vector.count; i++)
            length += arguments->vector.vectors[i].iov_len;
        return length;
    case IO_SHAPE_BATCH:
        return arguments->batch.count;
    case IO_SHAPE_LENT:
        return arguments->provided.pool->size;
    case IO_SHAPE_SPLICE:
        return arguments->splice.size;
    case IO_SHAPE_SEND_FILE:
        return arguments->send_file.size;
    default:
        return 0;
    }
}

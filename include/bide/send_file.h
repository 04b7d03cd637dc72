/*
 * Sending a file, or a part of one, to a socket, without copying its bytes to the program.
 * Floor: io.
 *
 *     bide_try(bide_send_file(&self->send, &self->socket, &self->file, 0, UINT64_MAX));
 *     ... self->send.count bytes were sent
 *
 * Neither the file nor the socket holds up the loop. The loop sends cached parts of the file itself, by
 * sendfile(2), 256 KB at a time. Reading from a disk would block the loop. So an uncached piece is
 * spliced from the file into a pipe, by the ring or on a thread for blocking calls, and then from the
 * pipe to the socket. That path also serves file systems that do not report what is cached (network
 * file systems, and overlays). To a socket in blocking mode, which others may share, the bytes are copied
 * through a buffer of 64 KB, and the mode stays as it is. The socket's loop uses it, on that loop's thread.
 *
 * Why it is correct: src/io/send_file.c.
 */
#ifndef BIDE_SEND_FILE_H
#define BIDE_SEND_FILE_H

#include "bide/extend/io.h"
#include "bide/task.h"

BIDE_EXTERN_C_BEGIN

/* One such. The caller's memory until it has ended. */
typedef struct bide_send_file_operation {
    bide_task task;
    bide_descriptor *socket;
    bide_descriptor *file;
    int64_t offset;
    uint64_t max;
    uint64_t count; /* of bytes that were sent, whatever it ended with */
    int pipe[2];
    void *buffer; /* for a socket in blocking mode; or NULL */
    int status;
    bool is_sending;
    bool copies; /* its socket is in blocking mode */
    bool moves;  /* it is not known yet that the file cannot be sent without a pipe */
    union {
        bide_file_operation fill;
        bide_io_operation drain; /* or one that sends from the file itself */
    };
} bide_send_file_operation;

/*
 * Sends the bytes of `file` from `offset` on, up to `max` (UINT64_MAX: to its end). It ends with 0
 * at the end of the file too. The file's own offset is not used. The socket is a stream. To send to an
 * end that is gone is -EPIPE, and no signal. Where the file is changed before its bytes were received,
 * they may be what was there before or since. Where it has to wait for the file it needs two descriptors
 * until it has ended; for a socket in blocking mode it needs 64 KB of memory instead.
 * Threads: the loop's. Errors: those of sendfile(2), pipe2(2) and splice(2); -EINVAL (a file that
 * cannot be spliced), -ENOMEM and those of pread(2) (a socket in blocking mode), -EBADF (closed before),
 * -EPIPE (also: closed meanwhile), -ECANCELED, -ETIMEDOUT, -ENOTSUP (no loop). Suspends: if the socket
 * is not ready, or the file not in memory. Cancel-safe: yes, by `count`: `offset` and `count` say where
 * to go on. Progress: that of the system calls.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_send_file(bide_send_file_operation *operation, bide_descriptor *socket,
                             bide_descriptor *file, int64_t offset, uint64_t max);

BIDE_EXTERN_C_END

#endif

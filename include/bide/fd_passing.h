/*
 * Passing descriptors to other processes over Unix sockets, and inheriting them from the service
 * manager. Floor: io.
 *
 *     bide_try(bide_send_fds(&self->pass, &self->to, "x", 1, &fd, 1));
 *
 *     bide_try(bide_recv_fds(&self->pass, &self->from, buffer, sizeof buffer, fds, 2));
 *     ... self->pass.operation.count bytes, and self->pass.passed descriptors
 *
 *     bide_inherited_descriptor(&listener, 0);                // the first that systemd hands over
 *
 * Descriptors travel with at least one byte. Received ones are close-on-exec. Descriptors that do not
 * fit are closed, and counted; all are closed if the receiver is destroyed before it resumes. The
 * socket's loop uses it, on that loop's thread.
 *
 * Why it is correct: src/io/fd_passing.c.
 */
#ifndef BIDE_PASS_H
#define BIDE_PASS_H

#include "bide/extend/io.h"

BIDE_EXTERN_C_BEGIN

/* How many descriptors go with one message. */
enum { BIDE_SCM_MAX_FDS = 16 };

/* The sender of a message, from the kernel: the system's ucred, which some programs cannot name. */
typedef struct bide_credentials {
    pid_t process;
    uid_t user;
    gid_t group;
} bide_credentials;

/* One message with descriptors. The caller's memory until it has ended. */
typedef struct bide_fds_operation {
    bide_io_operation operation;
    struct msghdr message;
    struct iovec bytes;
    int *descriptors;
    unsigned room;
    unsigned passed;      /* descriptors that came */
    unsigned closed;      /* that came and had no room */
    bool was_truncated;   /* more were sent than this has memory for; the kernel closed them */
    bool has_credentials; /* of the sender: if the socket has BIDE_OPTION_PASS_CREDENTIALS */
    bide_credentials credentials;
    union {
        size_t alignment; /* of a cmsghdr */
        char bytes[CMSG_SPACE(sizeof(int) * BIDE_SCM_MAX_FDS) +
                   CMSG_SPACE(sizeof(bide_credentials))];
    } control;
} bide_fds_operation;

/*
 * Sends bytes, 1 or more, and `count` descriptors of the system with them, at most BIDE_SCM_MAX_FDS.
 * They stay open here, and may be closed when it has ended. Of a stream `count` of the operation says
 * how many bytes went; the descriptors have gone if it is not 0.
 * Threads: the loop's. Errors: -EINVAL (too many descriptors, or no bytes), those of sendmsg(2);
 * -EPIPE (also: closed meanwhile), -ECANCELED, -ETIMEDOUT, -ENOTSUP (no loop). Suspends: if it does
 * not fit into the socket's buffer; always on an io_uring. Cancel-safe: yes, nothing was sent.
 * Progress: that of the system calls.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_send_fds(bide_fds_operation *pass, bide_descriptor *socket, const void *data,
                            size_t size, const int *descriptors, unsigned count);

/*
 * Receives bytes, and descriptors that came with them: `passed` of them are put in `descriptors`,
 * which has room for `room`, and are the caller's to close. A count of 0 is the end.
 * Threads: the loop's. Errors: those of recvmsg(2); -EPIPE (closed meanwhile), -ECANCELED,
 * -ETIMEDOUT, -ENOTSUP (no loop). Suspends: if there is nothing yet; always on an io_uring.
 * Cancel-safe: yes, nothing was received. Progress: that of the system calls.
 */
BIDE_KEY_SCOPED(passed);
BIDE_MUST_AWAIT
bide_awaiter *bide_recv_fds(bide_fds_operation *pass, bide_descriptor *socket, void *buffer,
                            size_t size, int *descriptors, unsigned room);

/* ---- From the service manager ---- */

/*
 * How many descriptors the service manager hands over to this process (LISTEN_FDS, LISTEN_PID); 0:
 * none.
 * Threads: any, while none changes the environment. Errors: none. Progress: wait-free.
 */
int bide_inherited_count(void);

/*
 * The nth of these, from 0, or the nth of those of a name (LISTEN_FDNAMES). It is closed on exec from
 * now on; its mode, blocking or not, stays as it is.
 * Threads: any, while none changes the environment. Errors: -ENOENT (there is none), those of
 * fcntl(2). Progress: that of the system call.
 */
int bide_inherited_descriptor(bide_descriptor *descriptor, unsigned n);
int bide_inherited_descriptor_named(bide_descriptor *descriptor, const char *name, unsigned n);

BIDE_EXTERN_C_END

#endif

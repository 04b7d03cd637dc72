/*
 * Descriptors that come from elsewhere: in a message, or from the service manager.
 *
 * 1. A message that was received has the descriptors in its control data, until `resume` moves them
 *    to the caller's array, and closes the rest. `withdraw` closes the caller's, because the
 *    destroyed coroutine will not. Descriptors that are still in the message are given back as
 *    those of any message (operation_table.c).
 * 2. The control data are zero before the operation, so a message that never arrived has no
 *    descriptors in them.
 */
#define _GNU_SOURCE
#include "bide/fd_passing.h"

#include "bide/frame.h"

#include "const_cast.h"
#include "operation.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* (other systems than Linux have other credentials: none are reported there) */
#ifdef __linux__
BIDE_STATIC_ASSERT(sizeof(struct ucred) == sizeof(bide_credentials),
                   "credentials are the system's");
#endif

static bide_fds_operation *pass_of(bide_awaiter *awaiter)
{
    return bide_container_of(awaiter, bide_fds_operation, operation.awaiter);
}

static void pass_init(bide_fds_operation *pass, const bide_awaiter_ops *ops, bide_io_code code,
                      bide_descriptor *socket, const void *data, size_t size)
{
    memset(&pass->message, 0, sizeof pass->message);
    memset(&pass->control, 0, sizeof pass->control);
    pass->bytes.iov_base = io_as_data(data);
    pass->bytes.iov_len = size;
    pass->message.msg_iov = &pass->bytes;
    pass->message.msg_iovlen = 1;
    pass->passed = 0;
    pass->closed = 0;
    pass->was_truncated = false;
    pass->has_credentials = false;
    bide_io_operation_init(&pass->operation, ops, code, socket);
    pass->operation.arguments.message = &pass->message;
}

/* ---- Sending ---- */

static bide_frame *pass_send_suspend(bide_awaiter *awaiter, bide_frame *frame)
{
    bide_fds_operation *pass = pass_of(awaiter);
    if (pass->room <= BIDE_SCM_MAX_FDS && pass->bytes.iov_len != 0)
        return bide_io_suspend(awaiter, frame);
    pass->operation.status = -EINVAL;
    return frame;
}

bide_awaiter *bide_send_fds(bide_fds_operation *pass, bide_descriptor *socket, const void *data,
                            size_t size, const int *descriptors, unsigned count)
{
    static const bide_awaiter_ops ops = {
        .suspend = pass_send_suspend,
        .resume = bide_io_resume,
        .cancel = bide_io_cancel,
        .withdraw = bide_io_withdraw,
        .name = "bide_send_fds",
    };
    pass_init(pass, &ops, BIDE_IO_SENDMSG, socket, data, size);
    pass->room = count;
    if (count == 0 || count > BIDE_SCM_MAX_FDS)
        return &pass->operation.awaiter;
    pass->message.msg_control = &pass->control;
    pass->message.msg_controllen = CMSG_SPACE(sizeof(int) * count);
    struct cmsghdr *header = CMSG_FIRSTHDR(&pass->message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int) * count);
    memcpy(CMSG_DATA(header), descriptors, sizeof(int) * count);
    return &pass->operation.awaiter;
}

/* ---- Receiving ---- */

/* Moves a descriptor to the caller's array, or closes it. */
static void pass_take_descriptor(bide_fds_operation *pass, int fd)
{
#ifdef __APPLE__ /* (no flag of recvmsg does it) */
    (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
#endif
    if (pass->passed < pass->room) {
        pass->descriptors[pass->passed++] = fd;
    } else {
        pass->closed++;
        bide_io_close_number_(pass->operation.io, fd);
    }
}

static void pass_take_control(bide_fds_operation *pass)
{
    struct msghdr *message = &pass->message;
    for (struct cmsghdr *at = CMSG_FIRSTHDR(message); at != NULL; at = CMSG_NXTHDR(message, at)) {
        if (at->cmsg_len < CMSG_LEN(0) || at->cmsg_level != SOL_SOCKET)
            continue;
        size_t size = at->cmsg_len - CMSG_LEN(0);
#ifdef __linux__
        if (at->cmsg_type == SCM_CREDENTIALS && size >= sizeof pass->credentials) {
            pass->has_credentials = true;
            memcpy(&pass->credentials, CMSG_DATA(at), sizeof pass->credentials);
        }
#endif
        for (size_t i = 0; at->cmsg_type == SCM_RIGHTS && i < size / sizeof(int); i++) {
            int fd;
            memcpy(&fd, CMSG_DATA(at) + i * sizeof fd, sizeof fd);
            pass_take_descriptor(pass, fd);
        }
    }
    message->msg_controllen = 0; /* 1 */
}

static int pass_receive_resume(bide_awaiter *awaiter)
{
    bide_fds_operation *pass = pass_of(awaiter);
    if (pass->operation.status == 0) {
        pass->was_truncated = (pass->message.msg_flags & MSG_CTRUNC) != 0;
        pass_take_control(pass);
    }
    return pass->operation.status;
}

static int pass_receive_attempt(bide_awaiter *awaiter, bide_choice *choice)
{
    int status = bide_io_attempt(awaiter, choice);
    return status != -EAGAIN ? pass_receive_resume(awaiter) : status;
}

static bool pass_receive_withdraw(bide_awaiter *awaiter)
{
    bide_fds_operation *pass = pass_of(awaiter);
    bool was_waiting = bide_io_withdraw(awaiter);
    while (pass->passed != 0) /* 1 */
        bide_io_close_number_(pass->operation.io, pass->descriptors[--pass->passed]);
    return was_waiting;
}

bide_awaiter *bide_recv_fds(bide_fds_operation *pass, bide_descriptor *socket, void *buffer,
                            size_t size, int *descriptors, unsigned room)
{
    static const bide_awaiter_ops ops = {
        .suspend = bide_io_suspend,
        .resume = pass_receive_resume,
        .cancel = bide_io_cancel,
        .withdraw = pass_receive_withdraw,
        .name = "bide_recv_fds",
        .attempt = pass_receive_attempt,
        .undo = BIDE_UNDO_ATTEMPT,
    };
    pass_init(pass, &ops, BIDE_IO_RECVMSG, socket, buffer, size);
    pass->descriptors = descriptors;
    pass->room = room;
    pass->message.msg_control = &pass->control;
    pass->message.msg_controllen = sizeof pass->control;
    return &pass->operation.awaiter;
}

/* ---- From the service manager ---- */

enum { FIRST_INHERITED = 3 };

/* The number in a variable of the environment; -1: it is none. */
static long environment_number(const char *name)
{
    const char *text = getenv(name);
    char *end;
    if (text == NULL || *text < '0' || *text > '9')
        return -1;
    errno = 0;
    long number = strtol(text, &end, 10);
    return *end == '\0' && errno == 0 ? number : -1;
}

int bide_inherited_count(void)
{
    long count = environment_number("LISTEN_FDS");
    if (environment_number("LISTEN_PID") != (long)getpid() || count < 0 || count > 65536)
        return 0;
    return (int)count;
}

int bide_inherited_descriptor(bide_descriptor *descriptor, unsigned n)
{
    int fd = FIRST_INHERITED + (int)n;
    bide_descriptor_init_closed(descriptor);
    if (n >= (unsigned)bide_inherited_count())
        return -ENOENT;
    int flags = fcntl(fd, F_GETFD);
    if (flags < 0 || fcntl(fd, F_SETFD, flags | FD_CLOEXEC) != 0)
        return -errno;
    bide_descriptor_init(descriptor, fd);
    return 0;
}

int bide_inherited_descriptor_named(bide_descriptor *descriptor, const char *name, unsigned n)
{
    const char *at = getenv("LISTEN_FDNAMES");
    size_t length = strlen(name);
    bide_descriptor_init_closed(descriptor);
    for (unsigned number = 0; at != NULL; number++) {
        size_t size = strcspn(at, ":");
        if (size == length && memcmp(at, name, size) == 0 && n-- == 0)
            return bide_inherited_descriptor(descriptor, number);
        at = at[size] == ':' ? at + size + 1 : NULL;
    }
    return -ENOENT;
}

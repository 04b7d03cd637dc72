/* Passes listening sockets on, and receives them: see handover.h. */
#define _GNU_SOURCE
#include "handover.h"
#include "../common/listening.h"
#include "program.h"

#include <bide/coroutine.h>
#include <bide/sleep.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define ACCEPT_PAUSE UINT64_C(1000000000) /* nanoseconds */

enum { HANDOVER_BACKLOG = 8, HANDOVER_NAME = 127, PREDECESSOR_TIMEOUT = 10 /* seconds */ };

/* A message. Its descriptor goes with it. */
struct message {
    char kind; /* 'p': the path's socket, 'l': that of a listener, 'e': the end, without a socket */
    char name[HANDOVER_NAME];
};

static const char ready = 'r';

void handover_init(struct handover *handover, const char *path)
{
    *handover = (struct handover){.path = path, .predecessor = -1};
    bide_descriptor_init(&handover->listener, -1);
    bide_descriptor_init(&handover->successor, -1);
}

/* For the side that connects: the credentials are those of the process that began to listen. */
static bool is_own_process(int fd)
{
    struct ucred peer;
    socklen_t size = sizeof peer;
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
           (peer.uid == 0 || peer.uid == geteuid());
}

/* ---- The successor ---- */

/*
 * Returns 0 with predecessor -1 if nobody listens at the path. Errors: -ETIMEDOUT (the queue is full), -EPERM (another
 * user's process listens there), and others.
 */
static int connect_to_predecessor(struct handover *handover)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct timeval timeout = {.tv_sec = PREDECESSOR_TIMEOUT};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof timeout);
    strcpy(address.sun_path, handover->path); /* (bide_listen_path_init has checked its length) */
    if (connect(fd, (struct sockaddr *)&address, sizeof address) != 0) {
        int status = errno == ECONNREFUSED || errno == ENOENT ? 0
                     : errno == EAGAIN                        ? -ETIMEDOUT
                                                              : -errno;
        close(fd);
        return status;
    }
    if (!is_own_process(fd)) {
        close(fd);
        return -EPERM;
    }
    handover->predecessor = fd;
    return 0;
}

/*
 * Receives a message. *fd is -1 if it has no descriptor, also after an error. Errors: -ECONNRESET (the connection has ended),
 * -ETIMEDOUT, -EPROTO.
 */
static int receive_message(int from, struct message *message, int *fd)
{
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec vector = {message, sizeof *message};
    struct msghdr head = {.msg_iov = &vector,
                          .msg_iovlen = 1,
                          .msg_control = &control,
                          .msg_controllen = sizeof control};
    ssize_t count;
    *fd = -1;
    do
        count = recvmsg(from, &head, MSG_CMSG_CLOEXEC | MSG_WAITALL);
    while (count < 0 && errno == EINTR);
    struct cmsghdr *first = CMSG_FIRSTHDR(&head);
    if (count > 0 && first != NULL && first->cmsg_type == SCM_RIGHTS &&
        first->cmsg_len == CMSG_LEN(sizeof(int)))
        memcpy(fd, CMSG_DATA(first), sizeof *fd);
    if (count == (ssize_t)sizeof *message &&
        memchr(message->name, '\0', sizeof message->name) != NULL)
        return 0;
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
    if (count < 0 && errno == EAGAIN)
        return -ETIMEDOUT;
    return count == 0 || (count < 0 && errno == ECONNRESET) ? -ECONNRESET : -EPROTO;
}

static bool keep_passed(struct handover *handover, const char *name, int fd)
{
    size_t size = strlen(name) + 1;
    struct passed *passed = malloc(sizeof *passed + size);
    if (passed == NULL)
        return false;
    passed->fd = fd;
    memcpy(passed->name, name, size);
    passed->next = handover->passed;
    handover->passed = passed;
    return true;
}

static void close_passed(struct handover *handover)
{
    for (struct passed *passed; (passed = handover->passed) != NULL;) {
        handover->passed = passed->next;
        close(passed->fd);
        free(passed);
    }
    if (handover->predecessor >= 0)
        close(handover->predecessor);
    handover->predecessor = -1;
}

/* Errors: -ECONNRESET (the connection has ended), -ETIMEDOUT, -EPROTO. */
static int receive_sockets(struct handover *handover)
{
    struct message message;
    for (;;) {
        int fd;
        int status = receive_message(handover->predecessor, &message, &fd);
        if (status < 0)
            return status;
        if (message.kind == 'e' && fd < 0)
            return bide_descriptor_is_open(&handover->listener) ? 0 : -EPROTO;
        if (message.kind == 'p' && fd >= 0 && !bide_descriptor_is_open(&handover->listener)) {
            bide_descriptor_init(&handover->listener, fd);
        } else if (message.kind != 'l' || fd < 0 || !keep_passed(handover, message.name, fd)) {
            if (fd >= 0)
                close(fd);
            return -EPROTO;
        }
    }
}

static int take_over_or_listen(struct handover *handover)
{
    int status = connect_to_predecessor(handover);
    if (status == 0 && handover->predecessor >= 0) {
        status = receive_sockets(handover);
        if (status < 0) {
            close_passed(handover);
            bide_close(&handover->listener);
        }
        handover->is_borrowed = status == 0;
        return status == 0 ? bide_listen_path_adopt(&handover->where) : status;
    }
    if (status == 0)
        status = bide_listen_path_open(&handover->where, 0600, HANDOVER_BACKLOG);
    if (status >= 0)
        bide_descriptor_init(&handover->listener, status);
    return status < 0 ? status : 0;
}

static const char *handover_error(int status)
{
    if (status == -ECONNRESET || status == -EPROTO)
        return "the process that listens there passes no sockets on";
    if (status == -ETIMEDOUT)
        return "the process that listens there does not answer, or serves another successor";
    if (status == -EPERM)
        return "the process that listens there is another user's";
    return strerror(-status);
}

int handover_begin(struct handover *handover)
{
    const struct timespec pause = {.tv_nsec = LISTEN_PAUSE};
    if (handover->path == NULL)
        return 0;
    int status = bide_listen_path_init(&handover->where, handover->path);
    if (status == 0)
        status = take_over_or_listen(handover);
    /* (a killed process: it may have passed some sockets, and its io_uring has the path's for a moment: ../common/listening.h) */
    for (int i = 1; i < LISTEN_TRIES && (status == -ECONNRESET || status == -EADDRINUSE); i++) {
        nanosleep(&pause, NULL);
        status = take_over_or_listen(handover);
    }
    if (status < 0)
        fprintf(stderr, "proxy: %s: %s\n", handover->path, handover_error(status));
    return status;
}

int handover_use(struct handover *handover, const char *name)
{
    for (struct passed **link = &handover->passed; *link != NULL; link = &(*link)->next) {
        struct passed *passed = *link;
        if (strcmp(passed->name, name) == 0) {
            int fd = passed->fd;
            *link = passed->next;
            free(passed);
            return fd;
        }
    }
    return -1;
}

/* (an error means that the predecessor has ended: it closes the connection at no other time) */
void handover_ready(struct handover *handover)
{
    if (handover->predecessor >= 0)
        (void)send(handover->predecessor, &ready, 1, MSG_NOSIGNAL);
    handover->is_borrowed = false;
    close_passed(handover);
}

/* ---- The predecessor ---- */

/* (the buffer of a new connection has room for those of 100 listeners and more) */
static bool pass_message(int to, char kind, const char *name, int fd)
{
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control;
    struct message message = {.kind = kind};
    struct iovec vector = {&message, sizeof message};
    struct msghdr head = {.msg_iov = &vector, .msg_iovlen = 1};
    strcpy(message.name, name);
    memset(&control, 0, sizeof control);
    if (fd >= 0) {
        head.msg_control = &control;
        head.msg_controllen = sizeof control;
        control.head = (struct cmsghdr){
            .cmsg_len = CMSG_LEN(sizeof fd), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
        memcpy(CMSG_DATA(&control.head), &fd, sizeof fd);
    }
    return sendmsg(to, &head, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)sizeof message;
}

/* All at once, so that no reload comes between. */
static bool pass_sockets(struct handover *handover)
{
    int to = bide_descriptor_fd(&handover->successor);
    if (!is_own_process(to) || handover->program->is_stopping ||
        !pass_message(to, 'p', "", bide_descriptor_fd(&handover->listener)))
        return false;
    for (struct listener *at = handover->program->listeners; at != NULL; at = at->next) {
        if (!at->is_shutting_down && bide_descriptor_is_open(&at->server.listener) &&
            strlen(at->listen->name) < HANDOVER_NAME &&
            !pass_message(to, 'l', at->listen->name, bide_descriptor_fd(&at->server.listener)))
            return false;
    }
    return pass_message(to, 'e', "", -1);
}

/* Without a limit of time: a successor that was given up could become ready after that, and both would stay. */
static bide_awaiter *await_ready(struct handover *handover)
{
    handover->answer = '\0';
    return bide_recv(&handover->io, &handover->successor, &handover->answer, 1);
}

bide_coroutine(handover_body)
{
    bide_begin(handover_body, struct handover * self);
    while (!self->is_passed && bide_descriptor_is_open(&self->listener)) {
        bide_await_status(self->status,
                          bide_accept(&self->io, &self->listener, &self->successor, NULL));
        if (bide_stop_requested(bide_this_context()->stop) || self->status == -EPIPE)
            break;
        if (self->status < 0) { /* (no descriptor) */
            bide_await(bide_sleep_for(&self->pause, ACCEPT_PAUSE));
            continue;
        }
        if (pass_sockets(self)) {
            self->is_passing = true;
            bide_await_status(self->status, await_ready(self));
            if (bide_stop_requested(bide_this_context()->stop))
                break; /* 6 */
            self->is_passed = self->status == 0 && self->answer == ready;
            self->is_passing = false;
        }
        bide_close(&self->successor);
        if (self->program->is_stopping)
            handover_stop(self);
    }
    if (self->is_passed) {
        bide_close(&self->listener); /* 4 */
        bide_auto_event_set(&self->program->signals.wakeup);
    }
    bide_return(0);
    bide_finally();
    bide_close(&self->successor);
    bide_end();
}

bide_awaiter *handover_run(struct handover *handover, struct program *program)
{
    handover->program = program;
    return bide_task_init(&handover->task, &handover_body);
}

void handover_stop(struct handover *handover)
{
    if (handover->path == NULL || handover->is_passing || handover->is_passed)
        return;
    bide_close(&handover->listener);
    bide_listen_path_remove(&handover->where);
}

void handover_end(struct handover *handover)
{
    if (handover->path == NULL)
        return;
    close_passed(handover);
    bide_close(&handover->listener);
    if (handover->is_passing || handover->is_passed || handover->is_borrowed)
        bide_listen_path_destroy(&handover->where);
    else
        bide_listen_path_remove(&handover->where);
}

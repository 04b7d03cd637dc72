/*
 * Looking names up by c-ares, on the loop.
 *
 *     channel    of c-ares, one for each look-up: its queries, its sockets, their times
 *     polled     an epoll descriptor with the channel's sockets, which the loop polls
 *
 * 1. The channel belongs to one coroutine, which alone calls it. So it needs no lock; and to cut a
 *    look-up short is to destroy its channel, which touches no other look-up.
 * 2. c-ares says which sockets it waits for, and for what, before it returns to the coroutine. So
 *    `polled` has exactly these whenever the coroutine waits. A socket is taken out before it is
 *    closed.
 * 3. c-ares calls back inside the coroutine's calls alone, and those are made in the coroutine's
 *    body, at the beginning of the look-up, after a wait, and when it is destroyed. At the latter
 *    `operation` is NULL already, so nothing is told.
 * 4. Both families are asked at once, by a request each. So the answer for one is known before that
 *    for the other.
 * 5. c-ares knows of a socket that could not be had only that no server was reached. So sockets are
 *    opened here, and the system's error is kept.
 *
 * What blocks: /etc/resolv.conf, /etc/hosts and the like are read when a look-up begins. These are
 * small files of the machine's own. No call waits for a server.
 */
#define _GNU_SOURCE
#include "names.h"

#include <errno.h>

#if BIDE_HAS_CARES

#include "bide/coroutine.h"
#include "bide/file.h"
#include "bide/handle.h"
#include "bide/sleep.h"
#include "bide/stop.h"

#include "../io/operation.h"

#include <ares.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/uio.h>
#include <unistd.h>

/* (newer versions have other names for calls that 1.18 has only so) */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

enum { MAX_FAMILY = BIDE_RESOLVE_MAX / 2, MAX_READY = 8 };

typedef struct bide_cares_look_up_ cares;

/* One family's answer. */
struct answer {
    cares *all;
    int status; /* negative errno, or 0 */
};

struct bide_cares_look_up_ {
    bide_task task;
    bide_resolve_operation *operation; /* NULL: nobody is to be told any more: 3 */
    ares_channel channel;              /* NULL: none yet */
    bide_descriptor polled;
    bide_io_operation poll;
    bide_with_deadline_operation limited;
    struct answer answers[2]; /* version 4, version 6 */
    int error;                /* of the system; 0: none: 5 */
    int broken;               /* what `polled` could not be told; 0: nothing */
    int status;
    uint64_t now;
};

/* ---- Sockets: 5 ---- */

static ares_socket_t open_socket(int family, int type, int protocol, void *argument)
{
    cares *it = argument;
    int fd = socket(family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, protocol);
    if (fd < 0 && errno != EAFNOSUPPORT)
        it->error = -errno;
    return fd;
}

static int close_socket(ares_socket_t fd, void *argument)
{
    (void)argument;
    return close(fd);
}

static int connect_socket(ares_socket_t fd, const struct sockaddr *address, ares_socklen_t length,
                          void *argument)
{
    (void)argument;
    return connect(fd, address, length);
}

static ares_ssize_t receive(ares_socket_t fd, void *buffer, size_t size, int flags,
                            struct sockaddr *address, ares_socklen_t *length, void *argument)
{
    (void)argument;
    return recvfrom(fd, buffer, size, flags, address, length);
}

static ares_ssize_t send_pieces(ares_socket_t fd, const struct iovec *pieces, int count,
                                void *argument)
{
    struct msghdr message = {.msg_iov = (struct iovec *)(uintptr_t)pieces,
                             .msg_iovlen = (size_t)count};
    (void)argument;
    return sendmsg(fd, &message, MSG_NOSIGNAL);
}

static const struct ares_socket_functions socket_functions = {
    .asocket = open_socket,
    .aclose = close_socket,
    .aconnect = connect_socket,
    .arecvfrom = receive,
    .asendv = send_pieces,
};

/* What c-ares waits for on a socket has changed: 2. */
static void change_socket(void *argument, ares_socket_t fd, int input, int output)
{
    cares *it = argument;
    struct epoll_event event = {.events = (input ? EPOLLIN : 0u) | (output ? EPOLLOUT : 0u),
                                .data.fd = fd};
    if (!input && !output) {
        (void)epoll_ctl(it->polled.fd, EPOLL_CTL_DEL, fd, NULL);
        return;
    }
    if (epoll_ctl(it->polled.fd, EPOLL_CTL_MOD, fd, &event) != 0 &&
        (errno != ENOENT || epoll_ctl(it->polled.fd, EPOLL_CTL_ADD, fd, &event) != 0))
        it->broken = -errno;
}

/* ---- Answers ---- */

static int error_of(const cares *it, int status)
{
    switch (status) {
    case ARES_SUCCESS:
        return 0;
    case ARES_ENODATA:
    case ARES_ENOTFOUND:
    case ARES_ENONAME:
    case ARES_EBADNAME:
        return -ENOENT;
    case ARES_ETIMEOUT:
    case ARES_ECONNREFUSED:
    case ARES_ESERVFAIL: /* (1.18 says of these that it was refused) */
    case ARES_EREFUSED:
    case ARES_ENOTIMP:
        return it->error != 0 ? it->error : -EAGAIN;
    case ARES_ENOMEM:
        return -ENOMEM;
    default:
        return -EREMOTEIO;
    }
}

static bool has(const bide_resolve_operation *operation, const bide_address *address)
{
    for (unsigned i = 0; i < operation->count; i++) {
        if (operation->addresses[i].length == address->length &&
            memcmp(&operation->addresses[i].any, &address->any, address->length) == 0)
            return true;
    }
    return false;
}

static void add(bide_resolve_operation *operation, const struct ares_addrinfo_node *found)
{
    bide_address *address = &operation->addresses[operation->count];
    if (found->ai_addrlen > sizeof address->any)
        return;
    memset(address, 0, sizeof *address);
    address->length = (socklen_t)found->ai_addrlen;
    memcpy(&address->any, found->ai_addr, found->ai_addrlen);
    if (found->ai_family == AF_INET)
        address->any.v4.sin_port = htons(operation->port);
    else if (found->ai_family == AF_INET6)
        address->any.v6.sin6_port = htons(operation->port);
    else
        return;
    if (!has(operation, address))
        operation->count++;
}

static void take_answer(void *argument, int status, int timeouts, struct ares_addrinfo *found)
{
    struct answer *answer = argument;
    cares *it = answer->all;
    bide_resolve_operation *operation = it->operation;
    (void)timeouts;
    if (operation != NULL) {
        unsigned before = operation->count;
        answer->status = error_of(it, status);
        for (const struct ares_addrinfo_node *at = found != NULL ? found->nodes : NULL;
             at != NULL && operation->count - before < MAX_FAMILY; at = at->ai_next)
            add(operation, at);
        if (answer->status == 0 && operation->count == before)
            answer->status = -ENOENT;
        operation->answered |= answer == &it->answers[0] ? BIDE_ANSWERED_V4_ : BIDE_ANSWERED_V6_;
        if (answer == &it->answers[0])
            operation->answered_at = it->now;
    }
    if (found != NULL)
        ares_freeaddrinfo(found);
}

static bool is_answered(const cares *it)
{
    return it->operation->answered == (BIDE_ANSWERED_V4_ | BIDE_ANSWERED_V6_);
}

/* What both answers come to. That a name does not exist is said if nothing else went wrong. */
static int outcome(const cares *it)
{
    int v4 = it->answers[0].status, v6 = it->answers[1].status;
    return it->operation->count != 0 ? 0 : v6 == -ENOENT ? v4 : v6;
}

/* ---- The look-up ---- */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int library_status;

static void begin_library(void)
{
    library_status = ares_library_init(ARES_LIB_INIT_ALL);
}

static int open_channel(ares_channel *channel, const bide_names *names, cares *it)
{
    struct ares_options options = {.timeout = (int)names->timeout, .tries = (int)names->tries};
    int mask = 0;
    pthread_once(&once, begin_library);
    if (library_status != ARES_SUCCESS)
        return -ENOMEM;
    if (it != NULL) {
        options.sock_state_cb = change_socket;
        options.sock_state_cb_data = it;
        mask |= ARES_OPT_SOCK_STATE_CB;
    }
    if (names->timeout != 0)
        mask |= ARES_OPT_TIMEOUTMS;
    if (names->tries != 0)
        mask |= ARES_OPT_TRIES;
    errno = 0;
    int status = ares_init_options(channel, &options, mask);
    if (status != ARES_SUCCESS) {
        *channel = NULL;
        return status == ARES_ENOMEM ? -ENOMEM : errno != 0 ? -errno : -EREMOTEIO;
    }
    if (names->servers[0] == '\0')
        return 0;
    status = ares_set_servers_ports_csv(*channel, names->servers);
    return status == ARES_SUCCESS ? 0 : status == ARES_ENOMEM ? -ENOMEM : -EINVAL;
}

int bide_names_cares_check_(const bide_names *names)
{
    ares_channel channel = NULL;
    int status = open_channel(&channel, names, NULL);
    if (channel != NULL)
        ares_destroy(channel);
    return status;
}

static int begin(cares *it, const bide_context *context)
{
    static const int families[2] = {AF_INET, AF_INET6};
    int fd = epoll_create1(EPOLL_CLOEXEC);
    if (fd < 0)
        return -errno;
    bide_descriptor_init(&it->polled, fd);
    int status = open_channel(&it->channel, it->operation->names, it);
    if (status != 0)
        return status;
    ares_set_socket_functions(it->channel, &socket_functions, it);
    it->now = bide_now(context);
    for (int i = 1; i >= 0; i--) { /* version 6 is asked for first: RFC 8305, 3 */
        struct ares_addrinfo_hints wanted = {.ai_family = families[i], .ai_socktype = SOCK_STREAM};
        it->answers[i].all = it;
        ares_getaddrinfo(it->channel, it->operation->host, NULL, &wanted, take_answer,
                         &it->answers[i]);
    }
    return it->broken;
}

/* When c-ares wants to be called whether or not anything has come. */
static uint64_t next_time(cares *it, const bide_context *context)
{
    struct timeval left, *first = ares_timeout(it->channel, NULL, &left);
    if (first == NULL)
        return BIDE_FOREVER;
    return bide_now(context) + (uint64_t)first->tv_sec * 1000000000 +
           (uint64_t)first->tv_usec * 1000;
}

static bide_awaiter *wait(cares *it, const bide_context *context)
{
    return bide_with_deadline(&it->limited, next_time(it, context),
                              bide_poll(&it->poll, &it->polled, POLLIN));
}

static int go_on(cares *it, const bide_context *context)
{
    struct epoll_event ready[MAX_READY];
    int count = epoll_wait(it->polled.fd, ready, MAX_READY, 0);
    it->now = bide_now(context);
    for (int i = 0; i < count; i++) {
        bool has_failed = (ready[i].events & (EPOLLERR | EPOLLHUP)) != 0;
        bool input = has_failed || (ready[i].events & EPOLLIN) != 0;
        bool output = has_failed || (ready[i].events & EPOLLOUT) != 0;
        ares_process_fd(it->channel, input ? ready[i].data.fd : ARES_SOCKET_BAD,
                        output ? ready[i].data.fd : ARES_SOCKET_BAD);
    }
    ares_process_fd(it->channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD); /* what has taken too long */
    return it->broken;
}

bide_coroutine(cares_body)
{
    bide_begin(cares_body, cares * self);
    self->status = begin(self, bide_this_context());
    while (self->status == 0 && !is_answered(self)) {
        if (self->operation->answered != 0 && self->operation->news != NULL)
            bide_auto_event_set(self->operation->news);
        bide_await_status(self->status, wait(self, bide_this_context()));
        if (bide_stop_requested(bide_this_context()->stop))
            bide_return(bide_stop_reason(bide_this_context()->stop));
        if (self->status == 0 || self->status == -ETIMEDOUT)
            self->status = go_on(self, bide_this_context());
    }
    bide_return(self->status != 0 ? self->status : outcome(self));
    bide_end();
}

int bide_names_cares_create_(bide_resolve_operation *operation, const bide_context *context)
{
    bide_io *io = io_of_context(context);
    if (io == NULL || io_calls(io) != NULL) /* a number of the system means nothing in memory */
        return -ENOTSUP;
    cares *it = calloc(1, sizeof *it);
    if (it == NULL)
        return -ENOMEM;
    bide_descriptor_init_closed(&it->polled);
    it->operation = operation;
    operation->cares = it;
    return 0;
}

bide_awaiter *bide_names_cares_run_(cares *it)
{
    return bide_task_init(&it->task, &cares_body);
}

void bide_names_cares_destroy_(cares *it)
{
    it->operation = NULL; /* 3 */
    if (it->channel != NULL)
        ares_destroy(it->channel);
    bide_close(&it->polled);
    free(it);
}

#else

int bide_names_cares_check_(const bide_names *names)
{
    (void)names;
    return -ENOTSUP;
}

int bide_names_cares_create_(bide_resolve_operation *operation, const bide_context *context)
{
    (void)operation;
    (void)context;
    return -ENOTSUP;
}

bide_awaiter *bide_names_cares_run_(struct bide_cares_look_up_ *look_up)
{
    (void)look_up;
    return NULL;
}

void bide_names_cares_destroy_(struct bide_cares_look_up_ *look_up)
{
    (void)look_up;
}

#endif

/*
 * Looking up names with c-ares, on the loop.
 *
 *     channel    of c-ares, one for each look-up: its queries, its sockets, their timeouts
 *     polled     an epoll descriptor with the channel's sockets; the loop polls it
 *
 * A look-up belongs to its loop's thread.
 *
 * 1. One coroutine owns the channel and is the only caller of c-ares for it. So the channel needs no
 *    lock. Destroying the channel cancels the look-up and affects no other look-up.
 * 2. Before c-ares returns to the coroutine, it has reported which sockets it waits for, and for
 *    which events. So whenever the coroutine waits, `polled` contains exactly those. A socket is
 *    removed from `polled` before it is closed.
 * 3. c-ares calls back only within the coroutine's calls. These are made when the look-up starts,
 *    after a wait, and when it is destroyed. In the last case `operation` is already NULL, so no
 *    answer is stored.
 * 4. Both families are queried at once, by a request each. So one family's answer may arrive before
 *    the other's.
 *    Each walks the search list of resolv.conf by itself, and stops at the first name that has an
 *    address of its family. Both answers have to be of one name: otherwise a name with version 4 alone
 *    gets another machine's address of version 6. So each answer has the rank of its name in the list.
 *    An answer of the first name is used at once. Another one waits for the other family's, and is
 *    dropped if that is of an earlier name, or fails: then an earlier name might have had an address.
 * 5. If a socket cannot be opened, c-ares reports only that no server was reached. So sockets are
 *    opened here, and the system's error is kept.
 * 6. If all servers respond with an error, 1.18 too reports only that none was reached. So the response
 *    codes of the messages are noted. They choose the error, and nothing else.
 *
 * Blocking: when a look-up starts, c-ares reads /etc/resolv.conf, /etc/hosts and the like, which are
 * small local files. No call waits for a server.
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
#include <strings.h>
#include <sys/epoll.h>
#include <sys/uio.h>
#include <unistd.h>

/* c-ares has renamed calls since 1.18, which knows only the old names. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

enum { CARES_FAMILY_MAX = BIDE_RESOLVE_MAX / 2, CARES_READY_MAX = 8 };

typedef struct bide_cares_resolve_ cares_resolve;

/* One family's answer. */
struct cares_answer {
    cares_resolve *all;
    int status; /* negative errno, or 0 */
    bool has_come;
    struct ares_addrinfo *found; /* not used so far; or NULL: 4 */
    unsigned rank;               /* of its name, if status is 0 */
};

struct bide_cares_resolve_ {
    bide_task task;
    bide_resolve_operation *operation; /* NULL while the look-up is destroyed: 3 */
    ares_channel channel;              /* NULL: not opened */
    bide_descriptor polled;
    bide_io_operation poll;
    bide_with_deadline_operation limited;
    struct cares_answer answers[2]; /* version 4, version 6 */
    int error;                      /* the system's, for a socket: 5; or 0 */
    int refusal;                    /* what the last error of a server means: 6; or 0 */
    bool is_starting;               /* what is answered now is of /etc/hosts and the like */
    int broken;                     /* the error of a failed update of `polled`, or 0 */
    int status;
    uint64_t now;
};

/* ---- Sockets: 5 ---- */

static ares_socket_t cares_open_socket(int family, int type, int protocol, void *argument)
{
    cares_resolve *it = argument;
    int fd = socket(family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, protocol);
    if (fd < 0 && errno != EAFNOSUPPORT)
        it->error = -errno;
    return fd;
}

static int cares_close_socket(ares_socket_t fd, void *argument)
{
    (void)argument;
    return close(fd);
}

static int cares_connect_socket(ares_socket_t fd, const struct sockaddr *address,
                                ares_socklen_t length, void *argument)
{
    (void)argument;
    return connect(fd, address, length);
}

/* Notes the response code of a message that is an error of the server: 6. */
static void cares_note_refusal(cares_resolve *it, const unsigned char *message, ares_ssize_t size)
{
    enum { FLAGS = 3, CODE = 15, SERVER_FAILS = 2, NOT_IMPLEMENTED = 4, REFUSED = 5 };
    unsigned code = size > FLAGS ? message[FLAGS] & (unsigned)CODE : 0;
    if (code == SERVER_FAILS)
        it->refusal = -EREMOTEIO;
    else if (code == NOT_IMPLEMENTED || code == REFUSED)
        it->refusal = -EACCES;
}

static ares_ssize_t cares_receive(ares_socket_t fd, void *buffer, size_t size, int flags,
                                  struct sockaddr *address, ares_socklen_t *length, void *argument)
{
    ares_ssize_t count = recvfrom(fd, buffer, size, flags, address, length);
    if (address != NULL) /* (only for datagrams, which are whole messages) */
        cares_note_refusal(argument, buffer, count);
    return count;
}

static ares_ssize_t cares_send_vectors(ares_socket_t fd, const struct iovec *vectors, int count,
                                       void *argument)
{
    struct msghdr message = {.msg_iov = (struct iovec *)(uintptr_t)vectors,
                             .msg_iovlen = (size_t)count};
    (void)argument;
    return sendmsg(fd, &message, MSG_NOSIGNAL);
}

static const struct ares_socket_functions cares_socket_functions = {
    .asocket = cares_open_socket,
    .aclose = cares_close_socket,
    .aconnect = cares_connect_socket,
    .arecvfrom = cares_receive,
    .asendv = cares_send_vectors,
};

/* c-ares has changed the events that it waits for on a socket: 2. */
static void cares_update_polled(void *argument, ares_socket_t fd, int input, int output)
{
    cares_resolve *it = argument;
    struct epoll_event event = {.events = (input ? EPOLLIN : 0u) | (output ? EPOLLOUT : 0u),
                                .data.fd = fd};
    if (!input && !output) {
        (void)epoll_ctl(bide_descriptor_fd(&it->polled), EPOLL_CTL_DEL, fd, NULL);
        return;
    }
    if (epoll_ctl(bide_descriptor_fd(&it->polled), EPOLL_CTL_MOD, fd, &event) != 0 &&
        (errno != ENOENT ||
         epoll_ctl(bide_descriptor_fd(&it->polled), EPOLL_CTL_ADD, fd, &event) != 0))
        it->broken = -errno;
}

/* ---- Answers ---- */

static int cares_error_of(const cares_resolve *it, int status)
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
        return it->error != 0 ? it->error : -EAGAIN;
    case ARES_ECONNREFUSED: /* also, in 1.18, after responses that are errors: 6 */
        return it->error != 0 ? it->error : it->refusal != 0 ? it->refusal : -EAGAIN;
    case ARES_EREFUSED:
    case ARES_ENOTIMP:
        return -EACCES;
    case ARES_ENOMEM:
        return -ENOMEM;
    default:
        return -EREMOTEIO;
    }
}

static bool cares_has_address(const bide_resolve_operation *operation, const bide_address *address)
{
    for (unsigned i = 0; i < operation->count; i++) {
        if (operation->addresses[i].length == address->length &&
            memcmp(&operation->addresses[i].any, &address->any, address->length) == 0)
            return true;
    }
    return false;
}

static void cares_add_address(bide_resolve_operation *operation,
                              const struct ares_addrinfo_node *found)
{
    bide_assert(operation->count < BIDE_RESOLVE_MAX);
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
    if (!cares_has_address(operation, address))
        operation->count++;
}

/* ---- Names of the search list: 4 ---- */

enum { CARES_OF_FILES = 0, CARES_FIRST = 1 }; /* ranks */

static bool cares_is_joined(const char *name, const char *host, size_t length, const char *domain)
{
    return strncasecmp(name, host, length) == 0 &&
           (domain[0] == '\0' ? name[length] == '\0'
                              : name[length] == '.' && strcasecmp(name + length + 1, domain) == 0);
}

/* The rank of a name that was looked up for the host; names that the list does not have are first. */
static unsigned cares_rank(const cares_resolve *it, const char *name)
{
    const char *host = it->operation->host;
    size_t length = strlen(host);
    bool is_absolute = host[length - 1] == '.';
    struct ares_options options;
    int mask = 0, dots = 0;
    unsigned rank = CARES_FIRST;
    if (name == NULL || ares_save_options(it->channel, &options, &mask) != ARES_SUCCESS)
        return CARES_FIRST;
    for (const char *at = host; *at != '\0'; at++)
        dots += *at == '.';
    bool is_first_as_it_is = is_absolute || dots >= options.ndots;
    if (is_absolute)
        length--;
    if (!cares_is_joined(name, host, length, "")) {
        for (int i = 0; i < options.ndomains; i++) {
            if (cares_is_joined(name, host, length, options.domains[i]))
                rank = CARES_FIRST + is_first_as_it_is + (unsigned)i;
        }
    } else if (!is_first_as_it_is) {
        rank = CARES_FIRST + (unsigned)options.ndomains;
    }
    ares_destroy_options(&options);
    return rank;
}

static void cares_drop(struct cares_answer *answer)
{
    if (answer->found != NULL)
        ares_freeaddrinfo(answer->found);
    answer->found = NULL;
}

/* Adds the addresses of an answer to the operation's. */
static void cares_use(struct cares_answer *answer)
{
    cares_resolve *it = answer->all;
    bide_resolve_operation *operation = it->operation;
    unsigned which = answer == &it->answers[0] ? BIDE_ANSWERED_V4_ : BIDE_ANSWERED_V6_;
    unsigned before = operation->count;
    bide_assert((operation->answered & which) == 0);
    for (const struct ares_addrinfo_node *at = answer->found != NULL ? answer->found->nodes : NULL;
         at != NULL && operation->count - before < CARES_FAMILY_MAX; at = at->ai_next)
        cares_add_address(operation, at);
    if (answer->status == 0 && operation->count == before)
        answer->status = -ENOENT;
    operation->answered |= which;
    if (answer == &it->answers[0])
        operation->answered_at = it->now;
    cares_drop(answer);
}

/* An answer of a name that is not the first, and the other family's, which has come: 4. */
static void cares_compare(struct cares_answer *answer, const struct cares_answer *other)
{
    if (answer->status != 0 || answer->rank <= CARES_FIRST)
        return;
    if (other->status != 0 && other->status != -ENOENT)
        answer->status = other->status;
    else if (other->status == 0 && other->rank < answer->rank)
        answer->status = -ENOENT;
    if (answer->status != 0)
        cares_drop(answer);
}

static void cares_on_answer(void *argument, int status, int timeouts, struct ares_addrinfo *found)
{
    struct cares_answer *answer = argument;
    cares_resolve *it = answer->all;
    struct cares_answer *other = &it->answers[answer == &it->answers[0] ? 1 : 0];
    (void)timeouts;
    answer->found = found;
    if (it->operation == NULL) {
        cares_drop(answer);
        return;
    }
    answer->status = cares_error_of(it, status);
    if (answer->status == 0)
        answer->rank =
            it->is_starting ? CARES_OF_FILES : cares_rank(it, found != NULL ? found->name : NULL);
    answer->has_come = true;
    if (!other->has_come) {
        if (answer->status != 0 || answer->rank <= CARES_FIRST)
            cares_use(answer);
        return;
    }
    bool other_waits = other->status == 0 && other->rank > CARES_FIRST;
    cares_compare(other, answer);
    cares_compare(answer, other);
    if (other_waits)
        cares_use(other);
    cares_use(answer);
}

static bool cares_is_answered(const cares_resolve *it)
{
    return it->operation->answered == (BIDE_ANSWERED_V4_ | BIDE_ANSWERED_V6_);
}

/* Combines both answers. -ENOENT is returned only if no other error occurred. */
static int cares_outcome(const cares_resolve *it)
{
    int v4 = it->answers[0].status, v6 = it->answers[1].status;
    return it->operation->count != 0 ? 0 : v6 == -ENOENT ? v4 : v6;
}

/* ---- The look-up ---- */

static pthread_once_t cares_once = PTHREAD_ONCE_INIT;
static int cares_library_status;

static void cares_init_library(void)
{
    cares_library_status = ares_library_init(ARES_LIB_INIT_ALL);
}

static int cares_open_channel(ares_channel *channel, const bide_names *names, cares_resolve *it)
{
    struct ares_options options = {.timeout = (int)names->timeout, .tries = (int)names->tries};
    int mask = 0;
    pthread_once(&cares_once, cares_init_library);
    if (cares_library_status != ARES_SUCCESS)
        return -ENOMEM;
    if (it != NULL) {
        options.sock_state_cb = cares_update_polled;
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
    int status = cares_open_channel(&channel, names, NULL);
    if (channel != NULL)
        ares_destroy(channel);
    return status;
}

static int cares_start(cares_resolve *it, const bide_context *context)
{
    static const int families[2] = {AF_INET, AF_INET6};
    int fd = epoll_create1(EPOLL_CLOEXEC);
    if (fd < 0)
        return -errno;
    bide_descriptor_init(&it->polled, fd);
    int status = cares_open_channel(&it->channel, it->operation->names, it);
    if (status != 0)
        return status;
    ares_set_socket_functions(it->channel, &cares_socket_functions, it);
    it->now = bide_now(context);
    it->is_starting = true;
    for (int i = 1; i >= 0; i--) { /* version 6 is queried first: RFC 8305, section 3 */
        struct ares_addrinfo_hints wanted = {.ai_family = families[i], .ai_socktype = SOCK_STREAM};
        it->answers[i].all = it;
        ares_getaddrinfo(it->channel, it->operation->host, NULL, &wanted, cares_on_answer,
                         &it->answers[i]);
    }
    it->is_starting = false;
    return it->broken;
}

/* The time at which c-ares must be called even if no socket is ready. */
static uint64_t cares_next_time(cares_resolve *it, const bide_context *context)
{
    struct timeval left, *first = ares_timeout(it->channel, NULL, &left);
    if (first == NULL)
        return BIDE_FOREVER;
    return bide_now(context) + (uint64_t)first->tv_sec * 1000000000 +
           (uint64_t)first->tv_usec * 1000;
}

static bide_awaiter *cares_wait(cares_resolve *it, const bide_context *context)
{
    return bide_with_deadline(&it->limited, cares_next_time(it, context),
                              bide_poll(&it->poll, &it->polled, POLLIN));
}

static int cares_process(cares_resolve *it, const bide_context *context)
{
    struct epoll_event ready[CARES_READY_MAX];
    int count = epoll_wait(bide_descriptor_fd(&it->polled), ready, CARES_READY_MAX, 0);
    it->now = bide_now(context);
    for (int i = 0; i < count; i++) {
        bool has_failed = (ready[i].events & (EPOLLERR | EPOLLHUP)) != 0;
        bool input = has_failed || (ready[i].events & EPOLLIN) != 0;
        bool output = has_failed || (ready[i].events & EPOLLOUT) != 0;
        ares_process_fd(it->channel, input ? ready[i].data.fd : ARES_SOCKET_BAD,
                        output ? ready[i].data.fd : ARES_SOCKET_BAD);
    }
    ares_process_fd(it->channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD); /* timeouts */
    return it->broken;
}

bide_coroutine(cares_body)
{
    bide_begin(cares_body, cares_resolve * self);
    self->status = cares_start(self, bide_this_context());
    while (self->status == 0 && !cares_is_answered(self)) {
        if (self->operation->answered != 0 && self->operation->news != NULL)
            bide_auto_event_set(self->operation->news);
        bide_await_status(self->status, cares_wait(self, bide_this_context()));
        if (bide_stop_requested(bide_this_context()->stop))
            bide_return(bide_stop_reason(bide_this_context()->stop));
        if (self->status == 0 || self->status == -ETIMEDOUT)
            self->status = cares_process(self, bide_this_context());
    }
    bide_return(self->status != 0 ? self->status : cares_outcome(self));
    bide_end();
}

int bide_names_cares_create_(bide_resolve_operation *operation, const bide_context *context)
{
    bide_io *io = io_of_context(context);
    if (io == NULL || io_calls(io) != NULL) /* a simulated loop cannot poll the system's sockets */
        return -ENOTSUP;
    cares_resolve *it = calloc(1, sizeof *it);
    if (it == NULL)
        return -ENOMEM;
    bide_descriptor_init_closed(&it->polled);
    it->operation = operation;
    operation->cares = it;
    return 0;
}

bide_awaiter *bide_names_cares_run_(cares_resolve *it)
{
    return bide_task_init(&it->task, &cares_body);
}

void bide_names_cares_destroy_(cares_resolve *it)
{
    it->operation = NULL; /* 3 */
    if (it->channel != NULL)
        ares_destroy(it->channel);
    cares_drop(&it->answers[0]);
    cares_drop(&it->answers[1]);
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

bide_awaiter *bide_names_cares_run_(struct bide_cares_resolve_ *resolve)
{
    (void)resolve;
    return NULL;
}

void bide_names_cares_destroy_(struct bide_cares_resolve_ *resolve)
{
    (void)resolve;
}

#endif

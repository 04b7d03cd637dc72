/*
 * Looking up names with c-ares, on the loop.
 *
 *     channel    of c-ares: its queries, its sockets, their timeouts. A look-up takes an idle one, or
 *                opens one; when it has ended the channel is idle again.
 *     polled     an epoll descriptor with the channel's sockets; the loop polls it
 *
 * A look-up belongs to its loop's thread.
 *
 * 1. One coroutine owns the channel and is the only caller of c-ares for it. So the channel needs no
 *    lock. Cancelling its queries cancels the look-up and affects no other look-up.
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
 * 7. An idle channel has no query, no socket and no epoll descriptor, and belongs to no loop, so a loop
 *    may end before it. It is in a slot of the names object (names_idle.h). A channel whose sockets are
 *    not all closed, that was opened before a fork, or before /etc/resolv.conf was replaced, is destroyed
 *    instead. In the child of a fork it would repeat the numbers that its parent gives to queries.
 * 8. An answer is kept in the cache for the shortest time to live of its records. Names without an
 *    address are kept for the time that the servers' SOA records give (RFC 2308), and not at all if a
 *    message without an answer has none. c-ares does not report those records, so the datagrams are
 *    searched for them as they arrive. A forged datagram can thus shorten that time, and not extend it.
 *    Nothing is kept of /etc/hosts, nor of an answer with an error for one family.
 *
 * Blocking: when a channel is opened, c-ares reads /etc/resolv.conf and the like, and when a look-up
 * starts, /etc/hosts. These are small local files. No call waits for a server.
 */
#define _GNU_SOURCE
#include "names.h"

#include <errno.h>

#if BIDE_HAS_CARES

#include "dns_message.h"

#include "bide/coroutine.h"
#include "bide/file.h"
#include "bide/handle.h"
#include "bide/sleep.h"
#include "bide/stop.h"

#include "../io/operation.h"
#include "../system/fork.h"

#include <ares.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/stat.h>
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
    uint32_t life;               /* the shortest of its records, if status is 0: 8 */
};

struct bide_cares_resolve_ {
    bide_task task;
    bide_names *names;
    bide_resolve_operation *operation; /* of addresses; NULL while the look-up is destroyed: 3 */
    bide_resolve_records_operation *records; /* of records, and `operation` is NULL; likewise */
    ares_channel channel;                    /* NULL: not opened */
    uint32_t generation;                     /* when it was opened: 7 */
    names_configuration configuration;
    uint64_t era;     /* of the cache, when its query began */
    unsigned sockets; /* open ones */
    bide_descriptor polled;
    bide_io_operation poll;
    bide_with_deadline_operation limited;
    struct cares_answer answers[2]; /* version 4, version 6; of records the first alone */
    int error;                      /* the system's, for a socket: 5; or 0 */
    int refusal;                    /* what the last error of a server means: 6; or 0 */
    bool is_starting;               /* what is answered now is of /etc/hosts and the like */
    int broken;                     /* the error of a failed update of `polled`, or 0 */
    int status;
    uint64_t now;
    uint32_t absence;      /* the shortest life of messages without an answer: 8 */
    bool has_absence;      /* there was one with a life */
    bool has_bare_absence; /* there was one without */
};

/* ---- Sockets: 5 ---- */

static ares_socket_t cares_open_socket(int family, int type, int protocol, void *argument)
{
    cares_resolve *it = argument;
    int fd = socket(family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, protocol);
    if (fd >= 0)
        it->sockets++;
    else if (errno != EAFNOSUPPORT)
        it->error = -errno;
    return fd;
}

static int cares_close_socket(ares_socket_t fd, void *argument)
{
    cares_resolve *it = argument;
    it->sockets--;
    return close(fd);
}

static int cares_connect_socket(ares_socket_t fd, const struct sockaddr *address,
                                ares_socklen_t length, void *argument)
{
    (void)argument;
    return connect(fd, address, length);
}

/* Notes the response code of a message that is an error of the server: 6. */
static void cares_note_refusal(cares_resolve *it, unsigned code)
{
    enum { SERVER_FAILS = 2, NOT_IMPLEMENTED = 4, REFUSED = 5 };
    if (code == SERVER_FAILS)
        it->refusal = -EREMOTEIO;
    else if (code == NOT_IMPLEMENTED || code == REFUSED)
        it->refusal = -EACCES;
}

/* Notes for how long a message says that something is absent: 8. */
static void cares_note_absence(cares_resolve *it, const unsigned char *message, size_t size,
                               unsigned code)
{
    enum { NO_SUCH_NAME = 3 };
    uint32_t life;
    if ((code != 0 && code != NO_SUCH_NAME) || bide_dns_is_truncated_(message))
        return;
    if (bide_dns_absence_(message, size, &life)) {
        it->absence = it->has_absence && it->absence < life ? it->absence : life;
        it->has_absence = true;
    } else if (code == NO_SUCH_NAME || !bide_dns_has_answer_(message)) {
        it->has_bare_absence = true;
    }
}

static void cares_note_message(cares_resolve *it, const unsigned char *message, ares_ssize_t size)
{
    if (size < BIDE_DNS_HEADER_)
        return;
    unsigned code = bide_dns_code_(message);
    cares_note_refusal(it, code);
    cares_note_absence(it, message, (size_t)size, code);
}

static ares_ssize_t cares_receive(ares_socket_t fd, void *buffer, size_t size, int flags,
                                  struct sockaddr *address, ares_socklen_t *length, void *argument)
{
    ares_ssize_t count = recvfrom(fd, buffer, size, flags, address, length);
    if (address != NULL) /* (only for datagrams, which are whole messages) */
        cares_note_message(argument, buffer, count);
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
    if (epoll_ctl(bide_descriptor_fd(&it->polled), EPOLL_CTL_ADD, fd, &event) != 0 &&
        (errno != EEXIST ||
         epoll_ctl(bide_descriptor_fd(&it->polled), EPOLL_CTL_MOD, fd, &event) != 0))
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

/* The shortest time to live of an answer's records: 8. */
static uint32_t cares_life(const struct ares_addrinfo *found)
{
    int life = found != NULL && found->nodes != NULL ? found->nodes->ai_ttl : 0;
    const struct ares_addrinfo_node *node = found != NULL ? found->nodes : NULL;
    const struct ares_addrinfo_cname *alias = found != NULL ? found->cnames : NULL;
    for (; node != NULL; node = node->ai_next)
        life = node->ai_ttl < life ? node->ai_ttl : life;
    for (; alias != NULL; alias = alias->next)
        life = alias->ttl < life ? alias->ttl : life;
    return life > 0 ? (uint32_t)life : 0;
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
    answer->life = cares_life(answer->found);
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
    if (it->records != NULL)
        return it->answers[0].has_come;
    return it->operation->answered == (BIDE_ANSWERED_V4_ | BIDE_ANSWERED_V6_);
}

/* Combines both answers. -ENOENT is returned only if no other error occurred. */
static int cares_outcome(const cares_resolve *it)
{
    int v4 = it->answers[0].status, v6 = it->answers[1].status;
    if (it->records != NULL)
        return v4;
    return it->operation->count != 0 ? 0 : v6 == -ENOENT ? v4 : v6;
}

/* ---- The cache: 8 ---- */

/* The answers are kept by kind: that of records, or of addresses. */
enum { CARES_KEPT_ADDRESSES = 0 };

/* An IP address that is kept: of 4 or 16 bytes. */
struct cares_kept_address {
    uint8_t size;
    uint8_t bytes[16];
};

/* For how many seconds the outcome is valid; 0: it is not kept. */
static uint32_t cares_outcome_life(const cares_resolve *it)
{
    enum { ABSENT_MAX = 3 * 3600, FOUND_MAX = 24 * 3600 };
    uint32_t life = FOUND_MAX;
    bool is_found = false;
    for (int i = 0; i < (it->records != NULL ? 1 : 2); i++) {
        const struct cares_answer *answer = &it->answers[i];
        if (answer->status == -ENOENT)
            continue;
        if (answer->status != 0 || answer->rank == CARES_OF_FILES)
            return 0;
        is_found = true;
        life = answer->life < life ? answer->life : life;
    }
    if (!is_found && (!it->has_absence || it->has_bare_absence))
        return 0;
    if (!is_found)
        life = ABSENT_MAX;
    return it->has_absence && it->absence < life ? it->absence : life;
}

static uint64_t cares_outcome_end(const cares_resolve *it)
{
    return it->now + (uint64_t)cares_outcome_life(it) * 1000000000;
}

static void cares_keep_addresses(const cares_resolve *it)
{
    struct cares_kept_address kept[BIDE_RESOLVE_MAX];
    const bide_resolve_operation *operation = it->operation;
    uint64_t end = cares_outcome_end(it);
    memset(kept, 0, sizeof kept);
    for (unsigned i = 0; i < operation->count; i++) {
        const bide_address *address = &operation->addresses[i];
        bool is_v4 = address->any.generic.sa_family == AF_INET;
        kept[i].size = is_v4 ? sizeof address->any.v4.sin_addr : sizeof address->any.v6.sin6_addr;
        memcpy(kept[i].bytes,
               is_v4 ? (const void *)&address->any.v4.sin_addr
                     : (const void *)&address->any.v6.sin6_addr,
               kept[i].size);
    }
    if (end != it->now)
        bide_names_cache_keep_(it->names->cache, it->era, CARES_KEPT_ADDRESSES, operation->host,
                               end, (const uint8_t *)kept, operation->count * sizeof *kept);
}

static void cares_read_kept_addresses(void *argument, const uint8_t *data, size_t size)
{
    bide_resolve_operation *operation = argument;
    struct cares_kept_address kept;
    for (; size != 0; size -= sizeof kept, data += sizeof kept) {
        bide_assert(size >= sizeof kept && operation->count < BIDE_RESOLVE_MAX);
        memcpy(&kept, data, sizeof kept);
        (void)bide_address_bytes(&operation->addresses[operation->count++], kept.bytes, kept.size,
                                 0);
    }
}

/* Looks for an answer in the cache. True: it is the operation's. */
static bool cares_find_addresses(bide_resolve_operation *operation, const bide_context *context)
{
    operation->count = 0;
    if (!bide_names_cache_find_(operation->resolving.names->cache, CARES_KEPT_ADDRESSES,
                                operation->host, bide_now(context), cares_read_kept_addresses,
                                operation))
        return false;
    operation->answered = BIDE_ANSWERED_V4_ | BIDE_ANSWERED_V6_;
    return true;
}

/* The message is kept; none, that there are no records. */
static void cares_keep_records(const cares_resolve *it, const uint8_t *message, size_t size)
{
    enum { SIZE_MAX_KEPT = 8192 };
    uint64_t end = cares_outcome_end(it);
    if (end != it->now && size <= SIZE_MAX_KEPT)
        bide_names_cache_keep_(it->names->cache, it->era, it->records->kind, it->records->name, end,
                               message, it->answers[0].status == 0 ? size : 0);
}

static void cares_read_kept_records(void *argument, const uint8_t *data, size_t size)
{
    uint32_t life;
    if (size != 0)
        (void)bide_dns_records_(argument, data, size, &life);
}

static bool cares_find_records(bide_resolve_records_operation *operation,
                               const bide_context *context)
{
    return bide_names_cache_find_(operation->resolving.names->cache, operation->kind,
                                  operation->name, bide_now(context), cares_read_kept_records,
                                  operation);
}

/* ---- Answers of records ---- */

static void cares_on_message(void *argument, int status, int timeouts, unsigned char *message,
                             int size)
{
    cares_resolve *it = argument;
    struct cares_answer *answer = &it->answers[0];
    (void)timeouts;
    if (it->records == NULL)
        return;
    answer->status = cares_error_of(it, status);
    answer->rank = CARES_FIRST;
    if (answer->status == 0) {
        int count = bide_dns_records_(it->records, message, (size_t)size, &answer->life);
        answer->status = count < 0 ? count : count == 0 ? -ENOENT : 0;
    }
    answer->has_come = true;
    if (answer->status == 0 || answer->status == -ENOENT)
        cares_keep_records(it, message, size > 0 ? (size_t)size : 0);
}

/* ---- Idle channels: 7 ---- */

static names_configuration cares_read_configuration(void)
{
    struct stat found;
    if (stat("/etc/resolv.conf", &found) != 0)
        return (names_configuration){.size = UINT64_MAX};
    return (names_configuration){.changed = found.st_ctim,
                                 .size = (uint64_t)found.st_size,
                                 .number = (uint64_t)found.st_ino};
}

static void cares_free(cares_resolve *it)
{
    it->operation = NULL; /* 3 */
    it->records = NULL;
    if (it->channel != NULL)
        ares_destroy(it->channel);
    free(it);
}

static bool cares_is_current(const cares_resolve *it)
{
    names_configuration now = cares_read_configuration();
    return !bide_is_inherited_(it->generation) &&
           now.changed.tv_sec == it->configuration.changed.tv_sec &&
           now.changed.tv_nsec == it->configuration.changed.tv_nsec &&
           now.size == it->configuration.size && now.number == it->configuration.number;
}

/* Takes a look-up with an idle channel. NULL: there is none. */
static cares_resolve *cares_take_idle(bide_names *names)
{
    cares_resolve *it;
    while ((it = bide_names_idle_take_(&names->idle)) != NULL && !cares_is_current(it))
        cares_free(it);
    return it;
}

/* Makes the channel of a look-up that has ended idle, or frees it. */
static void cares_give_back(cares_resolve *it, bide_names *names)
{
    if (it->channel == NULL || it->sockets != 0 || !bide_names_idle_put_(&names->idle, it))
        cares_free(it);
}

void bide_names_cares_end_(bide_names *names)
{
    cares_resolve *it;
    while ((it = bide_names_idle_take_(&names->idle)) != NULL)
        cares_free(it);
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
#ifdef ARES_OPT_QUERY_CACHE /* c-ares has a cache of its own since 1.31: off, the maximum is 0 */
    mask |= ARES_OPT_QUERY_CACHE;
#endif
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

static int cares_need_channel(cares_resolve *it)
{
    if (it->channel != NULL)
        return 0;
    it->configuration = cares_read_configuration();
    it->generation = bide_generation_;
    int status = cares_open_channel(&it->channel, it->names, it);
    if (status == 0)
        ares_set_socket_functions(it->channel, &cares_socket_functions, it);
    return status;
}

static int cares_start(cares_resolve *it, const bide_context *context)
{
    static const int families[2] = {AF_INET, AF_INET6};
    int fd = epoll_create1(EPOLL_CLOEXEC);
    if (fd < 0)
        return -errno;
    bide_descriptor_init(&it->polled, fd);
    int status = cares_need_channel(it);
    if (status != 0)
        return status;
    it->now = bide_now(context);
    it->era = bide_names_cache_begin_(it->names->cache, &it->configuration);
    if (it->records != NULL) {
        enum { CLASS_IN = 1 };
        ares_query(it->channel, it->records->name, CLASS_IN,
                   (int)bide_names_record_type_(it->records->kind), cares_on_message, it);
        return it->broken;
    }
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
        if (self->records == NULL && self->operation->answered != 0 &&
            self->operation->news != NULL)
            bide_auto_event_set(self->operation->news);
        bide_await_status(self->status, cares_wait(self, bide_this_context()));
        if (bide_stop_requested(bide_this_context()->stop))
            bide_return(bide_stop_reason(bide_this_context()->stop));
        if (self->status == 0 || self->status == -ETIMEDOUT)
            self->status = cares_process(self, bide_this_context());
    }
    if (self->status == 0 && self->records == NULL)
        cares_keep_addresses(self);
    bide_return(self->status != 0 ? self->status : cares_outcome(self));
    bide_end();
}

/* Creates a look-up. 0, or a negative errno. */
static int cares_create(cares_resolve **created, bide_names *names)
{
    cares_resolve *it = cares_take_idle(names);
    if (it == NULL)
        it = calloc(1, sizeof *it);
    if (it == NULL)
        return -ENOMEM;
    /* Everything but the channel is as in a new one. */
    bide_descriptor_init_closed(&it->polled);
    memset(it->answers, 0, sizeof it->answers);
    it->names = names;
    it->operation = NULL;
    it->records = NULL;
    it->error = it->refusal = it->broken = it->status = 0;
    it->is_starting = it->has_absence = it->has_bare_absence = false;
    it->absence = 0;
    *created = it;
    return 0;
}

/* A simulated loop cannot poll the system's sockets. */
static bool cares_may_run_in(const bide_context *context)
{
    const bide_io *io = io_of_context(context);
    return io != NULL && io_calls(io) == NULL;
}

int bide_names_cares_create_(bide_resolve_operation *operation, const bide_context *context)
{
    if (!cares_may_run_in(context))
        return -ENOTSUP;
    if (cares_find_addresses(operation, context))
        return operation->count != 0 ? 0 : -ENOENT;
    int error = cares_create(&operation->resolving.cares, operation->resolving.names);
    if (error == 0)
        operation->resolving.cares->operation = operation;
    return error;
}

int bide_names_cares_create_query_(bide_resolve_records_operation *operation,
                                   const bide_context *context)
{
    if (!cares_may_run_in(context))
        return -ENOTSUP;
    if (cares_find_records(operation, context))
        return operation->count != 0 || operation->omitted != 0 ? 0 : -ENOENT;
    int error = cares_create(&operation->resolving.cares, operation->resolving.names);
    if (error == 0)
        operation->resolving.cares->records = operation;
    return error;
}

bide_awaiter *bide_names_cares_run_(cares_resolve *it)
{
    return bide_task_init(&it->task, &cares_body);
}

void bide_names_cares_destroy_(cares_resolve *it)
{
    it->operation = NULL; /* 3 */
    it->records = NULL;
    if (it->channel != NULL)
        ares_cancel(it->channel);
    cares_drop(&it->answers[0]);
    cares_drop(&it->answers[1]);
    bide_close(&it->polled);
    cares_give_back(it, it->names);
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

int bide_names_cares_create_query_(bide_resolve_records_operation *operation,
                                   const bide_context *context)
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

void bide_names_cares_end_(bide_names *names)
{
    (void)names;
}

#endif

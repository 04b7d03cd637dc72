/*
 * A connection to a Redis server: redis.h. Calls block, on threads for that, until the link's deadline. An
 * error closes the connection.
 */
#define _GNU_SOURCE
#include "redis.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define REDIS_BACKOFF_FIRST UINT64_C(10000000)
#define REDIS_BACKOFF_MAX   UINT64_C(1000000000)

void bide_redis_link_init_(struct redis_link *link, const struct log_redis *redis, int interrupt)
{
    link->redis = redis;
    link->descriptor = -1;
    link->interrupt = interrupt;
}

void bide_redis_link_close_(struct redis_link *link)
{
    if (link->descriptor >= 0)
        close(link->descriptor);
    link->descriptor = -1;
    link->begin = link->end = link->out_size = 0;
    link->out_of_memory = false;
}

void bide_redis_link_destroy_(struct redis_link *link)
{
    bide_redis_link_close_(link);
    free(link->out);
    link->out = NULL;
    link->out_capacity = 0;
}

int bide_redis_lost_(struct redis_link *link, int status)
{
    bide_redis_link_close_(link);
    link->text[0] = '\0'; /* it is no error of the server */
    return status;
}

bool bide_redis_is_lost_(int status)
{
    switch (status) {
    case -ECONNREFUSED:
    case -ECONNRESET:
    case -EPIPE:
    case -EAGAIN: /* the server loads its data, or is a replica for the moment */
    case -ENETUNREACH:
    case -EHOSTUNREACH:
    case -EHOSTDOWN:
    case -ENETDOWN:
        return true;
    default:
        return false;
    }
}

/* ---- Waits ---- */

/* 0: it is ready, or has failed; -ECONNABORTED: too late; -ECANCELED: the handle ends. */
static int redis_link_wait(const struct redis_link *link, int descriptor, short events,
                           uint64_t until)
{
    struct pollfd waits[2] = {{.fd = descriptor, .events = events},
                              {.fd = link->interrupt, .events = POLLIN}};
    for (;;) {
        uint64_t now = bide_platform.now(), left = until > now ? until - now : 0;
        int ready = poll(waits, 2, (int)((left + 999999) / 1000000));
        if (ready < 0 && errno != EINTR)
            return -errno;
        if (ready > 0 && waits[1].revents != 0)
            return -ECANCELED;
        if (ready > 0)
            return 0;
        if (left == 0)
            return -ECONNABORTED;
    }
}

static int redis_connect_to(const struct redis_link *link, const struct addrinfo *address)
{
    int error = 0, one = 1;
    socklen_t size = sizeof error;
    int descriptor = socket(address->ai_family, address->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK,
                            address->ai_protocol);
    if (descriptor < 0)
        return -errno;
    int status = connect(descriptor, address->ai_addr, address->ai_addrlen) == 0 ? 0 : -errno;
    if (status == -EINPROGRESS || status == -EINTR) {
        status = redis_link_wait(link, descriptor, POLLOUT, link->deadline);
        if (status == 0 && getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &error, &size) < 0)
            error = errno;
        status = status == 0 ? -error : status;
    }
    if (status < 0) {
        close(descriptor);
        return status;
    }
    (void)setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    (void)setsockopt(descriptor, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof one);
    return descriptor;
}

/* A descriptor of a connection to one of the server's addresses. */
static int redis_socket(const struct redis_link *link)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
    struct addrinfo *found = NULL;
    int error = getaddrinfo(link->redis->host, link->redis->port, &hints, &found);
    if (error != 0)
        return error == EAI_MEMORY ? -ENOMEM : error == EAI_SYSTEM ? -errno : -EHOSTUNREACH;
    int status = -EHOSTUNREACH;
    for (const struct addrinfo *at = found; at != NULL && status < 0 && status != -ECANCELED;
         at = at->ai_next)
        status = redis_connect_to(link, at);
    freeaddrinfo(found);
    return status;
}

/* ---- Bytes ---- */

int bide_redis_flush_(struct redis_link *link)
{
    size_t sent = 0;
    if (link->out_of_memory)
        return bide_redis_lost_(link, -ENOMEM);
    while (sent < link->out_size) {
        ssize_t count = send(link->descriptor, link->out + sent, link->out_size - sent,
                             MSG_NOSIGNAL | MSG_DONTWAIT);
        if (count >= 0) {
            sent += (size_t)count;
            continue;
        }
        if (errno == EINTR)
            continue;
        int status = errno == EPIPE ? -ECONNRESET : -errno;
        if (status == -EAGAIN)
            status = redis_link_wait(link, link->descriptor, POLLOUT, link->deadline);
        if (status < 0)
            return bide_redis_lost_(link, status);
    }
    link->out_size = 0;
    return 0;
}

int bide_redis_fill_(struct redis_link *link)
{
    while (link->begin == link->end) {
        ssize_t count = recv(link->descriptor, link->in, sizeof link->in, MSG_DONTWAIT);
        if (count > 0) {
            link->begin = 0;
            link->end = (size_t)count;
            return 0;
        }
        int status = count == 0 ? -ECONNRESET : -errno;
        if (status == -EINTR)
            continue;
        if (status == -EAGAIN)
            status = redis_link_wait(link, link->descriptor, POLLIN, link->deadline);
        if (status < 0)
            return bide_redis_lost_(link, status);
    }
    return 0;
}

/* ---- Calls ---- */

/* "appendonly" and "appendfsync" are as the level `synced` needs them. */
static int redis_check_config(struct redis_link *link, const char *name, const char *wanted)
{
    char text[16];
    int64_t count = 0;
    bool is_nil;
    bide_redis_command_(link, 3, "CONFIG", "GET", name);
    int status = bide_redis_flush_(link);
    if (status == 0)
        status = bide_redis_read_array_(link, &count);
    if (link->descriptor < 0)
        return status;
    if (status < 0 || count != 2) {
        snprintf(link->text, sizeof link->text, "level=synced needs %s, which it does not report",
                 name);
        return -ENOTSUP;
    }
    status = bide_redis_read_text_(link, text, sizeof text, &is_nil);
    if (status == 0)
        status = bide_redis_read_text_(link, text, sizeof text, &is_nil);
    if (status < 0 || strcmp(text, wanted) == 0)
        return status;
    snprintf(link->text, sizeof link->text, "level=synced needs %s %s, it has %s", name, wanted,
             text);
    return -ENOTSUP;
}

/* Begins a connection: the password, and what the level needs. */
static int redis_greet(struct redis_link *link)
{
    const struct log_redis *redis = link->redis;
    int status = 0;
    if (redis->password[0] != '\0') {
        if (redis->user[0] != '\0')
            bide_redis_command_(link, 3, "AUTH", redis->user, redis->password);
        else
            bide_redis_command_(link, 2, "AUTH", redis->password);
        status = bide_redis_flush_(link);
        if (status == 0)
            status = bide_redis_read_ok_(link);
    }
    if (status == 0) { /* also: it is not loading, and lets this user in */
        bool is_nil;
        char type[16];
        bide_redis_command_(link, 2, "TYPE", redis->stream);
        status = bide_redis_flush_(link);
        if (status == 0)
            status = bide_redis_read_text_(link, type, sizeof type, &is_nil);
        if (status == 0 && strcmp(type, "none") != 0 && strcmp(type, "stream") != 0) {
            snprintf(link->text, sizeof link->text, "the key is a %s", type);
            status = -EEXIST;
        }
    }
    if (status == 0 && redis->log.level == BIDE_LOG_SYNCED) {
        status = redis_check_config(link, "appendonly", "yes");
        if (status == 0)
            status = redis_check_config(link, "appendfsync", "always");
    }
    if (status < 0)
        bide_redis_link_close_(link); /* replies may be left */
    else
        link->text[0] = '\0';
    return status;
}

int bide_redis_connect_(struct redis_link *link)
{
    char byte;
    link->text[0] = '\0';
    if (link->descriptor >= 0) { /* the server may have closed it since, or said why it will */
        ssize_t count = recv(link->descriptor, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
        if (link->begin == link->end && count < 0 && (errno == EAGAIN || errno == EINTR))
            return 0;
        bide_redis_link_close_(link);
    }
    int descriptor = redis_socket(link);
    if (descriptor < 0)
        return descriptor;
    link->descriptor = descriptor;
    return redis_greet(link);
}

int bide_redis_begin_(struct redis_link *link)
{
    link->deadline = bide_platform.now() + link->redis->timeout;
    for (uint64_t pause = REDIS_BACKOFF_FIRST;;) {
        int status = bide_redis_connect_(link);
        uint64_t again = bide_platform.now() + pause;
        if (!bide_redis_is_lost_(status) || again >= link->deadline)
            return status;
        int waited = redis_link_wait(link, -1, 0, again);
        if (waited != -ECONNABORTED)
            return waited < 0 ? waited : status;
        pause = pause * 2 < REDIS_BACKOFF_MAX ? pause * 2 : REDIS_BACKOFF_MAX;
    }
}

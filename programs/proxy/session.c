/*
 * One connection of a client.
 */
#define _GNU_SOURCE
#include "session.h"
#include "http.h"
#include "tcp.h"

#include <bide/coroutine.h>
#include <bide/sleep.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LEAVE_TIMEOUT UINT64_C(1000000000)

/* ---- Addresses ---- */

/* Version 4 that is wrapped in version 6, as a listener for both has it, is version 4. */
static void unwrap(bide_address *address)
{
    if (address->length == 0 || address->any.generic.sa_family != AF_INET6 ||
        !IN6_IS_ADDR_V4MAPPED(&address->any.v6.sin6_addr))
        return;
    unsigned char v4[4];
    memcpy(v4, address->any.v6.sin6_addr.s6_addr + 12, sizeof v4);
    (void)bide_address_bytes(address, v4, sizeof v4, bide_address_port(address));
}

const char *session_client(const struct session *session, char text[BIDE_ADDRESS_TEXT])
{
    if (session->client.length <= sizeof(sa_family_t)) /* it is gone, or has none */
        return session->client.length == 0 ? "-" : "unix:";
    bide_address_print(&session->client, text, BIDE_ADDRESS_TEXT);
    return text;
}

const char *session_reason(int error)
{
    return error >= 0                ? "done"
           : error == -ECANCELED     ? "stopped"
           : error == -EHOSTDOWN     ? "no server is up"
                                     : strerror(-error);
}

/* ---- Its beginning ---- */

/* Will anybody ask for the addresses? A call of the system each. */
static bool needs_addresses(const struct session *self)
{
    const struct listen *listen = self->listen;
    return listen->mode == MODE_HTTP || listen->accepts_proxy ||
           listen->routes->backend->send_proxy != 0 || log_is_on(&self->program->log);
}

static void take_addresses(struct session *self)
{
    self->client.length = self->local.length = 0;
    if (!needs_addresses(self))
        return;
    if (bide_peer_address(&self->connection.socket, &self->client) != 0)
        self->client.length = 0;
    unwrap(&self->client);
    if (self->listen->mode == MODE_TCP && self->listen->routes->backend->send_proxy == 0)
        return;
    if (bide_local_address(&self->connection.socket, &self->local) != 0)
        self->local.length = 0;
    unwrap(&self->local);
}

/* False: it comes too soon after others. */
static bool start(struct session *self, const bide_context *context)
{
    self->listener = self->connection.server->argument;
    self->program = self->listener->program;
    self->listen = self->listener->listen;
    self->configuration = self->listener->configuration;
    configuration_keep(self->configuration);
    self->begun = bide_now(context);
    self->part = NULL;
    self->header = NULL;
    self->secure = NULL;
    self->status = 0;
    self->end.socket = &self->connection.socket;
    self->end.stream = bide_socket_stream(&self->connection.socket);
    self->program->counts.connections++;
    take_addresses(self);
    return self->listen->rate == 0 ||
           bide_token_bucket_try_take(&self->listener->bucket, context, 1);
}

static void refuse(struct session *self, const char *why)
{
    char client[BIDE_ADDRESS_TEXT];
    self->program->counts.refused++;
    log_line(&self->program->log, "refused %s %s %s", session_client(self, client),
             self->listen->name, why);
}

/* ---- The PROXY protocol ---- */

/* Is the peer one that may speak for others? */
static bool is_trusted(const struct session *self)
{
    return self->listen->trusted == NULL || network_contains(self->listen->trusted, &self->client);
}

/* Looks at what comes next, and takes nothing. */
static bide_awaiter *peek(struct session *self)
{
    self->vector = (struct iovec){self->peeked, sizeof self->peeked};
    memset(&self->message, 0, sizeof self->message);
    self->message.msg_iov = &self->vector;
    self->message.msg_iovlen = 1;
    return bide_with_deadline(
        &self->limited, self->begun + self->listen->header_timeout,
        bide_recvmsg(&self->io, &self->connection.socket, &self->message, MSG_PEEK));
}

/* Takes those of the bytes that were looked at, and are there. */
static bide_awaiter *take(struct session *self, size_t size)
{
    return bide_recv(&self->io, &self->connection.socket, self->peeked, size);
}

/* Reads the header; sets self->status. */
static bool take_header(struct session *self)
{
    int whole = self->status < 0 ? 0 : proxy_header_is_whole(self->header);
    if (whole < 0)
        self->status = whole;
    if (whole > 0 && self->header->is_known) {
        self->client = self->header->source;
        self->local = self->header->destination;
    }
    return whole > 0 || self->status < 0;
}

/* How many of the bytes that were looked at are the header's; they are taken next. */
static size_t look(struct session *self)
{
    int taken = self->io.count == 0
                    ? -ENODATA
                    : proxy_header_take(self->header, self->peeked, self->io.count);
    self->status = taken < 0 ? taken : 0;
    return taken < 0 ? 0 : (size_t)taken;
}

/* ---- TLS ---- */

static bide_awaiter *shake_hands(struct session *self)
{
    self->secure = secure_create();
    if (self->secure == NULL)
        return bide_stream_ended(&self->last, -ENOMEM);
    return bide_with_deadline(
        &self->limited, self->begun + self->listen->header_timeout,
        secure_accept(self->secure, self->listen->tls, self->end.stream));
}

static void take_secure(struct session *self)
{
    self->end.socket = NULL;
    self->end.stream = secure_stream(self->secure);
}

static void refuse_handshake(struct session *self)
{
    const char *reason = secure_reason(self->secure);
    char text[256];
    snprintf(text, sizeof text, "TLS: %s", *reason != '\0' ? reason : strerror(-self->status));
    refuse(self, text);
}

/* So that the client knows that this is all. */
static bide_awaiter *take_leave(struct session *self, const bide_context *context)
{
    return bide_with_deadline(&self->limited, bide_now(context) + LEAVE_TIMEOUT,
                              bide_stream_shutdown_output(&self->last, self->end.stream));
}

/* ---- The connection ---- */

static bide_awaiter *serve(struct session *self)
{
    bool is_http = self->listen->mode == MODE_HTTP;
    self->part = malloc(is_http ? http_size(self->listen) : sizeof(struct tcp));
    if (self->part == NULL)
        return bide_stream_ended(&self->last, -ENOMEM);
    return is_http ? http_run(self->part, self) : tcp_run(self->part, self);
}

bide_declared_coroutine(session_body)
{
    bide_begin(session_body, struct session * self);
    if (!start(self, bide_this_context())) {
        refuse(self, "too many a second");
        bide_return(0);
    }
    if (self->listen->accepts_proxy) {
        self->header = is_trusted(self) ? calloc(1, sizeof *self->header) : NULL;
        if (self->header == NULL) {
            refuse(self, "not trusted with the PROXY protocol");
            bide_return(0);
        }
        do {
            bide_await_status(self->status, peek(self));
            size_t size = self->status < 0 ? 0 : look(self);
            if (size != 0)
                bide_await_status(self->status, take(self, size));
        } while (!take_header(self));
        if (self->status < 0) {
            refuse(self, self->status == -EPROTO ? "a bad PROXY header" : "no PROXY header");
            bide_return(0);
        }
    }
    if (self->listen->tls != NULL) {
        bide_await_status(self->status, shake_hands(self));
        if (self->status < 0) {
            refuse_handshake(self);
            bide_return(0);
        }
        take_secure(self);
    }
    bide_await_status(self->status, serve(self));
    if (self->listen->mode == MODE_HTTP && self->secure != NULL && self->status >= 0)
        bide_await(take_leave(self, bide_this_context()));
    bide_finally();
    free(self->header);
    free(self->part);
    secure_destroy(self->secure);
    configuration_release(self->configuration);
    bide_end();
}

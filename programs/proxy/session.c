/*
 * A client's connection: rate limit, PROXY header, TLS handshake, then its mode. Runs on the
 * program's loop.
 */
#define _GNU_SOURCE
#include "session.h"
#include "budget.h"
#include "http.h"
#include "tcp.h"

#include <bide/coroutine.h>
#include <bide/sleep.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CLOSE_TIMEOUT UINT64_C(1000000000)

/* ---- Addresses ---- */

/* Converts an IPv4 address that is mapped to IPv6, as a dual-stack listener reports it, to IPv4. */
static void unmap_v4(bide_address *address)
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
    if (session->client.length <= sizeof(sa_family_t)) /* unknown, or a Unix socket */
        return session->client.length == 0 ? "-" : "unix:";
    bide_address_print(&session->client, text, BIDE_ADDRESS_TEXT);
    return text;
}

bool session_is_outdated(const struct session *session)
{
    const struct listener *listener = session->listener;
    return listener->is_shutting_down || listener->listen != session->listen;
}

const char *session_reason(int error)
{
    return error >= 0            ? "done"
           : error == -ECANCELED ? "stopped"
           : error == -EHOSTDOWN ? "no server is up"
                                 : strerror(-error);
}

/* ---- The start ---- */

/* True if the addresses are needed; reading each takes a system call. */
static bool needs_addresses(const struct session *self)
{
    const struct listen *listen = self->listen;
    return listen->mode != MODE_TCP || listen->accepts_proxy || listen->client_rate != 0 ||
           listen->routes->backend->send_proxy != 0 ||
           listen->routes->backend->sticky == STICKY_ADDRESS || log_is_on(&self->program->log);
}

static void read_addresses(struct session *self)
{
    self->client.length = self->local.length = 0;
    if (!needs_addresses(self))
        return;
    if (bide_peer_address(&self->connection.socket, &self->client) != 0)
        self->client.length = 0;
    unmap_v4(&self->client);
    if (self->listen->mode == MODE_TCP && self->listen->routes->backend->send_proxy == 0)
        return;
    if (bide_local_address(&self->connection.socket, &self->local) != 0)
        self->local.length = 0;
    unmap_v4(&self->local);
}

/* Returns false if the connection exceeds the rate. */
static bool session_start(struct session *self, const bide_context *context)
{
    self->listener = self->connection.server->argument;
    self->program = self->listener->program;
    self->listen = self->listener->listen;
    self->configuration = self->listener->configuration;
    configuration_retain(self->configuration);
    self->started_at = bide_now(context);
    self->mode_memory = NULL;
    self->header = NULL;
    self->secure = NULL;
    self->status = 0;
    self->endpoint.socket = &self->connection.socket;
    self->endpoint.stream = bide_socket_stream(&self->connection.socket);
    self->program->statistics.connections += self->listen->mode != MODE_STATUS;
    read_addresses(self);
    return self->listen->rate == 0 ||
           bide_token_bucket_try_take(&self->listener->bucket, context, 1);
}

static void reject_connection(struct session *self, const char *why)
{
    char client[BIDE_ADDRESS_TEXT];
    self->program->statistics.rejected++;
    log_line(&self->program->log, "rejected %s %s %s", session_client(self, client),
             self->listen->name, why);
}

/* Mode tcp: returns true if the connection exceeds the rate of its client. */
static bool exceeds_client_rate(struct session *self, const bide_context *context)
{
    const struct listen *listen = self->listen;
    return listen->mode == MODE_TCP && listen->client_rate != 0 &&
           clients_take(self->listener->clients, &self->client, listen->client_rate,
                        listen->client_burst, bide_now(context)) != 0;
}

/* ---- The PROXY protocol ---- */

/* True if the peer may send PROXY headers. */
static bool is_trusted(const struct session *self)
{
    return self->listen->trusted == NULL || network_contains(self->listen->trusted, &self->client);
}

/* Peeks at the next bytes without consuming them. */
static bide_awaiter *peek_header(struct session *self)
{
    self->vector = (struct iovec){self->peeked, sizeof self->peeked};
    memset(&self->message, 0, sizeof self->message);
    self->message.msg_iov = &self->vector;
    self->message.msg_iovlen = 1;
    return bide_with_deadline(
        &self->limited, self->started_at + self->listen->header_timeout,
        bide_recvmsg(&self->io, &self->connection.socket, &self->message, MSG_PEEK));
}

/* Consumes bytes that were peeked at, so they are available at once. */
static bide_awaiter *consume_peeked(struct session *self, size_t size)
{
    return bide_recv(&self->io, &self->connection.socket, self->peeked, size);
}

/* Parses the header if it is complete. Returns true if it is, or self->status is an error. */
static bool finish_header(struct session *self)
{
    int whole = self->status < 0 ? 0 : proxy_header_parse(self->header);
    if (whole < 0)
        self->status = whole;
    if (whole > 0 && self->header->is_known) {
        self->client = self->header->source;
        self->local = self->header->destination;
    }
    return whole > 0 || self->status < 0;
}

/* The number of peeked bytes that belong to the header; they are consumed next. */
static size_t feed_header(struct session *self)
{
    int taken = self->io.count == 0 ? -ENODATA
                                    : proxy_header_feed(self->header, self->peeked, self->io.count);
    self->status = taken < 0 ? taken : 0;
    return taken < 0 ? 0 : (size_t)taken;
}

/* ---- TLS ---- */

static bide_awaiter *accept_tls(struct session *self)
{
    self->secure = secure_create();
    if (self->secure == NULL)
        return bide_stream_ended(&self->last, -ENOMEM);
    return bide_with_deadline(
        &self->limited, self->started_at + self->listen->header_timeout,
        secure_accept(self->secure, self->listen->tls, self->endpoint.stream));
}

static void use_tls(struct session *self)
{
    self->endpoint.socket = NULL;
    self->endpoint.stream = secure_stream(self->secure);
}

static void reject_handshake(struct session *self)
{
    const char *reason = secure_reason(self->secure);
    char text[256];
    snprintf(text, sizeof text, "TLS: %s", *reason != '\0' ? reason : strerror(-self->status));
    reject_connection(self, text);
}

/* Ends the output, so that the client can tell a complete stream from a broken one. */
static bide_awaiter *end_output(struct session *self)
{
    return bide_with_timeout(&self->limited, CLOSE_TIMEOUT,
                             bide_stream_shutdown_output(&self->last, self->endpoint.stream));
}

/* ---- The connection ---- */

static bide_awaiter *run_mode(struct session *self)
{
    bool is_http = self->listen->mode != MODE_TCP;
    self->mode_memory = malloc(is_http ? http_size(self->listen) : sizeof(struct tcp));
    if (self->mode_memory == NULL)
        return bide_stream_ended(&self->last, -ENOMEM);
    return is_http ? http_run(self->mode_memory, self) : tcp_run(self->mode_memory, self);
}

bide_declared_coroutine(session_body)
{
    bide_begin(session_body, struct session * self);
    if (!session_start(self, bide_this_context())) {
        reject_connection(self, "rate exceeded");
        bide_return(0);
    }
    if (self->listen->accepts_proxy) {
        self->header = is_trusted(self) ? calloc(1, sizeof *self->header) : NULL;
        if (self->header == NULL) {
            reject_connection(self, "not trusted with the PROXY protocol");
            bide_return(0);
        }
        do {
            bide_await_status(self->status, peek_header(self));
            size_t size = self->status < 0 ? 0 : feed_header(self);
            if (size != 0)
                bide_await_status(self->status, consume_peeked(self, size));
        } while (!finish_header(self));
        if (self->status < 0) {
            reject_connection(self,
                              self->status == -EPROTO ? "bad PROXY header" : "no PROXY header");
            bide_return(0);
        }
    }
    if (exceeds_client_rate(self, bide_this_context())) {
        self->program->statistics.limited++;
        reject_connection(self, "client rate exceeded");
        bide_return(0);
    }
    if (self->listen->tls != NULL) {
        bide_await_status(self->status, accept_tls(self));
        if (self->status < 0) {
            reject_handshake(self);
            bide_return(0);
        }
        use_tls(self);
    }
    bide_await_status(self->status, run_mode(self));
    if (self->listen->mode == MODE_HTTP && self->secure != NULL && self->status >= 0)
        bide_await(end_output(self));
    bide_finally();
    free(self->header);
    free(self->mode_memory);
    secure_destroy(self->secure);
    bide_close(&self->connection.socket);
    budget_connection_ended(self->listener);
    configuration_release(self->configuration);
    bide_end();
}

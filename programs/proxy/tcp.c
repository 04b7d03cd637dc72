/*
 * Mode tcp.
 *
 *     choose --> connect --> send the PROXY header --> relay --> end
 *       ^           |                |                   |
 *       +-----------+----------------+-------------------+ it failed, and the server has taken no byte
 *
 * 1. While a server has taken none of the client's bytes, and sent none, its failure is not the
 *    client's: another one is tried. The client's bytes are not read before a server is connected to.
 *    What the relay has read and could not send is lost with its relay, so that is no retry either.
 */
#define _GNU_SOURCE
#include "tcp.h"

#include <bide/coroutine.h>
#include <bide/sleep.h>

#include <errno.h>
#include <string.h>

static uint64_t now_of(const struct tcp *self)
{
    return bide_now(bide_loop_context(self->session->program->loop));
}

/* ---- Servers ---- */

/* Chooses the next one; false: there is none. */
static bool choose(struct tcp *self)
{
    self->tried_at = now_of(self);
    self->server = balance_choose(self->backend, &self->tried, self->tried_at);
    if (self->server == NULL) {
        self->status = self->retries != 0 ? self->status : -EHOSTDOWN;
        return false;
    }
    self->last = self->server;
    balance_begin(self->server);
    return true;
}

/* The server is not the connection's any more. */
static void leave(struct tcp *self)
{
    secure_destroy(self->secure);
    self->secure = NULL;
    bide_close(&self->socket);
    if (self->server != NULL)
        balance_end(self->server);
    self->server = NULL;
}

/* After a failure: is another one to be tried? */
static bool may_retry(struct tcp *self, const bide_context *context)
{
    if (bide_stop_requested(context->stop) || balance_is_our_own(self->status))
        return false;
    balance_failed(self->server, self->status, now_of(self), &self->session->program->log);
    if (self->retries == self->backend->retries)
        return false;
    leave(self);
    self->retries++;
    self->session->program->counts.retries++;
    return true;
}

static void prepare_header(struct tcp *self)
{
    struct session *session = self->session;
    self->header_size = self->backend->send_proxy == 0
                            ? 0
                            : proxy_header_print(self->header, self->backend->send_proxy,
                                                 &session->client, &session->local);
}

static bide_awaiter *connect_to_server(struct tcp *self)
{
    return bide_with_deadline(&self->limited, self->tried_at + self->backend->connect_timeout,
                              bide_connect(&self->io, &self->socket, balance_address(self->server)));
}

static bide_awaiter *send_header(struct tcp *self)
{
    return bide_with_deadline(&self->limited, self->tried_at + self->backend->connect_timeout,
                              bide_send(&self->io, &self->socket, self->header, self->header_size));
}

static bide_awaiter *shake_hands(struct tcp *self)
{
    const struct backend *backend = self->backend;
    self->secure = secure_create();
    if (self->secure == NULL)
        return bide_stream_ended(&self->none, -ENOMEM);
    return bide_with_deadline(
        &self->limited, self->tried_at + backend->connect_timeout,
        secure_connect(self->secure, backend->tls, bide_socket_stream(&self->socket),
                       backend->tls_name != NULL ? backend->tls_name : self->server->tls_name));
}

static void prepare_relay(struct tcp *self)
{
    struct session *session = self->session;
    relay_init(&self->relay, &session->program->buffers, session->configuration->splices,
               session->listen->idle_timeout);
    self->relay.client = session->end;
    self->relay.backend.socket = self->secure == NULL ? &self->socket : NULL;
    self->relay.backend.stream = self->secure == NULL ? bide_socket_stream(&self->socket)
                                                      : secure_stream(self->secure);
    (void)bide_set_no_delay(&self->socket, true);
}

/* Did the server fail before anything was exchanged? 1 */
static bool is_untouched(const struct tcp *self)
{
    const struct relay *relay = &self->relay;
    return self->status < 0 && self->status != -ETIMEDOUT && relay_failed_at_backend(relay) &&
           relay->upward.count == 0 && relay->downward.count == 0 &&
           relay->upward.begin == relay->upward.end;
}

static void take_counts(struct tcp *self)
{
    struct counts *counts = &self->session->program->counts;
    counts->bytes_in += self->relay.upward.count;
    counts->bytes_out += self->relay.downward.count;
    self->server->bytes_in += self->relay.upward.count;
    self->server->bytes_out += self->relay.downward.count;
}

/* ---- Its end ---- */

static const char *end_of(const struct tcp *self)
{
    if (self->status >= 0 || self->connected == 0 || self->status == -ECANCELED)
        return "";
    return self->status == -ETIMEDOUT                ? "idle: "
           : relay_failed_at_backend(&self->relay) ? "server: "
                                                     : "client: ";
}

static void tell(const struct tcp *self)
{
    const struct session *session = self->session;
    struct log *log = &session->program->log;
    char client[BIDE_ADDRESS_TEXT];
    if (!log_is_on(log))
        return;
    bool was_connected = self->connected != 0;
    log_line(log, "tcp %s %s %s/%s in=%llu out=%llu connect=%.1fms total=%.1fms retries=%u end=\"%s%s\"",
             session_client(session, client), session->listen->name, self->backend->name,
             self->last != NULL ? self->last->name : "-",
             (unsigned long long)(was_connected ? self->relay.upward.count : 0),
             (unsigned long long)(was_connected ? self->relay.downward.count : 0),
             was_connected ? (double)(self->connected - self->tried_at) / 1e6 : 0.0,
             (double)(now_of(self) - session->begun) / 1e6, self->retries, end_of(self),
             session_reason(self->status));
}

/* So that the other end is told of a failure, and does not take it for the end of the bytes. */
static void reset(bide_descriptor *socket)
{
    struct linger at_once = {1, 0};
    if (bide_descriptor_is_open(socket))
        setsockopt(socket->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

static void end(struct tcp *self)
{
    if (self->connected != 0) {
        relay_end(&self->relay);
        if (self->status < 0 && self->status != -ETIMEDOUT) {
            reset(&self->socket);
            reset(&self->session->connection.socket);
        }
    }
    leave(self);
}

bide_coroutine(tcp_body)
{
    bide_begin(tcp_body, struct tcp * self);
    for (;;) {
        if (!choose(self))
            break;
        bide_await_status(self->status, connect_to_server(self));
        if (self->status >= 0) {
            prepare_header(self);
            if (self->header_size != 0)
                bide_await_status(self->status, send_header(self));
        }
        if (self->status >= 0 && self->backend->tls != NULL)
            bide_await_status(self->status, shake_hands(self));
        if (self->status < 0) {
            if (may_retry(self, bide_this_context()))
                continue;
            break;
        }
        self->connected = now_of(self);
        prepare_relay(self);
        bide_await_status(self->status, relay_run(&self->relay));
        take_counts(self);
        if (!is_untouched(self)) {
            if (self->relay.downward.count != 0)
                balance_succeeded(self->server, &self->session->program->log);
            break;
        }
        if (!may_retry(self, bide_this_context()))
            break;
        relay_end(&self->relay);
        self->connected = 0;
    }
    if (self->connected == 0)
        self->session->program->counts.failed++;
    tell(self);
    bide_finally();
    end(self);
    bide_end();
}

bide_awaiter *tcp_run(struct tcp *tcp, struct session *session)
{
    tcp->session = session;
    tcp->backend = session->listen->routes->backend;
    tcp->server = tcp->last = NULL;
    memset(&tcp->tried, 0, sizeof tcp->tried);
    tcp->retries = 0;
    tcp->connected = 0;
    tcp->secure = NULL;
    tcp->status = 0;
    bide_descriptor_init_closed(&tcp->socket);
    return bide_task_init(&tcp->task, &tcp_body);
}

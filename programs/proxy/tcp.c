/*
 * Mode tcp: connects to a server, and relays.
 *
 *     choose --> connect --> send the PROXY header --> relay --> end
 *       ^           |                |                   |
 *       +-----------+----------------+-------------------+ failed before the server took a byte
 *
 *  1. While a server has neither taken nor sent a byte, its failure can be hidden from the client:
 *     another server is tried. The client's data is not read before a server is connected. Data that
 *     the relay has read and not sent is lost with the relay, so that case is not retried.
 *
 * All of it runs on the program's loop.
 */
#define _GNU_SOURCE
#include "tcp.h"
#include "sticky.h"

#include <bide/coroutine.h>
#include <bide/sleep.h>

#include <errno.h>
#include <string.h>

static uint64_t tcp_now(const struct tcp *self)
{
    return bide_now(bide_loop_context(self->session->program->loop));
}

/* ---- Servers ---- */

/* Chooses the next server; returns false if there is none. */
static bool tcp_choose_server(struct tcp *self)
{
    self->tried_at = tcp_now(self);
    self->server = self->backend->sticky == STICKY_ADDRESS
                       ? sticky_by_address(self->backend, &self->tried, &self->session->client,
                                           self->tried_at, false)
                       : NULL;
    if (self->server == NULL)
        self->server = balance_choose(self->backend, &self->tried, self->tried_at);
    if (self->server == NULL) {
        self->status = self->retries != 0 ? self->status : -EHOSTDOWN;
        return false;
    }
    self->last = self->server;
    balance_connection_started(self->server);
    return true;
}

/* Closes the connection to the server and releases the server. */
static void tcp_release_server(struct tcp *self)
{
    secure_destroy(self->secure);
    self->secure = NULL;
    bide_close(&self->socket);
    if (self->server != NULL)
        balance_connection_finished(self->server);
    self->server = NULL;
}

/* After a failure: decides whether to try another server, and prepares that. */
static bool tcp_may_retry(struct tcp *self, const bide_context *context)
{
    bide_assert(self->server != NULL && self->retries <= self->backend->retries);
    if (bide_stop_requested(context->stop) || balance_is_local_error(self->status))
        return false;
    balance_failed(self->server, self->status, tcp_now(self), &self->session->program->log);
    if (self->retries == self->backend->retries)
        return false;
    tcp_release_server(self);
    self->retries++;
    self->session->program->statistics.retries++;
    return true;
}

static void tcp_prepare_header(struct tcp *self)
{
    struct session *session = self->session;
    self->header_size = self->backend->send_proxy == 0
                            ? 0
                            : proxy_header_print(self->header, self->backend->send_proxy,
                                                 &session->client, &session->local);
}

static bide_awaiter *tcp_connect(struct tcp *self)
{
    return bide_with_deadline(
        &self->limited, self->tried_at + self->backend->connect_timeout,
        bide_connect(&self->io, &self->socket, balance_address(self->server)));
}

static bide_awaiter *tcp_send_header(struct tcp *self)
{
    return bide_with_deadline(&self->limited, self->tried_at + self->backend->connect_timeout,
                              bide_send(&self->io, &self->socket, self->header, self->header_size));
}

static bide_awaiter *tcp_start_tls(struct tcp *self)
{
    self->secure = secure_create();
    if (self->secure == NULL)
        return bide_stream_ended(&self->none, -ENOMEM);
    return bide_with_deadline(&self->limited, self->tried_at + self->backend->connect_timeout,
                              secure_connect(self->secure, self->backend->tls,
                                             bide_socket_stream(&self->socket),
                                             upstream_tls_name(self->server)));
}

static void tcp_prepare_relay(struct tcp *self)
{
    struct session *session = self->session;
    relay_init(&self->relay, &session->program->buffers, &session->program->descriptors,
               session->configuration->splices, session->listen->idle_timeout);
    self->relay.client = session->endpoint;
    self->relay.backend.socket = self->secure == NULL ? &self->socket : NULL;
    self->relay.backend.stream =
        self->secure == NULL ? bide_socket_stream(&self->socket) : secure_stream(self->secure);
    (void)bide_set_no_delay(&self->socket, true);
}

/* True if the server failed before anything was exchanged. 1 */
static bool is_untouched(const struct tcp *self)
{
    const struct relay *relay = &self->relay;
    return self->status < 0 && self->status != -ETIMEDOUT && relay_failed_at_backend(relay) &&
           relay->upward.count == 0 && relay->downward.count == 0 &&
           relay->upward.begin == relay->upward.end;
}

static void tcp_add_counts(struct tcp *self)
{
    struct statistics *statistics = &self->session->program->statistics;
    statistics->bytes_in += self->relay.upward.count;
    statistics->bytes_out += self->relay.downward.count;
    self->server->bytes_in += self->relay.upward.count;
    self->server->bytes_out += self->relay.downward.count;
}

/* ---- The end ---- */

static const char *failure_side(const struct tcp *self)
{
    if (self->status >= 0 || self->connected == 0 || self->status == -ECANCELED)
        return "";
    return self->status == -ETIMEDOUT              ? "idle: "
           : relay_failed_at_backend(&self->relay) ? "server: "
                                                   : "client: ";
}

static void tcp_log(const struct tcp *self)
{
    const struct session *session = self->session;
    struct log *log = &session->program->log;
    char client[BIDE_ADDRESS_TEXT];
    if (!log_is_on(log))
        return;
    bool was_connected = self->connected != 0;
    log_line(log,
             "tcp %s %s %s/%s in=%llu out=%llu connect=%.1fms total=%.1fms retries=%u end=\"%s%s\"",
             session_client(session, client), session->listen->name, self->backend->name,
             self->last != NULL ? self->last->name : "-",
             (unsigned long long)(was_connected ? self->relay.upward.count : 0),
             (unsigned long long)(was_connected ? self->relay.downward.count : 0),
             was_connected ? (double)(self->connected - self->tried_at) / 1e6 : 0.0,
             (double)(tcp_now(self) - session->started_at) / 1e6, self->retries, failure_side(self),
             session_reason(self->status));
}

/* Makes the close send a reset, so that the peer sees a failure and not an end of data. */
static void reset_on_close(bide_descriptor *socket)
{
    struct linger at_once = {1, 0};
    if (bide_descriptor_is_open(socket))
        setsockopt(bide_descriptor_fd(socket), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

static void tcp_finish(struct tcp *self)
{
    if (self->connected != 0) {
        relay_destroy(&self->relay);
        if (self->status < 0 && self->status != -ETIMEDOUT) {
            reset_on_close(&self->socket);
            reset_on_close(&self->session->connection.socket);
        }
    }
    tcp_release_server(self);
}

bide_coroutine(tcp_body)
{
    bide_begin(tcp_body, struct tcp * self);
    for (;;) {
        if (!tcp_choose_server(self))
            break;
        bide_await_status(self->status, tcp_connect(self));
        if (self->status >= 0) {
            tcp_prepare_header(self);
            if (self->header_size != 0)
                bide_await_status(self->status, tcp_send_header(self));
        }
        if (self->status >= 0 && self->backend->tls != NULL)
            bide_await_status(self->status, tcp_start_tls(self));
        if (self->status < 0) {
            if (tcp_may_retry(self, bide_this_context()))
                continue;
            break;
        }
        self->connected = tcp_now(self);
        tcp_prepare_relay(self);
        bide_await_status(self->status, relay_run(&self->relay));
        tcp_add_counts(self);
        if (!is_untouched(self)) {
            if (self->relay.downward.count != 0)
                balance_succeeded(self->server, &self->session->program->log);
            break;
        }
        if (!tcp_may_retry(self, bide_this_context()))
            break;
        relay_destroy(&self->relay);
        self->connected = 0;
    }
    if (self->connected == 0)
        self->session->program->statistics.failed++;
    tcp_log(self);
    bide_finally();
    tcp_finish(self);
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

/*
 * Forwards a request to a server, and the response back.
 *
 *     route --> choose --> connect --> head, body --> response's head --> body --> end
 *                 ^           |             |               |
 *                 +-----------+-------------+---------------+ failed, and may be retried
 *
 *  1. A failure to connect is retried with another server, whatever the request is. A request that
 *     may have been sent is retried only if it is idempotent, none of its body was read from the
 *     client, and the server has sent nothing back (RFC 9110, 9.2.2).
 *  2. A server may have closed a connection while it was idle. That is no failure of the server:
 *     another connection is taken. This ends, because the number of idle connections is finite.
 *  3. Bodies pass through one buffer, a piece at a time: a piece is read after the previous one was
 *     written. So the slower side paces the faster. Buffered output is flushed when the input has no
 *     more data at hand.
 *  4. `finally` releases everything that a request holds, also after a cancellation.
 *  5. A request whose client has closed its connection, or ended its output, is not sent: it is
 *     cancelled while it waits for a connection to a server. Once it is sent, a client that has ended
 *     its output gets its response.
 *  6. A request that has waited in vain for a connection of a full server gets a 504. That is no failure
 *     of the server, and no other one is tried: only a full server is waited for, the client's own, or
 *     one of servers that are all full.
 *  7. A stream of HTTP/2 that a relay has broken off is reset. A connection of HTTP/1.1 is closed then.
 *
 * All of it runs on the program's loop.
 */
#define _GNU_SOURCE
#include "forward.h"
#include "access_log.h"
#include "connecting.h"
#include "fields.h"
#include "own.h"
#include "redirect.h"
#include "routes.h"
#include "scratch.h"
#include "trailers.h"
#include "turns.h"
#include "upgrade.h"

#include <bide/coroutine.h>
#include <bide/sleep.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_STALE = MAX_POOL_CONNECTIONS };

#define CONTINUE_TIMEOUT UINT64_C(1000000000) /* nanoseconds */

/* ---- The start ---- */

static void choose_route(struct forward *self)
{
    const bide_http_request *request = &self->exchange.request;
    const struct route *route;
    self->route_status = routes_choose(self->session->listen, request->host, request->path, &route);
    self->redirect = route != NULL && route->redirect != 0 ? route : NULL;
    self->backend = route != NULL ? route->backend : NULL;
}

static void forward_init(struct forward *self)
{
    self->session = http_session(self->exchange.connection);
    self->backend = NULL;
    self->server = self->last = self->named = NULL;
    self->scratch = NULL;
    self->connection = NULL;
    memset(&self->tried, 0, sizeof self->tried);
    self->retries = self->stale = 0;
    self->started_at = forward_now(self);
    self->in = self->out = 0;
    self->status = self->response_status = 0;
    self->has_read = self->has_turn = self->has_spare = false;
    access_log_note(self);
    self->session->program->statistics.requests++;
    choose_route(self);
    (void)fields_parse_upgrade(self);
    if (session_is_outdated(self->session))
        bide_http_close_after(&self->exchange);
}

/* The nanoseconds until the client may send its next request; 0: it may send this one. */
static uint64_t wait_of_client(const struct forward *self)
{
    const struct session *session = self->session;
    const struct listen *listen = session->listen;
    return listen->client_rate == 0
               ? 0
               : clients_take(session->listener->clients, &session->client, listen->client_rate,
                              listen->client_burst, self->started_at);
}

/* ---- The request ---- */

/* Writes the head into the connection's buffer. */
static int write_head(struct forward *self)
{
    const bide_http_client_options options = {.write_buffer_size = SCRATCH_OUTPUT,
                                              .max_fields = SCRATCH_FIELDS,
                                              .keeps_delay = self->connection->was_idle};
    const bide_http_request *request = &self->exchange.request;
    bide_http_client *client = &self->scratch->client;
    int status = bide_http_client_init(client, pool_stream(self->connection), self->scratch->memory,
                                       sizeof self->scratch->memory, &options);
    if (status == 0)
        status = fields_add_to_request(self);
    if (status == 0)
        status = bide_http_client_finish_head(client, request->length);
    return status;
}

static uint64_t response_deadline(const struct forward *self)
{
    return forward_now(self) + self->backend->response_timeout;
}

static bool expects_continue(const struct forward *self)
{
    return self->exchange.request.length != 0 && self->exchange.request.minor == 1 &&
           bide_http_request_field(&self->exchange, "Expect").data != NULL;
}

static bide_awaiter *wait_for_continue(struct forward *self)
{
    self->has_sent = true;
    return bide_with_deadline(&self->limited, forward_now(self) + CONTINUE_TIMEOUT,
                              bide_http_client_continue(&self->scratch->client));
}

/* True if there is a body and the server still expects it. */
static bool has_body(const struct forward *self)
{
    return self->exchange.request.length != 0 && !self->has_response_data;
}

static bide_awaiter *read_body(struct forward *self)
{
    self->has_read = true;
    return bide_http_read(&self->exchange, self->scratch->body, SCRATCH_BODY);
}

static bide_awaiter *write_body(struct forward *self)
{
    self->has_sent = true;
    self->in += self->exchange.count;
    return bide_with_deadline(
        &self->limited, response_deadline(self),
        bide_http_client_write(&self->scratch->client, self->scratch->body, self->exchange.count));
}

/*
 * True if more of the body is buffered. In a chunked body, the next data follows the line of the
 * next chunk's size, and the data read so far ends with the previous chunk.
 */
static bool has_next_piece(bide_reader *reader, bool is_chunked)
{
    size_t size = bide_reader_buffered(reader);
    if (!is_chunked)
        return size != 0;
    const char *data = bide_reader_peek(reader);
    const char *forward_finish = size > 2 ? memchr(data + 2, '\n', size - 2) : NULL;
    return forward_finish != NULL && forward_finish + 1 < data + size;
}

/*
 * True if the client has paused: more of the body is to come, and everything received was
 * forwarded. 3
 */
static bool client_pauses(struct forward *self)
{
    return self->in != self->exchange.request.length &&
           !has_next_piece(bide_http_reader(&self->exchange),
                           self->exchange.request.length == BIDE_HTTP_UNKNOWN &&
                               self->exchange.request.major == 1);
}

/* (the first send, if the body was empty) */
static bide_awaiter *flush_request(struct forward *self)
{
    self->has_sent = true;
    return bide_with_deadline(&self->limited, response_deadline(self),
                              bide_http_client_flush(&self->scratch->client));
}

static bide_awaiter *receive_head(struct forward *self)
{
    self->has_sent = true;
    return bide_with_deadline(&self->limited, response_deadline(self),
                              bide_http_client_recv(&self->scratch->client));
}

/* ---- Failures ---- */

static bool is_idempotent(bide_http_method method)
{
    return method == BIDE_HTTP_GET || method == BIDE_HTTP_HEAD || method == BIDE_HTTP_PUT ||
           method == BIDE_HTTP_DELETE || method == BIDE_HTTP_OPTIONS || method == BIDE_HTTP_TRACE;
}

static bool has_response_bytes(const struct forward *self)
{
    return bide_reader_buffered(&self->scratch->client.reader) != 0;
}

/* True if the time has ended while all connections of the server were taken: it was not asked for one. 6 */
static bool has_waited_in_vain(const struct forward *self)
{
    return self->status == -ETIMEDOUT && self->connection == NULL &&
           self->scratch->taking.slot == NULL;
}

/* After a failure: decides whether to retry, and prepares that. 1, 2 */
static bool forward_may_retry(struct forward *self, const bide_context *context)
{
    struct program *program = self->session->program;
    bide_assert(self->server != NULL && self->retries <= self->backend->retries);
    if (bide_stop_requested(context->stop) || balance_is_local_error(self->status) ||
        has_waited_in_vain(self))
        return false;
    bool is_stale = self->connection != NULL && !self->is_fresh && self->status != -ETIMEDOUT &&
                    self->stale < MAX_STALE;
    if (!is_stale)
        balance_failed(self->server, self->status, forward_now(self), &program->log);
    bool is_lost = self->has_sent &&
                   (self->has_read || self->status == -ETIMEDOUT || has_response_bytes(self) ||
                    !is_idempotent(self->exchange.request.method));
    if (is_lost || (!is_stale && self->retries == self->backend->retries))
        return false;
    if (is_stale) {
        self->stale++;
        self->tried.bits[self->server->index / 64] &= ~(UINT64_C(1) << self->server->index % 64);
    } else {
        self->retries++;
        program->statistics.retries++;
    }
    connecting_release(self, false);
    return true;
}

/* The handler's error, which the library turns into a page: 502, 503, 504. */
static int handler_error(const struct forward *self)
{
    if (self->status == -EHOSTDOWN || self->status == -ETIMEDOUT || self->status == -ECANCELED ||
        balance_is_local_error(self->status))
        return self->status == -EADDRNOTAVAIL ? -EHOSTDOWN : self->status;
    return -EREMOTEIO;
}

/* ---- The response ---- */

static int start_response(struct forward *self)
{
    const bide_http_response *response = &self->scratch->client.response;
    self->exchange.status = response->status;
    int status = fields_add_to_response(self);
    if (status == 0 && response->status != 101)
        status = bide_http_start_response(&self->exchange, response->length);
    if (status == 0)
        self->response_status = response->status;
    return status;
}

static bide_awaiter *read_response(struct forward *self)
{
    return bide_with_deadline(
        &self->limited, response_deadline(self),
        bide_http_client_read(&self->scratch->client, self->scratch->body, SCRATCH_BODY));
}

static bide_awaiter *write_response(struct forward *self)
{
    self->out += self->scratch->client.count;
    return bide_http_write(&self->exchange, self->scratch->body, self->scratch->client.count);
}

/* True if the server has paused, as for client_pauses. 3 */
static bool server_pauses(struct forward *self)
{
    bide_http_client *client = &self->scratch->client;
    return self->out != client->response.length && !client->reader.has_ended &&
           !has_next_piece(bide_http_client_reader(client),
                           client->response.length == BIDE_HTTP_UNKNOWN);
}

/* ---- The exchange ---- */

static void forward_finish(struct forward *self)
{
    connecting_release(self, false);
    bide_assert(self->connection == NULL && self->server == NULL);
    if (self->scratch != NULL)
        scratch_release(self->session->program, self->scratch);
    self->scratch = NULL;
    turns_end(self);
}

/*
 * The handler's body. The loop gets the head of a response from one of the servers; the rest
 * forwards the response.
 */
bide_declared_coroutine(forward_body)
{
    bide_begin(forward_body, struct forward * self);
    forward_init(self);
    uint64_t wait = wait_of_client(self);
    if (wait != 0) {
        bide_try(own_reject_rate(self, wait));
        bide_return(0);
    }
    if (self->exchange.request.method == BIDE_HTTP_CONNECT || upgrade_is_unknown(self)) {
        bide_try(own_reject_tunnel(self));
        bide_return(0);
    }
    self->status = upgrade_make_key(self);
    if (self->status == 0)
        self->status = self->route_status;
    if (self->redirect != NULL && self->status == 0)
        self->status = redirect_add_location(&self->exchange, self->redirect);
    if (self->status == -EINVAL || self->status == -EMSGSIZE) {
        bide_try(own_reject_request(self));
        bide_return(0);
    }
    if (self->status < 0)
        bide_return(self->status);
    if (self->redirect != NULL) {
        bide_try(own_redirect(self));
        bide_return(0);
    }
    if (self->backend == NULL)
        bide_return(-ENOENT);
    if (!turns_try(self)) {
        bide_await_status(self->status, turns_wait(self));
        turns_waited(self);
        if (self->status < 0)
            bide_return(self->status);
    }
    self->scratch = scratch_acquire(self->session->program);
    if (self->scratch == NULL)
        bide_return(-ENOMEM);
    for (;;) {
        if (!connecting_choose(self)) {
            self->status = self->last == NULL ? -EHOSTDOWN : self->status;
            bide_return(handler_error(self));
        }
        bide_await_status(self->status, connecting_acquire(self));
        connecting_use(self);
        if (self->status >= 0 && self->is_fresh && self->backend->send_proxy != 0)
            bide_await_status(self->status, connecting_send_header(self));
        if (self->status >= 0 && self->is_fresh && self->backend->tls != NULL)
            bide_await_status(self->status, connecting_start_tls(self));
        if (self->status >= 0) {
            self->status = write_head(self);
            if (self->status == -EINVAL || self->status == -EMSGSIZE) {
                bide_try(own_reject_request(self));
                bide_return(0);
            }
            if (self->status < 0)
                bide_return(self->status);
            if (expects_continue(self)) {
                bide_await_status(self->status, wait_for_continue(self));
                self->has_response_data = self->status == 0 && !self->scratch->client.continues;
                if (self->status == -ETIMEDOUT && !bide_stop_requested(bide_this_context()->stop))
                    self->status = 0;
            }
            while (self->status >= 0 && has_body(self)) {
                bide_await_status(self->status, read_body(self));
                if (self->status < 0) /* the client failed, not the server */
                    bide_return(self->status);
                if (self->exchange.count == 0)
                    break;
                bide_await_status(self->status, write_body(self));
                if (self->status >= 0 && client_pauses(self))
                    bide_await_status(self->status, flush_request(self));
            }
            if (self->status >= 0 && has_body(self) && trailers_follow_request(self)) {
                bide_await_status(self->status, flush_request(self));
                if (self->status >= 0 && (self->status = trailers_add_to_request(self)) < 0)
                    bide_return(self->status);
            }
            /* (a server that stops reading may have responded) */
            if (bide_stop_requested(bide_this_context()->stop))
                self->status = self->status < 0 ? self->status : -ECANCELED;
            else if (self->status != -ETIMEDOUT)
                bide_await_status(self->status, receive_head(self));
            if (self->status >= 0)
                break;
        }
        if (!forward_may_retry(self, bide_this_context()))
            bide_return(handler_error(self));
    }
    balance_succeeded(self->server, &self->session->program->log);
    self->status = start_response(self);
    if (self->status < 0)
        bide_return(-EREMOTEIO);
    if (self->scratch->client.response.status == 101) {
        if (!upgrade_is_valid(self))
            bide_return(-EREMOTEIO);
        bide_await_status(self->status, bide_http_upgrade(&self->exchange, self->protocol));
        if (self->status < 0)
            bide_return(self->status == -EINVAL ? -EREMOTEIO : self->status);
        self->response_status = self->exchange.status;
        if (upgrade_prepare_relay(self))
            bide_await_status(self->status, relay_run(&self->scratch->relay));
        upgrade_finish_relay(self);
        bide_return(self->exchange.request.major == 2 ? self->status : 0); /* 7 */
    }
    if (self->exchange.request.method != BIDE_HTTP_HEAD && server_pauses(self))
        bide_try(bide_http_flush(&self->exchange));
    for (;;) {
        bide_await_status(self->status, read_response(self));
        if (self->status < 0)
            bide_return(handler_error(self) == -ECANCELED ? -ECANCELED : -EREMOTEIO);
        if (self->scratch->client.count == 0)
            break;
        bide_try(write_response(self));
        if (server_pauses(self))
            bide_try(bide_http_flush(&self->exchange));
    }
    if (trailers_follow_response(self)) {
        bide_try(bide_http_flush(&self->exchange));
        self->status = trailers_add_to_response(self);
        if (self->status < 0)
            bide_return(-EREMOTEIO);
    }
    connecting_release(self, bide_http_client_is_reusable(&self->scratch->client));
    bide_finally();
    forward_finish(self);
    bide_end();
}

/*
 * A request on its way to a server, and the response on its way back.
 *
 *     route --> choose --> connect --> head, body --> response's head --> body --> end
 *                 ^           |             |               |
 *                 +-----------+-------------+---------------+ it failed, and may be tried again
 *
 * 1. A failure to connect is tried again with another server, whatever the request is. Once a request
 *    may have left, it is tried again only if it is idempotent, none of its body was taken from the
 *    client, and nothing has come back (RFC 9110, 9.2.2).
 * 2. A connection that was idle may have been closed by its server meanwhile. That is no failure of the
 *    server: another connection is taken. The idle ones are finite.
 * 3. Bodies go through one buffer, a piece at a time: a piece is read when the one before was taken. So
 *    each side waits for the other. What has come is sent when nothing more has.
 * 4. What a request holds is let go in `finally`, also if it is cut short.
 */
#define _GNU_SOURCE
#include "forward.h"
#include "fields.h"
#include "proxy_header.h"

#include <bide/coroutine.h>
#include <bide/sleep.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { MAX_STALE = MAX_POOL, MAX_UNUSED = 512 };

#define CONTINUE_TIMEOUT UINT64_C(1000000000)

static uint64_t now_of(const struct forward *self)
{
    return bide_now(bide_loop_context(self->session->program->loop));
}

/* ---- Where to ---- */

/* Without its port, which is no part of a name. */
static bide_slice name_of(bide_slice host)
{
    if (host.size != 0 && host.data[0] == '[') {
        const char *end = memchr(host.data, ']', host.size);
        host.size = end != NULL ? (size_t)(end - host.data) + 1 : host.size;
        return host;
    }
    const char *colon = host.size != 0 ? memchr(host.data, ':', host.size) : NULL;
    if (colon != NULL)
        host.size = (size_t)(colon - host.data);
    return host;
}

/* "/a" goes with "/a", "/a/" and "/a/b", and not with "/ab". */
static bool begins_with(bide_slice path, const char *prefix)
{
    size_t size = strlen(prefix);
    if (path.size < size || memcmp(path.data, prefix, size) != 0)
        return false;
    return size == 0 || prefix[size - 1] == '/' || path.size == size || path.data[size] == '/';
}

/* The one with a host before the one without; then the longest prefix; then the first. */
static struct backend *route(const struct forward *self)
{
    const bide_http_request *request = &self->exchange.request;
    bide_slice name = name_of(request->host);
    const struct route *best = NULL;
    for (const struct route *at = self->session->listen->routes; at != NULL; at = at->next) {
        if ((at->host != NULL && !bide_http_is(name, at->host)) ||
            !begins_with(request->path, at->prefix))
            continue;
        if (best == NULL || (at->host != NULL && best->host == NULL) ||
            ((at->host != NULL) == (best->host != NULL) &&
             strlen(at->prefix) > strlen(best->prefix)))
            best = at;
    }
    return best != NULL ? best->backend : NULL;
}

static size_t copy(char *to, size_t max, bide_slice text)
{
    size_t size = text.size < max ? text.size : max;
    for (size_t i = 0; i < size; i++)
        to[i] = text.data[i] == '"' ? '\'' : text.data[i];
    return size;
}

static void start(struct forward *self)
{
    const bide_http_request *request = &self->exchange.request;
    struct http *http = bide_container_of(self->exchange.connection, struct http, connection);
    self->session = http->session;
    self->backend = NULL;
    self->server = self->last = NULL;
    self->hold = NULL;
    self->connection = NULL;
    memset(&self->tried, 0, sizeof self->tried);
    self->retries = self->stale = 0;
    self->begun = now_of(self);
    self->in = self->out = 0;
    self->status = 0;
    self->has_read = false;
    self->target_size = copy(self->target, sizeof self->target, request->target);
    self->method[copy(self->method, sizeof self->method - 1, request->method_name)] = '\0';
    self->session->program->counts.requests++;
    self->backend = route(self);
    (void)fields_take_upgrade(self);
    if (self->session->listener->listen != self->session->listen) /* there is another configuration */
        bide_http_close_after(&self->exchange);
}

static struct hold *take_hold(struct program *program)
{
    struct hold *hold = program->holds;
    if (hold == NULL)
        return malloc(sizeof *hold);
    program->holds = hold->next;
    program->hold_count--;
    return hold;
}

static void give_hold(struct program *program, struct hold *hold)
{
    if (program->hold_count >= MAX_UNUSED) {
        free(hold);
        return;
    }
    hold->next = program->holds;
    program->holds = hold;
    program->hold_count++;
}

void forward_free(struct program *program)
{
    while (program->holds != NULL)
        free(take_hold(program));
    program->hold_count = 0;
}

/* No tunnel is made. What comes behind may be meant for one, so it is not read as requests. */
static bide_awaiter *refuse_tunnel(struct forward *self)
{
    static const char text[] = "501 Not Implemented\n";
    bide_http_close_after(&self->exchange);
    self->exchange.status = 501;
    return bide_http_respond(&self->exchange, text, sizeof text - 1);
}

/* ---- A connection ---- */

static bool choose(struct forward *self)
{
    self->tried_at = now_of(self);
    self->server = balance_choose(self->backend, &self->tried, self->tried_at);
    if (self->server == NULL) /* one that has its most: in line */
        self->server = balance_choose_full(self->backend, &self->tried, self->tried_at);
    if (self->server == NULL)
        return false;
    self->last = self->server;
    self->has_sent = self->has_answer = false;
    balance_begin(self->server);
    return true;
}

static uint64_t connect_deadline(const struct forward *self)
{
    return self->tried_at + self->backend->connect_timeout;
}

static bide_awaiter *take_connection(struct forward *self)
{
    struct pool *pool = pool_of(self->server);
    self->hold->taking.connection = NULL;
    if (pool == NULL)
        return bide_stream_ended(&self->hold->stream, -ENOMEM);
    return bide_with_deadline(&self->hold->limited, connect_deadline(self),
                              bide_connection_pool_acquire(&self->hold->taking, &pool->pool));
}

/* It was taken: what is to be done before the first request? */
static void take_over(struct forward *self)
{
    if (self->status < 0)
        return;
    self->connection = self->hold->taking.connection;
    self->is_fresh = !self->connection->was_idle;
    if (self->is_fresh)
        (void)bide_set_no_delay(&self->connection->socket, true);
}

static bide_awaiter *send_header(struct forward *self)
{
    size_t size =
        proxy_header_print((unsigned char *)self->hold->body, self->backend->send_proxy,
                           &self->session->client, &self->session->local);
    return bide_with_deadline(
        &self->hold->limited, connect_deadline(self),
        bide_send(&self->hold->io, &self->connection->socket, self->hold->body, size));
}

static bide_awaiter *shake_hands(struct forward *self)
{
    struct secure **secure = pool_secure(self->connection);
    *secure = secure_create();
    if (*secure == NULL)
        return bide_stream_ended(&self->hold->stream, -ENOMEM);
    return bide_with_deadline(&self->hold->limited, connect_deadline(self),
                              secure_connect(*secure, self->backend->tls,
                                             bide_socket_stream(&self->connection->socket),
                                             self->backend->tls_name != NULL
                                                 ? self->backend->tls_name
                                                 : self->server->tls_name));
}

/* The connection is not the request's any more, and neither is the server. */
static void leave(struct forward *self, bool reusable)
{
    if (self->connection != NULL)
        pool_give(self->server, self->connection, reusable);
    self->connection = NULL;
    if (self->server != NULL)
        balance_end(self->server);
    self->server = NULL;
}

/* ---- The request ---- */

/* The head, in the connection's buffer. */
static int put_head(struct forward *self)
{
    static const bide_http_client_options options = {
        .write_buffer_size = HOLD_OUTPUT, .max_fields = 100, .max_head = 0, .max_body = 0};
    const bide_http_request *request = &self->exchange.request;
    bide_http_client *client = &self->hold->client;
    int status = bide_http_client_init(client, pool_stream(self->connection), self->hold->memory,
                                       sizeof self->hold->memory, &options);
    if (status == 0)
        status = fields_put_request(self);
    if (status == 0)
        status = bide_http_client_finish_head(client, request->length);
    return status;
}

static uint64_t response_deadline(const struct forward *self)
{
    return now_of(self) + self->backend->response_timeout;
}

static bool expects_continue(const struct forward *self)
{
    return self->exchange.request.length != 0 && self->exchange.request.minor == 1 &&
           bide_http_request_field(&self->exchange, "Expect").data != NULL;
}

static bide_awaiter *wait_for_continue(struct forward *self)
{
    self->has_sent = true;
    return bide_with_deadline(&self->hold->limited, now_of(self) + CONTINUE_TIMEOUT,
                              bide_http_client_continue(&self->hold->client));
}

/* Is there a body that the server still wants? */
static bool has_body(const struct forward *self)
{
    return self->exchange.request.length != 0 && !self->has_answer;
}

static bide_awaiter *read_body(struct forward *self)
{
    self->has_read = true;
    return bide_http_read(&self->exchange, self->hold->body, HOLD_BODY);
}

static bide_awaiter *write_body(struct forward *self)
{
    self->has_sent = true;
    self->in += self->exchange.count;
    return bide_with_deadline(
        &self->hold->limited, response_deadline(self),
        bide_http_client_write(&self->hold->client, self->hold->body, self->exchange.count));
}

/*
 * Is there more of a body than has been read? In chunks it is behind the line of the next one's size, and
 * what has been read ends where the one before does.
 */
static bool has_next_piece(bide_reader *reader, uint64_t length)
{
    size_t size = bide_reader_buffered(reader);
    if (length != BIDE_HTTP_UNKNOWN)
        return size != 0;
    const char *data = bide_reader_peek(reader);
    const char *end = size > 2 ? memchr(data + 2, '\n', size - 2) : NULL;
    return end != NULL && end + 1 < data + size;
}

/* Has the client sent less than it will, and nothing that is not passed on yet? 3 */
static bool client_pauses(struct forward *self)
{
    return self->in != self->exchange.request.length &&
           !has_next_piece(bide_http_reader(&self->exchange), self->exchange.request.length);
}

static bide_awaiter *flush_request(struct forward *self)
{
    return bide_with_deadline(&self->hold->limited, response_deadline(self),
                              bide_http_client_flush(&self->hold->client));
}

static bide_awaiter *receive_head(struct forward *self)
{
    self->has_sent = true;
    return bide_with_deadline(&self->hold->limited, response_deadline(self),
                              bide_http_client_recv(&self->hold->client));
}

/* ---- What has gone wrong ---- */

static bool is_idempotent(bide_http_method method)
{
    return method == BIDE_HTTP_GET || method == BIDE_HTTP_HEAD || method == BIDE_HTTP_PUT ||
           method == BIDE_HTTP_DELETE || method == BIDE_HTTP_OPTIONS || method == BIDE_HTTP_TRACE;
}

static bool has_come_back(const struct forward *self)
{
    return bide_reader_buffered(&self->hold->client.reader) != 0;
}

/* After a failure: is it tried again? 1, 2 */
static bool may_retry(struct forward *self, const bide_context *context)
{
    struct program *program = self->session->program;
    if (bide_stop_requested(context->stop) || balance_is_our_own(self->status))
        return false;
    bool is_stale = self->connection != NULL && !self->is_fresh && self->status != -ETIMEDOUT &&
                    self->stale < MAX_STALE;
    if (!is_stale)
        balance_failed(self->server, self->status, now_of(self), &program->log);
    bool is_lost = self->has_sent &&
                   (self->has_read || self->status == -ETIMEDOUT || has_come_back(self) ||
                    !is_idempotent(self->exchange.request.method));
    if (is_lost || (!is_stale && self->retries == self->backend->retries))
        return false;
    if (is_stale) {
        self->stale++;
        self->tried.bits[self->server->index / 64] &= ~(UINT64_C(1) << self->server->index % 64);
    } else {
        self->retries++;
        program->counts.retries++;
    }
    leave(self, false);
    return true;
}

/* What the handler ends with, of which the library makes a page: 502, 503, 504. */
static int error_of(const struct forward *self)
{
    if (self->status == -EHOSTDOWN || self->status == -ETIMEDOUT || self->status == -ECANCELED ||
        balance_is_our_own(self->status))
        return self->status == -EADDRNOTAVAIL ? -EHOSTDOWN : self->status;
    return -EREMOTEIO;
}

/* ---- The response ---- */

static int begin_response(struct forward *self)
{
    const bide_http_response *response = &self->hold->client.response;
    self->exchange.status = response->status;
    int status = fields_put_response(self);
    if (status == 0 && response->status != 101)
        status = bide_http_start_response(&self->exchange, response->length);
    return status;
}

static bide_awaiter *read_response(struct forward *self)
{
    return bide_with_deadline(
        &self->hold->limited, response_deadline(self),
        bide_http_client_read(&self->hold->client, self->hold->body, HOLD_BODY));
}

static bide_awaiter *write_response(struct forward *self)
{
    self->out += self->hold->client.count;
    return bide_http_write(&self->exchange, self->hold->body, self->hold->client.count);
}

/* 3 */
static bool server_pauses(struct forward *self)
{
    bide_http_client *client = &self->hold->client;
    return self->out != client->response.length && !client->reader.has_ended &&
           !has_next_piece(bide_http_client_reader(client), client->response.length);
}

/* ---- Another protocol ---- */

/* What came behind the head goes first. */
static bool prime(struct direction *direction, bide_reader *reader)
{
    size_t size = bide_reader_buffered(reader);
    if (size == 0)
        return true;
    char *data = malloc(size);
    if (data == NULL)
        return false;
    memcpy(data, bide_reader_peek(reader), size);
    bide_reader_consume(reader, size);
    relay_prime(direction, data, size);
    return true;
}

static bool prepare_relay(struct forward *self)
{
    struct session *session = self->session;
    struct relay *relay = &self->hold->relay;
    struct secure *secure = *pool_secure(self->connection);
    relay_init(relay, &session->program->buffers, session->configuration->splices,
               session->listen->idle_timeout);
    relay->client = session->end;
    relay->backend.socket = secure == NULL ? &self->connection->socket : NULL;
    relay->backend.stream = pool_stream(self->connection);
    return prime(&relay->upward, bide_http_reader(&self->exchange)) &&
           prime(&relay->downward, bide_http_client_reader(&self->hold->client));
}

static void end_relay(struct forward *self)
{
    self->in += self->hold->relay.upward.count;
    self->out += self->hold->relay.downward.count;
    relay_end(&self->hold->relay);
}

/* ---- The whole ---- */

static void take_counts(struct forward *self)
{
    struct counts *counts = &self->session->program->counts;
    counts->bytes_in += self->in;
    counts->bytes_out += self->out;
    if (self->last != NULL) {
        self->last->bytes_in += self->in;
        self->last->bytes_out += self->out;
    }
}

static void end(struct forward *self)
{
    leave(self, false);
    if (self->hold != NULL)
        give_hold(self->session->program, self->hold);
    self->hold = NULL;
}

/* Gets the response's head, from whichever server; ends with 0 if there is one. */
bide_declared_coroutine(forward_body)
{
    bide_begin(forward_body, struct forward * self);
    start(self);
    if (self->exchange.request.method == BIDE_HTTP_CONNECT) {
        bide_try(refuse_tunnel(self));
        bide_return(0);
    }
    if (self->backend == NULL)
        bide_return(-ENOENT);
    self->hold = take_hold(self->session->program);
    if (self->hold == NULL)
        bide_return(-ENOMEM);
    for (;;) {
        if (!choose(self)) {
            self->status = self->last == NULL ? -EHOSTDOWN : self->status;
            bide_return(error_of(self));
        }
        bide_await_status(self->status, take_connection(self));
        take_over(self);
        if (self->status >= 0 && self->is_fresh && self->backend->send_proxy != 0)
            bide_await_status(self->status, send_header(self));
        if (self->status >= 0 && self->is_fresh && self->backend->tls != NULL)
            bide_await_status(self->status, shake_hands(self));
        if (self->status >= 0) {
            self->status = put_head(self);
            if (self->status < 0) /* the request is what is wrong */
                bide_return(self->status == -EINVAL ? -EBADMSG : self->status);
            if (expects_continue(self)) {
                bide_await_status(self->status, wait_for_continue(self));
                self->has_answer = self->status == 0 && !self->hold->client.continues;
                if (self->status == -ETIMEDOUT && !bide_stop_requested(bide_this_context()->stop))
                    self->status = 0;
            }
            while (self->status >= 0 && has_body(self)) {
                bide_await_status(self->status, read_body(self));
                if (self->status < 0) /* the client is what is wrong */
                    bide_return(self->status);
                if (self->exchange.count == 0)
                    break;
                bide_await_status(self->status, write_body(self));
                if (self->status >= 0 && client_pauses(self))
                    bide_await_status(self->status, flush_request(self));
            }
            /* (a server that takes no more may have said why) */
            if (!bide_stop_requested(bide_this_context()->stop) && self->status != -ETIMEDOUT)
                bide_await_status(self->status, receive_head(self));
            if (self->status >= 0)
                break;
        }
        if (!may_retry(self, bide_this_context()))
            bide_return(error_of(self));
    }
    balance_succeeded(self->server, &self->session->program->log);
    self->status = begin_response(self);
    if (self->status < 0)
        bide_return(-EREMOTEIO);
    if (self->hold->client.response.status == 101) {
        bide_await_status(self->status, bide_http_upgrade(&self->exchange, self->protocol));
        if (self->status < 0)
            bide_return(self->status == -EINVAL ? -EREMOTEIO : self->status);
        if (prepare_relay(self))
            bide_await_status(self->status, relay_run(&self->hold->relay));
        end_relay(self);
        bide_return(0);
    }
    if (self->exchange.request.method != BIDE_HTTP_HEAD && server_pauses(self))
        bide_try(bide_http_flush(&self->exchange));
    for (;;) {
        bide_await_status(self->status, read_response(self));
        if (self->status < 0)
            bide_return(error_of(self) == -ECANCELED ? -ECANCELED : -EREMOTEIO);
        if (self->hold->client.count == 0)
            break;
        bide_try(write_response(self));
        if (server_pauses(self))
            bide_try(bide_http_flush(&self->exchange));
    }
    leave(self, bide_http_client_is_reusable(&self->hold->client));
    bide_finally();
    end(self);
    bide_end();
}

void forward_ended(bide_http_exchange *exchange, int error)
{
    struct forward *self = bide_container_of(exchange, struct forward, exchange);
    struct session *session = self->session;
    struct log *log = &session->program->log;
    char client[BIDE_ADDRESS_TEXT];
    take_counts(self);
    if (!log_is_on(log))
        return;
    log_line(log,
             "http %s %s %s/%s \"%s %.*s\" %d in=%llu out=%llu total=%.1fms retries=%u%s%s",
             session_client(session, client), session->listen->name,
             self->backend != NULL ? self->backend->name : "-",
             self->last != NULL ? self->last->name : "-", self->method, (int)self->target_size,
             self->target, exchange->status, (unsigned long long)self->in,
             (unsigned long long)self->out, (double)(now_of(self) - self->begun) / 1e6,
             self->retries, error < 0 || self->status < 0 ? " " : "",
             self->status < 0 ? session_reason(self->status)
             : error < 0      ? session_reason(error)
                              : "");
}

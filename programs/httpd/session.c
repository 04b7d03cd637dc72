/* A connection: handshake, requests, close. Each runs on the thread of its worker. */
#include "session.h"

#include <bide/coroutine.h>
#include <bide/deadline.h>
#include <bide/errors.h>
#include <bide/sleep.h>

#include <stdalign.h>
#include <stdio.h>
#include <string.h>

#define CLOSE_TIMEOUT UINT64_C(1000000000)

struct session {
    bide_connection connection;
    struct worker *worker;
    struct secure *secure; /* NULL: no TLS */
    bide_http_connection http;
    char peer[BIDE_HTTP_PEER_SIZE]; /* of TLS: the client may be gone when it is needed */
    int status;
    bide_with_deadline_operation limited;
    bide_stream_operation last;
};

static size_t align_up(size_t size)
{
    return (size + alignof(max_align_t) - 1) & ~(alignof(max_align_t) - 1);
}

static size_t secure_space(const struct worker *worker)
{
    return worker->secure != NULL ? align_up(secure_size()) : 0;
}

size_t session_size(const struct worker *worker)
{
    return align_up(sizeof(struct session)) + secure_space(worker) +
           bide_http_memory_size(&worker->http);
}

/* Sets the client's address, which the HTTP server cannot see through TLS. */
static void set_peer(struct session *self)
{
    char text[BIDE_ADDRESS_TEXT], *begin = text;
    bide_address address;
    strcpy(self->peer, "-");
    if (bide_peer_address(&self->connection.socket, &address) != 0)
        return;
    bide_address_print(&address, text, sizeof text);
    char *end = strrchr(text, ':');
    if (*text == '[') {
        begin++;
        end = strchr(text, ']');
    }
    if (end == NULL || (size_t)(end - begin) >= sizeof self->peer)
        return;
    *end = '\0';
    strcpy(self->peer, begin);
}

static void session_start(struct session *self)
{
    self->worker = self->connection.server->argument;
    self->secure = NULL;
    if (self->worker->secure != NULL) {
        self->secure = (void *)((char *)self + align_up(sizeof *self));
        secure_init(self->secure);
        set_peer(self);
    }
}

static bide_awaiter *accept_tls(struct session *self)
{
    return bide_with_timeout(&self->limited, self->worker->site->options.header_timeout,
                             secure_accept(self->secure, self->worker->secure,
                                           bide_socket_stream(&self->connection.socket)));
}

/* The client has sent something other than a TLS handshake, or one that fails, or is too slow. */
static void log_bad_handshake(struct session *self)
{
    char reason[160];
    bide_http_server *http = &self->worker->http;
    if (self->status != -EPROTO && self->status != -EREMOTEIO && self->status != -ETIMEDOUT)
        return;
    if (self->worker->site->options.log != NULL && self->status == -EPROTO)
        bide_http_log_refused(&self->worker->log.log, http, self->peer, (bide_slice){NULL, 0}, 400);
    snprintf(reason, sizeof reason, "TLS handshake: %s",
             self->status == -ETIMEDOUT ? "too slow" : secure_reason(self->secure));
    bide_http_report_incident(
        http, &(bide_http_incident){.peer = self->peer, .error = self->status, .reason = reason});
}

static bide_awaiter *serve_http(struct session *self)
{
    bide_stream stream = self->secure != NULL ? secure_stream(self->secure)
                                              : bide_socket_stream(&self->connection.socket);
    char *memory = (char *)self + align_up(sizeof *self) + secure_space(self->worker);
    bide_assert((uintptr_t)memory % alignof(max_align_t) == 0);
#if HTTPD_HAS_HTTP2
    const char *protocol = self->secure != NULL ? secure_protocol(self->secure) : NULL;
    bide_awaiter *serving =
        bide_http2_serve(&self->http, &self->worker->http2, stream, memory, protocol);
#else
    bide_awaiter *serving = bide_http_serve(&self->http, &self->worker->http, stream, memory);
#endif
    if (self->secure != NULL)
        strcpy(self->http.peer, self->peer);
    return serving;
}

/* Ends the output, so that the client can tell a complete stream from a broken one. */
static bide_awaiter *end_output(struct session *self)
{
    return bide_with_timeout(&self->limited, CLOSE_TIMEOUT,
                             bide_stream_shutdown_output(&self->last, secure_stream(self->secure)));
}

bide_declared_coroutine(session_body)
{
    bide_begin(session_body, struct session * self);
    session_start(self);
    if (self->secure != NULL) {
        bide_await_status(self->status, accept_tls(self));
        if (self->status < 0) {
            log_bad_handshake(self);
            bide_return(self->status);
        }
    }
    bide_await_status(self->status, serve_http(self));
    if (self->secure != NULL && self->status >= 0)
        bide_try(end_output(self));
    bide_return(self->status);
    bide_finally();
    if (self->secure != NULL)
        secure_close(self->secure);
    bide_end();
}

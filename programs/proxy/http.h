/*
 * Mode http: each request of a client's connection is forwarded to a server.
 *
 * A listener of a configuration has an HTTP server (bide/http.h), which parses the requests of that
 * configuration's connections; forward.c is its handler. HTTP/2 carries the same requests, several at a time:
 * over TLS if it is negotiated, otherwise if the connection begins with its preface.
 */
#ifndef PROXY_HTTP_H
#define PROXY_HTTP_H

#include "session.h"

#include <bide/http.h>
#include <bide/mutex.h>

#include <stddef.h>

/* One connection. */
struct http {
    bide_http_connection connection;
    struct session *session;
    bide_mutex turn;        /* see turns.h */
    struct forward *holder; /* has the turn; NULL: none, or the next one has not resumed yet */
    unsigned waiting;       /* requests that wait for the turn */
    struct spare_waiter spare;
    _Alignas(max_align_t) char memory[]; /* of the library */
};

/* The client's connection, of this one or of a stream of HTTP/2. */
static inline struct http *http_of(const bide_http_connection *connection)
{
    return bide_container_of(bide_http_outer_connection(connection), struct http, connection);
}

static inline struct session *http_session(const bide_http_connection *connection)
{
    return http_of(connection)->session;
}

/*
 * Creates the server. Returns a negative errno if memory is exhausted or the library has no llhttp.
 */
int http_init(struct listen *listen);

/* Lets each connection finish its current response, and then closes it. */
void http_drain(struct listen *listen);

void http_free(struct listen *listen);

/* The memory that a connection needs, and an awaiter that serves the connection in that memory. */
size_t http_size(const struct listen *listen);
bide_awaiter *http_run(struct http *http, struct session *session);

#endif

/*
 * Mode http: each request of a client's connection is forwarded to a server.
 *
 * A listener of a configuration has an HTTP server (bide/http.h), which parses the requests of that
 * configuration's connections; forward.c is its handler.
 */
#ifndef PROXY_HTTP_H
#define PROXY_HTTP_H

#include "session.h"

#include <bide/http.h>

#include <stddef.h>

/* The HTTP server of a listener in a configuration. */
struct web {
    bide_http_server server;
};

/* One connection. */
struct http {
    bide_http_connection connection;
    struct session *session;
    _Alignas(max_align_t) char memory[]; /* of the library */
};

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

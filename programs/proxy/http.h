/*
 * Mode http: requests of a client's connection, each of which goes to a server.
 *
 * A listener's part of a configuration has a server of HTTP (bide/http.h), which takes requests from
 * the connections of that configuration; forward.c is what it does with them.
 */
#ifndef PROXY_HTTP_H
#define PROXY_HTTP_H

#include "session.h"

#include <bide/http.h>

#include <stddef.h>

/* The server of HTTP of a part of a configuration. */
struct web {
    bide_http_server server;
};

/* One connection. */
struct http {
    bide_http_connection connection;
    struct session *session;
    _Alignas(max_align_t) char memory[]; /* the library's */
};

/* Makes the server. Negative errno: it could not, for lack of memory or of llhttp. */
int http_begin(struct listen *listen);

/* Connections end after the response that is under way. */
void http_retire(struct listen *listen);

void http_free(struct listen *listen);

/* How much memory a connection needs, and to be awaited in it. */
size_t http_size(const struct listen *listen);
bide_awaiter *http_run(struct http *http, struct session *session);

#endif

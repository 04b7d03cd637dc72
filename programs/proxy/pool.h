/*
 * Connections to a server that are used for one request after the other, with TLS where the backend
 * has it.
 */
#ifndef PROXY_POOL_H
#define PROXY_POOL_H

#include "configuration.h"
#include "secure.h"

#include <bide/connection_pool.h>

enum { MAX_POOL = 1024 };

struct pool {
    bide_connection_pool pool;
    unsigned count;
    bide_pooled_connection *slots;
    struct secure **secures; /* of each slot; NULL: none */
};

/* Prepares one for a request: makes it if it is the first. NULL: there is no memory. */
struct pool *pool_of(struct upstream *server);

/* No connection is idle any more, and those that are given back are closed. */
void pool_close(struct upstream *server);

/* Frees it. All connections have been given back. */
void pool_free(struct upstream *server);

/* The connection's place for its TLS. */
struct secure **pool_secure(bide_pooled_connection *connection);

/* Its stream, once it is connected and has shaken hands. */
bide_stream pool_stream(bide_pooled_connection *connection);

/* Gives it back, to be used again, as far as the backend keeps that many. */
void pool_give(struct upstream *server, bide_pooled_connection *connection, bool reusable);

#endif

/*
 * A pool of connections to a server, each used for one request after another, with TLS if the
 * backend uses it.
 */
#ifndef PROXY_POOL_H
#define PROXY_POOL_H

#include "configuration.h"
#include "secure.h"

#include <bide/connection_pool.h>

enum { MAX_POOL_CONNECTIONS = 1024 };

struct pool {
    bide_connection_pool pool;
    unsigned count;
    bide_pooled_connection *slots;
    struct secure **secure_slots; /* of each slot; NULL: none */
};

/*
 * The server's pool, ready for a request; created by the first. Returns NULL if memory is
 * exhausted.
 */
struct pool *pool_of(struct upstream *server);

/* Closes idle connections; a connection that is returned later is closed too. */
void pool_close(struct upstream *server);

/* Frees the pool. All connections must have been returned. */
void pool_free(struct upstream *server);

/* The slot for the connection's TLS. */
struct secure **pool_secure(bide_pooled_connection *connection);

/* The connection's stream, once it is connected and the handshake is done. */
bide_stream pool_stream(bide_pooled_connection *connection);

/* Returns the connection. It is kept if it is reusable and the backend keeps that many. */
void pool_return(struct upstream *server, bide_pooled_connection *connection, bool reusable);

#endif

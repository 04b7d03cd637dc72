/*
 * A pool of connections to a server, each used for one request after another, with TLS if the
 * backend uses it.
 */
#ifndef PROXY_POOL_H
#define PROXY_POOL_H

#include "../common/secure.h"
#include "configuration.h"
#include "descriptors.h"

#include <bide/connection_pool.h>

enum { MAX_POOL_CONNECTIONS = 1024 };

/* The state of a slot that the library's pool does not know. */
struct pool_slot {
    struct secure *secure; /* NULL: no TLS */
    bool is_spare;         /* it is idle, and its descriptor a spare one */
};

struct pool {
    bide_connection_pool pool;
    unsigned count;
    bide_pooled_connection *slots;
    struct pool_slot *others;        /* of each slot */
    struct descriptors *descriptors; /* of which idle connections are spare ones */
};

/*
 * The server's pool, ready for a request; created by the first. Returns NULL if memory is
 * exhausted.
 */
struct pool *pool_of(struct upstream *server, struct descriptors *descriptors);

/* Closes idle connections; a connection that is returned later is closed too. */
void pool_close(struct upstream *server);

/* Frees the pool. All connections must have been returned. */
void pool_free(struct upstream *server);

/* A request begins to use the connection that it has acquired. */
void pool_use(bide_pooled_connection *connection);

/* The slot for the connection's TLS. */
struct secure **pool_secure(bide_pooled_connection *connection);

/* The connection's stream, once it is connected and the handshake is done. */
bide_stream pool_stream(bide_pooled_connection *connection);

/* Returns the connection. It is kept if it is reusable, the backend keeps that many, and a descriptor is to spare. */
void pool_return(struct upstream *server, bide_pooled_connection *connection, bool reusable);

#endif

/*
 * Connections that are used again.
 */
#include "pool.h"
#include "balance.h"

#include <bide/descriptor.h>

#include <stdlib.h>

static struct pool *outer(bide_pooled_connection *connection)
{
    return bide_container_of(connection->pool, struct pool, pool);
}

/* It is about to be closed: so is its TLS, first. */
static void closing(bide_pooled_connection *connection)
{
    struct secure **secure = pool_secure(connection);
    secure_destroy(*secure);
    *secure = NULL;
}

struct pool *pool_of(struct upstream *server)
{
    struct pool *pool = server->pool;
    if (pool == NULL) {
        const bide_address *address = &server->addresses[0];
        pool = calloc(1, sizeof *pool);
        if (pool == NULL)
            return NULL;
        pool->count = server->max != 0 ? server->max : MAX_POOL;
        pool->slots = calloc(pool->count, sizeof *pool->slots);
        pool->secures = calloc(pool->count, sizeof *pool->secures);
        if (pool->slots == NULL || pool->secures == NULL) {
            free(pool->slots);
            free(pool->secures);
            free(pool);
            return NULL;
        }
        bide_connection_pool_init(&pool->pool, address, pool->slots, pool->count,
                                  server->backend->keep_idle);
        pool->pool.closing = closing;
        server->pool = pool;
    }
    pool->pool.address = *balance_address(server); /* of the next that is connected */
    return pool;
}

void pool_close(struct upstream *server)
{
    if (server->pool != NULL)
        bide_connection_pool_close(&server->pool->pool);
}

void pool_free(struct upstream *server)
{
    struct pool *pool = server->pool;
    if (pool == NULL)
        return;
    free(pool->slots);
    free(pool->secures);
    free(pool);
    server->pool = NULL;
}

struct secure **pool_secure(bide_pooled_connection *connection)
{
    struct pool *pool = outer(connection);
    return &pool->secures[connection - pool->slots];
}

bide_stream pool_stream(bide_pooled_connection *connection)
{
    struct secure *secure = *pool_secure(connection);
    return secure != NULL ? secure_stream(secure) : bide_socket_stream(&connection->socket);
}

void pool_give(struct upstream *server, bide_pooled_connection *connection, bool reusable)
{
    struct pool *pool = outer(connection);
    size_t idle = pool->pool.open - pool->pool.taken;
    reusable = reusable && idle < server->backend->keep && server->backend->send_proxy == 0;
    bide_connection_pool_release(connection, reusable);
}

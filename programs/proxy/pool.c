/* Pools of server connections. Everything runs on the loop's thread. */
#include "pool.h"
#include "balance.h"

#include <bide/descriptor.h>

#include <stdlib.h>

static struct pool *pool_containing(bide_pooled_connection *connection)
{
    return bide_container_of(connection->pool, struct pool, pool);
}

/* Called before the connection is closed: closes its TLS first. */
static void close_tls(bide_pooled_connection *connection)
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
        pool->count = server->max_connections != 0 ? server->max_connections : MAX_POOL_CONNECTIONS;
        pool->slots = calloc(pool->count, sizeof *pool->slots);
        pool->secure_slots = calloc(pool->count, sizeof *pool->secure_slots);
        if (pool->slots == NULL || pool->secure_slots == NULL) {
            free(pool->slots);
            free(pool->secure_slots);
            free(pool);
            return NULL;
        }
        bide_connection_pool_init(&pool->pool, address, pool->slots, pool->count,
                                  server->backend->keep_idle);
        pool->pool.closing = close_tls;
        server->pool = pool;
    }
    pool->pool.address = *balance_address(server); /* for the next connection that is opened */
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
    bide_assert(pool->pool.taken == 0 && pool->pool.open == 0);
    free(pool->slots);
    free(pool->secure_slots);
    free(pool);
    server->pool = NULL;
}

struct secure **pool_secure(bide_pooled_connection *connection)
{
    struct pool *pool = pool_containing(connection);
    bide_assert(connection >= pool->slots && connection < pool->slots + pool->count);
    return &pool->secure_slots[connection - pool->slots];
}

bide_stream pool_stream(bide_pooled_connection *connection)
{
    struct secure *secure = *pool_secure(connection);
    return secure != NULL ? secure_stream(secure) : bide_socket_stream(&connection->socket);
}

void pool_return(struct upstream *server, bide_pooled_connection *connection, bool reusable)
{
    struct pool *pool = pool_containing(connection);
    bide_assert(pool->pool.taken > 0 && pool->pool.taken <= pool->pool.open &&
                pool->pool.open <= pool->count);
    size_t idle = pool->pool.open - pool->pool.taken;
    reusable = reusable && idle < server->backend->keep && server->backend->send_proxy == 0 &&
               !secure_has_input(*pool_secure(connection)); /* of another response */
    bide_connection_pool_release(connection, reusable);
}

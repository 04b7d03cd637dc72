/* Pools of server connections. Everything runs on the loop's thread. */
#include "pool.h"
#include "balance.h"

#include <bide/descriptor.h>

#include <stdlib.h>

static struct pool *pool_containing(bide_pooled_connection *connection)
{
    return bide_container_of(connection->pool, struct pool, pool);
}

static struct pool_slot *pool_slot_of(bide_pooled_connection *connection)
{
    struct pool *pool = pool_containing(connection);
    bide_assert(connection >= pool->slots && connection < pool->slots + pool->count);
    return &pool->others[connection - pool->slots];
}

void pool_use(bide_pooled_connection *connection)
{
    struct pool_slot *slot = pool_slot_of(connection);
    if (slot->is_spare)
        descriptors_give(pool_containing(connection)->descriptors, 1);
    slot->is_spare = false;
}

/* Called before the connection is closed. */
static void close_with_connection(bide_pooled_connection *connection)
{
    pool_use(connection);
    struct secure **secure = pool_secure(connection);
    secure_destroy(*secure);
    *secure = NULL;
}

struct pool *pool_of(struct upstream *server, struct descriptors *descriptors)
{
    struct pool *pool = server->pool;
    if (pool == NULL) {
        const bide_address *address = &server->addresses[0];
        pool = calloc(1, sizeof *pool);
        if (pool == NULL)
            return NULL;
        pool->count = server->max_connections != 0 ? server->max_connections : MAX_POOL_CONNECTIONS;
        pool->slots = calloc(pool->count, sizeof *pool->slots);
        pool->others = calloc(pool->count, sizeof *pool->others);
        pool->descriptors = descriptors;
        if (pool->slots == NULL || pool->others == NULL) {
            free(pool->slots);
            free(pool->others);
            free(pool);
            return NULL;
        }
        bide_connection_pool_init(&pool->pool, address, pool->slots, pool->count,
                                  server->backend->keep_idle);
        pool->pool.closing = close_with_connection;
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
    free(pool->others);
    free(pool);
    server->pool = NULL;
}

struct secure **pool_secure(bide_pooled_connection *connection)
{
    return &pool_slot_of(connection)->secure;
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
               !secure_has_input(*pool_secure(connection)) && /* of another response */
               descriptors_take(pool->descriptors, 1);
    pool_slot_of(connection)->is_spare = reusable;
    bide_connection_pool_release(connection, reusable);
}

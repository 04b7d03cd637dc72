/* Connections of requests to servers: see connecting.h. Runs on the program's loop. */
#define _GNU_SOURCE
#include "connecting.h"
#include "../common/secure.h"
#include "proxy_header.h"
#include "sticky.h"

#include <bide/sleep.h>

#include <errno.h>

/* The client's own server, also if the request has to wait for it. NULL: any other. */
static struct upstream *choose_sticky(struct forward *self)
{
    struct backend *backend = self->backend;
    if (backend->sticky == STICKY_NOT)
        return NULL;
    if (backend->sticky == STICKY_ADDRESS)
        return sticky_by_address(backend, &self->tried, &self->session->client, self->tried_at,
                                 true);
    if (self->last == NULL)
        self->named = sticky_named(backend, &self->exchange.request);
    return balance_try(self->named, &self->tried, self->tried_at);
}

bool connecting_choose(struct forward *self)
{
    self->tried_at = forward_now(self);
    self->server = choose_sticky(self);
    if (self->server == NULL)
        self->server = balance_choose(self->backend, &self->tried, self->tried_at);
    if (self->server == NULL) /* none below its limit: wait for one that is full */
        self->server = balance_choose_full(self->backend, &self->tried, self->tried_at);
    if (self->server == NULL)
        return false;
    self->last = self->server;
    self->has_sent = self->has_response_data = false;
    balance_connection_started(self->server);
    return true;
}

static uint64_t connect_deadline(const struct forward *self)
{
    return self->tried_at + self->backend->connect_timeout;
}

bide_awaiter *connecting_acquire(struct forward *self)
{
    struct pool *pool = pool_of(self->server, &self->session->program->descriptors);
    bide_http_set_half_close(&self->exchange, false);
    self->scratch->taking.connection = NULL;
    if (pool == NULL)
        return bide_stream_ended(&self->scratch->stream, -ENOMEM);
    return bide_with_deadline(&self->limited, connect_deadline(self),
                              bide_connection_pool_acquire(&self->scratch->taking, &pool->pool));
}

void connecting_use(struct forward *self)
{
    if (self->status < 0)
        return;
    self->connection = self->scratch->taking.connection;
    pool_use(self->connection);
    bide_http_set_half_close(&self->exchange, true); /* (5 of forward.c) */
    self->is_fresh = !self->connection->was_idle;
    if (self->is_fresh)
        (void)bide_set_no_delay(&self->connection->socket, true);
}

bide_awaiter *connecting_send_header(struct forward *self)
{
    size_t size =
        proxy_header_print((unsigned char *)self->scratch->body, self->backend->send_proxy,
                           &self->session->client, &self->session->local);
    return bide_with_deadline(
        &self->limited, connect_deadline(self),
        bide_send(&self->scratch->io, &self->connection->socket, self->scratch->body, size));
}

bide_awaiter *connecting_start_tls(struct forward *self)
{
    struct secure **secure = pool_secure(self->connection);
    *secure = secure_create();
    if (*secure == NULL)
        return bide_stream_ended(&self->scratch->stream, -ENOMEM);
    return bide_with_deadline(&self->limited, connect_deadline(self),
                              secure_connect(*secure, self->backend->tls,
                                             bide_socket_stream(&self->connection->socket),
                                             upstream_tls_name(self->server)));
}

void connecting_release(struct forward *self, bool reusable)
{
    if (self->connection != NULL)
        pool_return(self->server, self->connection, reusable);
    self->connection = NULL;
    if (self->server != NULL)
        balance_connection_finished(self->server);
    self->server = NULL;
}

/*
 * A server for each worker of a pool. The servers share only their options and an address.
 *
 * 1. A listener is assigned to its worker's loop before it is used. Accepts complete on that loop and
 *    wake the acceptor there. So a connection that the acceptor starts is queued on that worker, and
 *    first receives on it, unless another worker steals it before.
 * 2. The servers are branches of a scope: the first that fails stops the others.
 * 3. A server closes its listener (server.c). If `listen` fails or is destroyed, no server runs, and
 *    `listen` closes all listeners.
 */
#include "bide/pool_server.h"

#include "bide/coroutine.h"

#include <errno.h>

int bide_pool_server_init(bide_pool_server *server, bide_thread_pool *pool,
                          bide_pool_server_worker *workers, const bide_server_options *options)
{
    bide_server_options each = *options;
    server->pool = pool;
    server->workers = workers;
    server->count = bide_thread_pool_threads(pool);
    if (!bide_io_pool_is(pool))
        return -EINVAL;
    for (unsigned i = 0; i < server->count; i++) {
        int error = bide_server_init(&workers[i].server, &each);
        if (error != 0)
            return error;
        if (each.slots != NULL)
            each.slots = (char *)each.slots + each.max_connections * each.size;
    }
    return 0;
}

/* ---- Listening ---- */

static void pool_server_close_listeners(bide_pool_server *server)
{
    for (unsigned i = 0; i < server->count; i++)
        bide_close(&server->workers[i].server.listener);
}

static bide_awaiter *pool_server_listen_next(bide_pool_server *server)
{
    return bide_listen_with(&server->listen, &server->workers[server->next].server.listener,
                            &server->address, server->backlog, BIDE_LISTEN_REUSE_PORT);
}

/* Assigns the next listener to its worker's loop: 1. The first listener determines the port. */
static int pool_server_assign_listener(bide_pool_server *server)
{
    bide_assert(server->next < server->count);
    bide_descriptor *listener = &server->workers[server->next].server.listener;
    int error = bide_local_address(listener, &server->address);
    if (error == 0)
        error = bide_io_pool_assign(server->pool, server->next, listener);
    if (error == 0)
        server->next++;
    return error;
}

bide_coroutine(bide_pool_server_listening)
{
    bide_begin(bide_pool_server_listening, bide_pool_server * self);
    for (self->next = 0; self->next < self->count;) {
        bide_try(pool_server_listen_next(self));
        int error = pool_server_assign_listener(self);
        if (error < 0)
            bide_return(error);
    }
    bide_finally();
    if (self->next < self->count) /* 3 */
        pool_server_close_listeners(self);
    bide_end();
}

bide_awaiter *bide_pool_server_listen(bide_pool_server *server, const bide_address *address,
                                      int backlog)
{
    server->address = *address;
    server->backlog = backlog;
    return bide_task_init(&server->task, &bide_pool_server_listening);
}

/* ---- Serving ---- */

bide_coroutine(bide_pool_server_body)
{
    bide_begin(bide_pool_server_body, bide_pool_server * self);
    bide_scope_init(&self->scope, bide_this_frame());
    for (unsigned i = 0; i < self->count; i++)
        bide_scope_spawn(&self->scope, &self->workers[i].branch,
                         bide_server_run(&self->workers[i].server));
    bide_try(bide_scope_join(&self->scope)); /* 2 */
    bide_finally();
    bide_scope_destroy(&self->scope);
    bide_end();
}

bide_awaiter *bide_pool_server_run(bide_pool_server *server)
{
    return bide_task_init(&server->task, &bide_pool_server_body);
}

void bide_pool_server_shut_down(bide_pool_server *server, uint64_t deadline)
{
    for (unsigned i = 0; i < server->count; i++)
        bide_server_shut_down(&server->workers[i].server, deadline);
}

void bide_pool_server_get_stats(bide_pool_server *server, bide_server_stats *counts)
{
    *counts = (bide_server_stats){0, 0, 0, 0, 0, 0};
    for (unsigned i = 0; i < server->count; i++) {
        bide_server_stats one;
        bide_server_get_stats(&server->workers[i].server, &one);
        counts->accepted += one.accepted;
        counts->refused += one.refused;
        counts->failed += one.failed;
        counts->errors += one.errors;
        counts->pauses += one.pauses;
        counts->live += one.live;
    }
}

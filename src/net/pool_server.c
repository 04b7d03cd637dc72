/*
 * A server for each worker. They share nothing but their options and an address.
 *
 * 1. A listener is given its home before it is used. An accept is done at home and wakes the acceptor
 *    there; so what that begins is posted there, and is at home where it first receives, unless it
 *    was stolen before.
 * 2. The servers are branches of a scope: the first that fails has the others stopped.
 * 3. A listener that is closed belongs to its server (server.c), or, where it never ran, to `listen`,
 *    which closes all of them if it does not come to its end.
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

static void close_listeners(bide_pool_server *server)
{
    for (unsigned i = 0; i < server->count; i++)
        bide_close(&server->workers[i].server.listener);
}

static bide_awaiter *listen_at_next(bide_pool_server *server)
{
    return bide_listen_with(&server->listen, &server->workers[server->next].server.listener,
                            &server->address, server->backlog, BIDE_LISTEN_REUSE_PORT);
}

/* 1 */
static int take_home(bide_pool_server *server)
{
    bide_descriptor *listener = &server->workers[server->next].server.listener;
    int error = bide_local_address(listener, &server->address);
    return error < 0 ? error : bide_io_pool_assign(server->pool, server->next++, listener);
}

bide_coroutine(bide_pool_server_listening)
{
    bide_begin(bide_pool_server_listening, bide_pool_server * self);
    for (self->next = 0; self->next < self->count;) {
        bide_try(listen_at_next(self));
        int error = take_home(self);
        if (error < 0)
            bide_return(error);
    }
    bide_finally();
    if (self->next < self->count) /* 3 */
        close_listeners(self);
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

/*
 * A server on every worker of a pool whose workers have loops (io_pool.h). The listeners share one
 * address, and the kernel distributes the connections over them. Floor: net.
 *
 *     static bide_pool_server_worker workers[64];        // at least one for each thread
 *     bide_pool_server_init(&self->server, pool, workers, &(bide_server_options){
 *         .body = &client_body, .size = sizeof(struct client), .max_connections = 1000,
 *         .allocator = &bide_heap});
 *     bide_try(bide_pool_server_listen(&self->server, &address, 128));
 *     bide_try(bide_pool_server_run(&self->server));     // until bide_pool_server_shut_down
 *
 * Each worker is the home of one listener and of the connections that it accepts. A connection's
 * coroutine starts on that worker, and its operations on the socket are done there. An idle worker
 * steals ready coroutines, as in any pool. So connections stay where they are while the load is even,
 * and expensive ones are spread.
 *
 * Coroutines of the pool listen and run. Any thread may shut the server down, but not in a
 * signal handler. Each worker's server behaves as server.h describes; `max_connections` is per worker.
 *
 * Why it is correct: src/net/pool_server.c.
 */
#ifndef BIDE_POOL_SERVER_H
#define BIDE_POOL_SERVER_H

#include "bide/address.h"
#include "bide/io_pool.h"
#include "bide/server.h"

BIDE_EXTERN_C_BEGIN

/* The server of one worker. Its `argument` is the user's, to be set after init. */
typedef struct bide_pool_server_worker {
    bide_server server;
    bide_branch branch;
} bide_pool_server_worker;

/* The caller's memory until it has ended. */
typedef struct bide_pool_server {
    bide_task task;
    bide_address address; /* where it listens, once it does */

    /* of the servers */
    bide_thread_pool *pool;
    bide_pool_server_worker *workers;
    unsigned count;
    unsigned next; /* that is to listen */
    int backlog;
    bide_io_operation listen;
    bide_scope scope;
} bide_pool_server;

/*
 * Makes a server for each worker of `pool`, in `workers`, as many as it has threads
 * (bide_thread_pool_threads). Each is as `options` say: `max` connections are those of one.
 * `slots`, if it is not NULL, are for all of them: `max` for each. An `allocator` is one that
 * several threads may ask at once, such as bide_heap.
 * Threads: before it is shared. Errors: as bide_server_init; -EINVAL (not a pool with loops).
 * Progress: wait-free, linear in the threads.
 */
int bide_pool_server_init(bide_pool_server *server, bide_thread_pool *pool,
                          bide_pool_server_worker *workers, const bide_server_options *options);

/*
 * Opens a listener for each worker, at `address`, of IP: port 0 is any, the same for all of them.
 * Once it has ended server->address is what it is. If it fails none is left open.
 * Threads: one at a time, of the pool. Errors: those of bide_listen_with, -ECANCELED, -ETIMEDOUT.
 * Suspends: never. Cancel-safe: yes. Progress: blocks until the coroutine that runs on each worker
 * suspends.
 */
BIDE_KEY_SCOPED(bide_pool_server_shut_down);
BIDE_MUST_AWAIT
bide_awaiter *bide_pool_server_listen(bide_pool_server *server, const bide_address *address,
                                      int backlog);

/*
 * Accepts and serves on all workers, until it is shut down; ends when all of them have. If one
 * fails, the others are asked to stop, and it ends with that error. Otherwise as bide_server_run.
 * Threads: any of the pool. Errors: as bide_server_run. Suspends: always. Cancel-safe: as
 * bide_server_run. Progress: that of the connections.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_pool_server_run(bide_pool_server *server);

/*
 * Shuts all of them down; as bide_server_shut_down.
 * Threads: any, while the server stays, but not in a signal handler. Suspends: never. Progress: as
 * bide_stop_request, for each.
 */
void bide_pool_server_shut_down(bide_pool_server *server, uint64_t deadline);

/*
 * Puts into *counts what they have done together.
 * Threads: any, while the server stays. Progress: blocks, for a moment.
 */
void bide_pool_server_get_stats(bide_pool_server *server, bide_server_stats *counts);

BIDE_EXTERN_C_END

#endif

/*
 * A server of connections: accepts them, runs a coroutine for each, and drains on shutdown.
 * Floor: net.
 *
 *     struct client {
 *         bide_connection connection;          // at the head: it has the coroutine's header
 *         bide_io_operation operation;
 *         char buffer[4096];
 *     };
 *     bide_coroutine(client_body)
 *     {
 *         bide_begin(client_body, struct client *self);
 *         ... bide_recv(&self->operation, &self->connection.socket, ...) ...
 *         bide_end();                          // the server closes the socket
 *     }
 *
 *     static struct client clients[1000];
 *     bide_server_init(&server, &(bide_server_options){
 *         .body = &client_body, .size = sizeof *clients, .max_connections = 1000, .slots = clients});
 *     bide_try(bide_listen(&self->listen, &server.listener, &address, 128));
 *     bide_try(bide_server_run(&server));      // until bide_server_shut_down
 *
 *     init --run--> accepts --shut_down--> drains --all have ended, or the deadline--> ended
 *
 * The memory of the connections is the caller's: an array, or an allocator that is called for a new
 * connection unless memory of an ended one is kept (`spare_connections`). At its maximum the server accepts no
 * more; new connections wait in the kernel.
 *
 * A server belongs to one loop, or to a pool whose workers each have a loop (io_pool.h): then the
 * connections run on any of its threads. "Descriptors" and "Threads" are below.
 */
#ifndef BIDE_SERVER_H
#define BIDE_SERVER_H

#include "bide/allocator.h"
#include "bide/auto_event.h"
#include "bide/deadline.h"
#include "bide/scope.h"
#include "bide/socket.h"
#include "bide/task.h"
#include "bide/with_stop.h"
#include "bide/extend/wrapper.h"

#include <pthread.h>

BIDE_EXTERN_C_BEGIN

typedef struct bide_server bide_server;
typedef struct bide_connection bide_connection;

/* The head of every connection. Its memory is a slot of the server. */
struct bide_connection {
    bide_task task; /* that of the user's body */
    bide_descriptor socket;
    bide_server *server;

    /* of the server */
    bide_connection *next; /* that is free */
    bide_forward served;
    bide_branch branch;
};

/* Options of a server. */
typedef struct bide_server_options {
    const bide_point *body; /* of the coroutine for each connection (bide_coroutine) */
    size_t size;            /* of the struct whose head is the bide_connection */
    size_t max_connections; /* connections at a time: 1 or more */

    /* The memory: `max_connections` structs of that size in a row, the caller's until the server has ended. */
    void *slots;
    /* ... or, if that is NULL: where each gets its memory when it comes. One thread at a time asks. */
    bide_allocator *allocator;
    /* So many freed connections are kept for the next ones, until the server has ended. */
    size_t spare_connections;

    /* nanoseconds: how long it pauses when the system has no descriptor or memory. 0: 10 ms */
    uint64_t accept_retry_delay;
} bide_server_options;

/* Counters of a server. */
typedef struct bide_server_stats {
    uint64_t accepted; /* connections that were served */
    uint64_t refused;  /* that were closed at once, because there was no descriptor */
    uint64_t failed;   /* of those accepted, whose coroutine ended with an error */
    uint64_t errors;   /* of accepting, and of memory */
    uint64_t pauses;
    size_t live; /* connections that there are now */
} bide_server_stats;

/* The coroutine that accepts. Of the server. */
typedef struct bide_server_acceptor_ {
    bide_task task;
    bide_server *server;
    bide_connection *next; /* the slot of the next connection */
    bide_io_operation accept;
    bide_auto_event_waiter wait;
    bide_with_deadline_operation limited;
    int status;
} bide_server_acceptor_;

/* The caller's memory until it has ended. */
struct bide_server {
    bide_task task;
    bide_descriptor listener; /* the user opens it, before the server runs */
    void *argument;           /* the user's */

    /* of the server */
    bide_server_options options;
    bide_server_stats stats;
    bide_connection *unused; /* slots that have been used, and are free */
    size_t fresh;            /* slots that have not */
    size_t kept;             /* the number of `unused`, if they are the allocator's */
    size_t max_connections;  /* at this time; under the lock */
    int reserve;             /* a descriptor; or -1 */
    bide_scope scope;
    bide_stop_source accepting;
    bide_auto_event news; /* a connection has ended, or it is shut down */
    pthread_mutex_t lock; /* of what its connections change */
    bide_atomic(uint64_t) deadline;
    bide_server_acceptor_ acceptor;
    bide_with_stop_operation phase;
    bide_auto_event_waiter wait;
    bide_with_deadline_operation limited;
    int status;
};

/*
 * Makes a server. `options` is copied. Its listener is closed; what opens it is bide_listen, or
 * bide_descriptor_init with one that was handed over.
 * Threads: before it is shared. Errors: -EINVAL (a body, a size or a number is missing, or both
 * memories are). Progress: wait-free.
 */
int bide_server_init(bide_server *server, const bide_server_options *options);

/*
 * Accepts and serves, until it is shut down; ends with 0 when all connections have ended and the
 * listener is closed. If the awaiting coroutine is asked to stop, so are all connections, at once.
 * A failure that does not pass, such as a listener that is none, is an error, after which the
 * connections are asked to stop as well. A connection's own error ends nothing but the connection.
 *
 * Once. The server must stay until it has ended. If its coroutine is destroyed, or one that awaits
 * it, its connections are destroyed with it, newest first, as bide_scope_destroy does: their
 * `finally` parts run, their sockets are closed, and the listener is. So no connection may have it
 * destroyed, nor may one be on another thread then. One that was destroyed before it began has
 * closed nothing. A connection's coroutine ends on the server's scheduler: if it has moved, it moves
 * back.
 * Threads: the loop's. Errors: those of accept(2) that stay, -ECANCELED, -ETIMEDOUT, -ENOTSUP (no
 * loop). Suspends: always. Cancel-safe: yes, connections that come are not accepted. Progress: that
 * of the connections.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_server_run(bide_server *server);

/*
 * Shuts it down: it accepts no more, closes the listener, and waits for its connections until
 * `deadline`, nanoseconds of bide_now(); 0: not at all, BIDE_FOREVER: until they end by themselves.
 * Then it asks the remaining ones to stop, and waits for their end. Before the server runs it has
 * the same effect, then. Again, with another deadline: that counts.
 * Threads: any, while the server stays, but not in a signal handler. Suspends: never. Progress: as
 * bide_stop_request.
 */
void bide_server_shut_down(bide_server *server, uint64_t deadline);

/*
 * Changes how many connections it serves at a time, to `max_connections`: 1 or more, and with `slots` no
 * more than there are. If it has more already, they all continue, and it accepts no more until there are
 * fewer. An accept that waits at this time may still bring one connection.
 * Threads: any, while the server stays, but not in a signal handler. Errors: -EINVAL (0, or more than there
 * are slots), and nothing has changed. Suspends: never. Progress: blocks, for a moment.
 */
int bide_server_set_max_connections(bide_server *server, size_t max_connections);

/*
 * Puts into *counts what it has done.
 * Threads: any, while the server stays. Progress: blocks, for a moment.
 */
void bide_server_get_stats(bide_server *server, bide_server_stats *counts);

/*
 * The same, where one thread has the server: a loop's.
 * Threads: the loop's. Progress: wait-free.
 */
BIDE_INLINE const bide_server_stats *bide_server_own_stats(const bide_server *server)
{
    return &server->stats;
}

/*
 * Why it is correct: src/net/server.c.
 */

/*
 * Descriptors. When the process runs out of descriptors, the server accepts the next connection
 * with one that it has kept in reserve. If a descriptor is free again by then, the connection is
 * served; otherwise the server closes it, so that its client knows. Then the server pauses for a
 * moment, or until a connection has ended. It never spins.
 *
 * Threads. In a pool the listener has one worker for its home. Several listeners may share an
 * address (BIDE_LISTEN_REUSE_PORT): those of several threads with a loop and a server each, or of a
 * pool with a server for each worker (pool_server.h). Accepting a connection costs a post and an
 * uncontended lock beside the system call. The server adds nothing to the connection's own
 * operations.
 */

BIDE_EXTERN_C_END

#endif

/*
 * A pool of connections to one address: a coroutine takes one, uses it and gives it back for reuse.
 * The number is bounded; further coroutines wait in line. Floor: net.
 *
 *     static bide_pooled_connection connections[8];
 *     bide_connection_pool_init(&pool, &address, connections, 8, 30 * SECOND);
 *
 *     bide_try(bide_connection_pool_acquire(&self->taking, &pool));
 *     ... bide_send(&self->send, &self->taking.connection->socket, ...) ...
 *     bide_connection_pool_release(self->taking.connection, true);
 *     ...
 *     bide_connection_pool_close(&pool);
 *
 *     unused --take, connect--> taken --give--> idle --take--> taken
 *                                 |              |
 *                                 +--broken------+--it has expired, or the peer has closed it
 *                                 v              v
 *                               unused         unused
 *
 * An idle connection is checked before it is given out: if it is readable, the peer has closed it, or
 * has sent an unexpected answer, and another one is used. The peer may still close it right after
 * that. So an exchange that fails on a connection that was_idle, before any answer, is worth a retry.
 *
 * A pool belongs to one loop. The memory is the caller's. Taking an idle connection costs one system
 * call.
 *
 * Why it is correct: src/net/connection_pool.c.
 */
#ifndef BIDE_CONNECTION_POOL_H
#define BIDE_CONNECTION_POOL_H

#include "bide/event.h"
#include "bide/semaphore.h"
#include "bide/sleep.h"
#include "bide/socket.h"
#include "bide/task.h"

BIDE_EXTERN_C_BEGIN

typedef struct bide_connection_pool bide_connection_pool;
typedef struct bide_pooled_connection bide_pooled_connection;
struct bide_connection_acquire_operation;

/* One connection. The pool's, but for the socket, which is the taker's until it is given back. */
struct bide_pooled_connection {
    bide_descriptor socket;
    bool was_idle; /* it was used before */

    /* of the pool */
    bide_connection_pool *pool;
    bide_pooled_connection *older; /* in the list of the idle, or of the unused */
    bide_pooled_connection *newer;
    uint64_t until; /* when it is to be closed, if it is idle */
};

/* The coroutine that closes connections that were idle for too long. Of the pool. */
typedef struct bide_connection_closer_ {
    bide_task task;
    bide_connection_pool *pool;
    bide_sleep sleep;
} bide_connection_closer_;

/* The caller's memory until it is closed and all connections have been given back. */
struct bide_connection_pool {
    bide_address address;
    uint64_t idle; /* nanoseconds; BIDE_FOREVER: without an end */
    size_t max;
    size_t open; /* connections that there are: taken, idle, or being opened */

    /* The user's, who may set it after init; NULL: none. Told of one that is about to be closed, and will not be given
     * out again, for what goes with it, such as TLS over it. It may close the socket itself. */
    void (*closing)(bide_pooled_connection *connection);

    /* The user's, who may set it after init; NULL: bide_connect to `address`. Returns an operation that opens
     * connection->socket, and whatever goes with it. If the operation does not end with 0,
     * `closing` is called with the connection, and a socket that is open then is closed. */
    bide_awaiter *(*connect)(struct bide_connection_acquire_operation *taking,
                             bide_pooled_connection *connection);

    /* of the pool */
    bide_semaphore takers; /* a permit for each connection that is not taken */
    bide_pooled_connection *unused;
    bide_pooled_connection *newest; /* of the idle */
    bide_pooled_connection *oldest;
    size_t taken;
    bool is_closed;
    bool is_closing_idle; /* the closer runs */
    bide_context context; /* of the closer */
    bide_connection_closer_ closer;
    bide_event ended; /* it is closed, and all were given back */
};

/* One wait for a connection. The caller's memory until the wait has ended. */
typedef struct bide_connection_acquire_operation {
    bide_task task;
    bide_connection_pool *pool;
    bide_pooled_connection *connection; /* the result; NULL: none */

    bide_pooled_connection *slot; /* opened for it; NULL: it waited, or one was idle */
    bide_semaphore_waiter wait;
    bide_io_operation connect;
    bool has_permit;
    int status;
} bide_connection_acquire_operation;

/*
 * Makes a pool of connections to `address`, which is copied, in the memory of `max` of them at
 * `connections`, 1 to BIDE_SEMAPHORE_MAX. Another number is misuse, which is reported where
 * BIDE_DEBUG is 1. Connections that are idle for `idle` nanoseconds are closed.
 * Threads: before it is shared. Progress: wait-free, linear in `max`.
 */
void bide_connection_pool_init(bide_connection_pool *pool, const bide_address *address,
                               bide_pooled_connection *connections, size_t max, uint64_t idle);

#define bide_connection_pool_init(pool, address, connections, max, idle)                      \
    bide_connection_pool_init(                                                                \
        pool, address, connections,                                                           \
        BIDE_COUNT_IN_(max, 1,                                                                \
                       BIDE_ROOM_AT_(connections) < BIDE_SEMAPHORE_MAX                        \
                           ? BIDE_ROOM_AT_(connections)                                       \
                           : BIDE_SEMAPHORE_MAX,                                              \
                       "a pool of no connections, or of more than there is room for", #pool), \
        idle)

/*
 * Takes a connection, which is taking->connection then: the last one given back, if it is whole;
 * otherwise a new one. Waits while the maximum number is taken; first come, first served.
 * Threads: the loop's. Errors: those of bide_connect, or of pool->connect; -EPIPE (the pool is closed), -ECANCELED,
 * -ETIMEDOUT. Suspends: unless one is idle. Cancel-safe: yes, none is taken. Progress: that of the
 * system calls.
 */
BIDE_KEY_SCOPED(bide_connection_pool_release);
BIDE_MUST_AWAIT
bide_awaiter *bide_connection_pool_acquire(bide_connection_acquire_operation *taking,
                                           bide_connection_pool *pool);

/*
 * Gives one back. `reusable`: its last exchange has come to its end, and the next may begin.
 * Otherwise it is closed, as it is if its socket is closed, or the pool.
 * Threads: the loop's. Suspends: never. Progress: as bide_close, if it is closed; wait-free
 * otherwise, but for the timer that is set.
 */
void bide_connection_pool_release(bide_pooled_connection *connection, bool reusable);

/*
 * Closes the pool: operations that wait for a connection, and later ones, end with -EPIPE. Idle
 * connections are closed. Taken connections are closed when they are given back: see
 * bide_connection_pool_join. More than once is once.
 * Threads: the loop's. Suspends: never. Progress: as bide_close, for each that is idle.
 */
void bide_connection_pool_close(bide_connection_pool *pool);

/*
 * Waits until the pool is closed and all connections were given back. Then nothing refers to it.
 * Threads: the loop's. Errors: -ECANCELED, -ETIMEDOUT. Suspends: if one is taken. Cancel-safe: yes.
 * Progress: lock-free.
 */
BIDE_MUST_AWAIT
BIDE_INLINE bide_awaiter *bide_connection_pool_join(bide_event_waiter *waiter,
                                                    bide_connection_pool *pool)
{
    return bide_event_wait(waiter, &pool->ended);
}

BIDE_EXTERN_C_END

#endif

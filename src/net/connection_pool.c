/*
 * Pools of connections.
 *
 *     a connection    unused --take--> taken --give--> idle --take--> taken
 *                                      taken --give, not reusable--> unused
 *                                                      idle --timeout--> unused
 *
 * All of a pool belongs to one loop's thread.
 *
 * 1. A holder of a permit of `takers` always finds an idle connection or an unused struct: taken, idle
 *    and unused connections are `max` together, and each taken one has a permit. A connection joins
 *    the idle list before its permit is released, so the next taker finds it there.
 * 2. The idle list is in the order in which connections were returned, so it is in the order of their
 *    timeouts. The closer sleeps until the oldest one's timeout, closes it, and continues with the
 *    next.
 * 3. The closer runs while any connection is idle. It is started and destroyed directly, because it
 *    awaits only its sleep and nothing awaits it.
 * 4. If a taker is cancelled or destroyed while it connects, bide_connect has closed the socket, and
 *    `finally` returns the struct and the permit. It closes a socket that pool->connect has left open.
 *    If its coroutine is destroyed between taking a connection and resuming with it, the connection is
 *    returned as it is.
 */
#define _GNU_SOURCE
#include "bide/connection_pool.h"

#include "bide/context_value.h"
#include "bide/coroutine.h"
#include "bide/handle.h"

#include "../io/operation.h"
#include "../system/portable.h"

#include <errno.h>
#include <poll.h>

void(bide_connection_pool_init)(bide_connection_pool *pool, const bide_address *address,
                                bide_pooled_connection *connections, size_t max, uint64_t idle)
{
    pool->address = *address;
    pool->idle = idle;
    pool->max = max;
    pool->open = 0;
    pool->closing = NULL;
    pool->connect = NULL;
    bide_semaphore_init(&pool->takers, (uint32_t)max);
    pool->unused = NULL;
    pool->newest = NULL;
    pool->oldest = NULL;
    pool->taken = 0;
    pool->is_closed = false;
    pool->is_closing_idle = false;
    bide_event_init(&pool->ended, false);
    while (max-- != 0) {
        bide_descriptor_init_closed(&connections[max].socket);
        connections[max].pool = pool;
        connections[max].older = pool->unused;
        pool->unused = &connections[max];
    }
}

/* ---- Idle connections ---- */

static void connection_pool_add_idle(bide_connection_pool *pool, bide_pooled_connection *connection)
{
    bide_assert((pool->newest == NULL) == (pool->oldest == NULL));
    bide_assert(pool->newest == NULL || pool->newest->newer == NULL);
    connection->older = pool->newest;
    connection->newer = NULL;
    if (pool->newest != NULL)
        pool->newest->newer = connection;
    else
        pool->oldest = connection;
    pool->newest = connection;
}

static void connection_pool_remove_idle(bide_connection_pool *pool,
                                        bide_pooled_connection *connection)
{
    bide_assert(connection->older != NULL ? connection->older->newer == connection
                                          : pool->oldest == connection);
    bide_assert(connection->newer != NULL ? connection->newer->older == connection
                                          : pool->newest == connection);
    if (connection->older != NULL)
        connection->older->newer = connection->newer;
    else
        pool->oldest = connection->newer;
    if (connection->newer != NULL)
        connection->newer->older = connection->older;
    else
        pool->newest = connection->older;
}

/* Closes a connection that is neither idle nor unused, and makes its struct unused. */
static void connection_pool_discard(bide_connection_pool *pool, bide_pooled_connection *connection)
{
    bide_assert(pool->open != 0 && pool->open <= pool->max);
    if (pool->closing != NULL)
        pool->closing(connection);
    if (bide_descriptor_is_open(&connection->socket))
        bide_close(&connection->socket);
    connection->older = pool->unused;
    pool->unused = connection;
    pool->open--;
}

bide_coroutine(bide_connection_closer)
{
    bide_begin(bide_connection_closer, bide_connection_closer_ * self);
    bide_connection_pool *pool = self->pool;
    while (pool->oldest != NULL) {
        if (pool->oldest->until <= bide_now(bide_this_context())) {
            bide_pooled_connection *connection = pool->oldest;
            connection_pool_remove_idle(pool, connection);
            connection_pool_discard(pool, connection);
            continue;
        }
        int status;
        bide_await_status(status, bide_sleep_until(&self->sleep, pool->oldest->until));
        pool = self->pool;
        if (status < 0) /* there are no timers: connections stay idle until they are taken */
            break;
    }
    bide_finally();
    self->pool->is_closing_idle = false;
    bide_end();
}

/* Starts the closer: 3. */
static void connection_pool_start_closer(bide_connection_pool *pool)
{
    if (pool->is_closing_idle || pool->idle == BIDE_FOREVER)
        return;
    pool->is_closing_idle = true;
    pool->closer.pool = pool;
    bide_assert(pool->oldest != NULL);
    bide_start(&pool->closer.task.frame, &bide_connection_closer, &pool->context);
    bide_resume(&pool->closer.task.frame);
}

/* True if the peer has neither closed the connection nor sent bytes that no request asked for. */
static bool connection_pool_is_usable(const bide_pooled_connection *connection)
{
    const bide_descriptor *socket = &connection->socket;
    struct pollfd poll_fd = {bide_descriptor_fd(socket), POLLIN | POLLRDHUP, 0};
    if (io_calls(io_of(socket)) != NULL)
        return io_calls(io_of(socket))
                   ->poll(io_of(socket), bide_descriptor_fd(socket), POLLIN | POLLRDHUP) == 0;
    return poll(&poll_fd, 1, 0) == 0;
}

/* Takes an idle connection that is still usable, or returns NULL. */
static bide_pooled_connection *connection_pool_pop_idle(bide_connection_pool *pool)
{
    bide_pooled_connection *connection;
    while ((connection = pool->newest) != NULL) {
        connection_pool_remove_idle(pool, connection);
        if (connection_pool_is_usable(connection))
            return connection;
        connection_pool_discard(pool, connection);
    }
    return NULL;
}

/* ---- Taking and giving ---- */

static void connection_pool_note_return(bide_connection_pool *pool)
{
    bide_assert(!pool->is_closed || pool->taken != 0 || pool->open == 0);
    if (pool->is_closed && pool->taken == 0)
        bide_event_set(&pool->ended);
}

static void connection_pool_release_permit(bide_connection_pool *pool)
{
    bide_assert(pool->taken != 0);
    pool->taken--;
    bide_semaphore_release(&pool->takers, 1);
    connection_pool_note_return(pool);
}

void bide_connection_pool_release(bide_pooled_connection *connection, bool reusable)
{
    bide_connection_pool *pool = connection->pool;
    if (reusable && !pool->is_closed && bide_descriptor_is_open(&connection->socket)) {
        uint64_t now = bide_now(&pool->context);
        connection->was_idle = true;
        connection->until = pool->idle < BIDE_FOREVER - now ? now + pool->idle : BIDE_FOREVER;
        connection_pool_add_idle(pool, connection);
        connection_pool_start_closer(pool);
    } else {
        connection_pool_discard(pool, connection);
    }
    connection_pool_release_permit(pool);
}

static void connection_pool_taking_release(bide_frame *frame)
{
    bide_connection_acquire_operation *taking =
        bide_container_of(frame, bide_connection_acquire_operation, task.frame);
    bide_connection_pool_release(taking->connection, true);
    taking->connection = NULL;
}

static bide_awaiter *connection_pool_connect(bide_connection_acquire_operation *self)
{
    return self->pool->connect != NULL
               ? self->pool->connect(self, self->slot)
               : bide_connect(&self->connect, &self->slot->socket, &self->pool->address);
}

static const bide_coroutine_type connection_pool_taking_type = {
    .name = "task", .release = connection_pool_taking_release};

bide_coroutine_of(connection_pool_taking_type, bide_connection_pool_taking)
{
    bide_begin(bide_connection_pool_taking, bide_connection_acquire_operation * self);
    bide_try(bide_semaphore_acquire(&self->wait, &self->pool->takers));
    self->has_permit = true;
    self->pool->taken++;
    bide_assert(self->pool->taken <= self->pool->max);
    if (self->pool->is_closed) /* after it acquired the permit */
        bide_return(-EPIPE);
    self->pool->context = bide_context_without_values(bide_this_context()); /* it outlives them */
    self->pool->context.stop = NULL;
    self->connection = connection_pool_pop_idle(self->pool);
    if (self->connection != NULL)
        bide_return(0);

    self->slot = self->pool->unused; /* 1 */
    bide_assert(self->slot != NULL && self->pool->open < self->pool->max);
    self->pool->unused = self->slot->older;
    self->pool->open++;
    bide_await_status(self->status, connection_pool_connect(self));
    if (self->status == 0 && self->pool->is_closed)
        self->status = -EPIPE;
    if (self->status == 0) {
        self->connection = self->slot;
        self->connection->was_idle = false;
    }
    bide_return(self->status);
    bide_finally();
    if (self->connection == NULL && self->has_permit) { /* 4 */
        if (self->slot != NULL)
            connection_pool_discard(self->pool, self->slot);
        connection_pool_release_permit(self->pool);
    }
    bide_end();
}

bide_awaiter *bide_connection_pool_acquire(bide_connection_acquire_operation *taking,
                                           bide_connection_pool *pool)
{
    taking->pool = pool;
    taking->connection = NULL;
    taking->slot = NULL;
    taking->has_permit = false;
    return bide_task_init(&taking->task, &bide_connection_pool_taking);
}

void bide_connection_pool_close(bide_connection_pool *pool)
{
    if (pool->is_closed)
        return;
    pool->is_closed = true;
    bide_semaphore_close(&pool->takers);
    if (pool->is_closing_idle)
        bide_destroy(&pool->closer.task.frame);
    bide_assert(!pool->is_closing_idle);
    while (pool->newest != NULL) {
        bide_pooled_connection *connection = pool->newest;
        connection_pool_remove_idle(pool, connection);
        connection_pool_discard(pool, connection);
    }
    bide_assert(pool->oldest == NULL && pool->open <= pool->taken);
    connection_pool_note_return(pool);
}

/*
 * Pools of connections. All of it is of one loop's thread.
 *
 * 1. A permit of `takers` is a place: whoever has one finds an idle connection or an unused struct,
 *    since taken, idle and unused are `max` together. The permit is released when the connection is
 *    given back, after that is in the list of the idle; so the next in line finds it there.
 * 2. The idle are in the order in which they were given back, which is that of their ends. So the
 *    closer sleeps until the oldest one's, closes it, and goes on with the next.
 * 3. The closer runs while any is idle, and is begun and destroyed by hand: it awaits nothing but
 *    its sleep, and nobody awaits it.
 * 4. A taker that is cut short while it connects, or destroyed, has closed the socket by then
 *    (bide_connect), and gives its struct and its permit back. One that has taken, and whose
 *    coroutine is destroyed before it was told, gives the connection back as it is.
 */
#define _GNU_SOURCE
#include "bide/connection_pool.h"

#include "bide/coroutine.h"
#include "bide/handle.h"

#include "../io/operation.h"

#include <errno.h>
#include <poll.h>

void bide_connection_pool_init(bide_connection_pool *pool, const bide_address *address,
                               bide_pooled_connection *connections, size_t max, uint64_t idle)
{
    pool->address = *address;
    pool->idle = idle;
    pool->max = max;
    pool->open = 0;
    pool->closing = NULL;
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

/* ---- The idle ---- */

static void add_idle(bide_connection_pool *pool, bide_pooled_connection *connection)
{
    connection->older = pool->newest;
    connection->newer = NULL;
    if (pool->newest != NULL)
        pool->newest->newer = connection;
    else
        pool->oldest = connection;
    pool->newest = connection;
}

static void remove_idle(bide_connection_pool *pool, bide_pooled_connection *connection)
{
    if (connection->older != NULL)
        connection->older->newer = connection->newer;
    else
        pool->oldest = connection->newer;
    if (connection->newer != NULL)
        connection->newer->older = connection->older;
    else
        pool->newest = connection->older;
}

/* It is in no list. */
static void discard(bide_connection_pool *pool, bide_pooled_connection *connection)
{
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
            remove_idle(pool, connection);
            discard(pool, connection);
            continue;
        }
        int status;
        bide_await_status(status, bide_sleep_until(&self->sleep, pool->oldest->until));
        pool = self->pool;
        if (status < 0) /* there are no timers: they stay until they are taken */
            break;
    }
    bide_finally();
    self->pool->is_closing_idle = false;
    bide_end();
}

/* 3 */
static void begin_closing_idle(bide_connection_pool *pool)
{
    if (pool->is_closing_idle || pool->idle == BIDE_FOREVER)
        return;
    pool->is_closing_idle = true;
    pool->closer.pool = pool;
    bide_start(&pool->closer.task.frame, &bide_connection_closer, &pool->context);
    bide_resume(&pool->closer.task.frame);
}

/* Has the other end neither closed it nor sent what nobody has asked for? */
static bool is_whole(const bide_pooled_connection *connection)
{
    const bide_descriptor *socket = &connection->socket;
    struct pollfd asked = {socket->fd, POLLIN | POLLRDHUP, 0};
    if (io_calls(io_of(socket)) != NULL)
        return io_calls(io_of(socket))->poll(io_of(socket), socket->fd, POLLIN | POLLRDHUP) == 0;
    return poll(&asked, 1, 0) == 0;
}

/* One that is idle and whole, or NULL. */
static bide_pooled_connection *take_idle(bide_connection_pool *pool)
{
    bide_pooled_connection *connection;
    while ((connection = pool->newest) != NULL) {
        remove_idle(pool, connection);
        if (is_whole(connection))
            return connection;
        discard(pool, connection);
    }
    return NULL;
}

/* ---- Taking and giving back ---- */

static void end_if_all_are_back(bide_connection_pool *pool)
{
    if (pool->is_closed && pool->taken == 0)
        bide_event_set(&pool->ended);
}

static void leave(bide_connection_pool *pool)
{
    pool->taken--;
    bide_semaphore_release(&pool->takers, 1);
    end_if_all_are_back(pool);
}

void bide_connection_pool_release(bide_pooled_connection *connection, bool reusable)
{
    bide_connection_pool *pool = connection->pool;
    if (reusable && !pool->is_closed && bide_descriptor_is_open(&connection->socket)) {
        uint64_t now = bide_now(&pool->context);
        connection->was_idle = true;
        connection->until = pool->idle < BIDE_FOREVER - now ? now + pool->idle : BIDE_FOREVER;
        add_idle(pool, connection);
        begin_closing_idle(pool);
    } else {
        discard(pool, connection);
    }
    leave(pool);
}

static void give_back(bide_frame *frame)
{
    bide_connection_acquire_operation *taking = bide_container_of(frame, bide_connection_acquire_operation, task.frame);
    bide_connection_pool_release(taking->connection, true);
    taking->connection = NULL;
}

static const bide_coroutine_type taking_type = {.name = "task", .release = give_back};

bide_coroutine_of(taking_type, bide_connection_pool_taking)
{
    bide_begin(bide_connection_pool_taking, bide_connection_acquire_operation * self);
    bide_try(bide_semaphore_acquire(&self->wait, &self->pool->takers));
    self->has_permit = true;
    self->pool->taken++;
    if (self->pool->is_closed) /* since it was handed the permit */
        bide_return(-EPIPE);
    self->pool->context = *bide_this_context();
    self->pool->context.stop = NULL;
    self->connection = take_idle(self->pool);
    if (self->connection != NULL)
        bide_return(0);

    self->slot = self->pool->unused; /* 1 */
    self->pool->unused = self->slot->older;
    self->pool->open++;
    bide_await_status(self->status,
                      bide_connect(&self->connect, &self->slot->socket, &self->pool->address));
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
            discard(self->pool, self->slot);
        leave(self->pool);
    }
    bide_end();
}

bide_awaiter *bide_connection_pool_acquire(bide_connection_acquire_operation *taking, bide_connection_pool *pool)
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
    while (pool->newest != NULL) {
        bide_pooled_connection *connection = pool->newest;
        remove_idle(pool, connection);
        discard(pool, connection);
    }
    end_if_all_are_back(pool);
}

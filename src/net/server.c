/*
 * Servers. The acceptor is a coroutine of its own, under a stop source that shutting down requests;
 * the connections are branches of a scope of the server's coroutine, which joins them.
 *
 *     server    accepts (awaits the acceptor) --> drains (awaits `news`) --> joins
 *     acceptor  has a slot --> accepts --> begins a connection --> has a slot ...
 *
 * The server and its acceptor are one coroutine after the other. Connections end on other threads,
 * where the scheduler has several. What they have in common with the acceptor, the counts and the
 * free slots, is under `lock`. bide_server_shut_down is of any thread.
 *
 * 1. A connection's error is none of the scope's: a forward stands between the two that counts it,
 *    and ends with 0. So the others go on.
 * 2. The slot is had before the connection is accepted. So none is accepted for which there is no
 *    memory, and the bound holds.
 * 3. Out of descriptors: the reserve is closed, and accepting goes on in its place. Linux tells of
 *    the lack whether a connection waits or not, so that may be a long wait, which costs nothing.
 *    When a connection has come, the reserve is opened again; if that fails, the connection is
 *    closed in its favour, and the server pauses. So of each two calls of accept, at a bound that
 *    stays, one takes a connection or is followed by a pause.
 * 4. `news` is reset before what it tells of is looked at, and set after that was changed: the counts
 *    under the lock, by which the one or the other comes first; the source of the acceptor, or the
 *    deadline, by shutting down. So none is missed.
 * 5. The deadline is stored before the source is requested and the event set, and loaded after; so
 *    those order it.
 * 6. A server that is destroyed has the acceptor destroyed first, since that is what it awaits. So
 *    nothing is begun any more when it destroys its connections, each of which gives back its slot
 *    and closes its socket as one that has ended does.
 */
#define _GNU_SOURCE
#include "bide/server.h"

#include "bide/coroutine.h"
#include "bide/sleep.h"

#include "../io/operation.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define SERVER_PAUSE UINT64_C(10000000)

int bide_server_init(bide_server *server, const bide_server_options *options)
{
    if (options->body == NULL || options->size < sizeof(bide_connection) || options->max_connections == 0 ||
        (options->slots == NULL && options->allocator == NULL))
        return -EINVAL;
    server->options = *options;
    if (server->options.accept_retry_delay == 0)
        server->options.accept_retry_delay = SERVER_PAUSE;
    bide_descriptor_init_closed(&server->listener);
    server->argument = NULL;
    memset(&server->stats, 0, sizeof server->stats);
    server->unused = NULL;
    server->fresh = options->slots != NULL ? options->max_connections : 0;
    server->kept = 0;
    server->reserve = -1;
    server->status = 0;
    bide_stop_source_init(&server->accepting);
    bide_auto_event_init(&server->news, false);
    bide_atomic_init(&server->deadline, BIDE_FOREVER);
    pthread_mutex_init(&server->lock, NULL);
    return 0;
}

void bide_server_shut_down(bide_server *server, uint64_t deadline)
{
    bide_atomic_store(&server->deadline, deadline, relaxed); /* 5 */
    bide_stop_request(&server->accepting);
    bide_auto_event_set(&server->news);
}

/* ---- What has been done ---- */

static void count(bide_server *server, uint64_t *which)
{
    pthread_mutex_lock(&server->lock);
    ++*which;
    pthread_mutex_unlock(&server->lock);
}

static size_t count_live(bide_server *server)
{
    pthread_mutex_lock(&server->lock);
    size_t live = server->stats.live;
    pthread_mutex_unlock(&server->lock);
    return live;
}

static bool is_full(bide_server *server)
{
    return count_live(server) == server->options.max_connections;
}

void bide_server_get_stats(bide_server *server, bide_server_stats *counts)
{
    pthread_mutex_lock(&server->lock);
    *counts = server->stats;
    pthread_mutex_unlock(&server->lock);
}

/* ---- Connections ---- */

/* Memory for one; NULL: there is none. */
static bide_connection *take_slot(bide_server *server)
{
    pthread_mutex_lock(&server->lock);
    const bide_server_options *options = &server->options;
    bide_connection *connection = server->unused;
    if (connection != NULL) {
        server->unused = connection->next;
        server->kept -= options->slots == NULL;
    } else if (options->slots != NULL) {
        connection = server->fresh == 0
                         ? NULL
                         : (void *)((char *)options->slots +
                                    (options->max_connections - server->fresh--) * options->size);
    } else {
        connection = options->allocator->allocate(options->allocator, options->size);
    }
    pthread_mutex_unlock(&server->lock);
    if (connection != NULL) {
        bide_descriptor_init_closed(&connection->socket);
        connection->server = server;
    }
    return connection;
}

static void free_slot(const bide_server_options *options, bide_connection *connection)
{
    options->allocator->deallocate(options->allocator, connection, options->size);
}

/* (the lock is held) */
static void give_slot(bide_server *server, bide_connection *connection)
{
    const bide_server_options *options = &server->options;
    if (options->slots == NULL) {
        if (server->kept == options->spare_connections) {
            free_slot(options, connection);
            return;
        }
        server->kept++;
    }
    connection->next = server->unused;
    server->unused = connection;
}

/* The server has ended: there are no connections. */
static void free_kept(bide_server *server)
{
    if (server->options.slots != NULL)
        return;
    while (server->unused != NULL) {
        bide_connection *connection = server->unused;
        server->unused = connection->next;
        free_slot(&server->options, connection);
    }
    server->kept = 0;
}

/* Its coroutine has ended. 1 */
static int served_resume(bide_awaiter *awaiter)
{
    bide_connection *connection = bide_container_of(awaiter, bide_connection, served.awaiter);
    if (bide_forward_take(&connection->served) < 0)
        count(connection->server, &connection->server->stats.failed);
    return 0;
}

/* Nothing is left of it but its slot and its socket. */
static void connection_ended(bide_branch *branch)
{
    bide_connection *connection = bide_container_of(branch, bide_connection, branch);
    bide_server *server = connection->server;
    bide_close(&connection->socket);
    pthread_mutex_lock(&server->lock);
    give_slot(server, connection);
    server->stats.live--;
    pthread_mutex_unlock(&server->lock);
    bide_auto_event_set(&server->news);
}

static void begin_connection(bide_server *server, bide_connection *connection)
{
    static const bide_wrapper_ops ops = BIDE_FORWARD_OPS(served_resume, "bide_server_run");
    pthread_mutex_lock(&server->lock);
    server->stats.accepted++;
    server->stats.live++;
    pthread_mutex_unlock(&server->lock);
    bide_scope_spawn_in(&server->scope, &connection->branch, &server->scope.context,
                        bide_forward_init(&connection->served, &ops,
                                          bide_task_init(&connection->task, server->options.body)),
                        connection_ended);
}

/* ---- Accepting ---- */

/* Has it a descriptor in reserve, or can it have one? */
static bool have_reserve(bide_server *server, const bide_context *context)
{
    static const char nothing[] = "/dev/null";
    bide_io *io = io_of_context(context);
    if (server->reserve >= 0)
        return true;
    server->reserve = io_calls(io) != NULL
                          ? io_calls(io)->open(io, nothing, O_RDONLY | O_CLOEXEC, 0)
                          : open(nothing, O_RDONLY | O_CLOEXEC);
    return server->reserve >= 0;
}

static bool close_reserve(bide_server *server, const bide_context *context)
{
    if (server->reserve < 0)
        return false;
    bide_io_close_number_(io_of_context(context), server->reserve);
    server->reserve = -1;
    return true;
}

/* What becomes of what accept ends with. */
enum verdict { DONE, SKIP, NO_DESCRIPTOR, NO_MEMORY, STOP, GIVE_UP };

static enum verdict verdict_of(int error)
{
    switch (error) {
    case 0:
        return DONE;
    case -EMFILE:
    case -ENFILE:
        return NO_DESCRIPTOR;
    case -ENOBUFS:
    case -ENOMEM:
        return NO_MEMORY;
    /* of the connection, which is gone with it; accept(2) */
    case -ECONNABORTED:
    case -ECONNRESET:
    case -EPROTO:
    case -EPERM:
    case -ENOPROTOOPT:
    case -ENETDOWN:
    case -ENETUNREACH:
    case -EHOSTDOWN:
    case -EHOSTUNREACH:
    case -ENONET:
        return SKIP;
    case -ECANCELED:
    case -ETIMEDOUT:
    case -EPIPE: /* the listener was closed */
        return STOP;
    default:
        return GIVE_UP;
    }
}

/* Pauses; ends when a connection has ended, too. */
static bide_awaiter *pause_accepting(bide_server_acceptor_ *self, const bide_context *context)
{
    bide_server *server = self->server;
    uint64_t now = bide_now(context);
    uint64_t pause = server->options.accept_retry_delay;
    count(server, &server->stats.pauses);
    bide_auto_event_reset(&server->news);
    return bide_with_deadline(&self->limited,
                              pause < BIDE_FOREVER - now ? now + pause : BIDE_FOREVER,
                              bide_auto_event_wait(&self->wait, &server->news));
}

bide_coroutine(bide_server_acceptor)
{
    bide_begin(bide_server_acceptor, bide_server_acceptor_ * self);
    while (!bide_stop_requested(bide_this_context()->stop)) {
        if (is_full(self->server)) {
            bide_auto_event_reset(&self->server->news); /* 4 */
            if (is_full(self->server))
                bide_await(bide_auto_event_wait(&self->wait, &self->server->news));
            continue;
        }
        if (self->next == NULL)
            self->next = take_slot(self->server); /* 2 */
        if (self->next == NULL) {
            count(self->server, &self->server->stats.errors);
            bide_await(pause_accepting(self, bide_this_context()));
            continue;
        }
        (void)have_reserve(self->server, bide_this_context());
        do { /* 3 */
            bide_await_status(self->status, bide_accept(&self->accept, &self->server->listener,
                                                        &self->next->socket, NULL));
        } while (verdict_of(self->status) == NO_DESCRIPTOR &&
                 close_reserve(self->server, bide_this_context()));

        enum verdict verdict = verdict_of(self->status);
        if (verdict == DONE && have_reserve(self->server, bide_this_context())) {
            begin_connection(self->server, self->next);
            self->next = NULL;
            continue;
        }
        if (verdict == STOP || verdict == GIVE_UP)
            bide_return(self->status);
        if (verdict == DONE) {
            count(self->server, &self->server->stats.refused);
            bide_close(&self->next->socket);
            (void)have_reserve(self->server, bide_this_context());
        } else {
            count(self->server, &self->server->stats.errors);
        }
        if (verdict != SKIP)
            bide_await(pause_accepting(self, bide_this_context()));
    }
    bide_return(bide_stop_reason(bide_this_context()->stop));
    bide_finally();
    if (self->next != NULL) {
        bide_close(&self->next->socket);
        pthread_mutex_lock(&self->server->lock);
        give_slot(self->server, self->next);
        pthread_mutex_unlock(&self->server->lock);
    }
    bide_end();
}

/* ---- The server ---- */

/* Has the time come to stop those that are left? */
static bool is_late(const bide_server *server, const bide_context *context)
{
    uint64_t deadline = bide_atomic_load(&server->deadline, relaxed); /* 5 */
    return bide_stop_requested(context->stop) || verdict_of(server->status) == GIVE_UP ||
           deadline <= bide_now(context);
}

bide_coroutine(bide_server_body)
{
    bide_begin(bide_server_body, bide_server * self);
    bide_scope_init(&self->scope, bide_this_frame());
    if (bide_this_context()->stop != NULL)
        bide_stop_source_attach(&self->accepting, bide_this_context()->stop);
    self->acceptor.server = self;
    self->acceptor.next = NULL;
    bide_await_status(self->status,
                      bide_with_stop(&self->phase, &self->accepting,
                                     bide_task_init(&self->acceptor.task, &bide_server_acceptor)));
    bide_stop_source_detach(&self->accepting);
    bide_close(&self->listener);
    (void)close_reserve(self, bide_this_context());
    for (;;) {
        bide_auto_event_reset(&self->news); /* 4 */
        if (count_live(self) == 0 || is_late(self, bide_this_context()))
            break;
        bide_await(bide_with_deadline(&self->limited, bide_atomic_load(&self->deadline, relaxed),
                                      bide_auto_event_wait(&self->wait, &self->news)));
    }
    bide_scope_stop(&self->scope);
    bide_await(bide_scope_join(&self->scope));
    if (verdict_of(self->status) == GIVE_UP)
        bide_return(self->status);
    bide_return(bide_stop_reason(bide_this_context()->stop));
    bide_finally();
    bide_scope_destroy(&self->scope); /* 6 */
    free_kept(self);
    bide_stop_source_detach(&self->accepting);
    bide_close(&self->listener);
    (void)close_reserve(self, bide_this_context());
    bide_end();
}

bide_awaiter *bide_server_run(bide_server *server)
{
    return bide_task_init(&server->task, &bide_server_body);
}

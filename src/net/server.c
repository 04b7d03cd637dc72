/*
 * Servers: an acceptor, and a coroutine for each connection.
 *
 *     server    accepts (awaits the acceptor) --> drains (awaits `news`) --> joins
 *     acceptor  gets a slot --> accepts --> starts a connection --> gets a slot ...
 *
 * The acceptor runs under a stop source, which bide_server_shut_down requests. The connections are
 * branches of a scope of the server's coroutine, which joins them. The server and its acceptor never
 * run at the same time, because the server awaits the acceptor. Connections may end on other threads,
 * if the scheduler has several. They share the counts and the free slots with the acceptor, under
 * `lock`. Any thread may call bide_server_shut_down.
 *
 * 1. A connection's error does not fail the scope. A forward between the two counts the error and
 *    ends with 0, so the other connections continue.
 * 2. The acceptor gets a slot before it accepts. So it never accepts a connection without memory for
 *    it, and the maximum holds; one that is lowered while an accept waits, from the next accept on.
 * 3. The process is out of descriptors: the server closes its reserve descriptor and accepts in its
 *    place. Linux reports the shortage even if no connection is pending, so that accept may wait for
 *    long, at no cost. When a connection arrives, the reserve is opened again. If that fails, the
 *    connection is closed to make room for the reserve, and the server pauses. So while the shortage
 *    lasts, at least one of two consecutive accepts takes a connection or is followed by a pause.
 * 4. No change is missed. The waiter resets `news` before it checks, and each change is followed by a
 *    set: the lock orders changes of the counts and of the maximum; for the acceptor's stop source and the deadline,
 *    bide_server_shut_down sets `news` last.
 * 5. bide_server_shut_down stores the deadline before it requests the source and sets the event. The
 *    server loads it after one of the two. So they order the deadline, and its accesses are relaxed.
 * 6. If a server is destroyed, its acceptor is destroyed first, because the server awaits it. So no
 *    connection starts while the server destroys its connections. Each of them returns its slot and
 *    closes its socket, as if it had ended.
 */
#define _GNU_SOURCE
#include "bide/server.h"

#include "bide/coroutine.h"
#include "bide/sleep.h"

#include "../io/operation.h"
#include "../system/descriptors.h"
#include "../system/portable.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#if BIDE_HAS_EVENTFD
#include <sys/eventfd.h>
#endif
#include <unistd.h>

#define SERVER_DEFAULT_PAUSE UINT64_C(10000000) /* nanoseconds */

int bide_server_init(bide_server *server, const bide_server_options *options)
{
    if (options->body == NULL || options->size < sizeof(bide_connection) ||
        options->max_connections == 0 || (options->slots == NULL && options->allocator == NULL))
        return -EINVAL;
#if BIDE_DEBUG
    bide_check_frame_size_(options->body, options->size, "bide_server_options.size",
                           options->body->code->file, options->body->line);
#endif
    server->options = *options;
    if (server->options.accept_retry_delay == 0)
        server->options.accept_retry_delay = SERVER_DEFAULT_PAUSE;
    bide_descriptor_init_closed(&server->listener);
    server->argument = NULL;
    memset(&server->stats, 0, sizeof server->stats);
    server->unused = NULL;
    server->fresh = options->slots != NULL ? options->max_connections : 0;
    server->kept = 0;
    server->max_connections = options->max_connections;
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

int bide_server_set_max_connections(bide_server *server, size_t max_connections)
{
    if (max_connections == 0 ||
        (server->options.slots != NULL && max_connections > server->options.max_connections))
        return -EINVAL;
    pthread_mutex_lock(&server->lock);
    server->max_connections = max_connections;
    pthread_mutex_unlock(&server->lock);
    bide_auto_event_set(&server->news); /* 4 */
    return 0;
}

/* ---- Statistics ---- */

static void server_count(bide_server *server, uint64_t *which)
{
    pthread_mutex_lock(&server->lock);
    ++*which;
    pthread_mutex_unlock(&server->lock);
}

/* How many connections there are; and in *max, how many there may be. */
static size_t server_count_live(bide_server *server, size_t *max)
{
    pthread_mutex_lock(&server->lock);
    size_t live = server->stats.live;
    *max = server->max_connections;
    pthread_mutex_unlock(&server->lock);
    return live;
}

static bool server_is_full(bide_server *server)
{
    size_t max;
    return server_count_live(server, &max) >= max;
}

static bool server_is_empty(bide_server *server)
{
    size_t max;
    return server_count_live(server, &max) == 0;
}

void bide_server_get_stats(bide_server *server, bide_server_stats *counts)
{
    pthread_mutex_lock(&server->lock);
    *counts = server->stats;
    pthread_mutex_unlock(&server->lock);
}

/* ---- Connections ---- */

/* Memory for a connection, or NULL. */
static bide_connection *server_acquire_slot(bide_server *server)
{
    pthread_mutex_lock(&server->lock);
    const bide_server_options *options = &server->options;
    bide_connection *connection = server->unused;
    if (connection != NULL) {
        server->unused = connection->next;
        bide_assert(options->slots != NULL || server->kept != 0);
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

static void server_free_slot(const bide_server_options *options, bide_connection *connection)
{
    options->allocator->deallocate(options->allocator, connection, options->size);
}

/* Under the lock. */
static void server_return_slot(bide_server *server, bide_connection *connection)
{
    const bide_server_options *options = &server->options;
    if (options->slots == NULL) {
        bide_assert(server->kept <= options->spare_connections);
        if (server->kept == options->spare_connections) {
            server_free_slot(options, connection);
            return;
        }
        server->kept++;
    }
    connection->next = server->unused;
    server->unused = connection;
}

/* No connections are left. */
static void server_free_spare_slots(bide_server *server)
{
    if (server->options.slots != NULL)
        return;
    while (server->unused != NULL) {
        bide_connection *connection = server->unused;
        server->unused = connection->next;
        server_free_slot(&server->options, connection);
        server->kept--;
    }
    bide_assert(server->kept == 0);
}

/* The connection's coroutine has ended: 1. */
static int server_served_resume(bide_awaiter *awaiter)
{
    bide_connection *connection = bide_container_of(awaiter, bide_connection, served.awaiter);
    if (bide_forward_take(&connection->served) < 0)
        server_count(connection->server, &connection->server->stats.failed);
    return 0;
}

/* The connection has ended; only its slot and its socket are left. */
static void server_connection_ended(bide_branch *branch)
{
    bide_connection *connection = bide_container_of(branch, bide_connection, branch);
    bide_server *server = connection->server;
    bide_close(&connection->socket);
    pthread_mutex_lock(&server->lock);
    server_return_slot(server, connection);
    bide_assert(server->stats.live != 0);
    server->stats.live--;
    pthread_mutex_unlock(&server->lock);
    bide_auto_event_set(&server->news);
}

static void server_start_connection(bide_server *server, bide_connection *connection)
{
    static const bide_wrapper_ops ops = BIDE_FORWARD_OPS(server_served_resume, "bide_server_run");
    pthread_mutex_lock(&server->lock);
    server->stats.accepted++;
    server->stats.live++;
    bide_assert(server->options.slots == NULL ||
                server->stats.live <= server->options.max_connections); /* 2 */
    pthread_mutex_unlock(&server->lock);
    bide_scope_spawn_in(&server->scope, &connection->branch, &server->scope.context,
                        bide_forward_init(&connection->served, &ops,
                                          bide_task_init(&connection->task, server->options.body)),
                        server_connection_ended);
}

/* ---- Accepting ---- */

/* A descriptor that needs no file. */
static int server_open_idle_descriptor(void)
{
#if BIDE_HAS_EVENTFD
    return eventfd(0, EFD_CLOEXEC);
#else
    return portable_socket(AF_UNIX, SOCK_DGRAM, 0, false);
#endif
}

/* Makes sure that there is a reserve descriptor. False: none can be opened. */
static bool server_open_reserve(bide_server *server, const bide_context *context)
{
    static const char nothing[] = "/dev/null";
    bide_io *io = io_of_context(context);
    if (server->reserve >= 0)
        return true;
    server->reserve = io_calls(io) != NULL
                          ? io_calls(io)->open(io, nothing, O_RDONLY | O_CLOEXEC, 0)
                          : open(nothing, O_RDONLY | O_CLOEXEC);
    /* (a process whose root is another directory, or that may open few files, has no such device) */
    if (server->reserve < 0 && io_calls(io) == NULL &&
        (errno == ENOENT || errno == EACCES || errno == EPERM))
        server->reserve = server_open_idle_descriptor();
    return server->reserve >= 0;
}

static bool server_close_reserve(bide_server *server, const bide_context *context)
{
    if (server->reserve < 0)
        return false;
    bide_io_close_number_(io_of_context(context), server->reserve);
    server->reserve = -1;
    return true;
}

/* How the acceptor continues after an accept. */
enum server_verdict {
    VERDICT_ACCEPTED,
    VERDICT_SKIP,
    VERDICT_NO_DESCRIPTOR,
    VERDICT_NO_MEMORY,
    VERDICT_STOP,
    VERDICT_FAIL
};

static enum server_verdict server_verdict_of(int error)
{
    switch (error) {
    case 0:
        return VERDICT_ACCEPTED;
    case -EMFILE:
    case -ENFILE:
        return VERDICT_NO_DESCRIPTOR;
    case -ENOBUFS:
    case -ENOMEM:
        return VERDICT_NO_MEMORY;
    /* errors of the connection, which is lost with them: accept(2) */
    case -ECONNABORTED:
    case -ECONNRESET:
    case -EPROTO:
    case -EPERM:
    case -ENOPROTOOPT:
    case -ENETDOWN:
    case -ENETUNREACH:
    case -EHOSTDOWN:
    case -EHOSTUNREACH:
#ifdef ENONET
    case -ENONET:
#endif
        return VERDICT_SKIP;
    case -ECANCELED:
    case -ETIMEDOUT:
    case -EPIPE: /* the listener was closed */
        return VERDICT_STOP;
    default:
        return VERDICT_FAIL;
    }
}

/* Pauses until the delay has passed or a connection has ended. */
static bide_awaiter *server_pause(bide_server_acceptor_ *self, const bide_context *context)
{
    bide_server *server = self->server;
    uint64_t now = bide_now(context);
    uint64_t pause = server->options.accept_retry_delay;
    server_count(server, &server->stats.pauses);
    bide_auto_event_reset(&server->news);
    return bide_with_deadline(&self->limited,
                              pause < BIDE_FOREVER - now ? now + pause : BIDE_FOREVER,
                              bide_auto_event_wait(&self->wait, &server->news));
}

bide_coroutine(bide_server_acceptor)
{
    bide_begin(bide_server_acceptor, bide_server_acceptor_ * self);
    while (!bide_stop_requested(bide_this_context()->stop)) {
        if (server_is_full(self->server)) {
            bide_auto_event_reset(&self->server->news); /* 4 */
            if (server_is_full(self->server))
                bide_await(bide_auto_event_wait(&self->wait, &self->server->news));
            continue;
        }
        if (self->next == NULL)
            self->next = server_acquire_slot(self->server); /* 2 */
        if (self->next == NULL) {
            server_count(self->server, &self->server->stats.errors);
            bide_await(server_pause(self, bide_this_context()));
            continue;
        }
        (void)server_open_reserve(self->server, bide_this_context());
        do { /* 3 */
            bide_await_status(self->status, bide_accept(&self->accept, &self->server->listener,
                                                        &self->next->socket, NULL));
        } while (server_verdict_of(self->status) == VERDICT_NO_DESCRIPTOR &&
                 server_close_reserve(self->server, bide_this_context()));

        enum server_verdict verdict = server_verdict_of(self->status);
        if (verdict == VERDICT_ACCEPTED && server_open_reserve(self->server, bide_this_context())) {
            server_start_connection(self->server, self->next);
            self->next = NULL;
            continue;
        }
        if (verdict == VERDICT_STOP || verdict == VERDICT_FAIL)
            bide_return(self->status);
        if (verdict == VERDICT_ACCEPTED) {
            server_count(self->server, &self->server->stats.refused);
            bide_close(&self->next->socket);
            (void)server_open_reserve(self->server, bide_this_context());
        } else {
            server_count(self->server, &self->server->stats.errors);
        }
        if (verdict != VERDICT_SKIP)
            bide_await(server_pause(self, bide_this_context()));
    }
    bide_return(bide_stop_reason(bide_this_context()->stop));
    bide_finally();
    if (self->next != NULL) {
        bide_close(&self->next->socket);
        pthread_mutex_lock(&self->server->lock);
        server_return_slot(self->server, self->next);
        pthread_mutex_unlock(&self->server->lock);
        self->next = NULL;
    }
    bide_end();
}

/* ---- The server ---- */

/* True if the remaining connections must be stopped now. */
static bool server_must_stop(const bide_server *server, const bide_context *context)
{
    uint64_t deadline = bide_atomic_load(&server->deadline, relaxed); /* 5 */
    return bide_stop_requested(context->stop) ||
           server_verdict_of(server->status) == VERDICT_FAIL || deadline <= bide_now(context);
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
    bide_assert(self->acceptor.next == NULL);
    bide_stop_source_detach(&self->accepting);
    bide_close(&self->listener);
    (void)server_close_reserve(self, bide_this_context());
    for (;;) {
        bide_auto_event_reset(&self->news); /* 4 */
        if (server_is_empty(self) || server_must_stop(self, bide_this_context()))
            break;
        bide_await(bide_with_deadline(&self->limited, bide_atomic_load(&self->deadline, relaxed),
                                      bide_auto_event_wait(&self->wait, &self->news)));
    }
    bide_scope_stop(&self->scope);
    bide_await(bide_scope_join(&self->scope));
    if (server_verdict_of(self->status) == VERDICT_FAIL)
        bide_return(self->status);
    bide_return(bide_stop_reason(bide_this_context()->stop));
    bide_finally();
    bide_scope_destroy(&self->scope); /* 6 */
    bide_assert(self->stats.live == 0);
    server_free_spare_slots(self);
    bide_stop_source_detach(&self->accepting);
    bide_close(&self->listener);
    (void)server_close_reserve(self, bide_this_context());
    bide_end();
}

bide_awaiter *bide_server_run(bide_server *server)
{
    return bide_task_init(&server->task, &bide_server_body);
}

/*
 * A worker.
 *
 *  1. Signals are handled by the worker's coroutine (server_signals.h), one request at a time.
 *  2. A reload may fail for the certificates or for a log. The failed part keeps its old state.
 *  3. When the number of connections approaches its limit, connections are closed after their
 *     response. Otherwise idle connections would keep new ones out.
 *
 * All of it runs on the worker's thread, except worker_init and worker_destroy, which the first
 * thread calls.
 */
#define _GNU_SOURCE
#include "worker.h"
#include "certificates.h"
#include "session.h"

#include <bide/coroutine.h>
#include <bide/sleep.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* nanoseconds without accepting after the system ran out of descriptors */
#define ACCEPT_RETRY_DELAY UINT64_C(250000000)

static bool check_status(const char *what, int status)
{
    if (status < 0)
        fprintf(stderr, "httpd: %s: %s\n", what, strerror(-status));
    return status >= 0;
}

/* ---- Requests ---- */

static const bide_http_handler *select_handler(bide_http_exchange *exchange)
{
    struct worker *worker = exchange->argument;
    size_t limit = worker->site->connections;
    bide_assert(limit > 0);
    if (bide_server_own_stats(&worker->server)->live > limit - limit / 4) /* 3 */
        bide_http_close_after(exchange);
    exchange->argument = &worker->site->files;
    return &bide_http_files_handler;
}

static void log_incident(bide_http_server *server, const bide_http_incident *incident)
{
    struct worker *worker = server->argument;
    bide_http_log_incident(&worker->errors.log, server, incident);
}

static int init_servers(struct worker *worker)
{
    enum { OUTPUT = 8192, SECURE_OUTPUT = 16384, SPARE_CONNECTIONS = 256 };
    const struct options *options = &worker->site->options;
    int status = options->compresses ? bide_http_compression_init(&worker->compression, NULL) : 0;
    if (status < 0)
        return status;
    status = bide_http_server_init(
        &worker->http,
        &(bide_http_options){.select_handler = select_handler,
                             .max_frame_size = bide_http_files_handler.size,
                             .allows_half_close = true, /* a handler waits for a disk at most */
                             .argument = worker,
                             .write_buffer_size = worker->secure != NULL ? SECURE_OUTPUT : OUTPUT,
                             .first_byte_timeout = options->header_timeout,
                             .header_timeout = options->header_timeout,
                             .body_idle_timeout = options->body_timeout,
                             .keepalive_timeout = options->idle_timeout,
                             .request_timeout = options->request_timeout,
                             .compression = options->compresses ? &worker->compression : NULL,
                             .incident = log_incident,
                             .log = options->log != NULL ? &worker->log.log : NULL});
#if HTTPD_HAS_HTTP2
    if (status == 0)
        status = bide_http2_init(
            &worker->http2, &worker->http,
            &(bide_http2_options){.is_plain = worker->secure == NULL,
                                  .max_all_streams =
                                      worker->site->connections / CONNECTIONS_OF_STREAM + 1});
#endif
    if (status == 0)
        status = bide_server_init(
            &worker->server, &(bide_server_options){.body = &session_body,
                                                    .size = session_size(worker),
                                                    .max_connections = worker->site->connections,
                                                    .allocator = &bide_heap,
                                                    .spare_connections = SPARE_CONNECTIONS,
                                                    .accept_retry_delay = ACCEPT_RETRY_DELAY});
    worker->server.argument = worker;
    return status;
}

/* ---- The logs ---- */

static bool open_logs(struct worker *worker)
{
    const struct options *options = &worker->site->options;
    int status = worker_log_open(&worker->log, options->log, LOG_NOWHERE, worker->log_memory,
                                 sizeof worker->log_memory, options->log_format);
    int errors =
        worker_log_open(&worker->errors, options->error_log, LOG_TO_ERROR, worker->error_memory,
                        sizeof worker->error_memory, options->log_format);
    return check_status(worker->log.name, status) && check_status(worker->errors.name, errors);
}

/* ---- Control requests: 1 ---- */

static void print_statistics(struct worker *worker)
{
    bide_server_stats server;
    const bide_http_stats *http = &worker->http.stats;
    bide_server_get_stats(&worker->server, &server);
    printf("statistics worker=%u live=%zu accepted=%" PRIu64 " refused=%" PRIu64 " errors=%" PRIu64
           " pauses=%" PRIu64 " requests=%" PRIu64 " bad-requests=%" PRIu64 " timed-out=%" PRIu64
           " log-lines=%" PRIu64 " dropped-log-lines=%" PRIu64 " incidents=%" PRIu64
           " suppressed-incidents=%" PRIu64 "\n",
           worker->number, server.live, server.accepted, server.refused, server.errors,
           server.pauses, http->requests, http->refused, http->timed_out, worker->log.log.lines,
           worker->log.log.dropped, worker->errors.log.lines, worker->errors.log.suppressed);
    fflush(stdout);
}

/* Stops the servers after the grace period; the second time at once. */
static void stop_worker(struct worker *worker, uint64_t now)
{
    uint64_t deadline = worker->is_stopping ? 0 : now + worker->site->options.grace;
    worker->is_stopping = true;
    bide_http_server_shut_down(&worker->http, deadline);
    bide_server_shut_down(&worker->server, deadline);
}

static void reload_certificates(struct worker *worker)
{
    if (worker->secure == NULL)
        return;
    struct bide_tls_config *config = certificates_load(&worker->site->options, worker->secure);
    if (config == NULL) /* 2 */
        return;
    secure_release(worker->secure);
    worker->secure = config;
}

static void print_reloaded(const struct worker *worker)
{
    printf("reloaded worker=%u\n", worker->number);
    fflush(stdout);
}

/* ---- The worker ---- */

static void server_ended(bide_branch *branch)
{
    struct worker *worker = bide_container_of(branch, struct worker, serving);
    worker->has_ended = true;
    worker->status = branch->status;
    bide_auto_event_set(&worker->signals.wakeup);
}

static void start_worker(struct worker *worker, bide_frame *frame)
{
    bide_scope_init(&worker->scope, frame);
    server_signals_spawn(&worker->signals, &worker->scope);
    worker_log_start(&worker->log, &worker->scope);
    worker_log_start(&worker->errors, &worker->scope);
    bide_scope_spawn_in(&worker->scope, &worker->serving, bide_loop_context(worker->loop),
                        bide_server_run(&worker->server), server_ended);
}

bide_coroutine(worker_body)
{
    bide_begin(worker_body, struct worker * self);
    start_worker(self, bide_this_frame());
    while (!self->has_ended) {
        bide_await(bide_auto_event_wait(&self->wait, &self->signals.wakeup));
        if (server_signals_consume(&self->signals, SERVER_STATISTICS))
            print_statistics(self);
        if (server_signals_consume(&self->signals, SERVER_STOP))
            stop_worker(self, bide_now(bide_this_context()));
        if (server_signals_consume(&self->signals, SERVER_RELOAD)) {
            reload_certificates(self);
            bide_await(worker_log_reopen(&self->log));
            bide_await(worker_log_reopen(&self->errors));
            print_reloaded(self);
        }
    }
    bide_http_log_close(&self->log.log);
    bide_http_log_close(&self->errors.log);
    server_signals_stop(&self->signals);
    bide_await(bide_scope_join(&self->scope));
    worker_log_report(&self->log);
    worker_log_report(&self->errors);
    bide_finally();
    bide_scope_destroy(&self->scope);
    bide_end();
}

bool worker_init(struct worker *worker, struct site *site, unsigned number,
                 struct bide_tls_config *secure)
{
    worker->site = site;
    worker->number = number;
    worker->secure = secure;
    secure_retain(secure);
    server_signals_init(&worker->signals);
    return open_logs(worker) && check_status("the server", init_servers(worker)) &&
           check_status("signals", server_signals_listen(&worker->signals)) &&
           check_status("a loop",
                        bide_loop_create(&worker->loop,
                                         &(bide_loop_options){.kind = site->options.back_end}));
}

void worker_run(struct worker *worker)
{
    int status = bide_loop_wait(worker->loop, bide_task_init(&worker->task, &worker_body));
    if (worker->status >= 0)
        worker->status = status;
    (void)check_status("the server", worker->status);
}

void worker_destroy(struct worker *worker)
{
    server_signals_stop(&worker->signals);
    worker_log_destroy(&worker->log);
    worker_log_destroy(&worker->errors);
    if (worker->loop != NULL)
        bide_loop_destroy(worker->loop);
    if (worker->site->options.compresses)
        bide_http_compression_destroy(&worker->compression);
    secure_release(worker->secure);
}

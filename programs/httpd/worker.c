/*
 * A worker.
 *
 * 1. What signals ask for is done by the worker's coroutine (wishes.h).
 * 2. A reload that fails in part, of a certificate or of the log, leaves that part as it was.
 * 3. Connections whose number comes near the bound end after their response: otherwise those that are
 *    idle would keep others out.
 */
#define _GNU_SOURCE
#include "worker.h"
#include "session.h"

#include <bide/coroutine.h>
#include <bide/sleep.h>
#include <bide/terminal.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { LOG_FLAGS = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, LOG_MODE = 0644 };

/* nanoseconds: when the system has no descriptor left */
#define PAUSE UINT64_C(250000000)

static bool complain(const char *what, int status)
{
    if (status < 0)
        fprintf(stderr, "httpd: %s: %s\n", what, strerror(-status));
    return status >= 0;
}

/* ---- Requests ---- */

static const bide_http_handler *choose(bide_http_exchange *exchange)
{
    struct worker *worker = exchange->argument;
    size_t max = worker->site->connections;
    if (bide_server_own_stats(&worker->server)->live > max - max / 4) /* 3 */
        bide_http_close_after(exchange);
    exchange->argument = &worker->site->files;
    return &bide_http_files_handler;
}

static int init_servers(struct worker *worker)
{
    enum { OUTPUT = 8192, SECURE_OUTPUT = 16384, KEPT = 256 };
    const struct options *options = &worker->site->options;
    int status = bide_http_server_init(
        &worker->http,
        &(bide_http_options){.select_handler = choose,
                             .max_frame_size = bide_http_files_handler.size,
                             .argument = worker,
                             .write_buffer_size = worker->secure != NULL ? SECURE_OUTPUT : OUTPUT,
                             .first_byte_timeout = options->header_timeout,
                             .header_timeout = options->header_timeout,
                             .body_idle_timeout = options->body_timeout,
                             .keepalive_timeout = options->idle_timeout,
                             .request_timeout = options->request_timeout,
                             .log = options->log != NULL ? &worker->log : NULL});
#if HTTPD_HAS_HTTP2
    if (status == 0)
        status = bide_http2_init(&worker->http2, &worker->http,
                                 &(bide_http2_options){.is_plain = worker->secure == NULL});
#endif
    if (status == 0)
        status = bide_server_init(&worker->server,
                                  &(bide_server_options){.body = &session_body,
                                                         .size = session_size(worker),
                                                         .max_connections = worker->site->connections,
                                                         .allocator = &bide_heap,
                                                         .spare_connections = KEPT,
                                                         .accept_retry_delay = PAUSE});
    worker->server.argument = worker;
    return status;
}

/* ---- The log ---- */

static bool logs_to_file(const struct worker *worker)
{
    const char *log = worker->site->options.log;
    return log != NULL && strcmp(log, "-") != 0;
}

static int open_log(struct worker *worker)
{
    const struct options *options = &worker->site->options;
    bide_descriptor *file = &worker->log_files[0];
    bide_descriptor_init_closed(&worker->log_files[0]);
    bide_descriptor_init_closed(&worker->log_files[1]);
    bide_http_log_init(&worker->log, file, worker->log_memory, sizeof worker->log_memory,
                       options->log_format);
    if (options->log == NULL)
        return 0;
    if (!logs_to_file(worker))
        return bide_standard_output(file);
    bide_descriptor_init(file, open(options->log, LOG_FLAGS, LOG_MODE));
    return bide_descriptor_is_open(file) ? 0 : -errno;
}

static bide_awaiter *open_next_log(struct worker *worker)
{
    return bide_open(&worker->open, &worker->log_files[1 - worker->log_at],
                     worker->site->options.log, LOG_FLAGS, LOG_MODE);
}

static void change_log(struct worker *worker)
{
    worker->log_at = 1 - worker->log_at;
    bide_http_log_reopen(&worker->log, &worker->log_files[worker->log_at]);
}

/* What was lost is told once. */
static void tell_of_log(struct worker *worker)
{
    (void)complain(worker->site->options.log, worker->log.error);
    worker->log.error = 0;
}

/* ---- What is wished: 1 ---- */

static void print_figures(struct worker *worker)
{
    bide_server_stats server;
    const bide_http_stats *http = &worker->http.stats;
    bide_server_get_stats(&worker->server, &server);
    printf("figures worker=%u live=%zu accepted=%" PRIu64 " refused=%" PRIu64 " errors=%" PRIu64
           " pauses=%" PRIu64 " requests=%" PRIu64 " bad-requests=%" PRIu64 " timed-out=%" PRIu64
           " log-lines=%" PRIu64 " dropped-log-lines=%" PRIu64 "\n",
           worker->number, server.live, server.accepted, server.refused, server.errors,
           server.pauses, http->requests, http->refused, http->timed_out, worker->log.lines,
           worker->log.dropped);
    fflush(stdout);
}

/* The second time: at once. */
static void stop(struct worker *worker, uint64_t now)
{
    uint64_t deadline = worker->is_stopping ? 0 : now + worker->site->options.grace;
    worker->is_stopping = true;
    bide_http_server_shut_down(&worker->http, deadline);
    bide_server_shut_down(&worker->server, deadline);
}

static void read_certificates(struct worker *worker)
{
    if (worker->secure == NULL)
        return;
    struct bide_tls_config *config = secure_read(&worker->site->options, worker->secure);
    if (config == NULL) /* 2 */
        return;
    secure_release(worker->secure);
    worker->secure = config;
}

static void tell_of_reload(const struct worker *worker)
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
    bide_auto_event_set(&worker->wishes.news);
}

static void begin(struct worker *worker, bide_frame *frame)
{
    bide_scope_init(&worker->scope, frame);
    wishes_watch(&worker->wishes, &worker->scope);
    bide_scope_spawn(&worker->scope, &worker->logging, bide_http_log_run(&worker->log));
    bide_scope_spawn_in(&worker->scope, &worker->serving, bide_loop_context(worker->loop),
                        bide_server_run(&worker->server), server_ended);
}

bide_coroutine(worker_body)
{
    bide_begin(worker_body, struct worker * self);
    begin(self, bide_this_frame());
    while (!self->has_ended) {
        bide_await(bide_auto_event_wait(&self->wait, &self->wishes.news));
        if (wishes_take(&self->wishes, WISH_FIGURES))
            print_figures(self);
        if (wishes_take(&self->wishes, WISH_STOP))
            stop(self, bide_now(bide_this_context()));
        if (wishes_take(&self->wishes, WISH_RELOAD)) {
            read_certificates(self);
            if (logs_to_file(self)) {
                tell_of_log(self);
                bide_await_status(self->status, open_next_log(self));
                if (complain(self->site->options.log, self->status)) {
                    change_log(self);
                    bide_await(bide_http_log_flush(&self->settling, &self->log));
                    bide_close(&self->log_files[1 - self->log_at]);
                }
            }
            tell_of_reload(self);
        }
    }
    bide_http_log_close(&self->log);
    wishes_end(&self->wishes);
    bide_await(bide_scope_join(&self->scope));
    tell_of_log(self);
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
    secure_keep(secure);
    wishes_init(&worker->wishes);
    return complain(site->options.log, open_log(worker)) &&
           complain("the server", init_servers(worker)) &&
           complain("signals", wishes_listen(&worker->wishes)) &&
           complain("a loop", bide_loop_create(&worker->loop, &(bide_loop_options){
                                                                  .kind = site->options.back_end}));
}

void worker_run(struct worker *worker)
{
    int status = bide_loop_wait(worker->loop, bide_task_init(&worker->task, &worker_body));
    if (worker->status >= 0)
        worker->status = status;
    (void)complain("the server", worker->status);
}

void worker_end(struct worker *worker)
{
    wishes_end(&worker->wishes);
    bide_close(&worker->log_files[0]);
    bide_close(&worker->log_files[1]);
    if (worker->loop != NULL)
        bide_loop_destroy(worker->loop);
    secure_release(worker->secure);
}

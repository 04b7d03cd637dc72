/*
 * Active health checks, and resolution of server names.
 *
 *     [resolve the name] --> [connect --> PROXY header --> TLS --> GET] --> sleep until the next of both -+
 *       ^-------------------------------------------------------------------------------------------------+
 *
 *  1. A check takes the steps of a connection that serves clients: it fails if one of them fails. `check http` requests
 *     a page after them, by the library's client, and passes with a status of 200 to 399.
 *  2. All steps of a check have one deadline.
 *  3. Look-ups have their own interval, however often the server is checked: a check that had to wait for a name server
 *     would judge that one, too.
 *
 * Passive checks are made by the users of a server: see balance_failed. All of it runs on the
 * program's loop.
 */
#define _GNU_SOURCE
#include "health.h"
#include "../common/secure.h"
#include "balance.h"
#include "due.h"
#include "forward.h"
#include "proxy_header.h"

#include <bide/coroutine.h>
#include <bide/deadline.h>
#include <bide/http_client.h>
#include <bide/sleep.h>
#include <bide/with_stop.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LOOKUP_TIMEOUT UINT64_C(5000000000)

struct checker {
    bide_task task;
    struct program *program;
    struct configuration *configuration; /* a reference */
    struct upstream *server;
    bide_branch branch;
    bide_with_stop_operation stopping;
    int status;
    struct due due;
    uint64_t started_at;
    bide_descriptor socket;
    struct secure *secure; /* NULL: no TLS, or not yet */
    char *memory;          /* of the client, during `check http` */
    bide_with_deadline_operation limited;
    bide_io_operation io;
    bide_stream_operation none;
    bide_sleep sleep;
    bide_http_client client;
    unsigned char header[PROXY_HEADER_MAX_WRITTEN];
    bide_resolve_operation resolve;
};

/* ---- Names ---- */

static uint64_t checker_now(const struct checker *self)
{
    return bide_now(bide_loop_context(self->program->loop));
}

static bool has_address(const struct checker *self)
{
    return self->server->address_count != 0;
}

static bide_awaiter *resolve(struct checker *self)
{
    struct upstream *server = self->server;
    return bide_with_timeout(
        &self->limited, LOOKUP_TIMEOUT,
        bide_resolve(&self->resolve, self->program->names, server->host, server->port));
}

static void store_addresses(struct checker *self)
{
    struct upstream *server = self->server;
    if (self->status >= 0) {
        memcpy(server->addresses, self->resolve.addresses, sizeof server->addresses);
        if (server->address_count == 0)
            log_line(&self->program->log, "server %s/%s is resolved", server->backend->name,
                     server->name);
        server->address_count = self->resolve.count;
    } else if (self->status != -ECANCELED) {
        log_line(&self->program->log, "server %s/%s cannot be resolved: %s", server->backend->name,
                 server->name, strerror(-self->status));
    }
    due_looked_up(&self->due, has_address(self), checker_now(self));
}

/* ---- Checks ---- */

static int start_check_request(bide_http_client *client, const struct upstream *server)
{
    const struct check *check = &server->backend->check;
    return bide_http_client_start_request(client, "GET", check->path,
                                          check->host != NULL ? check->host : server->authority);
}

int health_verify(const struct backend *backend)
{
    const bide_http_client_options options = {.keeps_delay = true};
    bide_http_client client;
    _Alignas(16) char memory[BIDE_HTTP_CLIENT_MEMORY];
    if (backend->check.kind != CHECK_HTTP)
        return 0;
    int status = 0;
    for (const struct upstream *server = backend->servers; status == 0 && server != NULL;
         server = server->next) {
        status = bide_http_client_init(&client, (bide_stream){0}, memory, sizeof memory, &options);
        if (status == 0)
            status = start_check_request(&client, server);
    }
    return status;
}

static bide_awaiter *limit_check(struct checker *self, bide_awaiter *step) /* 2 */
{
    return bide_with_deadline(&self->limited,
                              self->started_at + self->server->backend->check.timeout, step);
}

static bide_awaiter *connect_for_check(struct checker *self)
{
    self->started_at = checker_now(self);
    return limit_check(self, bide_connect(&self->io, &self->socket, balance_address(self->server)));
}

static bide_awaiter *send_check_header(struct checker *self)
{
    size_t size = proxy_header_print_own(self->header, self->server->backend->send_proxy);
    return limit_check(self, bide_send(&self->io, &self->socket, self->header, size));
}

static bide_awaiter *start_check_tls(struct checker *self)
{
    const struct upstream *server = self->server;
    self->secure = secure_create();
    if (self->secure == NULL)
        return bide_stream_ended(&self->none, -ENOMEM);
    return limit_check(self, secure_connect(self->secure, server->backend->tls,
                                            bide_socket_stream(&self->socket),
                                            upstream_tls_name(server)));
}

/* Writes the request into the client's buffer. */
static int write_check_request(struct checker *self)
{
    const bide_http_client_options options = {.write_buffer_size = SCRATCH_OUTPUT,
                                              .max_fields = SCRATCH_FIELDS};
    bide_stream stream =
        self->secure != NULL ? secure_stream(self->secure) : bide_socket_stream(&self->socket);
    self->memory = malloc(SCRATCH_MEMORY);
    int status = self->memory == NULL ? -ENOMEM
                                      : bide_http_client_init(&self->client, stream, self->memory,
                                                              SCRATCH_MEMORY, &options);
    if (status == 0)
        status = start_check_request(&self->client, self->server);
    if (status == 0)
        status = bide_http_client_add(&self->client, "User-Agent", "bide-proxy");
    if (status == 0)
        bide_http_client_close_after(&self->client);
    return status;
}

static bide_awaiter *receive_check_response(struct checker *self)
{
    return limit_check(self, bide_http_client_recv(&self->client));
}

/* A response that the client refuses, a cut one and an end without one count as bad responses. */
static void judge_response(struct checker *self)
{
    int status = self->client.response.status;
    if (self->status >= 0)
        self->status = status >= 200 && status <= 399 ? 0 : -EBADMSG;
    else if (self->status == -EMSGSIZE || self->status == -ENODATA || self->status == -EPIPE)
        self->status = -EBADMSG;
}

/* ---- One server ---- */

static bide_awaiter *pause_checking(struct checker *self)
{
    return bide_sleep_until(&self->sleep, due_next(&self->due, has_address(self))); /* 3 */
}

static void close_check(struct checker *self)
{
    secure_destroy(self->secure);
    self->secure = NULL;
    bide_close(&self->socket);
    free(self->memory);
    self->memory = NULL;
}

/* An error of the proxy's own, as a lack of descriptors, says nothing about the server. */
static void report_check(struct checker *self, const bide_context *context)
{
    const char *reason = secure_reason(self->secure);
    char text[256];
    if (self->status == -EBADMSG)
        snprintf(text, sizeof text, "bad response to the check");
    else if (*reason != '\0' && self->status != -ETIMEDOUT)
        snprintf(text, sizeof text, "TLS: %s", reason);
    else
        snprintf(text, sizeof text, "%s", strerror(-self->status));
    if (!bide_stop_requested(context->stop) && !balance_is_local_error(self->status))
        balance_checked(self->server, self->status >= 0, text, &self->program->log);
    due_checked(&self->due, self->server->backend->check.every, checker_now(self));
    close_check(self);
}

bide_coroutine(checker_body)
{
    bide_begin(checker_body, struct checker * self);
    while (!bide_stop_requested(bide_this_context()->stop)) {
        if (due_is_lookup(&self->due, checker_now(self))) {
            bide_await_status(self->status, resolve(self));
            store_addresses(self);
        }
        if (due_is_check(&self->due, has_address(self), checker_now(self))) {
            bide_await_status(self->status, connect_for_check(self)); /* 1 */
            if (self->status >= 0 && self->server->backend->send_proxy != 0)
                bide_await_status(self->status, send_check_header(self));
            if (self->status >= 0 && self->server->backend->tls != NULL)
                bide_await_status(self->status, start_check_tls(self));
            if (self->status >= 0 && self->server->backend->check.kind == CHECK_HTTP) {
                self->status = write_check_request(self);
                if (self->status >= 0) {
                    bide_await_status(self->status, receive_check_response(self));
                    judge_response(self);
                }
            }
            report_check(self, bide_this_context());
        }
        bide_await(pause_checking(self));
    }
    bide_finally();
    close_check(self);
    bide_end();
}

static void checker_ended(bide_branch *branch)
{
    struct checker *checker = bide_container_of(branch, struct checker, branch);
    configuration_release(checker->configuration);
    free(checker);
}

static void start_checker(struct program *program, struct configuration *configuration,
                          struct upstream *server)
{
    struct checker *checker = malloc(sizeof *checker);
    if (checker == NULL)
        return;
    checker->program = program;
    checker->configuration = configuration;
    checker->server = server;
    checker->due.lookup_at = server->host != NULL ? 0 : BIDE_FOREVER;
    checker->due.check_at = server->backend->check.kind != CHECK_NOTHING ? 0 : BIDE_FOREVER;
    checker->secure = NULL;
    checker->memory = NULL;
    bide_descriptor_init_closed(&checker->socket);
    configuration_retain(configuration);
    bide_scope_spawn_in(&program->watching, &checker->branch, bide_loop_context(program->loop),
                        bide_with_stop(&checker->stopping, &configuration->checks,
                                       bide_task_init(&checker->task, &checker_body)),
                        checker_ended);
}

void health_start(struct program *program, struct configuration *configuration)
{
    for (struct backend *backend = configuration->backends; backend != NULL;
         backend = backend->next) {
        for (struct upstream *server = backend->servers; server != NULL; server = server->next) {
            if (server->host != NULL || backend->check.kind != CHECK_NOTHING)
                start_checker(program, configuration, server);
        }
    }
}

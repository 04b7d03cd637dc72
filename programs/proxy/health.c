/*
 * Active health checks, and resolution of server names.
 *
 *     resolve the name, if any --> connect --> [GET, a status of 200 to 399] --> sleep -+
 *       ^--------------------------------------------------------------------------------+
 *
 * Passive checks are made by the users of a server: see balance_failed. All of it runs on the
 * program's loop.
 */
#define _GNU_SOURCE
#include "health.h"
#include "balance.h"
#include "proxy_header.h"

#include <bide/coroutine.h>
#include <bide/deadline.h>
#include <bide/sleep.h>
#include <bide/with_stop.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LOOKUP_INTERVAL UINT64_C(30000000000)
#define LOOKUP_TIMEOUT  UINT64_C(5000000000)

enum { STATUS_LINE = 12 }; /* "HTTP/1.1 200" */

struct checker {
    bide_task task;
    struct program *program;
    struct configuration *configuration; /* a reference */
    struct upstream *server;
    bide_branch branch;
    bide_with_stop_operation stopping;
    int status;
    uint64_t started_at;
    bide_descriptor socket;
    bide_with_deadline_operation limited;
    bide_io_operation io;
    bide_sleep sleep;
    size_t size;
    char text[2048];
    bide_resolve_operation resolve;
};

/* ---- Names ---- */

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
}

/* ---- Checks ---- */

static uint64_t check_deadline(const struct checker *self)
{
    return self->started_at + self->server->backend->check.timeout;
}

static bide_awaiter *connect_for_check(struct checker *self)
{
    self->started_at = bide_now(bide_loop_context(self->program->loop));
    return bide_with_deadline(
        &self->limited, check_deadline(self),
        bide_connect(&self->io, &self->socket, balance_address(self->server)));
}

/*
 * Sends the request, behind a PROXY protocol header without addresses if the backend uses that
 * protocol.
 */
static bide_awaiter *send_check_request(struct checker *self)
{
    static const bide_address nobody;
    const struct backend *backend = self->server->backend;
    const struct check *check = &backend->check;
    self->size = 0;
    if (backend->send_proxy != 0)
        self->size =
            proxy_header_print((unsigned char *)self->text, backend->send_proxy, &nobody, &nobody);
    int length = snprintf(self->text + self->size, sizeof self->text - self->size,
                          "GET %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: bide-proxy\r\n"
                          "Connection: close\r\n\r\n",
                          check->path, check->host != NULL ? check->host : self->server->name);
    self->size += length > 0 ? (size_t)length : 0;
    if (self->size >= sizeof self->text)
        self->size = sizeof self->text - 1;
    return bide_with_deadline(&self->limited, check_deadline(self),
                              bide_send(&self->io, &self->socket, self->text, self->size));
}

static bide_awaiter *receive_status_line(struct checker *self)
{
    return bide_with_deadline(
        &self->limited, check_deadline(self),
        bide_recv(&self->io, &self->socket, self->text + self->size, STATUS_LINE - self->size));
}

static bool needs_status_line(const struct checker *self)
{
    return self->status >= 0 && self->server->backend->check.kind == CHECK_HTTP &&
           self->size < STATUS_LINE;
}

/* "HTTP/1.1 200", or another status from 200 to 399. */
static bool is_good_status(const char text[STATUS_LINE])
{
    return memcmp(text, "HTTP/1.", 7) == 0 && text[8] == ' ' &&
           (text[9] == '2' || text[9] == '3') && text[10] >= '0' && text[10] <= '9' &&
           text[11] >= '0' && text[11] <= '9';
}

/* Accounts for received bytes of the status line, and checks it when it is complete. */
static void note_status_line(struct checker *self)
{
    if (self->status < 0)
        return;
    bide_assert(self->size + self->io.count <= STATUS_LINE);
    self->size += self->io.count;
    if (self->io.count == 0 || (self->size == STATUS_LINE && !is_good_status(self->text)))
        self->status = -EBADMSG;
}

/* ---- One server ---- */

static bide_awaiter *pause_checking(struct checker *self)
{
    const struct check *check = &self->server->backend->check;
    return bide_sleep_for(&self->sleep,
                          check->kind != CHECK_NOTHING ? check->every : LOOKUP_INTERVAL);
}

static void report_check(struct checker *self, const bide_context *context)
{
    bide_close(&self->socket);
    if (!bide_stop_requested(context->stop))
        balance_checked(self->server, self->status, &self->program->log);
}

bide_coroutine(checker_body)
{
    bide_begin(checker_body, struct checker * self);
    while (!bide_stop_requested(bide_this_context()->stop)) {
        if (self->server->host != NULL) {
            bide_await_status(self->status, resolve(self));
            store_addresses(self);
        }
        if (self->server->backend->check.kind != CHECK_NOTHING &&
            self->server->address_count != 0) {
            bide_await_status(self->status, connect_for_check(self));
            if (self->status >= 0 && self->server->backend->check.kind == CHECK_HTTP)
                bide_await_status(self->status, send_check_request(self));
            self->size = 0;
            while (needs_status_line(self)) {
                bide_await_status(self->status, receive_status_line(self));
                note_status_line(self);
            }
            report_check(self, bide_this_context());
        }
        bide_await(pause_checking(self));
    }
    bide_finally();
    bide_close(&self->socket);
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

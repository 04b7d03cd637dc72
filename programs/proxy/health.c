/*
 * Health checks, active ones, and looking names up.
 *
 *     look up the name, if there is one --> connect --> [GET, a status of 200 to 399] --> sleep -+
 *       ^----------------------------------------------------------------------------------------+
 *
 * What passive checks there are is told by those who use a server: balance_failed.
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

#define LOOK_UP_EVERY   UINT64_C(30000000000)
#define LOOK_UP_TIMEOUT UINT64_C(5000000000)

enum { STATUS_LINE = 12 }; /* "HTTP/1.1 200" */

struct checker {
    bide_task task;
    struct program *program;
    struct configuration *configuration; /* a reference */
    struct upstream *server;
    bide_branch branch;
    bide_with_stop_operation stopping;
    int status;
    uint64_t begun;
    bide_descriptor socket;
    bide_with_deadline_operation limited;
    bide_io_operation io;
    bide_sleep sleep;
    size_t size;
    char text[2048];
    bide_resolve_operation look_up;
};

/* ---- Names ---- */

static bide_awaiter *look_up(struct checker *self)
{
    struct upstream *server = self->server;
    return bide_with_deadline(
        &self->limited, bide_now(bide_loop_context(self->program->loop)) + LOOK_UP_TIMEOUT,
        bide_resolve(&self->look_up, self->program->names, server->host, server->port));
}

static void take_addresses(struct checker *self)
{
    struct upstream *server = self->server;
    if (self->status >= 0) {
        memcpy(server->addresses, self->look_up.addresses, sizeof server->addresses);
        if (server->address_count == 0)
            log_line(&self->program->log, "server %s/%s is found", server->backend->name,
                     server->name);
        server->address_count = self->look_up.count;
    } else if (self->status != -ECANCELED) {
        log_line(&self->program->log, "server %s/%s cannot be looked up: %s",
                 server->backend->name, server->name, strerror(-self->status));
    }
}

/* ---- Checks ---- */

static uint64_t deadline_of(const struct checker *self)
{
    return self->begun + self->server->backend->check.timeout;
}

static bide_awaiter *connect_to_server(struct checker *self)
{
    self->begun = bide_now(bide_loop_context(self->program->loop));
    return bide_with_deadline(&self->limited, deadline_of(self),
                              bide_connect(&self->io, &self->socket, balance_address(self->server)));
}

/* A request, behind a header of the PROXY protocol that speaks for nobody, if one is wanted. */
static bide_awaiter *send_request(struct checker *self)
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
    return bide_with_deadline(&self->limited, deadline_of(self),
                              bide_send(&self->io, &self->socket, self->text, self->size));
}

static bide_awaiter *receive_answer(struct checker *self)
{
    return bide_with_deadline(&self->limited, deadline_of(self),
                              bide_recv(&self->io, &self->socket, self->text + self->size,
                                        STATUS_LINE - self->size));
}

static bool lacks_answer(const struct checker *self)
{
    return self->status >= 0 && self->server->backend->check.kind == CHECK_HTTP &&
           self->size < STATUS_LINE;
}

/* "HTTP/1.1 200", or another status below 400. */
static bool is_good(const char text[STATUS_LINE])
{
    return memcmp(text, "HTTP/1.", 7) == 0 && text[8] == ' ' && (text[9] == '2' || text[9] == '3') &&
           text[10] >= '0' && text[10] <= '9' && text[11] >= '0' && text[11] <= '9';
}

/* More of the first line has come. */
static void take_answer(struct checker *self)
{
    if (self->status < 0)
        return;
    self->size += self->io.count;
    if (self->io.count == 0 || (self->size == STATUS_LINE && !is_good(self->text)))
        self->status = -EBADMSG;
}

/* ---- One server ---- */

static bide_awaiter *pause_checking(struct checker *self)
{
    const struct check *check = &self->server->backend->check;
    return bide_sleep_for(&self->sleep, check->kind != CHECK_NOTHING ? check->every : LOOK_UP_EVERY);
}

static void take_check(struct checker *self, const bide_context *context)
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
            bide_await_status(self->status, look_up(self));
            take_addresses(self);
        }
        if (self->server->backend->check.kind != CHECK_NOTHING &&
            self->server->address_count != 0) {
            bide_await_status(self->status, connect_to_server(self));
            if (self->status >= 0 && self->server->backend->check.kind == CHECK_HTTP)
                bide_await_status(self->status, send_request(self));
            self->size = 0;
            while (lacks_answer(self)) {
                bide_await_status(self->status, receive_answer(self));
                take_answer(self);
            }
            take_check(self, bide_this_context());
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

static void begin(struct program *program, struct configuration *configuration,
                  struct upstream *server)
{
    struct checker *checker = malloc(sizeof *checker);
    if (checker == NULL)
        return;
    checker->program = program;
    checker->configuration = configuration;
    checker->server = server;
    bide_descriptor_init_closed(&checker->socket);
    configuration_keep(configuration);
    bide_scope_spawn_in(&program->watching, &checker->branch, bide_loop_context(program->loop),
                        bide_with_stop(&checker->stopping, &configuration->checks,
                                       bide_task_init(&checker->task, &checker_body)),
                        checker_ended);
}

void health_begin(struct program *program, struct configuration *configuration)
{
    for (struct backend *backend = configuration->backends; backend != NULL; backend = backend->next) {
        for (struct upstream *server = backend->servers; server != NULL; server = server->next) {
            if (server->host != NULL || backend->check.kind != CHECK_NOTHING)
                begin(program, configuration, server);
        }
    }
}

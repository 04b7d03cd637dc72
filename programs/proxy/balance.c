/*
 * Load balancing: round robin by weight, fewest connections, and the state of each server.
 *
 * Source: smooth weighted round robin: in each round every server gains its weight; the server with
 * the highest sum is chosen and loses the total of all weights. Igor Sysoev, Maxim Dounin, nginx,
 * 2012.
 */
#define _GNU_SOURCE
#include "balance.h"
#include "status.h"

#include <errno.h>
#include <string.h>

static bool was_tried(const struct tried *tried, const struct upstream *server)
{
    return (tried->bits[server->index / 64] >> server->index % 64 & 1) != 0;
}

static void note_tried(struct tried *tried, const struct upstream *server)
{
    tried->bits[server->index / 64] |= UINT64_C(1) << server->index % 64;
}

static bool is_up(const struct upstream *server, const struct tried *tried, uint64_t now)
{
    return !server->is_down && server->address_count != 0 && server->suspended_until <= now &&
           !was_tried(tried, server);
}

static bool is_usable(const struct upstream *server, const struct tried *tried, uint64_t now)
{
    return is_up(server, tried, now) &&
           (server->max_connections == 0 || server->live < server->max_connections);
}

static struct upstream *next_in_round(struct backend *backend, const struct tried *tried,
                                      uint64_t now)
{
    struct upstream *best = NULL;
    long sum = 0;
    for (struct upstream *server = backend->servers; server != NULL; server = server->next) {
        if (!is_usable(server, tried, now))
            continue;
        server->current += server->weight;
        sum += server->weight;
        if (best == NULL || server->current > best->current)
            best = server;
    }
    if (best != NULL)
        best->current -= sum;
    return best;
}

/*
 * The server with the fewest connections in proportion to its weight; among equals, the next in the
 * round.
 */
static struct upstream *fewest_connections(struct backend *backend, const struct tried *tried,
                                           uint64_t now)
{
    struct tried others = *tried;
    const struct upstream *best = NULL;
    for (const struct upstream *server = backend->servers; server != NULL; server = server->next) {
        if (is_usable(server, tried, now) &&
            (best == NULL ||
             (uint64_t)server->live * best->weight < (uint64_t)best->live * server->weight))
            best = server;
    }
    if (best == NULL)
        return NULL;
    for (const struct upstream *server = backend->servers; server != NULL; server = server->next) {
        if ((uint64_t)server->live * best->weight != (uint64_t)best->live * server->weight)
            note_tried(&others, server);
    }
    return next_in_round(backend, &others, now);
}

struct upstream *balance_choose_full(struct backend *backend, struct tried *tried, uint64_t now)
{
    struct upstream *best = NULL;
    for (struct upstream *server = backend->servers; server != NULL; server = server->next) {
        if (is_up(server, tried, now) &&
            (best == NULL || (uint64_t)server->live * best->max_connections <
                                 (uint64_t)best->live * server->max_connections))
            best = server;
    }
    if (best != NULL)
        note_tried(tried, best);
    return best;
}

struct upstream *balance_choose(struct backend *backend, struct tried *tried, uint64_t now)
{
    struct upstream *server = backend->balance == MIN_CONNECTIONS
                                  ? fewest_connections(backend, tried, now)
                                  : next_in_round(backend, tried, now);
    if (server != NULL)
        note_tried(tried, server);
    return server;
}

bool balance_may_take(const struct upstream *server, const struct tried *tried, uint64_t now,
                      bool may_be_full)
{
    return may_be_full ? is_up(server, tried, now) : is_usable(server, tried, now);
}

struct upstream *balance_try(struct upstream *server, struct tried *tried, uint64_t now)
{
    if (server == NULL || !is_up(server, tried, now))
        return NULL;
    note_tried(tried, server);
    return server;
}

const bide_address *balance_address(struct upstream *server)
{
    return &server->addresses[server->next_address++ % server->address_count];
}

/* ---- The state of servers ---- */

void balance_connection_started(struct upstream *server)
{
    server->live++;
    server->total++;
}

void balance_connection_finished(struct upstream *server)
{
    bide_assert(server->live > 0);
    server->live--;
}

bool balance_is_local_error(int error)
{
    return error == -EMFILE || error == -ENFILE || error == -ENOMEM || error == -ENOBUFS ||
           error == -EADDRNOTAVAIL;
}

void balance_succeeded(struct upstream *server, struct log *log)
{
    unsigned limit = server->backend->fail_count;
    if (limit != 0 && server->failures >= limit)
        log_line(log, "server %s/%s is used again", server->backend->name, server->name);
    server->failures = 0;
    server->suspended_until = 0;
}

void balance_failed(struct upstream *server, int error, uint64_t now, struct log *log)
{
    const struct backend *backend = server->backend;
    server->failed++;
    status_count_error(server, error);
    server->failures++;
    if (backend->fail_count == 0 || server->failures < backend->fail_count)
        return;
    if (server->suspended_until <= now)
        log_line(log, "server %s/%s has failed %u times and is suspended: %s", backend->name,
                 server->name, server->failures, strerror(-error));
    server->suspended_until = now + backend->fail_for;
}

void balance_checked(struct upstream *server, bool is_good, const char *reason, struct log *log)
{
    const struct backend *backend = server->backend;
    if (is_good != server->is_down) {
        server->checks = 0;
        return;
    }
    if (++server->checks < (is_good ? backend->check.rise : backend->check.fall))
        return;
    server->checks = 0;
    server->is_down = !is_good;
    if (is_good) {
        server->failures = 0;
        server->suspended_until = 0;
        log_line(log, "server %s/%s is up", backend->name, server->name);
    } else {
        log_line(log, "server %s/%s is down: %s", backend->name, server->name, reason);
    }
}

/* ---- A new configuration ---- */

static void inherit_state(struct upstream *server, const struct upstream *old)
{
    server->current = old->current;
    server->failures = old->failures;
    server->suspended_until = old->suspended_until;
    server->is_down = old->is_down && server->backend->check.kind != CHECK_NOTHING;
    server->total = old->total;
    server->failed = old->failed;
    server->bytes_in = old->bytes_in;
    server->bytes_out = old->bytes_out;
    server->counts = old->counts;
    if (server->host != NULL) {
        memcpy(server->addresses, old->addresses, sizeof server->addresses);
        server->address_count = old->address_count;
    }
}

void balance_inherit(struct configuration *configuration, const struct configuration *old)
{
    for (struct backend *backend = configuration->backends; backend != NULL;
         backend = backend->next) {
        const struct backend *other = old->backends;
        while (other != NULL && strcmp(other->name, backend->name) != 0)
            other = other->next;
        if (other == NULL)
            continue;
        for (struct upstream *server = backend->servers; server != NULL; server = server->next) {
            const struct upstream *same = other->servers;
            while (same != NULL && strcmp(same->name, server->name) != 0)
                same = same->next;
            if (same != NULL)
                inherit_state(server, same);
        }
    }
}

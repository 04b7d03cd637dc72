/* The descriptors of the program's listeners. Runs on the program's loop. */
#include "budget.h"

#include <stdio.h>
#include <stdlib.h>

static size_t reserve_of(const struct configuration *configuration)
{
    size_t listeners = 0, servers = 0;
    for (const struct listen *at = configuration->listens; at != NULL; at = at->next)
        listeners++;
    for (const struct backend *backend = configuration->backends; backend != NULL;
         backend = backend->next) {
        for (const struct upstream *server = backend->servers; server != NULL;
             server = server->next)
            servers += server->host != NULL || backend->check.kind != CHECK_NOTHING;
    }
    return descriptors_reserve(listeners, servers);
}

bool budget_has_room(const struct program *program, const struct configuration *configuration)
{
    size_t reserve = reserve_of(configuration), limit = program->descriptors.limit;
    if (reserve > limit)
        fprintf(stderr,
                "proxy: the limit of descriptors leaves %zu, and the configuration needs %zu\n",
                limit, reserve);
    return reserve <= limit;
}

/* Connections of before a reload may need more than those of the listener's new mode. */
static unsigned cost_of(const struct listener *listener)
{
    unsigned cost = listener->listen->mode == MODE_STATUS ? 1 : 2;
    return listener->share.live != 0 && listener->share.cost > cost ? listener->share.cost : cost;
}

void budget_divide(struct program *program)
{
    struct share *shares = NULL;
    program->descriptors.reserve = reserve_of(program->configuration);
    for (struct listener *at = program->listeners; at != NULL; at = at->next) {
        at->share.next = shares;
        at->share.wanted = at->listen->max_connections;
        at->share.cost = cost_of(at);
        at->share.is_ending = at->is_shutting_down;
        shares = &at->share;
    }
    descriptors_divide(&program->descriptors, shares);
    for (struct listener *at = program->listeners; at != NULL; at = at->next) {
        if (!at->is_shutting_down &&
            bide_server_set_max_connections(&at->server, at->share.max) != 0)
            abort(); /* it is 1 or more */
    }
}

void budget_report(const struct program *program)
{
    for (const struct listener *at = program->listeners; at != NULL; at = at->next) {
        if (!at->is_shutting_down && at->listen->has_max_connections &&
            at->share.max < at->share.wanted)
            fprintf(stderr,
                    "proxy: %s: only %zu connections: the limit of descriptors allows no more\n",
                    at->listen->name, at->share.max);
    }
}

void budget_connection_started(struct listener *listener)
{
    listener->share.live++;
}

void budget_connection_ended(struct listener *listener)
{
    bide_assert(listener->share.live > 0);
    listener->share.live--;
    if (listener->program->descriptors.is_uneven)
        budget_divide(listener->program);
}

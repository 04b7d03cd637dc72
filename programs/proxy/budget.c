/* The descriptors of the program's listeners. Runs on the program's loop. */
#include "budget.h"

#include <stdio.h>
#include <stdlib.h>

/* The servers that are checked or whose names are looked up. */
static size_t count_watched(const struct configuration *configuration)
{
    size_t servers = 0;
    for (const struct backend *backend = configuration->backends; backend != NULL;
         backend = backend->next) {
        for (const struct upstream *server = backend->servers; server != NULL;
             server = server->next)
            servers += server->host != NULL || backend->check.kind != CHECK_NOTHING;
    }
    return servers;
}

static size_t reserve_of(const struct configuration *configuration)
{
    size_t listeners = 0;
    for (const struct listen *at = configuration->listens; at != NULL; at = at->next)
        listeners++;
    return descriptors_reserve(listeners, count_watched(configuration));
}

/* Connections of before a reload may need more than those of the listener's new mode. */
static unsigned cost_of(const struct listener *listener)
{
    unsigned cost = listener->listen->mode == MODE_STATUS ? 1 : 2;
    return listener->share.live != 0 && listener->share.cost > cost ? listener->share.cost : cost;
}

/* The shares of all listeners, as they are now. */
static struct share *update_shares(struct program *program)
{
    struct share *shares = NULL;
    for (struct listener *at = program->listeners; at != NULL; at = at->next) {
        uint64_t accepted = bide_server_own_stats(&at->server)->accepted;
        bide_assert(accepted >= at->ended);
        at->share.next = shares;
        at->share.live = (size_t)(accepted - at->ended);
        at->share.wanted = at->listen->max_connections;
        at->share.cost = cost_of(at);
        at->share.is_ending = at->is_shutting_down;
        shares = &at->share;
    }
    return shares;
}

/* Counts the listeners of the program and the listeners that the configuration adds. */
static size_t count_listeners_with(const struct program *program,
                                   const struct configuration *configuration)
{
    size_t count = 0;
    for (const struct listen *at = configuration->listens; at != NULL; at = at->next)
        count += configuration_listen(program->configuration, at->name) == NULL;
    for (const struct listener *at = program->listeners; at != NULL; at = at->next)
        count++;
    return count;
}

bool budget_has_room(struct program *program, const struct configuration *configuration)
{
    size_t limit = program->descriptors.limit, needed = reserve_of(configuration);
    const char *users = "the configuration needs";
    if (needed <= limit && program->configuration != NULL) {
        size_t servers = count_watched(configuration) + count_watched(program->configuration);
        needed = descriptors_in_use(&program->descriptors, update_shares(program)) +
                 descriptors_reload_reserve(count_listeners_with(program, configuration), servers);
        users = "a reload beside the open connections needs";
    }
    if (needed > limit)
        fprintf(stderr, "proxy: the limit of descriptors leaves %zu, and %s %zu\n", limit, users,
                needed);
    return needed <= limit;
}

void budget_divide(struct program *program)
{
    program->descriptors.reserve = reserve_of(program->configuration);
    descriptors_divide(&program->descriptors, update_shares(program));
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

void budget_divide_again(struct descriptors *descriptors)
{
    struct program *program = bide_container_of(descriptors, struct program, descriptors);
    if (program->configuration != NULL) /* (it ends) */
        budget_divide(program);
}

void budget_connection_ended(struct listener *listener)
{
    listener->ended++;
    if (listener->program->descriptors.is_uneven)
        budget_divide_again(&listener->program->descriptors);
}

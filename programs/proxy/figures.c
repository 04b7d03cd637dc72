/*
 * One line: "figures", then names with numbers, then each server.
 */
#include "figures.h"

#include <bide/sleep.h>

#include <inttypes.h>

static const char *state_of(const struct upstream *server, uint64_t now)
{
    return server->is_down             ? "down"
           : server->address_count == 0 ? "unknown"
           : server->down_until > now   ? "away"
                                        : "up";
}

static void print_server(const struct upstream *server, uint64_t now)
{
    printf(" %s/%s=%s,live:%u,total:%" PRIu64 ",failed:%" PRIu64 ",in:%" PRIu64 ",out:%" PRIu64,
           server->backend->name, server->name, state_of(server, now), server->live, server->total,
           server->failed, server->bytes_in, server->bytes_out);
}

void figures_print(const struct program *program)
{
    const struct counts *counts = &program->counts;
    uint64_t now = bide_now(bide_loop_context(program->loop));
    size_t live = 0;
    for (const struct listener *listener = program->listeners; listener != NULL;
         listener = listener->next)
        live += bide_server_own_stats(&listener->server)->live;
    printf("figures connections=%" PRIu64 " live=%zu refused=%" PRIu64 " failed=%" PRIu64
           " requests=%" PRIu64 " retries=%" PRIu64 " in=%" PRIu64 " out=%" PRIu64
           " buffers=%u dropped-log-lines=%" PRIu64,
           counts->connections, live, counts->refused, counts->failed, counts->requests,
           counts->retries, counts->bytes_in, counts->bytes_out, program->buffers.lent,
           program->log.dropped);
    for (const struct backend *backend = program->configuration->backends; backend != NULL;
         backend = backend->next) {
        for (const struct upstream *server = backend->servers; server != NULL; server = server->next)
            print_server(server, now);
    }
    putchar('\n');
    fflush(stdout);
}

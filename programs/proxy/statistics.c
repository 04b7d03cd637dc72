/* One line: the word "statistics", then names with numbers, then each server. */
#include "statistics.h"

#include <bide/sleep.h>

#include <inttypes.h>

const char *statistics_state(const struct upstream *server, uint64_t now)
{
    return server->is_down                 ? "down"
           : server->address_count == 0    ? "unknown"
           : server->suspended_until > now ? "suspended"
                                           : "up";
}

static void print_server_statistics(const struct upstream *server, uint64_t now)
{
    printf(" %s/%s=%s,live:%u,total:%" PRIu64 ",failed:%" PRIu64 ",in:%" PRIu64 ",out:%" PRIu64,
           server->backend->name, server->name, statistics_state(server, now), server->live,
           server->total, server->failed, server->bytes_in, server->bytes_out);
}

void statistics_print(const struct program *program)
{
    const struct statistics *statistics = &program->statistics;
    uint64_t now = bide_now(bide_loop_context(program->loop));
    size_t live = 0;
    for (const struct listener *listener = program->listeners; listener != NULL;
         listener = listener->next)
        live += bide_server_own_stats(&listener->server)->live;
    printf("statistics connections=%" PRIu64 " live=%zu rejected=%" PRIu64 " failed=%" PRIu64
           " requests=%" PRIu64 " retries=%" PRIu64 " in=%" PRIu64 " out=%" PRIu64
           " buffers=%u dropped-log-lines=%" PRIu64,
           statistics->connections, live, statistics->rejected, statistics->failed,
           statistics->requests, statistics->retries, statistics->bytes_in, statistics->bytes_out,
           program->buffers.in_use, program->log.dropped);
    for (const struct backend *backend = program->configuration->backends; backend != NULL;
         backend = backend->next) {
        for (const struct upstream *server = backend->servers; server != NULL;
             server = server->next)
            print_server_statistics(server, now);
    }
    putchar('\n');
    fflush(stdout);
}

/*
 * The names of hosts in a world in memory: a list, which is searched. One thread uses it, so nothing
 * needs an order.
 */
#define _GNU_SOURCE
#include "memory.h"

#include "bide/names.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { HOST_MAX = 253 };

struct memory_host {
    memory_host *next;
    unsigned count;
    bide_address addresses[BIDE_RESOLVE_MAX];
    char name[HOST_MAX + 1];
};

/* The length of a name without the dot at its end; 0: it is no name. */
static size_t host_length(const char *host)
{
    size_t length = host != NULL ? strnlen(host, HOST_MAX + 2) : 0;
    if (length != 0 && host[length - 1] == '.')
        length--;
    return length <= HOST_MAX ? length : 0;
}

/* The place of the host in the list, or the end of the list. */
static memory_host **host_place(sim_environment *environment, const char *host, size_t length)
{
    memory_host **place = &environment->hosts;
    while (*place != NULL &&
           (strncasecmp((*place)->name, host, length) != 0 || (*place)->name[length] != '\0'))
        place = &(*place)->next;
    return place;
}

int bide_memory_io_set_host(bide_memory_io *environment, const char *host,
                            const bide_address *addresses, unsigned count)
{
    size_t length = host_length(host);
    if (length == 0 || count > BIDE_RESOLVE_MAX)
        return -EINVAL;
    memory_host **place = host_place(environment, host, length);
    memory_host *it = *place;
    if (it == NULL) {
        it = calloc(1, sizeof *it);
        if (it == NULL)
            return -ENOMEM;
        memcpy(it->name, host, length);
        *place = it;
    }
    it->count = count;
    if (count != 0)
        memcpy(it->addresses, addresses, count * sizeof *addresses);
    return 0;
}

void bide_sim_hosts_end_(sim_environment *environment)
{
    memory_host *host;
    while ((host = environment->hosts) != NULL) {
        environment->hosts = host->next;
        free(host);
    }
}

static int resolve_localhost(bide_address *addresses, unsigned max)
{
    static const char *const local[] = {"::1", "127.0.0.1"};
    unsigned count = 0;
    while (count < max && count < sizeof local / sizeof *local) {
        bide_address_ip(&addresses[count], local[count], 0);
        count++;
    }
    return (int)count;
}

int bide_sim_resolve_(bide_io *io, const char *host, bide_address *addresses, unsigned max,
                      uint64_t *delay)
{
    sim_environment *environment = sim_environment_of(io);
    size_t length = host_length(host);
    *delay =
        bide_sim_loop_delay_(environment->loop, "a name is looked up", environment->options.delay);
    if (memory_fault(environment, "io: no answer", environment->options.broken))
        return -EAGAIN;
    const memory_host *it = *host_place(environment, host, length);
    if (it == NULL && length == strlen("localhost") && strncasecmp(host, "localhost", length) == 0)
        return resolve_localhost(addresses, max);
    if (it == NULL || it->count == 0)
        return -ENOENT;
    unsigned count = it->count < max ? it->count : max;
    memcpy(addresses, it->addresses, count * sizeof *addresses);
    return (int)count;
}

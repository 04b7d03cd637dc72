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
    bide_name_record record; /* its name, as a record of its addresses */
    char name[HOST_MAX + 1];
};

struct memory_records {
    memory_records *next;
    unsigned kind, count;
    bide_name_record records[BIDE_RECORDS_MAX];
    char name[HOST_MAX + 1];
    char text[BIDE_RECORDS_TEXT];
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
        it->record = (bide_name_record){.text = it->name, .size = length};
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
    memory_records *records;
    while ((records = environment->records) != NULL) {
        environment->records = records->next;
        free(records);
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

/* ---- Records ---- */

static memory_records **records_place(sim_environment *environment, const char *name, size_t length,
                                      unsigned kind)
{
    memory_records **place = &environment->records;
    while (*place != NULL &&
           ((*place)->kind != kind || strncasecmp((*place)->name, name, length) != 0 ||
            (*place)->name[length] != '\0'))
        place = &(*place)->next;
    return place;
}

/* Whether texts of all records have room. */
static bool records_fit(const bide_name_record *records, unsigned count)
{
    size_t room = BIDE_RECORDS_TEXT;
    for (unsigned i = 0; i < count; i++) {
        if (records[i].size >= room)
            return false;
        room -= records[i].size + 1;
    }
    return true;
}

int bide_memory_io_set_records(bide_memory_io *environment, const char *name, unsigned kind,
                               const bide_name_record *records, unsigned count)
{
    size_t length = host_length(name), used = 0;
    if (length == 0 || (kind != BIDE_RECORD_SRV && kind != BIDE_RECORD_TXT) ||
        count > BIDE_RECORDS_MAX || !records_fit(records, count))
        return -EINVAL;
    memory_records **place = records_place(environment, name, length, kind);
    if (*place == NULL) {
        *place = calloc(1, sizeof **place);
        if (*place == NULL)
            return -ENOMEM;
        memcpy((*place)->name, name, length);
        (*place)->kind = kind;
    }
    memory_records *it = *place;
    it->count = count;
    for (unsigned i = 0; i < count; i++) {
        it->records[i] = records[i];
        it->records[i].text = it->text + used;
        memcpy(it->text + used, records[i].text, records[i].size);
        it->text[used + records[i].size] = '\0';
        used += records[i].size + 1;
    }
    return 0;
}

static bool host_has(const memory_host *host, const bide_address *address)
{
    for (unsigned i = 0; i < host->count; i++) {
        bide_address other = host->addresses[i];
        int family = other.any.generic.sa_family;
        if (family == address->any.generic.sa_family &&
            (family == AF_INET ? other.any.v4.sin_addr.s_addr == address->any.v4.sin_addr.s_addr
                               : memcmp(&other.any.v6.sin6_addr, &address->any.v6.sin6_addr,
                                        sizeof other.any.v6.sin6_addr) == 0))
            return true;
    }
    return false;
}

/* The record of the first host that has the address. */
static int resolve_address(sim_environment *environment, const bide_address *address,
                           const bide_name_record **records)
{
    const memory_host *host = environment->hosts;
    while (host != NULL && !host_has(host, address))
        host = host->next;
    if (host == NULL)
        return -ENOENT;
    *records = &host->record;
    return 1;
}

int bide_sim_resolve_records_(bide_io *io, const char *name, const bide_address *address,
                              unsigned kind, const bide_name_record **records, uint64_t *delay)
{
    sim_environment *environment = sim_environment_of(io);
    size_t length = host_length(name);
    *delay =
        bide_sim_loop_delay_(environment->loop, "a name is looked up", environment->options.delay);
    if (memory_fault(environment, "io: no answer", environment->options.broken))
        return -EAGAIN;
    if (name == NULL)
        return resolve_address(environment, address, records);
    const memory_records *it = *records_place(environment, name, length, kind);
    if (it == NULL || it->count == 0)
        return -ENOENT;
    *records = it->records;
    return (int)it->count;
}

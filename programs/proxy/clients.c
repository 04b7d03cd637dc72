/* Buckets of clients, in rows: a client's row follows from its address and the table's seed. */
#define _GNU_SOURCE
#include "clients.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#define CLIENTS_SECOND UINT64_C(1000000000)

struct clients *clients_create(void)
{
    struct clients *clients = calloc(1, sizeof *clients);
    if (clients != NULL &&
        getrandom(&clients->seed, sizeof clients->seed, GRND_NONBLOCK) != sizeof clients->seed)
        clients->seed = (uint64_t)time(NULL) ^ (uintptr_t)clients;
    return clients;
}

uint64_t clients_mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
    hash = (hash ^ hash >> 32) * UINT64_C(0xd6e8feb86659fd93);
    return hash ^ hash >> 29;
}

uint64_t clients_hash(uint64_t seed, const bide_address *client)
{
    uint64_t word = 0, hash;
    if (client->length == 0)
        return 0;
    if (client->any.generic.sa_family == AF_INET)
        memcpy(&word, &client->any.v4.sin_addr, sizeof client->any.v4.sin_addr);
    else if (client->any.generic.sa_family == AF_INET6)
        memcpy(&word, client->any.v6.sin6_addr.s6_addr, sizeof word);
    else
        return 0;
    hash = clients_mix(clients_mix(seed, client->any.generic.sa_family), word);
    return hash != 0 ? hash : 1;
}

/* The client's bucket, or in its place the fullest of the row, emptied of its client. */
static struct client_bucket *bucket_of(struct clients *clients, uint64_t hash)
{
    struct client_bucket *row = clients->rows[hash % CLIENT_ROWS], *fullest = row;
    for (unsigned i = 0; i < CLIENTS_OF_ROW; i++) {
        if (row[i].address == hash)
            return &row[i];
        if (row[i].is_full_at < fullest->is_full_at)
            fullest = &row[i];
    }
    *fullest = (struct client_bucket){.address = hash};
    return fullest;
}

uint64_t clients_take(struct clients *clients, const bide_address *client, uint64_t rate,
                      uint64_t burst, uint64_t now)
{
    uint64_t hash = clients_hash(clients->seed, client);
    if (hash == 0)
        return 0;
    struct client_bucket *bucket = bucket_of(clients, hash);
    const uint64_t token = (CLIENTS_SECOND + rate - 1) / rate;
    uint64_t full = bucket->is_full_at > now ? bucket->is_full_at : now;
    uint64_t latest = now + token * (burst - 1); /* a later bucket has no token */
    if (full > latest)
        return full - latest;
    bucket->is_full_at = full + token;
    return 0;
}

/*
 * The rate of each client: a token bucket for each address, in a table of bounded size.
 *
 * A bucket is one time, at which it will be full again: a request moves it by the time that a token needs.
 * A bucket that is full is the same as none. IPv6 addresses count by their first 64 bits, because a client has
 * all of these. If the table has no room, the bucket that is the fullest of its row is forgotten.
 *
 * All of it belongs to the program's loop.
 */
#ifndef PROXY_CLIENTS_H
#define PROXY_CLIENTS_H

#include <bide/address.h>

#include <stdbool.h>
#include <stdint.h>

enum { CLIENT_ROWS = 2048, CLIENTS_OF_ROW = 8 };

struct client_bucket {
    uint64_t address;    /* its hash; 0: free */
    uint64_t is_full_at; /* in the time of bide_now() */
};

struct clients {
    uint64_t seed; /* clients cannot choose their row */
    struct client_bucket rows[CLIENT_ROWS][CLIENTS_OF_ROW];
};

/* A hash of the client: of an IPv6 address, the first 64 bits. 0: it has no IP address. */
uint64_t clients_hash(uint64_t seed, const bide_address *client);

/* A hash with another word. */
uint64_t clients_mix(uint64_t hash, uint64_t word);

/* NULL: there is no memory. It is freed by free(). */
struct clients *clients_create(void);

/*
 * Takes a token of this client's, whose bucket gets `rate` tokens each second and holds `burst`. Returns 0, or the
 * nanoseconds until there is one. A client without an IP address has no limit.
 */
uint64_t clients_take(struct clients *clients, const bide_address *client, uint64_t rate,
                      uint64_t burst, uint64_t now);

#endif

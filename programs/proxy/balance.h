/*
 * Chooses the server of a backend for a connection, and keeps each server's state: up or down, its
 * connections, its failures.
 *
 *     UP --fail COUNT times in a row--> suspended for a time --> tried again: one failure suspends it
 *     UP --`fall` failed checks in a row--> DOWN --`rise` passed checks--> UP
 */
#ifndef PROXY_BALANCE_H
#define PROXY_BALANCE_H

#include "configuration.h"
#include "log.h"

/* The servers already tried for one connection. */
struct tried {
    uint64_t bits[MAX_SERVERS / 64];
};

/*
 * Chooses a usable server that was not tried yet, and marks it as tried. Returns NULL if there is
 * none. `now` is in the time of bide_now().
 */
struct upstream *balance_choose(struct backend *backend, struct tried *tried, uint64_t now);

/*
 * The same among the servers that have reached their limit of connections: for a request that waits
 * for one.
 */
struct upstream *balance_choose_full(struct backend *backend, struct tried *tried, uint64_t now);

/* True if the server can be used and was not tried yet; `may_be_full`: also if it has reached its limit of connections. */
bool balance_may_take(const struct upstream *server, const struct tried *tried, uint64_t now,
                      bool may_be_full);

/* The server, which may be NULL, marked as tried, if it can be used or is full; otherwise NULL. */
struct upstream *balance_try(struct upstream *server, struct tried *tried, uint64_t now);

/* The next address of the server, which has at least one. */
const bide_address *balance_address(struct upstream *server);

/*
 * Counts a connection to the server, from before the attempt to connect until it is closed or
 * returned.
 */
void balance_connection_started(struct upstream *server);
void balance_connection_finished(struct upstream *server);

/* True if the error is a lack of local resources, so that the server is not to blame. */
bool balance_is_local_error(int error);

/* Records a success, or a failure with `error`. */
void balance_succeeded(struct upstream *server, struct log *log);
void balance_failed(struct upstream *server, int error, uint64_t now, struct log *log);

/* Records the result of a health check. `reason` is why it has failed. */
void balance_checked(struct upstream *server, bool is_good, const char *reason, struct log *log);

/* Copies the state of servers with the same name from the old configuration. */
void balance_inherit(struct configuration *configuration, const struct configuration *old);

#endif

/*
 * Which server of a backend is next, and what is known of each: whether it is up, how many
 * connections it has, how often it has failed.
 *
 *     UP --fail COUNT times in a row--> away for a time --> tried again: one failure is enough now
 *     UP --`fall` bad checks in a row--> DOWN --`rise` good ones--> UP
 */
#ifndef PROXY_BALANCE_H
#define PROXY_BALANCE_H

#include "configuration.h"
#include "log.h"

/* Servers that were tried for one connection. */
struct tried {
    uint64_t bits[MAX_SERVERS / 64];
};

/*
 * Chooses one that may be used and was not tried, and notes that it was; NULL: there is none.
 * `now` is of bide_now().
 */
struct upstream *balance_choose(struct backend *backend, struct tried *tried, uint64_t now);

/* The same of those that have as many connections as they may have: for one that waits. */
struct upstream *balance_choose_full(struct backend *backend, struct tried *tried, uint64_t now);

/* Which of its addresses is next. It has one. */
const bide_address *balance_address(struct upstream *server);

/* A connection to it begins, and ends. */
void balance_begin(struct upstream *server);
void balance_end(struct upstream *server);

/* Is it for lack of something here that there is no connection? The server is not to blame. */
bool balance_is_our_own(int error);

/* It has done what it is for; or has not, because of `error`. */
void balance_succeeded(struct upstream *server, struct log *log);
void balance_failed(struct upstream *server, int error, uint64_t now, struct log *log);

/* A health check has ended with 0, or a negative errno. */
void balance_checked(struct upstream *server, int error, struct log *log);

/* What is known of servers goes on with a new configuration. */
void balance_inherit(struct configuration *configuration, const struct configuration *old);

#endif

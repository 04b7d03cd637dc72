/*
 * Sticky sessions: a client keeps its server, by its address or by a cookie that the proxy sets.
 *
 *     sticky address        the address chooses among the servers that are up, in proportion to their weights
 *     sticky cookie NAME    the cookie names the server; a response of another one sets it
 *
 * No state is kept: after a restart, and behind another proxy with the same servers, the choice is the same. If a server
 * is down or gone, its clients alone get other ones.
 *
 * The hashes have no secret: it would have to be the same after a restart and in other proxies. So a cookie hides no name
 * from a client that guesses it, and a client with many addresses can choose its server.
 *
 * Source: rendezvous hashing: each server gets a number from its name and the client, and the smallest one wins. David
 * Thaler, Chinya Ravishankar, "Using name-based mappings to increase hit rates", 1998. With weights: the numbers are
 * distributed exponentially, with the weight as their rate, so that a server wins in proportion to it.
 */
#ifndef PROXY_STICKY_H
#define PROXY_STICKY_H

#include "balance.h"

#include <bide/http_server.h>

enum { STICKY_VALUE = 17, STICKY_FIELD = 192, MAX_STICKY_NAME = 64 };

/* The server for this client, marked as tried. NULL: none is usable, or the client has no IP address. */
struct upstream *sticky_by_address(struct backend *backend, struct tried *tried,
                                   const bide_address *client, uint64_t now, bool may_be_full);

/* The server that a cookie of the request names, or NULL. */
struct upstream *sticky_named(const struct backend *backend, const bide_http_request *request);

/* Writes the value of Set-Cookie for a server into STICKY_FIELD bytes. */
void sticky_print_cookie(const struct upstream *server, bool is_secure, char *text);

/* True if the text may be the name of the cookie. */
bool sticky_is_name(const char *text);

#endif

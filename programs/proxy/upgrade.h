/* The relay of a connection that a response with 101 has upgraded to another protocol. */
#ifndef PROXY_UPGRADE_H
#define PROXY_UPGRADE_H

#include "forward.h"

/*
 * A client of HTTP/2 asks for a WebSocket by an extended CONNECT (RFC 8441), which has no key: one of the proxy's own is sent,
 * and the server's answer to it is checked. Returns 0, or a negative errno if there is no randomness.
 */
int upgrade_make_key(struct forward *self);

/* True if a client of HTTP/2 asks for a protocol that is none of HTTP/1.1's upgrades, or is not known to be. */
bool upgrade_is_unknown(const struct forward *self);

/* False if the server's 101 is no answer to the proxy's key. */
bool upgrade_is_valid(const struct forward *self);

/* Prepares self->scratch->relay, with the data that came behind the heads. Returns false if memory is exhausted. */
bool upgrade_prepare_relay(struct forward *self);

/* Counts what was relayed, and destroys the relay. */
void upgrade_finish_relay(struct forward *self);

#endif

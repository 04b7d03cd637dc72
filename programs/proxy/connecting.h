/*
 * A request's connection to a server: which server, a connection of its pool, and what a new one begins with. The awaiters have
 * the backend's connect-timeout, from the choice of the server.
 */
#ifndef PROXY_CONNECTING_H
#define PROXY_CONNECTING_H

#include "forward.h"

/* Chooses a server that was not tried yet, and counts a connection to it. Returns false if there is none. */
bool connecting_choose(struct forward *self);

/* Acquires a connection of the server's pool. Then connecting_use is called, which takes it over if `status` is no error. */
bide_awaiter *connecting_acquire(struct forward *self);
void connecting_use(struct forward *self);

/* The beginning of a new connection: the PROXY protocol's header, and the TLS handshake. */
bide_awaiter *connecting_send_header(struct forward *self);
bide_awaiter *connecting_start_tls(struct forward *self);

/* Returns the connection to the pool and releases the server, as far as the request has them. */
void connecting_release(struct forward *self, bool reusable);

#endif

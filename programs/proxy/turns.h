/*
 * Descriptors of requests that one client makes at a time, over HTTP/2.
 *
 * The budget (descriptors.h) has one connection to a server for each connection of a client. One of the client's requests uses
 * it at a time: it has the turn. Others take a spare descriptor each. If there is none, they wait for the turn, in their order,
 * up to the backend's connect-timeout. So no request of another client has to wait for them.
 *
 * A request that ends gives its turn, or its spare descriptor, to the first that waits of the same client. A spare one goes to the
 * request that has the turn, which passes the turn on. One that another client gives back, or a kept connection, wakes nobody.
 */
#ifndef PROXY_TURNS_H
#define PROXY_TURNS_H

#include "forward.h"

/* True if the request may take a connection to a server now. A request of HTTP/1.1 always may. */
bool turns_try(struct forward *self);

/* Waits for the turn. Then turns_waited is called, with its result in `status`. */
bide_awaiter *turns_wait(struct forward *self);
void turns_waited(struct forward *self);

/* The request holds no connection any more, if it has held one. */
void turns_end(struct forward *self);

#endif

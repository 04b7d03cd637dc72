/*
 * Descriptors of requests that one client makes at a time, over HTTP/2.
 *
 * The budget (descriptors.h) has one connection to a server for each connection of a client. One of the client's requests uses
 * it at a time: it has the turn. Others take a spare descriptor each. If there is none, they wait for the turn, in their order,
 * up to the backend's connect-timeout. So no request of another client has to wait for them.
 */
#ifndef PROXY_TURNS_H
#define PROXY_TURNS_H

#include "forward.h"

/* True if the request may take a connection to a server now. A request of HTTP/1.1 always may. */
bool turns_try(struct forward *self);

/* Waits for the turn. If it ends with 0, turns_take is called. */
bide_awaiter *turns_wait(struct forward *self);
void turns_take(struct forward *self);

/* The request holds no connection any more, if it has held one. */
void turns_end(struct forward *self);

#endif

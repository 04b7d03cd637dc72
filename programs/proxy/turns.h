/*
 * Descriptors of requests that one client makes at a time, over HTTP/2.
 *
 * The budget (descriptors.h) has one connection to a server for each connection of a client. One of the client's requests uses
 * it at a time: it has the turn. Others take a spare descriptor each. If there is none, they wait for the turn, in their order,
 * up to the backend's connect-timeout. So no request of another client has to wait for them.
 *
 * A turn goes to the first request of the same client that waits. A spare descriptor goes to the first client of a queue
 * (descriptors.h): its request that has the turn uses it, and passes the turn on.
 *
 * Why no request waits while a spare descriptor is free:
 *  1. A client is in the queue while one of its requests has the turn and others wait. A wait or a turn that begins brings it
 *     there; the end of the last wait, and of the turn, removes it.
 *  2. While a turn is on its way to the next request, nobody has it. That request is resumed by the loop, and brings the client
 *     to the queue again if more wait.
 *  3. No spare one is free while the queue has a client (descriptors.h: 6).
 *  4. A client goes to the end of the queue for each of its requests. So one that has many holds up no other.
 *
 * A kept connection is in use until it ends or a request has it; so its descriptor is not free.
 */
#ifndef PROXY_TURNS_H
#define PROXY_TURNS_H

#include "forward.h"

/* True if the request may take a connection to a server now. A request of HTTP/1.1 always may. */
bool turns_try(struct forward *self);

/* Waits for the turn. Then turns_waited is called, with its result in `status`. */
bide_awaiter *turns_wait(struct forward *self);
void turns_waited(struct forward *self);

/* Has the client's request that has the turn use a spare descriptor, which was taken for it. */
void turns_use_spare(struct spare_waiter *waiter);

/* The request holds no connection any more, if it has held one. */
void turns_end(struct forward *self);

#endif

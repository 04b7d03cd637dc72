/* Responses of the proxy's own, in place of a server's. */
#ifndef PROXY_OWN_H
#define PROXY_OWN_H

#include "forward.h"

/*
 * CONNECT is not supported. Data behind the request may be meant for a tunnel, so the connection is
 * closed instead of parsing it.
 */
bide_awaiter *own_reject_tunnel(struct forward *self);

/* The request cannot be forwarded: self->status is -EMSGSIZE if its head is too long for a server, and it is bad otherwise. */
bide_awaiter *own_reject_request(struct forward *self);

/* The response of a route that redirects. It has its Location already. */
bide_awaiter *own_redirect(struct forward *self);

/* The client may send its next request in `wait` nanoseconds. */
bide_awaiter *own_reject_rate(struct forward *self, uint64_t wait);

#endif

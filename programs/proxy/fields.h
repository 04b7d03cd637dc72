/*
 * The fields of messages that go through a proxy: which of them stay behind, and which are added.
 *
 * Source: RFC 9110, 7.6 (fields of one hop); RFC 7239 (Forwarded).
 */
#ifndef PROXY_FIELDS_H
#define PROXY_FIELDS_H

#include "forward.h"

/* Writes the head of the request, but for its end. Negative errno: it does not fit, or may not be. */
int fields_put_request(struct forward *self);

/* Adds the fields of the response to the exchange. */
int fields_put_response(struct forward *self);

/* Is it an upgrade that may be passed on? Then self->protocol says to what. */
bool fields_take_upgrade(struct forward *self);

#endif

/*
 * The header fields of forwarded messages: which are dropped, and which are added.
 *
 * Source: RFC 9110, 7.6 (hop-by-hop fields); RFC 7239 (Forwarded).
 */
#ifndef PROXY_FIELDS_H
#define PROXY_FIELDS_H

#include "forward.h"

/*
 * Writes the head of the request except for its end. Returns a negative errno if it does not fit or
 * is not allowed.
 */
int fields_add_to_request(struct forward *self);

/* Adds the fields of the response to the exchange. */
int fields_add_to_response(struct forward *self);

/*
 * True if the request asks for an upgrade that may be forwarded; self->protocol is then the
 * protocol.
 */
bool fields_parse_upgrade(struct forward *self);

/* True if the field is hop-by-hop, whatever "Connection" lists. */
bool fields_is_hop_by_hop(bide_slice name);

/* True if `name` is in a comma-separated list, whose data may be NULL. */
bool fields_list_contains(bide_slice list, const char *name);

/* True if the proxy writes this field of requests, with this kind of `forwarded`. */
bool fields_is_forwarded(enum forwarded forwarded, bide_slice name);

/* The target in origin form: an absolute target loses its scheme and host. */
bide_slice fields_origin_target(const bide_http_request *request);

#endif

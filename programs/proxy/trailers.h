/*
 * Trailers, behind bodies that have no announced length. Fields that a rule removes, and those of one hop, are dropped there
 * too. So are those that do not fit, and trailers of responses to clients of HTTP/1.1 that have not asked for any ("TE: trailers").
 *
 * Source: RFC 9110, 6.5.
 */
#ifndef PROXY_TRAILERS_H
#define PROXY_TRAILERS_H

#include "forward.h"

/* True if the request, whose body has been read, has trailers. Buffered output is to be flushed before they are added. */
bool trailers_follow_request(const struct forward *self);

/* Adds the trailers of the request. Returns a negative errno if one is not allowed in a field. */
int trailers_add_to_request(struct forward *self);

/* The same of the response: false also if the client takes none. */
bool trailers_follow_response(const struct forward *self);
int trailers_add_to_response(struct forward *self);

#endif

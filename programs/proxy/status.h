/*
 * The status page, and metrics for Prometheus: what the listener of `status` serves.
 *
 *     /          a page about the listeners and servers, which reloads itself
 *     /metrics   the same numbers and histograms of latency, in Prometheus's text format
 *
 * Counts are those of the current configuration's servers, which a reload keeps (balance_inherit).
 */
#ifndef PROXY_STATUS_H
#define PROXY_STATUS_H

#include "configuration.h"

#include <bide/coroutine.h>
#include <bide/http.h>

/* The handler's frame. */
struct status_page {
    bide_http_exchange exchange;
    char *text;
    size_t size;
};

bide_declare_body(status_body);

/* Counts a response of a server, with its status and nanoseconds since the request. */
void status_count_response(struct upstream *server, int status, uint64_t time);

/* Counts a response that a client got from the proxy because a server gave none. */
void status_count_own_response(struct upstream *server, int status);

/* Counts a failure of a server: a negative errno. */
void status_count_error(struct upstream *server, int error);

#endif

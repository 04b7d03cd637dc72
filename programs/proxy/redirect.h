/*
 * Redirections: a route whose requests are answered with another location.
 *
 *     redirect old.test 308 https://new.test$target
 *
 * `$target` is the request's target, with path and query, as it came; `$host` is its host without the port. They may stand
 * only in a URL of http or https, `$target` only behind its host: so a client cannot choose another host.
 */
#ifndef PROXY_REDIRECT_H
#define PROXY_REDIRECT_H

#include <bide/http_server.h>

#include <stdbool.h>

struct route;

/* True if the text may be the location of a redirection. */
bool redirect_is_location(const char *text);

/*
 * Adds the location to the response. Errors: -EINVAL (the request has no host, and the location needs it), -ENOMEM, those of
 * bide_http_add.
 */
int redirect_add_location(bide_http_exchange *exchange, const struct route *route);

#endif

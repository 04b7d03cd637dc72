/* Chooses the route of a request, by its host and the normal form of its path (path.h). */
#ifndef PROXY_ROUTES_H
#define PROXY_ROUTES_H

#include "configuration.h"

#include <bide/http_message.h>

/*
 * A route with a host is preferred to one without; then the longest prefix; then the first. *route is NULL if there is
 * none. Returns 0, -EINVAL if the path has no normal form and a prefix may decide, or -ENOMEM.
 */
int routes_choose(const struct listen *listen, bide_slice host, bide_slice path,
                  const struct route **route);

/* The host without its port, which is not part of the name. */
bide_slice routes_host_without_port(bide_slice host);

#endif

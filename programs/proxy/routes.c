/* Routes of mode http. The prefixes of routes are in normal form. */
#define _GNU_SOURCE
#include "routes.h"
#include "path.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { SHORT_PATH = 1024 };

bide_slice routes_host_without_port(bide_slice host)
{
    if (host.size != 0 && host.data[0] == '[') {
        const char *end = memchr(host.data, ']', host.size);
        host.size = end != NULL ? (size_t)(end - host.data) + 1 : host.size;
        return host;
    }
    const char *colon = host.size != 0 ? memchr(host.data, ':', host.size) : NULL;
    if (colon != NULL)
        host.size = (size_t)(colon - host.data);
    return host;
}

/* The name of a host, which may end with the dot of the root. */
static bide_slice name_of_host(bide_slice host)
{
    host = routes_host_without_port(host);
    if (host.size > 1 && host.data[host.size - 1] == '.')
        host.size--;
    return host;
}

/* Of names without a dot at the end. */
static bool route_has_host(const struct route *route, bide_slice name)
{
    return route->host == NULL || bide_http_is(name, route->host);
}

static bool route_has_every_path(const struct route *route)
{
    return route->prefix[0] == '\0' || strcmp(route->prefix, "/") == 0;
}

/* The prefix "/a" matches "/a", "/a/" and "/a/b", and not "/ab". */
static bool path_has_prefix(bide_slice path, const char *prefix)
{
    size_t size = strlen(prefix);
    if (path.size < size || memcmp(path.data, prefix, size) != 0)
        return false;
    return size == 0 || prefix[size - 1] == '/' || path.size == size || path.data[size] == '/';
}

static const struct route *choose_by_path(const struct listen *listen, bide_slice name,
                                          bide_slice path)
{
    const struct route *best = NULL;
    for (const struct route *at = listen->routes; at != NULL; at = at->next) {
        if (!route_has_host(at, name) || !path_has_prefix(path, at->prefix))
            continue;
        if (best == NULL || (at->host != NULL && best->host == NULL) ||
            ((at->host != NULL) == (best->host != NULL) &&
             strlen(at->prefix) > strlen(best->prefix)))
            best = at;
    }
    return best;
}

/* True if paths of this host do not all have the same route. */
static bool do_paths_matter(const struct listen *listen, bide_slice name)
{
    bool matter = false, matter_of_host = false, host_has_every_path = false;
    for (const struct route *at = listen->routes; at != NULL; at = at->next) {
        if (!route_has_host(at, name))
            continue;
        bool has_every_path = route_has_every_path(at);
        matter |= !has_every_path;
        matter_of_host |= !has_every_path && at->host != NULL;
        host_has_every_path |= has_every_path && at->host != NULL;
    }
    return matter_of_host || (matter && !host_has_every_path);
}

int routes_choose(const struct listen *listen, bide_slice host, bide_slice path,
                  const struct route **route)
{
    char text[SHORT_PATH], *normal = text;
    bide_slice name = name_of_host(host);
    *route = NULL;
    if (!do_paths_matter(listen, name)) {
        *route = choose_by_path(listen, name, path);
        return 0;
    }
    if (path.size > sizeof text)
        normal = malloc(path.size);
    if (normal == NULL)
        return -ENOMEM;
    size_t size;
    int status = path_normalize(path, normal, &size);
    if (status == 0)
        *route = choose_by_path(listen, name, (bide_slice){normal, size});
    /* Some servers leave parameters out, and others do not: they must have the same route. */
    if (status == 0 && path.size != 0 && memchr(path.data, ';', path.size) != NULL) {
        status = path_normalize_without_parameters(path, normal, &size);
        if (status == 0 && choose_by_path(listen, name, (bide_slice){normal, size}) != *route)
            status = -EINVAL;
    }
    if (normal != text)
        free(normal);
    return status;
}

/* Redirections. Runs on the program's loop. */
#define _GNU_SOURCE
#include "redirect.h"
#include "configuration.h"
#include "fields.h"
#include "routes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char variable_host[] = "$host", variable_target[] = "$target";

/* The size of the scheme of a URL; 0: it is none. */
static size_t scheme_size(const char *text)
{
    return strncmp(text, "http://", 7) == 0 ? 7 : strncmp(text, "https://", 8) == 0 ? 8 : 0;
}

static size_t variable_size(const char *at, const char *variable)
{
    size_t size = strlen(variable);
    return strncmp(at, variable, size) == 0 ? size : 0;
}

bool redirect_is_location(const char *text)
{
    size_t scheme = scheme_size(text);
    if (scheme == 0 && *text != '/')
        return false;
    if (scheme != 0 &&
        (strchr("/?#", text[scheme]) != NULL ||
         variable_size(text + scheme, variable_target) != 0)) /* (or it ends there) */
        return false;
    for (const char *at = text; *at != '\0'; at++) {
        if (*at <= ' ' || *at > '~')
            return false;
        if (*at == '$' && (scheme == 0 || (variable_size(at, variable_host) == 0 &&
                                           variable_size(at, variable_target) == 0)))
            return false;
    }
    return true;
}

/* Writes the location to `out`, unless that is NULL. Returns its size. */
static size_t expand_location(const char *location, bide_slice host, bide_slice target, char *out)
{
    size_t size = 0;
    while (*location != '\0') {
        bide_slice part = {location, 1};
        size_t used = variable_size(location, variable_host);
        if (used != 0)
            part = host;
        else if ((used = variable_size(location, variable_target)) != 0)
            part = target;
        if (out != NULL && part.size != 0)
            memcpy(out + size, part.data, part.size);
        size += part.size;
        location += used != 0 ? used : 1;
    }
    return size;
}

int redirect_add_location(bide_http_exchange *exchange, const struct route *route)
{
    bide_slice name = {"Location", 8};
    bide_slice host = routes_host_without_port(exchange->request.host);
    bide_slice target = fields_origin_target(&exchange->request);
    if (host.size == 0 && strstr(route->location, variable_host) != NULL)
        return -EINVAL;
    if (target.size == 0 || *target.data != '/')
        target = (bide_slice){"/", 1};
    size_t size = expand_location(route->location, host, target, NULL);
    char *text = malloc(size);
    if (text == NULL)
        return -ENOMEM;
    (void)expand_location(route->location, host, target, text);
    int status = bide_http_add_slices(exchange, name, (bide_slice){text, size});
    free(text);
    return status;
}

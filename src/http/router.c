/*
 * Routers: choose a handler by path and method. A pattern is compared with the path segment by
 * segment. Patterns are not compiled, because most routes differ in their first bytes.
 *
 * Threads: a router is read-only after init, so any number of threads may use it. The functions that
 * take an exchange run on its loop's thread.
 */
#define _GNU_SOURCE
#include "bide/http_router.h"

#include "characters.h"

#include "bide/coroutine.h"

#include <errno.h>
#include <string.h>

/* ---- Patterns ---- */

/*
 * Parses the parameter at `at`: its name, and whether it matches the rest of the path. Returns the end
 * of the parameter, after its "}", or NULL if there is no parameter.
 */
static const char *router_parameter_end(const char *at, bide_slice *name, bool *is_rest)
{
    const char *end = strchr(at, '}');
    if (*at != '{' || end == NULL)
        return NULL;
    *name = (bide_slice){at + 1, (size_t)(end - at - 1)};
    *is_rest = name->size >= 3 && memcmp(end - 3, "...", 3) == 0;
    if (*is_rest)
        name->size -= 3;
    return end + 1;
}

static bool router_is_pattern(const char *pattern)
{
    size_t parameters = 0;
    if (pattern == NULL || *pattern != '/')
        return false;
    for (const char *at = pattern; *at != '\0';) {
        bide_slice name;
        bool is_rest;
        if (*at != '{') {
            if (*at == '}')
                return false;
            at++;
            continue;
        }
        const char *end = router_parameter_end(at, &name, &is_rest);
        if (at[-1] != '/' || end == NULL || name.size == 0 || ++parameters > BIDE_HTTP_PARAMETERS ||
            memchr(name.data, '{', name.size) != NULL ||
            memchr(name.data, '/', name.size) != NULL || (*end != '\0' && (is_rest || *end != '/')))
            return false;
        at = end;
    }
    return true;
}

/* The path matches the pattern. Sets the parameters. */
static bool router_matches(const char *pattern, bide_slice path, bide_slice *parameters)
{
    const char *at = path.data;
    const char *end = path.data + path.size;
    while (*pattern != '\0') {
        if (*pattern != '{') {
            if (at == end || *at != *pattern)
                return false;
            at++;
            pattern++;
            continue;
        }
        bide_slice name;
        bool is_rest = false;
        pattern = router_parameter_end(pattern, &name, &is_rest);
        const char *slash = is_rest || at == end ? end : memchr(at, '/', (size_t)(end - at));
        const char *stop = slash != NULL ? slash : end;
        if (stop == at && !is_rest)
            return false;
        *parameters++ = (bide_slice){at, (size_t)(stop - at)};
        at = stop;
    }
    return at == end;
}

static bool router_allows(const bide_http_route *route, const bide_http_request *request)
{
    size_t size = request->method_name.size;
    if (route->method == NULL)
        return true;
    if (request->method == BIDE_HTTP_HEAD && strcmp(route->method, "GET") == 0)
        return true;
    return strlen(route->method) == size &&
           memcmp(route->method, request->method_name.data, size) == 0;
}

/* ---- Other methods ---- */

/* Adds a method to a list unless the list contains it. */
static size_t router_list_method(char *list, size_t used, size_t size, const char *method)
{
    size_t length = strlen(method);
    bide_slice text = {list, used};
    if (bide_http_has_token(text, method) || used + length + 2 > size)
        return used;
    if (used != 0) {
        memcpy(list + used, ", ", 2);
        used += 2;
    }
    memcpy(list + used, method, length);
    return used + length;
}

bide_coroutine(router_other_method)
{
    bide_begin(router_other_method, bide_http_exchange * self);
    const bide_http_router *router = self->argument;
    char list[256];
    size_t used = 0;
    for (size_t i = 0; i < router->count; i++) {
        const bide_http_route *route = &router->routes[i];
        if (!router_matches(route->pattern, self->request.path, self->parameters))
            continue;
        used = router_list_method(list, used, sizeof list, route->method);
        if (strcmp(route->method, "GET") == 0)
            used = router_list_method(list, used, sizeof list, "HEAD");
    }
    used = router_list_method(list, used, sizeof list, "OPTIONS");
    bool is_asked = self->request.method == BIDE_HTTP_OPTIONS;
    self->status = is_asked ? 204 : 405;
    int status =
        bide_http_add_slices(self, (bide_slice){"Allow", 5}, (bide_slice){list, used});
    if (status < 0)
        bide_return(status);
    static const char text[] = "405 Method Not Allowed\n";
    bide_try(bide_http_respond(self, text, is_asked ? 0 : sizeof text - 1));
    bide_end();
}

/* ---- The router ---- */

int bide_http_router_init(bide_http_router *router, const bide_http_route *routes, size_t count)
{
    router->routes = routes;
    router->count = count;
    router->frame = sizeof(bide_http_exchange);
    for (size_t i = 0; i < count; i++) {
        const bide_http_handler *handler = &routes[i].handler;
        if (!router_is_pattern(routes[i].pattern) || handler->body == NULL ||
            handler->size < sizeof(bide_http_exchange))
            return -EINVAL;
        if (handler->size > router->frame)
            router->frame = handler->size;
    }
    return 0;
}

const bide_http_handler *bide_http_router_select(const bide_http_router *router,
                                                 bide_http_exchange *exchange)
{
    static const bide_http_handler other = {&router_other_method, sizeof(bide_http_exchange)};
    bool has_other = false;
    for (size_t i = 0; i < router->count; i++) {
        const bide_http_route *route = &router->routes[i];
        if (!router_matches(route->pattern, exchange->request.path, exchange->parameters))
            continue;
        if (router_allows(route, &exchange->request)) {
            exchange->route = route;
            exchange->argument = route->argument;
            return &route->handler;
        }
        has_other = true;
    }
    if (!has_other)
        return NULL;
    __extension__ union {
        const bide_http_router *constant;
        void *plain;
    } pointer = {.constant = router};
    exchange->argument = pointer.plain;
    return &other;
}

const bide_http_handler *bide_http_route_request(bide_http_exchange *exchange)
{
    return bide_http_router_select(exchange->server->options.argument, exchange);
}

bide_slice bide_http_parameter(const bide_http_exchange *exchange, const char *name)
{
    const bide_slice none = {NULL, 0};
    if (exchange->route == NULL)
        return none;
    const bide_slice *parameter = exchange->parameters;
    for (const char *at = strchr(exchange->route->pattern, '{'); at != NULL; at = strchr(at, '{')) {
        bide_slice found = none;
        bool is_rest = false;
        at = router_parameter_end(at, &found, &is_rest);
        if (found.size == strlen(name) && memcmp(found.data, name, found.size) == 0)
            return *parameter;
        parameter++;
    }
    return none;
}

ptrdiff_t bide_http_decode(bide_slice text, char *out, size_t size)
{
    size_t used = 0;
    for (size_t i = 0; i < text.size; i++) {
        char byte = text.data[i];
        if (byte == '%') {
            int value = 0;
            if (text.size - i < 3)
                return -EINVAL;
            for (int k = 0; k < 2; k++) {
                char digit = http_lower(text.data[++i]);
                if (!http_is_of(digit, HTTP_HEX))
                    return -EINVAL;
                value = value * 16 + (digit <= '9' ? digit - '0' : digit - 'a' + 10);
            }
            byte = (char)value;
        }
        if (used == size)
            return -EMSGSIZE;
        out[used++] = byte;
    }
    return (ptrdiff_t)used;
}

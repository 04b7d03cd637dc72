/*
 * A router: chooses the handler of a request by its method and path. Floor: http.
 *
 *     static const bide_http_route routes[] = {
 *         {"GET", "/", {&home_body, sizeof(struct home)}, NULL},
 *         {"GET", "/users/{id}", {&user_body, sizeof(struct user)}, NULL},
 *         {"PUT", "/users/{id}", {&change_body, sizeof(struct change)}, NULL},
 *         {NULL, "/files/{path...}", {&files_body, sizeof(struct files)}, &files},
 *     };
 *     bide_http_router_init(&router, routes, 4);
 *     bide_http_server_init(&http, &(bide_http_options){
 *         .select_handler = bide_http_route_request, .argument = &router,
 *         .max_frame_size = router.frame});
 *
 *     ... in a handler: bide_http_parameter(&self->exchange, "id")
 *
 * A pattern is a path. Each of its segments is text, or "{name}", which matches any segment that is not
 * empty. At its end "{name...}" matches the rest of the path, empty or not. The first matching route is
 * used. Text is compared byte by byte, without decoding: "%41" is not "A".
 *
 * A path that matches no pattern is 404. A path that matches with another method is 405 with "Allow",
 * or, for OPTIONS, 204 with "Allow". A route for GET serves HEAD too.
 *
 * Why it is correct: src/http/router.c.
 */
#ifndef BIDE_HTTP_ROUTER_H
#define BIDE_HTTP_ROUTER_H

#include "bide/http_server.h"

BIDE_EXTERN_C_BEGIN

typedef struct bide_http_route {
    const char *method; /* "GET"; NULL: any */
    const char *pattern;
    bide_http_handler handler;
    void *argument; /* exchange->argument */
} bide_http_route;

/* The caller's memory, while it is used. */
typedef struct bide_http_router {
    const bide_http_route *routes;
    size_t count;
    size_t frame; /* of the largest handler */
} bide_http_router;

/*
 * Makes a router of `count` routes, which stay.
 * Threads: before it is shared. Errors: -EINVAL (a pattern is none, or has more parameters than
 * BIDE_HTTP_PARAMETERS; a handler is missing). Progress: wait-free, linear in the patterns.
 */
int bide_http_router_init(bide_http_router *router, const bide_http_route *routes, size_t count);

/*
 * The options' `choose`, of a server whose `argument` is a router.
 * Threads: the loop's. Progress: wait-free, linear in the routes.
 */
const bide_http_handler *bide_http_route_request(bide_http_exchange *exchange);

/*
 * The same, of a router that the caller names.
 * Threads: the loop's. Progress: wait-free, linear in the routes.
 */
const bide_http_handler *bide_http_router_select(const bide_http_router *router,
                                                 bide_http_exchange *exchange);

/*
 * The part of the path that the parameter of that name stands for, as it came; its data is NULL if the
 * route has none of that name.
 * Threads: the loop's. Progress: wait-free.
 */
bide_slice bide_http_parameter(const bide_http_exchange *exchange, const char *name);

/*
 * Decodes "%41" and its like, into `size` bytes at `out`; returns how many there are.
 * Threads: any. Errors: -EINVAL (a "%" without two digits), -EMSGSIZE (they do not fit).
 * Progress: wait-free.
 */
ptrdiff_t bide_http_decode(bide_slice text, char *out, size_t size);

BIDE_EXTERN_C_END

#endif

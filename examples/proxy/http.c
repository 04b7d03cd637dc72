/*
 * Mode http: the connections.
 */
#include "http.h"
#include "forward.h"

#include <bide/loop.h>

#include <stdlib.h>

int http_begin(struct listen *listen)
{
    if (listen->mode != MODE_HTTP || listen->web != NULL)
        return 0;
    bide_http_options options = {
        .handler = {&forward_body, sizeof(struct forward)},
        .argument = listen,
        .input = 16384,
        .output = 16384,
        .most_fields = 100,
        .most_body = listen->most_body != 0 ? listen->most_body : BIDE_HTTP_UNKNOWN,
        .first = listen->header_timeout,
        .head = listen->header_timeout,
        .between = listen->idle_timeout,
        .idle = listen->idle_timeout,
        .whole = BIDE_FOREVER,
        .ended = forward_ended,
    };
    listen->web = malloc(sizeof *listen->web);
    int status =
        listen->web != NULL ? bide_http_server_init(&listen->web->server, &options) : -ENOMEM;
    if (status < 0)
        http_free(listen);
    return status;
}

void http_retire(struct listen *listen)
{
    if (listen->web != NULL)
        bide_http_server_shut_down(&listen->web->server, BIDE_FOREVER);
}

void http_free(struct listen *listen)
{
    free(listen->web);
    listen->web = NULL;
}

size_t http_size(const struct listen *listen)
{
    return sizeof(struct http) + bide_http_memory_size(&listen->web->server);
}

bide_awaiter *http_run(struct http *http, struct session *session)
{
    http->session = session;
    return bide_http_serve(&http->connection, &session->listen->web->server, session->end.stream,
                           http->memory);
}

/* Mode http: the HTTP server of each listener, and its connections. Runs on the program's loop. */
#include "http.h"
#include "access_log.h"
#include "forward.h"
#include "status.h"

#include <bide/loop.h>

#include <stdlib.h>

int http_init(struct listen *listen)
{
    if (listen->mode == MODE_TCP || listen->web != NULL)
        return 0;
    bide_http_options options = {
        .handler = {&forward_body, sizeof(struct forward)},
        .argument = listen,
        .read_buffer_size = 16384,
        .write_buffer_size = 16384,
        .max_fields = 100,
        .max_body = listen->max_body != 0 ? listen->max_body : BIDE_HTTP_UNKNOWN,
        .first_byte_timeout = listen->header_timeout,
        .header_timeout = listen->header_timeout,
        .body_idle_timeout = listen->idle_timeout,
        .keepalive_timeout = listen->idle_timeout,
        .request_timeout = BIDE_FOREVER,
        .refused = access_log_refused,
    };
    if (listen->mode == MODE_STATUS)
        options.handler = (bide_http_handler){&status_body, sizeof(struct status_page)};
    else
        options.ended = access_log_ended;
    listen->web = malloc(sizeof *listen->web);
    int status =
        listen->web != NULL ? bide_http_server_init(&listen->web->server, &options) : -ENOMEM;
    if (status < 0)
        http_free(listen);
    return status;
}

void http_drain(struct listen *listen)
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
    return bide_http_serve(&http->connection, &session->listen->web->server,
                           session->endpoint.stream, http->memory);
}

/* Mode http: the HTTP server of each listener, and its connections. Runs on the program's loop. */
#include "http.h"
#include "access_log.h"
#include "forward.h"
#include "status.h"
#include "turns.h"

#if PROXY_HAS_HTTP2
#include <bide/http2.h>
#endif
#include <bide/loop.h>

#include <stdlib.h>

/* The HTTP server of a listener in a configuration. */
struct web {
    bide_http_server server;
#if PROXY_HAS_HTTP2
    bide_http2 http2;
#endif
};

/* Has the server speak HTTP/2, too, if the listener allows it. */
static int init_http2(struct listen *listen)
{
#if PROXY_HAS_HTTP2
    if (listen->mode == MODE_HTTP && !listen->has_no_http2)
        return bide_http2_init(&listen->web->http2, &listen->web->server,
                               &(bide_http2_options){.is_plain = listen->certificates == NULL,
                                                     .max_all_streams = listen->max_connections});
#else
    (void)listen;
#endif
    return 0;
}

int http_init(struct listen *listen)
{
    if (listen->mode == MODE_TCP || listen->web != NULL)
        return 0;
    bide_http_options options = {
        .handler = {&forward_body, sizeof(struct forward)},
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
    if (status == 0)
        status = init_http2(listen);
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
    struct web *web = session->listen->web;
    http->session = session;
    bide_mutex_init(&http->turn);
    http->holder = NULL;
    http->waiting = 0;
    http->spare = (struct spare_waiter){.take = turns_use_spare};
#if PROXY_HAS_HTTP2
    if (session->secure != NULL && web->server.protocol != NULL)
        return bide_http2_serve(&http->connection, &web->http2, session->endpoint.stream,
                                http->memory, secure_protocol(session->secure));
#endif
    return bide_http_serve(&http->connection, &web->server, session->endpoint.stream, http->memory);
}

/*
 * A connection to an origin, in async C: resolves the name, connects, and performs the TLS
 * handshake.
 */
#include "tasks.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

void connection_init(struct connection *connection)
{
    connection->is_open = false;
    connection->problem = NULL;
    bide_descriptor_init_closed(&connection->socket);
#if FETCH_HAS_TLS
    bide_tls_init_closed(&connection->tls);
#endif
}

/* Bytes behind the last response would be taken for the next one. */
static bool connection_has_input(struct connection *connection)
{
#if FETCH_HAS_TLS
    return connection->is_secure && bide_tls_has_input(&connection->tls);
#else
    (void)connection;
    return false;
#endif
}

bool connection_is_to(struct connection *connection, const bide_http_url *url)
{
    return connection->is_open && connection->is_secure == url->is_secure &&
           connection->port == url->port && bide_http_is(url->host, connection->host) &&
           !connection_has_input(connection);
}

void connection_close(struct connection *connection)
{
#if FETCH_HAS_TLS
    if (connection->is_secure)
        bide_tls_close(&connection->tls);
#endif
    bide_close(&connection->socket);
    connection->is_open = false;
    connection->is_secure = false;
}

async int start_tls(struct fetch *fetch, struct connection *connection)
{
#if FETCH_HAS_TLS
    connection->is_secure = true;
    int status = await bide_tls_connect(&connection->tls, fetch->tls,
                                        bide_socket_stream(&connection->socket), connection->host);
    if (status < 0)
        connection->problem = bide_tls_reason(&connection->tls);
    return status;
#else
    (void)fetch;
    connection->problem = "fetch was built without TLS";
    return -EPROTONOSUPPORT;
#endif
}

async int connection_open(struct fetch *fetch, struct connection *connection,
                          const bide_http_url *url)
{
    uint64_t end = bide_now(bide_this_context()) + fetch->options.timeout;
    connection_close(connection);
    connection->problem = NULL;
    if (url->host.size >= sizeof connection->host)
        return -ENAMETOOLONG;
    snprintf(connection->host, sizeof connection->host, "%.*s", (int)url->host.size,
             url->host.data);
    connection->port = url->port;
    try await bide_with_deadline(
        end, bide_connect_by_name(&connection->socket, fetch->names, connection->host, url->port));
    if (url->is_secure)
        try await bide_with_deadline(end, start_tls(fetch, connection));
    bide_stream stream = bide_socket_stream(&connection->socket);
#if FETCH_HAS_TLS
    if (url->is_secure)
        stream = bide_tls_stream(&connection->tls);
#endif
    int status = bide_http_client_init(&connection->client, stream, connection->memory,
                                       sizeof connection->memory, NULL);
    connection->is_open = status == 0;
    return status;
}

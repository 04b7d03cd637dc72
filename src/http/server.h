/* Connections of a server. Internal to HTTP. */
#ifndef BIDE_SRC_HTTP_SERVER_H
#define BIDE_SRC_HTTP_SERVER_H

#include "bide/http_server.h"

#include "output.h"

/* The state of a connection (server.c). */
enum {
    HTTP_CONNECTION_FRESH,
    HTTP_CONNECTION_IDLE,
    HTTP_CONNECTION_HEAD,
    HTTP_CONNECTION_EXCHANGE,
    HTTP_CONNECTION_CLOSING,
    HTTP_CONNECTION_CARRIED
};

/* Whether the carrier gets the connection. MAYBE: its first bytes decide. */
enum { HTTP_PROTOCOL_NO, HTTP_PROTOCOL_MAYBE, HTTP_PROTOCOL_YES };

/* The status that is logged for an exchange whose client has left; the number is that of nginx. */
enum { HTTP_CLIENT_LEFT = 499 };

/*
 * The maximum part of a body that is dropped to reach the next request, and the room in the output
 * buffer with which an exchange starts, unless the buffer is empty.
 */
enum { HTTP_DROPPED = 65536, HTTP_HEAD_ROOM = 1024 };

/* Initialises all members but server, stream and carried. */
void bide_http_init_connection_(bide_http_connection *connection, char *memory);

/* Starts the handler of the exchange, which bide_http_take_head_ has set up. */
bide_awaiter *bide_http_begin_handler_(bide_http_connection *connection);

/* Reports the end of the exchange to the server's log, to options.ended, and if it has failed, to options.incident. */
void bide_http_report_end_(bide_http_connection *connection, int error);

/* Reports a request without an exchange to the server's log, to options.refused and to options.incident. */
void bide_http_report_refused_(bide_http_connection *connection, bide_slice line, int status);

/* The same of the request that connection->rejection refuses, and whose head is in the buffer. */
void bide_http_report_rejection_(bide_http_connection *connection);

/*
 * Parses a head from the buffer and starts the exchange. Returns 0, -EAGAIN (the head is incomplete), or
 * the status that rejects it.
 */
int bide_http_take_head_(bide_http_connection *connection);

/*
 * Ends the response after the handler has completed with `error`. Returns 0, -EAGAIN (flush and call
 * again), or an error that ends the connection.
 */
int bide_http_end_exchange_(bide_http_connection *connection, int error);

/* The client has left: cancels the handler. The connection ends after it. */
void bide_http_abandon_(bide_http_connection *connection);

/* The handler has written a whole response: all of its announced length. */
bool bide_http_is_complete_(const bide_http_connection *connection);

/* Replaces the unsent response by a response that contains only a status. */
void bide_http_write_rejection_(bide_http_connection *connection, int status);

#endif

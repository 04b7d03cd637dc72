/* Connections of a server. Internal to HTTP. */
#ifndef BIDE_SRC_HTTP_SERVER_H
#define BIDE_SRC_HTTP_SERVER_H

#include "bide/http_server.h"

#include "output.h"

/* Where a connection is. */
enum { HTTP_FRESH, HTTP_IDLE, HTTP_HEAD, HTTP_EXCHANGE, HTTP_CLOSING, HTTP_CARRIED };

/* Is it the carrier's? It is looked for in what comes first; or it is known. */
enum { HTTP_CARRIED_NOT, HTTP_CARRIED_MAYBE, HTTP_CARRIED_SURELY };

/* The most of a body that is dropped for the sake of the next request. */
enum { HTTP_DROPPED = 65536, HTTP_HEAD_ROOM = 1024 };

/* What a connection has from its beginning, but for its stop source's state in a run. */
void bide_http_init_connection_(bide_http_connection *connection, char *memory);

/* The handler of the exchange, which has begun. */
bide_awaiter *bide_http_begin_handler_(bide_http_connection *connection);

/* The exchange has ended. */
void bide_http_report_end_(bide_http_connection *connection, int error);

/* Takes a head from the buffer: 0, -EAGAIN, or the status that refuses it. The exchange begins. */
int bide_http_take_head_(bide_http_connection *connection);

/* Ends the exchange's response, after the handler ended with `error`: 0, -EAGAIN (flush, and again),
 * or an error that ends the connection. */
int bide_http_end_exchange_(bide_http_connection *connection, int error);

/* Puts a response into the buffer that says no more than a status, in place of one that was begun. */
void bide_http_write_rejection_(bide_http_connection *connection, int status);

#endif

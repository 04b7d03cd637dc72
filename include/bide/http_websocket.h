/*
 * The WebSocket handshake over HTTP: a server's handler accepts a WebSocket, and a client opens one.
 * Floor: http.
 *
 *     struct session {
 *         bide_http_exchange exchange;         // at the head of the handler's frame
 *         bide_websocket websocket;
 *         bide_http_websocket_operation upgrade;
 *         ...
 *     };
 *     bide_coroutine(session_body)
 *     {
 *         bide_begin(session_body, struct session *self);
 *         bide_try(bide_http_accept_websocket(&self->upgrade, &self->exchange, &self->websocket,
 *                                             &(bide_websocket_options){.ping_interval = 20 * SECOND},
 *                                             NULL));
 *         for (;;)
 *             bide_try_or_break(bide_websocket_recv(&self->receive, &self->websocket, ...));
 *         bide_end();
 *     }
 *
 * The handler accepts on its server's loop; a client opens on the thread of its stream. The websocket
 * uses the buffers of the HTTP connection, unless the options name others. Bytes that the peer sent
 * right after its handshake are not lost. With HTTP/2 (http2.h) a server's WebSocket is one stream of its
 * connection: an extended CONNECT opens it, and the handler is the same. Its client is in http2_websocket.h.
 *
 * Security: a page of any site can open a WebSocket to any server, and the browser sends that server's
 * cookies along. A handler that trusts cookies must check the field "Origin" first.
 */
#ifndef BIDE_HTTP_WEBSOCKET_H
#define BIDE_HTTP_WEBSOCKET_H

#include "bide/http_server.h"
#include "bide/http_client.h"
#include "bide/websocket.h"

BIDE_EXTERN_C_BEGIN

/* One of these. The caller's memory until it has ended. */
typedef struct bide_http_websocket_operation {
    bide_task task;
    bide_http_exchange *exchange;
    bide_http_client *client;
    bide_websocket *websocket;
    bide_websocket_options options;
    const char *target;
    const char *host;
    const char *protocols;
    int status;
    char key[BIDE_WEBSOCKET_ACCEPT + 1];
} bide_http_websocket_operation;

/*
 * Answers a request for a WebSocket, and makes one of the connection. `options` is copied, but for the
 * role and what has come already, which it does not say; if its `in` and `out` are NULL the websocket has
 * the connection's buffers. `protocols` are the subprotocols that the server knows, with commas between;
 * NULL: none. The first of them that the client offers is agreed on, if there is one. Fields of the
 * answer are added before, by bide_http_add.
 *
 * If the request is for none, the answer says so (400, or 426 of another version), and it ends with an
 * error; then the handler has nothing more to answer. After an error of bide_websocket_init the
 * connection is HTTP's no more, and ends with the handler.
 * Threads: the loop's. Errors: -EINVAL (the request is for none), -EPROTONOSUPPORT (of another version),
 * those of bide_http_upgrade and bide_websocket_init. Suspends: if the client is slow. Cancel-safe: no,
 * the connection ends after it. Progress: that of the stream.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_http_accept_websocket(bide_http_websocket_operation *operation,
                                         bide_http_exchange *exchange, bide_websocket *websocket,
                                         const bide_websocket_options *options,
                                         const char *protocols);

/*
 * Asks a server for a WebSocket, and makes one of the client's connection, whose buffers it has unless
 * `options` names others. `protocols` are the subprotocols to be offered, with commas between, or NULL;
 * the field "Sec-WebSocket-Protocol" of client->response has the agreed one. The texts stay
 * until it has ended. The client is used for nothing else afterwards.
 * Threads: the stream's. Errors: -ECONNREFUSED (client->response says why), -EPROTO (the answer is wrong),
 * those of bide_http_client_start_request, bide_http_client_recv, bide_websocket_make_key and
 * bide_websocket_init. Suspends: if the server has not answered. Cancel-safe: no, the connection cannot
 * be used any more. Progress: that of the stream.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_http_open_websocket(bide_http_websocket_operation *operation,
                                       bide_http_client *client, bide_websocket *websocket,
                                       const bide_websocket_options *options, const char *target,
                                       const char *host, const char *protocols);

BIDE_EXTERN_C_END

#endif

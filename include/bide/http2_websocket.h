/*
 * WebSockets of the HTTP/2 client: one stream of a connection is a WebSocket, by an extended CONNECT (RFC 8441), and the
 * others go on. Link with bide-http and bide-http2. Floor: http2.
 *
 *     if ((status = bide_http2_request_init_protocol(&self->request, client, "websocket", "/chat", "example.org")) < 0)
 *         bide_return(status);
 *     bide_http2_request_add(&self->request, "origin", "https://example.org");    // and other fields
 *     bide_try(bide_http2_open_websocket(&self->opening, &self->request, &self->websocket, &options, "chat"));
 *     ... bide_websocket_send, bide_websocket_recv, bide_websocket_close ...
 *     bide_finally();
 *     bide_http2_request_close(&self->request);           // in every case, after the websocket's last operation
 *     bide_end();
 *
 * A server's connection is HTTP/2 if TLS has negotiated that (bide_tls_protocol is "h2"), or if the server is known to
 * speak it; otherwise bide_http_open_websocket asks by HTTP/1.1. A server of HTTP/2 need not know WebSockets over it. Then
 * the open ends with -EPROTONOSUPPORT, and a connection of HTTP/1.1 is needed: one whose TLS offers "http/1.1" alone.
 *
 * All of it runs on the client's loop. Cancelling an open leaves the request to bide_http2_request_close.
 *
 * Why it is correct: src/http2/websocket.c.
 */
#ifndef BIDE_HTTP2_WEBSOCKET_H
#define BIDE_HTTP2_WEBSOCKET_H

#include "bide/http2_client.h"
#include "bide/websocket.h"

BIDE_EXTERN_C_BEGIN

/* An open. The caller's memory until it has ended. */
typedef struct bide_http2_websocket_operation {
    bide_task task;
    bide_http2_request *request;
    bide_websocket *websocket;
    bide_websocket_options options;
    const char *protocols;
    int status;
} bide_http2_websocket_operation;

/*
 * Sends a request of bide_http2_request_init_protocol for a WebSocket, with "sec-websocket-version" and the fields of
 * `protocols` and of options->deflate, and makes one of its stream. `options` is copied, but for the role and the initial
 * bytes; it names both buffers. `protocols` are the subprotocols to be offered, with commas between, or NULL; the
 * response's field "sec-websocket-protocol" is the agreed one.
 * Threads: the loop's. Errors: -EPROTONOSUPPORT (the server does not allow it on this connection), -ECONNREFUSED (the
 * request's response says why, and its body can be read; or the server has not processed it, and the status of the
 * response is 0), -EPROTO (the answer is wrong), those of bide_http2_request_add, bide_http2_request_recv and
 * bide_websocket_init; -EINVAL also for a request of bide_http2_request_init. Suspends: if the server has not answered.
 * Cancel-safe: no, the request can only be closed. Progress: that of the stream.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_http2_open_websocket(bide_http2_websocket_operation *operation,
                                        bide_http2_request *request, bide_websocket *websocket,
                                        const bide_websocket_options *options,
                                        const char *protocols);

BIDE_EXTERN_C_END

#endif

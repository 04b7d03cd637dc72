/*
 * HTTP/2 for a server: the handlers of http.h, unchanged, for each stream of a connection.
 * Implemented with libnghttp2, in a library of its own, bide-http2, so that other programs do not
 * depend on it. Floor: http2.
 *
 *     bide_http_server_init(&http, &(bide_http_options){.handler = {&hello_body,
 *                                                       sizeof(struct hello)}, .max_connections = 1000});
 *     bide_http2_init(&http2, &http, &(bide_http2_options){.is_plain = true});
 *     bide_try(bide_http_server_run(&http));
 *
 * This accepts connections without TLS that begin with HTTP/2's preface ("prior knowledge"); other
 * connections are HTTP/1.1. With TLS the protocol negotiated by ALPN decides; `protocols` of the
 * config are bide_http2_protocols:
 *
 *     bide_try(bide_tls_accept(&self->handshake, &self->tls, config,
 *                              bide_socket_stream(&self->connection.socket)));
 *     bide_try(bide_http2_serve(&self->http, &http2, bide_tls_stream(&self->tls), self->memory,
 *                               bide_tls_protocol(&self->tls)));
 *
 * Each request has a coroutine of its own, and several requests of a connection run at a time.
 * Back-pressure is per stream: a window opens when the handler reads, and a handler that writes
 * waits for the client's window. If the client resets a stream, or a time limit expires, the
 * handler is cancelled, and the connection stays. On shutdown, connections take no more requests,
 * send GOAWAY, and end after the requests under way. There is no upgrade from HTTP/1.1, and no push;
 * bide_http_upgrade with NULL makes a tunnel of a CONNECT. A server belongs to one loop.
 *
 * WebSockets over HTTP/2: a client's extended CONNECT (RFC 8441), which the settings allow, is to a
 * handler a GET whose `upgrade` is the protocol. bide_http_accept_websocket and bide_http_upgrade answer
 * it, as with HTTP/1.1, and the stream is the WebSocket's. If no handler has upgraded it, a response of
 * 2xx, which would accept it, is sent as 501.
 */
#ifndef BIDE_HTTP2_H
#define BIDE_HTTP2_H

#include "bide/detail/beside.h"
#include "bide/mutex.h"
#include "bide/extend/http.h"

BIDE_EXTERN_C_BEGIN

/* The protocols that a server offers by ALPN (bide_tls_options.protocols). */
extern const char *const bide_http2_protocols[]; /* {"h2", "http/1.1", NULL} */

/* The comment of a member says what 0 means. */
typedef struct bide_http2_options {
    bool is_plain; /* connections without a negotiated protocol may begin with the preface */
    uint32_t max_streams; /* of a connection at a time. 0: 100 */
    uint32_t window; /* bytes of a stream's body that may come before the handler reads. 0: 65535 */
    uint32_t connection_window; /* of all bodies of a connection. 0: 1 MiB; 65535 at least */
    uint32_t
        max_resets; /* streams that a client may reset, beside as many as it lets end. 0: 200 */
    uint32_t max_idle_frames;  /* that may come without a request, or a part of a body. 0: 1000 */
    size_t max_all_streams; /* of all connections together: beyond it a connection has one. 0: no limit */
    size_t all_windows;     /* bytes of bodies of all connections that hold back no other request. 0: 64 MiB */
    size_t max_memory;         /* bytes of all connections. 0: without a limit */
    bide_allocator *allocator; /* NULL: the heap */
} bide_http2_options;

/* Counters of a server. */
typedef struct bide_http2_stats {
    uint64_t connections; /* ever, that were HTTP/2 */
    uint64_t streams;     /* requests ever */
    uint64_t resets;      /* by clients, before their response had ended */
    uint64_t refused;     /* streams that were reset at once: there were too many, or no memory */
    uint64_t floods;      /* connections that were ended because of what came */
    size_t live;          /* streams that there are */
    size_t memory;        /* bytes that are allocated */
} bide_http2_stats;

/* Pieces of memory of one size that are kept for the next use, while there are connections. Of the library. */
typedef struct bide_http2_spare_ {
    void *first;
    unsigned count;
} bide_http2_spare_;

/* The caller's memory, as long as the server. */
typedef struct bide_http2 {
    bide_http_protocol protocol; /* at the head */
    bide_http_server *server;
    bide_http2_options options;
    bide_http2_stats stats;

    /* of the library */
    size_t sessions; /* connections that there are */
    size_t waiting;  /* requests whose coroutines have not run yet */
    size_t opened;     /* bytes that are not read, whose part of a connection's window was opened */
    bide_mutex turn; /* of taking in requests */
    bide_http2_spare_ streams;
    bide_http2_spare_ outputs;
} bide_http2;

/*
 * Has a server, which was made by bide_http_server_init, speak HTTP/2 too. `options` is copied;
 * NULL: all 0.
 * Also a macro, so that the linker names bide-http2 if it is missing.
 * Threads: before it is shared. Errors: -EINVAL (a window is too large or too small). Progress:
 * wait-free.
 */
int bide_http2_init(bide_http2 *http2, bide_http_server *server, const bide_http2_options *options);
#define bide_http2_init(...) BIDE_BESIDE_(bide_link_with_lbide_http2_, bide_http2_init(__VA_ARGS__))

/*
 * Serves one connection over a stream, as bide_http_serve: by HTTP/2 if `protocol` is "h2", by
 * HTTP/1.1 if it is another. If it is NULL, no protocol was negotiated: by HTTP/2 if options.is_plain
 * and the connection begins with the preface, otherwise by HTTP/1.1.
 * Threads: the loop's. Errors: as bide_http_serve. Suspends: as bide_http_serve. Cancel-safe: no,
 * the requests that are under way are cancelled. Progress: as bide_http_serve.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_http2_serve(bide_http_connection *connection, bide_http2 *http2,
                               bide_stream stream, void *memory, const char *protocol);

/*
 * Why it is correct: src/http2/serve.c.
 *
 * Source: RFC 9113; CVE-2023-44487, CVE-2019-9511 to 9518 and CVE-2024-28182 for what has to be
 * bounded.
 */

/*
 * Limits are those of bide_http_options, for each request; `first` and `idle` apply to a connection
 * without requests. Other costs of a connection are bounded too: streams that the client resets,
 * PING, SETTINGS, PRIORITY, empty and
 * unknown frames, and frames of streams that have ended. A request that a next hop could interpret differently
 * (names in upper case, "Connection", two lengths, control characters, a "Host" that differs from
 * ":authority") is a reset stream or a 400.
 *
 * Connections take turns of 16 requests, and the requests run between them. So a connection that
 * requests without end leaves the others their share, and requests that are answered at once reuse
 * the same little memory.
 *
 * A body that is not read fills the window of its stream, and holds back no other request: the
 * connection's window is opened when bytes arrive, up to `all_windows` bytes for all connections of the
 * server. Beyond that it is opened when bytes are read. If there are `max_all_streams` requests, a
 * connection may have one only: its other streams are reset with REFUSED_STREAM, and a client may try
 * again. So a few connections cannot use up what each request needs, such as descriptors.
 *
 * An HTTP/2 connection allocates: its session, for each stream as much as an HTTP/1.1 connection
 * has, and up to `window` bytes for a request's body. All of it is counted, and bounded if the
 * options say so. If memory runs out, the stream is reset, or the connection ends.
 */

BIDE_EXTERN_C_END

#endif

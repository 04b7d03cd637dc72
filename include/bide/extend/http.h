/*
 * Carriers: another protocol than HTTP/1.1 for the exchanges of an HTTP server, with each request on a
 * stream of its own, several at a time on one connection. HTTP/2 (http2.h) is one. For authors of
 * protocols; the connection's loop uses it, on that loop's thread. Floor: http.
 *
 *     connection     accepted as usual, by bide_http_server_run or bide_http_serve; if it begins with
 *                    the carrier's preface, or the caller says so, the carrier takes it over
 *     stream         has a bide_http_connection of its own, over a bide_stream of the carrier's, with
 *                    the memory of an HTTP/1.1 connection. So a handler sees no difference
 *
 *     init --head--> begin --0--> run --the handler has ended--> end --0--> buffered data is sent
 *                      +--a status--> refuse --------------------------------^
 *
 * The handler's output arrives at the carrier's stream as the text of a head, "HTTP/1.1 200 OK\r\n",
 * field lines and an empty line, in one piece. The body follows, without chunks. When the exchange has
 * ended, the writer's buffer holds the output that the handler has not flushed: the head, if it has not
 * been written before, the body, and, from output.chunk on (SIZE_MAX: none), the lines of the trailers.
 * So a small response costs no wait.
 *
 * Why it is correct: src/http/transport.c.
 */
#ifndef BIDE_EXTEND_HTTP_H
#define BIDE_EXTEND_HTTP_H

#include "bide/http_server.h"

BIDE_EXTERN_C_BEGIN

/* The carrier of exchanges: the user's struct begins with one. */
struct bide_http_protocol {
    /* The first bytes of a connection that is the carrier's; size 0: none is looked for. */
    bide_slice preface;

    /* Has a connection until it ends. Its reader has the preface, and what came behind. */
    bide_awaiter *(*serve)(bide_http_protocol *protocol, bide_http_connection *connection);

    /* The server is shut down: no new requests are taken on this connection. */
    void (*drain)(bide_http_protocol *protocol, bide_http_connection *connection);
};

/* The head of a request. Texts stay until the exchange has ended. */
typedef struct bide_http_transport {
    int major; /* of the version */
    bide_slice method;
    bide_slice target;    /* a path, with its query; "*"; empty with CONNECT */
    bide_slice authority; /* data is NULL: none */
    size_t field_count;       /* of connection->fields, which are filled in */
    uint64_t length;          /* of the body; BIDE_HTTP_UNKNOWN: it goes to the end */
    bide_slice protocol; /* of an extended CONNECT; data is NULL: none */
} bide_http_transport;

/*
 * Makes the connection of one stream: `stream` is the carrier's, `memory` of
 * bide_http_memory_size(server) bytes. Both stay with it. The carrier's own watcher may sleep until
 * connection->watch.until, and sets connection->watch.armed to when it wakes; `nudge` is set if
 * that is too late.
 * Threads: the loop's. Progress: wait-free.
 */
void bide_http_transport_init(bide_http_connection *connection, bide_http_server *server,
                            bide_stream stream, void *memory, bide_auto_event *nudge);

/*
 * Where the texts of a head may stand: room at the beginning of the connection's buffer,
 * options.max_head bytes.
 * Threads: the loop's. Progress: wait-free.
 */
BIDE_INLINE char *bide_http_transport_room(bide_http_connection *connection)
{
    return connection->reader.buffer;
}

/*
 * An exchange begins, whose head is in the first `used` bytes of that room. 0, or the status that
 * refuses it: then bide_http_transport_reject.
 * Threads: the loop's. Errors: none, but a status. Progress: wait-free, linear in the head.
 */
int bide_http_transport_start(bide_http_connection *connection, const bide_http_transport *head,
                            size_t used, uint64_t now);

/*
 * The handler, which the server's options choose. If it is asked to stop, so is the handler.
 * Threads: the loop's. Errors: those of the handler. Suspends: if the handler does. Cancel-safe:
 * no, the exchange is cancelled. Progress: that of the handler.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_http_transport_run(bide_http_connection *connection);

/*
 * The exchange has ended, the handler with `error`, of which the response tells if nothing has been
 * sent. 0: what is buffered is to be sent, and that is the end.
 * Threads: the loop's. Errors: what spoils a response that has been begun. Progress: wait-free.
 */
int bide_http_transport_finish(bide_http_connection *connection, int error);

/*
 * The same with a response that says no more than `status`. A response that is complete stays.
 * Threads: the loop's. Errors: -EALREADY (some of another response was sent), -EMSGSIZE (there is
 * no room). Progress: wait-free.
 */
int bide_http_transport_reject(bide_http_connection *connection, int status);

/*
 * Reports the end of an exchange to the server's log and to options.ended. -ECONNRESET: the client has left. If the head
 * of the response was not ended then, the status becomes 499.
 * Threads: the loop's. Progress: that of those.
 */
void bide_http_transport_report(bide_http_connection *connection, int error);

/*
 * Reports a request that was refused before its handler began to the server's log and to options.refused.
 * `line` is its method, target and version.
 * Threads: the loop's. Progress: that of those.
 */
void bide_http_transport_report_refused(bide_http_connection *connection, bide_slice line, int status);

/*
 * Serves a connection as bide_http_serve does; `is_other_protocol`: it is the carrier's, whatever it
 * begins with. Otherwise it is HTTP/1.1's.
 * Threads: the loop's. Errors: as bide_http_serve. Suspends: as bide_http_serve. Cancel-safe: no,
 * the requests that are under way are cancelled. Progress: as bide_http_serve.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_http_transport_serve(bide_http_connection *connection, bide_http_server *server,
                                      bide_stream stream, void *memory, bool is_other_protocol);

/*
 * Whether these bytes are allowed in the value of a field.
 * Threads: any. Progress: wait-free.
 */
bool bide_http_transport_is_value(bide_slice text);

BIDE_EXTERN_C_END

#endif

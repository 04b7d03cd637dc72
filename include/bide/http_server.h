/*
 * An HTTP/1.1 server: a coroutine for each request, over any stream. Floor: http.
 *
 *     struct hello {
 *         bide_http_exchange exchange;         // at the head: it has the coroutine's header
 *         char text[64];                       // the handler's own; not initialised
 *     };
 *     bide_coroutine(hello_body)
 *     {
 *         bide_begin(hello_body, struct hello *self);
 *         bide_http_add(&self->exchange, "Content-Type", "text/plain");
 *         bide_try(bide_http_respond(&self->exchange, "hello\n", 6));
 *         bide_end();
 *     }
 *
 *     bide_http_server_init(&http, &(bide_http_options){
 *         .handler = {&hello_body, sizeof(struct hello)}, .max_connections = 1000});
 *     bide_try(bide_listen(&self->listen, &http.server.listener, &address, 128));
 *     bide_try(bide_http_server_run(&http));   // until bide_http_server_shut_down
 *
 *     head --handler--> response --end of the handler--> next head, or the connection ends
 *
 * A handler runs when its request's head has arrived. It may read the body, and writes the
 * response, in pieces or at once; both wait for the peer, which is the back-pressure. The response
 * ends with the handler. Pipelined requests wait in the connection's buffer, and are answered in
 * order. Responses of handlers that do not suspend are sent together. A complete response does not wait for a
 * later handler that suspends, and is not lost if the later request breaks off.
 *
 * A server belongs to one loop. Its connections are those of bide_server (server.h), or any stream
 * (bide_http_serve). If the library was built without llhttp, bide_http_server_init returns
 * -ENOTSUP. "Clients that leave", "Errors" and "Memory" are
 * below.
 */
#ifndef BIDE_HTTP_SERVER_H
#define BIDE_HTTP_SERVER_H

#include "bide/detail/beside.h"
#include "bide/http_message.h"
#include "bide/scope.h"
#include "bide/send_file.h"
#include "bide/server.h"
#include "bide/with_stop.h"
#include "bide/extend/wrapper.h"

BIDE_EXTERN_C_BEGIN

typedef struct bide_http_connection bide_http_connection;
typedef struct bide_http_exchange bide_http_exchange;
typedef struct bide_http_server bide_http_server;
typedef struct bide_http_protocol bide_http_protocol;
struct bide_http_compression;
struct bide_http_encoder_;
struct bide_http_log;
struct bide_http_route;

/* ---- Requests ---- */

/* The head of a request. Texts stay until the exchange has ended, or is upgraded. */
typedef struct bide_http_request {
    bide_http_method method;
    int major; /* of the version: 1, or 2 of HTTP/2 (http2.h) */
    int minor; /* 0 of HTTP/1.0, otherwise 1: of HTTP/2 too, whose clients can do what those of 1.1 can */
    bide_slice method_name;
    bide_slice target;  /* as it came */
    bide_slice path;    /* of the target, as it came: "%2F" is not decoded */
    bide_slice query;   /* behind its "?"; data is NULL: there is none */
    bide_slice host;    /* of the target, or of "Host" */
    bide_slice upgrade; /* the protocols that the client would change to; empty: none */
    const bide_http_field *fields;
    size_t field_count;
    uint64_t length; /* of the body; BIDE_HTTP_UNKNOWN: it comes in chunks */
} bide_http_request;

/* ---- Handlers ---- */

/* A coroutine for requests: its body, and the size of its frame. */
typedef struct bide_http_handler {
    const bide_point *body; /* of bide_coroutine */
    size_t size;            /* of the struct whose head is the bide_http_exchange */
} bide_http_handler;

enum { BIDE_HTTP_PARAMETERS = 8 };

/* The head of a handler's frame: a request and its response. */
struct bide_http_exchange {
    bide_task task; /* that of the handler's body */
    bide_http_connection *connection;
    bide_http_server *server;
    bide_http_request request;
    int status; /* of the response; 200 at first. The handler may set it until the head is sent */
    int error;  /* that the handler ended with; or 0. For options.ended */
    void *argument; /* the options', or the route's */
    size_t count;   /* bytes that the last bide_http_read has read; 0: the body has ended */
    bool is_chosen; /* of the library: `task` is that of a handler */

    /* of a router (http_router.h) */
    const struct bide_http_route *route; /* or NULL */
    bide_slice parameters[BIDE_HTTP_PARAMETERS];
};

/*
 * A layer: a coroutine around the handlers of a server, for what concerns all of them, as access, headers and times.
 *
 *     struct timed {
 *         bide_http_layer_frame layer;     // at the head
 *         uint64_t began;
 *     };
 *     bide_coroutine(timed_body)
 *     {
 *         bide_begin(timed_body, struct timed *self);
 *         self->began = bide_now(bide_this_context());
 *         bide_try(bide_http_next(&self->layer));      // the next layer, or the handler
 *         ... self->layer.exchange->status ...
 *         bide_end();
 *     }
 *     static const bide_http_layer layers[] = {{&timed_body, sizeof(struct timed), NULL}};
 *     ... bide_http_options){.layers = layers, .layer_count = 1, ...
 *
 * The first layer is the outermost. A layer may respond itself instead of calling bide_http_next, add fields before it,
 * and change a status or respond to an error after it, as long as no response has begun. Its status
 * is then the handler's. The handler is selected when the last layer calls bide_http_next.
 */
typedef struct bide_http_layer {
    const bide_point *body; /* of bide_coroutine */
    size_t size;            /* of the struct whose head is the bide_http_layer_frame */
    void *argument;         /* the user's: layer_frame.argument */
} bide_http_layer;

/* The head of a layer's frame. */
typedef struct bide_http_layer_frame {
    bide_task task;
    bide_http_exchange *exchange;
    void *argument;
    size_t index; /* of the library: in options.layers */
} bide_http_layer_frame;

/*
 * Something that an operator may want to look into: see options.incident. Texts are valid during the call.
 */
typedef struct bide_http_incident {
    const char *peer; /* the client's address as text; "-": it is not known */
    bide_slice line;  /* the first line of the request, or a part of it; may contain any bytes; empty: there is none */
    int status;       /* of the response; 0: there is none */
    int error;        /* a negative errno, of the handler or the connection; 0: none */
    const char *reason; /* NULL: that of the error */
} bide_http_incident;

/* Options of a server. Members say what 0 means. Times are nanoseconds; BIDE_FOREVER: no limit. */
typedef struct bide_http_options {
    bide_http_handler handler; /* of each request; or: */

    /* Chooses the handler when a head has come; NULL: 404. It may look at the request, and set
     * exchange->argument. `max_frame_size` is then the size of the largest handler's frame. */
    const bide_http_handler *(*select_handler)(bide_http_exchange *exchange);
    size_t max_frame_size;

    const bide_http_layer *layers; /* around the handlers, the outermost first; they stay. NULL: none */
    size_t layer_count;

    /* A client that has ended its output is still there: see "Clients that leave". */
    bool allows_half_close;

    void *argument; /* the user's: what exchange->argument is at first */

    /* bytes */
    size_t read_buffer_size; /* of the buffer of what comes in. 0: 8192; 2048 at least */
    size_t
        write_buffer_size; /* of the buffer of what goes out: the longest head is that less 256. 0: 8192 */
    size_t max_head;   /* of a request's head. 0: `read_buffer_size` less 1024, which is the most */
    size_t max_target; /* 0: no other limit than that of the head */
    size_t max_fields; /* of a request, with its trailers. 0: 64 */
    uint64_t max_body; /* 0: 1 MiB; BIDE_HTTP_UNKNOWN: without a limit */
    uint64_t max_requests; /* of a connection. 0: without a limit */

    /* times */
    uint64_t first_byte_timeout; /* to the first byte of a new connection. 0: 10 s */
    uint64_t header_timeout;     /* from there to the end of the head. 0: 10 s */
    uint64_t body_idle_timeout;  /* between two bytes of a body, in and out. 0: 30 s */
    uint64_t keepalive_timeout; /* from a response to the first byte of the next request. 0: 60 s */
    uint64_t request_timeout;   /* from the end of the head to the end of the response. 0: 300 s */
    uint64_t linger_timeout;    /* after the last response, and between two bytes that are dropped. 0: 2 s */

    /* What time is it, in seconds since 1970? NULL: the system's clock. For "Date". */
    int64_t (*clock)(void);

    /*
     * An exchange has ended: with 0, with the error of its handler, also if the response reports that, or with
     * the error that cut it short. For logs, and counts of the user's. Its handler need not have begun:
     * bide_http_handler_began says whether the handler's frame holds values. NULL: none.
     */
    void (*ended)(bide_http_exchange *exchange, int error);

    /*
     * A request was refused with `status` before its exchange had begun. `line` is its first line, or a part
     * of it, or the first bytes of something that is not HTTP; it may contain any bytes. NULL: none.
     */
    void (*refused)(bide_http_connection *connection, bide_slice line, int status);

    /*
     * An incident: a request was refused, a handler has failed, a response was truncated, or a client of HTTP/2 has
     * sent too much. Not 403 and 404, and clients that leave. bide_http_log_incident logs it. NULL: none.
     */
    void (*incident)(bide_http_server *server, const bide_http_incident *incident);

    struct bide_http_compression *compression; /* of responses (http_compression.h). NULL: none */

    struct bide_http_log *log; /* of requests, also of refused ones (http_log.h). NULL: none */

    /* of bide_http_server_run alone */
    size_t max_connections; /* connections at a time */
    void *
        slots; /* their memory: `max_connections` times bide_http_slot_size; or, if that is NULL: */
    bide_allocator *allocator; /* ... NULL: the heap */
} bide_http_options;

/* Counters of a server. */
typedef struct bide_http_stats {
    uint64_t connections; /* ever */
    uint64_t requests;    /* whose head was taken */
    uint64_t refused;     /* heads that were not */
    uint64_t timed_out;   /* connections */
    size_t live;          /* connections that there are now */
} bide_http_stats;

/* The caller's memory until its connections have ended. */
struct bide_http_server {
    bide_server server; /* accepts, if it is run */
    bide_http_options options;
    bide_http_stats stats;
    void *argument; /* the user's */

    /* of the library */
    bide_http_connection *connections;
    bide_http_protocol *protocol; /* of what is not HTTP/1.1; or NULL */
    int64_t second;               /* of `date` */
    bool is_draining;
    char date[BIDE_HTTP_DATE_SIZE + 8];
};

/*
 * Makes a server. `options` is copied.
 * Also a macro, so that the linker names bide-http if it is missing.
 * Threads: before it is shared. Errors: -EINVAL (a handler is missing, or a size is too small),
 * -ENOTSUP (the library was built without llhttp). Progress: wait-free.
 */
int bide_http_server_init(bide_http_server *server, const bide_http_options *options);
#define bide_http_server_init(...) \
    BIDE_BESIDE_(bide_link_with_lbide_http_, bide_http_server_init(__VA_ARGS__))

/*
 * Accepts connections at server->server.listener and serves them, as bide_server_run.
 * Threads: the loop's. Errors: as bide_server_run. Suspends: always. Cancel-safe: as bide_server_run.
 * Progress: as bide_server_run.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_http_server_run(bide_http_server *server);

/*
 * Shuts it down: connections that wait for a request end at once, the others after the response that
 * is under way, which says so. Connections that bide_http_server_run accepted are waited for until
 * `deadline`, as in bide_server_shut_down.
 * Threads: the loop's. Suspends: never. Progress: wait-free, linear in the connections.
 */
void bide_http_server_shut_down(bide_http_server *server, uint64_t deadline);

/*
 * The size of a slot of bide_http_server_run, by options that were used for init.
 * Threads: any. Progress: wait-free.
 */
size_t bide_http_slot_size(const bide_http_server *server);

/* ---- Connections ---- */

enum { BIDE_HTTP_PEER_SIZE = 48 };

/* The coroutine that receives one head after the other and runs the handlers. Of a connection. */
typedef struct bide_http_talk_ {
    bide_task task;
    bide_http_connection *connection;
} bide_http_talk_;

/* The coroutine that asks it to stop when its time has passed. Of a connection. */
typedef struct bide_http_watcher_ {
    bide_task task;
    bide_http_connection *connection;
    bide_branch branch;
    bide_auto_event nudge;
    bide_auto_event_waiter wait;
    bide_with_deadline_operation limited;
} bide_http_watcher_;

/*
 * While a handler waits, sends earlier responses, and reads, so that the handler is cancelled when the client leaves.
 * Of a connection.
 */
typedef struct bide_http_guard_ {
    bide_task task;
    bide_http_connection *connection;
    bide_branch branch;
    bide_auto_event start; /* a handler has started, or has read its body to the end */
    bide_auto_event_waiter wait;
    bide_auto_event filled; /* for the connection loop, if it has joined */
    bide_auto_event_waiter join;
    bide_stop_source stop; /* of the read */
    bide_with_stop_operation phase;
    size_t before; /* bytes that were buffered when it joined */
    int status;    /* of the last read or write */
    int result;    /* of the last read */
    bool is_reading;
    bool is_joined; /* the connection loop waits for the read */
} bide_http_guard_;

/* The coroutine that writes bytes of a file. Of a connection. */
typedef struct bide_http_sender_ {
    bide_task task;
    bide_http_connection *connection;
    bide_descriptor *file;
    int64_t offset;
    uint64_t left;
    int status;
    char *more; /* memory for pieces of a long part, or NULL */
    union {
        bide_file_operation read;
        bide_send_file_operation send;
    };
} bide_http_sender_;

/* Runs a handler whose response may be compressed. Of a connection. */
typedef struct bide_http_around_ {
    bide_task task;
    bide_http_connection *connection;
    bide_awaiter *handler;
    int status;
} bide_http_around_;

/* One connection. The caller's memory until it has ended. */
struct bide_http_connection {
    bide_task task;
    bide_http_server *server;
    bide_stream stream;

    /* of the library */
    bide_http_connection *next;
    bide_http_connection **before;
    bide_http_exchange *exchange;
    char *layers; /* their frames */
    bide_http_field *fields;
    bide_reader reader;
    bide_writer writer;
    bide_http_input input;
    bide_http_output output;
    bide_http_watch watch;
    uint64_t requests;
    uint64_t dropped;
    uint64_t began; /* the exchange */
    size_t scanned;
    uint8_t state;
    uint8_t lines;                  /* empty ones, before a request */
    bool is_old;                    /* the request is of HTTP/1.0 */
    bool closes;                    /* after the response */
    bool is_upgraded;               /* it is no more HTTP's */
    bool is_handled;                /* a handler has started, and has not ended */
    bool allows_half_close;         /* the exchange */
    bool has_left;                  /* the client has, and the handler was cancelled */
    bool may_compress;              /* the response */
    uint8_t encoding;               /* of the response's body */
    struct bide_http_encoder_ *encoder;
    uint64_t unencoded; /* bytes of a compressed body that are to be written before it ends */
    bide_http_around_ around;
    uint8_t transport;              /* by the server's carrier, or may it be? */
    void *protocols;                /* the carrier's own */
    bide_http_connection *accepted; /* see bide_http_outer_connection */
    bide_http_talk_ other_protocol; /* for the frame of the carrier's coroutine */
    int status;
    int rejection; /* the status of a response that refuses the request */
    int started;   /* that the response's head has begun with */
    bide_forward reading;
    bide_http_talk_ talk;
    bide_http_sender_ sender;
    char peer[BIDE_HTTP_PEER_SIZE]; /* the client's address as text; empty: it is not known yet */
    bide_stop_source stop;
    bide_with_stop_operation phase;
    bide_scope scope;
    bide_http_watcher_ watcher;
    bide_http_guard_ guard;
};

/*
 * How many bytes of memory a connection needs beside its struct, aligned as malloc's.
 * Threads: any. Progress: wait-free.
 */
size_t bide_http_memory_size(const bide_http_server *server);

/*
 * Serves one connection over a stream, until it has ended; it does not close the stream. `memory` is of
 * bide_http_memory_size bytes, the caller's, and stays, like `connection` and what the stream was made
 * from, until this has ended. It ends with 0 when the client or a response has ended the connection, or it
 * was shut down. After an upgrade it ends with the handler's result.
 * Threads: the loop's. Errors: those of the stream, -EBADMSG (what came was refused), -ETIMEDOUT (it was
 * too slow), -ECANCELED. Suspends: if the stream does. Cancel-safe: no, the request that is under way is
 * cancelled. Progress: that of the stream and the handlers.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_http_serve(bide_http_connection *connection, bide_http_server *server,
                              bide_stream stream, void *memory);

/*
 * The connection that was given to bide_http_serve. With HTTP/1.1 it is this one. With HTTP/2 each request has a
 * connection of its own, and this is the connection that carries the requests. A program thus finds the data that it keeps
 * beside the connection.
 * Threads: the loop's. Progress: wait-free.
 */
BIDE_INLINE bide_http_connection *bide_http_outer_connection(const bide_http_connection *connection)
{
    return connection->accepted;
}

/* ---- The request's body ---- */

/*
 * Reads what there is of the request's body, at least one byte and at most `size`, 1 or more;
 * exchange->count says how many bytes, 0 at the end. A client that waits for "100 Continue" gets it
 * when the first byte is waited for. One at a time.
 * Threads: the loop's. Errors: -EBADMSG (the body is spoilt), -EFBIG (longer than it may be), -EMSGSIZE
 * (the trailers are), -ENODATA (the client is gone), -ECANCELED, -ETIMEDOUT, those of the stream.
 * Suspends: if nothing is buffered. Cancel-safe: yes, nothing was read. Progress: that of the stream.
 */
BIDE_KEY_SCOPED(bide_http_add);
BIDE_MUST_AWAIT
bide_awaiter *bide_http_read(bide_http_exchange *exchange, void *data, size_t size);

/*
 * Runs what is inside this layer: the next one, or the handler. At most once in a layer. It ends with the error of that.
 * Threads: the loop's. Errors: those of the handler. Suspends: if the handler does. Cancel-safe: no, the handler is
 * cancelled. Progress: that of the handler.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_http_next(bide_http_layer_frame *layer);

/*
 * The value of the first field of that name; its data is NULL if there is none.
 * Threads: the loop's. Progress: wait-free, linear in the fields.
 */
bide_slice bide_http_request_field(const bide_http_exchange *exchange, const char *name);

/*
 * The same of the trailers, which are there when the body has ended.
 * Threads: the loop's. Progress: wait-free, linear in the trailers.
 */
bide_slice bide_http_request_trailer(const bide_http_exchange *exchange, const char *name);

/*
 * All trailers of the request, `*count` of them, which are there when the body has ended.
 * Threads: the loop's. Progress: wait-free.
 */
BIDE_INLINE const bide_http_field *bide_http_request_trailers(const bide_http_exchange *exchange,
                                                              size_t *count)
{
    const bide_http_input *input = &exchange->connection->input;
    *count = input->trailer_count;
    return input->fields + input->field_count;
}

/* ---- The response ---- */

/*
 * Adds a field to the response's head. Not "Connection", "Content-Length", "Transfer-Encoding" and
 * "Date", which the library adds itself.
 * Threads: the loop's. Errors: -EINVAL (it is not allowed in a field, or the head has been sent),
 * -EMSGSIZE (the head does not fit). Progress: wait-free.
 */
int bide_http_add(bide_http_exchange *exchange, const char *name, const char *value);

/*
 * The same of texts that are not terminated.
 * Threads: the loop's. Errors: as bide_http_add. Progress: wait-free.
 */
int bide_http_add_slices(bide_http_exchange *exchange, bide_slice name, bide_slice value);

/*
 * Responds with these bytes for a body. They stay until it has ended.
 * Threads: the loop's. Errors: -EINVAL (there is a response already), -EMSGSIZE (the head does not fit),
 * -ECANCELED, -ETIMEDOUT, those of the stream. Suspends: if they do not fit into the buffer and the
 * client is slow. Cancel-safe: no, the connection ends after it. Progress: that of the stream.
 */
BIDE_KEY_SCOPED(bide_http_written);
BIDE_MUST_AWAIT
bide_awaiter *bide_http_respond(bide_http_exchange *exchange, const void *data, size_t size);

/*
 * Ends the response's head, of a body that is to be written. `length` is how many bytes it will have;
 * BIDE_HTTP_UNKNOWN: it is sent in chunks, or, to a client of HTTP/1.0, up to the connection's end. The
 * head is sent with the first bytes that are. The first bide_http_write does this, if nobody has.
 * Threads: the loop's. Errors: -EINVAL (there is one already), -EMSGSIZE (it does not fit).
 * Progress: wait-free.
 */
int bide_http_start_response(bide_http_exchange *exchange, uint64_t length);

/*
 * Writes bytes of the response's body, which stay until it has ended. They are gathered in the
 * connection's buffer until it is full: see bide_http_flush. One at a time, but beside a bide_http_read.
 * In response to HEAD, and with 204 and 304, they are counted and dropped.
 * Threads: the loop's. Errors: -EMSGSIZE (more than was promised), -EINVAL (the response has ended),
 * -ECANCELED, -ETIMEDOUT, those of the stream. Suspends: if they do not fit into the buffer and the
 * client is slow. Cancel-safe: no, the connection ends after it. Progress: that of the stream.
 */
BIDE_KEY_SCOPED(bide_http_written);
BIDE_MUST_AWAIT
bide_awaiter *bide_http_write(bide_http_exchange *exchange, const void *data, size_t size);

/*
 * Writes `length` bytes of a file, from `offset` on, of a response whose length was given to
 * bide_http_start_response. A shorter file spoils the response. Bytes that fit into the buffer are read into it;
 * more are sent to a socket by bide_send_file, and to other streams by way of the buffer.
 * Threads: the loop's. Errors: -ENODATA (the file has fewer bytes), -EINVAL (no length was said), those
 * of reading and of bide_http_write. Suspends: if the file's bytes are not in memory, or the client is
 * slow. Cancel-safe: no, the connection ends after it. Progress: that of the stream and the file.
 */
BIDE_KEY_SCOPED(bide_http_written);
BIDE_MUST_AWAIT
bide_awaiter *bide_http_write_file(bide_http_exchange *exchange, bide_descriptor *file,
                                   uint64_t offset, uint64_t length);

/*
 * Sends an interim response before the response, with these fields, which stay until it has ended: 103 with "Link"
 * fields lets a client load what the response will need while the handler still works. A client of HTTP/1.0 gets none.
 * Threads: the loop's. Errors: -EINVAL (the status is 101 or not 102 to 199, a field is invalid, or the response has
 * begun), -EMSGSIZE (it does not fit into the buffer), -ECANCELED, -ETIMEDOUT, those of the stream. Suspends: if the
 * client is slow. Cancel-safe: no, it is sent nevertheless, and a response may follow. Progress: that of the stream.
 */
BIDE_KEY_SCOPED(bide_http_add);
BIDE_MUST_AWAIT
bide_awaiter *bide_http_send_interim(bide_http_exchange *exchange, int status,
                                     const bide_http_field *fields, size_t count);

/*
 * Sends the buffered bytes. For a response that waits for something before it continues.
 * Threads: the loop's. Errors: as bide_http_write. Suspends: if the client is slow. Cancel-safe: no, the
 * connection ends after it. Progress: that of the stream.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_http_flush(bide_http_exchange *exchange);

/*
 * Sets for this exchange what options.allows_half_close sets for all: whether its client may end its
 * output and still wait for the response. If it has ended its output already, and may not, the handler is
 * cancelled at once. Without an effect with HTTP/2, whose streams end their input by themselves.
 * Threads: the loop's. Suspends: never. Progress: as bide_stop_request.
 */
void bide_http_set_half_close(bide_http_exchange *exchange, bool is_allowed);

/*
 * The connection ends after this response, which says so. Before its head ends.
 * Threads: the loop's. Progress: wait-free.
 */
void bide_http_close_after(bide_http_exchange *exchange);

/*
 * Adds a trailer, behind a body that is sent in chunks and all of which was written.
 * Threads: the loop's. Errors: -EINVAL (the body is not sent in chunks, or it is not allowed in a
 * field), -EMSGSIZE (it does not fit). Progress: wait-free.
 */
int bide_http_add_trailer(bide_http_exchange *exchange, const char *name, const char *value);

/*
 * When the exchange is to have ended, nanoseconds of bide_now(), in place of the options' `request_timeout`;
 * BIDE_FOREVER: without an end.
 * Threads: the loop's. Progress: wait-free.
 */
void bide_http_set_deadline(bide_http_exchange *exchange, uint64_t time);

/*
 * How many bytes of the response's body were written so far, and when its head has come, in
 * nanoseconds of bide_now().
 * Threads: the loop's. Progress: wait-free.
 */
BIDE_INLINE uint64_t bide_http_written(const bide_http_exchange *exchange)
{
    return exchange->connection->output.body;
}

BIDE_INLINE uint64_t bide_http_began(const bide_http_exchange *exchange)
{
    return exchange->connection->began;
}

/*
 * Whether the handler of the exchange has begun, so that its frame holds its values. It has not if a layer responds
 * itself, if the router has no route, or if the client resets a stream of HTTP/2 early. For options.ended.
 * Threads: the loop's. Progress: wait-free.
 */
BIDE_INLINE bool bide_http_handler_began(const bide_http_exchange *exchange)
{
    return exchange->is_chosen && bide_frame_point(&exchange->task.frame)->state != BIDE_AT_START;
}

/*
 * The client's address as text, without a port; "-" if it is not known. A caller of
 * bide_http_serve may write it into connection->peer itself.
 * Threads: the loop's. Progress: that of a system call, once in a connection.
 */
const char *bide_http_peer(bide_http_exchange *exchange);

/*
 * Passes an incident to options.incident, if that is set. Servers do this themselves; this is for failures that they do
 * not see, such as a TLS handshake's.
 * Threads: the loop's. Progress: that of options.incident.
 */
BIDE_INLINE void bide_http_report_incident(bide_http_server *server,
                                           const bide_http_incident *incident)
{
    if (server->options.incident != NULL)
        server->options.incident(server, incident);
}

/* ---- Another protocol ---- */

enum { BIDE_HTTP_UPGRADE_TEXT = 256 }; /* bytes of each text of a request that stay after an upgrade */

/*
 * Changes to another protocol: sends "101 Switching Protocols" with "Upgrade: `protocol`" and the fields
 * that were added, or, of CONNECT, with NULL for `protocol`, 200. When it has ended with 0 the connection
 * is the handler's: bide_http_reader has what came behind the request, bide_http_writer goes to the
 * client, and the deadlines are off. When the handler ends, the connection does, after what was written
 * is flushed by the handler. The first BIDE_HTTP_UPGRADE_TEXT bytes of the method, of the target, and of
 * "Referer" and "User-Agent" stay, for logs, as far as the memory of the request's fields has room
 * (options.max_fields). With fewer than 16 fields only the method and the target stay. The other texts
 * are gone.
 * Threads: the loop's. Errors: -EINVAL (the client has asked for no upgrade, its body was not read, or a
 * response has begun), -EMSGSIZE (the head does not fit), -ECANCELED, -ETIMEDOUT, those of the stream.
 * Suspends: if the client is slow. Cancel-safe: no, the connection ends after it. Progress: that of the
 * stream.
 */
BIDE_KEY_SCOPED(bide_http_stream);
BIDE_MUST_AWAIT
bide_awaiter *bide_http_upgrade(bide_http_exchange *exchange, const char *protocol);

/*
 * The connection's reader and writer, after an upgrade; and its stream.
 * Threads: the loop's. Progress: wait-free.
 */
BIDE_INLINE bide_reader *bide_http_reader(bide_http_exchange *exchange)
{
    return &exchange->connection->reader;
}

BIDE_INLINE bide_writer *bide_http_writer(bide_http_exchange *exchange)
{
    return &exchange->connection->writer;
}

BIDE_INLINE bide_stream bide_http_stream(const bide_http_exchange *exchange)
{
    return exchange->connection->stream;
}

/*
 * Why it is correct: src/http/server.c.
 */

/*
 * Clients that leave. While a handler waits for something else than its client, the server reads from the
 * connection. If that fails, or if the input ends, the client has left: the handler is cancelled, its
 * exchange ends with -ECONNRESET and is logged with status 499, and the connection ends. Bytes of later requests stay
 * in the connection's buffer. This begins when the request's body has been read, or is buffered to its
 * end; it pauses while the buffer is full. Requests that ask for an upgrade, and CONNECT, are not watched.
 * With HTTP/2 the same holds for a client that resets a stream, or ends its connection before the response has ended.
 * If a bide_http_read finds that the client has left, the exchange ends with the error of the read, also with status 499.
 *
 * A client that has ended only its output (shutdown(2) with SHUT_WR) and waits for the response looks like
 * one that has left. By default it counts as one that has left, as it has for nginx and Go's
 * net/http. It still receives the response of a handler that does not wait, or that completes in spite of
 * its cancellation. With options.allows_half_close, or bide_http_set_half_close for one exchange, the
 * handler runs on at the end of the input, and only an error of the connection cancels it.
 *
 * The end of a connection. After the last response, further input would make the system reset the connection,
 * and the client might lose the response. So the output is ended first, and up to `max_body` bytes of input
 * are dropped, until the client ends its output, pauses for `linger_timeout`, or has taken
 * `body_idle_timeout` in all. With HTTP/2 the same holds for the body of a request that was answered early;
 * then its stream is reset.
 *
 * Errors. If a handler ends with an error before it has sent anything, the response reports it:
 * -ENOENT is 404, -EACCES and -EPERM 403; of a handler that requests from other servers -EREMOTEIO is 502,
 * -EHOSTDOWN 503, -ETIMEDOUT 504; -ENOMEM, -ENOBUFS, -EMFILE and -ENFILE are 503; all others are 500.
 * -EBADMSG (400), -EFBIG (413) and -EMSGSIZE (431) blame the client only if bide_http_read has returned
 * them. A response that is complete stays: one of bide_http_respond, or whose announced length was written.
 * So a handler may respond with a status of its choice, and end with its error, which options.ended receives.
 *
 * The server rejects these requests itself, and then closes the connection:
 *
 *     400  ambiguous requests: two lengths, lines that do not end with "\r\n", folded lines, malformed
 *          chunks, "Host" missing or twice, and everything that is not HTTP
 *     408  a request that is too slow      413  a body that is too long      414  a long target
 *     417  an expectation but "100-continue"   431  a head that is too long, or has too many fields
 *     501  an unknown method or coding         505  another version than 1.0 and 1.1
 *
 * Memory. A connection has all its memory from the beginning: buffers, fields, and the frame of one
 * handler. A request allocates nothing. A small response leaves in one system call, with its head.
 */

BIDE_EXTERN_C_END

#endif

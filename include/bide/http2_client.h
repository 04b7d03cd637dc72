/*
 * An HTTP/2 client: many requests at a time over one connection, which is any stream. Implemented with
 * libnghttp2, in bide-http2. Floor: http2.
 *
 *     bide_http2_client_init(&client, bide_socket_stream(&socket), NULL);
 *     ... bide_http2_client_run(&client) in a coroutine of its own, until the connection ends ...
 *
 *     if ((status = bide_http2_request_init(&self->request, client, "GET", "/", "example.org")) < 0)
 *         bide_return(status);
 *     bide_http2_request_add(&self->request, "accept", "text/html");
 *     bide_try(bide_http2_request_recv(&self->request));
 *     ... self->request.response.status ...
 *     do {
 *         bide_try(bide_http2_request_read(&self->request, self->buffer, sizeof self->buffer));
 *         ... self->request.count bytes in self->buffer ...
 *     } while (self->request.count != 0);
 *     bide_finally();
 *     bide_http2_request_close(&self->request);           // in every case
 *     bide_end();
 *
 *     closed --init--> head --(write)--> body --recv--> response --close--> closed
 *
 * With TLS the protocols of the config are bide_http2_protocols, and bide_tls_protocol says whether
 * the server has chosen "h2". Without TLS the server must be known to speak HTTP/2 ("prior
 * knowledge"). http_agent_http2.h does all of this for the agent of http_agent.h.
 *
 * A client and its requests belong to one loop. Requests are independent of each other: closing one
 * before its response has ended resets its stream and no other. A response that is not read fills its
 * own window, and holds back no other. If the server allows no further stream, requests wait in line.
 *
 * A request that ends with -ECONNREFUSED was not processed by the server, and may be sent again,
 * whatever its method: on this connection if bide_http2_client_is_usable, otherwise on another. After
 * -EPROTONOSUPPORT it may be sent again by HTTP/1.1. Unless its method is idempotent, request->response.status must be 0
 * or 100 then: after another status of 1xx the server may have begun to process it. A 100 behind that one does not
 * replace the status.
 *
 * Operations have no deadlines of their own: use bide_with_deadline, then close the request. "Limits"
 * are below.
 */
#ifndef BIDE_HTTP2_CLIENT_H
#define BIDE_HTTP2_CLIENT_H

#include "bide/auto_event.h"
#include "bide/deadline.h"
#include "bide/detail/beside.h"
#include "bide/http_client.h"
#include "bide/scope.h"
#include "bide/single_consumer_event.h"

BIDE_EXTERN_C_BEGIN

/* Options of a client. Zeros are the defaults. Times are in nanoseconds. */
typedef struct bide_http2_client_options {
    bool is_secure;       /* the stream is TLS: ":scheme" is "https" */
    bool keeps_delay;     /* TCP_NODELAY of a socket stays as it is. False: it is set */
    uint32_t max_streams; /* requests at a time, if the server allows as many. 0: 100 */
    uint32_t window;      /* bytes of a response that may come before they are read. 0: 65535 */
    uint32_t connection_window; /* of all responses, on their way. 0: 1 MiB; 65535 at least */
    size_t max_unread;          /* bytes of all responses that hold back no other one. 0: 16 MiB */
    size_t max_fields;          /* of a response, with its trailers. 0: 64 */
    size_t max_head;   /* bytes of the texts of a request's or a response's fields. 0: 8192 */
    uint64_t max_body; /* bytes of a response; a tunnel has no limit. 0: no limit */
    uint32_t max_idle_frames; /* that may come without a response, or a part of one. 0: 1000 */
    uint64_t ping_after;      /* without input, a PING is sent. 0: 30 s; BIDE_FOREVER: never */
    uint64_t
        ping_timeout; /* without input after a PING, the connection ends, 0.1 s later: input in the socket counts. 0: 15 s; BIDE_FOREVER: never */
    uint64_t idle_timeout; /* without requests, the connection ends. 0: it stays */
} bide_http2_client_options;

typedef struct bide_http2_client bide_http2_client;
typedef struct bide_http2_request bide_http2_request;

/* The frames that come, and the budget of those without a use. Of the library. */
typedef struct bide_http2_frames_ {
    uint64_t earned; /* by useful frames; not yet in `left` */
    size_t payload;  /* bytes of the current frame's payload that have not come */
    size_t head_size;
    uint32_t left;
    unsigned char head[9]; /* of the next frame; the first head_size bytes of it have come */
} bide_http2_frames_;

/* Received bytes of a body. Of the library. */
typedef struct bide_http2_ring_ {
    char *data; /* or NULL */
    size_t size;
    size_t begin;
    size_t count;
    size_t opened; /* bytes whose part of the connection's window was opened when they came */
} bide_http2_ring_;

/* A list of requests. Of the library. */
typedef struct bide_http2_requests_ {
    bide_http2_request *first;
    bide_http2_request *last;
    size_t count;
    size_t extended; /* of them: for another protocol */
} bide_http2_requests_;

/* A coroutine of a connection. Of the library. */
typedef struct bide_http2_client_task_ {
    bide_task task;
    bide_http2_client *client;
    bide_branch branch;
    bide_stream_operation operation;
    bide_auto_event_waiter wait;
    bide_with_deadline_operation limited;
    int status;
} bide_http2_client_task_;

/* One connection. The caller's memory until it is destroyed. */
struct bide_http2_client {
    bide_stream stream;
    int status; /* why the connection has ended: 0, or a negative errno */

    /* of the library */
    bide_http2_client_options options;
    struct nghttp2_session *session;
    bide_http2_requests_ waiting; /* for a stream, in order */
    bide_http2_requests_ active;  /* have a stream */
    size_t open;                  /* requests between init and close */
    size_t unread; /* bytes in rings, whose part of the connection's window was opened */
    size_t block;  /* bytes of fields that came in the current head */
    bide_http2_frames_ frames;
    uint64_t input_at;      /* when bytes came last */
    uint64_t ping_deadline; /* BIDE_FOREVER: no PING is under way */
    uint64_t idle_since;    /* BIDE_FOREVER: there are requests */
    int error;              /* the connection has failed */
    int refusal;            /* of requests that the server has not processed */
    bool is_running;
    bool has_ended;
    bool is_going_away; /* takes no more requests */
    bool refuses;       /* has no more streams for requests that were begun */
    bool is_ending;     /* it has failed, and its requests have ended */
    bool has_settings;  /* the server's first ones have come */
    bool is_doubted;    /* no request gets a stream until something arrives; a PING asks for that */
    uint8_t looks;      /* at input that may lie in the socket, since the PING's deadline */
    uint32_t awaited_pongs;            /* the watcher's PINGs that are not answered yet */
    void (*on_answer)(void *argument); /* bytes have ended a doubt, and it is usable; or NULL */
    void *on_answer_argument;
    char *input;
    char *output;
    size_t output_size;
    const uint8_t *pending; /* output of nghttp2 that did not fit */
    size_t pending_size;
    bide_auto_event output_needed;
    bide_auto_event nudge; /* of the watcher */
    bide_scope io;
    bide_task runner;
    bide_awaiter refused; /* a second run */
    bide_http2_client_task_ reader, writer, watcher;
};

/* A wait of a request. Of the library. */
typedef struct bide_http2_waiting_ {
    bide_task task;
    bide_http2_request *request;
    bide_single_consumer_auto_event_waiter wait;
    char *data;
    const char *source;
    size_t size;
    int status;
    bool is_for_continue;
} bide_http2_waiting_;

/* One request and its response. The caller's memory until it is closed. */
struct bide_http2_request {
    bide_http_response
        response;   /* its texts stay until the request is closed. `minor` and `reason` are empty */
    size_t count;   /* bytes that the last read has read; 0: the body has ended */
    bool continues; /* bide_http2_request_continue: the body is wanted */

    /*
     * May be set after bide_http2_request_init; NULL: responses with a status of 1xx are skipped. It is called for each
     * of them, such as 103 (Early Hints): request->response is that response until the call returns. It may read fields,
     * and calls no other function of the client or of a request.
     */
    void (*on_informational)(bide_http2_request *request);

    /* of the library */
    bide_http2_client *client;
    bide_http2_request *next;
    bide_http2_request *previous;
    uint8_t state;
    int32_t id;
    uint64_t started_at; /* when it got its stream; BIDE_FOREVER: it has had none */
    int error;           /* why the stream has ended before its time; or 0 */
    bool is_head;
    bool has_no_content;
    bool is_sent;     /* its head was */
    bool was_reset;   /* by the server */
    bool is_finished; /* its body is complete */
    bool has_response;
    bool input_ended;
    bool is_tunnel;
    bool is_extended; /* a tunnel of another protocol */
    unsigned interim_count; /* responses of 1xx */
    int informational;      /* the status of the last one but 100; 0: none */
    char *memory;           /* of the response's fields, and of texts */
    void *pairs;            /* the request's fields, until it is submitted */
    size_t max_pairs;
    size_t field_count;
    size_t trailer_count; /* of the response */
    size_t text_size;
    uint64_t length;    /* of the request's body */
    uint64_t written;   /* of it */
    const char *source; /* what nghttp2 is to take of the body */
    size_t left;
    char *trailers; /* of the request, or NULL */
    size_t trailers_size;
    size_t sent_trailers;
    bide_http2_ring_ ring; /* of the response's body */
    uint64_t taken;        /* bytes of the response's body that came */
    bide_single_consumer_auto_event readable;
    bide_single_consumer_auto_event writable;
    bide_http2_waiting_ reading, writing;
};

/* ---- Connections ---- */

/*
 * Makes a client of a stream that is connected, and stays the caller's. `options` is copied; NULL: all 0.
 * Also a macro, so that the linker names bide-http2 if it is missing.
 * Threads: before it is shared. Errors: -EINVAL (a window is too large or too small, or there are fewer
 * than 8 fields or 256 bytes), -ENOMEM. Progress: blocks for a moment at most.
 */
int bide_http2_client_init(bide_http2_client *client, bide_stream stream,
                           const bide_http2_client_options *options);
#define bide_http2_client_init(...) \
    BIDE_BESIDE_(bide_link_with_lbide_http2_, bide_http2_client_init(__VA_ARGS__))

/*
 * Frees what a client has allocated. Its requests are closed, and it does not run; otherwise it is
 * misuse, which ends the program. The stream stays open.
 * Threads: the loop's. Progress: blocks for a moment at most.
 */
void bide_http2_client_destroy(bide_http2_client *client);

/*
 * Runs the connection until it ends, once. It ends with 0 after bide_http2_client_shut_down, after
 * options.idle_timeout and after a GOAWAY without an error, when the last request is closed; also if the
 * server closes a connection without requests. Then all requests that have not ended do so: with the
 * error of this, with -EPIPE (no response came) or -ENODATA (a part of one), or with -ECONNREFUSED
 * (nothing was sent).
 * A run that is destroyed before it begins, such as one that waits for room in a scope, has done nothing: requests go on
 * waiting, and it may be called again.
 * Threads: the loop's. Errors: -ENODATA (the server has closed a connection with requests), -EBADMSG (the
 * server has violated the protocol, or sends without end what no request asked for), -ECONNABORTED (the
 * server has ended the connection with an error), -ETIMEDOUT (a PING was not answered), -EINVAL (it
 * runs, or has run), -ECANCELED, -ENOMEM, those of the stream. Suspends: if the connection has not ended.
 * Cancel-safe: no, requests end. Progress: that of the stream.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_http2_client_run(bide_http2_client *client);

/*
 * Takes no more requests, and ends the connection when the requests that were begun are closed.
 * More than once is once.
 * Threads: the loop's. Suspends: never. Progress: wait-free.
 */
void bide_http2_client_shut_down(bide_http2_client *client);

/*
 * May a request begin? If not, the connection has ended, or will end after its requests.
 * Threads: the loop's. Progress: wait-free.
 */
bool bide_http2_client_is_usable(const bide_http2_client *client);

/* ---- Requests ---- */

/*
 * Begins a request: ":method", ":path" and ":authority", which are copied. After an error the request
 * is closed.
 * For the method CONNECT, target and authority are both "host:port": see bide_http2_request_stream.
 * Threads: the loop's. Errors: -EINVAL (they are not allowed there), -EMSGSIZE
 * (they are too long), -EPIPE (the client takes no more), -ENOMEM. Progress: wait-free, but for the
 * allocator.
 */
int bide_http2_request_init(bide_http2_request *request, bide_http2_client *client,
                            const char *method, const char *target, const char *authority);

/*
 * Begins a request for another protocol, such as "websocket", over its stream (the extended CONNECT of RFC 8441):
 * ":protocol", ":path" and ":authority", which are copied. It is a tunnel, like a request with the method CONNECT: see
 * bide_http2_request_stream. It is sent when the server's settings have come and allow it
 * (SETTINGS_ENABLE_CONNECT_PROTOCOL); otherwise it ends with -EPROTONOSUPPORT. Requests behind it do not wait for that.
 * http2_websocket.h opens a WebSocket by it.
 * Threads: the loop's. Errors: as bide_http2_request_init. Progress: wait-free, but for the allocator.
 */
int bide_http2_request_init_protocol(bide_http2_request *request, bide_http2_client *client,
                                     const char *protocol, const char *target,
                                     const char *authority);

/*
 * Adds a field to the request's head; its name becomes lower-case, and blanks at the value's ends are left out. Not
 * the fields that the library adds itself ("Host", "Content-Length"), nor those of HTTP/1.1's connections
 * ("Connection", "Upgrade", "Transfer-Encoding", "Keep-Alive", "Proxy-Connection", "TE").
 * Threads: the loop's. Errors: -EINVAL (it is not allowed in a head, or the head is at its end),
 * -EMSGSIZE (it does not fit), -ENOMEM. Progress: wait-free, but for the allocator.
 */
int bide_http2_request_add(bide_http2_request *request, const char *name, const char *value);

/*
 * Ends the head of a request whose body has `length` bytes; BIDE_HTTP_UNKNOWN: it has as many as are
 * written. The first write does this, with BIDE_HTTP_UNKNOWN, if nobody has, and receive for a request
 * without a body. A tunnel has no other length than BIDE_HTTP_UNKNOWN.
 * Threads: the loop's. Errors: -EINVAL (it has ended, or a tunnel has a length), -EMSGSIZE (it does not fit), -ENOMEM.
 * Progress: wait-free, but for the allocator.
 */
int bide_http2_request_finish_head(bide_http2_request *request, uint64_t length);

/*
 * Ends the head, and has `data` sent as the whole body, while the response is received. It stays where
 * it is until the request is closed.
 * Threads: the loop's. Errors: as bide_http2_request_finish_head. Progress: wait-free.
 */
int bide_http2_request_set_body(bide_http2_request *request, const void *data, size_t size);

/*
 * Writes bytes of the request's body, which stay until it has ended. One at a time. A server may
 * wait for its response to be read before it reads more; bide_http2_request_set_body does not wait for it.
 * Threads: the loop's. Errors: -EMSGSIZE (more than was promised), -EINVAL (the body has ended), -EPIPE
 * (the response has ended: no more is wanted; -EINVAL also: a tunnel that is not open), those of
 * bide_http2_request_recv: a response may be there all the same. Suspends: if a window is full, the server is slow,
 * or the request waits for a stream. Cancel-safe: no, the stream is reset. Progress: that of
 * the stream.
 */
BIDE_KEY_SCOPED(bide_http2_request_field);
BIDE_MUST_AWAIT
bide_awaiter *bide_http2_request_write(bide_http2_request *request, const void *data, size_t size);

/*
 * Adds a trailer to a request whose head has ended, and whose body has not.
 * Threads: the loop's. Errors: -EINVAL (that is not so, or it is not allowed in a trailer),
 * -EMSGSIZE (it does not fit), -ENOMEM. Progress: blocks for a moment at most.
 */
int bide_http2_request_add_trailer(bide_http2_request *request, const char *name,
                                   const char *value);

/*
 * Ends the head, which has "expect: 100-continue" among its fields, and waits for the server to want
 * the body: then request->continues is true. If it is false the response is there.
 * Threads: the loop's. Errors: as bide_http2_request_recv. Suspends: if the server has not answered.
 * Cancel-safe: yes. Progress: that of the stream.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_http2_request_continue(bide_http2_request *request);

/*
 * Ends the request and waits for the response's head, which is request->response then. Responses with
 * a status of 1xx are skipped (request->on_informational). A request for a tunnel has no end yet.
 * Threads: the loop's. Errors: -ECONNREFUSED (not processed: it may be sent again), -EBADMSG (the
 * response violates the protocol, or there were more than 32 of 1xx), -EMSGSIZE (its head is too long, or has too many
 * fields), -EFBIG (its body would be longer than it may be), -ECONNRESET (the server has reset the
 * stream), -EPROTONOSUPPORT (the server requires HTTP/1.1: it has reset the stream with HTTP_1_1_REQUIRED, or a
 * GOAWAY with that code says that it has not processed the request; or it does not allow another protocol), -EPIPE (the connection has ended),
 * -EINVAL (less was written than promised), -ECANCELED, -ETIMEDOUT, -ENOMEM, those of
 * bide_http2_client_run. Suspends: if the server has not answered. Cancel-safe: yes, it may be waited
 * for again. Progress: that of the stream.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_http2_request_recv(bide_http2_request *request);

/*
 * Reads what there is of the response's body, at least one byte and at most `size`, 1 or more;
 * request->count says how many bytes, 0 at the end.
 * Threads: the loop's. Errors: those of bide_http2_request_recv; -EINVAL (no response was received), -EFBIG (longer
 * than it may be), -ENODATA (the connection has ended before). Suspends: if nothing is buffered.
 * Cancel-safe: yes, by `count`. Progress: that of the stream.
 */
BIDE_KEY_SCOPED(bide_http2_request_field);
BIDE_MUST_AWAIT
bide_awaiter *bide_http2_request_read(bide_http2_request *request, void *data, size_t size);

/*
 * The value of the first field of the response of that name, and of the trailers, which are there when
 * the body has ended; its data is NULL if there is none.
 * Threads: the loop's. Progress: wait-free, linear in the fields.
 */
bide_slice bide_http2_request_field(const bide_http2_request *request, const char *name);
bide_slice bide_http2_request_trailer(const bide_http2_request *request, const char *name);

/*
 * A stream over a tunnel, whose request has the method CONNECT and whose response is 2xx; a write before that ends with
 * -EINVAL. A write that is cancelled before its bytes are taken resets the HTTP/2 stream. Its bytes are those of
 * bide_http2_request_read and bide_http2_request_write, which may be used as well. The end of its output ends the
 * request, and the other direction stays open. Closing it resets the HTTP/2 stream, which ends what waits with -EPIPE,
 * and leaves the request to bide_http2_request_close. The request stays until then.
 * Threads: any. Progress: wait-free.
 */
bide_stream bide_http2_request_stream(bide_http2_request *request);

/*
 * Ends the request: if it or its response has not ended, the stream is reset. A request that is closed, or zeros, is
 * left as it is. Nothing of it may be awaited.
 * Threads: the loop's. Suspends: never. Progress: blocks for a moment at most.
 */
void bide_http2_request_close(bide_http2_request *request);

/*
 * Limits. A connection allocates 50 KB and nghttp2's session; a request its fields, and up to `window` bytes for
 * a body. The memory and work that a server can cause are bounded: heads (max_fields, max_head),
 * bodies that are not read (`window` for each), frames without a use (max_idle_frames), fields of
 * heads that are not kept. Push is switched off, and pushed streams are reset.
 *
 * The window of a stream opens when its body is read. The connection's opens when bytes arrive, up to
 * `max_unread` bytes of all responses, beyond that when they are read.
 *
 * Why it is correct: src/http2/client.c.
 *
 * Source: RFC 9113.
 */

BIDE_EXTERN_C_END

#endif

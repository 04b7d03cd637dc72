/*
 * An HTTP client in one call: it resolves names, keeps connections for reuse, follows redirects,
 * decompresses bodies, and uses the environment's proxies. Floor: http.
 *
 *     bide_http_agent_create(&agent, NULL);               // once, for all requests of a loop
 *
 *     bide_try(bide_http_get(&self->fetch, agent, "http://example.org/", self->page,
 *                            sizeof self->page));
 *     ... self->fetch.response.status, self->fetch.count bytes in self->page ...
 *
 * Or with fields, a body, and a response in pieces:
 *
 *     if ((status = bide_http_fetch_init(&self->fetch, agent, "PUT", url)) < 0)
 *         bide_return(status);
 *     bide_http_fetch_add(&self->fetch, "Content-Type", "text/plain");
 *     bide_http_fetch_set_body(&self->fetch, self->text, self->text_size);
 *     bide_try(bide_http_fetch_send(&self->fetch));
 *     ... self->fetch.response.status, bide_http_fetch_field(&self->fetch, "ETag") ...
 *     do {
 *         bide_try(bide_http_fetch_read(&self->fetch, self->buffer, sizeof self->buffer));
 *         ... self->fetch.count bytes in self->buffer ...
 *     } while (self->fetch.count != 0);
 *     bide_finally();
 *     bide_http_fetch_close(&self->fetch);                // in every case, after bide_http_fetch_init
 *     bide_end();
 *
 * A body that is not in memory is written in pieces:
 *
 *     bide_try(bide_http_fetch_start(&self->fetch, self->size)); // or BIDE_HTTP_UNKNOWN
 *     do {
 *         ... self->count bytes in self->buffer ...
 *         bide_try(bide_http_fetch_write(&self->fetch, self->buffer, self->count));
 *     } while (self->fetch.count != 0 && ...);
 *     bide_try(bide_http_fetch_send(&self->fetch));
 *
 *     closed --init--> ready --(start)--> started --send--> sent --close--> closed
 *
 * An agent has a pool of connections for each origin: scheme, host, port and version. A connection returns to its
 * pool only if its response has been read to the end; otherwise it is closed. So is the connection of a
 * request that was cancelled.
 *
 * An agent and its fetches belong to one loop, and run on that loop's thread. An agent is on the heap,
 * as are its connections, some 35 KB each, and a decoder for each compressed body: of 40 KB, or, for "br", up to 16 MB. A fetch is the
 * caller's memory, 12 KB. Opening a connection and waiting for a response may have limits of time
 * (connect_timeout, response_timeout). Other operations have none: use bide_with_deadline.
 *
 * "https" needs TLS: bide/http_agent_tls.h. HTTP/2 needs bide/http_agent_http2.h. An upgrade needs
 * http_client.h.
 *
 * "Rules" are below. Why it is correct: src/http/agent.c.
 */
#ifndef BIDE_HTTP_AGENT_H
#define BIDE_HTTP_AGENT_H

#include "bide/connection_pool.h"
#include "bide/detail/beside.h"
#include "bide/file.h"
#include "bide/http_client.h"
#include "bide/http_cookies.h"
#include "bide/http_url.h"
#include "bide/mutex.h"
#include "bide/names.h"
#include "bide/with_stop.h"

BIDE_EXTERN_C_BEGIN

typedef struct bide_http_agent bide_http_agent;

/* The versions of HTTP that a request may use: "Versions" below. */
typedef enum bide_http_version {
    BIDE_HTTP_VERSION_ANY, /* HTTP/2 if the server chooses it by ALPN; otherwise HTTP/1.1 */
    BIDE_HTTP_VERSION_1,   /* HTTP/1.1 alone */
    BIDE_HTTP_VERSION_2    /* HTTP/2 alone: for "http", by prior knowledge */
} bide_http_version;

/* Options of an agent. Zeros are the defaults. */
typedef struct bide_http_agent_options {
    bide_names *names;      /* looks names up, and stays. NULL: the agent's own, by the system */
    size_t max_connections; /* to each origin; further requests wait in line. 0: 8 */
    size_t max_origins;     /* whose pools are kept while no request uses them. 0: 32 */
    uint64_t idle_timeout;  /* nanoseconds that an unused connection is kept. 0: 30 s */
    uint64_t
        connect_timeout; /* nanoseconds to open a connection, with its tunnel and TLS. 0: no limit */
    uint64_t
        response_timeout; /* nanoseconds from having a connection, or a stream of one, to the response. 0: no limit */
    unsigned max_redirects;   /* 0: 10 */
    bool follows_none;        /* A redirect is a response like another. */
    bool allows_downgrade;    /* Redirects from "https" to "http" are followed. */
    bool decodes_none;        /* Bodies are as they were sent, and no coding is asked for. */
    bool ignores_environment; /* No proxy is taken from the environment. */
    const char *proxy; /* for every request, "http://user:password@host:port"; copied. NULL: none */
    bide_http_cookies *cookies; /* kept and sent, and stays. NULL: none */
    size_t max_fields;          /* of a response, with its trailers. 0: 64 */
    size_t max_head;            /* bytes of a response's head. 0: 8192; at least 1024 */
    uint32_t
        http2_window; /* bytes of a response by HTTP/2 that may come before they are read. 0: 65535 */
    uint64_t
        max_body; /* bytes of a response's body, decoded. 0: 1 GB; BIDE_HTTP_UNKNOWN: no limit */
    bide_http_version version; /* of requests that set no other one. 0: any */
    uint64_t
        continue_timeout; /* nanoseconds that bide_http_fetch_start waits for the server to want a body. 0: 1 s */
} bide_http_agent_options;

enum {
    BIDE_HTTP_FETCH_URL = 4096,    /* bytes of a URL, with its zero */
    BIDE_HTTP_FETCH_FIELDS = 1024, /* bytes of the names and values of a request's fields */
    BIDE_HTTP_FETCH_METHOD = 24
};

/* Opens a connection. Of a fetch. */
typedef struct bide_http_connecting_ {
    bide_task task;
    struct bide_http_origin_ *origin;
    bide_pooled_connection *pooled;
    struct bide_http_link_ *link;
    bide_with_deadline_operation limited;
    bool is_limited; /* `limited` was used */
    int status;
    const char *reason;
} bide_http_connecting_;

/* Starts a request, writes its body, or sends a file. Of a fetch. */
typedef struct bide_http_uploading_ {
    bide_task task;
    struct bide_http_fetch *fetch;
    const void *data;
    size_t size;
    bide_file_operation reading;
    struct stat about;
    char *piece; /* of a file */
    uint64_t length, sent;
} bide_http_uploading_;

/* Chooses a connection. Of a fetch. */
typedef struct bide_http_choosing_ {
    bide_task task;
    struct bide_http_fetch *fetch;
    bool is_watching; /* it is in its origin's list, and `answer` is initialised */
    bool is_answered;
    bide_stop_source answer; /* asked to stop when a doubted connection has answered */
    bide_with_stop_operation until_answer;
    struct bide_http_choosing_ *next;
    struct bide_http_choosing_ **before;
} bide_http_choosing_;

/* Gets all of a URL. Of a fetch. */
typedef struct bide_http_getting_ {
    bide_task task;
    struct bide_http_fetch *fetch;
    bide_http_agent *agent;
    const char *url;
    char *body;
    size_t size;
    size_t got;
    int status;
    char beyond;
} bide_http_getting_;

/* One request and its response. The caller's memory until it is closed. */
typedef struct bide_http_fetch {
    bide_task task;              /* of the library */
    bide_http_response response; /* its texts stay until the fetch is closed */
    size_t
        count; /* bytes that the last read has read, or all of bide_http_get; 0: the end. Of a write: see there */
    unsigned redirects; /* that were followed */
    bool is_decoded;    /* the body was compressed, and is read as it was before */
    bool is_http2;      /* the response came by HTTP/2 */
    const char *
        reason; /* if TLS has failed or is missing, a version cannot be used, or a variable names no proxy: why, in words that stay; otherwise "" */
    char url[BIDE_HTTP_FETCH_URL]; /* of the last request: where the response comes from */

    bide_http_version
        version; /* may be set between bide_http_fetch_init, which takes the agent's, and bide_http_fetch_send */

    bool
        expects_continue; /* may be set before bide_http_fetch_start: it waits until the server wants the body */

    /*
     * May be set between bide_http_fetch_init and bide_http_fetch_send; NULL: responses with a status of 1xx are
     * skipped. It is called for each of them, such as 103 (Early Hints), also before a redirect, by either version of
     * HTTP: fetch->response is that response, and fetch->url where it comes from, until the call returns. It may
     * read fields, and calls no other function of the agent or of a fetch.
     */
    void (*on_informational)(struct bide_http_fetch *fetch);

    /* of the library */
    bide_http_agent *agent;
    bide_http_getting_ getting;
    uint8_t state;
    bool is_private; /* fields with credentials are sent: no redirect has left the origin */
    bool has_body;
    bool asks_coding;
    bool is_started;  /* by bide_http_fetch_start: it is not sent again */
    bool is_unwanted; /* the rest of its body is */
    int status;
    const char *body;
    bide_descriptor *file; /* that is its body; or NULL */
    uint64_t file_offset;
    uint64_t body_size;
    bide_http_uploading_ uploading;
    bide_http_url parsed; /* of `url` */
    struct bide_http_origin_ *origin;
    bide_pooled_connection *connection;
    bide_connection_acquire_operation taking;
    bide_http_connecting_ connecting;
    bide_http_choosing_ choosing;
    bide_with_deadline_operation limited;
    uint64_t until;                     /* of its response */
    uint64_t since;                     /* it waits for the server */
    struct bide_http_session_ *session; /* of HTTP/2; or NULL */
    void *request;                      /* on it */
    bide_mutex_waiter turn;             /* to open the origin's first connection */
    bool has_turn;
    bool was_used; /* the session, by other requests */
    unsigned failures;
    unsigned refusals;
    struct bide_http_decoder_ *decoder;
    bool raw_has_ended;
    bide_slice raw; /* bytes that are to be decoded */
    uint64_t decoded;
    char *out;
    size_t out_size;
    size_t fields_size;
    char method[BIDE_HTTP_FETCH_METHOD];
    char fields[BIDE_HTTP_FETCH_FIELDS]; /* names and values, each with a zero */
    char next[BIDE_HTTP_FETCH_URL];
} bide_http_fetch;

/*
 * Makes an agent and puts it in *agent. `options` is copied; NULL: all 0. It reads the environment: no
 * other thread may change that at the same time.
 * Only proxies of "http" are supported. An option may be too large for any memory.
 * Also a macro, so that the linker names bide-http if it is missing.
 * Threads: the loop's. Errors: -EINVAL (of the option `proxy` or `version`, or such an option), -EPROTONOSUPPORT (another proxy),
 * -EMSGSIZE (its URL is too long), -ENOTSUP (without llhttp), -ENOMEM, those of bide_names_create.
 * Progress: blocks for a moment at most.
 */
int bide_http_agent_create(bide_http_agent **agent, const bide_http_agent_options *options);
#define bide_http_agent_create(...) \
    BIDE_BESIDE_(bide_link_with_lbide_http_, bide_http_agent_create(__VA_ARGS__))

/*
 * Closes the connections and frees the agent; NULL: nothing. All of its fetches have been closed; otherwise
 * it is misuse, which ends the program.
 * Threads: the loop's. Progress: blocks for as long as bide_names_destroy.
 */
void bide_http_agent_destroy(bide_http_agent *agent);

/*
 * Begins a request of that method for a URL, without its fragment; both are copied. A URL with a user
 * is refused: credentials go in a field.
 * Threads: the loop's. Errors: -EINVAL (the URL is not one of "http" or "https", or has a user; the method is
 * no token, or is CONNECT), -EMSGSIZE (one is too long), -EPROTONOSUPPORT ("https", and the agent has no
 * TLS). After an error the fetch is closed. Progress: wait-free.
 */
int bide_http_fetch_init(bide_http_fetch *fetch, bide_http_agent *agent, const char *method,
                         const char *url);

/*
 * Adds a field to the request. Not the fields that the library adds itself ("Host", "Connection",
 * "Content-Length", "Transfer-Encoding", "Upgrade", "Expect", "TE", "Trailer") nor those for a proxy. With an
 * "Accept-Encoding" or a "Range" of the caller's, no coding is asked for, and bodies are not decoded.
 * Threads: the loop's. Errors: -EINVAL (the name or the value is invalid, the name is one of these, or the request is
 * sent), -EMSGSIZE (the fields are too long). Progress: wait-free.
 */
int bide_http_fetch_add(bide_http_fetch *fetch, const char *name, const char *value);

/*
 * Sets the request's body, which stays where it is until the fetch is closed: it may be sent again.
 * Threads: the loop's. Errors: -EINVAL (the request is sent). Progress: wait-free.
 */
int bide_http_fetch_set_body(bide_http_fetch *fetch, const void *data, size_t size);

/*
 * Sets `length` bytes of a file as the request's body, from `offset` on; BIDE_HTTP_UNKNOWN: up to the size that a regular
 * file has when the request is sent. The file stays open until the fetch is closed: it may be sent again. If it has become
 * shorter meanwhile, the request ends with -ENODATA, and the server does not get a whole one.
 * Threads: the loop's. Errors: -EINVAL (the request is sent). Progress: wait-free.
 */
int bide_http_fetch_set_file(bide_http_fetch *fetch, bide_descriptor *file, uint64_t offset,
                             uint64_t length);

/*
 * Connects, and starts a request whose body of `length` bytes is written in pieces; BIDE_HTTP_UNKNOWN: it has as many as
 * are written. With fetch->expects_continue, "Expect: 100-continue" is sent, and this waits for the server to want the body,
 * until continue_timeout has passed.
 * Such a request is never sent again. A redirect that would repeat its body is a response like another.
 * Threads: the loop's. Errors: -EINVAL (it was started or sent before, or has a body in memory), those of
 * bide_http_fetch_send. Suspends: if there is no connection, or the server is to want the body. Cancel-safe: no, as
 * bide_http_fetch_send. Progress: that of the network.
 */
BIDE_KEY_SCOPED(bide_http_fetch_write);
BIDE_MUST_AWAIT
bide_awaiter *bide_http_fetch_start(bide_http_fetch *fetch, uint64_t length);

/*
 * Sends bytes of the body of a request that was started, which stay until this has ended. fetch->count is `size` then;
 * 0: the server takes no more of the body. That is no error of this: bide_http_fetch_send ends with the response, if there
 * is one, or with the reason.
 * Threads: the loop's. Errors: -EINVAL (it was not started, or was sent), -EMSGSIZE (more than `length`). Suspends: if the
 * server is slow. Cancel-safe: no, the connection is closed, or the stream is reset. Progress: that of the network.
 */
BIDE_KEY_SCOPED(bide_http_fetch_field);
BIDE_MUST_AWAIT
bide_awaiter *bide_http_fetch_write(bide_http_fetch *fetch, const void *data, size_t size);

/*
 * Sends the request, or ends one that was started. Follows redirects, and receives the response's head, which is
 * fetch->response then.
 * Threads: the loop's. Errors: those of bide_connect_by_name, of bide_tls_connect, of bide_http_client_recv; -EINVAL
 * (it was sent before, its version is none, less was written than promised and no response came, or the size of its
 * file is not known), those of bide_stat and bide_read_at, -ENODATA (also: its file has become shorter), -ELOOP (too
 * many redirects), -EPERM (a redirect from "https" to "http"), -ETIMEDOUT (also: a timeout of the agent's options),
 * -EPROTONOSUPPORT (a redirect to "https", without TLS; or the server requires HTTP/1.1, and the TLS or `version` does
 * not allow that, or the request may not be repeated; or HTTP/2 alone is allowed, and the agent does not have it or
 * the server does not choose it), -EBADMSG (also: a redirect to what is no URL, or has a user), -ECONNREFUSED (also:
 * the proxy refuses the tunnel), -EMSGSIZE (also: a URL or the request's head is too long), -ENOMEM; -EINVAL,
 * -EPROTONOSUPPORT, -EMSGSIZE (also: the environment's proxy for this URL is not one; `reason` names the variable).
 * Suspends: if the server has not answered. Cancel-safe: no, the request may have been sent; the connection is closed.
 * Progress: that of the network.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_http_fetch_send(bide_http_fetch *fetch);

/*
 * Reads what there is of the response's body, decoded: at least one byte and at most `size`, 1 or more;
 * fetch->count says how many bytes, 0 at the end.
 * Threads: the loop's. Errors: those of bide_http_client_read; -EINVAL (nothing was sent, or decoding has
 * failed before), -EBADMSG (also: the compressed data is spoilt), -ENODATA (also: it has ended too
 * early), -EFBIG (longer than it may be), -ENOMEM. Suspends: if nothing is buffered. Cancel-safe: yes, by `count`.
 * Progress: that of the network.
 */
BIDE_KEY_SCOPED(bide_http_fetch_field);
BIDE_MUST_AWAIT
bide_awaiter *bide_http_fetch_read(bide_http_fetch *fetch, void *data, size_t size);

/*
 * The value of the first field of the response of that name; its data is NULL if there is none, and when the
 * fetch is closed.
 * Threads: the loop's. Progress: wait-free, linear in the fields.
 */
bide_slice bide_http_fetch_field(const bide_http_fetch *fetch, const char *name);

/*
 * The same of the trailers of the response, which are there when its body has ended.
 * Threads: the loop's. Progress: wait-free, linear in the trailers.
 */
bide_slice bide_http_fetch_trailer(const bide_http_fetch *fetch, const char *name);

/*
 * Ends the request. The connection returns to its pool if the response was read to its end, and is closed
 * otherwise. A fetch that is closed, or zeros, is left as it is. Nothing of it may be awaited.
 * Threads: the loop's. Progress: as bide_close.
 */
void bide_http_fetch_close(bide_http_fetch *fetch);

/*
 * Gets a URL, all of it in one call: fetch->response.status, and the body in `body`, of which fetch->count
 * says how many bytes. The fetch is closed then, however this ends; of the response, the fields and the phrase are
 * gone.
 * Threads: the loop's. Errors: those of bide_http_fetch_init, bide_http_fetch_send and
 * bide_http_fetch_read; -EMSGSIZE (also: the body is longer than `size`). Suspends: if the server has not
 * answered. Cancel-safe: no, the connection is closed. Progress: that of the network.
 */
BIDE_KEY_SCOPED(bide_http_fetch_field);
BIDE_MUST_AWAIT
bide_awaiter *bide_http_get(bide_http_fetch *fetch, bide_http_agent *agent, const char *url,
                            void *body, size_t size);

/* ---- TLS ---- */

/* How connections become secure. http_agent_tls.h has one for bide-tls; for authors of others. */
typedef struct bide_http_agent_tls {
    size_t size; /* bytes of memory for one connection, aligned as malloc's */

    /* Starts TLS over a stream; `name` is the server's, and stays. */
    bide_awaiter *(*connect)(void *memory, void *argument, bide_stream below, const char *name);

    /* The stream over it, once `connect` has ended with 0. */
    bide_stream (*stream)(void *memory);

    /* Closes it, and the stream below, at once, however `connect` has ended. */
    void (*close)(void *memory);

    /* Whether a read would end at once: such a connection is not used again. NULL: this is not asked. */
    bool (*has_input)(void *memory);

    /* The protocol that was negotiated, once `connect` has ended with 0; NULL: none. May be NULL: never. */
    const char *(*protocol)(void *memory);

    /* Why `connect` has failed, in words that stay. NULL: it is not known. */
    const char *(*reason)(void *memory);

    /*
     * As `connect`, but offers HTTP/1.1 alone, for a server that has required it. Ends with -EPROTONOSUPPORT if the
     * caller does not allow that protocol. NULL: requests to such a server end with -EPROTONOSUPPORT.
     */
    bide_awaiter *(*connect_http1)(void *memory, void *argument, bide_stream below,
                                   const char *name);
} bide_http_agent_tls;

/*
 * Sets how the agent's connections become secure, before its first request; table and argument stay.
 * Threads: the loop's. Progress: wait-free.
 */
void bide_http_agent_set_tls(bide_http_agent *agent, const bide_http_agent_tls *table,
                             void *argument);

/* ---- HTTP/2 ---- */

/* Options of a connection, as those of bide_http2_client. */
typedef struct bide_http_agent_http2_options {
    size_t max_fields;
    size_t max_head;
    uint64_t max_body;
    uint64_t idle_timeout;
    uint32_t window; /* 0: the default */
    bool is_secure;  /* the stream is TLS */
} bide_http_agent_http2_options;

/* How an agent speaks HTTP/2. http_agent_http2.h has one for bide-http2. Memory is aligned as malloc's. */
typedef struct bide_http_agent_http2 {
    size_t client_size;
    size_t request_size;
    int (*open)(void *client, bide_stream stream, const bide_http_agent_http2_options *options);
    bide_awaiter *(*run)(void *client); /* until the connection ends */
    bool (*is_usable)(const void *client);
    void (*destroy)(void *client);
    int (*start)(void *request, void *client, const char *method, const char *target,
                 const char *authority);
    int (*add)(void *request, const char *name, const char *value);
    int (*set_body)(void *request, const void *data, size_t size);

    /*
     * -ECONNREFUSED: it may be sent again. -EPROTONOSUPPORT: the same, by HTTP/1.1, unless the method is not idempotent
     * and the status of the response is of 1xx, but not 100. Cancel-safe.
     */
    bide_awaiter *(*recv)(void *request);
    bide_awaiter *(*read)(void *request, void *data, size_t size);
    const bide_http_response *(*response)(const void *request);
    size_t (*count)(const void *request);
    void (*close)(void *request);
    /* Has each response of 1xx reported before it is gone: `response` is that one. After `start`. NULL: never. */
    void (*set_informational)(void *request, void (*called)(void *argument), void *argument);

    /* When the request got its stream, by bide_now; BIDE_FOREVER: it waits for one. */
    uint64_t (*started_at)(const void *request);

    /*
     * A response, or a part of one, did not come in time. Asks the server for a sign of life. Until something arrives,
     * is_doubted is true, and no request is started.
     */
    void (*doubt)(void *client);
    bool (*is_doubted)(const void *client);

    /* When something arrived last, by bide_now, or when `run` began. */
    uint64_t (*heard_at)(const void *client);

    /*
     * `called` is called when something has arrived on a doubted connection, after the connection has taken it, if it
     * still takes requests then. It only wakes coroutines. NULL: requests that wait for another connection do not go
     * back to this one.
     */
    void (*set_answered)(void *client, void (*called)(void *argument), void *argument);

    /*
     * Bodies in pieces: as bide_http2_request_finish_head, bide_http2_request_write, bide_http2_request_continue with what
     * it has found out, and bide_http2_request_trailer. NULL, all of them: such requests end with -ENOTSUP, and there are
     * no trailers.
     */
    int (*finish_head)(void *request, uint64_t length);
    bide_awaiter *(*write)(void *request, const void *data, size_t size);
    bide_awaiter *(*wait_for_continue)(void *request);
    bool (*continues)(const void *request);
    bide_slice (*trailer)(const void *request, const char *name);
} bide_http_agent_http2;

/*
 * Has the agent use HTTP/2 with servers that choose "h2" by ALPN, and for requests of BIDE_HTTP_VERSION_2. Before its
 * first request; the table stays.
 * Threads: the loop's. Progress: wait-free.
 */
void bide_http_agent_set_http2(bide_http_agent *agent, const bide_http_agent_http2 *table);

/*
 * Rules
 *
 * Redirects (301, 302, 303, 307, 308 with a Location) are followed by these rules:
 *
 *     303               GET follows, or HEAD after HEAD, without the body and its fields ("Content-...")
 *     301, 302          the same after POST; other methods stay, with their body
 *     307, 308          method and body stay
 *     another origin    "Authorization" and "Cookie" are not sent, from then on. Other fields are:
 *                       put no secrets there
 *     https to http     not followed, unless allows_downgrade
 *
 * A jar's cookies (http_cookies.h) are sent by their own rules, unless the request has a "Cookie" of the caller's: at most
 * 3 KB of them.
 *
 * A body of a redirect of at most 64 KB is read, so that its connection can be used again. If it does not come before
 * response_timeout has passed, its connection is closed.
 *
 * Timeouts. Each connection has connect_timeout; a wait for another request's connection does not count. Each request,
 * also one that follows a redirect or is sent again, has response_timeout, with the time to send a body in memory. Other bodies are sent before. Requests that
 * wait for the same first connection share its timeout. Reading a body has no limit of the agent's. Neither has a wait
 * in line: for a connection (max_connections), or by HTTP/2 for a stream. A request gets one when the server allows one
 * more and has taken what was sent before on the connection. A server that takes nothing and sends nothing loses the
 * connection after 45 s, which ends these waits; one that takes nothing but sends does not. A deadline around
 * bide_http_fetch_send covers all of these.
 *
 * Retries. A server may close a connection that it has kept, while a request is on its way. If the
 * connection was used before, nothing of a response has come, and the method is idempotent (GET, HEAD,
 * OPTIONS, TRACE, PUT, DELETE), the request is sent again, on another connection. No other error is retried. A request
 * that bide_http_fetch_start has started is not.
 *
 * Versions. A response looks the same over HTTP/1.1 and HTTP/2, with three exceptions. By HTTP/2 the names of fields
 * are in lower case, and `minor` and `reason` are empty. Fields of a connection, such as "Transfer-Encoding", are of
 * HTTP/1.1 alone. A body that breaks off ends with -ECONNRESET by HTTP/2, and otherwise with -ENODATA or, over TLS,
 * -ECONNABORTED.
 * The option `version` of an agent, or of one fetch, says which of them is used. With BIDE_HTTP_VERSION_ANY, "http" is
 * HTTP/1.1, and the server chooses for "https". BIDE_HTTP_VERSION_1 does not offer HTTP/2. With BIDE_HTTP_VERSION_2,
 * "http" is HTTP/2 from the first byte on, which the server must be known to understand ("prior knowledge"): one that does
 * not answers with something other than HTTP/2, which is -EBADMSG, or closes the connection. For "https" the server must
 * choose "h2" by ALPN. A proxy speaks HTTP/1.1, so such a request of "http" goes through a tunnel (CONNECT). Each version
 * of an origin has a pool of its own, with max_connections.
 *
 * HTTP/2. Requests to an origin share one connection. While it is not known whether the server speaks HTTP/2, one
 * request opens a connection and the others wait for it: they share it, or its error, or open connections of
 * their own for HTTP/1.1. A request that the server has not processed is sent again, whatever its method, three
 * times at most.
 * A request that the server resets with HTTP_1_1_REQUIRED before a response is sent again by HTTP/1.1, whatever its
 * method. So is one that was not processed according to a GOAWAY with that code. There is one exception: after a response
 * of 1xx other than 100, such as 102 or 103, the server may have begun to process the request. If its method is not
 * idempotent, it ends with -EPROTONOSUPPORT then, and later requests go by HTTP/1.1. As long as the agent remembers the origin (max_origins), it is not asked for HTTP/2 any more then: new requests
 * use connections that offer HTTP/1.1 alone, and the others keep their connection until they end. These count for
 * max_connections: if they are as many, the request waits in line until one of them is closed. A coroutine that owns
 * the requests on all of them closes one first. If the TLS does not allow that protocol, as with a config that
 * offers "h2" alone, such a request ends with -EPROTONOSUPPORT, and other requests go by HTTP/2 as before.
 * A connection is doubted when a request on it reached response_timeout, or was cancelled, after nothing had come for a
 * second, for it or for any other request of the connection; after half of response_timeout if that was reached and is
 * shorter. If no other request uses it, it is closed with that request. Otherwise a PING is sent. Until something arrives
 * from the server, new requests use another connection, and the requests in progress go on. When something arrives,
 * requests that still wait for another connection use this one. If there may be no further connection, new requests wait
 * for the answer, or for the end of the connection: 15 s without an answer.
 *
 * Codings. If the library was built with zlib, "Accept-Encoding: gzip, deflate" is sent, and a body with one of
 * these codings is decoded; so is "br", if it was built with brotli. max_body bounds what a small body can become. Other codings are left to the caller.
 *
 * Proxies. http_proxy and https_proxy name a proxy, "http://user:password@host:port", for the URLs of either
 * scheme; no_proxy lists hosts without one ("*", addresses, and domains, which include those below them, each
 * with a port or without). Names in capitals count if the others are not set; HTTP_PROXY does not in a CGI
 * program, where it is a field of the request. "https" goes through a tunnel (CONNECT). If a variable names no proxy, the
 * requests that would use it fail, and no others. Programs that run
 * with more rights than their caller ignore all of these.
 *
 * Sources: RFC 9110, 8.4, 9.2.2 and 15.4; RFC 9112, 3.2.2 and 9.3.
 */

BIDE_EXTERN_C_END

#endif

/*
 * An HTTP client with pools of connections.
 *
 *     agent ---> origins, by scheme, host, port, proxy and version, the last used first
 *     origin --> connection pool (connection_pool.h); for each open connection a link
 *     link ----> memory of one connection: TLS, bide_http_client, its buffers
 *     fetch ---> one request: an origin while it is under way, and a connection of it, or a session
 *     session -> a connection that speaks HTTP/2, for all requests of its origin
 *
 * Everything runs on the loop's thread.
 *
 * Why it is correct:
 * 1. A link is made by the coroutine that opens its connection, and freed by the pool's `closing`, which is
 *    called once for each connection, also if opening it failed or was cancelled. So each open connection has
 *    one link, and nothing else owns it.
 * 2. A connection is given back as reusable only by bide_http_client_is_reusable: its response was read to its
 *    end, and nothing more is buffered, also not in TLS. The pool does not reuse one whose socket has bytes. A fetch
 *    that fails or is cancelled anywhere gives it back as not reusable, in `finally` or in bide_http_fetch_close.
 * 3. An origin stays while `users` fetches are between http_fetch_enter and http_fetch_leave. Only origins
 *    without users are removed, and none of their connections is taken then.
 * 4. A request that may have been processed is sent again only if its connection was used before, no byte of a response
 *    came, and the method is idempotent. Each of these tries closes a connection that was idle, and one that is new is
 *    not tried again, so it ends. By HTTP/2, a server may also say that it has not processed a request: at most three
 *    such refusals are followed by another try, whatever the method. So is HTTP_1_1_REQUIRED (11), which a server sends
 *    instead of an answer. But a response of 1xx other than 100 shows that the request may be in progress. Then only an
 *    idempotent request is tried again.
 * 5. `url` changes only when the new URL is complete in `next`. `parsed` points into `url`.
 * 6. A session has its connection from the pool until its coroutine ends, which is started and destroyed
 *    directly, as it outlives requests. Its memory is freed by its coroutine's final_suspend if no fetch uses it
 *    then, and otherwise by the last fetch that leaves it. An origin without users has no fetch in a session, so it
 *    may destroy its sessions.
 * 7. While it is not known that an origin speaks HTTP/1.1 alone, and there is no session, connections are opened
 *    by one fetch at a time, which has the turn. A fetch that waited for the turn while an attempt failed shares
 *    its error, also that of connect_timeout. An attempt that was cancelled, or ended by a deadline of its fetch's,
 *    is no failure: the next fetch tries. Before a fetch fails so, it looks for a session again: one that was doubted
 *    may have answered.
 * 8. A fetch that waited in vain doubts its session before it leaves. A doubted session starts no request until bytes
 *    have arrived, which ends the doubt, so a request that joins it waits in its line. Without users it is destroyed:
 *    nothing would be lost but the connection.
 * 9. A session has a connection of the pool exactly until has_ended. So with as many such sessions as the pool has
 *    connections, no fetch can open another one. With fewer, each other connection is being opened (7), or is of
 *    HTTP/1.1, or no one's. None of these waits for a doubted session, so a fetch that waits for the turn or for the
 *    pool does not either. pool.taken would also count the connection that the fetch itself has just opened.
 * 10. A fetch without a connection is in its origin's list if the origin can have sessions, and waits under a stop
 *    source of its own. This is so also while is_http1 is true: each new connection may speak either version. When a
 *    doubted session answers, or a connection becomes a session, that source is requested. Then the wait ends, and the
 *    fetch looks for a session again. Each source serves one such event, and the fetch looks before it waits under the
 *    next one, so none is missed.
 * 11. A server that has required HTTP/1.1 is not offered HTTP/2 again. No fetch enters a session of that origin any
 *    more. A session is destroyed when its last fetch leaves, so its connection serves the others. Fetches that wait for
 *    a connection look again, as in 10. One that has just got a connection of HTTP/2 closes it and takes another one.
 *    If no connection that offers HTTP/1.1 alone can be opened for lack of a protocol, this is forgotten: other requests
 *    to that origin may go by HTTP/2. An origin of BIDE_HTTP_VERSION_2 has no HTTP/1.1, so nothing of this applies to it.
 * 12. Without TLS, an origin has one version from the beginning: BIDE_HTTP_VERSION_ANY is BIDE_HTTP_VERSION_1 there. So
 *    agent->tls is used only for an origin with is_secure, which it has, or one whose version is any.
 * 13. A body in pieces is gone once it is written, so its request is sent once: there is no other try, and a redirect is
 *    followed only if it drops the body. A write that fails, other than by its caller, does not end the request: the server
 *    may have responded before it has read all of it. The next bide_http_fetch_send has that response, or the error.
 */
#define _GNU_SOURCE
#include "bide/http_agent.h"

#include "characters.h"
#include "decode.h"
#include "input.h"
#include "output.h"
#include "parse.h"
#include "proxies.h"

#include "bide/context_value.h"
#include "bide/coroutine.h"
#include "bide/handle.h"
#include "bide/platform.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    HTTP_AGENT_OUTPUT = 11264,  /* bytes of a connection's buffer of what goes out */
    HTTP_AGENT_RAW = 4096,      /* bytes that are read before they are decoded, or dropped */
    HTTP_AGENT_DRAINED = 65536, /* bytes of a redirect's body that are read */
    HTTP_AGENT_PIECE = 65536,   /* bytes of a file that are sent at a time */
    HTTP_AGENT_COOKIES = 3072,  /* bytes of a request's cookies */
    HTTP_AGENT_AUTHORITY = 320, /* a host and a port */
    HTTP_AGENT_ALIGN = 16
};

enum {
    HTTP_FETCH_CLOSED,
    HTTP_FETCH_READY,
    HTTP_FETCH_STARTED, /* its body is being written */
    HTTP_FETCH_SENDING,
    HTTP_FETCH_SENT,
    HTTP_FETCH_SPOILT /* its body could not be decoded */
};

typedef struct bide_http_origin_ http_origin;
typedef struct bide_http_link_ http_link;
typedef struct bide_http_session_ http_session;
typedef bide_http_choosing_ http_choosing;

struct bide_http_origin_ {
    bide_connection_pool pool;
    bide_http_agent *agent;
    http_origin *next; /* used before this one */
    size_t users;
    const http_proxy *proxy;   /* or NULL */
    bide_http_version version; /* not BIDE_HTTP_VERSION_ANY without TLS */
    bool is_secure;
    bool has_tunnel; /* through the proxy */
    uint16_t port;
    char host[256];
    bide_pooled_connection *slots;
    http_link **links;       /* of the slots; NULL: not open */
    http_session *sessions;  /* the newest first: 6 */
    bide_mutex turn;         /* 7 */
    http_choosing *choosing; /* fetches without a connection: 10 */
    bool is_http1;           /* the server has not chosen HTTP/2 */
    bool requires_http1;     /* the server has refused HTTP/2, and is_http1 is true: 11 */
    int failure;             /* of the last attempt that failed */
    const char *failure_reason;
    unsigned failures;
};

struct bide_http_session_ {
    bide_frame frame;
    bide_context context;
    http_origin *origin;
    http_session *next; /* older */
    bide_pooled_connection *connection;
    size_t users;
    size_t requests;
    bool has_ended;
    void *client;
};

struct bide_http_link_ {
    bide_http_client client;
    bide_connect_by_name_operation connect;
    bide_http_fetch *fetch; /* that used it last */
    bool is_secure;         /* `tls` is to be closed */
    bool is_http2;
    bool is_http1; /* HTTP/2 was not offered: 11 */
    char tunnel[HTTP_AGENT_AUTHORITY];
    char raw[HTTP_AGENT_RAW];
    char *memory; /* of the client */
    void *tls;
};

struct bide_http_agent {
    bide_http_agent_options options;
    bide_names *own_names;
    http_proxies proxies;
    const bide_http_agent_tls *tls; /* or NULL */
    void *tls_argument;
    const bide_http_agent_http2 *http2; /* or NULL */
    size_t client_memory;
    http_origin *origins;
    size_t origin_count;
    size_t users;
};

/* ---- Links ---- */

static size_t http_agent_round_up(size_t size)
{
    return (size + HTTP_AGENT_ALIGN - 1) & ~(size_t)(HTTP_AGENT_ALIGN - 1);
}

static http_link *http_link_create(const http_origin *origin)
{
    const bide_http_agent *agent = origin->agent;
    size_t head = http_agent_round_up(sizeof(http_link));
    size_t client = http_agent_round_up(agent->client_memory);
    http_link *link = malloc(head + client + (origin->is_secure ? agent->tls->size : 0));
    if (link == NULL)
        return NULL;
    link->memory = (char *)link + head;
    link->tls = link->memory + client;
    link->is_secure = false;
    link->is_http2 = false;
    link->is_http1 = false;
    return link;
}

static http_link **http_link_of(bide_pooled_connection *connection)
{
    http_origin *origin = bide_container_of(connection->pool, http_origin, pool);
    return &origin->links[connection - origin->slots];
}

/* Called by the pool: 1 */
static void http_link_closing(bide_pooled_connection *connection)
{
    http_link **link = http_link_of(connection);
    const http_origin *origin = bide_container_of(connection->pool, http_origin, pool);
    if (*link != NULL && (*link)->is_secure)
        origin->agent->tls->close((*link)->tls); /* the socket too */
    free(*link);
    *link = NULL;
}

static int http_link_init_client(const http_origin *origin, http_link *link, bide_stream stream)
{
    const bide_http_agent_options *from = &origin->agent->options;
    bide_http_client_options options;
    memset(&options, 0, sizeof options);
    options.write_buffer_size = HTTP_AGENT_OUTPUT;
    options.max_fields = from->max_fields;
    options.max_head = from->max_head;
    options.max_body = from->max_body;
    return bide_http_client_init(&link->client, stream, link->memory, origin->agent->client_memory,
                                 &options);
}

/* TLS has bytes of the server's that the client has not seen: 2 */
static bool http_link_has_input(const http_origin *origin, const http_link *link)
{
    const bide_http_agent_tls *tls = origin->agent->tls;
    return link->is_secure && tls->has_input != NULL && tls->has_input(link->tls);
}

/* Writes the head of a request for a tunnel. */
static int http_link_ask_for_tunnel(const http_origin *origin, http_link *link,
                                    bide_pooled_connection *connection)
{
    static const char authorization[] = "Proxy-Authorization";
    char digits[20];
    bool is_literal = strchr(origin->host, ':') != NULL;
    size_t count = bide_http_print_number_(digits, origin->port);
    char *at = link->tunnel;
    at = stpcpy(at, is_literal ? "[" : "");
    at = stpcpy(at, origin->host);
    at = stpcpy(at, is_literal ? "]:" : ":");
    memcpy(at, digits, count);
    at[count] = '\0';
    int status = http_link_init_client(origin, link, bide_socket_stream(&connection->socket));
    if (status == 0)
        status =
            bide_http_client_start_request(&link->client, "CONNECT", link->tunnel, link->tunnel);
    if (status == 0 && origin->proxy->authorization[0] != '\0')
        status = bide_http_client_add(&link->client, authorization, origin->proxy->authorization);
    return status;
}

static bide_awaiter *http_link_connect(bide_http_connecting_ *self)
{
    const http_origin *origin = self->origin;
    const bide_http_agent *agent = origin->agent;
    bide_names *names = agent->options.names != NULL ? agent->options.names : agent->own_names;
    return bide_connect_by_name(&self->link->connect, &self->pooled->socket, names,
                                origin->proxy != NULL ? origin->proxy->host : origin->host,
                                origin->proxy != NULL ? origin->proxy->port : origin->port);
}

/* HTTP/2 is not offered. */
static bool http_origin_offers_http1(const http_origin *origin)
{
    const bide_http_agent *agent = origin->agent;
    return origin->requires_http1 || (origin->version == BIDE_HTTP_VERSION_1 &&
                                      agent->http2 != NULL && agent->tls->connect_http1 != NULL);
}

static bide_awaiter *http_link_connect_tls(bide_http_connecting_ *self)
{
    const http_origin *origin = self->origin;
    const bide_http_agent_tls *tls = origin->agent->tls;
    self->link->is_secure = true;
    self->link->is_http1 = http_origin_offers_http1(origin);
    return (self->link->is_http1 ? tls->connect_http1 : tls->connect)(
        self->link->tls, origin->agent->tls_argument, bide_socket_stream(&self->pooled->socket),
        origin->host);
}

/* Why TLS has failed. */
static const char *http_link_reason(const http_origin *origin, const http_link *link)
{
    const bide_http_agent_tls *tls = origin->agent->tls;
    return tls->reason != NULL ? tls->reason(link->tls) : "";
}

/* The proxy has opened the tunnel, and nothing came behind its response. */
static bool http_link_has_tunnel(bide_http_client *client)
{
    return client->response.status / 100 == 2 &&
           bide_reader_buffered(bide_http_client_reader(client)) == 0;
}

static bool http_link_has_http2(const http_origin *origin, const http_link *link)
{
    const bide_http_agent_tls *tls = origin->agent->tls;
    if (!origin->is_secure) /* 12 */
        return origin->version == BIDE_HTTP_VERSION_2;
    const char *protocol = tls->protocol != NULL ? tls->protocol(link->tls) : NULL;
    return protocol != NULL && strcmp(protocol, "h2") == 0;
}

/* The protocol that was negotiated, or is known. Returns 0, or an error if it may not be used. */
static int http_link_choose_protocol(bide_http_connecting_ *self)
{
    const http_origin *origin = self->origin;
    const bide_http_agent *agent = origin->agent;
    http_link *link = self->link;
    link->is_http2 = http_link_has_http2(origin, link);
    if (link->is_http2)
        return agent->http2 == NULL || origin->version == BIDE_HTTP_VERSION_1 || link->is_http1
                   ? -EPROTONOSUPPORT
                   : 0;
    if (origin->version != BIDE_HTTP_VERSION_2)
        return 0;
    self->reason = "the server has not chosen HTTP/2";
    return -EPROTONOSUPPORT;
}

static bide_stream http_link_stream(bide_pooled_connection *connection)
{
    const http_origin *origin = bide_container_of(connection->pool, http_origin, pool);
    return origin->is_secure ? origin->agent->tls->stream((*http_link_of(connection))->tls)
                             : bide_socket_stream(&connection->socket);
}

bide_coroutine(http_link_connect_body)
{
    bide_begin(http_link_connect_body, bide_http_connecting_ * self);
    int status;
    self->reason = "";
    self->link = http_link_create(self->origin);
    if (self->link == NULL)
        bide_return(-ENOMEM);
    *http_link_of(self->pooled) = self->link; /* 1 */
    bide_try(http_link_connect(self));
    if (self->origin->has_tunnel) {
        status = http_link_ask_for_tunnel(self->origin, self->link, self->pooled);
        if (status < 0)
            bide_return(status);
        bide_try(bide_http_client_recv(&self->link->client));
        if (!http_link_has_tunnel(&self->link->client))
            bide_return(-ECONNREFUSED);
    }
    if (self->origin->is_secure) {
        bide_await_status(self->status, http_link_connect_tls(self));
        if (self->status < 0) {
            self->reason = http_link_reason(self->origin, self->link);
            bide_return(self->status);
        }
    }
    status = http_link_choose_protocol(self);
    if (status < 0 || self->link->is_http2)
        bide_return(status);
    bide_return(http_link_init_client(self->origin, self->link, http_link_stream(self->pooled)));
    bide_end();
}

static bide_awaiter *http_link_open(bide_connection_acquire_operation *taking,
                                    bide_pooled_connection *connection)
{
    bide_http_fetch *fetch = bide_container_of(taking, bide_http_fetch, taking);
    bide_http_connecting_ *self = &fetch->connecting;
    uint64_t timeout = fetch->agent->options.connect_timeout;
    bide_awaiter *connect = bide_task_init(&self->task, &http_link_connect_body);
    self->origin = fetch->origin;
    self->pooled = connection;
    self->is_limited = timeout != 0;
    return timeout != 0 ? bide_with_timeout(&self->limited, timeout, connect) : connect;
}

/* ---- Sessions of HTTP/2: 6 ---- */

static bool http_session_is_doubted(const http_session *session)
{
    return session->origin->agent->http2->is_doubted(session->client);
}

/* Destroys the unused sessions that have ended, are doubted, or are of no use to their origin; with `all`, every one. */
static void http_origin_reap(http_origin *origin, bool all)
{
    all = all || origin->requires_http1; /* 11 */
    for (http_session **at = &origin->sessions; *at != NULL;) {
        http_session *session = *at;
        if (session->users != 0 ||
            (!session->has_ended && !all && !http_session_is_doubted(session))) {
            at = &session->next;
            continue;
        }
        *at = session->next;
        if (!session->has_ended)
            bide_destroy(&session->frame);
        origin->agent->http2->destroy(session->client);
        free(session);
    }
}

/* (other sessions of the origin that have ended are in use) */
static bide_frame *http_session_final_suspend(bide_frame *frame, const bide_context *context)
{
    (void)context;
    http_origin_reap(bide_promise(http_session, frame)->origin, false);
    return NULL;
}

static const bide_coroutine_type http_session_type = {
    .name = "HTTP/2 session",
    .final_suspend = http_session_final_suspend,
};

bide_coroutine_of(http_session_type, http_session_body)
{
    bide_begin(http_session_body, http_session * self);
    bide_await(self->origin->agent->http2->run(self->client));
    bide_finally();
    self->has_ended = true;
    bide_connection_pool_release(self->connection, false);
    self->connection = NULL;
    bide_end();
}

/*
 * The newest session that takes requests. One that is doubted is used only if no further connection is allowed, which
 * is so if the sessions that have not ended have all of them: 8, 9
 */
static http_session *http_origin_find_session(const http_origin *origin)
{
    http_session *doubted = NULL;
    size_t connections = 0;
    if (origin->requires_http1)
        return NULL;
    for (http_session *session = origin->sessions; session != NULL; session = session->next) {
        connections += !session->has_ended;
        if (session->has_ended || !origin->agent->http2->is_usable(session->client))
            continue;
        if (!http_session_is_doubted(session))
            return session;
        if (doubted == NULL)
            doubted = session;
    }
    return connections == origin->pool.max ? doubted : NULL;
}

/* Fetches without a connection look again. (Their waits end later, outside this call.): 10 */
static void http_origin_wake_choosing(const http_origin *origin)
{
    for (http_choosing *choosing = origin->choosing; choosing != NULL; choosing = choosing->next) {
        choosing->is_answered = true;
        bide_stop_request(&choosing->answer);
    }
}

/* A doubted session takes requests again. */
static void http_session_on_answer(void *session)
{
    const http_origin *origin = ((http_session *)session)->origin;
    if (!origin->requires_http1)
        http_origin_wake_choosing(origin);
}

/* Makes a session of a connection, which is the session's if this returns 0. */
static int http_session_start(http_origin *origin, bide_pooled_connection *connection,
                              const bide_context *context)
{
    const bide_http_agent *agent = origin->agent;
    const bide_http_agent_http2_options options = {
        agent->options.max_fields,   agent->options.max_head,     agent->options.max_body,
        agent->options.idle_timeout, agent->options.http2_window, origin->is_secure};
    size_t head = http_agent_round_up(sizeof(http_session));
    http_session *session = malloc(head + agent->http2->client_size);
    if (session == NULL)
        return -ENOMEM;
    memset(session, 0, sizeof *session);
    session->client = (char *)session + head;
    int status = agent->http2->open(session->client, http_link_stream(connection), &options);
    if (status < 0) {
        free(session);
        return status;
    }
    if (agent->http2->set_answered != NULL)
        agent->http2->set_answered(session->client, &http_session_on_answer, session);
    session->origin = origin;
    session->connection = connection;
    session->next = origin->sessions;
    origin->sessions = session;
    session->context = bide_context_without_values(context); /* it outlives the fetch */
    session->context.stop = NULL;
    bide_start(&session->frame, &http_session_body, &session->context);
    bide_resume(&session->frame); /* (the session may be gone) */
    return 0;
}

/* ---- Origins ---- */

static void http_origin_destroy(http_origin *origin)
{
    bide_assert(origin->users == 0);
    http_origin_reap(origin, true);
    bide_assert(origin->sessions == NULL && origin->pool.taken == 0);
    bide_connection_pool_close(&origin->pool);
    bide_assert(origin->pool.open == 0);
    free(origin->links);
    free(origin->slots);
    free(origin);
}

/* A proxy speaks HTTP/1.1: HTTP/2 goes through a tunnel. */
static bool http_origin_needs_tunnel(const bide_http_url *url, const http_proxy *proxy,
                                     bide_http_version version)
{
    return proxy != NULL && (url->is_secure || version == BIDE_HTTP_VERSION_2);
}

/* `host` is shorter than origin->host. */
static http_origin *http_origin_create(bide_http_agent *agent, const bide_http_url *url,
                                       const http_proxy *proxy, bide_http_version version)
{
    static const bide_address none;
    size_t max = agent->options.max_connections;
    http_origin *origin = malloc(sizeof *origin);
    if (origin == NULL)
        return NULL;
    origin->slots = calloc(max, sizeof *origin->slots);
    origin->links = calloc(max, sizeof(http_link *));
    if (origin->slots == NULL || origin->links == NULL) {
        free(origin->slots);
        free(origin->links);
        free(origin);
        return NULL;
    }
    origin->agent = agent;
    origin->users = 0;
    origin->sessions = NULL;
    bide_mutex_init(&origin->turn);
    origin->choosing = NULL;
    origin->version = version;
    origin->is_http1 = agent->http2 == NULL || version == BIDE_HTTP_VERSION_1;
    origin->requires_http1 = false;
    origin->failure = 0;
    origin->failure_reason = "";
    origin->failures = 0;
    origin->proxy = proxy;
    origin->is_secure = url->is_secure;
    origin->has_tunnel = http_origin_needs_tunnel(url, proxy, version);
    origin->port = url->port;
    memcpy(origin->host, url->host.data, url->host.size);
    origin->host[url->host.size] = '\0';
    (bide_connection_pool_init)(&origin->pool, &none, origin->slots, max,
                                agent->options.idle_timeout);
    origin->pool.connect = http_link_open;
    origin->pool.closing = http_link_closing;
    return origin;
}

/* A plain proxy's connections are for all hosts. */
static bool http_origin_is_for(const http_origin *origin, const bide_http_url *url,
                               const http_proxy *proxy, bide_http_version version)
{
    if (origin->proxy != proxy || origin->is_secure != url->is_secure || origin->version != version)
        return false;
    return (proxy != NULL && !origin->has_tunnel) ||
           (origin->port == url->port && bide_http_is(url->host, origin->host));
}

/* Removes the origins that were used longest ago, as long as there are too many: 3 */
static void http_agent_trim(bide_http_agent *agent)
{
    while (agent->origin_count > agent->options.max_origins) {
        http_origin **oldest = NULL;
        for (http_origin **at = &agent->origins; *at != NULL; at = &(*at)->next)
            if ((*at)->users == 0)
                oldest = at;
        if (oldest == NULL)
            break;
        http_origin *origin = *oldest;
        *oldest = origin->next;
        agent->origin_count--;
        http_origin_destroy(origin);
    }
}

static http_origin *http_agent_find_origin(bide_http_agent *agent, const bide_http_url *url,
                                           const http_proxy *proxy, bide_http_version version)
{
    http_origin **at = &agent->origins;
    while (*at != NULL && !http_origin_is_for(*at, url, proxy, version))
        at = &(*at)->next;
    http_origin *origin = *at;
    if (origin != NULL)
        *at = origin->next;
    else if ((origin = http_origin_create(agent, url, proxy, version)) == NULL)
        return NULL;
    else
        agent->origin_count++;
    origin->next = agent->origins;
    agent->origins = origin;
    return origin;
}

/* ---- Agents ---- */

static void http_agent_set_defaults(bide_http_agent_options *options)
{
    if (options->max_connections == 0)
        options->max_connections = 8;
    if (options->max_connections > BIDE_SEMAPHORE_MAX)
        options->max_connections = BIDE_SEMAPHORE_MAX;
    if (options->max_origins == 0)
        options->max_origins = 32;
    if (options->idle_timeout == 0)
        options->idle_timeout = UINT64_C(30000000000);
    if (options->continue_timeout == 0)
        options->continue_timeout = UINT64_C(1000000000);
    if (options->max_redirects == 0)
        options->max_redirects = 10;
    if (options->max_fields == 0)
        options->max_fields = 64;
    if (options->max_head == 0)
        options->max_head = 8192;
    if (options->max_head < HTTP_MIN_INPUT - HTTP_ROOM_BEHIND_HEAD)
        options->max_head = HTTP_MIN_INPUT - HTTP_ROOM_BEHIND_HEAD;
    if (options->max_body == 0)
        options->max_body = UINT64_C(1) << 30;
}

static bool http_version_is_valid(bide_http_version version)
{
    return version == BIDE_HTTP_VERSION_ANY || version == BIDE_HTTP_VERSION_1 ||
           version == BIDE_HTTP_VERSION_2;
}

/* Computes the size of a client's memory, which is small enough to be added to others. */
static int http_agent_measure(bide_http_agent *agent)
{
    const bide_http_agent_options *options = &agent->options;
    if (options->max_fields > SIZE_MAX / 8 / sizeof(bide_http_field) ||
        options->max_head > SIZE_MAX / 8)
        return -EINVAL;
    agent->client_memory = options->max_fields * sizeof(bide_http_field) + HTTP_AGENT_OUTPUT +
                           options->max_head + HTTP_ROOM_BEHIND_HEAD;
    return 0;
}

static int http_agent_set_proxies(bide_http_agent *agent)
{
    const bide_http_agent_options *options = &agent->options;
    int status = 0;
    if (options->proxy != NULL) {
        status = bide_http_proxy_parse_(&agent->proxies.plain, options->proxy);
        agent->proxies.secure = agent->proxies.plain;
    } else if (!options->ignores_environment) {
        status = bide_http_proxies_read_(&agent->proxies);
    }
    agent->options.proxy = NULL;
    return status;
}

#undef bide_http_agent_create
int bide_http_agent_create(bide_http_agent **agent, const bide_http_agent_options *options)
{
    *agent = NULL;
    if (!bide_http_is_buffered_)
        return -ENOTSUP;
    bide_http_agent *self = calloc(1, sizeof *self);
    if (self == NULL)
        return -ENOMEM;
    if (options != NULL)
        self->options = *options;
    http_agent_set_defaults(&self->options);
    int status = http_version_is_valid(self->options.version) ? http_agent_measure(self) : -EINVAL;
    if (status == 0)
        status = http_agent_set_proxies(self);
    if (status == 0 && self->options.names == NULL)
        status = bide_names_create(&self->own_names, NULL);
    if (status < 0) {
        bide_http_proxies_free_(&self->proxies);
        free(self);
        return status;
    }
    *agent = self;
    return 0;
}

void bide_http_agent_destroy(bide_http_agent *agent)
{
    if (agent == NULL)
        return;
    if (agent->users != 0)
        bide_platform.misuse("an agent is destroyed while a request of it is not closed",
                             "bide_http_agent_destroy", __FILE__, __LINE__);
    while (agent->origins != NULL) {
        http_origin *origin = agent->origins;
        agent->origins = origin->next;
        http_origin_destroy(origin);
    }
    bide_names_destroy(agent->own_names);
    bide_http_proxies_free_(&agent->proxies);
    free(agent);
}

void bide_http_agent_set_tls(bide_http_agent *agent, const bide_http_agent_tls *table,
                             void *argument)
{
    agent->tls = table;
    agent->tls_argument = argument;
}

void bide_http_agent_set_http2(bide_http_agent *agent, const bide_http_agent_http2 *table)
{
    agent->http2 = table;
}

/* ---- A request ---- */

static bool http_fetch_is_method(const bide_http_fetch *fetch, const char *name)
{
    return strcmp(fetch->method, name) == 0;
}

/* Checks a URL, all of it but the fragment, and parses it. */
static int http_fetch_parse_url(bide_http_fetch *fetch, bide_http_url *url, const char *text)
{
    if (bide_http_url_parse(url, text, strlen(text)) < 0 || url->user.data != NULL)
        return -EINVAL;
    if (url->host.size >= sizeof fetch->origin->host)
        return -EMSGSIZE;
    if (url->is_secure && fetch->agent->tls == NULL) {
        fetch->reason = "\"https\" needs bide_http_agent_use_tls() and -lbide-tls";
        return -EPROTONOSUPPORT;
    }
    return 0;
}

int bide_http_fetch_init(bide_http_fetch *fetch, bide_http_agent *agent, const char *method,
                         const char *url)
{
    size_t method_size = strlen(method), url_size = strcspn(url, "#");
    fetch->state = HTTP_FETCH_CLOSED;
    fetch->agent = agent;
    fetch->origin = NULL;
    fetch->connection = NULL;
    fetch->session = NULL;
    fetch->has_turn = false;
    fetch->is_http2 = false;
    fetch->decoder = NULL;
    fetch->version = agent->options.version;
    fetch->on_informational = NULL;
    fetch->reason = "";
    memset(&fetch->response, 0, sizeof fetch->response);
    fetch->count = 0;
    fetch->redirects = 0;
    fetch->is_decoded = false;
    fetch->url[0] = '\0';
    if (!bide_http_is_token_(method, method_size) || strcmp(method, "CONNECT") == 0)
        return -EINVAL;
    if (method_size >= sizeof fetch->method || url_size >= sizeof fetch->url)
        return -EMSGSIZE;
    memcpy(fetch->method, method, method_size + 1);
    memcpy(fetch->url, url, url_size);
    fetch->url[url_size] = '\0';
    int status = http_fetch_parse_url(fetch, &fetch->parsed, fetch->url);
    if (status < 0)
        return status;
    fetch->is_private = true;
    fetch->has_body = false;
    fetch->body = NULL;
    fetch->file = NULL;
    fetch->body_size = 0;
    fetch->fields_size = 0;
    fetch->refusals = 0;
    fetch->is_started = false;
    fetch->is_unwanted = false;
    fetch->expects_continue = false;
    fetch->asks_coding = bide_http_codings_ != NULL && !agent->options.decodes_none;
    fetch->state = HTTP_FETCH_READY;
    agent->users++;
    return 0;
}

/* The library adds these itself, or they concern the connection alone. */
static bool http_fetch_is_reserved(bide_slice name)
{
    static const char names[][18] = {
        "host",   "connection", "content-length", "transfer-encoding", "upgrade",
        "expect", "te",         "trailer",        "keep-alive"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (bide_http_is(name, names[i]))
            return true;
    return http_text_starts_with(name, "proxy-");
}

int bide_http_fetch_add(bide_http_fetch *fetch, const char *name, const char *value)
{
    size_t name_size = strlen(name), value_size = strlen(value);
    if (fetch->state != HTTP_FETCH_READY || !bide_http_is_token_(name, name_size) ||
        !bide_http_is_value_(value, value_size) || http_fetch_is_reserved(http_text_of(name)))
        return -EINVAL;
    size_t room = sizeof fetch->fields - fetch->fields_size;
    if (name_size >= room || value_size >= room - name_size - 1)
        return -EMSGSIZE;
    memcpy(fetch->fields + fetch->fields_size, name, name_size + 1);
    memcpy(fetch->fields + fetch->fields_size + name_size + 1, value, value_size + 1);
    fetch->fields_size += name_size + value_size + 2;
    if (bide_http_is(http_text_of(name), "accept-encoding") ||
        bide_http_is(http_text_of(name),
                     "range")) /* a part of a compressed body cannot be decoded */
        fetch->asks_coding = false;
    return 0;
}

int bide_http_fetch_set_body(bide_http_fetch *fetch, const void *data, size_t size)
{
    if (fetch->state != HTTP_FETCH_READY)
        return -EINVAL;
    fetch->has_body = true;
    fetch->body = data;
    fetch->file = NULL;
    fetch->body_size = size;
    return 0;
}

int bide_http_fetch_set_file(bide_http_fetch *fetch, bide_descriptor *file, uint64_t offset,
                             uint64_t length)
{
    if (fetch->state != HTTP_FETCH_READY)
        return -EINVAL;
    fetch->has_body = true;
    fetch->body = NULL;
    fetch->file = file;
    fetch->file_offset = offset;
    fetch->body_size = length;
    return 0;
}

/* Begins to use the origin of fetch->parsed: 3 */
static int http_fetch_enter(bide_http_fetch *fetch)
{
    bide_http_version version = fetch->version;
    if (!http_version_is_valid(version))
        return -EINVAL;
    if (version == BIDE_HTTP_VERSION_2 && fetch->agent->http2 == NULL) {
        fetch->reason = "HTTP/2 needs bide_http_agent_use_http2() and -lbide-http2";
        return -EPROTONOSUPPORT;
    }
    if (version == BIDE_HTTP_VERSION_ANY && !fetch->parsed.is_secure)
        version = BIDE_HTTP_VERSION_1;
    const http_proxy *proxy = bide_http_proxy_for_(&fetch->agent->proxies, &fetch->parsed);
    if (proxy != NULL && proxy->problem != NULL) {
        fetch->reason = proxy->problem;
        return proxy->status;
    }
    http_origin *origin = http_agent_find_origin(fetch->agent, &fetch->parsed, proxy, version);
    if (origin == NULL)
        return -ENOMEM;
    origin->users++;
    fetch->origin = origin;
    return 0;
}

static http_link *http_fetch_link(const bide_http_fetch *fetch)
{
    return *http_link_of(fetch->connection);
}

static void http_fetch_leave_session(bide_http_fetch *fetch)
{
    http_session *session = fetch->session;
    fetch->origin->agent->http2->close(fetch->request);
    free(fetch->request);
    fetch->request = NULL;
    fetch->session = NULL;
    bide_assert(session->users != 0);
    session->users--;
    http_origin_reap(fetch->origin, false);
}

static void http_fetch_return_connection(bide_http_fetch *fetch)
{
    bide_pooled_connection *connection = fetch->connection;
    if (connection == NULL && fetch->session == NULL)
        return;
    bide_http_decoder_destroy_(fetch->decoder);
    fetch->decoder = NULL;
    memset(&fetch->response, 0, sizeof fetch->response); /* its texts are the connection's */
    if (connection == NULL) {
        http_fetch_leave_session(fetch);
        return;
    }
    bool reusable = bide_http_client_is_reusable(&http_fetch_link(fetch)->client) && /* 2 */
                    !http_link_has_input(fetch->origin, http_fetch_link(fetch));
    fetch->connection = NULL;
    bide_connection_pool_release(connection, reusable);
}

static void http_fetch_leave(bide_http_fetch *fetch)
{
    http_fetch_return_connection(fetch);
    if (fetch->origin == NULL)
        return;
    bide_assert(fetch->origin->users != 0);
    fetch->origin->users--;
    fetch->origin = NULL;
    http_agent_trim(fetch->agent);
}

/* A field that does not go with this request: credentials for another origin, or the fields of a dropped body. */
static bool http_fetch_omits(const bide_http_fetch *fetch, bide_slice name)
{
    if (!fetch->is_private && (bide_http_is(name, "authorization") || bide_http_is(name, "cookie")))
        return true;
    return fetch->redirects != 0 && !fetch->has_body && http_text_starts_with(name, "content-");
}

/* Starts the request's head, with the target in the form that goes to a proxy or to the server. */
static int http_fetch_start_line(bide_http_fetch *fetch)
{
    char authority[HTTP_AGENT_AUTHORITY];
    bool is_absolute = fetch->origin->proxy != NULL && !fetch->origin->has_tunnel;
    char *target = fetch->next; /* 5 */
    size_t room = sizeof fetch->next;
    int status = bide_http_url_authority(&fetch->parsed, authority, sizeof authority);
    if (status < 0)
        return status;
    if (is_absolute) {
        char *end = stpcpy(stpcpy(target, "http://"), authority);
        room -= (size_t)(end - target);
        target = end;
    }
    status = bide_http_url_target(&fetch->parsed, target, room);
    if (status < 0)
        return status;
    if (fetch->session != NULL)
        return fetch->agent->http2->start(fetch->request, fetch->session->client, fetch->method,
                                          fetch->next, authority);
    return bide_http_client_start_request(&http_fetch_link(fetch)->client, fetch->method,
                                          fetch->next, authority);
}

/* ---- Responses of 1xx ---- */

static const bide_http_response *http_fetch_response(const bide_http_fetch *fetch)
{
    return fetch->session != NULL ? fetch->agent->http2->response(fetch->request)
                                  : &http_fetch_link(fetch)->client.response;
}

static void http_fetch_on_informational(void *argument)
{
    bide_http_fetch *fetch = argument;
    fetch->response = *http_fetch_response(fetch);
    fetch->on_informational(fetch);
    memset(&fetch->response, 0, sizeof fetch->response); /* its texts go */
}

static void http_link_on_informational(bide_http_client *client)
{
    http_fetch_on_informational(bide_container_of(client, http_link, client)->fetch);
}

/* The request has started. */
static void http_fetch_watch_informational(bide_http_fetch *fetch)
{
    const bide_http_agent_http2 *http2 = fetch->agent->http2;
    bool is_watched = fetch->on_informational != NULL;
    if (fetch->session == NULL) {
        http_link *link = http_fetch_link(fetch);
        link->fetch = fetch;
        link->client.on_informational = is_watched ? &http_link_on_informational : NULL;
    } else if (is_watched && http2->set_informational != NULL) {
        http2->set_informational(fetch->request, &http_fetch_on_informational, fetch);
    }
}

/* ---- Sending the head ---- */

static int http_fetch_put_field(bide_http_fetch *fetch, const char *name, const char *value)
{
    return fetch->session != NULL
               ? fetch->agent->http2->add(fetch->request, name, value)
               : bide_http_client_add(&http_fetch_link(fetch)->client, name, value);
}

static int http_fetch_finish_head(bide_http_fetch *fetch)
{
    if (fetch->session == NULL)
        return bide_http_client_finish_head(&http_fetch_link(fetch)->client, fetch->body_size);
    if (fetch->is_started || fetch->file != NULL)
        return fetch->agent->http2->write != NULL
                   ? fetch->agent->http2->finish_head(fetch->request, fetch->body_size)
                   : -ENOTSUP;
    return fetch->body_size != 0 ? fetch->agent->http2->set_body(fetch->request, fetch->body,
                                                                 (size_t)fetch->body_size)
                                 : 0; /* (receiving does) */
}

/* The jar's cookies, unless the caller has added a field of its own. */
static int http_fetch_add_cookies(bide_http_fetch *fetch)
{
    char text[HTTP_AGENT_COOKIES];
    for (size_t at = 0; at < fetch->fields_size;) {
        bide_slice name = http_text_of(fetch->fields + at);
        at += name.size + 1 + strlen(name.data + name.size + 1) + 1;
        if (bide_http_is(name, "cookie") && !http_fetch_omits(fetch, name))
            return 0;
    }
    if (bide_http_cookies_write(fetch->agent->options.cookies, &fetch->parsed, text, sizeof text) ==
        0)
        return 0;
    return http_fetch_put_field(fetch, "Cookie", text);
}

static void http_fetch_keep_cookies(const bide_http_fetch *fetch)
{
    bide_http_cookies *cookies = fetch->agent->options.cookies;
    for (size_t i = 0; cookies != NULL && i < fetch->response.field_count; i++)
        if (bide_http_is(fetch->response.fields[i].name, "set-cookie"))
            (void)bide_http_cookies_set(cookies, &fetch->parsed, fetch->response.fields[i].value);
}

static int http_fetch_write_head(bide_http_fetch *fetch)
{
    const http_proxy *proxy = fetch->origin->proxy;
    int status = http_fetch_start_line(fetch);
    if (status == 0)
        http_fetch_watch_informational(fetch);
    for (size_t at = 0; status == 0 && at < fetch->fields_size;) {
        bide_slice name = http_text_of(fetch->fields + at);
        bide_slice value = http_text_of(name.data + name.size + 1);
        at += name.size + value.size + 2;
        if (!http_fetch_omits(fetch, name))
            status = http_fetch_put_field(fetch, name.data, value.data);
    }
    if (status == 0 && fetch->agent->options.cookies != NULL)
        status = http_fetch_add_cookies(fetch);
    if (status == 0 && fetch->asks_coding)
        status = http_fetch_put_field(fetch, "Accept-Encoding", bide_http_codings_);
    if (status == 0 && proxy != NULL && !fetch->origin->has_tunnel &&
        proxy->authorization[0] != '\0')
        status = http_fetch_put_field(fetch, "Proxy-Authorization", proxy->authorization);
    if (status == 0 && fetch->is_started && fetch->expects_continue)
        status = http_fetch_put_field(fetch, "Expect", "100-continue");
    return status == 0 ? http_fetch_finish_head(fetch) : status;
}

/* Its connection, which others have used, has ended before any of a response came. */
static bool http_fetch_is_unanswered(const bide_http_fetch *fetch)
{
    if (fetch->status != -EPIPE && fetch->status != -ECONNRESET && fetch->status != -ECONNABORTED)
        return false;
    if (fetch->session != NULL) /* (a stream may be reset alone) */
        return fetch->was_used && http_fetch_response(fetch)->status == 0 &&
               !fetch->agent->http2->is_usable(fetch->session->client);
    const bide_http_client *client = &http_fetch_link(fetch)->client;
    return fetch->connection->was_idle && client->informational == 0 &&
           bide_reader_buffered(&client->reader) == 0;
}

static bool http_fetch_is_idempotent(const bide_http_fetch *fetch)
{
    static const char methods[][8] = {"GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"};
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
        if (http_fetch_is_method(fetch, methods[i]))
            return true;
    return false;
}

/*
 * If the server requires HTTP/1.1, and the agent can offer it alone: notes it for the origin. Returns true if the request
 * may be sent again: 4. That try is the last one: 11
 */
static bool http_fetch_falls_back(const bide_http_fetch *fetch)
{
    if (fetch->session == NULL || fetch->status != -EPROTONOSUPPORT ||
        fetch->origin->version == BIDE_HTTP_VERSION_2 || fetch->agent->tls->connect_http1 == NULL)
        return false;
    fetch->origin->requires_http1 = fetch->origin->is_http1 = true;
    http_origin_wake_choosing(fetch->origin);
    int informational = http_fetch_response(fetch)->status;
    return informational == 0 || informational == 100 || http_fetch_is_idempotent(fetch);
}

/* 4 */
static bool http_fetch_may_retry(bide_http_fetch *fetch)
{
    enum { REFUSALS = 3 };
    bool falls_back = http_fetch_falls_back(fetch);
    if (fetch->is_started)
        return false;
    if (falls_back)
        return true;
    if (fetch->session != NULL && fetch->status == -ECONNREFUSED)
        return fetch->refusals++ < REFUSALS;
    if (!http_fetch_is_unanswered(fetch) ||
        (fetch->session != NULL && fetch->refusals++ >= REFUSALS))
        return false;
    return http_fetch_is_idempotent(fetch);
}

/* ---- Redirects ---- */

/* GET follows, without the body. */
static bool http_fetch_drops_body(const bide_http_fetch *fetch)
{
    int status = fetch->response.status;
    return status == 303 || (status <= 302 && http_fetch_is_method(fetch, "POST"));
}

static bool http_fetch_is_redirect(const bide_http_fetch *fetch)
{
    int status = fetch->response.status;
    if (fetch->is_started && !http_fetch_drops_body(fetch)) /* 13 */
        return false;
    return (status == 301 || status == 302 || status == 303 || status == 307 || status == 308) &&
           !fetch->agent->options.follows_none &&
           bide_http_fetch_field(fetch, "location").data != NULL;
}

static bool http_fetch_is_same_origin(const bide_http_url *one, const bide_http_url *other)
{
    if (one->is_secure != other->is_secure || one->port != other->port ||
        one->host.size != other->host.size)
        return false;
    for (size_t i = 0; i < one->host.size; i++)
        if (http_lower(one->host.data[i]) != http_lower(other->host.data[i]))
            return false;
    return true;
}

/* Prepares the next request, with its URL in `next`. */
static int http_fetch_redirect(bide_http_fetch *fetch)
{
    bide_http_url next;
    if (fetch->redirects == fetch->agent->options.max_redirects)
        return -ELOOP;
    int status = bide_http_url_resolve(&fetch->parsed, bide_http_fetch_field(fetch, "location"),
                                       fetch->next, sizeof fetch->next);
    if (status == 0)
        status = http_fetch_parse_url(fetch, &next, fetch->next);
    if (status < 0)
        return status == -EINVAL ? -EBADMSG : status;
    if (fetch->parsed.is_secure && !next.is_secure && !fetch->agent->options.allows_downgrade)
        return -EPERM;
    if (!http_fetch_is_same_origin(&fetch->parsed, &next))
        fetch->is_private = false;
    if (http_fetch_drops_body(fetch)) {
        if (!http_fetch_is_method(fetch, "HEAD"))
            strcpy(fetch->method, "GET");
        fetch->has_body = false;
        fetch->body = NULL;
        fetch->file = NULL;
        fetch->body_size = 0;
        fetch->is_started = false;
    }
    fetch->redirects++;
    return 0;
}

/* The rest of a redirect's body is worth reading. */
static bool http_fetch_may_drain(const bide_http_fetch *fetch)
{
    if (fetch->session != NULL) /* (closing it costs the others nothing) */
        return false;
    const bide_http_client *client = &http_fetch_link(fetch)->client;
    return !client->closes && client->input.taken < HTTP_AGENT_DRAINED &&
           (client->response.length == BIDE_HTTP_UNKNOWN ||
            client->response.length <= HTTP_AGENT_DRAINED);
}

/* ---- A connection, or a session: 7 ---- */

static void http_fetch_release_turn(bide_http_fetch *fetch)
{
    if (fetch->has_turn)
        bide_mutex_unlock(&fetch->turn);
    fetch->has_turn = false;
}

static bool http_fetch_needs_turn(const bide_http_fetch *fetch)
{
    return !fetch->origin->is_http1 && http_origin_find_session(fetch->origin) == NULL;
}

/* Uses the origin's session. Returns 0, -ENOENT (there is none), or an error. */
static int http_fetch_join_session(bide_http_fetch *fetch)
{
    http_session *session =
        fetch->agent->http2 != NULL ? http_origin_find_session(fetch->origin) : NULL;
    if (session == NULL)
        return -ENOENT;
    size_t head = http_agent_round_up(fetch->agent->http2->request_size);
    fetch->request = malloc(head + HTTP_AGENT_RAW);
    if (fetch->request == NULL)
        return -ENOMEM;
    memset(fetch->request, 0, head);
    fetch->session = session;
    fetch->is_http2 = true;
    fetch->was_used = session->requests++ != 0;
    session->users++;
    return 0;
}

/* The connection that the fetch has got is of no use. Closes it: 11 */
static bool http_fetch_drops_connection(bide_http_fetch *fetch)
{
    bide_pooled_connection *connection = fetch->taking.connection;
    if (fetch->status < 0 || !fetch->origin->requires_http1 ||
        !(*http_link_of(connection))->is_http2)
        return false;
    bide_connection_pool_release(connection, false);
    return true;
}

/* There is a new connection, or one of the pool's. */
static int http_fetch_use_connection(bide_http_fetch *fetch, const bide_context *context)
{
    http_origin *origin = fetch->origin;
    bide_pooled_connection *connection = fetch->taking.connection;
    if (!(*http_link_of(connection))->is_http2) {
        fetch->connection = connection;
        fetch->is_http2 = false;
        origin->is_http1 = true;
        return 0;
    }
    origin->is_http1 = false;
    bool is_late = http_origin_find_session(origin) != NULL; /* (another was faster) */
    int status = is_late ? 0 : http_session_start(origin, connection, context);
    if (is_late || status < 0)
        bide_connection_pool_release(connection, false);
    if (status == 0 && !is_late && http_origin_find_session(origin) != NULL)
        http_origin_wake_choosing(origin);
    if (status == 0)
        status = http_fetch_join_session(fetch);
    return status == -ENOENT ? -EPIPE : status; /* (the connection has ended already) */
}

/* connect_timeout has passed, and no other deadline. */
static bool http_fetch_has_timed_out(const bide_http_fetch *fetch)
{
    return fetch->status == -ETIMEDOUT && fetch->connecting.is_limited &&
           bide_with_deadline_passed(&fetch->connecting.limited);
}

/* No connection could be opened. Returns 0 if there is a session now. */
static int http_fetch_note_failure(bide_http_fetch *fetch)
{
    fetch->reason = fetch->connecting.reason;
    if (fetch->origin->requires_http1 && fetch->status == -EPROTONOSUPPORT) /* 11 */
        fetch->origin->requires_http1 = fetch->origin->is_http1 = false;
    if (!fetch->has_turn || fetch->status == -ECANCELED ||
        (fetch->status == -ETIMEDOUT && !http_fetch_has_timed_out(fetch)))
        return fetch->status;
    fetch->origin->failure = fetch->status;
    fetch->origin->failure_reason = fetch->reason;
    fetch->origin->failures++;
    if (http_fetch_join_session(fetch) < 0)
        return fetch->status;
    fetch->reason = "";
    return 0;
}

/* ---- The wait for a connection, until a session can be used: 10 ---- */

static void http_choosing_leave(http_choosing *choosing)
{
    if (!choosing->is_watching)
        return;
    choosing->is_watching = false;
    *choosing->before = choosing->next;
    if (choosing->next != NULL)
        choosing->next->before = choosing->before;
    bide_stop_source_detach(&choosing->answer);
}

/* Begins to watch, unless the origin never has sessions for it; again, after an answer. */
static void http_choosing_watch(http_choosing *choosing, const bide_context *context)
{
    http_origin *origin = choosing->fetch->origin;
    http_choosing_leave(choosing);
    choosing->is_answered = false;
    if (origin->agent->http2 == NULL || origin->version == BIDE_HTTP_VERSION_1)
        return;
    bide_stop_source_init(&choosing->answer);
    if (context->stop != NULL)
        bide_stop_source_attach(&choosing->answer, context->stop);
    choosing->is_watching = true;
    choosing->before = &origin->choosing;
    choosing->next = origin->choosing;
    if (choosing->next != NULL)
        choosing->next->before = &choosing->next;
    origin->choosing = choosing;
}

static bide_awaiter *http_choosing_wait(http_choosing *choosing, bide_awaiter *inner)
{
    return choosing->is_watching ? bide_with_stop(&choosing->until_answer, &choosing->answer, inner)
                                 : inner;
}

/* The wait was ended by an answer. */
static bool http_choosing_was_answered(const http_choosing *choosing)
{
    return choosing->is_answered && choosing->fetch->status == -ECANCELED;
}

static bide_awaiter *http_choosing_lock(http_choosing *choosing)
{
    bide_http_fetch *fetch = choosing->fetch;
    fetch->failures = fetch->origin->failures;
    return http_choosing_wait(choosing, bide_mutex_lock(&fetch->turn, &fetch->origin->turn));
}

static bide_awaiter *http_choosing_acquire(http_choosing *choosing)
{
    bide_http_fetch *fetch = choosing->fetch;
    fetch->connecting.is_limited = false;
    fetch->connecting.reason = "";
    return http_choosing_wait(choosing,
                              bide_connection_pool_acquire(&fetch->taking, &fetch->origin->pool));
}

/* Gets a connection or a session for a fetch that has entered its origin. */
bide_coroutine(http_fetch_connect_body)
{
    bide_begin(http_fetch_connect_body, http_choosing * self);
    for (;;) {
        http_choosing_watch(self, bide_this_context());
        if (!self->fetch->has_turn && http_fetch_needs_turn(self->fetch)) {
            bide_await_status(self->fetch->status, http_choosing_lock(self));
            self->fetch->has_turn = self->fetch->status == 0;
            if (self->fetch->status < 0 && !http_choosing_was_answered(self))
                bide_return(self->fetch->status);
        }
        bool has_turn = self->fetch->has_turn;
        self->fetch->status = http_fetch_join_session(self->fetch);
        if (self->fetch->status != -ENOENT)
            bide_return(self->fetch->status);
        if (!has_turn && !self->fetch->origin->is_http1) /* (it is doubted again) */
            continue;
        if (has_turn && self->fetch->failures != self->fetch->origin->failures) {
            self->fetch->reason = self->fetch->origin->failure_reason;
            bide_return(self->fetch->origin->failure);
        }
        if (self->fetch->origin->is_http1) /* (as an earlier one has found) */
            http_fetch_release_turn(self->fetch);
        bide_await_status(self->fetch->status, http_choosing_acquire(self));
        if (!http_choosing_was_answered(self) && !http_fetch_drops_connection(self->fetch))
            break;
    }
    if (self->fetch->status == 0)
        self->fetch->status = http_fetch_use_connection(self->fetch, bide_this_context());
    else
        self->fetch->status = http_fetch_note_failure(self->fetch);
    bide_return(self->fetch->status);
    bide_finally();
    http_choosing_leave(self);
    http_fetch_release_turn(self->fetch);
    bide_end();
}

static bide_awaiter *http_fetch_connect(bide_http_fetch *fetch)
{
    fetch->choosing.fetch = fetch;
    fetch->choosing.is_watching = false;
    return bide_task_init(&fetch->choosing.task, &http_fetch_connect_body);
}

static bide_awaiter *http_fetch_recv(bide_http_fetch *fetch)
{
    return fetch->session != NULL ? fetch->agent->http2->recv(fetch->request)
                                  : bide_http_client_recv(&http_fetch_link(fetch)->client);
}

static bide_awaiter *http_fetch_read_some(bide_http_fetch *fetch, void *data, size_t size)
{
    return fetch->session != NULL
               ? fetch->agent->http2->read(fetch->request, data, size)
               : bide_http_client_read(&http_fetch_link(fetch)->client, data, size);
}

static size_t http_fetch_read_count(const bide_http_fetch *fetch)
{
    return fetch->session != NULL ? fetch->agent->http2->count(fetch->request)
                                  : http_fetch_link(fetch)->client.count;
}

/* Where the bytes that are to be decoded are read. */
static char *http_fetch_raw(const bide_http_fetch *fetch)
{
    return fetch->session != NULL
               ? (char *)fetch->request + http_agent_round_up(fetch->agent->http2->request_size)
               : http_fetch_link(fetch)->raw;
}

/* ---- The time to a response ---- */

static void http_fetch_start_clock(bide_http_fetch *fetch, const bide_context *context)
{
    uint64_t timeout = fetch->agent->options.response_timeout;
    uint64_t now = timeout != 0 ? bide_now(context) : 0;
    fetch->until = timeout != 0 && timeout < BIDE_FOREVER - now ? now + timeout : BIDE_FOREVER;
}

static bide_awaiter *http_fetch_limit(bide_http_fetch *fetch, bide_awaiter *inner)
{
    return fetch->until != BIDE_FOREVER ? bide_with_deadline(&fetch->limited, fetch->until, inner)
                                        : inner;
}

/* A wait was ended by something other than response_timeout. */
static bool http_fetch_was_cancelled(const bide_http_fetch *fetch)
{
    return fetch->status == -ECANCELED ||
           (fetch->status == -ETIMEDOUT &&
            !(fetch->until != BIDE_FOREVER && bide_with_deadline_passed(&fetch->limited)));
}

/*
 * response_timeout has passed, but the request got its stream later than the clock was started: sets the clock again.
 * Returns false if the wait is over.
 */
static bool http_fetch_waits_on(bide_http_fetch *fetch, const bide_context *context)
{
    if (fetch->session == NULL || fetch->status != -ETIMEDOUT || http_fetch_was_cancelled(fetch))
        return false;
    uint64_t now = bide_now(context), at = fetch->agent->http2->started_at(fetch->request);
    uint64_t from = at != BIDE_FOREVER ? at : now, timeout = fetch->agent->options.response_timeout;
    fetch->until = timeout < BIDE_FOREVER - from ? from + timeout : BIDE_FOREVER;
    return fetch->until > now;
}

/* A fetch that waits for bytes of the server's begins to. */
static void http_fetch_start_wait(bide_http_fetch *fetch, const bide_context *context)
{
    if (fetch->session != NULL)
        fetch->since = bide_now(context);
}

/*
 * The session is doubted if a wait for the server was in vain, and nothing came for any other request either: for a
 * second, or for half of response_timeout if that has passed and is shorter: 8
 */
static void http_fetch_note_silence(const bide_http_fetch *fetch, const bide_context *context)
{
    const bide_http_agent_http2 *http2 = fetch->agent->http2;
    if (fetch->session == NULL || fetch->session->has_ended ||
        (fetch->status != -ETIMEDOUT && fetch->status != -ECANCELED))
        return;
    uint64_t patience = UINT64_C(1000000000), timeout = fetch->agent->options.response_timeout;
    uint64_t started_at = http2->started_at(fetch->request);
    uint64_t since = fetch->since;
    uint64_t heard_at = http2->heard_at(fetch->session->client);
    if (started_at == BIDE_FOREVER) /* (it waited for a stream) */
        return;
    if (since < started_at)
        since = started_at;
    if (since < heard_at)
        since = heard_at;
    if (!http_fetch_was_cancelled(fetch) && timeout / 2 < patience)
        patience = timeout / 2;
    if (bide_now(context) - since >= patience)
        http2->doubt(fetch->session->client);
}

/* ---- Sending ---- */

/*
 * A connection of HTTP/2 has room for more than these limits, because a request has to fit too. A field counts as in
 * HTTP/1.1, with a colon, a blank and the end of its line.
 */
static int http_fetch_check_limits(const bide_http_fetch *fetch)
{
    static const char line[] = "HTTP/1.1 200\r\n\r\n";
    const bide_http_agent_options *options = &fetch->agent->options;
    size_t size = sizeof line - 1;
    for (size_t i = 0; i < fetch->response.field_count; i++)
        size += fetch->response.fields[i].name.size + fetch->response.fields[i].value.size + 4;
    return fetch->session == NULL ||
                   (size <= options->max_head && fetch->response.field_count <= options->max_fields)
               ? 0
               : -EMSGSIZE;
}

static int http_fetch_open_decoder(bide_http_fetch *fetch)
{
    bide_slice name = bide_http_fetch_field(fetch, "content-encoding");
    fetch->raw = (bide_slice){NULL, 0};
    fetch->raw_has_ended = false;
    fetch->decoded = 0;
    fetch->is_decoded = false;
    size_t codings = 0;
    for (size_t i = 0; i < fetch->response.field_count; i++)
        codings += bide_http_is(fetch->response.fields[i].name, "content-encoding");
    http_coding coding = codings == 1 ? bide_http_coding_of_(name) : HTTP_CODING_OTHER;
    if (!fetch->asks_coding || !bide_http_decodes_(coding) || http_fetch_is_method(fetch, "HEAD"))
        return 0;
    fetch->is_decoded = true;
    return bide_http_decoder_create_(&fetch->decoder, coding);
}

static bide_awaiter *http_fetch_write_some(bide_http_uploading_ *self)
{
    const bide_http_fetch *fetch = self->fetch;
    return fetch->session != NULL
               ? fetch->agent->http2->write(fetch->request, self->data, self->size)
               : bide_http_client_write(&http_fetch_link(fetch)->client, self->data, self->size);
}

/* The size of a file that goes up to its end. Returns 0 or an error. */
static int http_fetch_measure_file(bide_http_fetch *fetch)
{
    const struct stat *about = &fetch->uploading.about;
    uint64_t size = (uint64_t)about->st_size;
    if (!S_ISREG(about->st_mode) || fetch->file_offset > size)
        return -EINVAL;
    fetch->body_size = size - fetch->file_offset;
    return 0;
}

static bide_awaiter *http_fetch_read_file(bide_http_uploading_ *self)
{
    const bide_http_fetch *fetch = self->fetch;
    uint64_t left = fetch->body_size - self->sent;
    return bide_read_at(&self->reading, fetch->file, self->piece,
                        left < HTTP_AGENT_PIECE ? (size_t)left : HTTP_AGENT_PIECE,
                        (int64_t)(fetch->file_offset + self->sent));
}

/* Sends a file, as far as the server takes it: a response, or an error, is received then. */
bide_coroutine(http_fetch_file_body)
{
    bide_begin(http_fetch_file_body, bide_http_uploading_ * self);
    self->sent = 0;
    self->piece = malloc(HTTP_AGENT_PIECE);
    if (self->piece == NULL)
        bide_return(-ENOMEM);
    while (self->sent != self->fetch->body_size) {
        bide_try(http_fetch_read_file(self));
        self->data = self->piece;
        self->size = self->reading.operation.count;
        if (self->size == 0)
            bide_return(-ENODATA);
        bide_await_status(self->fetch->status, http_fetch_write_some(self));
        if (self->fetch->status == -ECANCELED || self->fetch->status == -ETIMEDOUT)
            bide_return(self->fetch->status);
        if (self->fetch->status < 0)
            break;
        self->sent += self->size;
    }
    bide_finally();
    free(self->piece);
    bide_end();
}

static bide_awaiter *http_fetch_send_file(bide_http_fetch *fetch)
{
    fetch->uploading.fetch = fetch;
    fetch->uploading.piece = NULL;
    return bide_task_init(&fetch->uploading.task, &http_fetch_file_body);
}

bide_coroutine(http_fetch_send_body)
{
    bide_begin(http_fetch_send_body, bide_http_fetch * self);
    if (self->state != HTTP_FETCH_READY && self->state != HTTP_FETCH_STARTED)
        bide_return(-EINVAL);
    self->state = HTTP_FETCH_SENDING;
    if (self->file != NULL && self->body_size == BIDE_HTTP_UNKNOWN) {
        bide_try(bide_stat(&self->uploading.reading, self->file, &self->uploading.about));
        self->status = http_fetch_measure_file(self);
        if (self->status < 0)
            bide_return(self->status);
    }
    for (;;) {
        self->status = self->is_started ? 0 : http_fetch_enter(self);
        if (self->status < 0)
            bide_return(self->status);
        for (;;) {
            if (!self->is_started) {
                bide_try(http_fetch_connect(self));
                self->status = http_fetch_write_head(self);
                if (self->status < 0)
                    bide_return(self->status);
            }
            http_fetch_start_wait(self, bide_this_context());
            if (self->file != NULL) {
                self->until = BIDE_FOREVER;
                bide_await_status(self->status, http_fetch_send_file(self));
                if (self->status < 0) {
                    http_fetch_note_silence(self, bide_this_context());
                    bide_return(self->status);
                }
                http_fetch_start_wait(self, bide_this_context());
            }
            http_fetch_start_clock(self, bide_this_context());
            if (self->body_size != 0 && self->file == NULL && !self->is_started &&
                self->session == NULL) { /* (a server may respond before it has read all of it) */
                bide_await_status(self->status,
                                  http_fetch_limit(self, bide_http_client_write(
                                                             &http_fetch_link(self)->client,
                                                             self->body, (size_t)self->body_size)));
                if (self->status < 0 && http_fetch_link(self)->client.output.error == 0)
                    bide_return(self->status);
            }
            do {
                bide_await_status(self->status, http_fetch_limit(self, http_fetch_recv(self)));
            } while (http_fetch_waits_on(self, bide_this_context()));
            if (self->status == 0)
                break;
            http_fetch_note_silence(self, bide_this_context());
            if (!http_fetch_may_retry(self))
                bide_return(self->status);
            http_fetch_return_connection(self);
        }
        self->response = *http_fetch_response(self);
        if (self->response.status < 200)
            bide_return(-EBADMSG);
        self->status = http_fetch_check_limits(self);
        if (self->status < 0)
            bide_return(self->status);
        http_fetch_keep_cookies(self);
        if (!http_fetch_is_redirect(self))
            break;
        self->status = http_fetch_redirect(self);
        if (self->status < 0)
            bide_return(self->status);
        while (http_fetch_may_drain(self)) {
            bide_await_status(
                self->status,
                http_fetch_limit(self, bide_http_client_read(&http_fetch_link(self)->client,
                                                             http_fetch_link(self)->raw,
                                                             HTTP_AGENT_RAW)));
            if (http_fetch_was_cancelled(self))
                bide_return(self->status);
            if (self->status < 0 || http_fetch_link(self)->client.count == 0)
                break;
        }
        http_fetch_leave(self);
        strcpy(self->url, self->next); /* 5 */
        (void)bide_http_url_parse(&self->parsed, self->url, strlen(self->url));
    }
    self->status = http_fetch_open_decoder(self);
    if (self->status < 0)
        bide_return(self->status);
    self->state = HTTP_FETCH_SENT;
    bide_finally();
    if (self->state == HTTP_FETCH_SENDING) /* 2 */
        http_fetch_leave(self);
    bide_end();
}

bide_awaiter *bide_http_fetch_send(bide_http_fetch *fetch)
{
    return bide_task_init(&fetch->task, &http_fetch_send_body);
}

bide_slice bide_http_fetch_field(const bide_http_fetch *fetch, const char *name)
{
    return bide_http_find(fetch->response.fields, fetch->response.field_count, name);
}

bide_slice bide_http_fetch_trailer(const bide_http_fetch *fetch, const char *name)
{
    const bide_http_agent_http2 *http2 = fetch->agent->http2;
    if (fetch->state != HTTP_FETCH_SENT)
        return (bide_slice){NULL, 0};
    if (fetch->session == NULL)
        return bide_http_client_trailer(&http_fetch_link(fetch)->client, name);
    return http2->trailer != NULL ? http2->trailer(fetch->request, name) : (bide_slice){NULL, 0};
}

/* ---- A body in pieces: 13 ---- */

/* The server wants the body, or has responded. */
static bide_awaiter *http_fetch_continue(bide_http_fetch *fetch)
{
    return bide_with_timeout(&fetch->limited, fetch->agent->options.continue_timeout,
                             fetch->session != NULL
                                 ? fetch->agent->http2->wait_for_continue(fetch->request)
                                 : bide_http_client_continue(&http_fetch_link(fetch)->client));
}

static bool http_fetch_continues(const bide_http_fetch *fetch)
{
    return fetch->session != NULL ? fetch->agent->http2->continues(fetch->request)
                                  : http_fetch_link(fetch)->client.continues;
}

bide_coroutine(http_fetch_start_body)
{
    bide_begin(http_fetch_start_body, bide_http_uploading_ * self);
    if (self->fetch->state != HTTP_FETCH_READY || self->fetch->has_body)
        bide_return(-EINVAL);
    self->fetch->state = HTTP_FETCH_SENDING;
    self->fetch->is_started = self->fetch->has_body = true;
    self->fetch->body_size = self->length;
    self->fetch->status = http_fetch_enter(self->fetch);
    if (self->fetch->status < 0)
        bide_return(self->fetch->status);
    bide_try(http_fetch_connect(self->fetch));
    self->fetch->status = http_fetch_write_head(self->fetch);
    if (self->fetch->status < 0)
        bide_return(self->fetch->status);
    if (self->fetch->expects_continue) {
        bide_await_status(self->fetch->status, http_fetch_continue(self->fetch));
        if (self->fetch->status == -ECANCELED ||
            (self->fetch->status == -ETIMEDOUT &&
             !bide_with_deadline_passed(&self->fetch->limited)))
            bide_return(self->fetch->status);
        self->fetch->is_unwanted =
            self->fetch->status != -ETIMEDOUT && !http_fetch_continues(self->fetch);
    }
    self->fetch->state = HTTP_FETCH_STARTED;
    bide_finally();
    if (self->fetch->state == HTTP_FETCH_SENDING) /* 2 */
        http_fetch_leave(self->fetch);
    bide_end();
}

bide_awaiter *bide_http_fetch_start(bide_http_fetch *fetch, uint64_t length)
{
    fetch->uploading.fetch = fetch;
    fetch->uploading.length = length;
    return bide_task_init(&fetch->uploading.task, &http_fetch_start_body);
}

bide_coroutine(http_fetch_write_body)
{
    bide_begin(http_fetch_write_body, bide_http_uploading_ * self);
    if (self->fetch->state != HTTP_FETCH_STARTED)
        bide_return(-EINVAL);
    if (self->fetch->is_unwanted || self->size == 0)
        bide_return(0);
    self->fetch->until = BIDE_FOREVER;
    http_fetch_start_wait(self->fetch, bide_this_context());
    bide_await_status(self->fetch->status, http_fetch_write_some(self));
    if (self->fetch->status == 0 && self->fetch->session == NULL)
        bide_await_status(self->fetch->status,
                          bide_http_client_flush(&http_fetch_link(self->fetch)->client));
    http_fetch_note_silence(self->fetch, bide_this_context());
    if (self->fetch->status == 0)
        self->fetch->count = self->size;
    if (self->fetch->status == 0 || self->fetch->status == -EMSGSIZE ||
        self->fetch->status == -ECANCELED || self->fetch->status == -ETIMEDOUT)
        bide_return(self->fetch->status);
    self->fetch->is_unwanted = true; /* (bide_http_fetch_send finds out why) */
    bide_end();
}

bide_awaiter *bide_http_fetch_write(bide_http_fetch *fetch, const void *data, size_t size)
{
    fetch->count = 0;
    fetch->uploading.fetch = fetch;
    fetch->uploading.data = data;
    fetch->uploading.size = size;
    return bide_task_init(&fetch->uploading.task, &http_fetch_write_body);
}

/* ---- Reading ---- */

/*
 * Decodes what was read. Returns 1 (there is something, or the end), 0 (more has to be read), or an error.
 */
static int http_fetch_decode(bide_http_fetch *fetch)
{
    uint64_t left = fetch->agent->options.max_body - fetch->decoded;
    size_t size = fetch->out_size;
    if (left < size) /* one byte more shows that it is too long */
        size = (size_t)left + 1;
    ptrdiff_t count = bide_http_decoder_run_(fetch->decoder, &fetch->raw, fetch->out, size);
    if (count < 0)
        return (int)count;
    if ((uint64_t)count > left)
        return -EFBIG;
    fetch->decoded += (uint64_t)count;
    fetch->count = (size_t)count;
    if (count != 0)
        return 1;
    if (!fetch->raw_has_ended)
        return 0;
    return bide_http_decoder_is_whole_(fetch->decoder) ? 1 : -ENODATA;
}

bide_coroutine(http_fetch_read_body)
{
    bide_begin(http_fetch_read_body, bide_http_fetch * self);
    if (self->state != HTTP_FETCH_SENT || (self->connection == NULL && self->session == NULL) ||
        self->out_size == 0)
        bide_return(-EINVAL);
    self->until = BIDE_FOREVER;
    if (self->decoder == NULL) {
        http_fetch_start_wait(self, bide_this_context());
        bide_await_status(self->status, http_fetch_read_some(self, self->out, self->out_size));
        self->count = http_fetch_read_count(self);
        http_fetch_note_silence(self, bide_this_context());
        bide_return(self->status);
    }
    for (;;) {
        self->status = http_fetch_decode(self);
        if (self->status < 0)
            self->state = HTTP_FETCH_SPOILT;
        if (self->status != 0)
            bide_return(self->status > 0 ? 0 : self->status);
        http_fetch_start_wait(self, bide_this_context());
        bide_await_status(self->status,
                          http_fetch_read_some(self, http_fetch_raw(self), HTTP_AGENT_RAW));
        self->raw = (bide_slice){http_fetch_raw(self), http_fetch_read_count(self)};
        http_fetch_note_silence(self, bide_this_context());
        if (self->status < 0)
            bide_return(self->status);
        self->raw_has_ended = self->raw.size == 0;
    }
    bide_end();
}

bide_awaiter *bide_http_fetch_read(bide_http_fetch *fetch, void *data, size_t size)
{
    fetch->count = 0;
    fetch->out = data;
    fetch->out_size = size;
    return bide_task_init(&fetch->task, &http_fetch_read_body);
}

void bide_http_fetch_close(bide_http_fetch *fetch)
{
    if (fetch->state == HTTP_FETCH_CLOSED)
        return;
    http_fetch_leave(fetch);
    bide_assert(fetch->agent->users != 0);
    fetch->agent->users--;
    fetch->state = HTTP_FETCH_CLOSED;
}

/* ---- All in one ---- */

/* The room for the next bytes. Behind the body it is one byte, which shows that the body is too long. */
static bide_awaiter *http_get_read(bide_http_getting_ *self)
{
    return self->got < self->size
               ? bide_http_fetch_read(self->fetch, self->body + self->got, self->size - self->got)
               : bide_http_fetch_read(self->fetch, &self->beyond, 1);
}

bide_coroutine(http_get_body)
{
    bide_begin(http_get_body, bide_http_getting_ * self);
    self->status = bide_http_fetch_init(self->fetch, self->agent, "GET", self->url);
    if (self->status < 0)
        bide_return(self->status);
    bide_try(bide_http_fetch_send(self->fetch));
    for (;;) {
        bide_try(http_get_read(self));
        if (self->fetch->count == 0)
            break;
        if (self->got == self->size)
            bide_return(-EMSGSIZE);
        self->got += self->fetch->count;
    }
    bide_finally();
    int code = self->fetch->response.status;
    bide_http_fetch_close(self->fetch);
    self->fetch->response.status = code;
    self->fetch->count = self->got;
    bide_end();
}

bide_awaiter *bide_http_get(bide_http_fetch *fetch, bide_http_agent *agent, const char *url,
                            void *body, size_t size)
{
    bide_http_getting_ *self = &fetch->getting;
    self->fetch = fetch;
    self->agent = agent;
    self->url = url;
    self->body = body;
    self->size = size;
    self->got = 0;
    fetch->state = HTTP_FETCH_CLOSED;
    fetch->response.status = 0;
    return bide_task_init(&self->task, &http_get_body);
}

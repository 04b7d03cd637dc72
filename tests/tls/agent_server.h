/*
 * A server for an HTTP agent, and the agent, over each way of the two to talk: HTTP/1.1 and HTTP/2, plain and over TLS.
 * The server is a proxy too, whose tunnels all lead to itself.
 */
#ifndef BIDE_TESTS_TLS_AGENT_SERVER_H
#define BIDE_TESTS_TLS_AGENT_SERVER_H

#include "tls_pair.h"

#include <bide/http.h>
#include <bide/http2.h>
#include <bide/http_agent_http2.h>
#include <bide/http_agent_tls.h>

#include "../../src/http/inflate.h"
#include "../http/http_compressed.h"

#include <string.h>

typedef enum transport { PLAIN_1, TLS_1, TLS_2, PLAIN_2, TRANSPORTS } transport;

static const char *const transports[] = {"HTTP/1.1", "HTTP/1.1 over TLS", "HTTP/2 by ALPN",
                                         "HTTP/2 by prior knowledge"};

enum { SLOTS = 10, PAGE = 100000, HUGE = 64 << 20 };

struct peer {
    bide_connection connection;
    bide_io_operation operation;
    bide_tls tls;
    bide_tls_handshake handshake;
    bide_http_connection serving;
    char text[1000];
    size_t size;
    int status;
    bide_event_waiter wait;
};

static struct {
    world *world;
    bide_server server;
    bide_http_server http;
    bide_http2 http2;
    bide_spawned running;
    struct peer slots[SLOTS];
    char memory[SLOTS][65536];
    bide_tls_config *config, *client;
    bide_http_agent *agent;
    bide_http_fetch fetch;
    char page[PAGE];
    bide_descriptor file;
    transport transport;
    char address[64]; /* of the server */
    char url[128];
    bool is_proxy; /* connections begin with CONNECT, or have a proxy's form */
    unsigned tunnels;
    bool is_silent; /* new connections are not served */
    bide_event silenced;
    unsigned cuts;    /* so many requests end their connections, instead of a response */
    bide_event began; /* the handler of "/silent" and its like, or the upload is stuck */
    bide_event never;
    unsigned requests;
    char seen[64]; /* the last request */
} f;

static const char zeros[PAGE];

struct handler {
    bide_http_exchange exchange;
    bide_event_waiter wait;
    char buffer[4096];
    uint64_t size;
    int code;
};

static inline void cut_connections(void)
{
    f.cuts--;
    for (int i = 0; i < SLOTS; i++)
        if (bide_descriptor_is_open(&f.slots[i].connection.socket))
            bide_close(&f.slots[i].connection.socket);
}

/* "/moved/307" and its like lead to "/what". Returns 0 for other paths. */
static inline int code_of(bide_slice path)
{
    return path.size == 10 && memcmp(path.data, "/moved/", 7) == 0 ? atoi(path.data + 7) : 0;
}

static inline void note_request(const bide_http_exchange *exchange, uint64_t size)
{
    const bide_http_request *request = &exchange->request;
    snprintf(f.seen, sizeof f.seen, "%.*s %.*s %d", (int)request->method_name.size,
             request->method_name.data, (int)request->path.size, request->path.data, (int)size);
}

bide_coroutine(handler_body)
{
    bide_begin(handler_body, struct handler * self);
#define IS(text) bide_http_is(self->exchange.request.path, text)
    f.requests++;
    if (IS("/cut") && f.cuts != 0) {
        cut_connections();
        bide_return(-EPIPE);
    }
    if (IS("/silent") || IS("/stuck")) { /* (the body is not read) */
        bide_event_set(&f.began);
        bide_try(bide_event_wait(&self->wait, &f.never));
    }
    if (IS("/early")) {
        self->exchange.status = 413;
        bide_try(bide_http_respond(&self->exchange, "no", 2));
        bide_return(0);
    }
    self->size = 0;
    do {
        bide_try(bide_http_read(&self->exchange, self->buffer, sizeof self->buffer));
        self->size += self->exchange.count;
        if (IS("/pieces") && self->exchange.count != 0)
            bide_event_set(&f.began);
    } while (self->exchange.count != 0);
    note_request(&self->exchange, self->size);
    if ((self->code = code_of(self->exchange.request.path)) != 0) {
        self->exchange.status = self->code;
        bide_http_add(&self->exchange, "Location", "/what");
        bide_try(bide_http_respond(&self->exchange, "gone", 4));
    } else if (IS("/gzip")) {
        bide_http_add(&self->exchange, "Content-Encoding", "gzip");
        bide_try(bide_http_respond(&self->exchange, gzipped, sizeof gzipped));
    } else if (IS("/set")) {
        bide_http_add(&self->exchange, "Set-Cookie", "a=b");
        bide_try(bide_http_respond(&self->exchange, "", 0));
    } else if (IS("/cookie")) {
        bide_slice cookie = bide_http_request_field(&self->exchange, "cookie");
        bide_try(bide_http_respond(&self->exchange, cookie.data, cookie.size));
    } else if (IS("/big")) {
        bide_try(bide_http_respond(&self->exchange, zeros, sizeof zeros));
    } else if (IS("/half")) {
        self->code = bide_http_start_response(&self->exchange, 10);
        bide_try(bide_http_write(&self->exchange, "hello", 5));
        bide_try(bide_http_flush(&self->exchange));
        bide_event_set(&f.began);
        bide_try(bide_event_wait(&self->wait, &f.never));
    } else if (IS("/trailers")) {
        self->code = bide_http_add(&self->exchange, "Trailer", "X-Sum");
        bide_try(bide_http_write(&self->exchange, "hello", 5));
        self->code = bide_http_add_trailer(&self->exchange, "X-Sum", "42");
    } else {
        bide_try(bide_http_respond(&self->exchange, "hello", 5));
    }
#undef IS
    bide_end();
}

bide_coroutine(peer_body)
{
    static const char opened[] = "HTTP/1.1 200 OK\r\n\r\n";
    bide_begin(peer_body, struct peer * self);
    bide_tls_init_closed(&self->tls);
    self->size = 0;
    memset(self->text, 0, sizeof self->text);
    if (f.is_silent) {
        bide_event_set(&f.silenced);
        do { /* (until it leaves) */
            bide_try(bide_recv(&self->operation, &self->connection.socket, self->text,
                               sizeof self->text));
        } while (self->operation.count != 0);
        bide_return(0);
    }
    if (f.is_proxy && f.transport != PLAIN_1) {
        while (strstr(self->text, "\r\n\r\n") == NULL) {
            bide_try(bide_recv(&self->operation, &self->connection.socket, self->text + self->size,
                               sizeof self->text - 1 - self->size));
            if (self->operation.count == 0)
                bide_return(0);
            self->size += self->operation.count;
        }
        f.tunnels += memcmp(self->text, "CONNECT server.test:", 20) == 0;
        bide_try(bide_send(&self->operation, &self->connection.socket, opened, sizeof opened - 1));
    }
    if (f.transport == TLS_1 || f.transport == TLS_2)
        bide_try(bide_tls_accept(&self->handshake, &self->tls, f.config,
                                 bide_socket_stream(&self->connection.socket)));
    bide_await_status(
        self->status,
        bide_http2_serve(&self->serving, &f.http2,
                         self->tls.ssl != NULL ? bide_tls_stream(&self->tls)
                                               : bide_socket_stream(&self->connection.socket),
                         f.memory[self - f.slots],
                         self->tls.ssl != NULL ? bide_tls_protocol(&self->tls) : NULL));
    bide_finally();
    bide_tls_close(&self->tls);
    bide_end();
}

static inline bide_http_version version_of(transport transport)
{
    return transport == TLS_1     ? BIDE_HTTP_VERSION_1
           : transport == PLAIN_2 ? BIDE_HTTP_VERSION_2
                                  : BIDE_HTTP_VERSION_ANY;
}

static inline bool is_http2(void)
{
    return f.transport == TLS_2 || f.transport == PLAIN_2;
}

static inline bool has_tls(void)
{
    return f.transport == TLS_1 || f.transport == TLS_2;
}

/* Makes the agent, whose requests have the transport's version. */
static inline void make_agent(bide_http_agent_options options)
{
    options.ignores_environment = !f.is_proxy;
    assert_int_equal(bide_http_agent_create(&f.agent, &options), 0);
    bide_http_agent_use_tls(f.agent, f.client);
    bide_http_agent_use_http2(f.agent);
}

/* The server speaks each version over each transport: the client decides. */
static inline void open_peer(void **state, transport transport, bide_http_options serving)
{
    bide_tls_certificate room;
    bide_io_operation operation;
    bide_address address;
    bide_server_options options = {.body = &peer_body,
                                   .size = sizeof(struct peer),
                                   .max_connections = SLOTS,
                                   .slots = f.slots};
    serving.handler = (bide_http_handler){&handler_body, sizeof(struct handler)};
    serving.read_buffer_size = 16384;
    serving.body_idle_timeout = UINT64_C(600000000000); /* (however slow this machine is) */
    if (serving.max_body == 0)
        serving.max_body = BIDE_HTTP_UNKNOWN;
    memset(&f, 0, sizeof f);
    f.transport = transport;
    f.world = world_of(state);
    bide_event_init(&f.silenced, false);
    bide_event_init(&f.began, false);
    bide_event_init(&f.never, false);
    bide_tls_options asking = options_of(&server_proof, &room);
    asking.protocols = bide_http2_protocols;
    f.config = server_with(&asking);
    asking = options_of(NULL, &room);
    asking.protocols = bide_http2_protocols;
    f.client = client_with(&asking);
    assert_int_equal(bide_http_server_init(&f.http, &serving), 0);
    assert_int_equal(bide_http2_init(&f.http2, &f.http, &(bide_http2_options){.is_plain = true}),
                     0);
    assert_true(bide_http_memory_size(&f.http) <= sizeof f.memory[0]);
    assert_int_equal(bide_server_init(&f.server, &options), 0);
    assert_int_equal(bide_address_ip(&address, "127.0.0.1", 0), 0);
    assert_int_equal(
        world_wait(f.world, bide_listen(&operation, &f.server.listener, &address, SLOTS)), 0);
    assert_int_equal(bide_local_address(&f.server.listener, &address), 0);
    bide_address_print(&address, f.address, sizeof f.address);
    bide_spawn(&f.running, f.world->context, bide_server_run(&f.server));
}

static inline void open_transport_with(void **state, transport transport,
                                       bide_http_agent_options options)
{
    (void)world_of_a_loop(world_of(state));
    open_peer(state, transport, (bide_http_options){0});
    options.version = version_of(transport);
    make_agent(options);
}

static inline void open_transport(void **state, transport transport)
{
    open_transport_with(state, transport, (bide_http_agent_options){0});
}

static inline void close_transport(void)
{
    bide_event_waiter wait;
    bide_http_fetch_close(&f.fetch);
    bide_http_agent_destroy(f.agent);
    bide_server_shut_down(&f.server, 0);
    assert_int_equal(world_wait(f.world, bide_event_wait(&wait, &f.running.ended)), 0);
    assert_int_equal(f.http2.stats.memory, 0);
    bide_tls_config_release(f.config);
    bide_tls_config_release(f.client);
}

static inline const char *url_of(const char *path)
{
    snprintf(f.url, sizeof f.url, "http%s://%s%s", has_tls() ? "s" : "",
             f.is_proxy ? "server.test" : f.address, path);
    return f.url;
}

static inline int open_fetch(const char *method, const char *path)
{
    bide_http_fetch_close(&f.fetch);
    return bide_http_fetch_init(&f.fetch, f.agent, method, url_of(path));
}

static inline int send_fetch(void)
{
    return world_wait(f.world, bide_http_fetch_send(&f.fetch));
}

/* Reads the whole body into f.page. */
static inline int read_page(void)
{
    size_t size = 0;
    int status;
    memset(f.page, 0, sizeof f.page);
    do {
        status = world_wait(f.world,
                            bide_http_fetch_read(&f.fetch, f.page + size, sizeof f.page - size));
        size += f.fetch.count;
        assert_true(size < sizeof f.page);
    } while (status == 0 && f.fetch.count != 0);
    return status;
}

static inline int get(const char *path)
{
    bide_http_fetch_close(&f.fetch);
    memset(f.page, 0, sizeof f.page);
    return world_wait(f.world,
                      bide_http_get(&f.fetch, f.agent, url_of(path), f.page, sizeof f.page));
}

/* A file of zeros. */
static inline void make_file(uint64_t size)
{
    bide_file_operation operation;
    bide_descriptor_init_closed(&f.file);
    assert_int_equal(
        world_wait(f.world, bide_open_temporary(&operation, &f.file, NULL, "/tmp", 0, 0600)), 0);
    assert_int_equal(world_wait(f.world, bide_truncate(&operation, &f.file, (int64_t)size)), 0);
}

/* The agent works, by the transport's version. */
static inline void assert_works(void)
{
    assert_int_equal(get("/x"), 0);
    assert_int_equal(f.fetch.response.status, 200);
    assert_string_equal(f.page, "hello");
    assert_int_equal(f.fetch.is_http2, is_http2());
}

#endif

/*
 * A server for tests with third-party clients: http2_server [CERT KEY]. It prints the port to the first
 * line; with TLS, two ports, the one without TLS first. It stops at the end of its standard input.
 *
 *     GET  /hello     "hello"
 *     GET  /large     a megabyte
 *     POST /echo      the request's body
 *     GET  /trailer   a trailer after the body
 *     GET  /slow      after a minute
 */
#include <bide/bide.h>
#include <bide/http.h>
#include <bide/http2.h>

#if HAS_TLS
#include <bide/tls.h>
#endif

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CONNECTIONS = 2000, LARGE = 1000000 };

#define SECOND UINT64_C(1000000000)

static char large[LARGE];

struct handler {
    bide_http_exchange exchange;
    char buffer[8192];
    bide_sleep sleep;
};

bide_coroutine(hello_body)
{
    bide_begin(hello_body, struct handler * self);
    bide_http_add(&self->exchange, "Content-Type", "text/plain");
    bide_try(bide_http_respond(&self->exchange, "hello", 5));
    bide_end();
}

bide_coroutine(large_body)
{
    bide_begin(large_body, struct handler * self);
    bide_try(bide_http_respond(&self->exchange, large, LARGE));
    bide_end();
}

bide_coroutine(trailer_body)
{
    bide_begin(trailer_body, struct handler * self);
    bide_try(bide_http_write(&self->exchange, "body", 4));
    (void)bide_http_add_trailer(&self->exchange, "X-Sum", "4");
    bide_end();
}

bide_coroutine(slow_body)
{
    bide_begin(slow_body, struct handler * self);
    bide_try(bide_sleep_for(&self->sleep, 60 * SECOND));
    bide_end();
}

bide_coroutine(echo_body)
{
    bide_begin(echo_body, struct handler * self);
    for (;;) {
        bide_try(bide_http_read(&self->exchange, self->buffer, sizeof self->buffer));
        if (self->exchange.count == 0)
            break;
        bide_try(bide_http_write(&self->exchange, self->buffer, self->exchange.count));
    }
    bide_end();
}

static struct program {
    bide_task task;
    bide_http_router router;
    bide_http_server http;
    bide_http2 http2;
    bide_address address;
    bide_io_operation listen;
    bide_scope scope;
    bide_branch plain, secure;
    bide_descriptor input;
    bide_file_operation read;
    char byte;
#if HAS_TLS
    bide_server tls_server;
    bide_tls_config *config;
#endif
} program;

/* ---- With TLS: code that a program with both protocols needs ---- */

#if HAS_TLS
struct session {
    bide_connection connection;
    bide_tls tls;
    bide_tls_handshake handshake;
    bide_with_deadline_operation limited;
    bide_http_connection http;
    void *memory;
};

bide_coroutine(session_body)
{
    bide_begin(session_body, struct session * self);
    bide_tls_init_closed(&self->tls);
    self->memory = malloc(bide_http_memory_size(&program.http));
    if (self->memory == NULL)
        bide_return(-ENOMEM);
    bide_try(bide_with_deadline(&self->limited, bide_now(bide_this_context()) + 10 * SECOND,
                                bide_tls_accept(&self->handshake, &self->tls, program.config,
                                                bide_socket_stream(&self->connection.socket))));
    bide_try(bide_http2_serve(&self->http, &program.http2, bide_tls_stream(&self->tls), self->memory,
                              bide_tls_protocol(&self->tls)));
    bide_finally();
    bide_tls_close(&self->tls);
    free(self->memory);
    bide_end();
}

static int set_up_tls(const char *certificate, const char *key)
{
    bide_tls_certificate own = {.chain_file = certificate, .key_file = key};
    bide_tls_options options = {.certificates = &own, .certificate_count = 1, .protocols = bide_http2_protocols};
    bide_server_options server = {
        .body = &session_body, .size = sizeof(struct session), .max_connections = CONNECTIONS, .allocator = &bide_heap};
    int status = bide_tls_server_create(&program.config, &options, NULL);
    return status == 0 ? bide_server_init(&program.tls_server, &server) : status;
}
#endif

/* ---- The program ---- */

static int set_up(void)
{
    static const bide_http_route routes[] = {
        {"GET", "/hello", {&hello_body, sizeof(struct handler)}, NULL},
        {"GET", "/large", {&large_body, sizeof(struct handler)}, NULL},
        {"GET", "/trailer", {&trailer_body, sizeof(struct handler)}, NULL},
        {"GET", "/slow", {&slow_body, sizeof(struct handler)}, NULL},
        {"POST", "/echo", {&echo_body, sizeof(struct handler)}, NULL},
    };
    for (size_t i = 0; i < LARGE; i++)
        large[i] = (char)('a' + i % 26);
    bide_http_options options = {.select_handler = bide_http_route_request,
                                 .argument = &program.router,
                                 .max_body = BIDE_HTTP_UNKNOWN,
                                 .max_connections = CONNECTIONS};
    int status = bide_http_router_init(&program.router, routes, sizeof routes / sizeof *routes);
    options.max_frame_size = program.router.frame;
    if (status == 0)
        status = bide_http_server_init(&program.http, &options);
    if (status == 0)
        status = bide_http2_init(&program.http2, &program.http, &(bide_http2_options){.is_plain = true});
    return status;
}

bide_coroutine(program_body)
{
    bide_begin(program_body, struct program * self);
    bide_descriptor_init(&self->input, 0);
    bide_try(bide_listen(&self->listen, &self->http.server.listener, &self->address, CONNECTIONS));
    bide_scope_init(&self->scope, bide_this_frame());
    bide_scope_spawn(&self->scope, &self->plain, bide_http_server_run(&self->http));
    bide_address used;
    bide_local_address(&self->http.server.listener, &used);
    printf("%u", bide_address_port(&used));
#if HAS_TLS
    if (self->config != NULL) {
        bide_try(bide_listen(&self->listen, &self->tls_server.listener, &self->address, CONNECTIONS));
        bide_scope_spawn(&self->scope, &self->secure, bide_server_run(&self->tls_server));
        bide_local_address(&self->tls_server.listener, &used);
        printf(" %u", bide_address_port(&used));
    }
#endif
    printf("\n");
    fflush(stdout);
    bide_await(bide_read(&self->read, &self->input, &self->byte, 1));
    bide_http_server_shut_down(&self->http, bide_now(bide_this_context()) + SECOND);
#if HAS_TLS
    bide_server_shut_down(&self->tls_server, bide_now(bide_this_context()) + SECOND);
#endif
    bide_try(bide_scope_join(&self->scope));
    bide_finally();
    bide_scope_destroy(&self->scope);
    bide_end();
}

int main(int argc, char **argv)
{
    bide_loop *loop;
    int status = set_up();
    (void)argc;
    (void)argv;
#if HAS_TLS
    if (status == 0 && argc > 2)
        status = set_up_tls(argv[1], argv[2]);
#endif
    if (status == 0)
        status = bide_loop_create(&loop, NULL);
    if (status == 0) {
        bide_address_ip(&program.address, "127.0.0.1", 0);
        status = bide_loop_wait(loop, bide_task_init(&program.task, &program_body));
        bide_loop_destroy(loop);
    }
#if HAS_TLS
    bide_tls_config_release(program.config);
#endif
    if (status == 0 && (program.http2.stats.memory != 0 || program.http2.stats.live != 0))
        status = -EBUSY;
    if (status < 0)
        fprintf(stderr, "http2_server: %s\n", strerror(-status));
    return status < 0;
}

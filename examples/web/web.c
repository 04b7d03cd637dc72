/*
 * A small HTTP server.
 *
 *     web [--port N]
 *
 * Port 0, which is the default, is any; the port stands at the end of the first line that it prints.
 *
 *     GET /           says hello
 *     POST /echo      sends back what it receives, while it receives it
 */
#include <bide/bide.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BACKLOG = 1024, CONNECTIONS_MOST = 1 << 16 };

/* ---- Handlers ---- */

struct hello {
    bide_http_exchange exchange;
};

bide_coroutine(hello_body)
{
    static const char text[] = "hello\n";
    bide_begin(hello_body, struct hello * self);
    bide_http_add(&self->exchange, "Content-Type", "text/plain");
    bide_try(bide_http_respond(&self->exchange, text, sizeof text - 1));
    bide_end();
}

struct echo {
    bide_http_exchange exchange;
    char buffer[16384];
};

bide_coroutine(echo_body)
{
    bide_begin(echo_body, struct echo * self);
    for (;;) {
        bide_try(bide_http_read(&self->exchange, self->buffer, sizeof self->buffer));
        if (self->exchange.count == 0)
            break;
        bide_try(bide_http_write(&self->exchange, self->buffer, self->exchange.count));
        bide_try(bide_http_flush(&self->exchange));
    }
    bide_end();
}

static const bide_http_handler *choose(bide_http_exchange *exchange)
{
    static const bide_http_handler hello = {&hello_body, sizeof(struct hello)};
    static const bide_http_handler echo = {&echo_body, sizeof(struct echo)};
    if (bide_http_is(exchange->request.path, "/"))
        return &hello;
    return bide_http_is(exchange->request.path, "/echo") ? &echo : NULL;
}

/* ---- The server ---- */

static void complain(int status)
{
    if (status < 0) {
        fprintf(stderr, "web: %s\n", strerror(-status));
        exit(1);
    }
}

int main(int argc, char **argv)
{
    static bide_http_server server;
    bide_loop *loop;
    bide_address address;
    bide_io_operation listen;
    int port = argc == 3 && strcmp(argv[1], "--port") == 0 ? atoi(argv[2]) : 0;
    complain(bide_http_server_init(&server, &(bide_http_options){.choose = choose,
                                                                 .frame = sizeof(struct echo),
                                                                 .most_body = BIDE_HTTP_UNKNOWN,
                                                                 .most = CONNECTIONS_MOST}));
    complain(bide_loop_create(&loop, NULL));
    bide_address_ip(&address, "127.0.0.1", (uint16_t)port);
    complain(bide_loop_wait(loop, bide_listen(&listen, &server.server.listener, &address, BACKLOG)));
    complain(bide_local_address(&server.server.listener, &address));
    printf("listening on port %u\n", (unsigned)bide_address_port(&address));
    fflush(stdout);
    complain(bide_loop_wait(loop, bide_http_server_run(&server)));
    bide_loop_destroy(loop);
    return 0;
}

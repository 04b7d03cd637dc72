/*
 * A chat: rooms over websockets, and a web page of its own.
 *
 *     chat [--port N] [--address A] [--clients N] [--ping SECONDS] [--rate N] [--help]
 *
 * The first line that it prints ends with the port. SIGTERM and SIGINT end it: clients are told, and
 * have three seconds.
 */
#include "page.h"
#include "room.h"
#include "session.h"

#include <bide/async.h>
#include <bide/loop.h>
#include <bide/signal.h>
#include <bide/sleep.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECOND UINT64_C(1000000000)

enum { BACKLOG_OF_LISTENER = 256, GRACE = 3, BUFFER = 4096 };

struct options {
    const char *address;
    unsigned port, clients, ping, rate;
};

static const char help[] =
    "usage: chat [--port N] [--address A] [--clients N] [--ping SECONDS] [--rate N]\n"
    "\n"
    "A chat with rooms, for browsers. Open http://localhost:PORT/ in some of them.\n"
    "\n"
    "  --port N         where it listens; 0, the default, is any, which the first line names\n"
    "  --address A      an IP address of this machine; 127.0.0.1 if not said\n"
    "  --clients N      connections at a time; 10000 if not said\n"
    "  --ping SECONDS   one that is silent for so long is asked whether it is there, and is gone if\n"
    "                   nothing comes in another two of that; 20 if not said\n"
    "  --rate N         messages a second of one client, twice as many at once; 5 if not said\n"
    "  --help           this\n";

/* ---- Options ---- */

static unsigned number(const char *text, unsigned min, unsigned max)
{
    char *end = NULL;
    errno = 0;
    unsigned long value = text != NULL ? strtoul(text, &end, 10) : 0;
    if (text == NULL || end == text || *end != '\0' || errno != 0 || value < min || value > max) {
        fprintf(stderr, "%s", help);
        exit(2);
    }
    return (unsigned)value;
}

static struct options parse(int argc, char **argv)
{
    struct options options = {"127.0.0.1", 0, 10000, 20, 5};
    for (int i = 1; i < argc; i += 2) {
        if (strcmp(argv[i], "--help") == 0) {
            printf("%s", help);
            exit(0);
        }
        if (strcmp(argv[i], "--port") == 0)
            options.port = number(argv[i + 1], 0, UINT16_MAX);
        else if (strcmp(argv[i], "--clients") == 0)
            options.clients = number(argv[i + 1], 1, 1 << 20);
        else if (strcmp(argv[i], "--ping") == 0)
            options.ping = number(argv[i + 1], 1, 3600);
        else if (strcmp(argv[i], "--rate") == 0)
            options.rate = number(argv[i + 1], 1, 1000000);
        else if (strcmp(argv[i], "--address") == 0 && argv[i + 1] != NULL)
            options.address = argv[i + 1];
        else
            number(NULL, 0, 0);
    }
    return options;
}

/* ---- The server ---- */

struct chat {
    bide_http_server http;
    struct session_options session;
    bide_signal terminate, interrupt;
};

static const bide_http_handler *choose(bide_http_exchange *exchange)
{
    bide_http_method method = exchange->request.method;
    if (bide_http_is(exchange->request.path, "/chat"))
        return &session_handler;
    return method == BIDE_HTTP_GET || method == BIDE_HTTP_HEAD ? page_handler(exchange->request.path) : NULL;
}

async int wait_for_end(struct chat *self)
{
    int status = await any(bide_signal_wait(&self->terminate), bide_signal_wait(&self->interrupt));
    if (status < 0)
        return status;
    rooms_close(); /* sessions end by that */
    bide_http_server_shut_down(&self->http, bide_now(bide_this_context()) + GRACE * SECOND);
    return 0;
}

async int run(struct chat *self, const struct options *options, const char *backend)
{
    bide_address address;
    int status = bide_address_ip(&address, options->address, (uint16_t)options->port);
    if (status == 0)
        status = await bide_listen(&self->http.server.listener, &address, BACKLOG_OF_LISTENER);
    if (status == 0)
        status = bide_local_address(&self->http.server.listener, &address);
    if (status < 0)
        return status;
    printf("listening (%s) on port %u\n", backend, bide_address_port(&address));
    fflush(stdout);
    return await all(bide_http_server_run(&self->http), wait_for_end(self));
}

static int prepare(struct chat *self, const struct options *options)
{
    self->session = (struct session_options){.ping = options->ping * SECOND,
                                             .silence = 3 * options->ping * SECOND,
                                             .rate = options->rate,
                                             .burst = 2 * options->rate};
    bide_http_options http = {.select_handler = choose,
                              .max_frame_size = session_handler.size,
                              .argument = &self->session,
                              .read_buffer_size = BUFFER,
                              .write_buffer_size = BUFFER,
                              .max_connections = options->clients,
                              .max_body = 1};
    rooms_init();
    int status = bide_http_server_init(&self->http, &http);
    if (status == 0)
        status = bide_signal_listen(&self->terminate, SIGTERM);
    if (status == 0)
        status = bide_signal_listen(&self->interrupt, SIGINT);
    return status;
}

int main(int argc, char **argv)
{
    static struct chat chat;
    static async_frame(run) frame;
    struct options options = parse(argc, argv);
    bide_loop *loop = NULL;
    int status = prepare(&chat, &options);
    if (status == 0)
        status = bide_loop_create(&loop, NULL);
    if (status == 0) {
        status = bide_loop_wait(loop, async_run(&frame, &chat, &options, bide_loop_backend(loop).name));
        bide_loop_destroy(loop);
        bide_signal_destroy(&chat.terminate);
        bide_signal_destroy(&chat.interrupt);
        rooms_free();
    }
    if (status < 0)
        fprintf(stderr, "chat: %s\n", strerror(-status));
    return status < 0;
}

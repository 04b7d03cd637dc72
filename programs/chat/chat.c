/*
 * A chat: rooms over websockets, and a web page of its own. This file has the options, the server,
 * and its start and stop.
 *
 *     chat [--port N] [--address A] [--clients N] [--ping SECONDS] [--rate N]
 *          [--user NAME[:GROUP]] [--chroot DIRECTORY] [--confine auto|on|off]
 *          [--monitor SOCKET] [--help]
 *
 * The first line of output ends with the port. SIGTERM and SIGINT stop the chat: clients get a
 * close, and have three seconds. All of it runs on one thread.
 */
#include "../common/confine.h"
#include "../common/listening.h"
#include "../common/monitoring.h"
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

enum { BACKLOG_OF_LISTENER = 256, GRACE = 3, BUFFER_SIZE = 4096 };

struct options {
    const char *address;
    unsigned port, clients, ping, rate;
    const char *monitor; /* NULL: none; see monitoring.h */
    struct confine confine;
};

static const char help[] =
    "usage: chat [--port N] [--address A] [--clients N] [--ping SECONDS] [--rate N] [OPTION...]\n"
    "\n"
    "A chat with rooms, for browsers. Open http://localhost:PORT/ in several of them.\n"
    "\n"
    "  --port N         listen on this port; 0, the default, means any free port\n"
    "  --address A      listen on this IP address (127.0.0.1)\n"
    "  --clients N      the maximum of connections (10000)\n"
    "  --ping SECONDS   ping a client that is silent for this long, and disconnect it if it stays\n"
    "                   silent for twice this long after that (20)\n"
    "  --rate N         messages per second of a client, with bursts of twice as many (5)\n"
    "  --user NAME[:GROUP]\n"
    "                   become this user after listening\n"
    "  --chroot DIR     see only the files in this directory; an empty one will do\n"
    "  --confine auto|on|off\n"
    "                   no files, and few system calls, by Landlock and seccomp: if the kernel\n"
    "                   can, or always, or never (auto)\n"
    "  --monitor SOCKET let bide-top look at the chat; auto: at the usual place\n"
    "  --help           print this\n";

/* ---- Options ---- */

static unsigned parse_number(const char *text, unsigned min, unsigned max)
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

static struct options parse_options(int argc, char **argv)
{
    struct options options = {.address = "127.0.0.1", .clients = 10000, .ping = 20, .rate = 5};
    confine_init(&options.confine, "chat");
    for (int i = 1; i < argc; i += 2) {
        if (strcmp(argv[i], "--help") == 0) {
            printf("%s", help);
            exit(0);
        }
        if (strcmp(argv[i], "--port") == 0)
            options.port = parse_number(argv[i + 1], 0, UINT16_MAX);
        else if (strcmp(argv[i], "--clients") == 0)
            options.clients = parse_number(argv[i + 1], 1, 1 << 20);
        else if (strcmp(argv[i], "--ping") == 0)
            options.ping = parse_number(argv[i + 1], 1, 3600);
        else if (strcmp(argv[i], "--rate") == 0)
            options.rate = parse_number(argv[i + 1], 1, 1000000);
        else if (strcmp(argv[i], "--address") == 0 && argv[i + 1] != NULL)
            options.address = argv[i + 1];
        else if (strcmp(argv[i], "--user") == 0 && argv[i + 1] != NULL)
            options.confine.user = argv[i + 1];
        else if (strcmp(argv[i], "--chroot") == 0 && argv[i + 1] != NULL)
            options.confine.chroot = argv[i + 1];
        else if (strcmp(argv[i], "--monitor") == 0 && argv[i + 1] != NULL)
            options.monitor = argv[i + 1];
        else if (strcmp(argv[i], "--confine") == 0 && argv[i + 1] != NULL &&
                 confine_parse_mode(&options.confine, argv[i + 1]))
            ; /* it is set */
        else
            parse_number(NULL, 0, 0);
    }
    return options;
}

/* ---- The server ---- */

struct chat {
    bide_http_server http;
    struct session_options session;
    bide_signal terminate, interrupt;
};

static const bide_http_handler *select_handler(bide_http_exchange *exchange)
{
    bide_http_method method = exchange->request.method;
    if (bide_http_is(exchange->request.path, "/chat"))
        return &session_handler;
    return method == BIDE_HTTP_GET || method == BIDE_HTTP_HEAD
               ? page_handler(exchange->request.path)
               : NULL;
}

async int stop_on_signal(struct chat *self)
{
    try await any(bide_signal_wait(&self->terminate), bide_signal_wait(&self->interrupt));
    rooms_close(); /* this stops the sessions */
    bide_http_server_shut_down(&self->http, bide_now(bide_this_context()) + GRACE * SECOND);
    return 0;
}

/* Listens; while the address is still that of a killed server, it tries again. */
async int open_listener(struct chat *self, const bide_address *address)
{
    for (int tries = 1;; tries++) {
        int status = await bide_listen(&self->http.server.listener, address, BACKLOG_OF_LISTENER);
        if (status != -EADDRINUSE || tries == LISTEN_TRIES)
            return status;
        try await bide_sleep_for(LISTEN_PAUSE);
    }
}

static void confine_server(struct options *options, const char *backend)
{
    confine_drop_user(&options->confine);
    monitoring_start("chat", options->monitor);
    confine_limit_calls(&options->confine, (strcmp(backend, "uring") == 0 ? CONFINE_URING : 0) |
                                               monitoring_calls(options->monitor));
}

async int run_server(struct chat *self, struct options *options, const char *backend)
{
    bide_address address;
    int status = bide_address_ip(&address, options->address, (uint16_t)options->port);
    if (status == 0)
        status = await open_listener(self, &address);
    if (status == 0)
        status = bide_local_address(&self->http.server.listener, &address);
    if (status < 0)
        return status;
    confine_server(options, backend);
    printf("listening (%s) on port %u\n", backend, bide_address_port(&address));
    fflush(stdout);
    return await all(bide_http_server_run(&self->http), stop_on_signal(self));
}

static int chat_init(struct chat *self, const struct options *options)
{
    self->session = (struct session_options){.ping = options->ping * SECOND,
                                             .silence = 3 * options->ping * SECOND,
                                             .rate = options->rate,
                                             .burst = 2 * options->rate};
    bide_http_options http = {.select_handler = select_handler,
                              .max_frame_size = session_handler.size,
                              .argument = &self->session,
                              .read_buffer_size = BUFFER_SIZE,
                              .write_buffer_size = BUFFER_SIZE,
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
    static async_frame(run_server) frame;
    struct options options = parse_options(argc, argv);
    confine_enter(&options.confine);
    confine_allow_monitor(&options.confine, options.monitor);
    confine_limit_files(&options.confine, options.port); /* none: its pages are in the program */
    bide_loop *loop = NULL;
    int status = chat_init(&chat, &options);
    if (status == 0)
        status = bide_loop_create(&loop, NULL);
    if (status == 0) {
        status = bide_loop_wait(
            loop, async_run_server(&frame, &chat, &options, bide_loop_backend(loop).name));
        monitoring_stop(options.monitor);
        bide_loop_destroy(loop);
        bide_signal_destroy(&chat.terminate);
        bide_signal_destroy(&chat.interrupt);
        rooms_free();
    }
    if (status < 0)
        fprintf(stderr, "chat: %s\n", strerror(-status));
    return status < 0;
}

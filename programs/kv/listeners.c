/*
 * The addresses that the server listens on: the port, the port with TLS and the path of the Unix socket, each if it is
 * wanted. All of it happens before the first client is served.
 */
#include "../common/listening.h"
#include "tasks.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

enum { BACKLOG = 1024 };

/* The next of the servers, which counts when it listens. */
static bide_server *next_server(struct kv *kv)
{
    return &kv->servers[kv->server_count];
}

/* ---- Ports ---- */

/* Listens; while the address is still that of a killed server, it tries again. */
async int open_listener(bide_server *server, const bide_address *address)
{
    for (int tries = 1;; tries++) {
        int status = await bide_listen(&server->listener, address, BACKLOG);
        if (status != -EADDRINUSE || tries == LISTEN_TRIES)
            return status;
        try await bide_sleep_for(LISTEN_PAUSE);
    }
}

/* Listens on the port. A port of 0 becomes the number that the system chooses. */
static void listen_on_port(struct kv *kv, unsigned *port)
{
    bide_address address;
    async_frame(open_listener) opening;
    int status = bide_address_ip(&address, kv->options.address, (uint16_t)*port);
    if (status == 0)
        status = client_server_init(kv, next_server(kv), port == &kv->options.tls_port);
    if (status == 0)
        status = bide_loop_wait(kv->loop, async_open_listener(&opening, next_server(kv), &address));
    if (status == 0)
        status = bide_local_address(&next_server(kv)->listener, &address);
    if (status < 0) {
        kv_report("%s port %u: %s", kv->options.address, *port, strerror(-status));
        exit(1);
    }
    *port = bide_address_port(&address);
    kv->server_count++;
}

/* ---- The Unix socket ---- */

void listeners_find_path(struct kv *kv)
{
    int status = kv->options.unix_socket != NULL
                     ? bide_listen_path_init(&kv->unix_path, kv->options.unix_socket)
                     : 0;
    if (status < 0)
        kv_exit_with_error(kv->options.unix_socket, status);
}

/* Listens at the path, with the exact mode. (Nothing else creates a file meanwhile, so the umask may change.) */
static int open_path(struct kv *kv)
{
    mode_t mask = umask(0);
    int status = bide_listen_path_open(&kv->unix_path, kv->options.unix_socket_mode, BACKLOG);
    umask(mask);
    return status;
}

async int open_path_listener(struct kv *kv, bide_server *server)
{
    for (int tries = 1;; tries++) {
        int status = open_path(kv);
        if (status >= 0)
            bide_descriptor_init(&server->listener, status);
        if (status != -EADDRINUSE || tries == LISTEN_TRIES)
            return status < 0 ? status : 0;
        try await bide_sleep_for(LISTEN_PAUSE);
    }
}

static void listen_on_path(struct kv *kv)
{
    async_frame(open_path_listener) opening;
    int status = client_server_init(kv, next_server(kv), false);
    if (status == 0)
        status = bide_loop_wait(kv->loop, async_open_path_listener(&opening, kv, next_server(kv)));
    if (status < 0)
        kv_exit_with_error(kv->options.unix_socket, status);
    kv->server_count++;
}

/* ---- All of them ---- */

void listeners_start(struct kv *kv)
{
    if (kv->options.has_port)
        listen_on_port(kv, &kv->options.port);
    if (kv->options.has_tls_port)
        listen_on_port(kv, &kv->options.tls_port);
    if (kv->options.unix_socket != NULL)
        listen_on_path(kv);
}

void listeners_print(const struct kv *kv)
{
    const char *back_end = bide_loop_backend(kv->loop).name;
    if (kv->options.has_port)
        printf("listening (%s) on port %u\n", back_end, kv->options.port);
    if (kv->options.has_tls_port)
        printf("listening (%s, TLS) on port %u\n", back_end, kv->options.tls_port);
    if (kv->options.unix_socket != NULL)
        printf("listening (%s) at %s\n", back_end, kv->options.unix_socket);
    fflush(stdout);
}

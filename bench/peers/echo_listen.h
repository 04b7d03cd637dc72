/*
 * The common part of the hand-written echo servers: `--port N`, a listening socket, and the line
 * with its port.
 */
#ifndef BENCH_ECHO_LISTEN_H
#define BENCH_ECHO_LISTEN_H

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

static inline _Noreturn void echo_fail(const char *what)
{
    perror(what);
    exit(1);
}

/* The requested port; 0 is any. */
static inline uint16_t echo_port(int argc, char **argv)
{
    if (argc != 3 || strcmp(argv[1], "--port") != 0) {
        fprintf(stderr, "usage: %s --port N\n", argv[0]);
        exit(2);
    }
    return (uint16_t)atoi(argv[2]);
}

/* `flags` are those of socket(). Accepted sockets inherit TCP_NODELAY from the listening socket. */
static inline int echo_listen(uint16_t port, int flags)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    int on = 1, listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | flags, 0);
    if (listener < 0 || setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
        setsockopt(listener, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0 ||
        bind(listener, (struct sockaddr *)&address, size) != 0 || listen(listener, 4096) != 0 ||
        getsockname(listener, (struct sockaddr *)&address, &size) != 0)
        echo_fail("listen");
    printf("listening on port %u\n", ntohs(address.sin_port));
    fflush(stdout);
    return listener;
}

#endif

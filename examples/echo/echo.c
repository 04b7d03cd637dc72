/*
 * An echo server: sends back what it receives, on as many connections as come.
 *
 *     echo [--port N] [--threads N]
 *
 * Port 0, which is the default, is any; the port stands at the end of the first line that it prints.
 * Each thread has a loop and a listening socket of its own, and the kernel shares the connections
 * out.
 */
#include <bide/bide.h>

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BUFFER = 32768, BACKLOG = 1024, THREADS_MOST = 64, CONNECTIONS_MOST = 1 << 20 };

/* ---- One connection ---- */

struct connection {
    bide_connection connection;
    bide_io_operation operation;
    char buffer[BUFFER];
};

bide_coroutine(connection_body)
{
    bide_begin(connection_body, struct connection * self);
    bide_set_no_delay(&self->connection.socket, true);
    for (;;) {
        bide_try(bide_recv(&self->operation, &self->connection.socket, self->buffer, BUFFER));
        if (self->operation.count == 0)
            bide_return(0);
        bide_try(bide_send(&self->operation, &self->connection.socket, self->buffer,
                           self->operation.count));
    }
    bide_end();
}

/* ---- The connections of one loop ---- */

struct server {
    bide_server server;
    bide_loop *loop;
    bide_address address;
    bide_spawned spawned;
    pthread_t thread;
};

static int server_listen(struct server *self)
{
    bide_server_options options = {.body = &connection_body,
                                   .size = sizeof(struct connection),
                                   .most = CONNECTIONS_MOST,
                                   .allocator = &bide_heap};
    bide_io_operation listen;
    int status = bide_loop_create(&self->loop, NULL);
    if (status == 0)
        status = bide_server_init(&self->server, &options);
    if (status == 0)
        status = bide_loop_wait(self->loop,
                                bide_listen_with(&listen, &self->server.listener, &self->address,
                                                 BACKLOG, BIDE_LISTEN_REUSE_PORT));
    return status == 0 ? bide_local_address(&self->server.listener, &self->address) : status;
}

static void complain(int status)
{
    if (status < 0) {
        fprintf(stderr, "echo: %s\n", strerror(-status));
        exit(1);
    }
}

/* A thread's loop is of the thread that runs it first. */
static void *server_listen_and_run(void *argument)
{
    struct server *self = argument;
    complain(server_listen(self));
    complain(bide_loop_wait(self->loop, bide_server_run(&self->server)));
    return NULL;
}

/* A number up to `most`, or the program ends. */
static unsigned number(const char *text, unsigned most)
{
    char *end = NULL;
    errno = 0;
    unsigned long value = text != NULL ? strtoul(text, &end, 10) : 0;
    if (text == NULL || end == text || *end != '\0' || errno != 0 || value > most) {
        fprintf(stderr, "usage: echo [--port N] [--threads N]\n");
        exit(2);
    }
    return (unsigned)value;
}

int main(int argc, char **argv)
{
    static struct server servers[THREADS_MOST];
    unsigned port = 0, threads = 1;
    for (int i = 1; i < argc; i += 2) {
        if (strcmp(argv[i], "--port") == 0)
            port = number(argv[i + 1], UINT16_MAX);
        else if (strcmp(argv[i], "--threads") == 0)
            threads = number(argv[i + 1], THREADS_MOST);
        else
            number(NULL, 0);
    }
    bide_address_ip(&servers[0].address, "127.0.0.1", (uint16_t)port);
    complain(server_listen(&servers[0]));
    printf("listening (%s) on port %u\n", bide_loop_backend(servers[0].loop).name,
           (unsigned)bide_address_port(&servers[0].address));
    fflush(stdout);
    for (unsigned i = 1; i < threads; i++) {
        servers[i].address = servers[0].address;
        complain(-pthread_create(&servers[i].thread, NULL, server_listen_and_run, &servers[i]));
    }
    complain(bide_loop_wait(servers[0].loop, bide_server_run(&servers[0].server)));
}

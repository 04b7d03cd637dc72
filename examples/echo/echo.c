/*
 * An echo server: sends back what it receives, on as many connections as come.
 *
 *     echo [--port N] [--threads N]
 *
 * Port 0, which is the default, is any; the port stands at the end of the first line that it prints.
 * With more threads than one they are a pool's, with a listener for each of its workers, and the
 * kernel deals the connections out.
 */
#include <bide/bide.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BUFFER = 32768, BACKLOG = 1024, MAX_THREADS = 64, MAX_CONNECTIONS = 1 << 20 };

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

static const bide_server_options options = {.body = &connection_body,
                                            .size = sizeof(struct connection),
                                            .max_connections = MAX_CONNECTIONS,
                                            .allocator = &bide_heap};

static void complain(int status)
{
    if (status < 0) {
        fprintf(stderr, "echo: %s\n", strerror(-status));
        exit(1);
    }
}

static void tell(const char *back_end, const bide_address *address)
{
    printf("listening (%s) on port %u\n", back_end, (unsigned)bide_address_port(address));
    fflush(stdout);
}

/* ---- On a loop ---- */

static void run_loop(bide_address *address)
{
    static bide_server server;
    bide_io_operation listen;
    bide_loop *loop;
    complain(bide_loop_create(&loop, NULL));
    complain(bide_server_init(&server, &options));
    complain(bide_loop_wait(loop, bide_listen(&listen, &server.listener, address, BACKLOG)));
    complain(bide_local_address(&server.listener, address));
    tell(bide_loop_backend(loop).name, address);
    complain(bide_loop_wait(loop, bide_server_run(&server)));
}

/* ---- On several threads: a pool, and a server for each of its workers ---- */

static void run_pool(bide_address *address, unsigned threads)
{
    static bide_pool_server server;
    static bide_pool_server_worker workers[MAX_THREADS];
    bide_io_pool_options pool_options = {.threads = {.threads = threads}};
    bide_thread_pool *pool;
    complain(bide_io_pool_create(&pool, &pool_options));
    bide_context context = {.scheduler = bide_thread_pool_scheduler(pool)};
    complain(bide_pool_server_init(&server, pool, workers, &options));
    complain(bide_sync_wait_in(&context, bide_pool_server_listen(&server, address, BACKLOG)));
    tell(bide_io_pool_backend(pool).name, &server.address);
    complain(bide_sync_wait_in(&context, bide_pool_server_run(&server)));
}

/* A number up to `max`, or the program ends. */
static unsigned number(const char *text, unsigned max)
{
    char *end = NULL;
    errno = 0;
    unsigned long value = text != NULL ? strtoul(text, &end, 10) : 0;
    if (text == NULL || end == text || *end != '\0' || errno != 0 || value > max) {
        fprintf(stderr, "usage: echo [--port N] [--threads N]\n");
        exit(2);
    }
    return (unsigned)value;
}

int main(int argc, char **argv)
{
    bide_address address;
    unsigned port = 0, threads = 1;
    for (int i = 1; i < argc; i += 2) {
        if (strcmp(argv[i], "--port") == 0)
            port = number(argv[i + 1], UINT16_MAX);
        else if (strcmp(argv[i], "--threads") == 0)
            threads = number(argv[i + 1], MAX_THREADS);
        else
            number(NULL, 0);
    }
    bide_address_ip(&address, "127.0.0.1", (uint16_t)port);
    if (threads > 1)
        run_pool(&address, threads);
    else
        run_loop(&address);
}

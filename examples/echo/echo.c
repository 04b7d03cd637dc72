/*
 * An echo server: sends back the data that it receives, on any number of connections.
 *
 *     echo [--port N] [--threads N]
 *
 * Port 0, the default, means any free port; the first line of output ends with the port. With more
 * than one thread, the server runs on a pool with a listener for each worker, and the kernel
 * distributes the connections.
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

static void exit_on_error(int status)
{
    if (status < 0) {
        fprintf(stderr, "echo: %s\n", strerror(-status));
        exit(1);
    }
}

static void print_address(const char *back_end, const bide_address *address)
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
    exit_on_error(bide_loop_create(&loop, NULL));
    exit_on_error(bide_server_init(&server, &options));
    exit_on_error(bide_loop_wait(loop, bide_listen(&listen, &server.listener, address, BACKLOG)));
    exit_on_error(bide_local_address(&server.listener, address));
    print_address(bide_loop_backend(loop).name, address);
    exit_on_error(bide_loop_wait(loop, bide_server_run(&server)));
}

/* ---- On several threads: a pool, and a server for each of its workers ---- */

static void run_pool(bide_address *address, unsigned threads)
{
    static bide_pool_server server;
    static bide_pool_server_worker workers[MAX_THREADS];
    bide_io_pool_options pool_options = {.threads = {.threads = threads}};
    bide_thread_pool *pool;
    exit_on_error(bide_io_pool_create(&pool, &pool_options));
    bide_context context = {.scheduler = bide_thread_pool_scheduler(pool)};
    exit_on_error(bide_pool_server_init(&server, pool, workers, &options));
    exit_on_error(bide_sync_wait_in(&context, bide_pool_server_listen(&server, address, BACKLOG)));
    print_address(bide_io_pool_backend(pool).name, &server.address);
    exit_on_error(bide_sync_wait_in(&context, bide_pool_server_run(&server)));
}

/* Parses a number up to `max`, or exits. */
static unsigned parse_number(const char *text, unsigned max)
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
            port = parse_number(argv[i + 1], UINT16_MAX);
        else if (strcmp(argv[i], "--threads") == 0)
            threads = parse_number(argv[i + 1], MAX_THREADS);
        else
            parse_number(NULL, 0);
    }
    bide_address_ip(&address, "127.0.0.1", (uint16_t)port);
    if (threads > 1)
        run_pool(&address, threads);
    else
        run_loop(&address);
}

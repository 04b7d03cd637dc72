/*
 * An echo server whose connections hold no buffer while they are idle, to measure the cost of many
 * idle connections.
 *
 *   idle_connections_bide --port N prints a line that ends with the port. BIDE_IO selects the back end.
 */
#include <bide/bide.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BUFFER = 16384, BUFFERS = 64, BACKLOG = 1024, MAX_CONNECTIONS = 1 << 20 };

struct connection {
    bide_connection connection;
    bide_io_operation operation;
};

static bide_buffer_pool pool;

/* (data is sent from the memory in which it was received; one operation at a time) */
bide_coroutine(connection_body)
{
    bide_begin(connection_body, struct connection * self);
    for (;;) {
        bide_try(bide_recv_provided(&self->operation, &self->connection.socket, &pool));
        if (self->operation.count == 0)
            bide_return(0);
        int status;
        bide_await_status(status, bide_send(&self->operation, &self->connection.socket,
                                            bide_provided_buffer(&self->operation), self->operation.count));
        bide_buffer_release(&pool, self->operation.arguments.bytes.data);
        if (status < 0)
            bide_return(status);
    }
    bide_end();
}

static void check(int status)
{
    if (status < 0) {
        fprintf(stderr, "idle_connections_bide: %s\n", strerror(-status));
        exit(1);
    }
}

int main(int argc, char **argv)
{
    static bide_server server;
    bide_server_options options = {.body = &connection_body,
                                   .size = sizeof(struct connection),
                                   .max_connections = MAX_CONNECTIONS,
                                   .allocator = &bide_heap};
    bide_io_operation listen;
    bide_address address;
    bide_loop *loop;
    char *memory = malloc((size_t)BUFFERS * BUFFER);
    if (argc < 3 || memory == NULL || strcmp(argv[1], "--port") != 0) {
        fprintf(stderr, "usage: idle_connections_bide --port N\n");
        return 2;
    }
    bide_buffer_pool_init(&pool, memory, BUFFER, BUFFERS);
    check(bide_loop_create(&loop, NULL));
    check(bide_server_init(&server, &options));
    check(bide_address_ip(&address, "127.0.0.1", (uint16_t)atoi(argv[2])));
    check(bide_loop_wait(loop, bide_listen(&listen, &server.listener, &address, BACKLOG)));
    check(bide_local_address(&server.listener, &address));
    printf("listening on port %u\n", (unsigned)bide_address_port(&address));
    fflush(stdout);
    check(bide_loop_wait(loop, bide_server_run(&server)));
    return 0;
}

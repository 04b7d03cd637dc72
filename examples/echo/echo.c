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
#include <bide/extend/root.h>

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BUFFER = 16384, BACKLOG = 1024, THREADS_MOST = 64 };

/* ---- One connection ---- */

struct connection {
    bide_task task;
    bide_root root;
    bide_descriptor socket;
    bide_io_operation operation;
    char buffer[BUFFER];
};

bide_coroutine(connection_body)
{
    bide_begin(connection_body, struct connection * self);
    bide_set_no_delay(&self->socket, true);
    for (;;) {
        bide_try(bide_recv(&self->operation, &self->socket, self->buffer, sizeof self->buffer));
        if (self->operation.count == 0)
            bide_return(0);
        bide_try(bide_send(&self->operation, &self->socket, self->buffer, self->operation.count));
    }
    bide_finally();
    bide_close(&self->socket);
    bide_end();
}

static void connection_ended(bide_root *root)
{
    free(bide_container_of(root, struct connection, root));
}

/* ---- The connections of one loop ---- */

struct acceptor {
    bide_task task;
    bide_descriptor listener;
    bide_io_operation operation;
    bide_sleep pause;
    struct connection *next;
    const bide_address *address;
    bide_address bound;
    bide_event listening;
    int status;
};

bide_coroutine(acceptor_body)
{
    bide_begin(acceptor_body, struct acceptor * self);
    self->next = NULL;
    bide_await_status(self->status,
                      bide_listen_with(&self->operation, &self->listener, self->address, BACKLOG,
                                       BIDE_LISTEN_REUSE_PORT));
    if (self->status == 0)
        bide_local_address(&self->listener, &self->bound);
    bide_event_set(&self->listening);
    if (self->status < 0)
        bide_return(self->status);
    for (;;) {
        self->next = malloc(sizeof *self->next);
        if (self->next != NULL)
            bide_await_status(self->status, bide_accept(&self->operation, &self->listener,
                                                        &self->next->socket, NULL));
        if (self->next == NULL ||
            self->status < 0) { /* no memory, or no descriptor: there may be soon */
            free(self->next);
            self->next = NULL;
            bide_try(bide_sleep_for(&self->pause, 10000000));
            continue;
        }
        bide_root_begin(&self->next->root, bide_this_context(),
                        bide_task_init(&self->next->task, &connection_body), connection_ended);
        self->next = NULL;
    }
    bide_finally();
    free(self->next);
    bide_close(&self->listener);
    bide_end();
}

struct server {
    bide_loop *loop;
    struct acceptor acceptor;
    bide_spawned spawned;
    pthread_t thread;
};

static int server_listen(struct server *server, const bide_address *address)
{
    bide_event_waiter wait;
    int status = bide_loop_create(&server->loop, NULL);
    if (status < 0)
        return status;
    server->acceptor.address = address;
    bide_event_init(&server->acceptor.listening, false);
    bide_spawn(&server->spawned, bide_loop_context(server->loop),
               bide_task_init(&server->acceptor.task, &acceptor_body));
    status = bide_loop_wait(server->loop, bide_event_wait(&wait, &server->acceptor.listening));
    return status < 0 ? status : server->acceptor.status;
}

static void *server_run(void *argument)
{
    struct server *server = argument;
    bide_loop_run(server->loop);
    return NULL;
}

/* A thread's loop is of the thread that runs it first. */
static void *server_listen_and_run(void *argument)
{
    struct server *server = argument;
    int status = server_listen(server, server->acceptor.address);
    if (status < 0) {
        fprintf(stderr, "echo: %s\n", strerror(-status));
        exit(1);
    }
    return server_run(server);
}

/* A number up to `most`, or the program ends. */
static unsigned number(const char *text, unsigned most)
{
    char *end;
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
    bide_address address;
    for (int i = 1; i < argc; i += 2) {
        if (strcmp(argv[i], "--port") == 0)
            port = number(argv[i + 1], UINT16_MAX);
        else if (strcmp(argv[i], "--threads") == 0)
            threads = number(argv[i + 1], THREADS_MOST);
        else
            number(NULL, 0);
    }
    bide_address_ip(&address, "127.0.0.1", (uint16_t)port);
    int status = server_listen(&servers[0], &address);
    if (status < 0) {
        fprintf(stderr, "echo: %s\n", strerror(-status));
        return 1;
    }
    bide_address bound = servers[0].acceptor.bound;
    printf("listening (%s) on port %u\n", bide_loop_backend(servers[0].loop).name,
           (unsigned)bide_address_port(&bound));
    fflush(stdout);
    for (unsigned i = 1; i < threads; i++) {
        servers[i].acceptor.address = &bound;
        if (pthread_create(&servers[i].thread, NULL, server_listen_and_run, &servers[i]) != 0) {
            fprintf(stderr, "echo: no more threads\n");
            return 1;
        }
    }
    server_run(&servers[0]);
}

/*
 * A program for bide-top to monitor: subject PATH CONNECTIONS TASKS [busy]; PATH "-": the default path
 *
 * It has CONNECTIONS connections to itself, each with a branch that waits for data; TASKS tasks that
 * wait for an event, two coroutines deep; a coroutine that sleeps repeatedly; and a pool of two
 * workers. It prints "ready" when all of them have started. With `busy`, a coroutine then holds up the
 * loop, whose name is "main". The program runs until the end of its standard input.
 */
#define _GNU_SOURCE
#include "bide/bide.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct connection {
    bide_connection connection;
    bide_io_operation operation;
    char buffer[16];
};

bide_coroutine(connection_body)
{
    bide_begin(connection_body, struct connection * self);
    do
        bide_try(bide_recv(&self->operation, &self->connection.socket, self->buffer,
                           sizeof self->buffer));
    while (self->operation.count != 0);
    bide_end();
}

struct inner {
    bide_task task;
    bide_event *event;
    bide_event_waiter wait;
};

bide_coroutine(inner_body)
{
    bide_begin(inner_body, struct inner * self);
    bide_try(bide_event_wait(&self->wait, self->event));
    bide_end();
}

struct waiter {
    bide_task task;
    bide_event *event;
    bide_branch branch;
    struct inner inner;
};

bide_coroutine(waiter_body)
{
    bide_begin(waiter_body, struct waiter * self);
    bide_try(bide_call(&self->inner, &inner_body, event = self->event));
    bide_end();
}

struct ticker {
    bide_task task;
    bide_branch branch;
    bide_sleep sleep;
};

bide_coroutine(ticker_body)
{
    bide_begin(ticker_body, struct ticker * self);
    for (;;)
        bide_try(bide_sleep_for(&self->sleep, 10000000));
    bide_end();
}

struct program {
    bide_task task;
    size_t connections, tasks, i;
    bool is_busy;
    bide_event event;
    bide_scope scope;
    bide_server server;
    bide_branch serving;
    bide_address address;
    bide_descriptor *sockets;
    struct waiter *waiters;
    struct ticker ticker;
    bide_io_operation operation;
    bide_file_operation read;
    bide_sleep sleep;
    bide_descriptor input;
    char buffer[16];
};

/* This turn lasts until the end of the standard input. */
static void hold_the_loop(void)
{
    struct pollfd input = {STDIN_FILENO, POLLIN, 0};
    while (poll(&input, 1, 0) == 0) {
    }
}

static void begin_all(struct program *self)
{
    bide_scope_spawn(&self->scope, &self->serving, bide_server_run(&self->server));
    bide_scope_spawn(&self->scope, &self->ticker.branch,
                     bide_task_init(&self->ticker.task, &ticker_body));
    for (size_t i = 0; i < self->tasks; i++) {
        struct waiter *waiter = &self->waiters[i];
        bide_scope_spawn(&self->scope, &waiter->branch,
                         bide_call(waiter, &waiter_body, event = &self->event));
    }
}

bide_coroutine(program_body)
{
    bide_begin(program_body, struct program * self);
    bide_address_ip(&self->address, "127.0.0.1", 0);
    bide_try(bide_listen(&self->operation, &self->server.listener, &self->address, 4096));
    bide_local_address(&self->server.listener, &self->address);
    bide_scope_init(&self->scope, bide_this_frame());
    begin_all(self);
    for (self->i = 0; self->i < self->connections; self->i++)
        bide_await(bide_connect(&self->operation, &self->sockets[self->i], &self->address));
    while (bide_server_own_stats(&self->server)->live != self->connections)
        bide_await(bide_sleep_for(&self->sleep, 1000000));
    bide_await(bide_sleep_for(&self->sleep, 1000000));
    puts("ready");
    fflush(stdout);
    if (self->is_busy)
        hold_the_loop();
    bide_await(bide_read(&self->read, &self->input, self->buffer, sizeof self->buffer));
    bide_scope_stop(&self->scope);
    bide_await(bide_scope_join(&self->scope));
    for (self->i = 0; self->i < self->connections; self->i++)
        bide_close(&self->sockets[self->i]);
    bide_close(&self->input);
    bide_end();
}

static struct program program;

static int prepare(int count, char **arguments)
{
    const bide_monitor_options monitor = {.path = strcmp(arguments[1], "-") != 0 ? arguments[1] : NULL};
    program.connections = strtoul(arguments[2], NULL, 10);
    program.tasks = strtoul(arguments[3], NULL, 10);
    program.is_busy = count > 4 && strcmp(arguments[4], "busy") == 0;
    program.sockets = calloc(program.connections + 1, sizeof *program.sockets);
    program.waiters = calloc(program.tasks + 1, sizeof *program.waiters);
    bide_event_init(&program.event, false);
    const bide_server_options options = {.body = &connection_body,
                                         .size = sizeof(struct connection),
                                         .max_connections = program.connections + 1,
                                         .allocator = &bide_heap};
    if (program.sockets == NULL || program.waiters == NULL)
        return -ENOMEM;
    for (size_t i = 0; i < program.connections; i++)
        bide_descriptor_init_closed(&program.sockets[i]);
    int error = bide_server_init(&program.server, &options);
    if (error == 0)
        error = bide_standard_input(&program.input);
    return error != 0 ? error : bide_monitor_start(&monitor);
}

int main(int count, char **arguments)
{
    bide_thread_pool *pool;
    bide_loop *loop;
    if (count < 4)
        return 2;
    int error = prepare(count, arguments);
    if (error == 0)
        error = bide_thread_pool_create_with(
            &pool, &(bide_thread_pool_options){.threads = 2, .name = "workers"});
    if (error == 0)
        error = bide_loop_create(&loop, NULL);
    if (error != 0) {
        fprintf(stderr, "subject: %s\n", strerror(-error));
        return 1;
    }
    bide_loop_context(loop)->name = "main";
    bide_loop_wait(loop, bide_task_init(&program.task, &program_body));
    bide_loop_destroy(loop);
    bide_thread_pool_destroy(pool);
    bide_monitor_stop();
    free(program.waiters);
    free(program.sockets);
    return 0;
}

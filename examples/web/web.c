/*
 * A small HTTP server.
 *
 *     web [--port N] [--log FILE] DIRECTORY
 *
 * Port 0, the default, means any free port; the first line of output ends with the port.
 *
 *     GET /hello/NAME     a greeting
 *     POST /echo          sends the body back while it is received
 *     GET /...            the files in the directory
 *
 * HTTP/2 clients with prior knowledge are supported if web was built with HTTP/2.
 *
 * SIGINT and SIGTERM stop the server when the current responses have been sent.
 */
#include <bide/bide.h>
#include <bide/http.h>
#if WEB_HAS_HTTP2
#include <bide/http2.h>
#endif

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BACKLOG = 1024, MAX_CONNECTIONS = 1 << 16 };

/* ---- Handlers ---- */

struct hello {
    bide_http_exchange exchange;
    char text[256];
};

bide_coroutine(hello_body)
{
    bide_begin(hello_body, struct hello * self);
    bide_slice name = bide_http_parameter(&self->exchange, "name");
    int size = snprintf(self->text, sizeof self->text, "hello, %.*s\n",
                        name.size < 200 ? (int)name.size : 200, name.data);
    bide_http_add(&self->exchange, "Content-Type", "text/plain");
    bide_try(bide_http_respond(&self->exchange, self->text, (size_t)size));
    bide_end();
}

struct echo {
    bide_http_exchange exchange;
    char buffer[16384];
};

bide_coroutine(echo_body)
{
    bide_begin(echo_body, struct echo * self);
    for (;;) {
        bide_try(bide_http_read(&self->exchange, self->buffer, sizeof self->buffer));
        if (self->exchange.count == 0)
            break;
        bide_try(bide_http_write(&self->exchange, self->buffer, self->exchange.count));
        bide_try(bide_http_flush(&self->exchange));
    }
    bide_end();
}

/* ---- The program ---- */

static struct program {
    bide_task task;
    const char *directory;
    const char *log_name;
    bide_address address;
    bide_http_files files;
    bide_http_router router;
    bide_http_server server;
    bide_http_log log;
    char log_memory[262144];
    bide_descriptor log_file;
    bide_file_operation open;
    bide_io_operation listen;
    bide_scope scope;
    bide_branch serving, logging, stopping;
    struct stopper {
        bide_task task;
        bide_signal signal;
        bide_signal_waiter wait;
    } interrupted, terminated;
    bide_branch interrupting;
    int status;
} program;

static int set_up(struct program *self)
{
    static bide_http_route routes[] = {
        {"GET", "/hello/{name}", {&hello_body, sizeof(struct hello)}, NULL},
        {"POST", "/echo", {&echo_body, sizeof(struct echo)}, NULL},
        {"GET", "/{path...}", {&bide_http_files_body, sizeof(bide_http_files_exchange)}, NULL},
    };
    routes[2].argument = &self->files;
    int status = bide_http_files_open(
        &self->files, &(bide_http_files_options){.root = self->directory, .lists = true});
    if (status == 0)
        status = bide_http_router_init(&self->router, routes, sizeof routes / sizeof *routes);
    if (status == 0)
        status = bide_http_server_init(
            &self->server, &(bide_http_options){.select_handler = bide_http_route_request,
                                                .argument = &self->router,
                                                .max_frame_size = self->router.frame,
                                                .log = self->log_name != NULL ? &self->log : NULL,
                                                .max_body = BIDE_HTTP_UNKNOWN,
                                                .max_connections = MAX_CONNECTIONS});
#if WEB_HAS_HTTP2
    static bide_http2 http2;
    if (status == 0)
        status = bide_http2_init(&http2, &self->server, &(bide_http2_options){.is_plain = true});
#endif
    return status;
}

/* A signal shuts the server down. */
bide_coroutine(stopper_body)
{
    enum { PATIENCE = 10 };
    bide_begin(stopper_body, struct stopper * self);
    int status;
    bide_await_status(status, bide_signal_wait(&self->wait, &self->signal));
    if (status < 0) /* not listening for the signal any more; no reason to stop the others */
        bide_return(0);
    bide_http_server_shut_down(&program.server,
                               bide_now(bide_this_context()) + PATIENCE * UINT64_C(1000000000));
    bide_end();
}

static void listen_for(struct program *self, struct stopper *stopper, bide_branch *branch,
                       int number)
{
    if (bide_signal_listen(&stopper->signal, number) == 0)
        bide_scope_spawn(&self->scope, branch, bide_task_init(&stopper->task, &stopper_body));
}

/* Stops the other tasks when the server has finished. */
static void stop_others(struct program *self)
{
    bide_http_log_close(&self->log);
    bide_signal_destroy(&self->interrupted.signal);
    bide_signal_destroy(&self->terminated.signal);
}

bide_coroutine(program_body)
{
    enum { LOG_MODE = 0644 };
    bide_begin(program_body, struct program * self);
    bide_descriptor_init_closed(&self->log_file);
    if (self->log_name != NULL)
        bide_try(bide_open(&self->open, &self->log_file, self->log_name,
                           O_WRONLY | O_CREAT | O_APPEND, LOG_MODE));
    bide_http_log_init(&self->log, &self->log_file, self->log_memory, sizeof self->log_memory,
                       BIDE_HTTP_LOG_COMBINED);
    bide_try(bide_listen(&self->listen, &self->server.server.listener, &self->address, BACKLOG));
    bide_local_address(&self->server.server.listener, &self->address);
    printf("listening on port %u\n", (unsigned)bide_address_port(&self->address));
    fflush(stdout);

    bide_scope_init(&self->scope, bide_this_frame());
    listen_for(self, &self->interrupted, &self->interrupting, SIGINT);
    listen_for(self, &self->terminated, &self->stopping, SIGTERM);
    bide_scope_spawn(&self->scope, &self->logging, bide_http_log_run(&self->log));
    bide_await_status(self->status, bide_http_server_run(&self->server));
    stop_others(self);
    bide_await(bide_scope_join(&self->scope));
    bide_return(self->status);
    bide_finally();
    bide_close(&self->log_file);
    bide_end();
}

static void exit_on_error(int status)
{
    if (status < 0) {
        fprintf(stderr, "web: %s\n", strerror(-status));
        exit(1);
    }
}

int main(int argc, char **argv)
{
    bide_loop *loop;
    int port = 0;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--port") == 0 && i + 1 < argc)
            port = atoi(argv[++i]);
        else if (strcmp(argv[i], "--log") == 0 && i + 1 < argc)
            program.log_name = argv[++i];
        else
            program.directory = argv[i];
    }
    if (program.directory == NULL || program.directory[0] == '-' || port < 0 || port > UINT16_MAX) {
        fprintf(stderr, "usage: web [--port N] [--log FILE] DIRECTORY\n");
        return 2;
    }
    exit_on_error(set_up(&program));
    exit_on_error(bide_loop_create(&loop, NULL));
    bide_address_ip(&program.address, "127.0.0.1", (uint16_t)port);
    exit_on_error(bide_loop_wait(loop, bide_task_init(&program.task, &program_body)));
    bide_loop_destroy(loop);
    bide_http_files_close(&program.files);
    return 0;
}

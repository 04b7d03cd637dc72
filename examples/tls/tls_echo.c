/*
 * An echo server with TLS: sends back the data that it receives, on any number of connections.
 *
 *     tls-echo --cert FILE [--key FILE] [--clients FILE] [--protocol NAME] [--port N]
 *
 *     --cert, --key   the certificate with its chain, and its key, in PEM
 *     --clients       authorities: clients must have a certificate of one of them
 *     --protocol      the ALPN protocol
 *     --port          0, the default, means any free port; the first line of output ends with the port
 *
 * SIGHUP reloads the files: open connections continue, and new ones get the new certificate.
 * SIGTERM stops accepting, waits up to a second for open connections, and exits.
 */
#include <bide/bide.h>
#include <bide/tls.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BUFFER = 16384, BACKLOG = 1024, MAX_CONNECTIONS = 100000 };

#define SECOND UINT64_C(1000000000)

static struct program {
    bide_task task;
    bide_server server;
    bide_address address;
    bide_io_operation listen;
    bide_signal reload, terminate;
    bide_scope scope;
    bide_branch serving;
    bide_branch reloading;
    struct reloader {
        bide_task task;
        bide_signal_waiter wait;
    } reloader;
    bide_signal_waiter wait;
    bide_tls_config *config; /* for new connections */
    bide_tls_options options;
    bide_tls_certificate certificate;
} program;

/* ---- One connection ---- */

struct connection {
    bide_connection connection;
    bide_tls tls;
    bide_stream stream;
    union {
        bide_tls_handshake handshake;
        bide_stream_operation operation;
    };
    bide_with_deadline_operation limited;
    char buffer[BUFFER];
};

bide_coroutine(connection_body)
{
    bide_begin(connection_body, struct connection * self);
    bide_set_no_delay(&self->connection.socket, true);
    bide_try(bide_with_timeout(&self->limited, 10 * SECOND,
                               bide_tls_accept(&self->handshake, &self->tls, program.config,
                                               bide_socket_stream(&self->connection.socket))));
    self->stream = bide_tls_stream(&self->tls);
    for (;;) {
        bide_try(bide_stream_read(&self->operation, self->stream, self->buffer, BUFFER));
        size_t count = bide_stream_count(&self->operation, self->stream);
        if (count == 0)
            break;
        bide_try(bide_stream_write(&self->operation, self->stream, self->buffer, count));
    }
    bide_try(bide_stream_shutdown_output(&self->operation, self->stream));
    bide_finally();
    if (bide_tls_reason(&self->tls)[0] != '\0')
        fprintf(stderr, "tls-echo: %s\n", bide_tls_reason(&self->tls));
    bide_tls_close(&self->tls);
    bide_end();
}

/* ---- The server ---- */

/* Loads the files. After an error, the current configuration stays in use. */
static int configure(void)
{
    const char *reason = "";
    bide_tls_config *config;
    program.options.resumes = program.config;
    int status = bide_tls_server_create(&config, &program.options, &reason);
    if (status < 0) {
        fprintf(stderr, "tls-echo: %s: %s\n", strerror(-status), reason);
        return status;
    }
    bide_tls_config_release(program.config);
    program.config = config;
    return 0;
}

bide_coroutine(reloader_body)
{
    bide_begin(reloader_body, struct reloader * self);
    for (;;) {
        bide_try(bide_signal_wait(&self->wait, &program.reload));
        if (configure() == 0)
            printf("reloaded\n");
        fflush(stdout);
    }
    bide_end();
}

bide_coroutine(program_body)
{
    bide_begin(program_body, struct program * self);
    bide_try(bide_listen(&self->listen, &self->server.listener, &self->address, BACKLOG));
    bide_local_address(&self->server.listener, &self->address);
    printf("listening on port %u\n", (unsigned)bide_address_port(&self->address));
    fflush(stdout);
    bide_scope_init(&self->scope, bide_this_frame());
    bide_scope_spawn(&self->scope, &self->serving, bide_server_run(&self->server));
    bide_scope_spawn(&self->scope, &self->reloading,
                     bide_task_init(&self->reloader.task, &reloader_body));
    bide_await(bide_signal_wait(&self->wait, &self->terminate));
    bide_signal_destroy(&self->reload); /* stops the reloader */
    bide_server_shut_down(&self->server, bide_now(bide_this_context()) + SECOND);
    bide_await(bide_scope_join(&self->scope));
    bide_end();
}

static void usage(void)
{
    fprintf(stderr, "usage: tls-echo --cert FILE [--key FILE] [--clients FILE] [--protocol NAME] "
                    "[--port N]\n");
    exit(2);
}

int main(int argc, char **argv)
{
    static const char *protocols[2];
    unsigned long port = 0;
    bide_loop *loop;
    program.options.certificates = &program.certificate;
    program.options.certificate_count = 1;
    for (int i = 1; i < argc; i += 2) {
        if (i + 1 == argc)
            usage();
        if (strcmp(argv[i], "--cert") == 0)
            program.certificate.chain_file = argv[i + 1];
        else if (strcmp(argv[i], "--key") == 0)
            program.certificate.key_file = argv[i + 1];
        else if (strcmp(argv[i], "--clients") == 0)
            program.options.authorities_file = argv[i + 1];
        else if (strcmp(argv[i], "--protocol") == 0)
            protocols[0] = argv[i + 1];
        else if (strcmp(argv[i], "--port") == 0)
            port = strtoul(argv[i + 1], NULL, 10);
        else
            usage();
    }
    if (program.certificate.chain_file == NULL || port > UINT16_MAX)
        usage();
    if (program.options.authorities_file != NULL)
        program.options.clients = BIDE_TLS_CLIENTS_REQUIRED;
    program.options.protocols = protocols;
    bide_server_options options = {.body = &connection_body,
                                   .size = sizeof(struct connection),
                                   .max_connections = MAX_CONNECTIONS,
                                   .allocator = &bide_heap};
    if (configure() != 0)
        return 1;
    if (bide_loop_create(&loop, NULL) != 0 || bide_server_init(&program.server, &options) != 0 ||
        bide_address_ip(&program.address, "127.0.0.1", (uint16_t)port) != 0 ||
        bide_signal_listen(&program.reload, SIGHUP) != 0 ||
        bide_signal_listen(&program.terminate, SIGTERM) != 0) {
        fprintf(stderr, "tls-echo: cannot begin\n");
        return 1;
    }
    int status = bide_loop_wait(loop, bide_task_init(&program.task, &program_body));
    if (status < 0)
        fprintf(stderr, "tls-echo: %s\n", strerror(-status));
    bide_signal_destroy(&program.terminate);
    bide_tls_config_release(program.config);
    bide_loop_destroy(loop);
    return status < 0;
}

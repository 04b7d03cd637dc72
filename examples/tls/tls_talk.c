/*
 * A TLS client: sends its standard input and prints the data that it receives, concurrently.
 *
 *     tls-talk HOST PORT [--authorities FILE] [--cert FILE --key FILE] [--name NAME] [--times N]
 *
 * The server must have a certificate for HOST, or NAME, of one of the authorities, or of the
 * system's. At the end of its input, the client ends its output, and prints data until the server
 * ends its output too. It continues to receive if the server takes no more, and reports that at
 * the end. With --times it connects that many times in sequence, and prints for each connection whether
 * a session was resumed; the input goes to the last one.
 */
#include <bide/bide.h>
#include <bide/tls.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BUFFER = 32768 };

struct copier {
    bide_task task;
    bide_reader reader;
    bide_writer writer;
    bide_copy_operation copy;
    bide_writer_operation end;
    char buffer[BUFFER];
};

/* Sends. `status` is that of a server that takes no more, which is reported last. */
struct sender {
    bide_task task;
    struct copier copier;
    int status;
};

/* Copies from one stream to another until the end of input, and then ends the output. */
bide_coroutine(copier_body)
{
    bide_begin(copier_body, struct copier * self);
    bide_try(bide_copy(&self->copy, &self->reader, &self->writer, UINT64_MAX));
    bide_try(bide_writer_finish(&self->end, &self->writer));
    bide_end();
}

static bide_awaiter *copy(struct copier *copier, bide_stream from, bide_stream to)
{
    bide_reader_init(&copier->reader, from, copier->buffer, BUFFER);
    bide_writer_init(&copier->writer, to, NULL, 0);
    return bide_task_init(&copier->task, &copier_body);
}

static struct talker {
    bide_task task;
    const char *host, *name;
    uint16_t port;
    unsigned times;
    bide_tls_config *config;
    bide_names *names;
    bide_descriptor socket, input, output;
    bide_connect_by_name_operation connect;
    bide_tls tls;
    bide_tls_handshake handshake;
    struct sender sending;
    struct copier receiving;
    bide_scope scope;
    bide_branch branches[2];
} talker;

/* A server that takes no more may have said why, so receiving continues. */
bide_coroutine(sender_body)
{
    bide_begin(sender_body, struct sender * self);
    bide_await_status(self->status, copy(&self->copier, bide_file_stream(&talker.input),
                                         bide_tls_stream(&talker.tls)));
    if (self->status < 0 && self->status != -EPIPE && self->status != -ECONNRESET)
        bide_return(self->status);
    bide_end();
}

bide_coroutine(talker_body)
{
    bide_begin(talker_body, struct talker * self);
    for (;; self->times--) {
        bide_try(bide_connect_by_name(&self->connect, &self->socket, self->names, self->host,
                                      self->port));
        bide_try(bide_tls_connect(&self->handshake, &self->tls, self->config,
                                  bide_socket_stream(&self->socket), self->name));
        fprintf(stderr, "%s%s\n", bide_tls_version(&self->tls),
                bide_tls_was_resumed(&self->tls) ? ", resumed" : "");
        bide_scope_init(&self->scope, bide_this_frame());
        if (self->times > 1)
            bide_scope_spawn(&self->scope, &self->branches[0],
                             bide_stream_shutdown_output(&self->sending.copier.writer.operation,
                                                         bide_tls_stream(&self->tls)));
        else
            bide_scope_spawn(&self->scope, &self->branches[0],
                             bide_task_init(&self->sending.task, &sender_body));
        bide_scope_spawn(
            &self->scope, &self->branches[1],
            copy(&self->receiving, bide_tls_stream(&self->tls), bide_file_stream(&self->output)));
        bide_try(bide_scope_join(&self->scope));
        if (self->sending.status < 0)
            bide_return(self->sending.status);
        bide_tls_close(&self->tls);
        if (self->times <= 1)
            break;
        bide_standard_output(&self->output); /* (the copier's end closed it) */
    }
    bide_finally();
    bide_tls_close(&self->tls);
    bide_close(&self->socket);
    bide_close(&self->input);
    bide_close(&self->output);
    bide_end();
}

static void usage(void)
{
    fprintf(stderr, "usage: tls-talk HOST PORT [--authorities FILE] [--cert FILE --key FILE] "
                    "[--name NAME] [--times N]\n");
    exit(2);
}

int main(int argc, char **argv)
{
    bide_tls_certificate certificate = {0};
    bide_tls_options options = {.certificates = &certificate};
    const char *reason = "";
    bide_loop *loop;
    if (argc < 3)
        usage();
    talker.host = argv[1];
    talker.name = argv[1];
    talker.port = (uint16_t)strtoul(argv[2], NULL, 10);
    for (int i = 3; i < argc; i += 2) {
        if (i + 1 == argc)
            usage();
        if (strcmp(argv[i], "--authorities") == 0)
            options.authorities_file = argv[i + 1];
        else if (strcmp(argv[i], "--cert") == 0)
            certificate.chain_file = argv[i + 1];
        else if (strcmp(argv[i], "--key") == 0)
            certificate.key_file = argv[i + 1];
        else if (strcmp(argv[i], "--name") == 0)
            talker.name = argv[i + 1];
        else if (strcmp(argv[i], "--times") == 0)
            talker.times = (unsigned)strtoul(argv[i + 1], NULL, 10);
        else
            usage();
    }
    options.certificate_count = certificate.chain_file != NULL;
    int status = bide_tls_client_create(&talker.config, &options, &reason);
    if (status < 0) {
        fprintf(stderr, "tls-talk: %s: %s\n", strerror(-status), reason);
        return 1;
    }
    bide_descriptor_init_closed(&talker.socket);
    if (bide_loop_create(&loop, NULL) != 0 || bide_names_create(&talker.names, NULL) != 0 ||
        bide_standard_input(&talker.input) != 0 || bide_standard_output(&talker.output) != 0) {
        fprintf(stderr, "tls-talk: cannot begin\n");
        return 1;
    }
    status = bide_loop_wait(loop, bide_task_init(&talker.task, &talker_body));
    if (status < 0)
        fprintf(stderr, "tls-talk: %s: %s\n", strerror(-status), bide_tls_reason(&talker.tls));
    bide_names_destroy(talker.names);
    bide_tls_config_release(talker.config);
    bide_loop_destroy(loop);
    return status < 0;
}

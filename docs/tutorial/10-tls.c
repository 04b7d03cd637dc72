#include <bide/async.h>
#include <bide/bide.h>
#include <bide/tls.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATIENCE BIDE_SECONDS(10) /* for a name, for a line that is sent, and at the end */

static bide_tls_config *server_config, *client_config;

/* Makes a certificate, in place of one that an authority has signed, and the configs from it. */
static int make_configs(void)
{
    const bide_tls_certificate certificate = {.chain_file = "chat.pem", .key_file = "chat.key"};
    const char *reason;
    if (system("openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 "
               "-keyout chat.key -out chat.pem -subj /CN=chat.test "
               "-addext subjectAltName=DNS:chat.test 2>openssl.out") != 0)
        return -EIO;
    int status = bide_tls_server_create(
        &server_config, &(bide_tls_options){.certificates = &certificate, .certificate_count = 1},
        &reason);
    if (status == 0)
        status = bide_tls_client_create(
            &client_config, &(bide_tls_options){.authorities_file = "chat.pem"}, &reason);
    if (status < 0)
        fprintf(stderr, "%s\n", reason);
    return status;
}

struct line {
    char text[200];
};

struct room {
    bide_broadcast(struct line) lines;
    bide_broadcast_slot(struct line) memory[16];
};

static void tell(struct room *room, const char *who, const char *what)
{
    struct line line;
    snprintf(line.text, sizeof line.text, "%s%s\n", who, what);
    bide_broadcast_send(&room->lines, &line);
}

async int hear(struct room *room, bide_stream stream)
{
    bide_broadcast_subscriber(struct line) subscriber;
    struct line line;
    bide_broadcast_subscribe(&subscriber, &room->lines);
    while (await bide_broadcast_recv(&subscriber, &line) == 0) {
        if (subscriber.missed != 0) {
            char text[64];
            int size = snprintf(text, sizeof text, "(%zu lines missed)\n", subscriber.missed);
            try await bide_with_timeout(PATIENCE, bide_stream_write(stream, text, (size_t)size));
        }
        try await bide_with_timeout(PATIENCE,
                                    bide_stream_write(stream, line.text, strlen(line.text)));
    }
    try await bide_stream_write(stream, "bye\n", 4); /* the room is closed */
    return 0;
}

async int say(struct room *room, bide_reader *reader, const char *name)
{
    bide_reader_operation line;
    char text[160];
    tell(room, name, " is here");
    while (await bide_reader_read_line(&line, reader) == 0) {
        snprintf(text, sizeof text, ": %.*s", (int)line.count, line.data);
        tell(room, name, text);
    }
    return 0;
}

async int talk(struct room *room, bide_stream stream)
{
    bide_reader reader;
    bide_reader_operation line;
    char in[128], name[32];
    bide_reader_init(&reader, stream, in, sizeof in);
    try await bide_with_timeout(PATIENCE, bide_reader_read_line(&line, &reader));
    snprintf(name, sizeof name, "%.*s", (int)line.count, line.data);
    int status = await any(hear(room, stream), say(room, &reader, name));
    tell(room, name, " has left");
    return status;
}

async int serve_one(struct room *room, int fd)
{
    bide_descriptor socket;
    bide_descriptor_init(&socket, fd);
    defer bide_close(&socket);
    bide_tls tls;
    bide_tls_init_closed(&tls);
    defer bide_tls_close(&tls);
    /* a client without TLS, or that takes too long, is disconnected */
    if (await bide_with_timeout(
            PATIENCE, bide_tls_accept(&tls, server_config, bide_socket_stream(&socket))) < 0)
        return 0;
    await talk(room, bide_tls_stream(&tls)); /* an error ends this client alone */
    await bide_stream_shutdown_output(bide_tls_stream(&tls));
    return 0;
}

async int accept_all(struct room *room, bide_descriptor *listener, bide_scope *clients)
{
    for (;;) {
        bide_descriptor socket;
        try await bide_accept(listener, &socket, NULL);
        if (spawn(clients, serve_one(room, bide_descriptor_release(&socket))) < 0)
            bide_close(&socket); /* out of memory: nothing was started or released */
    }
}

async int serve(struct room *room, bide_descriptor *listener, bide_signal *terminate)
{
    bide_scope clients;
    bide_scope_init(&clients, bide_this_frame());
    defer bide_scope_destroy(&clients);
    try await any(accept_all(room, listener, &clients), bide_signal_wait(terminate));
    bide_broadcast_close(&room->lines); /* so each client's coroutine ends */
    return await bide_with_timeout(PATIENCE, bide_scope_join(&clients));
}

struct visitor {
    const char *name;
    bide_descriptor socket;
    bide_tls tls;
    bide_reader reader;
    char in[256];
};

async int shout(struct visitor *self, const char *text)
{
    return (int)await bide_stream_write(bide_tls_stream(&self->tls), text, strlen(text));
}

/* Prints the next line that the visitor hears. */
async int listen_once(struct visitor *self)
{
    bide_reader_operation line;
    try await bide_reader_read_line(&line, &self->reader);
    printf("%s hears: %.*s\n", self->name, (int)line.count, line.data);
    return 0;
}

async int arrive(struct visitor *self, const bide_address *address)
{
    try await bide_connect(&self->socket, address);
    try await bide_tls_connect(&self->tls, client_config, bide_socket_stream(&self->socket),
                               "chat.test");
    bide_reader_init(&self->reader, bide_tls_stream(&self->tls), self->in, sizeof self->in);
    try await shout(self, self->name);
    return await shout(self, "\n");
}

static void leave(struct visitor *self)
{
    bide_tls_close(&self->tls);
    bide_close(&self->socket);
}

async int visits(const bide_address *address)
{
    struct visitor ann = {.name = "ann"}, bob = {.name = "bob"};
    defer leave(&ann);
    defer leave(&bob);
    try await arrive(&ann, address);
    try await listen_once(&ann);
    try await arrive(&bob, address);
    try await listen_once(&ann);
    try await listen_once(&bob);
    try await shout(&ann, "hi\n");
    try await listen_once(&bob);
    try await listen_once(&ann);
    leave(&bob);
    try await listen_once(&ann);
    raise(SIGTERM); /* as kill(1) does */
    return await listen_once(&ann);
}

async int main(void)
{
    static struct room room;
    bide_address address;
    bide_descriptor listener;
    bide_signal terminate;
    int status = make_configs();
    if (status < 0)
        return status;
    defer bide_tls_config_release(server_config);
    defer bide_tls_config_release(client_config);
    bide_broadcast_init(&room.lines, room.memory, 16);
    bide_address_ip(&address, "127.0.0.1", 0); /* any free port */
    try await bide_listen(&listener, &address, 16);
    defer bide_close(&listener);
    bide_local_address(&listener, &address);
    status = bide_signal_listen(&terminate, SIGTERM);
    if (status < 0)
        return status;
    defer bide_signal_destroy(&terminate);
    return await all(serve(&room, &listener, &terminate), visits(&address));
}

#include <bide/async.h>
#include <bide/bide.h>
#include <stdio.h>
#include <string.h>

#define PATIENCE BIDE_SECONDS(10) /* for a name */

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
    while (await bide_broadcast_recv(&subscriber, &line) == 0)
        try await bide_stream_write(stream, line.text, strlen(line.text));
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
    await talk(room, bide_socket_stream(&socket)); /* an error ends this client alone */
    return 0;
}

async int serve(struct room *room, bide_descriptor *listener)
{
    bide_scope clients;
    bide_scope_init(&clients, bide_this_frame());
    defer bide_scope_destroy(&clients);
    for (;;) {
        bide_descriptor socket;
        try await bide_accept(listener, &socket, NULL);
        if (spawn(&clients, serve_one(room, bide_descriptor_release(&socket))) < 0)
            bide_close(&socket); /* out of memory: nothing was started or released */
    }
}

struct visitor {
    const char *name;
    bide_descriptor socket;
    bide_reader reader;
    char in[256];
};

async int shout(struct visitor *self, const char *text)
{
    return (int)await bide_stream_write(bide_socket_stream(&self->socket), text, strlen(text));
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
    bide_reader_init(&self->reader, bide_socket_stream(&self->socket), self->in, sizeof self->in);
    try await shout(self, self->name);
    return await shout(self, "\n");
}

async int visits(const bide_address *address)
{
    struct visitor ann = {.name = "ann"}, bob = {.name = "bob"};
    defer bide_close(&ann.socket);
    defer bide_close(&bob.socket);
    try await arrive(&ann, address);
    try await listen_once(&ann);
    try await arrive(&bob, address);
    try await listen_once(&ann);
    try await listen_once(&bob);
    try await shout(&ann, "hi\n");
    try await listen_once(&bob);
    try await listen_once(&ann);
    bide_close(&bob.socket);
    return await listen_once(&ann);
}

async int main(void)
{
    static struct room room;
    bide_address address;
    bide_descriptor listener;
    bide_broadcast_init(&room.lines, room.memory, 16);
    bide_address_ip(&address, "127.0.0.1", 0); /* any free port */
    try await bide_listen(&listener, &address, 16);
    defer bide_close(&listener);
    bide_local_address(&listener, &address);
    return await any(serve(&room, &listener), visits(&address));
}

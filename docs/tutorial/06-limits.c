#include <bide/async.h>
#include <bide/bide.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define SILENCE BIDE_SECONDS(60)

async int talk(bide_stream stream)
{
    bide_reader reader;
    char in[128], out[160];
    int status, size;
    bide_reader_init(&reader, stream, in, sizeof in);
    for (;;) {
        bide_reader_operation line;
        status = await bide_with_timeout(SILENCE, bide_reader_read_line(&line, &reader));
        if (status < 0)
            break;
        size = snprintf(out, sizeof out, "hello %.*s\n", (int)line.count, line.data);
        try await bide_stream_write(stream, out, (size_t)size);
    }
    if (status == -EPIPE) /* the client has ended its output */
        return 0;
    size = snprintf(out, sizeof out, "%s\n",
                    status == -ETIMEDOUT  ? "too slow"
                    : status == -EMSGSIZE ? "too long"
                                          : "error");
    try await bide_stream_write(stream, out, (size_t)size);
    return status;
}

async int serve_one(int fd)
{
    bide_descriptor socket;
    bide_descriptor_init(&socket, fd);
    defer bide_close(&socket);
    await talk(bide_socket_stream(&socket)); /* an error ends this client alone */
    return 0;
}

async int serve(bide_descriptor *listener)
{
    bide_scope clients;
    bide_scope_init(&clients, bide_this_frame());
    defer bide_scope_destroy(&clients);
    for (;;) {
        bide_descriptor socket;
        try await bide_accept(listener, &socket, NULL);
        if (spawn(&clients, serve_one(bide_descriptor_release(&socket))) < 0)
            bide_close(&socket); /* out of memory: nothing was started or released */
    }
}

async int visit(const bide_address *address, const char *text)
{
    bide_descriptor socket;
    bide_reader reader;
    bide_reader_operation line;
    char in[128];
    try await bide_connect(&socket, address);
    defer bide_close(&socket);
    try await bide_stream_write(bide_socket_stream(&socket), text, strlen(text));
    bide_reader_init(&reader, bide_socket_stream(&socket), in, sizeof in);
    try await bide_reader_read_line(&line, &reader);
    printf("%.*s\n", (int)line.count, line.data);
    return 0;
}

async int visits(const bide_address *address)
{
    char text[129] = "";
    memset(text, 'x', sizeof text - 1);
    try await visit(address, "ann\n");
    return await visit(address, text);
}

async int main(void)
{
    bide_address address;
    bide_descriptor listener;
    bide_address_ip(&address, "127.0.0.1", 0); /* any free port */
    try await bide_listen(&listener, &address, 16);
    defer bide_close(&listener);
    bide_local_address(&listener, &address);
    return await any(serve(&listener), visits(&address));
}

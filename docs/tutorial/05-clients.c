#include <bide/async.h>
#include <bide/bide.h>
#include <stdio.h>

async int talk(bide_stream stream)
{
    bide_reader reader;
    bide_reader_operation line;
    char in[128], out[160];
    bide_reader_init(&reader, stream, in, sizeof in);
    while (await bide_reader_read_line(&line, &reader) == 0) {
        int size = snprintf(out, sizeof out, "hello %.*s\n", (int)line.count, line.data);
        try await bide_stream_write(stream, out, (size_t)size);
    }
    return 0;
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

async int visit(const bide_address *address, const char *name)
{
    bide_descriptor socket;
    bide_reader reader;
    bide_reader_operation line;
    char in[128], out[128];
    try await bide_connect(&socket, address);
    defer bide_close(&socket);
    int size = snprintf(out, sizeof out, "%s\n", name);
    try await bide_stream_write(bide_socket_stream(&socket), out, (size_t)size);
    bide_reader_init(&reader, bide_socket_stream(&socket), in, sizeof in);
    try await bide_reader_read_line(&line, &reader);
    printf("%.*s\n", (int)line.count, line.data);
    return 0;
}

async int visits(const bide_address *address)
{
    try await visit(address, "ann");
    return await visit(address, "bob");
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

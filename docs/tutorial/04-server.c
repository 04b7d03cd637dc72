#include <bide/async.h>
#include <bide/bide.h>
#include <stdio.h>

async int serve(bide_descriptor *listener)
{
    bide_descriptor socket;
    bide_reader reader;
    bide_reader_operation line;
    char in[128], out[160];
    try await bide_accept(listener, &socket, NULL);
    defer bide_close(&socket);
    bide_reader_init(&reader, bide_socket_stream(&socket), in, sizeof in);
    while (await bide_reader_read_line(&line, &reader) == 0) {
        int size = snprintf(out, sizeof out, "hello %.*s\n", (int)line.count, line.data);
        try await bide_stream_write(bide_socket_stream(&socket), out, (size_t)size);
    }
    return 0;
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

async int main(void)
{
    bide_address address;
    bide_descriptor listener;
    bide_address_ip(&address, "127.0.0.1", 0); /* any free port */
    try await bide_listen(&listener, &address, 16);
    defer bide_close(&listener);
    bide_local_address(&listener, &address);
    return await all(serve(&listener), visit(&address, "ann"));
}

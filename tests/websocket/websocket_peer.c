/*
 * A WebSocket for third-party clients and servers; it uses HTTP only for the handshake:
 *
 *     websocket_peer server          echoes; prints the port to its first line; ends with its input
 *     websocket_peer client PORT     sends messages to a server that echoes, and closes; 0: success
 */
#define _GNU_SOURCE
#include <bide/bide.h>
#include <bide/http.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { MOST = 1 << 20, CLIENTS = 16 };

/* ---- The handshake, line by line ---- */

struct head {
    bide_websocket_headers headers;
    char values[8][200];
    int count;
    int status;
};

static void take_line(struct head *head, const char *line, size_t size)
{
    static const struct {
        const char *name;
        size_t offset;
    } names[] = {
        {"Upgrade:", offsetof(bide_websocket_headers, upgrade)},
        {"Connection:", offsetof(bide_websocket_headers, connection)},
        {"Sec-WebSocket-Version:", offsetof(bide_websocket_headers, version)},
        {"Sec-WebSocket-Key:", offsetof(bide_websocket_headers, key)},
        {"Sec-WebSocket-Accept:", offsetof(bide_websocket_headers, accept)},
        {"Sec-WebSocket-Extensions:", offsetof(bide_websocket_headers, extensions)},
    };
    if (size > 12 && strncmp(line, "HTTP/1.1 ", 9) == 0)
        head->status = atoi(line + 9);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        size_t length = strlen(names[i].name);
        if (size < length || strncasecmp(line, names[i].name, length) != 0 || head->count == 8 ||
            size - length > 190)
            continue;
        char *value = head->values[head->count++];
        memcpy(value, line + length, size - length);
        value[size - length] = '\0';
        while (*value == ' ')
            value++;
        bide_websocket_value *place = (void *)((char *)&head->headers + names[i].offset);
        place->data = value;
        place->size = strlen(value);
    }
}

struct peer {
    bide_connection connection; /* of a server */
    bide_descriptor socket;     /* of a client */
    bide_stream stream;
    bide_reader reader;
    bide_reader_operation line;
    bide_stream_operation write;
    char in[4096], out[4096];
    struct head head;
    char text[400];
    char key[BIDE_WEBSOCKET_KEY + 1];
    bide_websocket websocket;
    bide_websocket_recv_operation receive;
    bide_websocket_send_operation send;
    bide_websocket_close_operation close;
    char *message;
    char *expected;
    bide_address address;
    bide_io_operation connect;
    int round;
    size_t size;
};

static int open_websocket(struct peer *peer, bide_websocket_role role)
{
    bide_websocket_options options = {.role = role,
                                      .read_buffer = peer->in,
                                      .read_buffer_size = sizeof peer->in,
                                      .write_buffer = peer->out,
                                      .write_buffer_size = sizeof peer->out,
                                      .initial = bide_reader_peek(&peer->reader),
                                      .initial_size = bide_reader_buffered(&peer->reader)};
    return bide_websocket_init(&peer->websocket, peer->stream, &options);
}

/* ---- The server ---- */

bide_coroutine(served_body)
{
    bide_begin(served_body, struct peer * self);
    memset(&self->head, 0, sizeof self->head);
    self->message = malloc(MOST);
    self->stream = bide_socket_stream(&self->connection.socket);
    bide_reader_init(&self->reader, self->stream, self->in, sizeof self->in);
    do {
        bide_try(bide_reader_read_line(&self->line, &self->reader));
        take_line(&self->head, self->line.data, self->line.count);
    } while (self->line.count != 0);
    char accept[BIDE_WEBSOCKET_ACCEPT + 1];
    if (bide_websocket_check_request(&self->head.headers, accept) != 0 || self->message == NULL)
        bide_return(-EINVAL);
    snprintf(self->text, sizeof self->text,
             "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
             "Sec-WebSocket-Accept: %s\r\n\r\n",
             accept);
    bide_try(bide_stream_write(&self->write, self->stream, self->text, strlen(self->text)));
    if (open_websocket(self, BIDE_WEBSOCKET_SERVER) != 0)
        bide_return(-EINVAL);
    for (;;) {
        bide_try_or_break(
            bide_websocket_recv(&self->receive, &self->websocket, self->message, MOST));
        bide_try(bide_websocket_send(&self->send, &self->websocket, self->receive.kind,
                                     self->message, self->receive.count));
    }
    bide_finally();
    free(self->message);
    bide_end();
}

struct program {
    bide_task task;
    bide_server server;
    bide_address address;
    bide_io_operation listen;
    bide_scope scope;
    bide_branch branch;
    bide_descriptor input;
    bide_file_operation read;
    char byte;
};

bide_coroutine(program_body)
{
    bide_begin(program_body, struct program * self);
    bide_address_ip(&self->address, "127.0.0.1", 0);
    bide_try(bide_listen(&self->listen, &self->server.listener, &self->address, 16));
    bide_local_address(&self->server.listener, &self->address);
    printf("%d\n", bide_address_port(&self->address));
    fflush(stdout);
    bide_scope_init(&self->scope, bide_this_frame());
    bide_scope_spawn(&self->scope, &self->branch, bide_server_run(&self->server));
    bide_try(bide_read(&self->read, &self->input, &self->byte, 1));
    bide_server_shut_down(&self->server, 0);
    bide_try(bide_scope_join(&self->scope));
    bide_end();
}

static int serve(bide_loop *loop)
{
    static struct program program;
    static struct peer peers[CLIENTS];
    bide_server_init(&program.server, &(bide_server_options){.body = &served_body,
                                                             .size = sizeof *peers,
                                                             .max_connections = CLIENTS,
                                                             .slots = peers});
    bide_standard_input(&program.input);
    return bide_loop_wait(loop, bide_task_init(&program.task, &program_body));
}

/* ---- The client ---- */

static const size_t sizes[] = {0, 1, 125, 126, 127, 4096, 65535, 65536, 1000000};
enum { SIZES = sizeof sizes / sizeof *sizes };

bide_coroutine(client_body)
{
    bide_begin(client_body, struct peer * self);
    bide_try(bide_connect(&self->connect, &self->socket, &self->address));
    self->stream = bide_socket_stream(&self->socket);
    bide_reader_init(&self->reader, self->stream, self->in, sizeof self->in);
    bide_websocket_make_key(self->key);
    snprintf(self->text, sizeof self->text,
             "GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
             "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: %s\r\n\r\n",
             self->key);
    bide_try(bide_stream_write(&self->write, self->stream, self->text, strlen(self->text)));
    do {
        bide_try(bide_reader_read_line(&self->line, &self->reader));
        take_line(&self->head, self->line.data, self->line.count);
    } while (self->line.count != 0);
    int status =
        bide_websocket_check_answer(self->head.status, &self->head.headers, self->key, NULL);
    if (status != 0)
        bide_return(status);
    open_websocket(self, BIDE_WEBSOCKET_CLIENT);
    for (self->round = 0; self->round < 2 * SIZES; self->round++) {
        self->size = sizes[self->round % SIZES];
        for (size_t i = 0; i < self->size; i++)
            self->expected[i] = (char)('a' + (i * 7 + (size_t)self->round) % 26);
        bide_try(
            bide_websocket_send(&self->send, &self->websocket,
                                self->round < SIZES ? BIDE_WEBSOCKET_TEXT : BIDE_WEBSOCKET_BINARY,
                                self->expected, self->size));
        bide_try(bide_websocket_recv(&self->receive, &self->websocket, self->message, MOST));
        if (self->receive.count != self->size ||
            memcmp(self->message, self->expected, self->size) != 0 ||
            (self->receive.kind == BIDE_WEBSOCKET_TEXT) != (self->round < SIZES))
            bide_return(-EBADMSG);
    }
    bide_try(bide_websocket_send_ping(&self->send, &self->websocket, "are you there?", 14));
    bide_try(bide_websocket_close(&self->close, &self->websocket, 1000, "done"));
    if (!self->websocket.end.is_clean || self->websocket.end.code != 1000 ||
        self->websocket.pongs != 1)
        bide_return(-EBADMSG);
    bide_finally();
    bide_close(&self->socket);
    bide_end();
}

int main(int count, char **arguments)
{
    static struct peer peer;
    bide_loop *loop;
    if (count < 2 || bide_loop_create(&loop, NULL) != 0)
        return 2;
    if (strcmp(arguments[1], "server") == 0)
        return -serve(loop);
    peer.message = malloc(MOST);
    peer.expected = malloc(MOST);
    bide_descriptor_init_closed(&peer.socket);
    bide_address_ip(&peer.address, "127.0.0.1", (uint16_t)atoi(arguments[2]));
    int status = bide_loop_wait(loop, bide_task_init(&peer.connection.task, &client_body));
    if (status != 0)
        fprintf(stderr, "%s\n", strerror(-status));
    free(peer.message);
    free(peer.expected);
    bide_loop_destroy(loop);
    return status != 0;
}

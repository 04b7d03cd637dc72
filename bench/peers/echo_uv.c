/*
 * Echo with libuv: data is received into one buffer that all connections share, and sent at once by
 * uv_try_write. Only data that the socket does not take is copied and written later, and reading
 * stops meanwhile.
 */
#define _GNU_SOURCE
#include "echo_listen.h"

#include <uv.h>

enum { BUFFER = 65536 };

typedef struct connection {
    uv_tcp_t socket;
    uv_write_t write;
    char *rest; /* data being written */
} connection;

static uv_loop_t loop;
static char buffer[BUFFER];

static void check(int result, const char *what)
{
    if (result < 0) {
        fprintf(stderr, "%s: %s\n", what, uv_strerror(result));
        exit(1);
    }
}

static void lend(uv_handle_t *handle, size_t wanted, uv_buf_t *lent)
{
    (void)handle, (void)wanted;
    *lent = uv_buf_init(buffer, BUFFER);
}

static void closed(uv_handle_t *handle)
{
    connection *c = (connection *)handle;
    free(c->rest);
    free(c);
}

static void drop(connection *c)
{
    if (!uv_is_closing((uv_handle_t *)c))
        uv_close((uv_handle_t *)c, closed);
}

static void received(uv_stream_t *stream, ssize_t got, const uv_buf_t *lent);

static void written(uv_write_t *write, int status)
{
    connection *c = (connection *)write->handle;
    free(c->rest);
    c->rest = NULL;
    if (status < 0 || uv_read_start((uv_stream_t *)&c->socket, lend, received) < 0)
        drop(c);
}

static void received(uv_stream_t *stream, ssize_t got, const uv_buf_t *lent)
{
    connection *c = (connection *)stream;
    if (got == 0)
        return;
    if (got < 0) {
        drop(c);
        return;
    }
    uv_buf_t piece = uv_buf_init(lent->base, (unsigned)got);
    int sent = uv_try_write(stream, &piece, 1);
    if (sent == got)
        return;
    if (sent < 0 && sent != UV_EAGAIN) {
        drop(c);
        return;
    }
    size_t left = (size_t)(got - (sent < 0 ? 0 : sent));
    c->rest = malloc(left);
    if (c->rest == NULL)
        echo_fail("rest");
    memcpy(c->rest, lent->base + got - left, left);
    piece = uv_buf_init(c->rest, (unsigned)left);
    uv_read_stop(stream);
    if (uv_write(&c->write, stream, &piece, 1, written) < 0)
        drop(c);
}

static void accepted(uv_stream_t *listener, int status)
{
    connection *c = calloc(1, sizeof *c);
    check(status, "accept");
    if (c == NULL)
        echo_fail("accept");
    check(uv_tcp_init(&loop, &c->socket), "accept");
    check(uv_accept(listener, (uv_stream_t *)&c->socket), "accept");
    uv_tcp_nodelay(&c->socket, 1);
    check(uv_read_start((uv_stream_t *)&c->socket, lend, received), "read");
}

int main(int argc, char **argv)
{
    uv_tcp_t listener;
    check(uv_loop_init(&loop), "loop");
    check(uv_tcp_init(&loop, &listener), "listen");
    check(uv_tcp_open(&listener, echo_listen(echo_port(argc, argv), SOCK_NONBLOCK)), "listen");
    check(uv_listen((uv_stream_t *)&listener, 4096, accepted), "listen");
    return uv_run(&loop, UV_RUN_DEFAULT);
}

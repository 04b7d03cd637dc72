/*
 * An HTTP agent with TLS, through a proxy's tunnel: requests share a verified connection, and a server that cannot
 * prove its name gets none. The proxy, the TLS server and the HTTP server are one coroutine.
 */
#define _GNU_SOURCE
#include "tls_pair.h"

#include <bide/http.h>
#include <bide/http_agent_tls.h>

#include <string.h>

enum { LONG = 20000 };

struct hello {
    bide_http_exchange exchange;
};

bide_coroutine(hello_body)
{
    bide_begin(hello_body, struct hello * self);
    bide_try(bide_http_respond(&self->exchange, "hello", 5));
    bide_end();
}

struct peer {
    bide_connection connection;
    bide_io_operation operation;
    bide_tls tls;
    bide_tls_handshake handshake;
    bide_http_connection serving;
    char text[1000];
    size_t size;
    int status;
    bide_stream_operation stream;
};

static struct {
    world *world;
    bide_server server;
    bide_http_server http;
    bide_spawned running;
    struct peer slots[2];
    char memory[2][65536];
    bide_tls_config *config;
    bide_http_agent *agent;
    bide_http_fetch fetch;
    char tunnel[64]; /* the first line that the proxy got */
    char page[LONG + 1];
    bool forges; /* the server sends a second response behind the first */
    char response[LONG + 200];
    size_t response_size;
} f;

/* A body that does not fit into a client's buffer, and behind it a response that nobody has asked for. */
static void make_response(void)
{
    int head = snprintf(f.response, sizeof f.response,
                        "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", LONG);
    memset(f.response + head, 'x', LONG);
    char *end =
        stpcpy(f.response + head + LONG, "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged");
    f.response_size = (size_t)(end - f.response);
}

bide_coroutine(peer_body)
{
    static const char opened[] = "HTTP/1.1 200 OK\r\n\r\n";
    bide_begin(peer_body, struct peer * self);
    bide_tls_init_closed(&self->tls);
    self->size = 0;
    memset(self->text, 0, sizeof self->text);
    while (strstr(self->text, "\r\n\r\n") == NULL) {
        bide_try(bide_recv(&self->operation, &self->connection.socket, self->text + self->size,
                           sizeof self->text - 1 - self->size));
        if (self->operation.count == 0)
            bide_return(0);
        self->size += self->operation.count;
    }
    memcpy(f.tunnel, self->text, sizeof f.tunnel - 1);
    bide_try(bide_send(&self->operation, &self->connection.socket, opened, sizeof opened - 1));
    bide_try(bide_tls_accept(&self->handshake, &self->tls, f.config,
                             bide_socket_stream(&self->connection.socket)));
    while (f.forges) { /* (a request is one record, and so one read) */
        bide_try(bide_stream_read(&self->stream, bide_tls_stream(&self->tls), self->text,
                                  sizeof self->text));
        if (bide_stream_count(&self->stream, bide_tls_stream(&self->tls)) == 0)
            bide_return(0);
        bide_try(bide_stream_write(&self->stream, bide_tls_stream(&self->tls), f.response,
                                   f.response_size));
    }
    bide_await_status(self->status,
                      bide_http_serve(&self->serving, &f.http, bide_tls_stream(&self->tls),
                                      f.memory[self - f.slots]));
    bide_finally();
    bide_tls_close(&self->tls);
    bide_end();
}

static void open_server(void **state, bide_tls_config *client)
{
    static char proxy[64];
    bide_io_operation operation;
    bide_address address;
    bide_server_options options = {
        .body = &peer_body, .size = sizeof(struct peer), .max_connections = 2, .slots = f.slots};
    bide_http_options serving = {.handler = {&hello_body, sizeof(struct hello)}};
    memset(&f, 0, sizeof f);
    f.world = world_of(state);
    f.config = usual_server();
    assert_int_equal(bide_http_server_init(&f.http, &serving), 0);
    assert_true(bide_http_memory_size(&f.http) <= sizeof f.memory[0]);
    assert_int_equal(bide_server_init(&f.server, &options), 0);
    assert_int_equal(bide_address_ip(&address, "127.0.0.1", 0), 0);
    assert_int_equal(world_wait(f.world, bide_listen(&operation, &f.server.listener, &address, 2)),
                     0);
    assert_int_equal(bide_local_address(&f.server.listener, &address), 0);
    bide_spawn(&f.running, f.world->context, bide_server_run(&f.server));
    bide_address_print(&address, proxy, sizeof proxy);
    assert_int_equal(bide_http_agent_create(&f.agent, &(bide_http_agent_options){.proxy = proxy}),
                     0);
    bide_http_agent_use_tls(f.agent, client);
}

static void close_server(bide_tls_config *client)
{
    bide_event_waiter wait;
    bide_http_agent_destroy(f.agent);
    bide_server_shut_down(&f.server, BIDE_FOREVER);
    assert_int_equal(world_wait(f.world, bide_event_wait(&wait, &f.running.ended)), 0);
    bide_tls_config_release(f.config);
    bide_tls_config_release(client);
}

static int get(const char *url)
{
    memset(f.page, 0, sizeof f.page);
    return world_wait(f.world, bide_http_get(&f.fetch, f.agent, url, f.page, sizeof f.page));
}

static void requests_share_a_verified_connection(void **state)
{
    (void)world_of_a_loop(world_of(state));
    bide_tls_config *client = usual_client();
    open_server(state, client);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(get("https://server.test/x"), 0);
        assert_int_equal(f.fetch.response.status, 200);
        assert_string_equal(f.page, "hello");
    }
    assert_memory_equal(f.tunnel, "CONNECT server.test:443 HTTP/1.1\r\n", 34);
    assert_int_equal(f.server.stats.accepted, 1);
    assert_int_equal(f.http.stats.requests, 3);
    close_server(client);
}

static void bytes_behind_a_response_are_no_response(void **state)
{
    (void)world_of_a_loop(world_of(state));
    bide_tls_config *client = usual_client();
    open_server(state, client);
    f.forges = true;
    make_response();
    for (int i = 0; i < 3; i++) {
        assert_int_equal(get("https://server.test/x"), 0);
        assert_int_equal(f.fetch.response.status, 200);
        assert_int_equal(f.fetch.count, LONG);
        assert_int_equal(f.page[0], 'x');
    }
    assert_int_equal(f.server.stats.accepted, 3);
    close_server(client);
}

static void a_server_that_has_another_name_gets_no_request(void **state)
{
    (void)world_of_a_loop(world_of(state));
    bide_tls_config *client = usual_client();
    open_server(state, client);
    assert_int_equal(get("https://elsewhere.test/x"), -EKEYREJECTED);
    assert_int_equal(f.http.stats.requests, 0);
    close_server(client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        world_test(requests_share_a_verified_connection),
        world_test(bytes_behind_a_response_are_no_response),
        world_test(a_server_that_has_another_name_gets_no_request),
    };
    return cmocka_run_group_tests(tests, make_everyone, free_everyone);
}

/*
 * HTTP/2 over sockets, in each world: several nghttp2 clients at once, bodies in both directions, and
 * shutdown.
 */
#define _GNU_SOURCE
#include "../io/world.h"

#include "http2_peer.h"

enum { CLIENTS = 10, EACH = 12, BODY = 100000 };

static struct {
    world *world;
    bide_http_server server;
    bide_http2 http2;
    bide_spawned running;
    bide_address address;
    bide_io_operation listen;
    char body[BODY];
    struct socket_client {
        bide_task task;
        bide_spawned spawned;
        bide_descriptor socket;
        bide_io_operation connect;
        client2 client;
        ask asks[EACH];
    } clients[CLIENTS];
} f;

bide_coroutine(socket_client_body)
{
    bide_begin(socket_client_body, struct socket_client * self);
    bide_descriptor_init_closed(&self->socket);
    bide_try(bide_connect(&self->connect, &self->socket, &f.address));
    self->client.stream = bide_socket_stream(&self->socket);
    client2_begin(&self->client);
    bide_try(bide_task_init(&self->client.task, &client2_body));
    bide_finally();
    nghttp2_session_del(self->client.session);
    bide_close(&self->socket);
    bide_end();
}

static void begin(void **state)
{
    memset(&f, 0, sizeof f);
    memset(&handled, 0, sizeof handled);
    f.world = world_of(state);
    for (int i = 0; i < BODY; i++)
        f.body[i] = (char)('a' + i % 23);
    assert_int_equal(bide_http_server_init(&f.server, &(bide_http_options){
                                                          .handler = {&http_peer_body, sizeof(struct peer_handler)},
                                                          .max_connections = CLIENTS}), 0);
    assert_int_equal(bide_http2_init(&f.http2, &f.server, &(bide_http2_options){.is_plain = true}), 0);
    assert_int_equal(bide_address_ip(&f.address, "127.0.0.1", 0), 0);
    assert_int_equal(world_wait(f.world, bide_listen(&f.listen, &f.server.server.listener, &f.address, CLIENTS)), 0);
    assert_int_equal(bide_local_address(&f.server.server.listener, &f.address), 0);
    bide_spawn(&f.running, f.world->context, bide_http_server_run(&f.server));
}

static void wait_for(bide_spawned *spawned)
{
    bide_event_waiter wait;
    assert_int_equal(world_wait(f.world, bide_event_wait(&wait, &spawned->ended)), 0);
}

static void end(uint64_t deadline)
{
    bide_http_server_shut_down(&f.server, deadline);
    wait_for(&f.running);
    assert_int_equal(f.running.root.status, 0);
    assert_int_equal(f.server.stats.live, 0);
    assert_int_equal(f.http2.stats.live, 0);
    assert_int_equal(f.http2.stats.memory, 0);
}

static ask *ask_for(int client, const char *path)
{
    struct socket_client *self = &f.clients[client];
    self->client.asks = self->asks;
    ask *ask = &self->asks[self->client.ask_count++];
    ask->path = path;
    return ask;
}

static void begin_client(int i)
{
    bide_spawn(&f.clients[i].spawned, f.world->context, bide_task_init(&f.clients[i].task, &socket_client_body));
}

static void many_clients_with_many_requests(void **state)
{
    begin(state);
    for (int i = 0; i < CLIENTS; i++) {
        for (int k = 0; k < EACH; k++) {
            ask *ask = ask_for(i, k % 3 == 0 ? "/hello" : k % 3 == 1 ? "/echo" : "/large");
            ask->body = k % 3 == 1 ? f.body : NULL;
            ask->body_size = BODY;
        }
        begin_client(i);
    }
    for (int i = 0; i < CLIENTS; i++) {
        wait_for(&f.clients[i].spawned);
        assert_int_equal(f.clients[i].spawned.root.status, 0);
        for (int k = 0; k < EACH; k++) {
            const ask *ask = &f.clients[i].asks[k];
            assert_int_equal(ask->status, 200);
            assert_int_equal(ask->code, NGHTTP2_NO_ERROR);
            assert_int_equal(ask->size, k % 3 == 0 ? 5 : k % 3 == 1 ? BODY : 300000);
            if (k % 3 == 1)
                assert_memory_equal(ask->answer, f.body, sizeof ask->answer - 1);
        }
    }
    assert_int_equal(f.server.stats.requests, CLIENTS * EACH);
    end(BIDE_FOREVER);
}

static void a_shutdown_with_a_deadline_ends_slow_requests(void **state)
{
    begin(state);
    ask_for(0, "/hello");
    ask *slow = ask_for(0, "/slow");
    f.clients[0].client.keeps = true;
    begin_client(0);
    while (handled.begun < 2) { /* both handlers have started */
        bide_sleep sleep;
        assert_int_equal(world_wait(f.world, bide_sleep_for(&sleep, 100000)), 0);
    }
    end(0);
    wait_for(&f.clients[0].spawned);
    assert_int_equal(f.clients[0].asks[0].status, 200);
    assert_int_equal(slow->status, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        world_test(many_clients_with_many_requests),
        world_test(a_shutdown_with_a_deadline_ends_slow_requests),
    };
    return cmocka_run_group_tests_name("http2_world", tests, NULL, NULL);
}

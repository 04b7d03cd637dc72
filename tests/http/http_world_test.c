/*
 * A server and clients over sockets, in each world: one request after another and many at once, bodies in
 * both directions, and shutdown.
 */
#define _GNU_SOURCE
#include "../io/world.h"
#include "bide/http.h"

#include <errno.h>
#include <unistd.h>

enum { CLIENTS = 20, BODY = 200000, MEMORY = BIDE_HTTP_CLIENT_MEMORY };

struct hello {
    bide_http_exchange exchange;
};

bide_coroutine(hello_body)
{
    bide_begin(hello_body, struct hello * self);
    bide_try(bide_http_respond(&self->exchange, "hello", 5));
    bide_end();
}

struct echo {
    bide_http_exchange exchange;
    char buffer[3000];
};

bide_coroutine(echo_body)
{
    bide_begin(echo_body, struct echo * self);
    for (;;) {
        bide_try(bide_http_read(&self->exchange, self->buffer, sizeof self->buffer));
        if (self->exchange.count == 0)
            break;
        bide_try(bide_http_write(&self->exchange, self->buffer, self->exchange.count));
    }
    bide_end();
}

struct file {
    bide_http_exchange exchange;
};

static struct {
    world *world;
    bide_http_router router;
    bide_http_server server;
    bide_spawned running;
    bide_address address;
    bide_io_operation listen;
    bide_descriptor file; /* BODY bytes */
    bide_file_operation write;
    char *body;
    struct client {
        bide_task task;
        bide_spawned spawned;
        bide_descriptor socket;
        bide_io_operation connect;
        bide_http_client client;
        _Alignas(16) char memory[MEMORY];
        char buffer[5000];
        const char *path;
        size_t sends, got;
        int times, i, status, error;
        bool has_ended, is_wrong;
    } clients[CLIENTS];
} f;

bide_coroutine(file_body)
{
    bide_begin(file_body, struct file * self);
    int status = bide_http_start_response(&self->exchange, BODY);
    if (status < 0)
        bide_return(status);
    bide_try(bide_http_write_file(&self->exchange, &f.file, 0, 100));
    bide_try(bide_http_write_file(&self->exchange, &f.file, 100, BODY - 100));
    bide_end();
}

bide_coroutine(client_body)
{
    bide_begin(client_body, struct client * self);
    bide_descriptor_init_closed(&self->socket);
    bide_try(bide_connect(&self->connect, &self->socket, &f.address));
    self->error = bide_http_client_init(&self->client, bide_socket_stream(&self->socket), self->memory, MEMORY, NULL);
    for (self->i = 0; self->i < self->times; self->i++) {
        self->got = 0;
        self->error |= bide_http_client_start_request(&self->client, self->sends != 0 ? "POST" : "GET", self->path, "example.org");
        if (self->sends != 0) { /* (limited to what fits into the socket, because nothing is read meanwhile) */
            self->error |= bide_http_client_finish_head(&self->client, self->i % 2 == 0 ? self->sends : BIDE_HTTP_UNKNOWN);
            bide_try(bide_http_client_write(&self->client, f.body, self->sends));
        }
        bide_try(bide_http_client_recv(&self->client));
        self->status = self->client.response.status;
        do {
            bide_try(bide_http_client_read(&self->client, self->buffer, sizeof self->buffer));
            if (self->path[1] != 'h' && memcmp(self->buffer, f.body + self->got, self->client.count) != 0)
                self->is_wrong = true;
            self->got += self->client.count;
        } while (self->client.count != 0);
        if (!bide_http_client_is_reusable(&self->client))
            self->is_wrong = true;
    }
    bide_finally();
    bide_close(&self->socket);
    self->has_ended = true;
    bide_end();
}

static void begin(void **state)
{
    static const bide_http_route routes[] = {
        {"GET", "/hello", {&hello_body, sizeof(struct hello)}, NULL},
        {"POST", "/echo", {&echo_body, sizeof(struct echo)}, NULL},
        {"GET", "/file", {&file_body, sizeof(struct file)}, NULL},
    };
    memset(&f, 0, sizeof f);
    f.world = world_of(state);
    f.body = malloc(BODY);
    for (int i = 0; i < BODY; i++)
        f.body[i] = (char)(i * 31 + i / 251);
    assert_int_equal(bide_http_router_init(&f.router, routes, 3), 0);
    assert_int_equal(bide_http_server_init(&f.server, &(bide_http_options){.select_handler = bide_http_route_request,
                                                                           .argument = &f.router,
                                                                           .max_frame_size = f.router.frame,
                                                                           .max_connections = CLIENTS}), 0);
    assert_int_equal(bide_address_ip(&f.address, "127.0.0.1", 0), 0);
    assert_int_equal(world_wait(f.world, bide_listen(&f.listen, &f.server.server.listener, &f.address, CLIENTS)), 0);
    assert_int_equal(bide_local_address(&f.server.server.listener, &f.address), 0);
    char name[] = "/tmp/bide_http_XXXXXX";
    bide_descriptor_init_closed(&f.file);
    int fd = f.world->memory == NULL ? mkstemp(name) : -1;
    if (fd >= 0)
        close(fd);
    assert_int_equal(world_wait(f.world, bide_open(&f.write, &f.file, name, O_RDWR | O_CREAT, 0600)), 0);
    assert_int_equal(world_wait(f.world, bide_write_at(&f.write, &f.file, f.body, BODY, 0)), 0);
    assert_int_equal(world_wait(f.world, bide_unlink(&f.write, name, 0)), 0);
    bide_spawn(&f.running, f.world->context, bide_http_server_run(&f.server));
}

static void wait_for(bide_spawned *spawned)
{
    bide_event_waiter wait;
    assert_int_equal(world_wait(f.world, bide_event_wait(&wait, &spawned->ended)), 0);
}

static void end(void)
{
    bide_http_server_shut_down(&f.server, BIDE_FOREVER);
    wait_for(&f.running);
    assert_int_equal(f.running.root.status, 0);
    assert_int_equal(f.server.stats.live, 0);
    bide_close(&f.file);
    free(f.body);
}

static void begin_client(int i, const char *path, size_t sends, int times)
{
    struct client *client = &f.clients[i];
    client->path = path;
    client->sends = sends;
    client->times = times;
    bide_spawn(&client->spawned, f.world->context, bide_task_init(&client->task, &client_body));
}

static void end_client(int i, size_t got)
{
    struct client *client = &f.clients[i];
    wait_for(&client->spawned);
    assert_int_equal(client->spawned.root.status, 0);
    assert_int_equal(client->error, 0);
    assert_int_equal(client->status, 200);
    assert_int_equal(client->got, got);
    assert_false(client->is_wrong);
}

static void many_requests_on_a_connection(void **state)
{
    begin(state);
    begin_client(0, "/hello", 0, 200);
    end_client(0, 5);
    assert_int_equal(f.server.stats.requests, 200);
    assert_int_equal(f.server.stats.connections, 1);
    end();
}

static void bodies_go_both_ways(void **state)
{
    begin(state);
    begin_client(0, "/echo", 20000, 6);
    end_client(0, 20000);
    end();
}

static void files_are_sent(void **state)
{
    begin(state);
    begin_client(0, "/file", 0, 3);
    end_client(0, BODY);
    end();
}

static void many_clients_at_once(void **state)
{
    begin(state);
    for (int i = 0; i < CLIENTS; i++)
        begin_client(i, i % 3 == 0 ? "/hello" : i % 3 == 1 ? "/echo" : "/file", i % 3 == 1 ? 5000 : 0, 10);
    for (int i = 0; i < CLIENTS; i++)
        end_client(i, i % 3 == 0 ? 5 : i % 3 == 1 ? 5000 : BODY);
    assert_int_equal(f.server.stats.requests, CLIENTS * 10);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(many_requests_on_a_connection, world_begin, world_end),
        cmocka_unit_test_setup_teardown(bodies_go_both_ways, world_begin, world_end),
        cmocka_unit_test_setup_teardown(files_are_sent, world_begin, world_end),
        cmocka_unit_test_setup_teardown(many_clients_at_once, world_begin, world_end),
    };
    return cmocka_run_group_tests_name("http_world", tests, NULL, NULL);
}

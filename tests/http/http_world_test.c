/*
 * A server and clients over sockets, in each world: one request after another and many at once, bodies in
 * both directions, clients that leave while a handler waits, and shutdown.
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
    bide_event has_begun, goes, has_ended; /* of the handler of "/waits" */
    int waited;                            /* its status */
    struct leaver {
        bide_task task;
        bide_spawned spawned;
        bide_descriptor socket;
        bide_io_operation operation;
        bide_event_waiter wait;
        enum { CLOSES, RESETS, ENDS_ITS_OUTPUT } how;
        char answer[1000];
        size_t size;
    } leaver;
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
        int times, i, status, error, no_delay;
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

struct waits {
    bide_http_exchange exchange;
    bide_event_waiter wait;
};

bide_coroutine(waits_body)
{
    bide_begin(waits_body, struct waits * self);
    bide_http_set_half_close(&self->exchange, f.leaver.how == ENDS_ITS_OUTPUT);
    bide_event_set(&f.has_begun);
    bide_await_status(f.waited, bide_event_wait(&self->wait, &f.goes));
    if (f.waited == 0)
        bide_try(bide_http_respond(&self->exchange, "went", 4));
    bide_finally();
    bide_event_set(&f.has_ended);
    bide_end();
}

/* Sends a request, and leaves when the handler has begun. */
bide_coroutine(leaver_body)
{
    static const char request[] = "GET /waits HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    bide_begin(leaver_body, struct leaver * self);
    bide_descriptor_init_closed(&self->socket);
    bide_try(bide_connect(&self->operation, &self->socket, &f.address));
    bide_try(bide_send(&self->operation, &self->socket, request, sizeof request - 1));
    bide_try(bide_event_wait(&self->wait, &f.has_begun));
    if (self->how == RESETS && f.world->memory == NULL) {
        struct linger hard = {1, 0};
        (void)setsockopt(bide_descriptor_fd(&self->socket), SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
    }
    if (self->how == ENDS_ITS_OUTPUT) {
        (void)bide_shutdown(&self->socket, BIDE_HALF_OUTPUT);
        bide_event_set(&f.goes);
        for (;;) {
            bide_try(bide_recv(&self->operation, &self->socket, self->answer + self->size,
                               sizeof self->answer - 1 - self->size));
            if (self->operation.count == 0)
                break;
            self->size += self->operation.count;
        }
    }
    bide_finally();
    bide_close(&self->socket);
    bide_end();
}

bide_coroutine(client_body)
{
    bide_begin(client_body, struct client * self);
    bide_descriptor_init_closed(&self->socket);
    bide_try(bide_connect(&self->connect, &self->socket, &f.address));
    self->error = bide_http_client_init(&self->client, bide_socket_stream(&self->socket), self->memory, MEMORY, NULL);
    self->error |= bide_socket_option(&self->socket, BIDE_OPTION_NO_DELAY, &self->no_delay);
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
        {"GET", "/waits", {&waits_body, sizeof(struct waits)}, NULL},
    };
    memset(&f, 0, sizeof f);
    f.world = world_of(state);
    bide_event_init(&f.has_begun, false);
    bide_event_init(&f.goes, false);
    bide_event_init(&f.has_ended, false);
    f.body = malloc(BODY);
    for (int i = 0; i < BODY; i++)
        f.body[i] = (char)(i * 31 + i / 251);
    assert_int_equal(bide_http_router_init(&f.router, routes, 4), 0);
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
    assert_true(client->no_delay != 0);
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

static void leave(void **state, int how)
{
    bide_event_waiter wait;
    begin(state);
    f.leaver.how = how;
    bide_spawn(&f.leaver.spawned, f.world->context, bide_task_init(&f.leaver.task, &leaver_body));
    assert_int_equal(world_wait(f.world, bide_event_wait(&wait, &f.has_ended)), 0);
    wait_for(&f.leaver.spawned);
    assert_int_equal(f.leaver.spawned.root.status, 0);
    end();
}

static void a_handler_is_cancelled_when_its_client_closes(void **state)
{
    leave(state, CLOSES);
    assert_int_equal(f.waited, -ECANCELED);
}

static void a_handler_is_cancelled_when_its_client_resets(void **state)
{
    leave(state, RESETS);
    assert_int_equal(f.waited, -ECANCELED);
}

static void a_client_may_end_its_output_and_be_served(void **state)
{
    leave(state, ENDS_ITS_OUTPUT);
    assert_int_equal(f.waited, 0);
    assert_non_null(strstr(f.leaver.answer, "\r\n\r\nwent"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(many_requests_on_a_connection, world_begin, world_end),
        cmocka_unit_test_setup_teardown(bodies_go_both_ways, world_begin, world_end),
        cmocka_unit_test_setup_teardown(files_are_sent, world_begin, world_end),
        cmocka_unit_test_setup_teardown(many_clients_at_once, world_begin, world_end),
        cmocka_unit_test_setup_teardown(a_handler_is_cancelled_when_its_client_closes, world_begin, world_end),
        cmocka_unit_test_setup_teardown(a_handler_is_cancelled_when_its_client_resets, world_begin, world_end),
        cmocka_unit_test_setup_teardown(a_client_may_end_its_output_and_be_served, world_begin, world_end),
    };
    return cmocka_run_group_tests_name("http_world", tests, NULL, NULL);
}

/*
 * An HTTP agent whose allocations and system calls fail, each in its turn: a redirect to a compressed page is got or
 * not, and nothing is left.
 */
#define _GNU_SOURCE
#include "by_readiness.h"
#include "faults.h"

#include "bide/bide.h"
#include "bide/http.h"
#include "http_compressed.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { SLOTS = 8 };

struct peer {
    bide_connection connection;
    bide_io_operation operation;
    char text[2000];
    size_t size;
};

static struct {
    bide_server server;
    struct peer slots[SLOTS];
    bide_spawned running;
    bide_http_agent *agent;
    bide_http_fetch fetch;
    char url[60];
    char page[1000];
    char compressed[300];
    size_t compressed_size;
} f;

static const char redirect[] =
    "HTTP/1.1 302 Found\r\nLocation: /page\r\nContent-Length: 4\r\n\r\nthat";

bide_coroutine(peer_body)
{
    bide_begin(peer_body, struct peer * self);
    for (;;) {
        self->size = 0;
        self->text[0] = '\0';
        while (strstr(self->text, "\r\n\r\n") == NULL) {
            bide_try(bide_recv(&self->operation, &self->connection.socket, self->text + self->size,
                               sizeof self->text - 1 - self->size));
            if (self->operation.count == 0)
                bide_return(0);
            self->size += self->operation.count;
            self->text[self->size] = '\0';
        }
        if (strncmp(self->text, "GET /page ", 10) == 0)
            bide_try(bide_send(&self->operation, &self->connection.socket, f.compressed,
                               f.compressed_size));
        else
            bide_try(bide_send(&self->operation, &self->connection.socket, redirect,
                               sizeof redirect - 1));
    }
    bide_end();
}

static int listen_on(bide_loop *loop)
{
    static const bide_server_options options = {.body = &peer_body,
                                                .size = sizeof(struct peer),
                                                .max_connections = SLOTS,
                                                .slots = f.slots};
    bide_io_operation operation;
    bide_address address;
    char text[40];
    assert_int_equal(bide_server_init(&f.server, &options), 0);
    assert_int_equal(bide_address_ip(&address, "127.0.0.1", 0), 0);
    int status = bide_loop_wait(loop, bide_listen(&operation, &f.server.listener, &address, SLOTS));
    if (status < 0)
        return status;
    assert_int_equal(bide_local_address(&f.server.listener, &address), 0);
    bide_address_print(&address, text, sizeof text);
    snprintf(f.url, sizeof f.url, "http://%s/", text);
    bide_spawn(&f.running, bide_loop_context(loop), bide_server_run(&f.server));
    return 0;
}

/* Gets the page twice, the second time on the kept connection. */
static int get_page(bide_loop *loop)
{
    static const bide_http_agent_options options = {.ignores_environment = true};
    int status = bide_http_agent_create(&f.agent, &options);
    for (int i = 0; i < 2 && status == 0; i++) {
        status =
            bide_loop_wait(loop, bide_http_get(&f.fetch, f.agent, f.url, f.page, sizeof f.page));
        if (status == 0) {
            assert_int_equal(f.fetch.response.status, 200);
            assert_int_equal(f.fetch.count, strlen(COMPRESSED_TEXT));
            assert_memory_equal(f.page, COMPRESSED_TEXT, strlen(COMPRESSED_TEXT));
        }
    }
    bide_http_agent_destroy(f.agent);
    return status;
}

static int run(void *unused)
{
    static const bide_loop_options options = {.kind = BY_READINESS};
    bide_event_waiter wait;
    bide_loop *loop;
    (void)unused;
    f.agent = NULL;
    int status = bide_loop_create(&loop, &options);
    if (status < 0)
        return status;
    status = listen_on(loop);
    if (status == 0) {
        status = get_page(loop);
        bide_server_shut_down(&f.server, 0);
        assert_int_equal(bide_loop_wait(loop, bide_event_wait(&wait, &f.running.ended)), 0);
    }
    bide_loop_destroy(loop);
    return status;
}

static void nothing_is_left_when_memory_is_short(void **state)
{
    (void)state;
    assert_int_equal(run(NULL), 0); /* (what is kept for ever is made here) */
    assert_in_range(faults_for_each_n(FAULT_MALLOC, ENOMEM, run, NULL), 2, 100);
    assert_in_range(faults_for_each_n(FAULT_CALLOC, ENOMEM, run, NULL), 4, 100);
}

int main(void)
{
    static const char head[] = "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: ";
    const struct CMUnitTest tests[] = {cmocka_unit_test(nothing_is_left_when_memory_is_short)};
    int size = snprintf(f.compressed, sizeof f.compressed, "%s%zu\r\n\r\n", head, sizeof gzipped);
    memcpy(f.compressed + size, gzipped, sizeof gzipped);
    f.compressed_size = (size_t)size + sizeof gzipped;
    return cmocka_run_group_tests_name("http_agent_faults", tests, NULL, NULL);
}

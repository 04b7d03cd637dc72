/*
 * An HTTP agent that may use HTTP/2, by ALPN, through a proxy's tunnel. The proxy, the TLS server and the HTTP server are
 * one coroutine.
 */
#define _GNU_SOURCE
#include "tls_pair.h"

#include <bide/http.h>
#include <bide/http2.h>
#include <bide/http_agent_http2.h>
#include <bide/http_agent_tls.h>

#include <string.h>

enum { GETS = 10, SLOTS = 10, BIG = 300000 };

static const char *const only_http1[] = {"http/1.1", NULL};

static bool cut_connections(void);
static void note_field(bide_slice name);
static unsigned f_hints(void);
static void note_big(void);

static const char big[BIG];

struct hello {
    bide_http_exchange exchange;
    char buffer[64];
    unsigned sent;
};

bide_coroutine(hello_body)
{
    bide_begin(hello_body, struct hello * self);
    if (bide_http_is(self->exchange.request.path, "/moved")) {
        self->exchange.status = 302;
        bide_http_add(&self->exchange, "Location", "/x");
    } else if (bide_http_is(self->exchange.request.path, "/fields")) {
        for (size_t i = 0; i < self->exchange.request.field_count; i++)
            note_field(self->exchange.request.fields[i].name);
        bide_try(bide_http_respond(&self->exchange, "hello", 5));
    } else if (bide_http_is(self->exchange.request.path, "/echo")) {
        bide_try(bide_http_read(&self->exchange, self->buffer, sizeof self->buffer));
        bide_try(bide_http_respond(&self->exchange, self->buffer, self->exchange.count));
    } else if (bide_http_is(self->exchange.request.path, "/big")) {
        bide_try(bide_http_respond(&self->exchange, big, sizeof big));
        note_big();
    } else if (bide_http_is(self->exchange.request.path, "/hints")) {
        static const bide_http_field link = {{"Link", 4}, {"</a.css>", 8}};
        for (self->sent = 0; self->sent < f_hints(); self->sent++)
            bide_try(bide_http_send_interim(&self->exchange, 103, &link, 1));
        bide_try(bide_http_respond(&self->exchange, "hello", 5));
    } else if (bide_http_is(self->exchange.request.path, "/cut") && cut_connections()) {
        bide_return(-EPIPE);
    } else {
        if (bide_http_is(self->exchange.request.path, "/last"))
            bide_http_close_after(&self->exchange);
        bide_try(bide_http_respond(&self->exchange, "hello", 5));
    }
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
    bide_event_waiter wait;
    bide_with_deadline_operation limited;
};

static struct {
    world *world;
    bide_server server;
    bide_http_server http;
    bide_http2 http2;
    bide_spawned running;
    struct peer slots[SLOTS];
    char memory[SLOTS][65536];
    bide_tls_config *config;
    bide_http_agent *agent;
    bide_http_fetch fetch;
    char page[100];
    bool is_silent;
    bool meets; /* connections behind the first wait for another one before their handshake */
    unsigned met, alone;
    unsigned fields_seen;
    unsigned hints, hints_seen; /* that are sent, and that came */
    bide_event meeting;
    bide_event big_was_sent;
    bide_event destroyed; /* a connection of HTTP/2 was, by table_that_counts */
    unsigned cuts; /* so often the server ends a connection, instead of a response to "/cut" */
    struct get {
        bide_task task;
        bide_http_fetch fetch;
        bide_spawned spawned;
        const char *url;
        int status;
        char page[100];
    } gets[GETS];
} f;

static unsigned f_hints(void)
{
    return f.hints;
}

static void note_big(void)
{
    bide_event_set(&f.big_was_sent);
}

static void note_field(bide_slice name)
{
    f.fields_seen += bide_http_is(name, "n");
}

/* As if the server had crashed: TLS is not closed before. */
static bool cut_connections(void)
{
    if (f.cuts == 0)
        return false;
    f.cuts--;
    for (int i = 0; i < SLOTS; i++)
        if (bide_descriptor_is_open(&f.slots[i].connection.socket))
            bide_close(&f.slots[i].connection.socket);
    return true;
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
    if (f.is_silent) {
        bide_try(bide_recv(&self->operation, &self->connection.socket, self->text, 1)); /* (until it leaves) */
        bide_return(0);
    }
    bide_try(bide_send(&self->operation, &self->connection.socket, opened, sizeof opened - 1));
    if (f.meets && f.server.stats.accepted > 1) {
        if (++f.met == 2)
            bide_event_set(&f.meeting);
        bide_await_status(self->status,
                          bide_with_deadline(&self->limited, bide_now(bide_this_context()) + UINT64_C(10000000000),
                                             bide_event_wait(&self->wait, &f.meeting)));
        f.alone += self->status != 0;
    }
    bide_try(bide_tls_accept(&self->handshake, &self->tls, f.config,
                             bide_socket_stream(&self->connection.socket)));
    bide_await_status(self->status,
                      bide_http2_serve(&self->serving, &f.http2, bide_tls_stream(&self->tls),
                                       f.memory[self - f.slots], bide_tls_protocol(&self->tls)));
    bide_finally();
    bide_tls_close(&self->tls);
    bide_end();
}

static bide_tls_config *offering(const char *const *protocols, bool is_server)
{
    bide_tls_certificate room;
    bide_tls_options options = options_of(is_server ? &server_proof : NULL, &room);
    options.protocols = protocols;
    return is_server ? server_with(&options) : client_with(&options);
}

static void open_server_for(void **state, bide_tls_config *client, const char *const *protocols, bool uses_http2,
                            bide_http_agent_options asking)
{
    static char proxy[64];
    bide_io_operation operation;
    bide_address address;
    bide_server_options options = {
        .body = &peer_body, .size = sizeof(struct peer), .max_connections = SLOTS, .slots = f.slots};
    bide_http_options serving = {
        .handler = {&hello_body, sizeof(struct hello)}, .read_buffer_size = 16384, .max_fields = 256};
    memset(&f, 0, sizeof f);
    f.world = world_of(state);
    f.config = offering(protocols, true);
    assert_int_equal(bide_http_server_init(&f.http, &serving), 0);
    assert_int_equal(bide_http2_init(&f.http2, &f.http, NULL), 0);
    assert_true(bide_http_memory_size(&f.http) <= sizeof f.memory[0]);
    assert_int_equal(bide_server_init(&f.server, &options), 0);
    assert_int_equal(bide_address_ip(&address, "127.0.0.1", 0), 0);
    assert_int_equal(world_wait(f.world, bide_listen(&operation, &f.server.listener, &address, SLOTS)),
                     0);
    assert_int_equal(bide_local_address(&f.server.listener, &address), 0);
    bide_spawn(&f.running, f.world->context, bide_server_run(&f.server));
    bide_address_print(&address, proxy, sizeof proxy);
    asking.proxy = proxy;
    assert_int_equal(bide_http_agent_create(&f.agent, &asking), 0);
    bide_http_agent_use_tls(f.agent, client);
    if (uses_http2)
        bide_http_agent_use_http2(f.agent);
}

static void destroy_and_note(void *client)
{
    bide_http_agent_http2_destroy_(client);
    bide_event_set(&f.destroyed);
}

/* HTTP/2 as bide_http_agent_use_http2 has it, with a note of each connection's end. */
static void use_http2_and_note(void)
{
    static const bide_http_agent_http2 table = {
        sizeof(bide_http2_client),         sizeof(bide_http2_request),
        &bide_http_agent_http2_open_,      &bide_http_agent_http2_run_,
        &bide_http_agent_http2_is_usable_, &destroy_and_note,
        &bide_http_agent_http2_start_,     &bide_http_agent_http2_add_,
        &bide_http_agent_http2_set_body_,  &bide_http_agent_http2_recv_,
        &bide_http_agent_http2_read_,      &bide_http_agent_http2_response_,
        &bide_http_agent_http2_count_,     &bide_http_agent_http2_close_,
        &bide_http_agent_http2_set_informational_,
    };
    bide_event_init(&f.destroyed, false);
    bide_http_agent_set_http2(f.agent, &table);
}

static void open_server(void **state, bide_tls_config *client, const char *const *protocols, bool uses_http2)
{
    open_server_for(state, client, protocols, uses_http2, (bide_http_agent_options){0});
}

static void close_server(bide_tls_config *client)
{
    bide_event_waiter wait;
    bide_http_agent_destroy(f.agent);
    bide_server_shut_down(&f.server, BIDE_FOREVER);
    assert_int_equal(world_wait(f.world, bide_event_wait(&wait, &f.running.ended)), 0);
    assert_int_equal(f.http2.stats.memory, 0);
    bide_tls_config_release(f.config);
    bide_tls_config_release(client);
}

static int get(const char *url)
{
    memset(f.page, 0, sizeof f.page);
    return world_wait(f.world, bide_http_get(&f.fetch, f.agent, url, f.page, sizeof f.page));
}

bide_coroutine(get_body)
{
    bide_begin(get_body, struct get * self);
    bide_await_status(self->status, bide_http_get(&self->fetch, f.agent, self->url, self->page, sizeof self->page));
    bide_end();
}

/* Many requests at once. */
static void get_all(const char *url)
{
    for (int i = 0; i < GETS; i++) {
        struct get *get = &f.gets[i];
        memset(get->page, 0, sizeof get->page);
        get->url = url;
        bide_spawn(&get->spawned, f.world->context, bide_task_init(&get->task, &get_body));
    }
    for (int i = 0; i < GETS; i++) {
        bide_event_waiter wait;
        assert_int_equal(world_wait(f.world, bide_event_wait(&wait, &f.gets[i].spawned.ended)), 0);
    }
}

static void requests_share_a_connection_from_the_first_on(void **state)
{
    (void)world_of_a_loop(world_of(state));
    bide_tls_config *client = offering(bide_http2_protocols, false);
    open_server(state, client, bide_http2_protocols, true);
    for (int round = 0; round < 2; round++) {
        get_all("https://server.test/x");
        for (int i = 0; i < GETS; i++) {
            assert_int_equal(f.gets[i].status, 0);
            assert_int_equal(f.gets[i].fetch.response.status, 200);
            assert_true(f.gets[i].fetch.is_http2);
            assert_string_equal(f.gets[i].page, "hello");
        }
    }
    assert_int_equal(f.server.stats.accepted, 1);
    assert_int_equal(f.http2.stats.streams, 2 * GETS);
    assert_int_equal(f.http2.stats.resets, 0);
    close_server(client);
}

static void a_server_without_http2_is_asked_by_http1(void **state)
{
    (void)world_of_a_loop(world_of(state));
    bide_tls_config *client = offering(bide_http2_protocols, false);
    open_server(state, client, only_http1, true);
    get_all("https://server.test/x");
    for (int i = 0; i < GETS; i++) {
        assert_int_equal(f.gets[i].status, 0);
        assert_false(f.gets[i].fetch.is_http2);
        assert_string_equal(f.gets[i].page, "hello");
    }
    assert_int_equal(f.http2.stats.streams, 0);
    assert_int_equal(f.http.stats.requests, GETS);
    close_server(client);
}

/* Once it is known that the server speaks HTTP/1.1, connections are opened at the same time. */
static void connections_of_http1_do_not_wait_for_each_other(void **state)
{
    (void)world_of_a_loop(world_of(state));
    bide_tls_config *client = offering(bide_http2_protocols, false);
    open_server(state, client, only_http1, true);
    bide_event_init(&f.meeting, false);
    f.meets = true;
    get_all("https://server.test/x");
    for (int i = 0; i < GETS; i++)
        assert_int_equal(f.gets[i].status, 0);
    assert_int_equal(f.alone, 0);
    close_server(client);
}

/* An agent without HTTP/2 does not speak it, also if its config offers it. */
static void http2_has_to_be_switched_on(void **state)
{
    (void)world_of_a_loop(world_of(state));
    bide_tls_config *client = offering(bide_http2_protocols, false);
    open_server(state, client, bide_http2_protocols, false);
    assert_int_equal(get("https://server.test/x"), -EPROTONOSUPPORT);
    assert_int_equal(f.http.stats.requests, 0);
    close_server(client);
}

static void an_error_of_the_first_connection_is_shared(void **state)
{
    (void)world_of_a_loop(world_of(state));
    bide_tls_config *client = offering(bide_http2_protocols, false);
    open_server(state, client, bide_http2_protocols, true);
    get_all("https://elsewhere.test/x");
    for (int i = 0; i < GETS; i++) {
        assert_int_equal(f.gets[i].status, -EKEYREJECTED);
        assert_string_not_equal(f.gets[i].fetch.reason, "");
    }
    assert_in_range(f.server.stats.accepted, 1, GETS - 1); /* (one, if all began before it failed) */
    for (int i = 1; i < GETS; i++)
        assert_string_equal(f.gets[i].fetch.reason, f.gets[0].fetch.reason);
    assert_int_equal(get("https://server.test/x"), 0);
    assert_string_equal(f.fetch.reason, "");
    close_server(client);
}

/* The proxy says nothing. Requests that wait for the same connection do not each wait for a time of their own. */
static void a_timeout_of_the_first_connection_is_shared(void **state)
{
    (void)world_of_a_loop(world_of(state));
    bide_tls_config *client = offering(bide_http2_protocols, false);
    open_server_for(state, client, bide_http2_protocols, true,
                    (bide_http_agent_options){.connect_timeout = 100000000});
    f.is_silent = true;
    get_all("https://server.test/x");
    for (int i = 0; i < GETS; i++) {
        assert_int_equal(f.gets[i].status, -ETIMEDOUT);
        assert_string_equal(f.gets[i].fetch.reason, "");
    }
    assert_in_range(f.server.stats.accepted, 1, GETS - 1);
    f.is_silent = false;
    close_server(client);
}

static void a_connection_that_takes_no_more_is_replaced(void **state)
{
    (void)world_of_a_loop(world_of(state));
    bide_tls_config *client = offering(bide_http2_protocols, false);
    open_server(state, client, bide_http2_protocols, true);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(get("https://server.test/last"), 0);
        assert_string_equal(f.page, "hello");
        assert_true(f.fetch.is_http2);
    }
    assert_int_equal(f.http2.stats.streams, 3);
    assert_int_equal(f.server.stats.accepted, 3);
    close_server(client);
}

/* Its memory is released when it ends, not at the next request. */
static void a_connection_that_has_ended_is_released(void **state)
{
    bide_event_waiter wait;
    (void)world_of_a_loop(world_of(state));
    bide_tls_config *client = offering(bide_http2_protocols, false);
    open_server(state, client, bide_http2_protocols, false);
    use_http2_and_note();
    assert_int_equal(get("https://server.test/x"), 0);
    assert_true(f.fetch.is_http2);
    assert_false(bide_event_is_set(&f.destroyed));
    bide_http_server_shut_down(&f.http, BIDE_FOREVER); /* GOAWAY */
    assert_int_equal(world_wait(f.world, bide_event_wait(&wait, &f.destroyed)), 0);
    close_server(client);
}

/* A fetch that has not read its response keeps the memory that its texts are in. */
static void a_connection_that_has_ended_stays_for_its_fetch(void **state)
{
    (void)world_of_a_loop(world_of(state));
    bide_tls_config *client = offering(bide_http2_protocols, false);
    open_server(state, client, bide_http2_protocols, false);
    use_http2_and_note();
    assert_int_equal(bide_http_fetch_init(&f.fetch, f.agent, "GET", "https://server.test/x"), 0);
    assert_int_equal(world_wait(f.world, bide_http_fetch_send(&f.fetch)), 0);
    assert_int_equal(f.http2.stats.streams, 1);
    bide_http_server_shut_down(&f.http, BIDE_FOREVER);
    do { /* until the end of the body */
        assert_int_equal(world_wait(f.world, bide_http_fetch_read(&f.fetch, f.page, sizeof f.page)), 0);
    } while (f.fetch.count != 0);
    assert_false(bide_event_is_set(&f.destroyed));
    assert_int_equal(f.fetch.response.status, 200);
    assert_int_equal(bide_http_fetch_field(&f.fetch, "content-length").size, 1);
    bide_http_fetch_close(&f.fetch);
    close_server(client);
    assert_true(bide_event_is_set(&f.destroyed));
}

/* max_fields is of responses: a request has as many as there is room for, by either version. */
static void a_request_has_more_fields_than_a_response(void **state)
{
    enum { FIELDS = 200 };
    for (int version = 1; version <= 2; version++) {
        (void)world_of_a_loop(world_of(state));
        bide_tls_config *client = offering(version == 2 ? bide_http2_protocols : only_http1, false);
        open_server_for(state, client, version == 2 ? bide_http2_protocols : only_http1, true,
                        (bide_http_agent_options){.max_fields = 8});
        assert_int_equal(bide_http_fetch_init(&f.fetch, f.agent, "GET", "https://server.test/fields"), 0);
        for (int i = 0; i < FIELDS; i++)
            assert_int_equal(bide_http_fetch_add(&f.fetch, "n", "v"), 0);
        assert_int_equal(world_wait(f.world, bide_http_fetch_send(&f.fetch)), 0);
        assert_int_equal(f.fetch.response.status, 200);
        assert_int_equal(f.fetch.is_http2, version == 2);
        assert_int_equal(f.fields_seen, FIELDS);
        bide_http_fetch_close(&f.fetch);
        close_server(client);
    }
}

/* Bytes within the window come while nothing is read. */
static void a_window_is_as_large_as_asked_for(void **state)
{
    bide_event_waiter wait;
    bide_with_deadline_operation limited;
    static char body[4096];
    size_t size = 0;
    (void)world_of_a_loop(world_of(state));
    bide_tls_config *client = offering(bide_http2_protocols, false);
    open_server_for(state, client, bide_http2_protocols, true, (bide_http_agent_options){.http2_window = BIG});
    bide_event_init(&f.big_was_sent, false);
    assert_int_equal(bide_http_fetch_init(&f.fetch, f.agent, "GET", "https://server.test/big"), 0);
    assert_int_equal(world_wait(f.world, bide_http_fetch_send(&f.fetch)), 0);
    assert_int_equal(world_wait(f.world, bide_with_timeout(&limited, UINT64_C(30000000000),
                                                           bide_event_wait(&wait, &f.big_was_sent))), 0);
    do {
        assert_int_equal(world_wait(f.world, bide_http_fetch_read(&f.fetch, body, sizeof body)), 0);
        size += f.fetch.count;
    } while (f.fetch.count != 0);
    assert_int_equal(size, BIG);
    bide_http_fetch_close(&f.fetch);
    close_server(client);
}

static void keep_hint(bide_http_fetch *fetch)
{
    bide_slice link = bide_http_fetch_field(fetch, "link");
    assert_int_equal(fetch->response.status, 103);
    assert_int_equal(link.size, 8);
    assert_memory_equal(link.data, "</a.css>", 8);
    f.hints_seen++;
}

/* By either version: skipped or seen, and the same number of them is too many. */
static void interim_responses_are_as_with_http1(void **state)
{
    static const unsigned counts[] = {0, 1, 32, 33};
    for (int version = 1; version <= 2; version++) {
        (void)world_of_a_loop(world_of(state));
        bide_tls_config *client = offering(version == 2 ? bide_http2_protocols : only_http1, false);
        open_server_for(state, client, version == 2 ? bide_http2_protocols : only_http1, true,
                        (bide_http_agent_options){0});
        for (unsigned i = 0; i < 2 * sizeof counts / sizeof *counts; i++) {
            bool is_seen = i % 2 != 0;
            f.hints = counts[i / 2];
            f.hints_seen = 0;
            assert_int_equal(bide_http_fetch_init(&f.fetch, f.agent, "GET", "https://server.test/hints"), 0);
            f.fetch.on_informational = is_seen ? keep_hint : NULL;
            int status = world_wait(f.world, bide_http_fetch_send(&f.fetch));
            assert_int_equal(status, f.hints <= 32 ? 0 : -EBADMSG);
            assert_int_equal(f.hints_seen, !is_seen ? 0 : f.hints <= 32 ? f.hints : 32);
            assert_int_equal(f.fetch.response.status, status == 0 ? 200 : 0);
            assert_int_equal(f.fetch.is_http2, version == 2);
            bide_http_fetch_close(&f.fetch);
        }
        close_server(client);
    }
}

/* The server takes four requests on a connection: the others were not processed, and are sent again. */
static void what_was_not_processed_is_sent_again(void **state)
{
    (void)world_of_a_loop(world_of(state));
    bide_tls_config *client = offering(bide_http2_protocols, false);
    open_server(state, client, bide_http2_protocols, true);
    f.http.options.max_requests = 4;
    get_all("https://server.test/x");
    for (int i = 0; i < GETS; i++) {
        assert_int_equal(f.gets[i].status, 0);
        assert_string_equal(f.gets[i].page, "hello");
    }
    assert_int_equal(f.http.stats.requests, GETS);
    close_server(client);
}

/* As with HTTP/1.1: once, if the connection was used before, and the method may be repeated. */
static void a_connection_that_is_cut_is_replaced(void **state)
{
    (void)world_of_a_loop(world_of(state));
    bide_tls_config *client = offering(bide_http2_protocols, false);
    open_server(state, client, bide_http2_protocols, true);
    for (int is_post = 0; is_post < 2; is_post++) {
        assert_int_equal(get("https://server.test/x"), 0);
        f.cuts = 1;
        assert_int_equal(bide_http_fetch_init(&f.fetch, f.agent, is_post ? "POST" : "GET",
                                              "https://server.test/cut"), 0);
        int status = world_wait(f.world, bide_http_fetch_send(&f.fetch));
        bide_http_fetch_close(&f.fetch);
        assert_true(is_post ? status == -ECONNABORTED || status == -ECONNRESET || status == -EPIPE
                            : status == 0);
        assert_int_equal(f.server.stats.accepted, 2);
    }
    f.cuts = 1; /* the first request of a connection */
    assert_true(get("https://server.test/cut") < 0);
    assert_int_equal(f.server.stats.accepted, 3);
    close_server(client);
}

/*
 * A request that is as large as it may be, with all that the agent adds, under the smallest limits of a response; and limits
 * that are larger than those of a connection.
 */
static void requests_are_as_large_as_with_http1(void **state)
{
    enum { URL = BIDE_HTTP_FETCH_URL - 1, VALUE = BIDE_HTTP_FETCH_FIELDS - 3, COOKIE = 3071 };
    static const bide_http_agent_options limits[] = {
        {.max_head = 1, .max_fields = 1}, {.max_head = (1 << 24) + 1, .max_fields = (1 << 19) + 1}};
    static char url[URL + 1], value[VALUE + 1], cookie[COOKIE + 1];
    memset(stpcpy(url, "https://server.test/"), 'x', URL - 20);
    memset(value, 'x', VALUE);
    memset(stpcpy(cookie, "c="), 'x', COOKIE - 2);
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        bide_http_url parsed;
        bide_http_agent_options options = limits[i];
        (void)world_of_a_loop(world_of(state));
        bide_tls_config *client = offering(bide_http2_protocols, false);
        assert_int_equal(bide_http_cookies_create(&options.cookies, NULL), 0);
        assert_int_equal(bide_http_url_parse(&parsed, url, URL), 0);
        assert_int_equal(bide_http_cookies_set(options.cookies, &parsed, (bide_slice){cookie, COOKIE}), 0);
        open_server_for(state, client, bide_http2_protocols, true, options);
        assert_int_equal(bide_http_fetch_init(&f.fetch, f.agent, "POST", url), 0);
        assert_int_equal(bide_http_fetch_add(&f.fetch, "n", value), 0);
        assert_int_equal(bide_http_fetch_set_body(&f.fetch, "abc", 3), 0);
        assert_int_equal(world_wait(f.world, bide_http_fetch_send(&f.fetch)), 0);
        assert_int_equal(f.fetch.response.status, 200);
        assert_true(f.fetch.is_http2);
        bide_http_fetch_close(&f.fetch);
        close_server(client);
        bide_http_cookies_destroy(options.cookies);
    }
}

static void redirects_and_bodies_go_by_http2(void **state)
{
    (void)world_of_a_loop(world_of(state));
    bide_tls_config *client = offering(bide_http2_protocols, false);
    open_server(state, client, bide_http2_protocols, true);
    assert_int_equal(get("https://server.test/moved"), 0);
    assert_string_equal(f.page, "hello");
    assert_string_equal(f.fetch.url, "https://server.test/x");
    assert_int_equal(bide_http_fetch_init(&f.fetch, f.agent, "POST", "https://server.test/echo"), 0);
    assert_int_equal(bide_http_fetch_add(&f.fetch, "Content-Type", "text/plain"), 0);
    assert_int_equal(bide_http_fetch_set_body(&f.fetch, "abc", 3), 0);
    assert_int_equal(world_wait(f.world, bide_http_fetch_send(&f.fetch)), 0);
    assert_int_equal(f.fetch.response.length, 3);
    assert_int_equal(world_wait(f.world, bide_http_fetch_read(&f.fetch, f.page, sizeof f.page)), 0);
    assert_int_equal(f.fetch.count, 3);
    assert_memory_equal(f.page, "abc", 3);
    bide_http_fetch_close(&f.fetch);
    /* one that is closed at once resets its stream, not the connection */
    assert_int_equal(bide_http_fetch_init(&f.fetch, f.agent, "GET", "https://server.test/x"), 0);
    assert_int_equal(world_wait(f.world, bide_http_fetch_send(&f.fetch)), 0);
    bide_http_fetch_close(&f.fetch);
    assert_int_equal(get("https://server.test/x"), 0);
    assert_int_equal(f.server.stats.accepted, 1);
    close_server(client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        world_test(requests_share_a_connection_from_the_first_on),
        world_test(a_server_without_http2_is_asked_by_http1),
        world_test(connections_of_http1_do_not_wait_for_each_other),
        world_test(http2_has_to_be_switched_on),
        world_test(an_error_of_the_first_connection_is_shared),
        world_test(a_timeout_of_the_first_connection_is_shared),
        world_test(a_connection_that_takes_no_more_is_replaced),
        world_test(a_connection_that_has_ended_is_released),
        world_test(a_connection_that_has_ended_stays_for_its_fetch),
        world_test(a_request_has_more_fields_than_a_response),
        world_test(a_window_is_as_large_as_asked_for),
        world_test(interim_responses_are_as_with_http1),
        world_test(what_was_not_processed_is_sent_again),
        world_test(a_connection_that_is_cut_is_replaced),
        world_test(requests_are_as_large_as_with_http1),
        world_test(redirects_and_bodies_go_by_http2),
    };
    return cmocka_run_group_tests(tests, make_everyone, free_everyone);
}

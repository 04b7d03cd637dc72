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
static bide_event *never(void);
static bide_event *silent_began(void);
static bide_event *release_of_late(void);
static void note_field(bide_slice name);
static unsigned f_hints(void);
static void note_big(void);
static bool respond_of_table(bide_http_exchange *exchange, int *status);

static const char big[BIG];

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
    bide_task late; /* a write that waits until it is released */
    bide_stream_operation *late_operation;
    const void *late_data;
    size_t late_size;
    bide_stream_operation stream_operation; /* of requiring_body, as the next ones */
    char input[4096];
    size_t read, frame_left;
    unsigned char frame[9];
    size_t frame_size;
};

/* An exchange that is the same over both versions. */
struct row {
    const char *what;
    const char *method; /* NULL: GET */
    const char *body;   /* of the request; NULL: none */
    int status;         /* of the response */
    const char *const (*fields)[2]; /* of it, up to a NULL */
    unsigned pieces;    /* of 5 bytes, which are its body */
    int64_t length;     /* that is announced; -1: none */
    int ends_with;      /* the handler */
    bool is_silent;     /* it does not end */
    bide_http_agent_options options;
    const char *expected;
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
    bool is_silent;         /* the proxy, once it has read a request; the first time sets `silenced` */
    bide_event silenced;
    bide_tls_config *chosen; /* the server's for the next connections; NULL: `config` */
    const struct row *row; /* of the exchange that is compared */
    bool meets; /* connections behind the first wait for another one before their handshake */
    unsigned met, alone;
    unsigned fields_seen;
    unsigned hints, hints_seen; /* that are sent, and that came */
    bide_event meeting;
    bide_event big_was_sent;
    bool is_stalled; /* the server's first connection sends nothing more */
    bide_event never;
    bool requires_http1;    /* the server, which resets each request by HTTP/2, after `release` */
    unsigned required;      /* so often it has */
    const char *before;     /* the frames of responses of 1xx that come before the reset; their stream is 1 */
    size_t before_size;
    bool goes_away;         /* by a GOAWAY instead of a reset, which says that stream 1 was not processed */
    bool is_late; /* its writes wait for `release`, and the first one sets `late_began` */
    bide_event release, late_began;
    bide_event silent_began;
    bide_event destroyed; /* a connection of HTTP/2 was; of use_http2_and_note, as the next ones */
    const void *first;          /* HTTP/2 client */
    unsigned started_on_first;  /* requests */
    bool first_is_doubted;      /* the agent takes it so */
    void (*answered)(void *argument); /* to be called when it has answered */
    void *argument_of_answered;
    bool hears_nothing;         /* each connection is as if nothing had ever come */
    bool hears_now;             /* each connection is as if something had just come */
    bool is_patient;            /* each request is as if it waited for a stream */
    bide_event waited;          /* response_timeout has passed for a request that waits for a stream */
    unsigned cuts; /* so often the server ends a connection, instead of a response to "/cut" */
    struct get {
        bide_task task;
        bide_http_fetch fetch;
        bide_spawned spawned;
        const char *url;
        int status;
        char page[100];
    } gets[GETS], holder;
} f;

struct hello {
    bide_http_exchange exchange;
    char buffer[64];
    unsigned sent;
    int status;
    bide_sleep sleep;
    bide_event_waiter wait;
};

bide_coroutine(hello_body)
{
    bide_begin(hello_body, struct hello * self);
    if (respond_of_table(&self->exchange, &self->status)) {
        for (self->sent = 0; self->sent < f.row->pieces; self->sent++)
            bide_try(bide_http_write(&self->exchange, "hello", 5));
        if (f.row->pieces != 0 && f.row->ends_with < 0)
            bide_try(bide_http_flush(&self->exchange));
        if (f.row->is_silent)
            bide_try(bide_sleep_until(&self->sleep, BIDE_FOREVER));
        bide_return(self->status);
    } else if (bide_http_is(self->exchange.request.path, "/moved")) {
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
    } else if (bide_http_is(self->exchange.request.path, "/silent")) {
        bide_event_set(silent_began());
        bide_try(bide_event_wait(&self->wait, never()));
    } else if (bide_http_is(self->exchange.request.path, "/cut") && cut_connections()) {
        bide_return(-EPIPE);
    } else {
        if (bide_http_is(self->exchange.request.path, "/last"))
            bide_http_close_after(&self->exchange);
        bide_try(bide_http_respond(&self->exchange, "hello", 5));
    }
    bide_end();
}

static bide_event *never(void)
{
    return &f.never;
}

static bide_event *silent_began(void)
{
    return &f.silent_began;
}

static bide_event *release_of_late(void)
{
    return &f.release;
}

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

/* ---- A stream over TLS that may stall ---- */

static bide_stream below_of(bide_stream stream)
{
    return bide_tls_stream(&((struct peer *)stream.object)->tls);
}

static bide_awaiter *stalling_read(bide_stream stream, bide_stream_operation *operation, void *data, size_t size)
{
    return bide_stream_read(operation, below_of(stream), data, size);
}

bide_coroutine(late_write_body)
{
    bide_begin(late_write_body, bide_task * self);
    bide_try(bide_event_wait(&bide_container_of(self, struct peer, late)->wait, release_of_late()));
    struct peer *peer = bide_container_of(self, struct peer, late);
    bide_try(bide_stream_write(peer->late_operation, bide_tls_stream(&peer->tls), peer->late_data, peer->late_size));
    bide_end();
}

static bide_awaiter *stalling_write(bide_stream stream, bide_stream_operation *operation, const void *data, size_t size)
{
    struct peer *self = stream.object;
    if (f.is_stalled && self == &f.slots[0])
        return bide_event_wait(&self->wait, &f.never);
    if (f.is_late && self == &f.slots[0]) {
        bide_event_set(&f.late_began);
        self->late_operation = operation;
        self->late_data = data;
        self->late_size = size;
        return bide_task_init(&self->late, &late_write_body);
    }
    return bide_stream_write(operation, below_of(stream), data, size);
}

static size_t stalling_count(const bide_stream_operation *operation)
{
    return bide_stream_count(operation, bide_tls_stream(&f.slots[0].tls)); /* (the same of each) */
}

static bide_awaiter *stalling_end_output(bide_stream stream, bide_stream_operation *operation)
{
    return bide_stream_shutdown_output(operation, below_of(stream));
}

static int stalling_close(bide_stream stream)
{
    return bide_stream_close(below_of(stream));
}

static bide_stream stalling_stream(struct peer *peer)
{
    static const bide_stream_table table = {
        .name = "stalling",
        .read = stalling_read,
        .write = stalling_write,
        .count = stalling_count,
        .shutdown_output = stalling_end_output,
        .close = stalling_close,
    };
    return (bide_stream){&table, peer};
}

/* ---- A server that wants HTTP/1.1 ---- */

static bool requires_http1(const struct peer *self)
{
    const char *protocol = bide_tls_protocol(&self->tls);
    return f.requires_http1 && protocol != NULL && strcmp(protocol, "h2") == 0;
}

/* Parses what the client has sent. Puts a reset with HTTP_1_1_REQUIRED behind `text` for each head of a request. */
static void require_http1(struct peer *self, const unsigned char *data, size_t size)
{
    enum { PREFACE = 24, HEADERS = 1 };
    for (size_t i = 0; i < size; i++) {
        if (self->read++ < PREFACE)
            continue;
        if (self->frame_size < sizeof self->frame)
            self->frame[self->frame_size++] = data[i];
        else
            self->frame_left--;
        if (self->frame_size < sizeof self->frame)
            continue;
        const unsigned char *frame = self->frame;
        if (self->frame_left == SIZE_MAX)
            self->frame_left = (size_t)frame[0] << 16 | (size_t)frame[1] << 8 | frame[2];
        if (self->frame_left != 0)
            continue;
        if (frame[3] == HEADERS) {
            assert_true(self->size + f.before_size + 17 <= sizeof self->text);
            if (f.before_size != 0)
                memcpy(self->text + self->size, f.before, f.before_size);
            self->size += f.before_size;
            memcpy(self->text + self->size, f.goes_away ? "\0\0\10\7\0\0\0\0\0\0\0\0\0" : "\0\0\4\3\0\0\0\0\0", f.goes_away ? 13 : 9);
            if (!f.goes_away)
                memcpy(self->text + self->size + 5, frame + 5, 4);
            self->size += f.goes_away ? 13 : 9;
            memcpy(self->text + self->size, "\0\0\0\xd", 4);
            self->size += 4;
            f.required++;
            bide_event_set(&f.late_began);
        }
        self->frame_size = 0;
        self->frame_left = SIZE_MAX;
    }
}

bide_coroutine(requiring_body)
{
    bide_begin(requiring_body, bide_task * self);
#define PEER bide_container_of(self, struct peer, late)
    PEER->read = PEER->frame_size = 0;
    PEER->frame_left = SIZE_MAX;
    memcpy(PEER->text, "\0\0\0\4\0\0\0\0\0", 9); /* SETTINGS */
    PEER->size = 9;
    for (;;) {
        if (PEER->size != 0)
            bide_try(bide_stream_write(&PEER->stream_operation, bide_tls_stream(&PEER->tls), PEER->text, PEER->size));
        PEER->size = 0;
        bide_try(bide_stream_read(&PEER->stream_operation, bide_tls_stream(&PEER->tls), PEER->input, sizeof PEER->input));
        if (stalling_count(&PEER->stream_operation) == 0)
            break;
        require_http1(PEER, (const unsigned char *)PEER->input, stalling_count(&PEER->stream_operation));
        if (PEER->size != 0)
            bide_try(bide_event_wait(&PEER->wait, release_of_late()));
    }
#undef PEER
    bide_end();
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
        bide_event_set(&f.silenced);
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
    bide_try(bide_tls_accept(&self->handshake, &self->tls, f.chosen != NULL ? f.chosen : f.config,
                             bide_socket_stream(&self->connection.socket)));
    if (requires_http1(self)) {
        bide_await_status(self->status, bide_task_init(&self->late, &requiring_body));
        bide_return(0);
    }
    bide_await_status(self->status,
                      bide_http2_serve(&self->serving, &f.http2, stalling_stream(self),
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

static void open_server_with(void **state, bide_tls_config *client, const char *const *protocols, bool uses_http2,
                             bide_http_agent_options asking, uint32_t max_streams)
{
    static char proxy[64];
    bide_io_operation operation;
    bide_address address;
    bide_server_options options = {
        .body = &peer_body, .size = sizeof(struct peer), .max_connections = SLOTS, .slots = f.slots};
    bide_http_options serving = {
        .handler = {&hello_body, sizeof(struct hello)}, .read_buffer_size = 16384, .max_fields = 256,
        .body_idle_timeout = UINT64_C(600000000000)}; /* (a stalled connection stays, however slow this machine is) */
    memset(&f, 0, sizeof f);
    f.world = world_of(state);
    bide_event_init(&f.never, false);
    bide_event_init(&f.silent_began, false);
    bide_event_init(&f.silenced, false);
    bide_event_init(&f.release, false);
    bide_event_init(&f.late_began, false);
    f.config = offering(protocols, true);
    assert_int_equal(bide_http_server_init(&f.http, &serving), 0);
    assert_int_equal(bide_http2_init(&f.http2, &f.http, &(bide_http2_options){.max_streams = max_streams}), 0);
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

static void open_server_for(void **state, bide_tls_config *client, const char *const *protocols, bool uses_http2,
                            bide_http_agent_options asking)
{
    open_server_with(state, client, protocols, uses_http2, asking, 0);
}

static void destroy_and_note(void *client)
{
    bide_http_agent_http2_destroy_(client);
    bide_event_set(&f.destroyed);
}

static int open_and_note(void *client, bide_stream stream, const bide_http_agent_http2_options *options)
{
    if (f.first == NULL)
        f.first = client;
    return bide_http_agent_http2_open_(client, stream, options);
}

static int start_and_note(void *request, void *client, const char *method, const char *target, const char *authority)
{
    f.started_on_first += client == f.first;
    return bide_http_agent_http2_start_(request, client, method, target, authority);
}

static uint64_t started_at_or_wait(const void *request)
{
    uint64_t at = bide_http_agent_http2_started_at_(request);
    if (!f.is_patient)
        return at;
    if (at == BIDE_FOREVER)
        bide_event_set(&f.waited);
    return BIDE_FOREVER;
}

static bool is_doubted_or_told(const void *client)
{
    return (f.first_is_doubted && client == f.first) || bide_http_agent_http2_is_doubted_(client);
}

static uint64_t heard_at_or_told(const void *client)
{
    return f.hears_nothing ? 0 : f.hears_now ? bide_now(f.world->context) : bide_http_agent_http2_heard_at_(client);
}

static void set_answered_and_note(void *client, void (*called)(void *argument), void *argument)
{
    if (client == f.first) {
        f.answered = called;
        f.argument_of_answered = argument;
    }
    bide_http_agent_http2_set_answered_(client, called, argument);
}

/* HTTP/2 as bide_http_agent_use_http2 has it, with notes, and with answers that a test sets. */
static void use_http2_and_note(void)
{
    static const bide_http_agent_http2 table = {
        sizeof(bide_http2_client),         sizeof(bide_http_agent_http2_request_),
        &open_and_note,                    &bide_http_agent_http2_run_,
        &bide_http_agent_http2_is_usable_, &destroy_and_note,
        &start_and_note,                   &bide_http_agent_http2_add_,
        &bide_http_agent_http2_set_body_,  &bide_http_agent_http2_recv_,
        &bide_http_agent_http2_read_,      &bide_http_agent_http2_response_,
        &bide_http_agent_http2_count_,     &bide_http_agent_http2_close_,
        &bide_http_agent_http2_set_informational_, &started_at_or_wait,
        &bide_http_agent_http2_doubt_,     &is_doubted_or_told,
        &heard_at_or_told,                 &set_answered_and_note,
        &bide_http_agent_http2_finish_head_, &bide_http_agent_http2_write_,
        &bide_http_agent_http2_continue_,  &bide_http_agent_http2_continues_,
        &bide_http_agent_http2_trailer_,
    };
    bide_event_init(&f.destroyed, false);
    bide_event_init(&f.waited, false);
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
                    (bide_http_agent_options){.connect_timeout = 500000000});
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

static const char *const two_fields[][2] = {{"X-A", "1"}, {"X-B", "2"}, {"x-a", "3"}, {"X-Empty", ""}, {NULL, NULL}};
static const char *const cookies[][2] = {{"Set-Cookie", "a=b"}, {"Set-Cookie", "c=d"}, {NULL, NULL}};
static const char *const moved[][2] = {{"Location", "/x"}, {NULL, NULL}};
static char long_value[3000];
static const char *const long_fields[][2] = {{"X-Long", long_value}, {NULL, NULL}};
static const char *const many_fields[][2] = {{"a", ""}, {"b", ""}, {"c", ""}, {"d", ""}, {"e", ""}, {"f", ""},
                                             {"g", ""}, {"h", ""}, {"i", ""}, {"j", ""}, {NULL, NULL}};

static const struct row rows[] = {
    {.what = "a length", .status = 200, .pieces = 2, .length = 10, .expected = "200 10 | 10 0"},
    {.what = "no length", .status = 200, .pieces = 2, .length = -1, .expected = "200 ? | 10 0"},
    {.what = "an empty body", .status = 200, .length = 0, .expected = "200 0 | 0 0"},
    {.what = "HEAD", .method = "HEAD", .status = 200, .pieces = 2, .length = 10, .expected = "200 10 | 0 0"},
    {.what = "HEAD, no length", .method = "HEAD", .status = 200, .pieces = 2, .length = -1, .expected = "200 ? | 0 0"},
    {.what = "204", .status = 204, .length = 0, .expected = "204 0 | 0 0"},
    {.what = "304", .status = 304, .length = 0, .expected = "304 ? | 0 0"},
    {.what = "205", .status = 205, .length = 0, .expected = "205 0 | 0 0"},
    {.what = "404", .status = 404, .pieces = 1, .length = 5, .expected = "404 5 | 5 0"},
    {.what = "599", .status = 599, .pieces = 1, .length = 5, .expected = "599 5 | 5 0"},
    {.what = "POST", .method = "POST", .body = "abc", .status = 201, .pieces = 1, .length = 5, .expected = "201 5 | 5 0"},
    {.what = "an empty POST", .method = "POST", .body = "", .status = 201, .pieces = 1, .length = 5, .expected = "201 5 | 5 0"},
    {.what = "another method", .method = "PURGE", .status = 200, .pieces = 1, .length = 5, .expected = "200 5 | 5 0"},
    {.what = "fields", .status = 200, .fields = two_fields, .pieces = 1, .length = 5,
     .expected = "200 5 x-a=1 x-b=2 x-a=3 x-empty= | 5 0"},
    {.what = "fields twice", .status = 200, .fields = cookies, .length = 0,
     .expected = "200 0 set-cookie=a=b set-cookie=c=d | 0 0"},
    {.what = "a redirect", .status = 302, .fields = moved, .length = 0, .options = {.max_redirects = 2}, .expected = "-40"},
    {.what = "a redirect that is not followed", .status = 302, .fields = moved, .length = 0, .options = {.follows_none = true},
     .expected = "302 0 location=/x | 0 0"},
    {.what = "a body that is as long as it may be", .status = 200, .pieces = 2, .length = 10, .options = {.max_body = 10},
     .expected = "200 10 | 10 0"},
    {.what = "a length that is too large", .status = 200, .pieces = 2, .length = 10, .options = {.max_body = 9}, .expected = "-27"},
    {.what = "a body that is too long", .status = 200, .pieces = 2, .length = -1, .options = {.max_body = 9},
     .expected = "200 ? | ? -27"},
    {.what = "a head that is too long", .status = 200, .fields = long_fields, .length = 0, .options = {.max_head = 1024},
     .expected = "-90"},
    {.what = "too many fields", .status = 200, .fields = many_fields, .length = 0, .options = {.max_fields = 8}, .expected = "-90"},
    {.what = "no response", .status = 0, .is_silent = true, .options = {.response_timeout = 500000000}, .expected = "-110"},
    {.what = "an error of the handler", .status = 0, .ends_with = -ENOENT, .expected = "404 14 | 14 0"},
    {.what = "half a body", .status = 200, .pieces = 1, .length = 10, .ends_with = -EIO, .expected = "200 10 | ? torn"},
};

/* Starts the response of the row. Returns false if the request is for another test. */
static bool respond_of_table(bide_http_exchange *exchange, int *status)
{
    const struct row *row = f.row;
    if (row == NULL)
        return false;
    *status = row->ends_with;
    if (row->status == 0)
        return true;
    exchange->status = row->status;
    for (size_t i = 0; row->fields != NULL && row->fields[i][0] != NULL; i++)
        assert_int_equal(bide_http_add(exchange, row->fields[i][0], row->fields[i][1]), 0);
    if (row->length >= 0)
        assert_int_equal(bide_http_start_response(exchange, (uint64_t)row->length), 0);
    return true;
}

/* The fields of a connection, and of the server, are left out. */
static bool is_of_response(bide_slice name)
{
    static const char *const others[] = {"date", "server", "connection", "transfer-encoding", "content-length", "content-type",
                                         "keep-alive"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (bide_http_is(name, others[i]))
            return false;
    return true;
}

/* What the user sees of an exchange. */
static void exchange(const struct row *row, char *log, size_t room)
{
    static char body[100];
    size_t size = 0, at = 0;
    int status = bide_http_fetch_init(&f.fetch, f.agent, row->method != NULL ? row->method : "GET", "https://server.test/row");
    assert_int_equal(status, 0);
    if (row->body != NULL)
        assert_int_equal(bide_http_fetch_set_body(&f.fetch, row->body, strlen(row->body)), 0);
    status = world_wait(f.world, bide_http_fetch_send(&f.fetch));
    if (status < 0) {
        snprintf(log, room, "%d", status);
        assert_int_equal(f.fetch.response.status, 0);
    } else {
        const bide_http_response *response = &f.fetch.response;
        at += (size_t)snprintf(log, room, response->length == BIDE_HTTP_UNKNOWN ? "%d ?" : "%d %d", response->status,
                               (int)response->length);
        for (size_t i = 0; i < response->field_count; i++) {
            const bide_http_field *field = &response->fields[i];
            if (is_of_response(field->name))
                at += (size_t)snprintf(log + at, room - at, " %.*s=%.*s", (int)field->name.size, field->name.data,
                                       (int)field->value.size, field->value.data);
        }
        for (size_t i = 0; i < at; i++) /* (names are in lower case in HTTP/2) */
            if (log[i] >= 'A' && log[i] <= 'Z')
                log[i] = (char)(log[i] - 'A' + 'a');
        do {
            status = world_wait(f.world, bide_http_fetch_read(&f.fetch, body, sizeof body));
            size += f.fetch.count;
        } while (status == 0 && f.fetch.count != 0);
        if (status == 0)
            snprintf(log + at, room - at, " | %zu 0", size);
        else if (status == -ECONNABORTED || status == -ECONNRESET) /* (TLS ends, or the stream is reset) */
            snprintf(log + at, room - at, " | ? torn");
        else
            snprintf(log + at, room - at, " | ? %d", status);
    }
    bide_http_fetch_close(&f.fetch);
}

/* The same exchange, over each version: what the user sees is the same. */
static void an_exchange_looks_the_same_by_either_version(void **state)
{
    memset(long_value, 'x', sizeof long_value - 1);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        for (int version = 1; version <= 2; version++) {
            char log[8000];
            (void)world_of_a_loop(world_of(state));
            bide_tls_config *client = offering(version == 2 ? bide_http2_protocols : only_http1, false);
            open_server_for(state, client, version == 2 ? bide_http2_protocols : only_http1, true, rows[i].options);
            f.row = &rows[i];
            exchange(&rows[i], log, sizeof log);
            if (strcmp(log, rows[i].expected) != 0)
                fail_msg("%s, HTTP/%d: \"%s\", expected \"%s\"", rows[i].what, version, log, rows[i].expected);
            assert_int_equal(f.fetch.is_http2, version == 2);
            close_server(client);
        }
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
        {.max_head = 1, .max_fields = 8}, {.max_head = (1 << 24) + 1, .max_fields = (1 << 19) + 1}};
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

/* ---- Connections that do not answer ---- */

static void begin_big(void)
{
    assert_int_equal(bide_http_fetch_init(&f.fetch, f.agent, "GET", "https://server.test/big"), 0);
    assert_int_equal(world_wait(f.world, bide_http_fetch_send(&f.fetch)), 0);
    assert_int_equal(f.fetch.response.status, 200);
}

static void read_big(void)
{
    static char body[4096];
    size_t size = 0;
    do {
        assert_int_equal(world_wait(f.world, bide_http_fetch_read(&f.fetch, body, sizeof body)), 0);
        size += f.fetch.count;
    } while (f.fetch.count != 0);
    assert_int_equal(size, BIG);
    bide_http_fetch_close(&f.fetch);
}

static void yield_once(void)
{
    bide_sleep sleep;
    assert_int_equal(world_wait(f.world, bide_sleep_for(&sleep, 1)), 0);
}

/* Requests beside f.fetch. */
static void start_get(struct get *get, const char *url)
{
    memset(get->page, 0, sizeof get->page);
    get->url = url;
    get->status = 1;
    bide_spawn(&get->spawned, f.world->context, bide_task_init(&get->task, &get_body));
}

static int finish_get(struct get *get)
{
    bide_event_waiter wait;
    assert_int_equal(world_wait(f.world, bide_event_wait(&wait, &get->spawned.ended)), 0);
    return get->status;
}

static int get_within(const char *url, uint64_t timeout)
{
    bide_with_deadline_operation limited;
    struct get *get = &f.gets[0];
    return world_wait(f.world, bide_with_timeout(&limited, timeout,
                                                 bide_http_get(&get->fetch, f.agent, url, get->page, sizeof get->page)));
}

/* A request without a response, which is cancelled when it has waited for more than a second. */
static int get_in_vain(void)
{
    static bide_stop_source stop;
    static bide_context context;
    bide_event_waiter wait;
    bide_sleep sleep;
    struct get *get = &f.gets[0];
    bide_stop_source_init(&stop);
    context = *f.world->context;
    context.stop = &stop;
    get->url = "https://server.test/silent";
    bide_spawn(&get->spawned, &context, bide_task_init(&get->task, &get_body));
    assert_int_equal(world_wait(f.world, bide_event_wait(&wait, &f.silent_began)), 0);
    do /* (the answer to the client's settings may come after the request) */
        assert_int_equal(world_wait(f.world, bide_sleep_for(&sleep, UINT64_C(1100000000))), 0);
    while (bide_now(f.world->context) - bide_http_agent_http2_heard_at_(f.first) < UINT64_C(1000000000));
    f.hears_nothing = !f.hears_now; /* (after a halt of the machine something may come only now) */
    bide_stop_request(&stop);
    int status = finish_get(get);
    f.hears_nothing = false;
    return status;
}

/* As with HTTP/1.1: the connection ends with its request. */
static void a_connection_whose_only_request_has_timed_out_is_closed(void **state)
{
    for (int by_option = 0; by_option < 2; by_option++) {
        (void)world_of_a_loop(world_of(state));
        bide_tls_config *client = offering(bide_http2_protocols, false);
        open_server_for(state, client, bide_http2_protocols, false,
                        (bide_http_agent_options){.response_timeout = by_option ? 500000000 : 0});
        use_http2_and_note();
        f.hears_nothing = by_option; /* (also the answer to the client's settings, which may be late) */
        int status = by_option ? get("https://server.test/silent") : get_in_vain();
        assert_int_equal(status, by_option ? -ETIMEDOUT : -ECANCELED);
        assert_true(bide_event_is_set(&f.destroyed));
        close_server(client);
    }
}

/* A request that was just sent is cancelled: this says nothing about its connection. */
static void a_connection_whose_request_is_cancelled_at_once_is_kept(void **state)
{
    (void)world_of_a_loop(world_of(state));
    bide_tls_config *client = offering(bide_http2_protocols, false);
    open_server_for(state, client, bide_http2_protocols, false, (bide_http_agent_options){0});
    use_http2_and_note();
    assert_int_equal(get("https://server.test/x"), 0);
    begin_big();
    assert_int_equal(get_within("https://server.test/silent", 1), -ETIMEDOUT);
    start_get(&f.gets[1], "https://server.test/x");
    assert_int_equal(finish_get(&f.gets[1]), 0);
    assert_int_equal(f.server.stats.accepted, 1);
    bide_http_fetch_close(&f.fetch);
    close_server(client);
}

/* The connection is dead, and another request holds it. */
static void a_silent_connection_gets_no_new_requests(void **state)
{
    (void)world_of_a_loop(world_of(state));
    bide_tls_config *client = offering(bide_http2_protocols, false);
    open_server_for(state, client, bide_http2_protocols, false, (bide_http_agent_options){0});
    use_http2_and_note();
    begin_big();
    f.is_stalled = true;
    assert_int_equal(get_in_vain(), -ECANCELED);
    start_get(&f.gets[1], "https://server.test/x");
    assert_int_equal(finish_get(&f.gets[1]), 0);
    assert_string_equal(f.gets[1].page, "hello");
    assert_int_equal(f.server.stats.accepted, 2);
    bide_http_fetch_close(&f.fetch);
    close_server(client);
}

/* So is one on which the body of a response stops. */
static void a_connection_whose_body_stops_gets_no_new_requests(void **state)
{
    bide_with_deadline_operation limited;
    static char body[BIG];
    (void)world_of_a_loop(world_of(state));
    bide_tls_config *client = offering(bide_http2_protocols, false);
    open_server_for(state, client, bide_http2_protocols, false, (bide_http_agent_options){0});
    use_http2_and_note();
    begin_big();
    f.is_stalled = f.hears_nothing = true;
    int status;
    do
        status = world_wait(f.world, bide_with_timeout(&limited, 1500000000,
                                                       bide_http_fetch_read(&f.fetch, body, sizeof body)));
    while (status == 0 && f.fetch.count != 0);
    assert_int_equal(status, -ETIMEDOUT);
    assert_false(bide_event_is_set(&f.destroyed));
    bide_http_fetch_close(&f.fetch);
    assert_true(bide_event_is_set(&f.destroyed));
    close_server(client);
}

/* The server was slow with one request only. */
static void a_connection_that_answers_again_is_used_again(void **state)
{
    (void)world_of_a_loop(world_of(state));
    bide_tls_config *client = offering(bide_http2_protocols, false);
    open_server_for(state, client, bide_http2_protocols, false, (bide_http_agent_options){0});
    use_http2_and_note();
    begin_big();
    assert_int_equal(get_in_vain(), -ECANCELED);
    read_big();
    start_get(&f.gets[0], "https://server.test/x");
    assert_int_equal(finish_get(&f.gets[0]), 0);
    assert_int_equal(f.server.stats.accepted, 1);
    close_server(client);
}

/* There may be no other connection: a request waits until the first one answers, or has ended. */
static void a_request_waits_for_the_only_connection(void **state)
{
    (void)world_of_a_loop(world_of(state));
    bide_tls_config *client = offering(bide_http2_protocols, false);
    open_server_for(state, client, bide_http2_protocols, false, (bide_http_agent_options){.max_connections = 1});
    use_http2_and_note();
    begin_big();
    f.is_stalled = true;
    assert_int_equal(get_in_vain(), -ECANCELED);
    start_get(&f.gets[1], "https://server.test/x");
    assert_int_equal(get_within("https://server.test/x", 1100000000), -ETIMEDOUT); /* (it waited in line) */
    assert_int_equal(f.gets[1].status, 1);
    bide_close(&f.slots[0].connection.socket); /* the server crashes */
    assert_int_equal(finish_get(&f.gets[1]), 0);
    assert_string_equal(f.gets[1].page, "hello");
    assert_int_equal(f.server.stats.accepted, 2);
    bide_http_fetch_close(&f.fetch);
    close_server(client);
}

/* The server allows one stream, and a response that is not read holds it. */
static void a_wait_for_a_stream_has_no_limit(void **state)
{
    bide_event_waiter wait;
    bide_sleep sleep;
    (void)world_of_a_loop(world_of(state));
    bide_tls_config *client = offering(bide_http2_protocols, false);
    open_server_with(state, client, bide_http2_protocols, false, (bide_http_agent_options){.response_timeout = 100000000}, 1);
    use_http2_and_note();
    f.is_patient = true; /* (so these requests have no limit, however slow this machine is) */
    begin_big();
    start_get(&f.gets[0], "https://server.test/x");
    assert_int_equal(world_wait(f.world, bide_event_wait(&wait, &f.waited)), 0);
    assert_int_equal(f.gets[0].status, 1);
    read_big();
    assert_int_equal(finish_get(&f.gets[0]), 0);
    assert_string_equal(f.gets[0].page, "hello");
    /* and then the limit counts */
    begin_big();
    f.is_patient = false;
    start_get(&f.gets[0], "https://server.test/silent");
    assert_int_equal(world_wait(f.world, bide_sleep_for(&sleep, 1)), 0);
    read_big();
    assert_int_equal(finish_get(&f.gets[0]), -ETIMEDOUT);
    assert_int_equal(f.server.stats.accepted, 1);
    close_server(client);
}

/* A response that is not read, on a connection that is doubted until a test says otherwise. */
static void begin_on_a_doubted_connection(void **state, bide_tls_config *client, bide_http_agent_options options)
{
    open_server_for(state, client, bide_http2_protocols, false, options);
    use_http2_and_note();
    begin_big();
    f.first_is_doubted = true;
    f.started_on_first = 0;
}

/* The connection that is opened counts for max_connections, but it is no reason to wait for the silent one. */
static void a_connection_that_is_opened_replaces_a_silent_one(void **state)
{
    (void)world_of_a_loop(world_of(state));
    bide_tls_config *client = offering(bide_http2_protocols, false);
    begin_on_a_doubted_connection(state, client, (bide_http_agent_options){.max_connections = 2});
    start_get(&f.gets[0], "https://server.test/x");
    while (f.server.stats.accepted != 2) /* (the second request begins in the middle of the first one's connecting) */
        yield_once();
    start_get(&f.gets[1], "https://server.test/x");
    for (int i = 0; i < 2; i++) {
        assert_int_equal(finish_get(&f.gets[i]), 0);
        assert_string_equal(f.gets[i].page, "hello");
    }
    assert_int_equal(f.started_on_first, 0);
    assert_int_equal(f.server.stats.accepted, 2);
    f.first_is_doubted = false;
    read_big();
    close_server(client);
}

/* With all connections in doubt, requests wait in the line of one. */
static void silent_connections_are_not_more_than_allowed(void **state)
{
    (void)world_of_a_loop(world_of(state));
    bide_tls_config *client = offering(bide_http2_protocols, false);
    begin_on_a_doubted_connection(state, client, (bide_http_agent_options){.max_connections = 1});
    start_get(&f.gets[0], "https://server.test/x");
    assert_int_equal(finish_get(&f.gets[0]), 0);
    assert_int_equal(f.started_on_first, 1);
    assert_int_equal(f.server.stats.accepted, 1);
    f.first_is_doubted = false;
    read_big();
    close_server(client);
}

/* A silent connection answers while another one is opened in vain: requests use it, and the failure is not theirs. */
static void a_failure_to_connect_is_not_shared_if_a_connection_answers(void **state)
{
    (void)world_of_a_loop(world_of(state));
    bide_tls_config *client = offering(bide_http2_protocols, false);
    begin_on_a_doubted_connection(state, client, (bide_http_agent_options){0});
    f.is_silent = true; /* (the next connections' proxy) */
    for (int i = 0; i < GETS; i++)
        start_get(&f.gets[i], "https://server.test/x");
    while (f.server.stats.accepted != 2)
        yield_once();
    f.first_is_doubted = false;
    bide_close(&f.slots[1].connection.socket);
    for (int i = 0; i < GETS; i++) {
        assert_int_equal(finish_get(&f.gets[i]), 0);
        assert_string_equal(f.gets[i].page, "hello");
        assert_string_equal(f.gets[i].fetch.reason, "");
    }
    assert_int_equal(f.started_on_first, GETS);
    assert_int_equal(f.server.stats.accepted, 2);
    read_big();
    close_server(client);
}

/* Fails if it is not set in a minute. */
static void wait_for(bide_event *event)
{
    bide_with_deadline_operation limited;
    bide_event_waiter wait;
    assert_int_equal(world_wait(f.world, bide_with_timeout(&limited, UINT64_C(60000000000), bide_event_wait(&wait, event))), 0);
}

/* A silent connection answers its PING while another one is opened to a server that says nothing, without a time limit. */
static void requests_without_a_connection_use_one_that_answers_again(void **state)
{
    (void)world_of_a_loop(world_of(state));
    bide_tls_config *client = offering(bide_http2_protocols, false);
    open_server_for(state, client, bide_http2_protocols, false, (bide_http_agent_options){0});
    use_http2_and_note();
    assert_int_equal(get("https://server.test/x"), 0); /* (so the server's settings are not in flight) */
    f.is_late = true;
    start_get(&f.holder, "https://server.test/silent");
    wait_for(&f.silent_began);
    bide_http2_client *first = (bide_http2_client *)(uintptr_t)f.first;
    first->options.ping_timeout = BIDE_FOREVER;
    bide_http_agent_http2_doubt_(first);
    wait_for(&f.late_began); /* the PING's answer */
    assert_true(bide_http_agent_http2_is_doubted_(first));
    f.started_on_first = 0;
    f.is_silent = true; /* (the next connections' proxy) */
    for (int i = 0; i < GETS; i++)
        start_get(&f.gets[i], "https://server.test/x");
    while (f.server.stats.accepted != 2)
        yield_once();
    assert_true(bide_http_agent_http2_is_doubted_(first));
    assert_int_equal(f.started_on_first, 0);
    bide_event_set(&f.release);
    for (int i = 0; i < GETS; i++) {
        wait_for(&f.gets[i].spawned.ended);
        assert_int_equal(f.gets[i].status, 0);
        assert_string_equal(f.gets[i].page, "hello");
    }
    assert_false(bide_http_agent_http2_is_doubted_(first));
    assert_int_equal(f.started_on_first, GETS);
    assert_int_equal(f.server.stats.accepted, 2);
    assert_int_equal(f.holder.status, 1); /* (it has not ended) */
    bide_event_set(&f.never);
    assert_int_equal(finish_get(&f.holder), 0);
    close_server(client);
}

/* Servers behind one address may differ: a connection of HTTP/1.1 in between does not end the watch. */
static void a_connection_that_answers_is_used_beside_one_of_http1(void **state)
{
    (void)world_of_a_loop(world_of(state));
    bide_tls_config *client = offering(bide_http2_protocols, false), *old = offering(only_http1, true);
    open_server_for(state, client, bide_http2_protocols, false, (bide_http_agent_options){0});
    use_http2_and_note();
    begin_big();
    f.first_is_doubted = true;
    f.started_on_first = 0;
    f.chosen = old;
    start_get(&f.holder, "https://server.test/silent");
    wait_for(&f.silent_began);
    assert_false(f.holder.fetch.is_http2);
    f.is_silent = true; /* (the next connections' proxy) */
    for (int i = 0; i < 2; i++)
        start_get(&f.gets[i], "https://server.test/x");
    wait_for(&f.silenced);
    f.first_is_doubted = false;
    f.answered(f.argument_of_answered);
    for (int i = 0; i < 2; i++) {
        wait_for(&f.gets[i].spawned.ended);
        assert_int_equal(f.gets[i].status, 0);
        assert_string_equal(f.gets[i].page, "hello");
    }
    assert_int_equal(f.started_on_first, 2);
    bide_event_set(&f.never);
    assert_int_equal(finish_get(&f.holder), 0);
    read_big();
    close_server(client);
    bide_tls_config_release(old);
}

/* The only connection was of HTTP/1.1, and the next one is of HTTP/2: requests in the line for it share it. */
static void requests_in_line_for_http1_share_a_connection_of_http2(void **state)
{
    (void)world_of_a_loop(world_of(state));
    bide_tls_config *client = offering(bide_http2_protocols, false), *old = offering(only_http1, true);
    open_server_for(state, client, bide_http2_protocols, false, (bide_http_agent_options){.max_connections = 1});
    use_http2_and_note();
    f.chosen = old;
    begin_big();
    assert_false(f.fetch.is_http2);
    f.chosen = NULL;
    start_get(&f.holder, "https://server.test/silent");
    start_get(&f.gets[0], "https://server.test/x");
    yield_once();
    yield_once();
    assert_non_null(f.gets[0].fetch.origin); /* (both are in line) */
    bide_http_fetch_close(&f.fetch);
    wait_for(&f.silent_began);
    wait_for(&f.gets[0].spawned.ended);
    assert_int_equal(f.gets[0].status, 0);
    assert_true(f.gets[0].fetch.is_http2);
    assert_string_equal(f.gets[0].page, "hello");
    assert_int_equal(f.server.stats.accepted, 2);
    assert_int_equal(f.holder.status, 1); /* (it has not ended) */
    bide_event_set(&f.never);
    assert_int_equal(finish_get(&f.holder), 0);
    close_server(client);
    bide_tls_config_release(old);
}

/* A request that waits for a connection is cancelled as ever, and leaves nothing behind that an answer would find. */
static void a_request_that_has_left_is_not_woken_by_an_answer(void **state)
{
    static bide_stop_source stop;
    static bide_context context;
    (void)world_of_a_loop(world_of(state));
    bide_tls_config *client = offering(bide_http2_protocols, false);
    open_server_for(state, client, bide_http2_protocols, false, (bide_http_agent_options){0});
    use_http2_and_note();
    begin_big();
    f.first_is_doubted = true;
    f.started_on_first = 0;
    f.is_silent = true;
    start_get(&f.gets[1], "https://server.test/x"); /* has the turn */
    while (f.server.stats.accepted != 2)
        yield_once();
    bide_stop_source_init(&stop);
    context = *f.world->context;
    context.stop = &stop;
    f.gets[0].url = "https://server.test/x";
    bide_spawn(&f.gets[0].spawned, &context, bide_task_init(&f.gets[0].task, &get_body));
    while (!f.gets[0].fetch.choosing.is_watching) /* (then it waits for the turn) */
        yield_once();
    assert_false(f.gets[0].fetch.has_turn);
    bide_stop_request(&stop);
    assert_int_equal(finish_get(&f.gets[0]), -ECANCELED);
    memset(&f.gets[0].fetch, 0xa5, sizeof f.gets[0].fetch);
    f.first_is_doubted = false;
    f.answered(f.argument_of_answered);
    assert_int_equal(finish_get(&f.gets[1]), 0);
    assert_int_equal(f.started_on_first, 1);
    read_big();
    close_server(client);
}

/* ---- A server that wants HTTP/1.1 ---- */

static void open_server_that_requires_http1(void **state, bide_tls_config *client, bide_http_agent_options options)
{
    open_server_for(state, client, bide_http2_protocols, false, options);
    use_http2_and_note();
    f.requires_http1 = true;
}

static void a_server_that_requires_http1_gets_it(void **state)
{
    static char body[] = "ping";
    for (int is_alone = 0; is_alone < 2; is_alone++) {
        (void)world_of_a_loop(world_of(state));
        bide_tls_config *client = offering(bide_http2_protocols, false);
        open_server_that_requires_http1(state, client, (bide_http_agent_options){.max_connections = is_alone ? 1 : 0});
        bide_event_set(&f.release);
        assert_int_equal(bide_http_fetch_init(&f.fetch, f.agent, "POST", "https://server.test/echo"), 0);
        assert_int_equal(bide_http_fetch_set_body(&f.fetch, body, 4), 0);
        assert_int_equal(world_wait(f.world, bide_http_fetch_send(&f.fetch)), 0);
        assert_false(f.fetch.is_http2);
        assert_int_equal(world_wait(f.world, bide_http_fetch_read(&f.fetch, f.page, sizeof f.page)), 0);
        assert_int_equal(f.fetch.count, 4);
        assert_memory_equal(f.page, "ping", 4);
        assert_int_equal(world_wait(f.world, bide_http_fetch_read(&f.fetch, f.page, sizeof f.page)), 0);
        bide_http_fetch_close(&f.fetch);
        assert_int_equal(f.required, 1);
        assert_true(bide_event_is_set(&f.destroyed)); /* (its connection is free for others) */
        get_all("https://server.test/x"); /* HTTP/2 is not offered any more */
        for (int i = 0; i < GETS; i++) {
            assert_int_equal(f.gets[i].status, 0);
            assert_false(f.gets[i].fetch.is_http2);
            assert_string_equal(f.gets[i].page, "hello");
        }
        assert_int_equal(f.required, 1);
        assert_true(f.server.stats.accepted <= (is_alone ? 2 : 9));
        close_server(client);
    }
}

/* A request whose processing may have begun is sent again only if its method is idempotent. */
static void a_request_in_progress_is_not_repeated_by_http1(void **state)
{
#define INTERIM(status) "\0\0\5\1\4\0\0\0\1\10\3" status
    static const struct {
        const char *method, *before;
        size_t size;
        bool goes_away;
        int status;
    } rows_of_interim[] = {
        {"POST", "", 0, false, 0},
        {"POST", "", 0, true, 0},
        {"POST", INTERIM("100"), 14, false, 0},
        {"POST", INTERIM("102"), 14, false, -EPROTONOSUPPORT},
        {"POST", INTERIM("103"), 14, false, -EPROTONOSUPPORT},
        {"PATCH", INTERIM("103") INTERIM("100"), 28, false, -EPROTONOSUPPORT},
        {"PUT", INTERIM("102"), 14, false, 0},
        {"DELETE", INTERIM("100") INTERIM("103"), 28, false, 0},
    };
    static char body[] = "ping";
    for (size_t i = 0; i < sizeof rows_of_interim / sizeof *rows_of_interim; i++) {
        (void)world_of_a_loop(world_of(state));
        bide_tls_config *client = offering(bide_http2_protocols, false);
        open_server_that_requires_http1(state, client, (bide_http_agent_options){0});
        f.before = rows_of_interim[i].before;
        f.before_size = rows_of_interim[i].size;
        f.goes_away = rows_of_interim[i].goes_away;
        bide_event_set(&f.release);
        assert_int_equal(bide_http_fetch_init(&f.fetch, f.agent, rows_of_interim[i].method, "https://server.test/echo"), 0);
        assert_int_equal(bide_http_fetch_set_body(&f.fetch, body, 4), 0);
        assert_int_equal(world_wait(f.world, bide_http_fetch_send(&f.fetch)), rows_of_interim[i].status);
        assert_int_equal(f.http.stats.requests, rows_of_interim[i].status == 0);
        bide_http_fetch_close(&f.fetch);
        assert_int_equal(get("https://server.test/x"), 0); /* by HTTP/1.1 at once */
        assert_false(f.fetch.is_http2);
        assert_int_equal(f.required, 1);
        close_server(client);
    }
#undef INTERIM
}

/* The others learn of it too, each by its own reset, or while they wait for a connection. */
static void requests_that_wait_for_http2_use_http1_once_it_is_required(void **state)
{
    (void)world_of_a_loop(world_of(state));
    bide_tls_config *client = offering(bide_http2_protocols, false);
    open_server_that_requires_http1(state, client, (bide_http_agent_options){0});
    start_get(&f.gets[0], "https://server.test/x");
    wait_for(&f.late_began);
    f.first_is_doubted = true; /* so the next requests open a connection, */
    f.is_silent = true;        /* which does not answer */
    for (int i = 1; i < GETS; i++)
        start_get(&f.gets[i], "https://server.test/x");
    wait_for(&f.silenced);
    f.is_silent = false;
    bide_event_set(&f.release);
    for (int i = 0; i < GETS; i++) {
        wait_for(&f.gets[i].spawned.ended);
        assert_int_equal(f.gets[i].status, 0);
        assert_false(f.gets[i].fetch.is_http2);
        assert_string_equal(f.gets[i].page, "hello");
    }
    assert_int_equal(f.required, 1);
    close_server(client);
}

static void requests_of_a_connection_fall_back_each(void **state)
{
    (void)world_of_a_loop(world_of(state));
    bide_tls_config *client = offering(bide_http2_protocols, false);
    open_server_that_requires_http1(state, client, (bide_http_agent_options){0});
    bide_event_set(&f.release);
    get_all("https://server.test/x");
    for (int i = 0; i < GETS; i++) {
        assert_int_equal(f.gets[i].status, 0);
        assert_false(f.gets[i].fetch.is_http2);
        assert_string_equal(f.gets[i].page, "hello");
    }
    assert_in_range(f.required, 1, GETS);
    close_server(client);
}

/* A TLS that cannot offer HTTP/1.1 alone, for which the server would choose HTTP/2 again. */
static void without_a_way_to_offer_http1_a_request_for_it_fails(void **state)
{
    (void)world_of_a_loop(world_of(state));
    static const bide_http_agent_tls table = {
        sizeof(bide_http_agent_tls_),    &bide_http_agent_tls_connect_,  &bide_http_agent_tls_stream_,
        &bide_http_agent_tls_close_,     &bide_http_agent_tls_has_input_, &bide_http_agent_tls_protocol_,
        &bide_http_agent_tls_reason_,    NULL,
    };
    bide_tls_config *client = offering(bide_http2_protocols, false);
    open_server_that_requires_http1(state, client, (bide_http_agent_options){0});
    bide_http_agent_set_tls(f.agent, &table, client);
    bide_event_set(&f.release);
    assert_int_equal(get("https://server.test/x"), -EPROTONOSUPPORT);
    assert_int_equal(f.required, 1);
    assert_int_equal(f.server.stats.accepted, 1);
    close_server(client);
}

/* A caller whose config is without HTTP/1.1 does not get it, and HTTP/2 stays in use for other requests. */
static void http1_is_not_used_if_the_config_does_not_offer_it(void **state)
{
    static const char *const only_http2[] = {"h2", NULL};
    (void)world_of_a_loop(world_of(state));
    bide_tls_config *client = offering(only_http2, false);
    open_server_that_requires_http1(state, client, (bide_http_agent_options){0});
    bide_event_set(&f.release);
    for (unsigned i = 1; i <= 2; i++) {
        assert_int_equal(get("https://server.test/x"), -EPROTONOSUPPORT);
        assert_string_equal(f.fetch.reason, "the protocol to be offered is not one of the config's");
        assert_int_equal(f.required, i);
    }
    assert_int_equal(f.http.stats.requests, 0);
    f.requires_http1 = false;
    assert_int_equal(get("https://server.test/x"), 0);
    assert_true(f.fetch.is_http2);
    assert_string_equal(f.page, "hello");
    close_server(client);
}

/* A request that was cancelled late, beside others that have got bytes. */
static void a_connection_that_delivers_to_others_is_kept(void **state)
{
    (void)world_of_a_loop(world_of(state));
    bide_tls_config *client = offering(bide_http2_protocols, false);
    open_server_for(state, client, bide_http2_protocols, false, (bide_http_agent_options){0});
    use_http2_and_note();
    f.hears_now = true;
    assert_int_equal(get_in_vain(), -ECANCELED);
    assert_false(bide_event_is_set(&f.destroyed));
    uint64_t before = bide_http_agent_http2_heard_at_(f.first);
    start_get(&f.gets[1], "https://server.test/x");
    assert_int_equal(finish_get(&f.gets[1]), 0);
    assert_true(bide_http_agent_http2_heard_at_(f.first) > before);
    assert_int_equal(f.started_on_first, 2);
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
        world_test(an_exchange_looks_the_same_by_either_version),
        world_test(what_was_not_processed_is_sent_again),
        world_test(a_connection_that_is_cut_is_replaced),
        world_test(requests_are_as_large_as_with_http1),
        world_test(redirects_and_bodies_go_by_http2),
        world_test(a_connection_whose_only_request_has_timed_out_is_closed),
        world_test(a_connection_whose_request_is_cancelled_at_once_is_kept),
        world_test(a_silent_connection_gets_no_new_requests),
        world_test(a_connection_whose_body_stops_gets_no_new_requests),
        world_test(a_connection_that_answers_again_is_used_again),
        world_test(a_request_waits_for_the_only_connection),
        world_test(a_wait_for_a_stream_has_no_limit),
        world_test(a_connection_that_is_opened_replaces_a_silent_one),
        world_test(silent_connections_are_not_more_than_allowed),
        world_test(a_failure_to_connect_is_not_shared_if_a_connection_answers),
        world_test(requests_without_a_connection_use_one_that_answers_again),
        world_test(a_connection_that_answers_is_used_beside_one_of_http1),
        world_test(requests_in_line_for_http1_share_a_connection_of_http2),
        world_test(a_request_that_has_left_is_not_woken_by_an_answer),
        world_test(a_connection_that_delivers_to_others_is_kept),
        world_test(a_server_that_requires_http1_gets_it),
        world_test(a_request_in_progress_is_not_repeated_by_http1),
        world_test(requests_that_wait_for_http2_use_http1_once_it_is_required),
        world_test(requests_of_a_connection_fall_back_each),
        world_test(without_a_way_to_offer_http1_a_request_for_it_fails),
        world_test(http1_is_not_used_if_the_config_does_not_offer_it),
    };
    return cmocka_run_group_tests(tests, make_everyone, free_everyone);
}

/*
 * An HTTP/2 client over any stream, with a session of nghttp2; and a conversation between it and a server
 * in memory, under a test loop with virtual time. The server's handler is http_peer_body (http_peer.h),
 * as in the tests of HTTP/1.1.
 */
#ifndef BIDE_TESTS_IO_HTTP2_PEER_H
#define BIDE_TESTS_IO_HTTP2_PEER_H

#include "../http/http_peer.h"
#include "bide/http.h"

#include <bide/http2.h>
#include <nghttp2/nghttp2.h>

enum { ASKS = 256, ASK_FIELDS = 100 };

/* A request and its response. */
typedef struct ask {
    const char *method, *path;
    const char *body; /* NULL: none */
    size_t body_size;
    const char *const (*fields)[2]; /* up to a NULL; with `is_bare`, they replace the usual fields */
    bool is_bare;
    bool stops_midway; /* its body does not end */
    const char *trailer;
    unsigned times_window; /* the client's window is not opened. */

    int32_t id;
    size_t sent;
    int status;
    bool has_ended; /* the stream has ended */
    uint32_t code;  /* the stream was closed with this code */
    size_t size;
    bool is_spoilt;
    char answer[4096];
    char sum[16];       /* of the trailer x-sum */
    char type[64];      /* of content-type */
    size_t interim;
    char fields_seen[512];
} ask;

typedef struct client2 {
    bide_task task;
    bide_stream stream;
    nghttp2_session *session;
    ask *asks;
    size_t ask_count;
    size_t ended;
    const char *raw; /* sent after the session's first output; or, with `is_raw`, instead of it */
    size_t raw_size;
    bool is_raw;
    bool keeps;      /* keeps the connection open after the last response */
    uint32_t window; /* of streams; 0: the default */
    bool no_window;  /* never opened */
    size_t piece;
    const uint8_t *sizes; /* of the pieces, less 1, in turn, with a pause behind each; NULL: `piece` */
    size_t size_count, size_at;
    bool is_lenient; /* sends invalid messages */
    uint32_t goaway; /* code; UINT32_MAX: not received */
    char *copy;      /* gets all that is received, up to copy_max bytes; or NULL */
    size_t copy_size, copy_max;
    bool has_ended;

    struct client2_task {
        bide_task task;
        struct client2 *client;
        bide_branch branch;
        bide_stream_operation operation;
        bide_auto_event_waiter wait;
        const uint8_t *data;
        ssize_t left;
        int status;
        bool is_first;
        bide_sleep sleep;
    } reader, writer;
    bide_auto_event work;
    bide_scope scope;
    char buffer[4096];
} client2;

static inline ask *ask_of(nghttp2_session *session, int32_t id)
{
    return nghttp2_session_get_stream_user_data(session, id);
}

static inline ssize_t ask_body(nghttp2_session *session, int32_t id, uint8_t *buffer, size_t length, uint32_t *flags,
                               nghttp2_data_source *source, void *user)
{
    ask *ask = source->ptr;
    size_t left = ask->body_size - ask->sent;
    (void)user;
    if (left == 0 && ask->stops_midway)
        return NGHTTP2_ERR_DEFERRED;
    if (length > left)
        length = left;
    memcpy(buffer, ask->body + ask->sent, length);
    ask->sent += length;
    if (ask->sent == ask->body_size && !ask->stops_midway) {
        *flags |= NGHTTP2_DATA_FLAG_EOF;
        if (ask->trailer != NULL) {
            char name[] = "x-trailer";
            nghttp2_nv field = {(uint8_t *)name, (uint8_t *)(uintptr_t)ask->trailer, 9, strlen(ask->trailer), 0};
            *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
            assert_int_equal(nghttp2_submit_trailer(session, id, &field, 1), 0);
        }
    }
    return (ssize_t)length;
}

static inline int client2_on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                                    size_t name_size, const uint8_t *value, size_t size, uint8_t flags, void *user)
{
    ask *ask = ask_of(session, frame->hd.stream_id);
    char text[128] = "";
    (void)flags;
    (void)user;
    if (ask == NULL)
        return 0;
    memcpy(text, value, size < sizeof text - 1 ? size : sizeof text - 1);
    if (name_size == 7 && memcmp(name, ":status", 7) == 0) {
        ask->status = atoi(text);
        ask->interim += ask->status < 200;
    } else if (name_size == 5 && memcmp(name, "x-sum", 5) == 0) {
        snprintf(ask->sum, sizeof ask->sum, "%.15s", text);
    } else if (name_size == 12 && memcmp(name, "content-type", 12) == 0) {
        snprintf(ask->type, sizeof ask->type, "%.63s", text);
    }
    size_t used = strlen(ask->fields_seen);
    snprintf(ask->fields_seen + used, sizeof ask->fields_seen - used, "%.*s: %s\n", (int)name_size, (const char *)name, text);
    return 0;
}

static inline int client2_on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *data, size_t size,
                                  void *user)
{
    ask *ask = ask_of(session, id);
    client2 *client = user;
    (void)flags;
    if (ask == NULL)
        return 0;
    for (size_t i = 0; i < size; i++)
        if (ask->size + i < sizeof ask->answer - 1)
            ask->answer[ask->size + i] = (char)data[i];
    ask->size += size;
    if (!client->no_window)
        assert_int_equal(nghttp2_session_consume(session, id, size), 0);
    return 0;
}

static inline int client2_on_close(nghttp2_session *session, int32_t id, uint32_t code, void *user)
{
    client2 *client = user;
    ask *ask = ask_of(session, id);
    if (ask == NULL || ask->has_ended)
        return 0;
    ask->has_ended = true;
    ask->code = code;
    client->ended++;
    return 0;
}

static inline int client2_on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
    client2 *client = user;
    (void)session;
    if (frame->hd.type == NGHTTP2_GOAWAY)
        client->goaway = frame->goaway.error_code;
    return 0;
}

static inline nghttp2_nv field_pair(const char *name, const char *value)
{
    return (nghttp2_nv){(uint8_t *)(uintptr_t)name, (uint8_t *)(uintptr_t)value, strlen(name), strlen(value), 0};
}

static inline void client2_ask(client2 *client, ask *ask)
{
    nghttp2_nv fields[ASK_FIELDS];
    size_t count = 0;
    nghttp2_data_provider body = {.source = {.ptr = ask}, .read_callback = ask_body};
    if (!ask->is_bare) {
        fields[count++] = field_pair(":method", ask->method != NULL ? ask->method : ask->body != NULL ? "POST" : "GET");
        fields[count++] = field_pair(":scheme", "http");
        fields[count++] = field_pair(":authority", "example.org");
        fields[count++] = field_pair(":path", ask->path);
    }
    for (size_t i = 0; ask->fields != NULL && ask->fields[i][0] != NULL; i++)
        fields[count++] = field_pair(ask->fields[i][0], ask->fields[i][1]);
    ask->sent = ask->size = ask->interim = 0;
    ask->status = 0;
    ask->has_ended = ask->is_spoilt = false;
    ask->code = UINT32_MAX;
    memset(ask->answer, 0, sizeof ask->answer);
    memset(ask->sum, 0, sizeof ask->sum);
    memset(ask->type, 0, sizeof ask->type);
    memset(ask->fields_seen, 0, sizeof ask->fields_seen);
    ask->id = nghttp2_submit_request(client->session, NULL, fields, count, ask->body != NULL ? &body : NULL, ask);
    assert_true(ask->id > 0);
    bide_auto_event_set(&client->work);
}

static inline void client2_begin(client2 *client)
{
    nghttp2_session_callbacks *callbacks;
    nghttp2_option *option;
    nghttp2_settings_entry settings[] = {{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, client->window}};
    assert_int_equal(nghttp2_session_callbacks_new(&callbacks), 0);
    assert_int_equal(nghttp2_option_new(&option), 0);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, client2_on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, client2_on_data);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, client2_on_close);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, client2_on_frame);
    nghttp2_option_set_no_auto_window_update(option, 1);
    nghttp2_option_set_no_http_messaging(option, client->is_lenient);
    assert_int_equal(nghttp2_session_client_new2(&client->session, callbacks, client, option), 0);
    nghttp2_option_del(option);
    nghttp2_session_callbacks_del(callbacks);
    assert_int_equal(nghttp2_submit_settings(client->session, 0, settings,
                                             client->window != 0 || client->no_window ? 1 : 0), 0);
    client->ended = 0;
    client->goaway = UINT32_MAX;
    client->has_ended = false;
    bide_auto_event_init(&client->work, false);
    for (size_t i = 0; i < client->ask_count; i++)
        client2_ask(client, &client->asks[i]);
}

static inline ssize_t client2_next(struct client2_task *self)
{
    client2 *client = self->client;
    if (client->is_raw || (self->is_first && client->raw_size != 0)) {
        if (client->is_raw && !self->is_first)
            return 0;
        self->is_first = false;
        if (client->is_raw) {
            self->data = (const uint8_t *)client->raw;
            return (ssize_t)client->raw_size;
        }
        static uint8_t all[1 << 20]; /* the session's first output, and the raw bytes */
        size_t size = 0;
        const uint8_t *data;
        for (ssize_t some; (some = nghttp2_session_mem_send(client->session, &data)) > 0; size += (size_t)some)
            memcpy(all + size, data, (size_t)some);
        memcpy(all + size, client->raw, client->raw_size);
        self->data = all;
        return (ssize_t)(size + client->raw_size);
    }
    return nghttp2_session_mem_send(client->session, &self->data);
}

static inline size_t client2_piece(const struct client2_task *self)
{
    const client2 *client = self->client;
    size_t piece = client->sizes != NULL ? client->sizes[client->size_at] + (size_t)1 : client->piece;
    return piece != 0 && (size_t)self->left > piece ? piece : (size_t)self->left;
}

bide_coroutine(client2_write)
{
    bide_begin(client2_write, struct client2_task * self);
    self->is_first = true;
    self->client->size_at = 0;
    for (;;) {
        self->left = client2_next(self);
        if (self->left < 0)
            bide_return(-EIO);
        if (self->left == 0) {
            if (self->client->has_ended ||
                (!self->client->keeps && self->client->ended == self->client->ask_count))
                break;
            bide_try(bide_auto_event_wait(&self->wait, &self->client->work));
            continue;
        }
        while (self->left != 0) {
            bide_await_status(self->status, bide_stream_write(&self->operation, self->client->stream, self->data,
                                                              client2_piece(self)));
            size_t size = bide_stream_count(&self->operation, self->client->stream);
            self->data += size;
            self->left -= (ssize_t)size;
            if (self->status < 0)
                bide_return(0);
            if (self->client->sizes != NULL) {
                self->client->size_at = (self->client->size_at + 1) % self->client->size_count;
                bide_await(bide_sleep_for(&self->sleep, 1));
            }
        }
    }
    bide_try(bide_stream_shutdown_output(&self->operation, self->client->stream));
    bide_end();
}

bide_coroutine(client2_read)
{
    bide_begin(client2_read, struct client2_task * self);
    for (;;) {
        bide_await_status(self->status, bide_stream_read(&self->operation, self->client->stream, self->client->buffer,
                                                         sizeof self->client->buffer));
        size_t size = bide_stream_count(&self->operation, self->client->stream);
        if (self->status < 0 || size == 0)
            break;
        for (size_t i = 0; i < size && self->client->copy_size < self->client->copy_max; i++)
            self->client->copy[self->client->copy_size++] = self->client->buffer[i];
        if (nghttp2_session_mem_recv(self->client->session, (const uint8_t *)self->client->buffer, size) < 0 &&
            !self->client->is_raw)
            break;
        bide_auto_event_set(&self->client->work);
    }
    self->client->has_ended = true;
    bide_auto_event_set(&self->client->work);
    bide_end();
}

/* Sends requests and receives until all have ended, or the server has closed the connection. */
bide_coroutine(client2_body)
{
    bide_begin(client2_body, client2 * self);
    self->reader.client = self->writer.client = self;
    bide_scope_init(&self->scope, bide_this_frame());
    bide_scope_spawn(&self->scope, &self->reader.branch, bide_task_init(&self->reader.task, &client2_read));
    bide_scope_spawn(&self->scope, &self->writer.branch, bide_task_init(&self->writer.task, &client2_write));
    bide_try(bide_scope_join(&self->scope));
    bide_finally();
    bide_scope_destroy(&self->scope);
    bide_end();
}

/* ---- A conversation in memory ---- */

typedef struct talk2 {
    bide_sim_loop loop;
    bide_sim_record_ record;
    uint64_t seed;
    bide_http_server server;
    bide_http2 http2;
    bide_http_connection connection;
    bide_memory_pipe to_server, from_server;
    bide_memory_end server_end, client_end;
    char to_memory[PEER_PIPE], from_memory[PEER_PIPE];
    char *memory;
    const char *protocol;
    client2 client;
    ask asks[ASKS];

    /* after this many turns; 0: never */
    unsigned stop_after, vanish_after, reset_after, destroy_after;
    uint64_t drain_at;
    uint64_t window_at; /* when the first stream's window is opened */
    bide_stop_source stop;
    bide_with_stop_operation stopping;
    bide_spawned serving_spawned;
    uint64_t began, took;
    int status;
    bool has_ended;
    struct talk2_task {
        bide_task task;
        struct talk2 *talk;
        bide_branch branch;
        bide_sleep sleep;
        unsigned i;
    } main, serving, acting;
    bide_branch client_branch;
    bide_scope scope;
    bide_scope serving_scope;
} talk2;

bide_coroutine(talk2_serve)
{
    bide_begin(talk2_serve, struct talk2_task * self);
    bide_await_status(self->talk->status,
                      bide_with_stop(&self->talk->stopping, &self->talk->stop,
                                     bide_http2_serve(&self->talk->connection, &self->talk->http2,
                                                      bide_memory_stream(&self->talk->server_end), self->talk->memory,
                                                      self->talk->protocol)));
    self->talk->has_ended = true;
    self->talk->took = bide_now(bide_this_context()) - self->talk->began;
    bide_finally();
    bide_memory_pipe_destroy(&self->talk->from_server);
    bide_memory_pipe_reject(&self->talk->to_server);
    bide_end();
}

/* Interferes with the connection. */
bide_coroutine(talk2_act)
{
    bide_begin(talk2_act, struct talk2_task * self);
    for (self->i = 0; self->i < self->talk->stop_after + self->talk->vanish_after + self->talk->reset_after +
                                    self->talk->destroy_after; self->i++)
        bide_await(bide_sleep_for(&self->sleep, 0));
    if (self->talk->drain_at != 0) {
        bide_await(bide_sleep_for(&self->sleep, self->talk->drain_at));
        bide_http_server_shut_down(&self->talk->server, BIDE_FOREVER);
    }
    if (self->talk->window_at != 0) {
        bide_await(bide_sleep_for(&self->sleep, self->talk->window_at));
        nghttp2_submit_window_update(self->talk->client.session, 0, self->talk->asks[0].id, 65535);
    }
    if (self->talk->stop_after != 0)
        bide_stop_request(&self->talk->stop);
    if (self->talk->vanish_after != 0) {
        bide_memory_pipe_destroy(&self->talk->to_server);
        bide_memory_pipe_reject(&self->talk->from_server);
    }
    if (self->talk->destroy_after != 0) {
        bide_scope_destroy(&self->talk->serving_scope);
        bide_memory_pipe_destroy(&self->talk->from_server); /* (the server may not have started) */
        bide_memory_pipe_reject(&self->talk->to_server);
    }
    for (unsigned i = 0; self->talk->reset_after != 0 && i < self->talk->client.ask_count; i++)
        nghttp2_submit_rst_stream(self->talk->client.session, 0, self->talk->asks[i].id, NGHTTP2_CANCEL);
    bide_auto_event_set(&self->talk->client.work);
    bide_end();
}

bide_coroutine(talk2_main)
{
    bide_begin(talk2_main, struct talk2_task * self);
    self->talk->began = bide_now(bide_this_context());
    bide_scope_init(&self->talk->serving_scope, bide_this_frame());
    bide_scope_init(&self->talk->scope, bide_this_frame());
    bide_scope_spawn(&self->talk->serving_scope, &self->talk->serving.branch,
                     bide_task_init(&self->talk->serving.task, &talk2_serve));
    bide_scope_spawn(&self->talk->scope, &self->talk->client_branch,
                     bide_task_init(&self->talk->client.task, &client2_body));
    bide_scope_spawn(&self->talk->scope, &self->talk->acting.branch,
                     bide_task_init(&self->talk->acting.task, &talk2_act));
    bide_await(bide_scope_join(&self->talk->scope));
    if (self->talk->destroy_after == 0)
        bide_await(bide_scope_join(&self->talk->serving_scope));
    bide_finally();
    bide_scope_destroy(&self->talk->scope);
    bide_scope_destroy(&self->talk->serving_scope);
    bide_end();
}

static inline void talk2_init_with(talk2 *talk, const bide_http_options *given, const bide_http2_options *given2)
{
    bide_http_options options = given != NULL ? *given : (bide_http_options){.read_buffer_size = 0};
    if (options.handler.body == NULL && options.select_handler == NULL)
        options.handler = (bide_http_handler){&http_peer_body, sizeof(struct peer_handler)};
    options.clock = peer_clock;
    memset(talk, 0, sizeof *talk);
    talk->protocol = "h2";
    assert_int_equal(bide_http_server_init(&talk->server, &options), 0);
    assert_int_equal(bide_http2_init(&talk->http2, &talk->server, given2), 0);
    talk->memory = malloc(bide_http_memory_size(&talk->server));
    assert_non_null(talk->memory);
    talk->client.asks = talk->asks;
}

static inline void talk2_init(talk2 *talk)
{
    talk2_init_with(talk, NULL, NULL);
}

static inline void talk2_end(talk2 *talk)
{
    free(talk->memory);
}

/*
 * Runs the conversation. Checks that the server has released everything. Returns the status of its
 * connection.
 */
static inline int talk2_run(talk2 *talk)
{
    memset(&handled, 0, sizeof handled);
    bide_sim_loop_init(&talk->loop, talk->seed);
    if (talk->seed == 0) {
        static const uint16_t plain = 0;
        talk->record = (bide_sim_record_){.given = &plain};
        talk->loop.record = &talk->record;
    }
    bide_memory_pipe_init(&talk->to_server, talk->to_memory, PEER_PIPE);
    bide_memory_pipe_init(&talk->from_server, talk->from_memory, PEER_PIPE);
    talk->server_end = (bide_memory_end){&talk->to_server, &talk->from_server};
    talk->client_end = (bide_memory_end){&talk->from_server, &talk->to_server};
    talk->client.stream = bide_memory_stream(&talk->client_end);
    talk->main.talk = talk->serving.talk = talk->acting.talk = talk;
    talk->has_ended = false;
    talk->server.is_draining = false;
    bide_stop_source_init(&talk->stop);
    client2_begin(&talk->client);
    int status = bide_sim_loop_wait(&talk->loop, bide_task_init(&talk->main.task, &talk2_main));
    nghttp2_session_del(talk->client.session);
    assert_int_equal(status, 0);
    assert_true(talk->has_ended || talk->destroy_after != 0);
    assert_int_equal(handled.begun, handled.ended);
    assert_int_equal(talk->http2.stats.memory, 0);
    assert_int_equal(talk->http2.stats.live, 0);
    assert_int_equal(talk->server.stats.live, 0);
    return talk->status;
}

/* Adds a request. */
static inline ask *talk2_ask(talk2 *talk, const char *path)
{
    assert_true(talk->client.ask_count < ASKS);
    ask *ask = &talk->asks[talk->client.ask_count++];
    memset(ask, 0, sizeof *ask);
    ask->path = path;
    return ask;
}

static inline ask *talk2_post(talk2 *talk, const char *path, const char *body, size_t size)
{
    ask *ask = talk2_ask(talk, path);
    ask->body = body;
    ask->body_size = size;
    return ask;
}

#endif

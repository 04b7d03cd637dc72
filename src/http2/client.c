/*
 * Connections of the HTTP/2 client.
 *
 *     runner     the coroutine of bide_http2_client_run: runs the next three; after them, ends the requests
 *     reader     reads and feeds nghttp2, whose callbacks fill requests (client_session.c)
 *     writer     submits requests that wait for a stream, and sends the output of nghttp2
 *     watcher    sends PINGs, and ends a connection that is silent or idle
 *
 * Threads: everything runs on the loop's thread.
 *
 * Why it is correct:
 * 1. One coroutine at a time uses nghttp2: all run on one thread, and none waits inside its calls.
 *    The callbacks only change requests and set events.
 * 2. A request ends once: it leaves the list that it is in, and only requests in a list end. When the runner
 *    has ended, both lists are empty, and no request enters one any more.
 * 3. The runner's coroutines end with an error when the connection has ended, which stops the others.
 *    HTTP2_CLIENT_ENDED marks an end that is not an error.
 * 4. A request has a stream only if the server allows it (SETTINGS_MAX_CONCURRENT_STREAMS) and
 *    max_streams does. The others wait in the order in which their heads ended. The writer submits them before
 *    it asks nghttp2 for output, so nghttp2 sends what is submitted at once. None is submitted while the
 *    connection is doubted: the watcher sends a PING then, and received bytes, or the end, end the doubt.
 * 5. After an error of the protocol the reader stops, and requests end at once. The writer still sends the GOAWAY,
 *    for a second at most.
 * 6. The bytes that are written are in `output`, which lives until the client is destroyed.
 */
#include "client.h"

#include "../http/watch.h"

#include "bide/coroutine.h"
#include "bide/platform.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { HTTP2_CLIENT_ENDED = -ESHUTDOWN }; /* 3 */

/* ---- Lists ---- */

void bide_http2_requests_add_(bide_http2_requests_ *list, bide_http2_request *request)
{
    request->next = NULL;
    request->previous = list->last;
    if (list->last != NULL)
        list->last->next = request;
    else
        list->first = request;
    list->last = request;
    list->count++;
    list->extended += request->is_extended;
}

void bide_http2_requests_remove_(bide_http2_requests_ *list, bide_http2_request *request)
{
    bide_assert(list->count != 0);
    if (request->previous != NULL)
        request->previous->next = request->next;
    else
        list->first = request->next;
    if (request->next != NULL)
        request->next->previous = request->previous;
    else
        list->last = request->previous;
    request->next = request->previous = NULL;
    list->count--;
    list->extended -= request->is_extended;
}

/* 2 */
static void http2_client_end_requests(bide_http2_client *client, int error)
{
    while (client->waiting.first != NULL)
        bide_http2_request_end_(client->waiting.first, client->refusal);
    while (client->active.first != NULL) {
        bide_http2_request *request = client->active.first;
        (void)nghttp2_session_set_stream_user_data(client->session, request->id, NULL);
        if (!request->is_sent)
            bide_http2_request_end_(request, client->refusal);
        else if (error < 0)
            bide_http2_request_end_(request, error);
        else
            bide_http2_request_end_(request, request->has_response ? -ENODATA : -EPIPE);
    }
}

void bide_http2_client_go_away_(bide_http2_client *client)
{
    client->is_going_away = true;
    client->refuses = true;
    while (client->waiting.first != NULL)
        bide_http2_request_end_(client->waiting.first, client->refusal);
    bide_auto_event_set(&client->output_needed);
}

void bide_http2_client_fail_(bide_http2_client *client, int error)
{
    if (client->error == 0)
        client->error = error;
    bide_auto_event_set(&client->output_needed);
    bide_auto_event_set(&client->nudge);
}

/* ---- The writer ---- */

/* Copies output of nghttp2. The part that does not fit stays pending. */
static void http2_client_output_put(bide_http2_client *client, const uint8_t *data, size_t size)
{
    size_t room = HTTP2_OUTPUT - client->output_size;
    size_t count = size < room ? size : room;
    memcpy(client->output + client->output_size, data, count);
    client->output_size += count;
    client->pending = data + count;
    client->pending_size = size - count;
}

/* The last request is closed. (Servers take no request behind a GOAWAY.) */
static void http2_client_take_leave(bide_http2_client *client)
{
    if (!client->refuses)
        bide_http2_client_note_(client, nghttp2_submit_goaway(client->session, NGHTTP2_FLAG_NONE, 0,
                                                              NGHTTP2_NO_ERROR, NULL, 0));
    client->refuses = true;
}

/* Gathers output. Returns 0 or a negative errno. */
static int http2_client_output_gather(bide_http2_client *client, const bide_context *context)
{
    if (client->error == 0)
        bide_http2_client_start_waiting_(client, context); /* 4 */
    if (client->is_going_away && client->open == 0)
        http2_client_take_leave(client);
    while (HTTP2_OUTPUT - client->output_size >= HTTP2_FRAME) {
        const uint8_t *data = client->pending;
        ssize_t size = client->pending_size != 0 ? (ssize_t)client->pending_size
                                                 : nghttp2_session_mem_send(client->session, &data);
        if (size < 0)
            return bide_http2_errno_((int)size);
        if (size == 0)
            break;
        http2_client_output_put(client, data, (size_t)size);
    }
    return 0;
}

/* All output was sent. Returns 0, or why the connection has ended. */
static int http2_client_output_status(const bide_http2_client *client)
{
    if (client->error != 0)
        return client->error;
    return (client->is_going_away && client->open == 0) ||
                   (client->refuses && client->active.count == 0)
               ? HTTP2_CLIENT_ENDED
               : 0;
}

bide_coroutine(http2_client_writer_body)
{
    bide_begin(http2_client_writer_body, bide_http2_client_task_ * self);
    for (;;) {
        self->status = http2_client_output_gather(self->client, bide_this_context());
        if (self->status == 0 && self->client->output_size == 0)
            self->status = http2_client_output_status(self->client);
        if (self->status < 0)
            bide_return(self->status);
        if (self->client->output_size == 0) {
            bide_try(bide_auto_event_wait(&self->wait, &self->client->output_needed));
            continue;
        }
        bide_try(bide_stream_write(&self->operation, self->client->stream, self->client->output,
                                   self->client->output_size));
        self->client->output_size = 0;
    }
    bide_end();
}

/* ---- The reader ---- */

/* The watcher may be waiting for the PING's deadline, which is too late for the next PING. */
static void http2_client_end_ping(bide_http2_client *client)
{
    if (client->ping_deadline == BIDE_FOREVER)
        return;
    client->ping_deadline = BIDE_FOREVER;
    bide_auto_event_set(&client->nudge);
}

static int http2_client_input_feed(bide_http2_client *client, size_t size)
{
    ssize_t taken = nghttp2_session_mem_recv(client->session, (const uint8_t *)client->input, size);
    bide_auto_event_set(&client->output_needed);
    if (taken < 0) /* (what came is to blame for all others, such as too many continuations) */
        return taken == NGHTTP2_ERR_NOMEM ? -ENOMEM : -EBADMSG;
    bide_http2_client_charge_frames_(client, (const unsigned char *)client->input, size);
    return 0;
}

/*
 * Takes bytes that have arrived. They end a doubt; that is reported after all of them are taken, as a GOAWAY may be
 * among them.
 */
static int http2_client_input_take(bide_http2_client *client, size_t size, uint64_t now)
{
    bool was_doubted = client->is_doubted;
    client->input_at = now;
    client->is_doubted = false;
    if (client->error == 0) /* (otherwise the deadline is the end's) */
        http2_client_end_ping(client);
    int status = http2_client_input_feed(client, size);
    if (status == 0 && was_doubted && client->on_answer != NULL &&
        bide_http2_client_is_usable(client))
        client->on_answer(client->on_answer_argument);
    return status;
}

bide_coroutine(http2_client_reader_body)
{
    bide_begin(http2_client_reader_body, bide_http2_client_task_ * self);
    for (;;) {
        bide_try(bide_stream_read(&self->operation, self->client->stream, self->client->input,
                                  HTTP2_CLIENT_INPUT));
        size_t size = bide_stream_count(&self->operation, self->client->stream);
        if (size == 0)
            break;
        self->status = http2_client_input_take(self->client, size, bide_now(bide_this_context()));
        if (self->status < 0)
            bide_return(self->status);
        if (self->client->error != 0) /* 5 */
            bide_return(0);
    }
    bide_return(self->client->active.count == 0 ? HTTP2_CLIENT_ENDED : -ENODATA);
    bide_end();
}

/* ---- The watcher ---- */

static uint64_t http2_client_ping_at(const bide_http2_client *client)
{
    if (client->ping_deadline != BIDE_FOREVER)
        return client->ping_deadline;
    return client->is_doubted ? 0 : http_later(client->input_at, client->options.ping_after);
}

/* A PING is under way until bytes arrive, also if they have no limit: BIDE_FOREVER would be that there is none. */
static uint64_t http2_client_pong_until(const bide_http2_client *client, uint64_t now)
{
    uint64_t until = http_later(now, client->options.ping_timeout);
    return until < BIDE_FOREVER ? until : BIDE_FOREVER - 1;
}

/*
 * A PING's deadline has passed. The input may lie in the socket, for instance after the process was halted: the reader
 * gets a moment for it. If the process was halted in that moment too, the reader gets another one, some times. Returns 0
 * or, if no moment is left, -ETIMEDOUT.
 */
static int http2_client_look_again(bide_http2_client *client, uint64_t now)
{
    enum { MOMENT = 100000000, LOOKS = 10 };
    bool was_halted = now - client->ping_deadline >= MOMENT;
    if (client->looks == LOOKS || (client->looks != 0 && !was_halted))
        return -ETIMEDOUT;
    client->looks++;
    client->ping_deadline = http_later(now, MOMENT);
    return 0;
}

static void http2_client_ping(bide_http2_client *client, uint64_t now)
{
    client->ping_deadline = http2_client_pong_until(client, now);
    client->looks = 0;
    client->awaited_pongs++;
    bide_http2_client_note_(client, nghttp2_submit_ping(client->session, NGHTTP2_FLAG_NONE, NULL));
}

/* 5 */
static void http2_client_start_end(bide_http2_client *client, uint64_t now)
{
    enum { LINGER = 1000000000 };
    if (client->is_ending)
        return;
    client->is_ending = true;
    client->ping_deadline = http_later(now, LINGER);
    bide_http2_client_go_away_(client);
    http2_client_end_requests(client, client->error);
}

/* Does what is due. Returns 0 or why the connection ends; *next becomes the next time. */
static int http2_client_watch(bide_http2_client *client, uint64_t now, uint64_t *next)
{
    if (client->error != 0)
        http2_client_start_end(client, now);
    if (client->open == 0 && client->idle_since == BIDE_FOREVER)
        client->idle_since = now;
    if (http2_client_ping_at(client) <= now) {
        if (client->error != 0)
            return client->error;
        if (client->ping_deadline == BIDE_FOREVER)
            http2_client_ping(client, now);
        else if (http2_client_look_again(client, now) < 0)
            return -ETIMEDOUT;
    }
    *next = http2_client_ping_at(client);
    if (client->idle_since == BIDE_FOREVER || client->options.idle_timeout == 0)
        return 0;
    uint64_t idle = http_later(client->idle_since, client->options.idle_timeout);
    if (idle <= now)
        bide_http2_client_shut_down(client);
    else if (idle < *next)
        *next = idle;
    return 0;
}

bide_coroutine(http2_client_watcher_body)
{
    bide_begin(http2_client_watcher_body, bide_http2_client_task_ * self);
    for (;;) {
        uint64_t next = BIDE_FOREVER;
        self->status = http2_client_watch(self->client, bide_now(bide_this_context()), &next);
        if (self->status < 0)
            bide_return(self->status);
        bide_await(bide_with_deadline(&self->limited, next,
                                      bide_auto_event_wait(&self->wait, &self->client->nudge)));
        if (bide_stop_requested(bide_this_context()->stop))
            bide_return(0);
    }
    bide_end();
}

/* ---- The connection ---- */

static void http2_client_spawn(bide_http2_client *client, bide_http2_client_task_ *task,
                               const bide_point *body)
{
    task->client = client;
    bide_scope_spawn(&client->io, &task->branch, bide_task_init(&task->task, body));
}

static bide_http2_client *http2_client_of(bide_task *runner)
{
    return bide_container_of(runner, bide_http2_client, runner);
}

static void http2_client_open(bide_http2_client *client, bide_frame *owner, uint64_t now)
{
    client->is_running = true;
    client->input_at = now;
    bide_scope_init(&client->io, owner);
    http2_client_spawn(client, &client->reader, &http2_client_reader_body);
    http2_client_spawn(client, &client->writer, &http2_client_writer_body);
    http2_client_spawn(client, &client->watcher, &http2_client_watcher_body);
}

/* 2 */
static void http2_client_close(bide_http2_client *client)
{
    client->is_running = false;
    client->has_ended = true;
    client->is_going_away = client->refuses = true;
    http2_client_end_requests(client, client->status == -ENODATA ? 0 : client->status);
}

bide_coroutine(http2_client_run)
{
    bide_begin(http2_client_run, bide_task * self);
    http2_client_open(http2_client_of(self), bide_this_frame(), bide_now(bide_this_context()));
    http2_client_of(self)->status = -ECANCELED; /* (if this is destroyed) */
    int status;
    bide_await_status(status, bide_scope_join(&http2_client_of(self)->io));
    if (http2_client_of(self)->error != 0)
        status = http2_client_of(self)->error;
    http2_client_of(self)->status = status == HTTP2_CLIENT_ENDED ? 0 : status;
    bide_return(http2_client_of(self)->status);
    bide_finally();
    if (http2_client_of(self)->is_running) {
        bide_scope_destroy(&http2_client_of(self)->io);
        http2_client_close(http2_client_of(self));
    }
    bide_end();
}

static bool http2_client_refused_ready(bide_awaiter *awaiter)
{
    (void)awaiter;
    return true;
}

static int http2_client_refused_resume(bide_awaiter *awaiter)
{
    (void)awaiter;
    return -EINVAL;
}

/* (the frame of a runner that has begun stays as it is) */
bide_awaiter *bide_http2_client_run(bide_http2_client *client)
{
    static const bide_awaiter_ops refused = {
        .ready = http2_client_refused_ready,
        .resume = http2_client_refused_resume,
        .name = "bide_http2_client_run",
    };
    if (!client->is_running && !client->has_ended)
        return bide_task_init(&client->runner, &http2_client_run);
    client->refused.ops = &refused;
    return &client->refused;
}

void bide_http2_client_shut_down(bide_http2_client *client)
{
    client->is_going_away = true; /* (requests that wait for a stream still get one) */
    bide_auto_event_set(&client->output_needed);
}

bool bide_http2_client_is_usable(const bide_http2_client *client)
{
    return !client->is_going_away && !client->has_ended && client->error == 0;
}

static int http2_client_set_options(bide_http2_client_options *options)
{
    enum { WHOLE_WINDOW = 1 << 20, WINDOW = 65535, MAX_HEAD = 1 << 24 };
    if (options->max_streams == 0)
        options->max_streams = 100;
    if (options->window == 0)
        options->window = WINDOW;
    if (options->connection_window == 0)
        options->connection_window =
            options->window > WHOLE_WINDOW ? options->window : WHOLE_WINDOW;
    if (options->max_unread == 0)
        options->max_unread = (size_t)16 << 20;
    if (options->max_fields == 0)
        options->max_fields = 64;
    if (options->max_head == 0)
        options->max_head = 8192;
    if (options->max_body == 0)
        options->max_body = BIDE_HTTP_UNKNOWN;
    if (options->max_idle_frames == 0)
        options->max_idle_frames = 1000;
    if (options->ping_after == 0)
        options->ping_after = UINT64_C(30000000000);
    if (options->ping_timeout == 0)
        options->ping_timeout = UINT64_C(15000000000);
    return options->window > INT32_MAX || options->connection_window > INT32_MAX ||
                   options->connection_window < WINDOW || options->max_fields < 8 ||
                   options->max_fields > MAX_HEAD / 32 || options->max_head < 256 ||
                   options->max_head > MAX_HEAD
               ? -EINVAL
               : 0;
}

#undef bide_http2_client_init
int bide_http2_client_init(bide_http2_client *client, bide_stream stream,
                           const bide_http2_client_options *options)
{
    memset(client, 0, sizeof *client);
    if (options != NULL)
        client->options = *options;
    client->stream = stream;
    client->has_ended = true; /* (until it is complete) */
    int status = http2_client_set_options(&client->options);
    if (status < 0)
        return status;
    client->frames.left = client->options.max_idle_frames;
    client->ping_deadline = client->idle_since = BIDE_FOREVER;
    client->refusal = -ECONNREFUSED;
    bide_auto_event_init(&client->output_needed, false);
    bide_auto_event_init(&client->nudge, false);
    client->input = malloc(HTTP2_CLIENT_INPUT);
    client->output = malloc(HTTP2_OUTPUT);
    status = client->input == NULL || client->output == NULL
                 ? -ENOMEM
                 : bide_http2_client_open_session_(client);
    if (status < 0) {
        bide_http2_client_destroy(client);
        return status;
    }
    client->has_ended = false;
    if (!client->options.keeps_delay)
        bide_stream_set_no_delay(stream);
    return 0;
}

void bide_http2_client_destroy(bide_http2_client *client)
{
    if (client->open != 0 || client->is_running)
        bide_platform.misuse(
            "an HTTP/2 client is destroyed while it runs, or while a request is not closed",
            "bide_http2_client_destroy", __FILE__, __LINE__);
    nghttp2_session_del(client->session);
    free(client->input);
    free(client->output);
    client->session = NULL;
    client->input = client->output = NULL;
    client->has_ended = true;
}

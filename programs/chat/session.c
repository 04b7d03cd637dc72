/*
 * A client. It first names its room and itself, and then sends messages:
 *
 *     join  ROOM NAME
 *     say   TEXT
 *
 * Two functions run concurrently: one receives the client's messages, the other sends it the room's
 * new lines. When one finishes, the other is cancelled, and the websocket is closed.
 */
#include "session.h"

#include "room.h"

#include <bide/async.h>
#include <bide/event.h>
#include <bide/http_websocket.h>
#include <bide/schedule.h>
#include <bide/sleep.h>
#include <bide/token_bucket.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECOND UINT64_C(1000000000)

enum { FIRST_LINE = 10, CLOSING = 2 }; /* seconds */

struct session {
    bide_websocket websocket;
    struct member member;
    bide_token_bucket bucket;
    char input[MAX_TEXT + MAX_NAME + 16];
    struct line line;
    int code; /* of the close */
    const char *reason;
};

/* A browser names the page that opens a websocket in Origin: it must be the chat's own page. */
static bool has_own_origin(const bide_http_exchange *exchange)
{
    bide_slice origin = bide_http_request_field(exchange, "Origin");
    bide_slice host = exchange->request.host;
    if (origin.data == NULL)
        return true;
    return origin.size > host.size + 3 &&
           memcmp(origin.data + origin.size - host.size - 3, "://", 3) == 0 &&
           memcmp(origin.data + origin.size - host.size, host.data, host.size) == 0;
}

/* Returns the part of the line behind `word` and a tab, or NULL if the line begins otherwise. */
static const char *after_word(const char *line, size_t *size, const char *word)
{
    size_t length = strlen(word);
    if (*size <= length || memcmp(line, word, length) != 0 || line[length] != '\t')
        return NULL;
    *size -= length + 1;
    return line + length + 1;
}

static int set_close(struct session *self, int status, int code, const char *reason)
{
    self->code = code;
    self->reason = reason;
    return status;
}

/* ---- From the client ---- */

/* Receives the next line into `input`. Returns its length, or a negative errno. */
async int receive_line(struct session *self)
{
    bide_websocket_recv_operation receive;
    try await bide_websocket_recv(&receive, &self->websocket, self->input, sizeof self->input);
    if (receive.kind != BIDE_WEBSOCKET_TEXT)
        return set_close(self, -EPROTO, BIDE_WEBSOCKET_UNSUPPORTED, "only text is supported");
    return (int)receive.count;
}

async int receive_join(struct session *self)
{
    size_t size = (size_t)try await receive_line(self);
    const char *room = after_word(self->input, &size, "join");
    const char *name = room != NULL ? memchr(room, '\t', size) : NULL;
    if (name == NULL)
        return set_close(self, -EPROTO, BIDE_WEBSOCKET_POLICY, "expected 'join'");
    int status = room_enter(&self->member, room, (size_t)(name - room), name + 1,
                            size - (size_t)(name - room) - 1);
    if (status == -EINVAL)
        return set_close(self, status, BIDE_WEBSOCKET_POLICY, "empty name");
    return status < 0 ? set_close(self, status, BIDE_WEBSOCKET_TRY_LATER, "too many rooms")
                      : status;
}

async int receive_messages(struct session *self)
{
    unsigned said = 0;
    for (;;) {
        size_t size = (size_t)try await receive_line(self);
        const char *text = after_word(self->input, &size, "say");
        if (text == NULL)
            return set_close(self, -EPROTO, BIDE_WEBSOCKET_POLICY, "unknown message");
        try await bide_token_bucket_take(&self->bucket, 1); /* the client's rate limit */
        room_say(&self->member, text, size);
        if (++said % (BACKLOG / 4) ==
            0) /* lets members receive first; one pass of the scheduler is cheap */
            await bide_schedule(bide_this_context()->scheduler);
    }
}

/* ---- To the client ---- */

async int send_line(struct session *self, const char *text, size_t size)
{
    bide_websocket_send_operation send;
    return await bide_websocket_put(&send, &self->websocket, BIDE_WEBSOCKET_TEXT, text, size);
}

async int send_members(struct session *self)
{
    size_t size;
    char *who = room_member_list(self->member.room, &size);
    defer free(who);
    return who != NULL ? await send_line(self, who, size) : -ENOMEM;
}

/* Sends the members and the earlier messages. */
async int send_welcome(struct session *self)
{
    int size = snprintf(self->line.text, MAX_LINE, "welcome\t%s", self->member.name);
    try await send_line(self, self->line.text, (size_t)size);
    try await send_members(self);
    unsigned long said_before = self->member.said_before; /* later messages are in `lines` */
    for (unsigned long i = said_before > HISTORY ? said_before - HISTORY : 0; i < said_before;
         i++) {
        const struct line *old = room_old(self->member.room, i);
        if (old == NULL)
            continue; /* overwritten meanwhile */
        self->line = *old;
        try await send_line(self, self->line.text, self->line.size);
    }
    return 0;
}

/* Sends lines as the room gets them. */
async int send_new_lines(struct session *self)
{
    for (;;) {
        if (bide_broadcast_try_recv(&self->member.lines, &self->line) < 0) {
            try await bide_websocket_flush(&self->websocket); /* send everything buffered */
            try await bide_broadcast_recv(&self->member.lines, &self->line);
        }
        size_t missed = self->member.lines.missed;
        if (missed != 0) {
            char text[40];
            int size = snprintf(text, sizeof text, "missed\t%zu", missed);
            try await send_line(self, text, (size_t)size);
            try await send_members(self);
        }
        try await send_line(self, self->line.text, self->line.size);
    }
}

async int send_lines(struct session *self)
{
    int status = await send_welcome(self);
    if (status == 0)
        status = await send_new_lines(self);
    if (status == -EPIPE && self->websocket.end.code == 0)
        return set_close(self, status, BIDE_WEBSOCKET_GOING_AWAY, "server shutting down");
    return status;
}

/* ---- Both ---- */

async int run_session(struct session *self)
{
    defer room_leave(&self->member);
    int status = await any(receive_join(self), bide_sleep_for(FIRST_LINE * SECOND),
                           bide_event_wait(rooms_closed()));
    if (bide_event_is_set(rooms_closed()))
        return set_close(self, status, BIDE_WEBSOCKET_GOING_AWAY, "server shutting down");
    if (self->member.room == NULL)
        return status == 0 ? set_close(self, -ETIMEDOUT, BIDE_WEBSOCKET_POLICY, "no 'join' in time")
                           : status;
    return await any(receive_messages(self), send_lines(self));
}

async int serve_session(struct session *self, bide_http_exchange *exchange)
{
    const struct session_options *options = exchange->argument;
    bide_websocket_options of_websocket = {.max_message = sizeof self->input,
                                           .ping_interval = options->ping,
                                           .silence = options->silence,
                                           .patience = CLOSING * SECOND};
    self->code = BIDE_WEBSOCKET_NORMAL;
    self->reason = "";
    self->member.room = NULL;
    if (!has_own_origin(exchange)) {
        exchange->status = 403;
        return 0;
    }
    bide_http_websocket_operation opening;
    if (await bide_http_accept_websocket(&opening, exchange, &self->websocket, &of_websocket,
                                         NULL) < 0)
        return 0; /* the request has been answered */
    bide_token_bucket_init(&self->bucket, options->rate, SECOND, options->burst);
    await run_session(self);
    uint64_t limit = bide_now(bide_this_context()) + CLOSING * SECOND;
    await bide_with_deadline(limit,
                             bide_websocket_close(&self->websocket, self->code, self->reason));
    return 0;
}

/* ---- The handler, a coroutine of the macros ---- */

struct handler {
    bide_http_exchange exchange;
    struct session session;
    async_frame(serve_session) frame;
};

bide_coroutine(handler_body)
{
    bide_begin(handler_body, struct handler * self);
    bide_try(async_serve_session(&self->frame, &self->session, &self->exchange));
    bide_end();
}

const bide_http_handler session_handler = {&handler_body, sizeof(struct handler)};

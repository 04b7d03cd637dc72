/*
 * One client. It says first where it goes and who it is, and then what it has to say:
 *
 *     join  ROOM NAME
 *     say   TEXT
 *
 * Two functions run beside each other: one takes what the client says, the other tells it what is new in
 * the room. When one ends, so does the other, and the websocket is closed.
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
    char heard[MAX_TEXT + MAX_NAME + 16];
    struct line line;
    int code; /* for the close */
    const char *reason;
};

/* A browser says which page opens a websocket: it must be ours. */
static bool is_ours(const bide_http_exchange *exchange)
{
    bide_slice origin = bide_http_request_field(exchange, "Origin");
    bide_slice host = exchange->request.host;
    if (origin.data == NULL)
        return true;
    return origin.size > host.size + 3 &&
           memcmp(origin.data + origin.size - host.size - 3, "://", 3) == 0 &&
           memcmp(origin.data + origin.size - host.size, host.data, host.size) == 0;
}

/* Is the line `word` and a tab? Then what stands behind them. */
static const char *behind(const char *line, size_t *size, const char *word)
{
    size_t length = strlen(word);
    if (*size <= length || memcmp(line, word, length) != 0 || line[length] != '\t')
        return NULL;
    *size -= length + 1;
    return line + length + 1;
}

static int end_with(struct session *self, int status, int code, const char *reason)
{
    self->code = code;
    self->reason = reason;
    return status;
}

/* ---- From the client ---- */

/* The next line, which is in `heard`: how long it is, or a negative errno. */
async int hear(struct session *self)
{
    bide_websocket_recv_operation receive;
    int status = await bide_websocket_recv(&receive, &self->websocket, self->heard, sizeof self->heard);
    if (status < 0)
        return status;
    if (receive.kind != BIDE_WEBSOCKET_TEXT)
        return end_with(self, -EPROTO, BIDE_WEBSOCKET_UNSUPPORTED, "only text is understood");
    return (int)receive.count;
}

async int come_in(struct session *self)
{
    int count = await hear(self);
    if (count < 0)
        return count;
    size_t size = (size_t)count;
    const char *room = behind(self->heard, &size, "join");
    const char *name = room != NULL ? memchr(room, '\t', size) : NULL;
    if (name == NULL)
        return end_with(self, -EPROTO, BIDE_WEBSOCKET_POLICY, "who are you?");
    int status = room_enter(&self->member, room, (size_t)(name - room), name + 1, size - (size_t)(name - room) - 1);
    if (status == -EINVAL)
        return end_with(self, status, BIDE_WEBSOCKET_POLICY, "a name is missing");
    return status < 0 ? end_with(self, status, BIDE_WEBSOCKET_TRY_LATER, "there is no room left") : status;
}

async int listen_to(struct session *self)
{
    unsigned said = 0;
    for (;;) {
        int count = await hear(self);
        if (count < 0)
            return count;
        size_t size = (size_t)count;
        const char *text = behind(self->heard, &size, "say");
        if (text == NULL)
            return end_with(self, -EPROTO, BIDE_WEBSOCKET_POLICY, "what is that?");
        int status = await bide_token_bucket_take(&self->bucket, 1); /* who is too quick waits */
        if (status < 0)
            return status;
        room_say(&self->member, text, size);
        if (++said % (BACKLOG / 4) == 0) /* those are told before more is heard; at once, which is cheap */
            await bide_schedule(bide_this_context()->scheduler);
    }
}

/* ---- To the client ---- */

async int tell(struct session *self, const char *text, size_t size)
{
    bide_websocket_send_operation send;
    return await bide_websocket_put(&send, &self->websocket, BIDE_WEBSOCKET_TEXT, text, size);
}

async int tell_who(struct session *self)
{
    size_t size;
    char *who = room_who(self->member.room, &size);
    defer free(who);
    return who != NULL ? await tell(self, who, size) : -ENOMEM;
}

/* Who is there, and what was said before. */
async int welcome(struct session *self)
{
    int size = snprintf(self->line.text, MAX_LINE, "welcome\t%s", self->member.name);
    int status = await tell(self, self->line.text, (size_t)size);
    if (status == 0)
        status = await tell_who(self);
    unsigned long before = self->member.before; /* what is said since is news */
    for (unsigned long i = before > HISTORY ? before - HISTORY : 0; i < before && status == 0; i++) {
        const struct line *old = room_old(self->member.room, i);
        if (old == NULL)
            continue; /* others are too quick */
        self->line = *old;
        status = await tell(self, self->line.text, self->line.size);
    }
    return status;
}

async int tell_news(struct session *self)
{
    int status = await welcome(self);
    while (status == 0) {
        if (bide_broadcast_try_recv(&self->member.news, &self->line) < 0) {
            status = await bide_websocket_flush(&self->websocket); /* all that there is */
            if (status == 0)
                status = await bide_broadcast_recv(&self->member.news, &self->line);
            if (status < 0)
                break;
        }
        size_t missed = self->member.news.missed;
        if (missed != 0) {
            char text[40];
            int size = snprintf(text, sizeof text, "missed\t%zu", missed);
            status = await tell(self, text, (size_t)size);
            if (status == 0)
                status = await tell_who(self);
        }
        if (status == 0)
            status = await tell(self, self->line.text, self->line.size);
    }
    if (status == -EPIPE && self->websocket.end.code == 0)
        return end_with(self, status, BIDE_WEBSOCKET_GOING_AWAY, "the server goes down");
    return status;
}

/* ---- Both ---- */

async int talk(struct session *self)
{
    defer room_leave(&self->member);
    int status = await any(come_in(self), bide_sleep_for(FIRST_LINE * SECOND), bide_event_wait(rooms_closed()));
    if (bide_event_is_set(rooms_closed()))
        return end_with(self, status, BIDE_WEBSOCKET_GOING_AWAY, "the server goes down");
    if (self->member.room == NULL)
        return status == 0 ? end_with(self, -ETIMEDOUT, BIDE_WEBSOCKET_POLICY, "who are you?") : status;
    return await any(listen_to(self), tell_news(self));
}

async int serve(struct session *self, bide_http_exchange *exchange)
{
    const struct session_options *options = exchange->argument;
    bide_websocket_options of_websocket = {.max_message = sizeof self->heard,
                                           .ping_interval = options->ping,
                                           .silence = options->silence,
                                           .patience = CLOSING * SECOND};
    self->code = BIDE_WEBSOCKET_NORMAL;
    self->reason = "";
    self->member.room = NULL;
    if (!is_ours(exchange)) {
        exchange->status = 403;
        return 0;
    }
    bide_http_websocket_operation opening;
    if (await bide_http_accept_websocket(&opening, exchange, &self->websocket, &of_websocket, NULL) < 0)
        return 0; /* and is answered */
    bide_token_bucket_init(&self->bucket, options->rate, SECOND, options->burst);
    await talk(self);
    uint64_t limit = bide_now(bide_this_context()) + CLOSING * SECOND;
    await bide_with_deadline(limit, bide_websocket_close(&self->websocket, self->code, self->reason));
    return 0;
}

/* ---- The handler, which is a body ---- */

struct handler {
    bide_http_exchange exchange;
    struct session session;
    async_frame(serve) frame;
};

bide_coroutine(handler_body)
{
    bide_begin(handler_body, struct handler *self);
    bide_try(async_serve(&self->frame, &self->session, &self->exchange));
    bide_end();
}

const bide_http_handler session_handler = {&handler_body, sizeof(struct handler)};

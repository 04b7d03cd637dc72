/*
 * One client: its input, the request being parsed there, and the replies to be sent.
 *
 * A client that has subscribed has two coroutines: one receives its requests, the other sends. Any
 * other client has one, which sends all replies at once when all received requests have been run.
 */
#ifndef KV_CLIENT_H
#define KV_CLIENT_H

#include "request.h"

#include <bide/bide.h>

struct kv;
struct subscription;

/* An action that a request leaves to its client's coroutine, because it takes time. */
enum control { CONTROL_NONE, CONTROL_SAVE, CONTROL_SAVE_LATER, CONTROL_REWRITE, CONTROL_STOP };

struct client {
    struct kv *kv;
    bide_descriptor *socket;
    uint64_t id;
    struct client *next, **link; /* in the list of all clients */
    struct buffer name;

    struct buffer in;
    struct request request;
    struct buffer out;
    enum control control;
    bool is_closing;     /* disconnect when `out` has been sent */
    bool is_broken;      /* disconnect at once: no memory for a reply, or too slow */
    bool has_subscribed; /* at any time */

    struct subscription *subscriptions; /* newest first */
    size_t subscription_count;
    bide_single_consumer_auto_event messages; /* `out` has data, for a client that has subscribed */
};

/* An argument of the request. Argument 0 is the command's name. */
static inline struct bytes client_argument(const struct client *client, size_t i)
{
    const struct argument *argument = &request_arguments(&client->request)[i];
    return (struct bytes){client->in.data + client->in.begin + argument->offset, argument->size};
}

/* ---- Replies ---- */

/* Appends bytes unchanged. */
void reply_raw(struct client *client, const char *data, size_t size);

/* Appends a line that is a string literal. */
#define REPLY(client, text) reply_raw(client, text "\r\n", sizeof text "\r\n" - 1)

static inline void reply_ok(struct client *client)
{
    REPLY(client, "+OK");
}

static inline void reply_nothing(struct client *client)
{
    REPLY(client, "$-1");
}

void reply_bulk(struct client *client, struct bytes bytes);
void reply_number(struct client *client, int64_t number);
void reply_array(struct client *client, size_t count);
void reply_error(struct client *client, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif

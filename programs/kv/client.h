/*
 * One client: what has come from it, the request that is read there, and the replies to be sent.
 *
 * A client that has subscribed has two coroutines, one that takes its requests and one that sends.
 * Others have one: replies are sent when the requests that have come are all done, all at once.
 */
#ifndef KV_CLIENT_H
#define KV_CLIENT_H

#include "request.h"

#include <bide/bide.h>

struct kv;
struct subscription;

/* What a request asks its client's coroutine for, since that takes time. */
enum wish { WISH_NOTHING, WISH_SAVE, WISH_SAVE_LATER, WISH_REWRITE, WISH_STOP };

struct client {
    struct kv *kv;
    bide_descriptor *socket;
    uint64_t id;
    struct client *next, **place; /* among all */
    struct buffer name;

    struct buffer in;
    struct request request;
    struct buffer out;
    enum wish wish;
    bool is_over;        /* it ends when `out` has been sent */
    bool is_broken;      /* there was no memory for a reply, or it is too slow: it ends at once */
    bool has_subscribed; /* ever */

    struct subscription *subscriptions; /* the newest first */
    size_t subscription_count;
    bide_single_consumer_auto_event messages; /* `out` has something for a client that subscribed */
};

/* An argument of the request. The first is the command's name. */
static inline struct bytes client_argument(const struct client *client, size_t i)
{
    const struct argument *argument = &request_arguments(&client->request)[i];
    return (struct bytes){client->in.data + client->in.begin + argument->offset, argument->size};
}

/* ---- Replies ---- */

/* Bytes as they are to be sent. */
void reply_raw(struct client *client, const char *data, size_t size);

/* A line that is known here. */
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

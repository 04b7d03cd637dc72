/*
 * Messages to the subscribers of a channel or of a pattern of channels, and lines to clients that monitor. Nobody waits for a slow
 * subscriber: messages are buffered for it up to a limit, and then it is disconnected.
 *
 * A PUBLISH delivers its message in its client's turn. If that does not suffice, the rest is left to a coroutine, with a copy of
 * the message, and the client runs no other request before all is delivered. Publications that come meanwhile are queued, so
 * all subscribers have the messages in the same order. A subscription that begins or ends meanwhile may have the message or not.
 * In a transaction, which does not wait, a message is delivered in one step; or it is queued, and EXEC's client waits behind it.
 *
 * The lines of a request, for clients that monitor, are a message as well. They are sent when the request has run, those of a
 * transaction when all of it has. Notifications of events of keys (notifications.h) are messages that are sent while a request runs.
 */
#ifndef KV_PUBSUB_H
#define KV_PUBSUB_H

#include "table.h"

#include <bide/bide.h>

struct client;
struct command;
struct kv;
struct publication;

/*
 * Bytes of a channel or of a pattern, to which one may subscribe or publish. So the comparison of two, which is not divided, is
 * at most 128 steps for each byte of both (bytes_match).
 */
enum { PUBSUB_MAX_NAME = 4096 };

/* A channel or pattern exists while it has a subscription. */
struct channel {
    struct subscription *subscriptions;
    size_t count;
    bool is_pattern;
    struct channel *next, **link; /* of patterns */
    size_t name_size;
    char name[];
};

struct subscription {
    struct client *client;                              /* NULL: there is none */
    struct channel *channel;                            /* NULL: to the requests of all clients */
    struct subscription *next, **link;                  /* of the channel */
    struct subscription *next_of_client, **client_link; /* of the client, and of this kind */
};

struct pubsub {
    struct table channels;      /* by name: a struct channel * */
    struct table subscriptions; /* by client, kind and name: a struct subscription * */
    struct table pattern_names; /* by pattern: a struct channel * */
    struct channel *patterns;   /* all patterns, newest first */
    size_t pattern_count;
    uint64_t cut_off; /* subscribers that were disconnected, and monitors */

    struct subscription *monitors; /* to the requests of all clients, newest first */
    struct buffer lines;           /* of the present request, or of the transaction so far */
    bool lost_lines;               /* there are too many for anybody, or no memory */

    struct publication *queue, **queue_end; /* the first is being delivered */
    size_t without_cause;                   /* those of them that no client's request has caused */
    struct subscription *next_subscription; /* that has its message next; or NULL */
    struct channel *next_pattern;           /* to be matched when there is no next_subscription */
    bide_single_consumer_auto_event queued; /* may be set too early */
};

void pubsub_init(struct pubsub *pubsub, const uint64_t key[2]);
void pubsub_free(struct pubsub *pubsub);

static inline struct bytes channel_name(const struct channel *channel)
{
    return (struct bytes){channel->name, channel->name_size};
}

struct channel *pubsub_find(struct pubsub *pubsub, bool is_pattern, struct bytes name);

/*
 * Removes subscriptions of the client until the server's work is `limit`. Each counts as work. Returns true if none is left.
 */
bool pubsub_leave(struct client *client, uint64_t limit);

/* Takes a subscription out of its channel's list. */
void subscription_unlink(struct pubsub *pubsub, struct subscription *subscription);

/*
 * Shows the client's request, which has run, to the clients that monitor; those of a transaction are shown with its EXEC. Only
 * if there are such clients.
 */
void monitors_show(struct client *client, const struct command *command);

/* The client monitors no longer. */
void monitors_leave(struct client *client);

/*
 * Delivers lines to the clients that monitor, or disconnects these if the lines are lost. What does not fit into the client's
 * turn is queued, and the client runs no other request before it is delivered.
 */
void publish_lines(struct client *client, struct bytes lines, bool are_lost);

/*
 * Sends a notification to the subscribers of a channel, whose name has PUBSUB_MAX_NAME bytes at most. A notification that
 * does not fit into the turn of the client whose request runs is queued, up to a limit. The client runs no other request before
 * it is delivered.
 */
void publish_notification(struct kv *kv, struct bytes channel, struct bytes bytes);

/* Delivers queued messages until the work is CLIENT_MAX_WORK. Returns true if some are left. */
bool publications_deliver(struct kv *kv);

/* No publication refers to the client any more. Its messages are still delivered. */
void publications_leave(struct client *client);

/* Frees what is queued. */
void publications_free(struct pubsub *pubsub);

#endif

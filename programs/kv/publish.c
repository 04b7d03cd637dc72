/* PUBLISH, and messages and lines that are still to be delivered. pubsub.h has the model. One thread. */
#include "commands.h"

#include <stdlib.h>

enum { MESSAGE_BYTES = 1024 }; /* copied, for another step */

enum message_kind {
    TO_CHANNEL,
    NOTIFICATION, /* to a channel */
    TO_MONITORS,
    LOST /* to monitors or subscribers, which are disconnected */
};

enum { MAX_QUEUED = 1 << 16 }; /* notifications of one request */

/* A queued message. Its channel's name and its bytes follow. */
struct publication {
    struct publication *next;
    struct client *client; /* that runs no other request before it is delivered; or NULL */
    bool has_no_cause;     /* no client's request has caused it */
    bool is_counted;       /* its request has replied already, or there is none */
    enum message_kind kind;
    int64_t receivers; /* so far */
    size_t name_size, message_size;
    char bytes[];
};

/* A message that is being delivered. */
struct message {
    struct bytes channel, bytes; /* `channel` not with monitors */
    int64_t receivers;           /* so far */
    enum message_kind kind;
};

static struct message message_of(const struct publication *publication)
{
    const char *bytes = publication->bytes;
    return (struct message){{bytes, publication->name_size},
                            {bytes + publication->name_size, publication->message_size},
                            publication->receivers,
                            publication->kind};
}

/* ---- Delivering ---- */

static void reply_message(struct client *to, const struct channel *pattern,
                          const struct message *message)
{
    if (message->kind == TO_MONITORS) {
        reply_raw(to, message->bytes.data, message->bytes.size);
        return;
    }
    reply_push(to, pattern != NULL ? 4 : 3);
    reply_bulk(to, bytes_of(pattern != NULL ? "pmessage" : "message"));
    if (pattern != NULL)
        reply_bulk(to, channel_name(pattern));
    reply_bulk(to, message->channel);
    reply_bulk(to, message->bytes);
}

/*
 * Appends a message to a subscriber's output. A subscriber that is too far behind is disconnected
 * instead.
 */
static void deliver_to(struct subscription *subscription, const struct message *message)
{
    struct client *to = subscription->client;
    const struct channel *pattern = subscription->channel;
    bool is_deferred =
        to->transaction.is_running || (message->kind == NOTIFICATION && to == to->kv->running);
    if (pattern != NULL && !pattern->is_pattern)
        pattern = NULL;
    if (to->is_broken || to->is_closing)
        return;
    if (message->kind == LOST ||
        buffer_used(&to->out) + buffer_used(&to->deferred) + message->bytes.size >
            to->kv->options.backlog) {
        to->is_broken = true;
        to->kv->pubsub.cut_off++;
        bide_shutdown(to->socket, BIDE_HALF_BOTH);
    } else if (is_deferred) { /* the replies of its request are not complete */
        struct buffer replies = to->out;
        to->out = to->deferred;
        reply_message(to, pattern, message);
        to->deferred = to->out;
        to->out = replies;
    } else {
        reply_message(to, pattern, message);
    }
    bide_single_consumer_auto_event_set(&to->messages);
}

/* True if the pattern, a step or more of work, matches. */
static bool is_match(struct kv *kv, const struct channel *pattern, struct bytes channel)
{
    kv->work++;
    return bytes_match(channel, channel_name(pattern), &kv->work);
}

/* The message begins with the subscribers of its channel. */
static void start_delivery(struct pubsub *pubsub, const struct message *message)
{
    if (message->kind == TO_MONITORS || message->kind == LOST) {
        pubsub->next_subscription = pubsub->monitors;
        pubsub->next_pattern = NULL;
        return;
    }
    const struct channel *found = pubsub_find(pubsub, false, message->channel);
    pubsub->next_subscription = found != NULL ? found->subscriptions : NULL;
    pubsub->next_pattern = pubsub->patterns;
}

/* Starts with the first that is queued. */
static void start_next(struct pubsub *pubsub)
{
    const struct message message = message_of(pubsub->queue);
    start_delivery(pubsub, &message);
}

/* Delivers the message of which delivery has started. Returns false if some is left when the work is `limit`. */
static bool deliver_until(struct kv *kv, struct message *message, uint64_t limit)
{
    struct pubsub *pubsub = &kv->pubsub;
    while (pubsub->next_subscription != NULL || pubsub->next_pattern != NULL) {
        struct subscription *subscription = pubsub->next_subscription;
        if (kv->work >= limit)
            return false;
        if (subscription != NULL) {
            pubsub->next_subscription = subscription->next;
            deliver_to(subscription, message);
            message->receivers++;
            kv->work += 1 + message->bytes.size / MESSAGE_BYTES;
        } else {
            struct channel *pattern = pubsub->next_pattern;
            pubsub->next_pattern = pattern->next;
            if (is_match(kv, pattern, message->channel))
                pubsub->next_subscription = pattern->subscriptions;
        }
    }
    return true;
}

/* Without memory for a message: disconnects its receivers in one step. (Messages before it are in the queue.) */
static void lose_message(struct kv *kv, struct message message)
{
    struct pubsub *pubsub = &kv->pubsub;
    struct subscription *subscription = pubsub->next_subscription;
    struct channel *pattern = pubsub->next_pattern;
    start_delivery(pubsub, &message);
    message.kind = LOST;
    deliver_until(kv, &message, UINT64_MAX);
    pubsub->next_subscription = subscription;
    pubsub->next_pattern = pattern;
}

/* ---- The queue ---- */

/* `client` has caused it; or NULL. Returns NULL if memory is exhausted. */
static struct publication *create_publication(struct client *client, const struct message *message)
{
    size_t name_size = message->channel.size, message_size = message->bytes.size;
    struct publication *publication = malloc(sizeof *publication + name_size + message_size);
    if (publication == NULL)
        return NULL;
    *publication = (struct publication){.client = client,
                                        .has_no_cause = client == NULL,
                                        .is_counted = message->kind != TO_CHANNEL ||
                                                      client->transaction.is_running,
                                        .kind = message->kind,
                                        .receivers = message->receivers,
                                        .name_size = name_size,
                                        .message_size = message_size};
    if (name_size > 0)
        memcpy(publication->bytes, message->channel.data, name_size);
    if (message_size > 0)
        memcpy(publication->bytes + name_size, message->bytes.data, message_size);
    return publication;
}

static void append_publication(struct pubsub *pubsub, struct publication *publication)
{
    if (publication->client != NULL)
        publication->client->publications++;
    pubsub->without_cause += publication->has_no_cause;
    *pubsub->queue_end = publication;
    pubsub->queue_end = &publication->next;
    bide_single_consumer_auto_event_set(&pubsub->queued);
}

/* Removes the first, which is delivered, and starts with the next one. */
static void end_publication(struct pubsub *pubsub)
{
    struct publication *publication = pubsub->queue;
    struct client *client = publication->client;
    pubsub->queue = publication->next;
    if (pubsub->queue == NULL)
        pubsub->queue_end = &pubsub->queue;
    else
        start_next(pubsub);
    if (client != NULL) {
        client->publications--;
        if (!publication->is_counted) {
            client->has_published = true;
            client->receivers = publication->receivers;
        }
        bide_single_consumer_auto_event_set(&client->published);
    }
    pubsub->without_cause -= publication->has_no_cause;
    free(publication);
}

bool publications_deliver(struct kv *kv)
{
    struct pubsub *pubsub = &kv->pubsub;
    uint64_t limit = kv->work + CLIENT_MAX_WORK;
    for (; pubsub->queue != NULL && kv->work < limit; kv->work++) {
        struct message message = message_of(pubsub->queue);
        bool is_complete = deliver_until(kv, &message, limit);
        pubsub->queue->receivers = message.receivers;
        if (!is_complete)
            break;
        end_publication(pubsub);
    }
    return pubsub->queue != NULL;
}

void publications_leave(struct client *client)
{
    struct publication *publication = client->kv->pubsub.queue;
    for (; client->publications > 0; publication = publication->next) {
        if (publication->client != client)
            continue;
        publication->client = NULL;
        client->publications--;
    }
}

void publications_free(struct pubsub *pubsub)
{
    while (pubsub->queue != NULL) {
        struct publication *publication = pubsub->queue;
        bide_assert(publication->client == NULL);
        pubsub->queue = publication->next;
        free(publication);
    }
}

/* Delivers a message until the work is `limit`, and queues the rest. `client` has caused it; or NULL. */
static void deliver_or_queue(struct kv *kv, struct client *client, struct message message,
                             uint64_t limit)
{
    struct pubsub *pubsub = &kv->pubsub;
    if (pubsub->queue == NULL) {
        start_delivery(pubsub, &message);
        if (deliver_until(kv, &message, limit))
            return;
    }
    struct publication *publication = create_publication(client, &message);
    if (publication != NULL)
        append_publication(pubsub, publication);
    else
        lose_message(kv, message);
}

void publish_lines(struct client *client, struct bytes lines, bool are_lost)
{
    struct message message = {.bytes = lines, .kind = TO_MONITORS};
    if (are_lost)
        message = (struct message){.kind = LOST};
    deliver_or_queue(client->kv, client, message, client_work_limit(client));
}

void publish_notification(struct kv *kv, struct bytes channel, struct bytes bytes)
{
    struct client *client = kv->running;
    kv->work++;
    if (kv->pubsub.patterns == NULL && pubsub_find(&kv->pubsub, false, channel) == NULL)
        return;
    deliver_or_queue(kv, client, (struct message){channel, bytes, 0, NOTIFICATION},
                     kv->notify_limit);
    while (client != NULL && client->publications >= MAX_QUEUED && publications_deliver(kv))
        continue;
}

/* ---- The command ---- */

static int64_t count_receivers(struct kv *kv, struct bytes channel)
{
    const struct channel *found = pubsub_find(&kv->pubsub, false, channel);
    size_t count = found != NULL ? found->count : 0;
    for (found = kv->pubsub.patterns; found != NULL; found = found->next)
        count += is_match(kv, found, channel) ? found->count : 0;
    return (int64_t)count;
}

/* Delivers the message, in a transaction to the end. Returns false if it is to be queued. */
static bool deliver_now(struct client *client, struct message *message)
{
    struct pubsub *pubsub = &client->kv->pubsub;
    bool is_running = client->transaction.is_running;
    if (pubsub->queue != NULL) { /* in a transaction the reply cannot wait */
        if (is_running)
            message->receivers = count_receivers(client->kv, message->channel);
        return false;
    }
    start_delivery(pubsub, message);
    return deliver_until(client->kv, message, is_running ? UINT64_MAX : client_work_limit(client));
}

/* PUBLISH channel message */
void command_publish(struct client *client)
{
    struct pubsub *pubsub = &client->kv->pubsub;
    struct message message = {client_argument(client, 1), client_argument(client, 2), 0,
                              TO_CHANNEL};
    if (message.channel.size > PUBSUB_MAX_NAME) {
        reply_error(client, "-ERR a channel may have %d bytes", PUBSUB_MAX_NAME);
        return;
    }
    if (client->has_published) { /* (this is the request again) */
        client->has_published = false;
        reply_number(client, client->receivers);
        return;
    }
    bool is_complete = deliver_now(client, &message);
    struct publication *publication = is_complete ? NULL : create_publication(client, &message);
    if (!is_complete && publication == NULL && pubsub->queue == NULL)
        is_complete = deliver_until(client->kv, &message, UINT64_MAX); /* there is no memory */
    if (!client->transaction.is_running) /* (messages to itself are before the reply) */
        client->pushed = buffer_used(&client->out);
    if (publication != NULL)
        append_publication(pubsub, publication);
    if (is_complete || (publication != NULL && publication->is_counted))
        reply_number(client, message.receivers);
    else if (publication != NULL)
        client_repeat_request(client);
    else
        reply_no_memory(client);
}

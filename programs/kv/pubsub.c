/*
 * Channels, patterns and subscriptions, and their commands. A subscription is in two lists, its
 * channel's and its client's, and in a table by both. A channel or pattern exists while it has a
 * subscription. All of it runs on the loop's thread.
 */
#include "commands.h"

#include <stdlib.h>

struct channel {
    struct subscription *subscriptions;
    size_t count;
    bool is_pattern;
    struct channel *next, **link; /* of patterns */
    size_t name_size;
    char name[];
};

struct subscription {
    struct client *client;
    struct channel *channel;
    struct subscription *next, **link;                  /* of the channel */
    struct subscription *next_of_client, **client_link; /* of the client */
};

void pubsub_init(struct pubsub *pubsub, const uint64_t key[2])
{
    *pubsub = (struct pubsub){0};
    table_init(&pubsub->channels, key);
    table_init(&pubsub->pattern_names, key);
    table_init(&pubsub->subscriptions, key);
}

void pubsub_free(struct pubsub *pubsub)
{
    bide_assert(pubsub->patterns == NULL && pubsub->pattern_count == 0);
    bide_assert(pubsub->channels.count == 0); /* no client, so no channel */
    while (!table_free_some(&pubsub->channels, 1024))
        continue;
    while (!table_free_some(&pubsub->pattern_names, 1024))
        continue;
    while (!table_free_some(&pubsub->subscriptions, 1024))
        continue;
}

/* ---- Tables of pointers ---- */

static void *pointer_at(struct table *table, struct bytes key)
{
    void *pointer = NULL;
    struct entry **link = table_find(table, key, table_hash(table, key));
    if (link != NULL && *link != NULL)
        memcpy(&pointer, (*link)->bytes + (*link)->key_size, sizeof pointer);
    return pointer;
}

static bool add_pointer(struct table *table, struct bytes key, void *pointer)
{
    struct entry *entry = table_add(table, key, table_hash(table, key), sizeof pointer);
    if (entry == NULL)
        return false;
    memcpy(entry->bytes + entry->key_size, &pointer, sizeof pointer);
    entry->value_size = sizeof pointer;
    return true;
}

static void remove_pointer(struct table *table, struct bytes key)
{
    struct entry **link = table_find(table, key, table_hash(table, key));
    if (link != NULL && *link != NULL)
        free(table_unlink(table, link));
}

/* ---- Channels ---- */

/*
 * Builds the key of a subscription: the client's number, the kind, and the name. Returns false if
 * memory is exhausted.
 */
static bool make_subscription_key(struct buffer *key, const struct client *client, bool is_pattern,
                                  struct bytes name)
{
    if (!buffer_reserve(key, sizeof client->id + 1 + name.size))
        return false;
    buffer_append(key, &client->id, sizeof client->id);
    buffer_append(key, is_pattern ? "p" : "c", 1);
    buffer_append(key, name.data, name.size);
    return true;
}

static struct bytes channel_name(const struct channel *channel)
{
    return (struct bytes){channel->name, channel->name_size};
}

static struct channel *find_channel(struct pubsub *pubsub, bool is_pattern, struct bytes name)
{
    return pointer_at(is_pattern ? &pubsub->pattern_names : &pubsub->channels, name);
}

static struct channel *create_channel(struct pubsub *pubsub, bool is_pattern, struct bytes name)
{
    struct channel *channel = malloc(sizeof *channel + name.size);
    if (channel == NULL)
        return NULL;
    *channel = (struct channel){.is_pattern = is_pattern, .name_size = name.size};
    memcpy(channel->name, name.data, name.size);
    if (!add_pointer(is_pattern ? &pubsub->pattern_names : &pubsub->channels, name, channel)) {
        free(channel);
        return NULL;
    }
    if (is_pattern) {
        channel->next = pubsub->patterns;
        channel->link = &pubsub->patterns;
        if (channel->next != NULL)
            channel->next->link = &channel->next;
        pubsub->patterns = channel;
        pubsub->pattern_count++;
    }
    return channel;
}

static void release_channel(struct pubsub *pubsub, struct channel *channel)
{
    if (channel->subscriptions != NULL)
        return;
    bide_assert(channel->count == 0);
    remove_pointer(channel->is_pattern ? &pubsub->pattern_names : &pubsub->channels,
                   channel_name(channel));
    if (channel->is_pattern) {
        *channel->link = channel->next;
        if (channel->next != NULL)
            channel->next->link = channel->link;
        pubsub->pattern_count--;
    }
    free(channel);
}

/* ---- Subscriptions ---- */

/* `key` comes from make_subscription_key. */
static bool add_subscription(struct client *client, bool is_pattern, struct bytes name,
                             struct bytes key)
{
    struct pubsub *pubsub = &client->kv->pubsub;
    struct subscription *subscription = malloc(sizeof *subscription);
    struct channel *channel = find_channel(pubsub, is_pattern, name);
    if (channel == NULL)
        channel = create_channel(pubsub, is_pattern, name);
    if (subscription == NULL || channel == NULL ||
        !add_pointer(&pubsub->subscriptions, key, subscription)) {
        if (channel != NULL)
            release_channel(pubsub, channel);
        free(subscription);
        return false;
    }
    *subscription = (struct subscription){client,
                                          channel,
                                          channel->subscriptions,
                                          &channel->subscriptions,
                                          client->subscriptions,
                                          &client->subscriptions};
    if (subscription->next != NULL)
        subscription->next->link = &subscription->next;
    if (subscription->next_of_client != NULL)
        subscription->next_of_client->client_link = &subscription->next_of_client;
    channel->subscriptions = client->subscriptions = subscription;
    channel->count++;
    client->subscription_count++;
    client->pattern_count += is_pattern;
    client->has_subscribed = true;
    return true;
}

static void remove_subscription(struct subscription *subscription, struct bytes key)
{
    struct client *client = subscription->client;
    remove_pointer(&client->kv->pubsub.subscriptions, key);
    *subscription->link = subscription->next;
    if (subscription->next != NULL)
        subscription->next->link = subscription->link;
    *subscription->client_link = subscription->next_of_client;
    if (subscription->next_of_client != NULL)
        subscription->next_of_client->client_link = subscription->client_link;
    bide_assert(subscription->channel->count > 0 && client->subscription_count > 0);
    subscription->channel->count--;
    client->subscription_count--;
    client->pattern_count -= subscription->channel->is_pattern;
    release_channel(&client->kv->pubsub, subscription->channel);
    free(subscription);
}

/*
 * The key of each subscription is built again. If memory is exhausted, the entry stays in the table
 * with a dangling pointer, which no lookup reaches: no other client has this number.
 */
void pubsub_remove_client(struct client *client)
{
    while (client->subscriptions != NULL) {
        struct subscription *subscription = client->subscriptions;
        struct buffer key = {0};
        make_subscription_key(&key, client, subscription->channel->is_pattern,
                              channel_name(subscription->channel));
        remove_subscription(subscription, (struct bytes){key.data, buffer_used(&key)});
        buffer_free(&key);
    }
}

/* ---- Commands ---- */

static void reply_subscribed(struct client *client, const char *what, struct bytes name)
{
    reply_push(client, 3);
    reply_bulk(client, bytes_of(what));
    if (name.data != NULL)
        reply_bulk(client, name);
    else
        reply_nothing(client);
    reply_number(client, (int64_t)client->subscription_count);
}

static void subscribe_to_arguments(struct client *client, bool is_pattern)
{
    for (size_t i = 1; i < client->request.count; i++) {
        struct bytes name = client_argument(client, i);
        struct buffer key = {0};
        bool done = make_subscription_key(&key, client, is_pattern, name);
        struct bytes key_bytes = {key.data, buffer_used(&key)};
        if (done && pointer_at(&client->kv->pubsub.subscriptions, key_bytes) == NULL)
            done = add_subscription(client, is_pattern, name, key_bytes);
        buffer_free(&key);
        if (done)
            reply_subscribed(client, is_pattern ? "psubscribe" : "subscribe", name);
        else
            reply_no_memory(client);
    }
    client->pushed = buffer_used(&client->out);
}

void command_subscribe(struct client *client)
{
    subscribe_to_arguments(client, false);
}

void command_psubscribe(struct client *client)
{
    subscribe_to_arguments(client, true);
}

static void unsubscribe_from(struct client *client, bool is_pattern, struct bytes name)
{
    struct buffer key = {0};
    if (!make_subscription_key(&key, client, is_pattern, name)) {
        reply_no_memory(client);
        return;
    }
    struct bytes key_bytes = {key.data, buffer_used(&key)};
    struct subscription *subscription = pointer_at(&client->kv->pubsub.subscriptions, key_bytes);
    /* (the name may be the channel's own, which remove_subscription frees) */
    size_t count = client->subscription_count - (subscription != NULL);
    reply_push(client, 3);
    reply_bulk(client, bytes_of(is_pattern ? "punsubscribe" : "unsubscribe"));
    reply_bulk(client, name);
    reply_number(client, (int64_t)count);
    if (subscription != NULL)
        remove_subscription(subscription, key_bytes);
    buffer_free(&key);
}

static void unsubscribe_from_arguments(struct client *client, bool is_pattern)
{
    size_t done = 0;
    for (size_t i = 1; i < client->request.count; i++)
        unsubscribe_from(client, is_pattern, client_argument(client, i));
    if (client->request.count > 1)
        return;
    struct subscription *next, *at = client->subscriptions;
    for (; at != NULL && !client->is_broken; at = next) {
        next = at->next_of_client;
        if (at->channel->is_pattern != is_pattern)
            continue;
        unsubscribe_from(client, is_pattern, channel_name(at->channel));
        done++;
    }
    if (done == 0)
        reply_subscribed(client, is_pattern ? "punsubscribe" : "unsubscribe",
                         (struct bytes){NULL, 0});
}

void command_unsubscribe(struct client *client)
{
    unsubscribe_from_arguments(client, false);
    client->pushed = buffer_used(&client->out);
}

void command_punsubscribe(struct client *client)
{
    unsubscribe_from_arguments(client, true);
    client->pushed = buffer_used(&client->out);
}

static void reply_message(struct client *to, const struct channel *pattern, struct bytes channel,
                          struct bytes message)
{
    reply_push(to, pattern != NULL ? 4 : 3);
    reply_bulk(to, bytes_of(pattern != NULL ? "pmessage" : "message"));
    if (pattern != NULL)
        reply_bulk(to, channel_name(pattern));
    reply_bulk(to, channel);
    reply_bulk(to, message);
}

/*
 * Appends a message to a subscriber's output. A subscriber that is too far behind is disconnected
 * instead.
 */
static void deliver_message(struct client *to, const struct channel *pattern, struct bytes channel,
                            struct bytes message)
{
    struct buffer *messages = &to->transaction.messages;
    if (to->is_broken || to->is_closing)
        return;
    if (buffer_used(&to->out) + buffer_used(messages) + message.size > to->kv->options.backlog) {
        to->is_broken = true;
        to->kv->pubsub.cut_off++;
        bide_shutdown(to->socket, BIDE_HALF_BOTH);
    } else if (to->transaction.is_running) { /* the array of its replies is not complete */
        struct buffer replies = to->out;
        to->out = *messages;
        reply_message(to, pattern, channel, message);
        *messages = to->out;
        to->out = replies;
    } else {
        reply_message(to, pattern, channel, message);
    }
    bide_single_consumer_auto_event_set(&to->messages);
}

void command_publish(struct client *client)
{
    struct pubsub *pubsub = &client->kv->pubsub;
    struct bytes name = client_argument(client, 1), message = client_argument(client, 2);
    struct channel *channel = pointer_at(&pubsub->channels, name);
    int64_t count = 0;
    for (struct subscription *at = channel != NULL ? channel->subscriptions : NULL; at != NULL;
         at = at->next, count++)
        deliver_message(at->client, NULL, name, message);
    for (channel = pubsub->patterns; channel != NULL; channel = channel->next) {
        client->kv->work++;
        if (!bytes_match(name, channel_name(channel)))
            continue;
        for (struct subscription *at = channel->subscriptions; at != NULL; at = at->next, count++)
            deliver_message(at->client, channel, name, message);
    }
    client->kv->work += (uint64_t)count;
    if (!client->transaction.is_running) /* (messages to itself are before the reply) */
        client->pushed = buffer_used(&client->out);
    reply_number(client, count);
}

struct channel_search {
    struct client *client;
    struct bytes pattern;
    size_t count;
};

static void visit_channel(void *argument, struct entry *entry)
{
    struct channel_search *search = argument;
    search->client->kv->work++;
    if (client_refuses_reply(search->client))
        return;
    if (search->pattern.data != NULL && !bytes_match(entry_key(entry), search->pattern))
        return;
    reply_bulk(search->client, entry_key(entry));
    search->count++;
}

void command_pubsub(struct client *client)
{
    struct pubsub *pubsub = &client->kv->pubsub;
    struct bytes word = client_argument(client, 1);
    if (bytes_are(word, "NUMPAT") && client->request.count == 2) {
        reply_number(client, (int64_t)pubsub->pattern_count);
    } else if (bytes_are(word, "NUMSUB")) {
        reply_array(client, 2 * (client->request.count - 2));
        for (size_t i = 2; i < client->request.count; i++) {
            struct channel *channel = pointer_at(&pubsub->channels, client_argument(client, i));
            reply_bulk(client, client_argument(client, i));
            reply_number(client, channel != NULL ? (int64_t)channel->count : 0);
        }
    } else if (bytes_are(word, "CHANNELS") && client->request.count <= 3) {
        struct channel_search search = {client, {NULL, 0}, 0};
        size_t begin = reply_start_array(client), cursor = 0;
        if (client->request.count == 3)
            search.pattern = client_argument(client, 2);
        do
            cursor = table_scan(&pubsub->channels, cursor, visit_channel, &search);
        while (cursor != 0 && !client_refuses_reply(client));
        finish_listing(client, begin, search.count);
    } else {
        REPLY(client, "-ERR unknown subcommand or wrong number of arguments for 'pubsub'");
    }
}

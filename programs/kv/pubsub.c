/*
 * Channels, patterns and subscriptions, and their commands. A subscription is in two lists, its
 * channel's and its client's, and in a table by both. publish.c has messages. All of it runs on the loop's thread.
 */
#include "commands.h"

void pubsub_init(struct pubsub *pubsub, const uint64_t key[2])
{
    *pubsub = (struct pubsub){0};
    table_init(&pubsub->channels, key);
    table_init(&pubsub->pattern_names, key);
    table_init(&pubsub->subscriptions, key);
    pubsub->queue_end = &pubsub->queue;
    bide_single_consumer_auto_event_init(&pubsub->queued, false);
}

void pubsub_free(struct pubsub *pubsub)
{
    bide_assert(pubsub->patterns == NULL && pubsub->pattern_count == 0);
    bide_assert(pubsub->channels.count == 0 && pubsub->monitors == NULL); /* no client, so none */
    publications_free(pubsub);
    buffer_free(&pubsub->lines);
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
        memory_free(table_unlink(table, link));
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

struct channel *pubsub_find(struct pubsub *pubsub, bool is_pattern, struct bytes name)
{
    return pointer_at(is_pattern ? &pubsub->pattern_names : &pubsub->channels, name);
}

static struct channel *create_channel(struct pubsub *pubsub, bool is_pattern, struct bytes name)
{
    struct channel *channel = memory_allocate(sizeof *channel + name.size);
    if (channel == NULL)
        return NULL;
    *channel = (struct channel){.is_pattern = is_pattern, .name_size = name.size};
    memcpy(channel->name, name.data, name.size);
    if (!add_pointer(is_pattern ? &pubsub->pattern_names : &pubsub->channels, name, channel)) {
        memory_free(channel);
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
        if (pubsub->next_pattern == channel)
            pubsub->next_pattern = channel->next;
        pubsub->pattern_count--;
    }
    memory_free(channel);
}

/* ---- Subscriptions ---- */

/* `key` comes from make_subscription_key. */
static bool add_subscription(struct client *client, bool is_pattern, struct bytes name,
                             struct bytes key)
{
    struct pubsub *pubsub = &client->kv->pubsub;
    struct subscription *subscription = memory_allocate(sizeof *subscription);
    struct channel *channel = pubsub_find(pubsub, is_pattern, name);
    if (channel == NULL)
        channel = create_channel(pubsub, is_pattern, name);
    if (subscription == NULL || channel == NULL ||
        !add_pointer(&pubsub->subscriptions, key, subscription)) {
        if (channel != NULL)
            release_channel(pubsub, channel);
        memory_free(subscription);
        return false;
    }
    *subscription = (struct subscription){client,
                                          channel,
                                          channel->subscriptions,
                                          &channel->subscriptions,
                                          client->subscriptions[is_pattern],
                                          &client->subscriptions[is_pattern]};
    if (subscription->next != NULL)
        subscription->next->link = &subscription->next;
    if (subscription->next_of_client != NULL)
        subscription->next_of_client->client_link = &subscription->next_of_client;
    channel->subscriptions = client->subscriptions[is_pattern] = subscription;
    channel->count++;
    client->subscription_count++;
    client->pattern_count += is_pattern;
    client->has_subscribed = true;
    return true;
}

void subscription_unlink(struct pubsub *pubsub, struct subscription *subscription)
{
    if (pubsub->next_subscription == subscription)
        pubsub->next_subscription = subscription->next;
    *subscription->link = subscription->next;
    if (subscription->next != NULL)
        subscription->next->link = subscription->link;
}

static void remove_subscription(struct subscription *subscription, struct bytes key)
{
    struct client *client = subscription->client;
    struct pubsub *pubsub = &client->kv->pubsub;
    remove_pointer(&pubsub->subscriptions, key);
    subscription_unlink(pubsub, subscription);
    *subscription->client_link = subscription->next_of_client;
    if (subscription->next_of_client != NULL)
        subscription->next_of_client->client_link = subscription->client_link;
    bide_assert(subscription->channel->count > 0 && client->subscription_count > 0);
    subscription->channel->count--;
    client->subscription_count--;
    client->pattern_count -= subscription->channel->is_pattern;
    release_channel(pubsub, subscription->channel);
    memory_free(subscription);
}

/*
 * The key of each subscription is built again. If memory is exhausted, the entry stays in the table
 * with a dangling pointer, and the client is disconnected. So no lookup reaches it: no other client has this number.
 */
bool pubsub_leave(struct client *client, uint64_t limit)
{
    struct kv *kv = client->kv;
    for (size_t kind = 0; kind < 2; kind++) {
        for (; client->subscriptions[kind] != NULL && kv->work < limit; kv->work++) {
            struct subscription *subscription = client->subscriptions[kind];
            struct buffer key = {0};
            if (!make_subscription_key(&key, client, kind == 1,
                                       channel_name(subscription->channel)))
                client->is_broken = true;
            remove_subscription(subscription, (struct bytes){key.data, buffer_used(&key)});
            buffer_free(&key);
        }
    }
    return client->subscription_count == 0;
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

/*
 * Counts a step of a subscription command. If the work is `limit`, it ends the slice and returns false: the request runs again
 * at argument `next`. Confirmations count as pushes, so CLIENT REPLY does not leave them out.
 */
static bool subscribing_step(struct client *client, uint64_t limit, size_t next)
{
    if (client->kv->work < limit && buffer_used(&client->out) < CLIENT_MAX_REPLIES) {
        client->kv->work++;
        return true;
    }
    client->next_argument = next;
    client->pushed = buffer_used(&client->out);
    client_end_turn(client);
    return false;
}

/* The first argument of a slice. */
static size_t subscribing_first(const struct client *client)
{
    return client->next_argument > 0 ? client->next_argument : 1;
}

static void subscribe_to(struct client *client, bool is_pattern, struct bytes name)
{
    struct buffer key = {0};
    if (name.size > PUBSUB_MAX_NAME) {
        reply_error(client, "-ERR a channel or pattern may have %d bytes", PUBSUB_MAX_NAME);
        return;
    }
    bool done = make_subscription_key(&key, client, is_pattern, name);
    struct bytes key_bytes = {key.data, buffer_used(&key)};
    bool is_new = done && pointer_at(&client->kv->pubsub.subscriptions, key_bytes) == NULL;
    bool is_refused = is_new && is_pattern && client->pattern_count >= client->kv->options.patterns;
    if (is_new && !is_refused)
        done = add_subscription(client, is_pattern, name, key_bytes);
    buffer_free(&key);
    if (is_refused)
        reply_error(client, "-ERR a client may subscribe to %zu patterns",
                    client->kv->options.patterns);
    else if (done)
        reply_subscribed(client, is_pattern ? "psubscribe" : "subscribe", name);
    else
        reply_no_memory(client);
}

static void subscribe_to_arguments(struct client *client, bool is_pattern)
{
    const uint64_t limit = client_work_limit(client);
    for (size_t i = subscribing_first(client); i < client->request.count; i++) {
        if (!subscribing_step(client, limit, i))
            return;
        subscribe_to(client, is_pattern, client_argument(client, i));
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

/* Returns false after an error reply. */
static bool unsubscribe_from(struct client *client, bool is_pattern, struct bytes name)
{
    struct buffer key = {0};
    if (!make_subscription_key(&key, client, is_pattern, name)) {
        reply_no_memory(client);
        return false;
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
    return true;
}

/* Without arguments: from all, the newest first. */
static void unsubscribe_from_all(struct client *client, bool is_pattern)
{
    const uint64_t limit = client_work_limit(client);
    if (client->next_argument == 0 && client->subscriptions[is_pattern] == NULL)
        reply_subscribed(client, is_pattern ? "punsubscribe" : "unsubscribe",
                         (struct bytes){NULL, 0});
    while (client->subscriptions[is_pattern] != NULL && !client->is_broken) {
        if (!subscribing_step(client, limit, 1))
            return;
        if (!unsubscribe_from(client, is_pattern,
                              channel_name(client->subscriptions[is_pattern]->channel)))
            break;
    }
    client->pushed = buffer_used(&client->out);
}

static void unsubscribe_from_arguments(struct client *client, bool is_pattern)
{
    const uint64_t limit = client_work_limit(client);
    for (size_t i = subscribing_first(client); i < client->request.count; i++) {
        if (!subscribing_step(client, limit, i))
            return;
        unsubscribe_from(client, is_pattern, client_argument(client, i));
    }
    client->pushed = buffer_used(&client->out);
}

static void unsubscribe(struct client *client, bool is_pattern)
{
    if (client->request.count == 1)
        unsubscribe_from_all(client, is_pattern);
    else
        unsubscribe_from_arguments(client, is_pattern);
}

void command_unsubscribe(struct client *client)
{
    unsubscribe(client, false);
}

void command_punsubscribe(struct client *client)
{
    unsubscribe(client, true);
}

/* The names and how many subscriptions each has, in slices. */
static void count_subscriptions(struct client *client)
{
    struct slice slice = {.begin = buffer_used(&client->out),
                          .next = client->listing.cursor,
                          .limit = client->transaction.is_running ? UINT64_MAX
                                                                  : client_work_limit(client)};
    if (slice.next == 0)
        reply_array(client, 2 * (client->request.count - 2));
    for (size_t i = slice.next > 0 ? slice.next : 2;
         i < client->request.count && !client_refuses_reply(client); i++, client->kv->work++) {
        struct bytes name = client_argument(client, i);
        if (slice_is_over(client, &slice)) {
            slice_pause(client, &slice, i);
            return;
        }
        const struct channel *channel = pubsub_find(&client->kv->pubsub, false, name);
        reply_bulk(client, name);
        reply_number(client, channel != NULL ? (int64_t)channel->count : 0);
    }
    slice_finish(client, &slice);
}

/* PUBSUB CHANNELS [pattern], NUMSUB [channel ...], NUMPAT */
void command_pubsub(struct client *client)
{
    struct pubsub *pubsub = &client->kv->pubsub;
    struct bytes word = client_argument(client, 1), all = {NULL, 0};
    if (bytes_are(word, "NUMPAT") && client->request.count == 2)
        reply_number(client, (int64_t)pubsub->pattern_count);
    else if (bytes_are(word, "NUMSUB"))
        count_subscriptions(client);
    else if (bytes_are(word, "CHANNELS") && client->request.count <= 3)
        list_names(client, &pubsub->channels,
                   client->request.count == 3 ? client_argument(client, 2) : all, NULL);
    else
        REPLY(client, "-ERR unknown subcommand or wrong number of arguments for 'pubsub'");
}

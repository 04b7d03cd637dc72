/* MULTI, EXEC, DISCARD, WATCH and UNWATCH. transaction.h has the model. */
#include "transaction.h"

#include "commands.h"

#include <stdlib.h>

/* ---- Watched keys ---- */

/* The value of a watched key's entry; copied, since entries do not align it. */
struct watched {
    uint64_t version, watches;
};

/* A key in the state in which a client has seen it. The key follows. */
struct watch {
    uint64_t version, flushes;
    bool exists;
    size_t key_size;
};

void watching_init(struct watching *watching, const uint64_t key[2])
{
    *watching = (struct watching){.flushes = 0};
    table_init(&watching->keys, key);
}

void watching_free(struct watching *watching)
{
    bide_assert(watching->keys.count == 0); /* no client, so no watch */
    while (!table_free_some(&watching->keys, 1024))
        continue;
}

static struct entry **find_watched(struct watching *watching, struct bytes key)
{
    struct entry **link = table_find(&watching->keys, key, table_hash(&watching->keys, key));
    return link != NULL && *link != NULL ? link : NULL;
}

static struct watched get_watched(const struct entry *entry)
{
    struct watched watched;
    memcpy(&watched, entry->bytes + entry->key_size, sizeof watched);
    return watched;
}

static void put_watched(struct entry *entry, struct watched watched)
{
    memcpy(entry->bytes + entry->key_size, &watched, sizeof watched);
}

void watching_touch(struct watching *watching, struct bytes key)
{
    struct entry **link = find_watched(watching, key);
    if (link == NULL)
        return;
    struct watched watched = get_watched(*link);
    watched.version++;
    put_watched(*link, watched);
}

/* Counts another watch of the key, and returns its entry. Returns NULL if memory is exhausted. */
static struct entry *add_watch(struct watching *watching, struct bytes key)
{
    struct entry **link = find_watched(watching, key), *entry;
    struct watched watched = {0, 0};
    if (link != NULL) {
        entry = *link;
        watched = get_watched(entry);
    } else {
        entry = table_add(&watching->keys, key, table_hash(&watching->keys, key), sizeof watched);
        if (entry == NULL)
            return NULL;
        entry->value_size = sizeof watched;
    }
    watched.watches++;
    put_watched(entry, watched);
    return entry;
}

static void remove_watch(struct watching *watching, struct bytes key)
{
    struct entry **link = find_watched(watching, key);
    bide_assert(link != NULL);
    struct watched watched = get_watched(*link);
    watched.watches--;
    put_watched(*link, watched);
    if (watched.watches == 0)
        memory_free(table_unlink(&watching->keys, link));
}

/* Reads the watch at *at and moves *at behind it. Returns false if there is none. */
static bool next_watch(const struct buffer *watches, size_t *at, struct watch *watch,
                       struct bytes *key)
{
    if (*at == buffer_used(watches))
        return false;
    const char *from = watches->data + watches->begin + *at;
    memcpy(watch, from, sizeof *watch);
    *key = (struct bytes){from + sizeof *watch, watch->key_size};
    *at += sizeof *watch + key->size;
    return true;
}

static void watch_key(struct client *client, struct bytes key)
{
    struct watching *watching = &client->kv->watching;
    struct buffer *watches = &client->transaction.watches;
    struct entry *entry = NULL;
    struct watch watch = {.flushes = watching->flushes, .key_size = key.size};
    watch.exists = keyspace_peek(&client->kv->keys, key) != NULL;
    if (buffer_reserve(watches, sizeof watch + key.size))
        entry = add_watch(watching, key);
    if (entry == NULL) {
        client->is_broken = true; /* EXEC must not run */
        return;
    }
    watch.version = get_watched(entry).version;
    buffer_append(watches, &watch, sizeof watch);
    buffer_append(watches, key.data, key.size);
}

/* True if a watched key has changed. One whose time has passed is removed first, which is a change. */
static bool has_watched_change(struct client *client)
{
    struct watching *watching = &client->kv->watching;
    struct watch watch;
    struct bytes key;
    for (size_t at = 0; next_watch(&client->transaction.watches, &at, &watch, &key);) {
        client->kv->work++;
        keyspace_peek(&client->kv->keys, key);
        if (get_watched(*find_watched(watching, key)).version != watch.version ||
            (watch.exists && watching->flushes != watch.flushes))
            return true;
    }
    return false;
}

static void clear_watches(struct client *client)
{
    struct buffer *watches = &client->transaction.watches;
    struct watch watch;
    struct bytes key;
    for (size_t at = 0; next_watch(watches, &at, &watch, &key);)
        remove_watch(&client->kv->watching, key);
    buffer_free(watches);
}

void command_watch(struct client *client)
{
    size_t size = buffer_used(&client->transaction.watches);
    if (client->transaction.is_open) {
        REPLY(client, "-ERR WATCH inside MULTI is not allowed");
        return;
    }
    for (size_t i = 1; i < client->request.count; i++)
        size += sizeof(struct watch) + client_argument(client, i).size;
    if (size > TRANSACTION_MAX_WATCHED) {
        REPLY(client, "-ERR too many watched keys");
        return;
    }
    for (size_t i = 1; i < client->request.count && !client->is_broken; i++)
        watch_key(client, client_argument(client, i));
    reply_ok(client);
}

void command_unwatch(struct client *client)
{
    clear_watches(client);
    reply_ok(client);
}

/* ---- The queue ---- */

void transaction_clear(struct client *client)
{
    clear_watches(client);
    buffer_free(&client->transaction.requests);
    client->transaction = (struct transaction){.is_open = false};
}

void transaction_queue(struct client *client, const struct command *command)
{
    struct transaction *transaction = &client->transaction;
    size_t size = LINE_SIZE;
    for (size_t i = 0; i < client->request.count; i++)
        size += client_argument(client, i).size + BULK_EXTRA;
    if (transaction->is_rejected) { /* its requests are only checked */
        REPLY(client, "+QUEUED");
        return;
    }
    if (transaction->count == TRANSACTION_MAX_REQUESTS ||
        buffer_used(&transaction->requests) + size > client->kv->options.request + LINE_SIZE) {
        transaction->is_rejected = true;
        REPLY(client, "-ERR the transaction is too large");
    } else if (!request_append(&transaction->requests, client, client_argument(client, 0))) {
        transaction->is_rejected = true;
        reply_no_memory(client);
    } else {
        transaction->count++;
        if (transaction->max_arguments < client->request.count)
            transaction->max_arguments = client->request.count;
        transaction->changes |= command_may_change(client, command);
        transaction->publishes |= command->run == command_publish;
        transaction->grows |= (command->kind & GROWS) != 0;
        REPLY(client, "+QUEUED");
        return;
    }
    buffer_free(&transaction->requests);
}

/* ---- Running it ---- */

/*
 * Runs a queued request. The replies of a transaction are sent when all of it has run, so their size
 * is limited, and so is the work. Beyond that, changes are still made, and their replies are errors;
 * anything else is not done.
 */
static void run_queued_request(struct client *client, uint64_t begun)
{
    size_t before = buffer_used(&client->out);
    bool only_changes =
        client_refuses_reply(client) || client->kv->work - begun > TRANSACTION_MAX_WORK;
    if (command_run_queued(client, only_changes)) {
        if (!client_refuses_reply(client))
            return;
        reply_drop(client, before, buffer_used(&client->out));
    }
    REPLY(client, "-ERR the transaction does too much");
}

/*
 * Runs all requests, also if the client cannot have its replies: all or none take effect. What they discard is freed
 * in STEPS_OF_WORK times as many steps as they have worked: a table may have three buckets for each element that was
 * added. So what they build and replace again does not add up.
 */
static void run_queue(struct client *client)
{
    enum { STEPS_OF_WORK = 4 };
    static const struct request_limits no_limits = {SIZE_MAX >> 1, SIZE_MAX >> 1, SIZE_MAX >> 1};
    struct transaction *transaction = &client->transaction;
    const struct buffer in = client->in;
    const struct request request = client->request;
    struct request next = {.capacity = transaction->max_arguments};
    uint64_t begun = client->kv->work, freed = 0;
    if (transaction->count > 0) { /* (later there must be memory for the arguments) */
        next.more = malloc(next.capacity * sizeof *next.more);
        if (next.more == NULL) {
            reply_no_memory(client);
            return;
        }
    }
    reply_array(client, transaction->count);
    client->in = transaction->requests;
    transaction->is_running = true;
    while (buffer_used(&client->in) > 0) {
        client->request = next;
        enum request_state state =
            request_read(&client->request, client->in.data + client->in.begin,
                         buffer_used(&client->in), &no_limits);
        bide_assert(state == REQUEST_COMPLETE && client->request.more == next.more);
        run_queued_request(client, begun);
        client_owe(client);
        uint64_t steps = STEPS_OF_WORK * (client->kv->work - begun);
        if (steps > freed)
            freed += client_free_owed(client, steps - freed);
        client->in.begin += client->request.size;
    }
    client->kv->work += freed;
    transaction->requests = client->in;
    client->in = in;
    client->request = request;
    free(next.more);
}

void command_multi(struct client *client)
{
    if (client->transaction.is_open) {
        REPLY(client, "-ERR MULTI calls can not be nested");
        return;
    }
    client->transaction.is_open = true;
    reply_ok(client);
}

void command_exec(struct client *client)
{
    if (!client->transaction.is_open) {
        REPLY(client, "-ERR EXEC without MULTI");
        return;
    }
    if (client->transaction.is_rejected)
        REPLY(client, "-EXECABORT Transaction discarded because of previous errors.");
    else if (client->transaction.changes && client->kv->journal.is_full)
        reply_refused(client, client->kv->journal.refusal);
    else if (has_watched_change(client))
        reply_null_array(client);
    else
        run_queue(client);
    transaction_clear(client);
}

void command_discard(struct client *client)
{
    if (!client->transaction.is_open) {
        REPLY(client, "-ERR DISCARD without MULTI");
        return;
    }
    transaction_clear(client);
    reply_ok(client);
}

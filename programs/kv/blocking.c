/* Clients that wait for elements of keys. blocking.h has the model. One thread. */
#include "blocking.h"

#include "commands.h"

#include <stdlib.h>

/* A client in a queue of a key. */
struct waiter {
    struct client *client;
    struct waiter_queue *queue;
    struct waited *key;
    struct waiter *next, **link;
};

/* Clients that wait for elements of one type. */
struct waiter_queue {
    struct waiter *first, **end;
};

/* A key for which clients wait, or which is still to be served. */
struct waited {
    struct waiter_queue queues[BLOCKING_TYPES];
    bool is_ready;
    uint64_t serial; /* since when it is ready */
    struct waited *next_ready;
    size_t name_size;
    char name[];
};

void waiting_init(struct waiting *waiting, const uint64_t key[2])
{
    *waiting = (struct waiting){.ready = NULL};
    waiting->ready_end = &waiting->ready;
    table_init(&waiting->keys, key);
    bide_single_consumer_auto_event_init(&waiting->unserved, false);
}

static struct bytes name_of(const struct waited *key)
{
    return (struct bytes){key->name, key->name_size};
}

static struct entry **find_waited(struct waiting *waiting, struct bytes name)
{
    struct entry **link = table_find(&waiting->keys, name, table_hash(&waiting->keys, name));
    return link != NULL && *link != NULL ? link : NULL;
}

static struct waited *waited_of(const struct entry *entry)
{
    struct waited *key;
    memcpy(&key, entry->bytes + entry->key_size, sizeof key);
    return key;
}

/* Finds or adds a key. Returns NULL if memory is exhausted. */
static struct waited *add_waited(struct waiting *waiting, struct bytes name)
{
    struct entry **link = find_waited(waiting, name), *entry;
    if (link != NULL)
        return waited_of(*link);
    struct waited *key = malloc(sizeof *key + name.size);
    if (key == NULL)
        return NULL;
    entry = table_add(&waiting->keys, name, table_hash(&waiting->keys, name), sizeof key);
    if (entry == NULL) {
        free(key);
        return NULL;
    }
    *key = (struct waited){.name_size = name.size};
    for (size_t i = 0; i < BLOCKING_TYPES; i++)
        key->queues[i].end = &key->queues[i].first;
    memcpy(key->name, name.data, name.size);
    entry->value_size = sizeof key;
    memcpy(entry->bytes + entry->key_size, &key, sizeof key);
    return key;
}

static void remove_if_unused(struct waiting *waiting, struct waited *key)
{
    bool is_used = key->is_ready;
    for (size_t i = 0; i < BLOCKING_TYPES; i++)
        is_used |= key->queues[i].first != NULL;
    if (is_used)
        return;
    struct entry **link = find_waited(waiting, name_of(key));
    bide_assert(link != NULL);
    memory_free(table_unlink(&waiting->keys, link));
    free(key);
}

/* Takes the first ready key, which the caller serves. */
static struct waited *take_ready(struct waiting *waiting)
{
    struct waited *key = waiting->ready;
    if (key == NULL)
        return NULL;
    waiting->ready = key->next_ready;
    if (waiting->ready == NULL)
        waiting->ready_end = &waiting->ready;
    return key;
}

void waiting_free(struct waiting *waiting)
{
    struct waited *key;
    bide_assert(waiting->clients == 0);
    while ((key = take_ready(waiting)) != NULL) {
        key->is_ready = false;
        remove_if_unused(waiting, key);
    }
    bide_assert(waiting->keys.count == 0); /* no client, so no key */
    while (!table_free_some(&waiting->keys, 1024))
        continue;
}

void waiting_touch(struct waiting *waiting, struct bytes name)
{
    struct entry **link = find_waited(waiting, name);
    if (link == NULL)
        return;
    struct waited *key = waited_of(*link);
    if (key->is_ready)
        return;
    key->is_ready = true;
    key->serial = ++waiting->serial;
    key->next_ready = NULL;
    *waiting->ready_end = key;
    waiting->ready_end = &key->next_ready;
}

bool waiting_is_ready(struct waiting *waiting, struct bytes name)
{
    struct entry **link = find_waited(waiting, name);
    return link != NULL && waited_of(*link)->is_ready;
}

bool waiting_has_ready_since(const struct waiting *waiting, uint64_t serial)
{
    return waiting->ready != NULL && waiting->ready->serial <= serial; /* (they are in order) */
}

/* ---- Serving ---- */

static void serve_client(struct client *client, struct bytes key)
{
    struct kv *kv = client->kv;
    struct client *running = kv->running;
    size_t records = buffer_used(&kv->journal.filling), replies = buffer_used(&client->out);
    kv->work += 1 + client->blocking.count;
    kv->running = client;
    kv->keys.uses.last = NULL;
    if (reply_reserve_change(client))
        client->blocking.serve(client, key);
    reply_hide(client, replies);
    if (kv->journal.is_on && buffer_used(&kv->journal.filling) > records)
        reply_note_change(client, replies);
    reply_deferred(client);
    kv->running = running;
    blocking_end(client);
}

/* The queue of the clients that wait for the type of the key's value; NULL if there is none. */
static struct waiter_queue *queue_to_serve(struct kv *kv, struct waited *key)
{
    struct entry **link = keyspace_find(&kv->keys, name_of(key));
    kv->work++;
    if (link == NULL || blocking_queue_of((*link)->type) == BLOCKING_TYPES)
        return NULL;
    return &key->queues[blocking_queue_of((*link)->type)];
}

/*
 * Serves the clients of a key while it has elements, and while the work is less than `limit`: then it
 * returns false. Serving a client ends its wait. The key stays ready meanwhile: its changes in this
 * function do not count, since the loop sees them.
 */
static bool serve_key(struct kv *kv, struct waited *key, uint64_t limit)
{
    struct waiter_queue *queue;
    while ((queue = queue_to_serve(kv, key)) != NULL && queue->first != NULL) {
        if (kv->work >= limit)
            return false;
        serve_client(queue->first->client, name_of(key));
    }
    return true;
}

bool waiting_serve(struct kv *kv)
{
    struct waiting *waiting = &kv->waiting;
    uint64_t limit = kv->work + CLIENT_MAX_WORK;
    kv->notify_limit = limit;
    /* (an element that is taken while the journal is full would be refused, and lost to the client) */
    while (!kv->journal.is_full && waiting->ready != NULL && kv->work < limit) {
        struct waited *key = waiting->ready;
        if (!serve_key(kv, key, limit))
            break;
        take_ready(waiting);
        key->is_ready = false;
        remove_if_unused(waiting, key);
    }
    waiting_leave(waiting);
    return waiting->ready != NULL;
}

/* ---- One client ---- */

static struct waiter *waiter_at_end(const struct waiter_queue *queue)
{
    return bide_container_of(queue->end, struct waiter, next);
}

/*
 * Appends a waiter of the client to the queue of a key, unless it is there already. Returns false if memory
 * is exhausted.
 */
static bool join_queue(struct client *client, struct bytes name)
{
    struct waited *key = add_waited(&client->kv->waiting, name);
    if (key == NULL)
        return false;
    struct waiter_queue *queue = &key->queues[blocking_queue_of(client->blocking.type)];
    if (queue->first != NULL && waiter_at_end(queue)->client == client)
        return true; /* (the client joins all queues at once) */
    struct waiter *waiter = &client->blocking.waiters[client->blocking.count++];
    *waiter = (struct waiter){client, queue, key, NULL, queue->end};
    *queue->end = waiter;
    queue->end = &waiter->next;
    return true;
}

static void leave_queue(struct waiting *waiting, struct waiter *waiter)
{
    struct waited *key = waiter->key;
    *waiter->link = waiter->next;
    if (waiter->next != NULL)
        waiter->next->link = waiter->link;
    else
        waiter->queue->end = waiter->link;
    remove_if_unused(waiting, key);
}

void blocking_begin(struct client *client, enum value_type type, size_t first_key, size_t keys,
                    int64_t timeout, blocking_serve_function *serve)
{
    struct blocking *blocking = &client->blocking;
    bide_assert(!blocking->is_waiting && !client->transaction.is_running);
    if (keys > BLOCKING_MAX_KEYS) {
        REPLY(client, "-ERR too many keys to wait for");
        return;
    }
    if (buffer_used(&client->out) > 0 && !client->has_subscribed) {
        client_repeat_request(client); /* (`out` may not grow while it is being sent) */
        return;
    }
    blocking->waiters = malloc(keys * sizeof *blocking->waiters);
    blocking->is_waiting = true;
    blocking->type = type;
    client->kv->waiting.clients++;
    for (size_t i = 0; i < keys; i++) {
        if (blocking->waiters == NULL ||
            !join_queue(client, client_argument(client, first_key + i))) {
            blocking_end(client);
            reply_no_memory(client);
            return;
        }
    }
    blocking->timeout = timeout;
    blocking->serve = serve;
    client->control = CONTROL_WAIT;
}

void blocking_serve_or_wait(struct client *client, enum value_type type, size_t first_key,
                            size_t keys, size_t timeout, blocking_serve_function *serve)
{
    int64_t time;
    size_t key;
    if (!blocking_read_timeout(client, timeout, &time) ||
        !find_first_value(client, type, first_key, keys, &key))
        return;
    if (key != 0)
        serve(client, client_argument(client, key));
    else if (client->transaction.is_running)
        reply_null_array(client);
    else
        blocking_begin(client, type, first_key, keys, time, serve);
}

void blocking_end(struct client *client)
{
    struct blocking *blocking = &client->blocking;
    if (!blocking->is_waiting)
        return;
    while (blocking->count > 0)
        leave_queue(&client->kv->waiting, &blocking->waiters[--blocking->count]);
    free(blocking->waiters);
    blocking->waiters = NULL;
    blocking->is_waiting = false;
    client->kv->waiting.clients--;
    bide_single_consumer_auto_event_set(&blocking->served);
}

bool blocking_read_timeout(struct client *client, size_t i, int64_t *timeout)
{
    const long double max =
        (long double)(INT64_MAX / 4000000); /* as nanoseconds, far below the end of time */
    long double seconds;
    if (!fraction_read(client_argument(client, i), &seconds)) {
        REPLY(client, "-ERR timeout is not a float or out of range");
        return false;
    }
    if (seconds < 0) {
        REPLY(client, "-ERR timeout is negative");
        return false;
    }
    if (seconds * 1000 > max) {
        REPLY(client, "-ERR timeout is out of range");
        return false;
    }
    *timeout = (int64_t)(seconds * 1000);
    *timeout += (long double)*timeout < seconds * 1000;
    return true;
}

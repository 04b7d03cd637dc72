/*
 * Reading messages of a Redis stream: redis.h. A read first delivers again what was rejected and is
 * due, then messages that other handles have left, then new ones.
 */
#define _GNU_SOURCE
#include "redis.h"

#include "bide/coroutine.h"
#include "bide/sleep.h"

#include "../coroutine/lock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- A read ---- */

/* The state of one call. */
struct redis_read {
    struct log_redis *redis;
    struct redis_link *link;
    const bide_log_consumer *consumer;
    struct redis_group *group;
    uint64_t owner;
    bide_log_message *messages;
    uint32_t count, max;
};

static bool redis_is_named(const struct redis_group *group)
{
    return group->head.name[0] != '\0';
}

/* Reads `entries` entries, behind each other, to the messages that are there. */
static int redis_read_entries(struct redis_read *read, int64_t entries)
{
    bide_log_position last = {0, 0};
    for (int64_t i = 0; i < entries; i++) {
        if (read->count == read->max) { /* more than was asked for */
            bide_redis_link_close_(read->link);
            return -EPROTO;
        }
        bide_log_message *message = &read->messages[read->count];
        int status = bide_redis_read_entry_(read->link, message);
        if (status == -EMSGSIZE) {
            read->group->large = message->position;
            read->group->has_large = true;
            last = message->position;
        } else if (status < 0) {
            return status;
        }
        if (status == 1)
            last = message->position;
        read->count += status == 1;
    }
    if (!redis_is_named(read->group) && bide_log_position_compare(read->group->cursor, last) < 0)
        read->group->cursor = last;
    return 0;
}

/* Under the lock: the consumer has not unsubscribed since. */
static bool redis_is_subscribed(const struct redis_read *read)
{
    return read->consumer->group == &read->group->head && read->consumer->owner == read->owner;
}

/* The messages from `first` on are the consumer's now. Messages that another consumer has are dropped. */
static int redis_deliver(struct redis_read *read, uint32_t first)
{
    struct log_state *state = &read->redis->state;
    uint32_t kept = first;
    lock_take(&state->lock);
    bool is_subscribed = redis_is_subscribed(read);
    int status = bide_redis_reserve_(read->group, read->count - first);
    for (uint32_t i = first; i < read->count; i++) {
        bide_log_message *message = &read->messages[i];
        struct redis_entry *entry = NULL;
        if (status == 0 &&
            (bide_redis_find_(read->group, message->position) == NULL ||
             bide_redis_find_(read->group, message->position)->state == REDIS_ENTRY_DONE))
            entry = bide_redis_add_(read->group, message->position);
        if (entry == NULL) {
            bide_redis_message_drop_(message);
            continue;
        }
        entry->owner = read->owner;
        entry->deliveries = message->deliveries;
        entry->state = REDIS_ENTRY_WITH;
        entry->memory = bide_redis_memory_of_(message);
        if (!is_subscribed) { /* the group's others get it */
            bide_redis_reject_(entry, 0);
            continue;
        }
        read->messages[kept++] = *message;
    }
    lock_free(&state->lock);
    read->count = kept;
    return status;
}

/* Messages that were read, and are not delivered. */
static void redis_read_drop(struct redis_read *read, uint32_t first)
{
    for (uint32_t i = first; i < read->count; i++)
        bide_redis_message_drop_(&read->messages[i]);
    read->count = first;
}

/* The messages from `first` on have been read, with that status: they are delivered, or after an error dropped. */
static int redis_finish_reading(struct redis_read *read, uint32_t first, int status)
{
    if (status == 0)
        return redis_deliver(read, first);
    redis_read_drop(read, first);
    return status;
}

/* How many more messages may be delivered. */
static uint32_t redis_room(struct redis_read *read)
{
    struct log_state *state = &read->redis->state;
    lock_take(&state->lock);
    size_t used = read->group->count;
    lock_free(&state->lock);
    size_t room = used < state->window ? state->window - used : 0;
    uint32_t wanted = read->max - read->count;
    return room < wanted ? (uint32_t)room : wanted;
}

/* The rejected messages that are due, which become the consumer's: their IDs and deliveries. */
static uint32_t redis_take_rejected(struct redis_read *read)
{
    struct log_state *state = &read->redis->state;
    uint64_t now = bide_platform.now();
    uint32_t count = 0;
    lock_take(&state->lock);
    for (size_t i = 0; i < read->group->count && count < read->max; i++) {
        struct redis_entry *entry = bide_redis_entry_(read->group, i);
        if (entry->state != REDIS_ENTRY_REJECTED || entry->due > now)
            continue;
        entry->state = REDIS_ENTRY_WITH;
        entry->owner = read->owner;
        entry->deliveries += entry->deliveries != UINT32_MAX;
        read->messages[count++] =
            (bide_log_message){.position = entry->id, .deliveries = entry->deliveries};
    }
    lock_free(&state->lock);
    return count;
}

/* The reply of one of them: its message, or `encoded` is NULL. */
static int redis_read_one(struct redis_read *read, bide_log_message *message)
{
    const bide_log_message taken = *message;
    int64_t entries = 0;
    bool found = false;
    int status = bide_redis_read_array_(read->link, &entries);
    for (int64_t i = 0; status == 0 && i < entries; i++) {
        status = bide_redis_read_entry_(read->link, message);
        found = found || status == 1;
        if (status == -EMSGSIZE || status == 1)
            status = 0;
    }
    if (!found)
        *message = taken;
    message->deliveries = taken.deliveries;
    return status;
}

/* The calls for `taken` rejected messages have ended: the first `answered` have a reply. */
static void redis_settle_rejected(struct redis_read *read, uint32_t taken, uint32_t answered)
{
    struct log_state *state = &read->redis->state;
    lock_take(&state->lock);
    for (uint32_t i = 0; i < taken; i++) {
        bide_log_message *message = &read->messages[i];
        struct redis_entry *entry = bide_redis_find_(read->group, message->position);
        bool is_ours = entry != NULL && entry->state == REDIS_ENTRY_WITH &&
                       entry->owner == read->owner && entry->memory == NULL;
        if (is_ours && message->encoded != NULL) {
            entry->memory = bide_redis_memory_of_(message);
            read->messages[read->count++] = *message;
        } else if (message->encoded != NULL) {
            bide_redis_message_drop_(message); /* the consumer has unsubscribed */
        } else if (is_ours && i < answered) {
            bide_redis_finish_(read->group, entry); /* it was removed, or another acknowledged it */
        } else if (is_ours) {
            entry->deliveries--;
            bide_redis_reject_(entry, 0);
        }
    }
    lock_free(&state->lock);
}

static int redis_read_rejected(struct redis_read *read)
{
    struct redis_link *link = read->link;
    uint32_t taken = redis_take_rejected(read), answered = 0;
    if (taken == 0)
        return 0;
    for (uint32_t i = 0; i < taken; i++) {
        const bide_log_message *message = &read->messages[i];
        bool is_named = redis_is_named(read->group);
        bide_redis_array_(link, is_named ? 8 : 4);
        bide_redis_text_(link, is_named ? "XCLAIM" : "XRANGE");
        bide_redis_text_(link, read->redis->stream);
        if (is_named) {
            bide_redis_text_(link, read->group->head.name);
            bide_redis_text_(link, read->redis->consumer);
            bide_redis_text_(link, "0");
        }
        bide_redis_id_(link, message->position);
        if (is_named) {
            bide_redis_text_(link, "RETRYCOUNT");
            bide_redis_number_(link, message->deliveries);
        } else {
            bide_redis_id_(link, message->position);
        }
    }
    int status = bide_redis_flush_(link), failed = 0;
    while (status == 0 && answered < taken) {
        status = redis_read_one(read, &read->messages[answered]);
        if (status < 0 && link->descriptor >= 0) { /* the server refuses: not removed */
            failed = status;
            status = 0;
        }
        answered += status == 0;
    }
    redis_settle_rejected(read, taken, failed != 0 ? 0 : answered);
    return status < 0 ? status : failed;
}

/* Sets how often the messages from `first` on were delivered. */
static int redis_read_deliveries(struct redis_read *read, uint32_t first)
{
    struct redis_link *link = read->link;
    for (uint32_t i = first; i < read->count; i++) {
        bide_redis_array_(link, 6);
        bide_redis_text_(link, "XPENDING");
        bide_redis_text_(link, read->redis->stream);
        bide_redis_text_(link, read->group->head.name);
        bide_redis_id_(link, read->messages[i].position);
        bide_redis_id_(link, read->messages[i].position);
        bide_redis_text_(link, "1");
    }
    int status = first < read->count ? bide_redis_flush_(link) : 0;
    for (uint32_t i = first; status == 0 && i < read->count; i++) {
        int64_t found = 0, parts = 0, deliveries = 1;
        status = bide_redis_read_array_(link, &found);
        if (status == 0 && found == 1)
            status = bide_redis_read_array_(link, &parts);
        for (int64_t part = 0; status == 0 && part < parts; part++)
            status =
                part == 3 ? bide_redis_read_number_(link, &deliveries) : bide_redis_skip_(link);
        read->messages[i].deliveries = deliveries < 1            ? 1
                                       : deliveries > UINT32_MAX ? UINT32_MAX
                                                                 : (uint32_t)deliveries;
    }
    if (status < 0)
        bide_redis_link_close_(link); /* replies may be left */
    return status;
}

/* One step of the scan for messages that were left; the place of the next, zero at the end. */
static int redis_claim_step(struct redis_read *read, bide_log_position *cursor, uint32_t room)
{
    struct redis_link *link = read->link;
    uint32_t first = read->count;
    int64_t parts = 0, entries = 0;
    bool is_nil = false;
    bide_redis_array_(link, 8);
    bide_redis_text_(link, "XAUTOCLAIM");
    bide_redis_text_(link, read->redis->stream);
    bide_redis_text_(link, read->group->head.name);
    bide_redis_text_(link, read->redis->consumer);
    bide_redis_number_(link, read->redis->lease / 1000000);
    bide_redis_id_(link, *cursor);
    bide_redis_text_(link, "COUNT");
    bide_redis_number_(link, room);
    int status = bide_redis_flush_(link);
    if (status == 0)
        status = bide_redis_read_array_(link, &parts);
    if (status == 0)
        status = bide_redis_read_id_(link, cursor, &is_nil);
    if (status == 0)
        status = bide_redis_read_array_(link, &entries);
    if (status == 0)
        status = redis_read_entries(read, entries);
    for (int64_t i = 2; status == 0 && i < parts; i++) /* the IDs of removed entries */
        status = bide_redis_skip_(link);
    if (status == 0)
        status = redis_read_deliveries(read, first);
    return redis_finish_reading(read, first, status);
}

/* Claims messages whose consumers have not renewed them. */
static int redis_read_left(struct redis_read *read)
{
    struct log_state *state = &read->redis->state;
    bide_log_position cursor = {0, 0};
    lock_take(&state->lock);
    bool claims = read->group->claims && redis_is_named(read->group);
    read->group->claims = false;
    lock_free(&state->lock);
    if (!claims)
        return 0;
    int status = 0;
    do {
        uint32_t room = redis_room(read);
        if (room == 0)
            break;
        status = redis_claim_step(read, &cursor, room);
    } while (status == 0 && (cursor.high_ != 0 || cursor.low_ != 0));
    if (status < 0 || cursor.high_ != 0 || cursor.low_ != 0) {
        lock_take(&state->lock);
        read->group->claims = true;
        lock_free(&state->lock);
    }
    return status;
}

static void redis_send_read(const struct redis_read *read, uint32_t room)
{
    struct redis_link *link = read->link;
    if (redis_is_named(read->group)) {
        bide_redis_array_(link, 9);
        bide_redis_text_(link, "XREADGROUP");
        bide_redis_text_(link, "GROUP");
        bide_redis_text_(link, read->group->head.name);
        bide_redis_text_(link, read->redis->consumer);
        bide_redis_text_(link, "COUNT");
        bide_redis_number_(link, room);
        bide_redis_text_(link, "STREAMS");
        bide_redis_text_(link, read->redis->stream);
        bide_redis_text_(link, ">");
        return;
    }
    char after[BIDE_LOG_POSITION_TEXT + 1] = "(";
    (void)bide_log_position_print(read->group->cursor, after + 1, sizeof after - 1);
    bide_redis_array_(link, 6);
    bide_redis_text_(link, "XRANGE");
    bide_redis_text_(link, read->redis->stream);
    bide_redis_text_(link, after);
    bide_redis_text_(link, "+");
    bide_redis_text_(link, "COUNT");
    bide_redis_number_(link, room);
}

static int redis_read_new(struct redis_read *read)
{
    struct redis_link *link = read->link;
    uint32_t room = redis_room(read), first = read->count;
    int64_t entries = 0, streams = 1, parts = 2;
    if (room == 0)
        return 0;
    redis_send_read(read, room);
    int status = bide_redis_flush_(link);
    if (status == 0 && redis_is_named(read->group)) {
        status = bide_redis_read_array_(link, &streams);
        if (status == 0 && streams == 1)
            status = bide_redis_read_array_(link, &parts);
        if (status == 0 && streams == 1)
            status = bide_redis_skip_(link); /* its name */
    }
    if (status == 0 && streams == 1 && parts == 2)
        status = bide_redis_read_array_(link, &entries);
    if (status == 0)
        status = redis_read_entries(read, entries);
    return redis_finish_reading(read, first, status);
}

/* ---- The operation ---- */

/* Once, with a connection. */
static int redis_read_once(struct redis_read *read)
{
    if (read->group->has_large) {
        read->messages[0] = (bide_log_message){.position = read->group->large};
        read->group->has_large = false;
        return -EBADMSG;
    }
    int status = redis_read_rejected(read);
    if (status == 0)
        status = redis_read_left(read);
    if (status == 0 && read->count < read->max)
        status = redis_read_new(read);
    if (status == 0 && read->count == 0 && read->group->has_large)
        return redis_read_once(read);
    return read->count != 0 ? 0 : status;
}

/* On a thread for blocking calls. */
static void redis_read_call(void *argument)
{
    bide_log_operation *self = argument;
    struct log_redis *redis = bide_redis_of_(self->log);
    struct log_state *state = &redis->state;
    struct redis_read read = {.redis = redis,
                              .link = &redis->reading,
                              .consumer = self->consumer,
                              .messages = self->messages,
                              .max = self->wanted};
    pthread_mutex_lock(&redis->io);
    lock_take(&state->lock);
    if (self->consumer->group != NULL)
        read.group = bide_container_of(self->consumer->group, struct redis_group, head);
    read.owner = self->consumer->owner;
    lock_free(&state->lock);
    self->status = read.group == NULL ? -EPIPE : 0;
    for (int attempt = 0; read.group != NULL && attempt < 2; attempt++) {
        self->status = bide_redis_begin_(read.link);
        if (self->status == 0)
            self->status = redis_read_once(&read);
        else
            break;
        if (!bide_redis_is_lost_(self->status))
            break;
    }
    self->count = read.count;
    pthread_mutex_unlock(&redis->io);
}

/* Messages of a read that its coroutine does not get: they were not delivered. */
static void redis_read_release(bide_frame *frame)
{
    bide_log_operation *self = bide_container_of(frame, bide_log_operation, task.frame);
    struct log_state *state = self->log->state;
    lock_take(&state->lock);
    for (uint32_t i = 0; self->consumer->group != NULL && i < self->count; i++) {
        struct redis_group *group =
            bide_container_of(self->consumer->group, struct redis_group, head);
        struct redis_entry *entry = bide_redis_find_(group, self->messages[i].position);
        if (entry != NULL && entry->state == REDIS_ENTRY_WITH &&
            entry->owner == self->consumer->owner) {
            entry->deliveries--;
            bide_redis_reject_(entry, 0);
        }
    }
    lock_free(&state->lock);
    self->count = 0;
    bide_notify_all(&state->news);
}

/* Before it looks: its wait begins, and `claimed` becomes whether the stream is watched. */
static void redis_read_begins(bide_log_operation *self)
{
    struct log_redis *redis = bide_redis_of_(self->log);
    (void)!bide_notify_wait(&self->notified, &redis->state.news); /* 2 */
    lock_take(&redis->state.lock);
    self->claimed = redis->is_watching;
    lock_free(&redis->state.lock);
    self->count = 0;
    self->status = 0;
    self->is_fetching = true;
}

/* It has looked, and found none. 1: it waits, until self->due. */
static int redis_read_waits(bide_log_operation *self)
{
    struct log_redis *redis = bide_redis_of_(self->log);
    struct log_state *state = &redis->state;
    bool is_drained = true;
    self->due = BIDE_FOREVER;
    lock_take(&state->lock);
    const struct redis_group *group =
        self->consumer->group != NULL
            ? bide_container_of(self->consumer->group, struct redis_group, head)
            : NULL;
    for (size_t i = 0; group != NULL && i < group->count; i++) {
        const struct redis_entry *entry = bide_redis_entry_(group, i);
        if (entry->state != REDIS_ENTRY_REJECTED)
            continue;
        is_drained = false;
        if (entry->due < self->due)
            self->due = entry->due;
    }
    bool ends = group == NULL ||
                (self->log->is_closed && is_drained && self->log->claims == 0 && state->left == 0);
    bool asks = !ends && self->claimed == 0 && !redis->is_watching;
    redis->wants_watch = redis->wants_watch || asks;
    lock_free(&state->lock);
    if (asks)
        bide_redis_wake_(redis);
    return ends ? -EPIPE : 1;
}

static const bide_coroutine_type redis_read_type = {.name = "task", .release = redis_read_release};

bide_coroutine_of(redis_read_type, redis_read_body)
{
    bide_begin(redis_read_body, bide_log_operation * self);
    int status;
    if (self->wanted == 0)
        bide_return(-EINVAL);
    for (;;) {
        redis_read_begins(self);
        bide_await_status(
            status, bide_blocking_run(&self->call, self->log->threads, redis_read_call, self));
        self->is_fetching = false;
        if (status == 0)
            status = self->status;
        if (status < 0 || self->count != 0)
            bide_return(status);
        status = redis_read_waits(self);
        if (status < 0)
            bide_return(status);
        if (self->due == BIDE_FOREVER) {
            bide_try(&self->notified.waiter.awaiter);
            continue;
        }
        bide_await_status(
            status, bide_with_deadline(&self->limited, self->due, &self->notified.waiter.awaiter));
        if (status < 0 && !(status == -ETIMEDOUT && bide_with_deadline_passed(&self->limited)))
            bide_return(status);
    }
    bide_finally();
    if (self->is_fetching) /* it is destroyed between the end of the call and its own next step */
        redis_read_release(&self->task.frame);
    bide_end();
}

bide_awaiter *bide_redis_read_messages_(bide_log_operation *operation)
{
    return bide_task_init(&operation->task, &redis_read_body);
}

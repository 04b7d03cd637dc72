/* Groups of a Redis stream: their members, acknowledgements, and what they leave. redis.h. */
#define _GNU_SOURCE
#include "redis.h"

#include "bide/coroutine.h"
#include "bide/sleep.h"

#include "../coroutine/lock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { REDIS_ACKNOWLEDGED = 1000 /* in one command */ };

static struct redis_group *redis_group_of(const bide_log_consumer *consumer)
{
    return consumer->group != NULL ? bide_container_of(consumer->group, struct redis_group, head)
                                   : NULL;
}

/* The group of that name, or NULL. Under the lock. */
static struct redis_group *redis_group_find(const struct log_redis *redis, const char *name)
{
    struct redis_group *group = redis->groups;
    while (group != NULL && strcmp(group->head.name, name) != 0)
        group = group->following;
    return group;
}

/* ---- Subscribe ---- */

/* Where a group begins that is new: after this ID. */
static bide_log_position redis_begin_after(const bide_log_consumer_options *options)
{
    const bide_log_position last = {UINT64_MAX, UINT64_MAX - 1};
    if (options->from == BIDE_LOG_FROM_POSITION)
        return bide_log_position_compare(options->position, last) > 0 ? last : options->position;
    uint64_t first = options->time / 1000000 + (options->time % 1000000 != 0);
    if (options->from == BIDE_LOG_FROM_TIME && first != 0)
        return (bide_log_position){first - 1, UINT64_MAX};
    return (bide_log_position){0, 0};
}

/* Makes the group in the server, or sets the cursor of one that has no name. */
static int redis_group_begin(struct log_redis *redis, struct redis_group *group,
                             const bide_log_consumer_options *options)
{
    struct redis_link *link = &redis->reading;
    bool is_end = options->from == BIDE_LOG_FROM_END;
    group->cursor = redis_begin_after(options);
    if (group->head.name[0] == '\0')
        return is_end ? bide_redis_read_newest_(link, &group->cursor) : 0;
    bide_redis_array_(link, 6);
    bide_redis_text_(link, "XGROUP");
    bide_redis_text_(link, "CREATE");
    bide_redis_text_(link, redis->stream);
    bide_redis_text_(link, group->head.name);
    if (is_end)
        bide_redis_text_(link, "$");
    else
        bide_redis_id_(link, group->cursor);
    bide_redis_text_(link, "MKSTREAM");
    int status = bide_redis_flush_(link);
    if (status == 0)
        status = bide_redis_read_ok_(link);
    return status == -EEXIST && strncmp(link->text, "BUSYGROUP", 9) == 0 ? 0 : status;
}

/* The consumer joins the group of that name, or `created`, which is NULL afterwards if it does. */
static int redis_join(bide_log_operation *self, struct redis_group **created)
{
    struct log_redis *redis = bide_redis_of_(self->log);
    struct log_state *state = &redis->state;
    lock_take(&state->lock);
    struct redis_group *group =
        self->options.group != NULL ? redis_group_find(redis, self->options.group) : NULL;
    if (self->log->is_closed) {
        lock_free(&state->lock);
        return -EPIPE;
    }
    if (group == NULL) {
        group = *created;
        *created = NULL;
        group->following = redis->groups;
        redis->groups = group;
    }
    group->claims = true;
    group->head.members++;
    self->log->consumers++;
    self->consumer->group = &group->head;
    self->consumer->owner = ++state->owners;
    lock_free(&state->lock);
    return 0;
}

static void redis_subscribe_call(void *argument)
{
    bide_log_operation *self = argument;
    struct log_redis *redis = bide_redis_of_(self->log);
    const char *name = self->options.group != NULL ? self->options.group : "";
    struct redis_group *created = bide_redis_group_create_(name);
    if (created == NULL) {
        self->status = -ENOMEM;
        return;
    }
    pthread_mutex_lock(&redis->io);
    for (int attempt = 0; attempt < 2; attempt++) {
        self->status = bide_redis_begin_(&redis->reading);
        if (self->status == 0)
            self->status = redis_group_begin(redis, created, &self->options);
        if (!bide_redis_is_lost_(self->status))
            break;
    }
    if (self->status == 0)
        self->status = redis_join(self, &created);
    pthread_mutex_unlock(&redis->io);
    bide_redis_group_destroy_(created);
    bide_redis_wake_(redis);
}

static void redis_subscribe_release(bide_frame *frame)
{
    bide_log_unsubscribe(bide_container_of(frame, bide_log_operation, task.frame)->consumer);
}

static const bide_coroutine_type redis_subscribe_type = {.name = "task",
                                                         .release = redis_subscribe_release};

bide_coroutine_of(redis_subscribe_type, redis_subscribe_body)
{
    bide_begin(redis_subscribe_body, bide_log_operation * self);
    int status;
    if (!bide_log_consumer_options_are_valid_(&self->options))
        bide_return(-EINVAL);
    self->is_fetching = true;
    bide_await_status(
        status, bide_blocking_run(&self->call, self->log->threads, redis_subscribe_call, self));
    self->is_fetching = false;
    bide_return(status < 0 ? status : self->status);
    bide_finally();
    if (self->is_fetching)
        redis_subscribe_release(&self->task.frame);
    bide_end();
}

bide_awaiter *bide_redis_subscribe_(bide_log_operation *operation)
{
    return bide_task_init(&operation->task, &redis_subscribe_body);
}

void bide_redis_unsubscribe_(bide_log_consumer *consumer)
{
    struct log_redis *redis = bide_redis_of_(consumer->log);
    struct log_state *state = &redis->state;
    lock_take(&state->lock);
    struct redis_group *group = redis_group_of(consumer);
    if (group != NULL) {
        consumer->group = NULL;
        consumer->log->consumers--;
        group->head.members--;
        for (size_t i = 0; i < group->count; i++) {
            struct redis_entry *entry = bide_redis_entry_(group, i);
            if (entry->state == REDIS_ENTRY_WITH && entry->owner == consumer->owner)
                bide_redis_reject_(entry, 0);
        }
    }
    lock_free(&state->lock);
    if (group == NULL)
        return;
    bide_notify_all(&state->news);
    bide_redis_wake_(redis); /* the thread hands over, and frees the group */
}

/* ---- Acknowledge and reject ---- */

/* Finishes messages of the consumer that the server has acknowledged; 1 if it is there. */
static uint32_t redis_finish(bide_log_operation *self, bide_log_position id)
{
    struct log_state *state = self->log->state;
    lock_take(&state->lock);
    struct redis_group *group = redis_group_of(self->consumer);
    struct redis_entry *entry = group != NULL ? bide_redis_find_(group, id) : NULL;
    bool is_with =
        entry != NULL && entry->state == REDIS_ENTRY_WITH && entry->owner == self->consumer->owner;
    if (is_with)
        bide_redis_finish_(group, entry);
    lock_free(&state->lock);
    return is_with;
}

/* The IDs of messages that are with the consumer and to be acknowledged: allocated; NULL: no memory. */
static bide_log_position *redis_collect(bide_log_operation *self, size_t *count,
                                        struct redis_group **found)
{
    struct log_state *state = self->log->state;
    bide_log_position *ids = NULL;
    lock_take(&state->lock);
    struct redis_group *group = redis_group_of(self->consumer);
    *found = group;
    *count = 0;
    size_t room = group == NULL ? 1 : self->acknowledged != NULL ? self->wanted : group->count;
    ids = malloc((room + 1) * sizeof *ids);
    for (size_t i = 0; ids != NULL && group != NULL && i < room; i++) {
        const struct redis_entry *entry =
            self->acknowledged != NULL ? bide_redis_find_(group, self->acknowledged[i].position)
                                       : bide_redis_entry_(group, i);
        if (entry == NULL || entry->state != REDIS_ENTRY_WITH ||
            entry->owner != self->consumer->owner ||
            (self->acknowledged == NULL &&
             bide_log_position_compare(entry->id, self->position) > 0))
            continue;
        ids[(*count)++] = entry->id;
    }
    lock_free(&state->lock);
    return ids;
}

/* Acknowledges in the server; again after a connection that was lost, which changes nothing. */
static int redis_send_acknowledgements(struct log_redis *redis, const char *group,
                                       const bide_log_position *ids, size_t count)
{
    struct redis_link *link = &redis->reading;
    size_t commands = 0;
    int status = bide_redis_begin_(link);
    if (status < 0)
        return status;
    for (size_t at = 0; at < count; at += REDIS_ACKNOWLEDGED, commands++) {
        size_t some = count - at < REDIS_ACKNOWLEDGED ? count - at : REDIS_ACKNOWLEDGED;
        bide_redis_array_(link, 3 + some);
        bide_redis_text_(link, "XACK");
        bide_redis_text_(link, redis->stream);
        bide_redis_text_(link, group);
        for (size_t i = 0; i < some; i++)
            bide_redis_id_(link, ids[at + i]);
    }
    status = bide_redis_flush_(link);
    int failed = 0;
    for (size_t i = 0; status == 0 && i < commands; i++) {
        status = bide_redis_read_ok_(link);
        if (status < 0 && link->descriptor >= 0) {
            failed = status;
            status = 0;
        }
    }
    return status < 0 ? status : failed;
}

static void redis_acknowledge_call(void *argument)
{
    bide_log_operation *self = argument;
    struct log_redis *redis = bide_redis_of_(self->log);
    struct redis_group *group = NULL;
    size_t count = 0;
    pthread_mutex_lock(&redis->io);
    bide_log_position *ids = redis_collect(self, &count, &group);
    self->status = group == NULL ? -EINVAL : ids == NULL ? -ENOMEM : 0;
    if (self->status == 0 && group->head.name[0] != '\0' && count != 0) {
        for (int attempt = 0; attempt < 2; attempt++) {
            self->status = redis_send_acknowledgements(redis, group->head.name, ids, count);
            if (!bide_redis_is_lost_(self->status))
                break;
        }
    }
    for (size_t i = 0; self->status == 0 && i < count; i++)
        self->count += redis_finish(self, ids[i]);
    pthread_mutex_unlock(&redis->io);
    free(ids);
    if (self->status == 0 && self->acknowledged != NULL && self->count != self->wanted)
        self->status = -ESTALE;
    bide_notify_all(&redis->state.news);
}

bide_coroutine(redis_acknowledge_body)
{
    bide_begin(redis_acknowledge_body, bide_log_operation * self);
    int status;
    bide_await_status(
        status, bide_blocking_run(&self->call, self->log->threads, redis_acknowledge_call, self));
    bide_return(status < 0 ? status : self->status);
    bide_end();
}

bide_awaiter *bide_redis_acknowledge_(bide_log_operation *operation)
{
    return bide_task_init(&operation->task, &redis_acknowledge_body);
}

static int redis_reject(bide_log_operation *self, uint64_t now)
{
    struct log_state *state = self->log->state;
    uint64_t due = self->delay < BIDE_FOREVER - now ? now + self->delay : BIDE_FOREVER - 1;
    lock_take(&state->lock);
    struct redis_group *group = redis_group_of(self->consumer);
    for (uint32_t i = 0; group != NULL && i < self->wanted; i++) {
        struct redis_entry *entry = bide_redis_find_(group, self->acknowledged[i].position);
        if (entry == NULL || entry->state != REDIS_ENTRY_WITH ||
            entry->owner != self->consumer->owner)
            continue;
        bide_redis_reject_(entry, due);
        self->count++;
    }
    lock_free(&state->lock);
    bide_notify_all(&state->news);
    return group == NULL ? -EINVAL : self->count == self->wanted ? 0 : -ESTALE;
}

bide_coroutine(redis_reject_body)
{
    bide_begin(redis_reject_body, bide_log_operation * self);
    bide_return(redis_reject(self, bide_now(bide_this_context())));
    bide_end();
}

bide_awaiter *bide_redis_reject_messages_(bide_log_operation *operation)
{
    return bide_task_init(&operation->task, &redis_reject_body);
}

/*
 * Groups as the server has them: how far they are behind, their end, and the messages that consumers
 * of a handle have, which are renewed and handed over. redis.h.
 */
#include "redis.h"

#include "../coroutine/lock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { REDIS_IDS = 1000 /* in one command */, REDIS_COUNTED = 1000 };

/* Consumers hand over to this one, so that their names can be removed. */
static const char redis_left[] = "left";

/* ---- Groups of the server ---- */

struct redis_group_info {
    char name[LOG_GROUP_NAME + 1];
    int64_t pending, lag;
    bool has_lag;
    bide_log_position delivered; /* the last */
};

/* Reads one group of XINFO GROUPS: names and values, of which newer servers have more. */
static int redis_read_info(struct redis_link *link, struct redis_group_info *info)
{
    int64_t parts = 0;
    int status = bide_redis_read_array_(link, &parts);
    *info = (struct redis_group_info){.pending = 0};
    for (int64_t i = 0; status == 0 && i < parts / 2; i++) {
        char name[32];
        bool is_nil = false;
        struct redis_token token;
        status = bide_redis_read_text_(link, name, sizeof name, &is_nil);
        if (status < 0)
            return status;
        if (strcmp(name, "name") == 0) {
            status = bide_redis_read_text_(link, info->name, sizeof info->name, &is_nil);
        } else if (strcmp(name, "pending") == 0) {
            status = bide_redis_read_number_(link, &info->pending);
        } else if (strcmp(name, "last-delivered-id") == 0) {
            status = bide_redis_read_id_(link, &info->delivered, &is_nil);
        } else if (strcmp(name, "lag") == 0) { /* or nil: the server does not know */
            status = bide_redis_read_(link, &token);
            info->has_lag = status == 0 && token.type == ':';
            info->lag = token.value;
        } else {
            status = bide_redis_skip_(link);
        }
    }
    return status;
}

/* The entries behind an ID, counted. */
static int redis_count_after(struct redis_link *link, bide_log_position after, int64_t *count)
{
    int64_t entries = REDIS_COUNTED;
    int status = 0;
    for (*count = 0; status == 0 && entries == REDIS_COUNTED; *count += entries) {
        char text[BIDE_LOG_POSITION_TEXT + 1] = "(";
        (void)bide_log_position_print(after, text + 1, sizeof text - 1);
        bide_redis_command_(link, 6, "XRANGE", link->redis->stream, text, "+", "COUNT", "1000");
        status = bide_redis_flush_(link);
        if (status == 0)
            status = bide_redis_read_array_(link, &entries);
        for (int64_t i = 0; status == 0 && i < entries; i++) {
            int64_t parts = 0;
            bool is_nil = false;
            status = bide_redis_read_array_(link, &parts);
            if (status == 0)
                status = bide_redis_read_id_(link, &after, &is_nil);
            if (status == 0)
                status = bide_redis_skip_(link);
        }
    }
    return status;
}

static int redis_find_info(struct redis_link *link, const char *group,
                           struct redis_group_info *found)
{
    int64_t count = 0;
    bool is_found = false;
    bide_redis_command_(link, 3, "XINFO", "GROUPS", link->redis->stream);
    int status = bide_redis_flush_(link);
    if (status == 0)
        status = bide_redis_read_array_(link, &count);
    if (status == -EREMOTEIO && strstr(link->text, "no such key") != NULL)
        return -ENOENT;
    for (int64_t i = 0; status == 0 && i < count; i++) {
        struct redis_group_info info;
        status = redis_read_info(link, &info);
        if (status == 0 && strcmp(info.name, group) == 0) {
            *found = info;
            is_found = true;
        }
    }
    return status < 0 ? status : is_found ? 0 : -ENOENT;
}

int bide_redis_lag_(bide_log *log, const char *group, uint64_t *count)
{
    struct log_redis *redis = bide_redis_of_(log);
    struct redis_group_info info;
    pthread_mutex_lock(&redis->io);
    int status = *group == '\0' ? -ENOENT : bide_redis_begin_(&redis->reading);
    if (status == 0)
        status = redis_find_info(&redis->reading, group, &info);
    if (status == 0 && !info.has_lag)
        status = redis_count_after(&redis->reading, info.delivered, &info.lag);
    pthread_mutex_unlock(&redis->io);
    if (status == 0)
        *count = (uint64_t)info.pending + (uint64_t)info.lag;
    return status;
}

/* 1: another handle's consumer has called the server for the group within a `redeliver`. */
static int redis_is_in_use(struct redis_link *link, const char *group)
{
    int64_t count = 0, parts = 0;
    int in_use = 0;
    bide_redis_command_(link, 4, "XINFO", "CONSUMERS", link->redis->stream, group);
    int status = bide_redis_flush_(link);
    if (status == 0)
        status = bide_redis_read_array_(link, &count);
    for (int64_t i = 0; status == 0 && i < count; i++) {
        char name[128] = "", field[32];
        int64_t idle = INT64_MAX;
        bool is_nil = false;
        status = bide_redis_read_array_(link, &parts);
        for (int64_t part = 0; status == 0 && part < parts / 2; part++) {
            status = bide_redis_read_text_(link, field, sizeof field, &is_nil);
            if (status == 0 && strcmp(field, "name") == 0)
                status = bide_redis_read_text_(link, name, sizeof name, &is_nil);
            else if (status == 0 && strcmp(field, "idle") == 0)
                status = bide_redis_read_number_(link, &idle);
            else if (status == 0)
                status = bide_redis_skip_(link);
        }
        if (strcmp(name, link->redis->consumer) != 0 && strcmp(name, redis_left) != 0 &&
            idle < (int64_t)(link->redis->lease / 1000000))
            in_use = 1;
    }
    if (status == -EREMOTEIO && strstr(link->text, "no such key") != NULL)
        return -ENOENT;
    return status < 0 ? status : in_use;
}

/* Takes a group without members out of the list: that one, or any. Under `io`. */
static int redis_take_out(struct log_redis *redis, const char *name, struct redis_group **taken)
{
    struct redis_group **at = &redis->groups;
    *taken = NULL;
    lock_take(&redis->state.lock);
    while (*at != NULL &&
           (name != NULL ? strcmp((*at)->head.name, name) != 0 : (*at)->head.members != 0))
        at = &(*at)->following;
    bool has_members = *at != NULL && (*at)->head.members != 0;
    if (*at != NULL && !has_members) {
        *taken = *at;
        *at = (*at)->following;
    }
    lock_free(&redis->state.lock);
    return has_members ? -EBUSY : 0;
}

int bide_redis_remove_group_(bide_log *log, const char *group)
{
    struct log_redis *redis = bide_redis_of_(log);
    struct redis_link *link = &redis->reading;
    struct redis_group *taken = NULL;
    int64_t removed = 0;
    if (*group == '\0')
        return -ENOENT;
    pthread_mutex_lock(&redis->io);
    int status = redis_take_out(redis, group, &taken);
    if (status == 0)
        status = bide_redis_begin_(link);
    if (status == 0)
        status = redis_is_in_use(link, group);
    if (status == 1)
        status = -EBUSY;
    if (status == 0) {
        bide_redis_command_(link, 4, "XGROUP", "DESTROY", redis->stream, group);
        status = bide_redis_flush_(link);
    }
    if (status == 0)
        status = bide_redis_read_number_(link, &removed);
    pthread_mutex_unlock(&redis->io);
    bide_redis_group_destroy_(taken);
    return status < 0 ? status : removed == 1 ? 0 : -ENOENT;
}

/* ---- Leases ---- */

/* XCLAIM for `consumer`, without a delivery, of the entries: their idle time becomes `idle`. */
static int redis_claim_all(struct log_redis *redis, const struct redis_group *group,
                           const char *consumer, uint64_t idle)
{
    struct redis_link *link = &redis->reading;
    struct log_state *state = &redis->state;
    size_t count = 0, commands = 0;
    lock_take(&state->lock);
    bide_log_position *ids = malloc((group->count + 1) * sizeof *ids);
    for (size_t i = 0; ids != NULL && i < group->count; i++) {
        if (bide_redis_entry_(group, i)->state != REDIS_ENTRY_DONE)
            ids[count++] = bide_redis_entry_(group, i)->id;
    }
    lock_free(&state->lock);
    for (size_t at = 0; at < count; at += REDIS_IDS, commands++) {
        size_t some = count - at < REDIS_IDS ? count - at : REDIS_IDS;
        bide_redis_array_(link, 8 + some);
        bide_redis_text_(link, "XCLAIM");
        bide_redis_text_(link, redis->stream);
        bide_redis_text_(link, group->head.name);
        bide_redis_text_(link, consumer);
        bide_redis_text_(link, "0");
        for (size_t i = 0; i < some; i++)
            bide_redis_id_(link, ids[at + i]);
        bide_redis_text_(link, "IDLE");
        bide_redis_number_(link, idle / 1000000);
        bide_redis_text_(link, "JUSTID");
    }
    free(ids);
    int status = count != 0 ? bide_redis_flush_(link) : 0;
    for (size_t i = 0; status == 0 && i < commands; i++)
        status = bide_redis_skip_(link);
    return status;
}

/* Removes the handle's name from the group, unless something is pending for it. */
static int redis_forget_consumer(struct log_redis *redis, const struct redis_group *group)
{
    struct redis_link *link = &redis->reading;
    int64_t pending = 0;
    bide_redis_command_(link, 7, "XPENDING", redis->stream, group->head.name, "-", "+", "1",
                        redis->consumer);
    int status = bide_redis_flush_(link);
    if (status == 0)
        status = bide_redis_read_array_(link, &pending);
    for (int64_t i = 0; status == 0 && i < pending; i++)
        status = bide_redis_skip_(link);
    if (status < 0 || pending != 0)
        return status;
    bide_redis_command_(link, 5, "XGROUP", "DELCONSUMER", redis->stream, group->head.name,
                        redis->consumer);
    status = bide_redis_flush_(link);
    return status == 0 ? bide_redis_skip_(link) : status;
}

void bide_redis_hand_over_(struct log_redis *redis)
{
    struct redis_link *link = &redis->reading;
    int status = 0; /* after a failure no other group's call waits for the server */
    for (;;) {
        struct redis_group *group = NULL;
        (void)redis_take_out(redis, NULL, &group);
        if (group == NULL)
            return;
        link->deadline = bide_platform.now() + redis->timeout;
        /* If it fails, the messages are claimed after a `redeliver`. */
        if (group->head.name[0] != '\0' && status == 0) {
            status = bide_redis_connect_(link);
            if (status == 0)
                status = redis_claim_all(redis, group, redis_left, redis->lease);
            if (status == 0)
                status = redis_forget_consumer(redis, group);
        }
        bide_redis_group_destroy_(group);
    }
}

void bide_redis_renew_(struct log_redis *redis)
{
    struct redis_link *link = &redis->reading;
    int status = 0;
    for (struct redis_group *group = redis->groups; group != NULL; group = group->following) {
        if (group->head.name[0] == '\0')
            continue;
        link->deadline = bide_platform.now() + redis->timeout;
        status = status == 0 ? bide_redis_connect_(link) : status;
        if (status == 0)
            status = redis_claim_all(redis, group, redis->consumer, 0);
        lock_take(&redis->state.lock);
        group->claims = true;
        lock_free(&redis->state.lock);
    }
}

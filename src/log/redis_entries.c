/* Entries of a group of a Redis stream: redis.h. A sorted array, which is consumed from its front. */
#include "redis.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct redis_group *bide_redis_group_create_(const char *name)
{
    struct redis_group *group = calloc(1, sizeof *group);
    if (group != NULL)
        memcpy(group->head.name, name, strlen(name) + 1);
    return group;
}

void bide_redis_group_destroy_(struct redis_group *group)
{
    for (size_t i = 0; group != NULL && i < group->count; i++)
        free(bide_redis_entry_(group, i)->memory);
    if (group != NULL)
        free(group->entries);
    free(group);
}

struct redis_entry *bide_redis_entry_(const struct redis_group *group, size_t i)
{
    return &group->entries[group->first + i];
}

/* The place of the first entry that is not before `id`. */
static size_t redis_lower_bound(const struct redis_group *group, bide_log_position id)
{
    size_t begin = 0, end = group->count;
    while (begin < end) {
        size_t middle = begin + (end - begin) / 2;
        if (bide_log_position_compare(bide_redis_entry_(group, middle)->id, id) < 0)
            begin = middle + 1;
        else
            end = middle;
    }
    return begin;
}

struct redis_entry *bide_redis_find_(const struct redis_group *group, bide_log_position id)
{
    size_t at = redis_lower_bound(group, id);
    if (at == group->count)
        return NULL;
    struct redis_entry *entry = bide_redis_entry_(group, at);
    return bide_log_position_compare(entry->id, id) == 0 ? entry : NULL;
}

int bide_redis_reserve_(struct redis_group *group, size_t more)
{
    if (more <= group->capacity - group->first - group->count)
        return 0;
    if (group->first != 0 && group->first >= group->count) {
        memcpy(group->entries, group->entries + group->first,
               group->count * sizeof group->entries[0]);
        group->first = 0;
        return bide_redis_reserve_(group, more);
    }
    size_t capacity = (group->first + group->count + more) * 2;
    struct redis_entry *grown = realloc(group->entries, capacity * sizeof *grown);
    if (grown == NULL)
        return -ENOMEM;
    group->entries = grown;
    group->capacity = capacity;
    return 0;
}

struct redis_entry *bide_redis_add_(struct redis_group *group, bide_log_position id)
{
    size_t at = redis_lower_bound(group, id);
    if (at < group->count && bide_log_position_compare(bide_redis_entry_(group, at)->id, id) == 0)
        return bide_redis_entry_(group, at);
    bide_assert(group->first + group->count < group->capacity);
    struct redis_entry *entry = &group->entries[group->first + at];
    memmove(entry + 1, entry, (group->count - at) * sizeof *entry);
    group->count++;
    *entry = (struct redis_entry){.id = id, .state = REDIS_ENTRY_DONE};
    return entry;
}

void bide_redis_finish_(struct redis_group *group, struct redis_entry *entry)
{
    free(entry->memory);
    entry->memory = NULL;
    entry->state = REDIS_ENTRY_DONE;
    while (group->count != 0 && bide_redis_entry_(group, 0)->state == REDIS_ENTRY_DONE) {
        group->first++;
        group->count--;
    }
}

void bide_redis_reject_(struct redis_entry *entry, uint64_t due)
{
    free(entry->memory);
    entry->memory = NULL;
    entry->state = REDIS_ENTRY_REJECTED;
    entry->due = due;
}

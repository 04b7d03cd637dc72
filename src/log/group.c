/* Groups: group.h. */
#include "group.h"

#include <stdlib.h>
#include <string.h>

struct bide_log_group_ *bide_log_group_create_(const char *name, uint32_t window, uint32_t entries,
                                               uint64_t acknowledged)
{
    uint32_t count = 1;
    while (count < window || count < entries)
        count *= 2;
    struct bide_log_group_ *group = calloc(1, sizeof *group + count * sizeof group->entries[0]);
    if (group == NULL)
        return NULL;
    memcpy(group->name, name, strlen(name) + 1);
    group->acknowledged = acknowledged;
    group->next = acknowledged + 1;
    group->mask = count - 1;
    group->window = window;
    return group;
}

void bide_log_group_destroy_(struct bide_log_group_ *group)
{
    for (uint32_t i = 0; group != NULL && i <= group->mask; i++)
        free(group->entries[i].memory);
    free(group);
}

static struct log_entry *log_group_entry(struct bide_log_group_ *group, uint64_t number)
{
    return &group->entries[number & group->mask];
}

/* The entry of a message that is with `owner`, or NULL. */
static struct log_entry *log_group_find(struct bide_log_group_ *group,
                                        const bide_log_consumer *owner, uint64_t number)
{
    if (number <= group->acknowledged || number >= group->next)
        return NULL;
    struct log_entry *entry = log_group_entry(group, number);
    return entry->state == LOG_ENTRY_WITH && entry->owner == owner ? entry : NULL;
}

static void log_group_deliver(struct bide_log_group_ *group, const bide_log_consumer *owner,
                              uint64_t number, bide_log_message *message)
{
    struct log_entry *entry = log_group_entry(group, number);
    entry->state = LOG_ENTRY_WITH;
    entry->owner = owner;
    if (entry->deliveries != UINT32_MAX)
        entry->deliveries++;
    *message = (bide_log_message){.position = {.low_ = number}, .deliveries = entry->deliveries};
}

uint32_t bide_log_group_take_(struct bide_log_group_ *group, const bide_log_consumer *owner,
                              uint64_t tail, uint64_t now, bide_log_message *messages, uint32_t max,
                              uint64_t *due)
{
    uint32_t count = 0, left = group->rejected;
    *due = BIDE_FOREVER;
    for (uint64_t at = group->acknowledged + 1; left != 0 && count < max; at++) {
        struct log_entry *entry = log_group_entry(group, at);
        bide_assert(at < group->next);
        if (entry->state != LOG_ENTRY_REJECTED)
            continue;
        left--;
        if (entry->due <= now) {
            group->rejected--;
            log_group_deliver(group, owner, at, &messages[count++]);
        } else if (entry->due < *due) {
            *due = entry->due;
        }
    }
    while (count < max && group->next <= tail &&
           group->next - 1 - group->acknowledged < group->window) {
        log_group_entry(group, group->next)->deliveries = 0;
        log_group_deliver(group, owner, group->next++, &messages[count++]);
    }
    return count;
}

static void log_group_finish(struct bide_log_group_ *group, struct log_entry *entry)
{
    entry->state = LOG_ENTRY_DONE;
    free(entry->memory);
    entry->memory = NULL;
    while (group->acknowledged + 1 < group->next &&
           log_group_entry(group, group->acknowledged + 1)->state == LOG_ENTRY_DONE)
        group->acknowledged++;
}

bool bide_log_group_acknowledge_(struct bide_log_group_ *group, const bide_log_consumer *owner,
                                 uint64_t number)
{
    struct log_entry *entry = log_group_find(group, owner, number);
    if (entry != NULL)
        log_group_finish(group, entry);
    return entry != NULL;
}

uint32_t bide_log_group_acknowledge_up_to_(struct bide_log_group_ *group,
                                           const bide_log_consumer *owner, uint64_t number)
{
    uint32_t count = 0;
    for (uint64_t at = group->acknowledged + 1; at <= number && at < group->next; at++)
        count += bide_log_group_acknowledge_(group, owner, at);
    return count;
}

bool bide_log_group_reject_(struct bide_log_group_ *group, const bide_log_consumer *owner,
                            uint64_t number, uint64_t due)
{
    struct log_entry *entry = log_group_find(group, owner, number);
    if (entry == NULL)
        return false;
    entry->state = LOG_ENTRY_REJECTED;
    free(entry->memory);
    entry->memory = NULL;
    entry->due = due;
    group->rejected++;
    return true;
}

void bide_log_group_release_(struct bide_log_group_ *group, const bide_log_consumer *owner,
                             uint64_t number)
{
    if (bide_log_group_reject_(group, owner, number, 0))
        log_group_entry(group, number)->deliveries--;
}

void bide_log_group_leave_(struct bide_log_group_ *group, const bide_log_consumer *owner)
{
    for (uint64_t at = group->acknowledged + 1; at < group->next; at++)
        bide_log_group_reject_(group, owner, at, 0);
}

bool bide_log_group_keep_(struct bide_log_group_ *group, const bide_log_consumer *owner,
                          uint64_t number, void *memory)
{
    struct log_entry *entry = log_group_find(group, owner, number);
    if (entry != NULL)
        entry->memory = memory;
    return entry != NULL;
}

void bide_log_group_skip_(struct bide_log_group_ *group, uint64_t oldest)
{
    if (oldest <= group->acknowledged + 1)
        return;
    group->is_changed = true;
    for (uint64_t at = group->acknowledged + 1; at < group->next && at < oldest; at++) {
        struct log_entry *entry = log_group_entry(group, at);
        if (entry->state == LOG_ENTRY_REJECTED) {
            group->rejected--;
            log_group_finish(group, entry);
        }
    }
    if (group->acknowledged + 1 == group->next && group->next < oldest) {
        group->acknowledged = oldest - 1; /* nothing is delivered */
        group->next = oldest;
    }
    while (group->next < oldest && group->next - 1 - group->acknowledged < group->window)
        log_group_entry(group, group->next++)->state = LOG_ENTRY_DONE;
}

bool bide_log_group_is_done_(const struct bide_log_group_ *group, uint64_t number)
{
    return group->entries[number & group->mask].state == LOG_ENTRY_DONE;
}

void bide_log_group_restore_(struct bide_log_group_ *group, uint32_t rejected, uint32_t done)
{
    for (; rejected != 0; rejected--) {
        *log_group_entry(group, group->next++) = (struct log_entry){.state = LOG_ENTRY_REJECTED};
        group->rejected++;
    }
    for (; done != 0; done--)
        log_group_finish(group, log_group_entry(group, group->next++));
}

bool bide_log_group_cut_(struct bide_log_group_ *group, uint64_t tail)
{
    bool is_ahead = group->next > tail + 1;
    while (group->next > group->acknowledged + 1 && group->next > tail + 1) {
        group->next--;
        if (log_group_entry(group, group->next)->state == LOG_ENTRY_REJECTED)
            group->rejected--;
    }
    if (group->acknowledged > tail) {
        group->acknowledged = tail;
        group->next = tail + 1;
    }
    return is_ahead;
}

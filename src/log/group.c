/* Groups: group.h. */
#include "group.h"

#include <stdlib.h>
#include <string.h>

struct bide_log_group_ *bide_log_group_create_(const char *name, uint32_t window, uint32_t entries,
                                               uint64_t acknowledged)
{
    struct bide_log_group_ *group;
    uint32_t count = 1;
    while (count < window || count < entries)
        count *= 2;
    size_t entry = sizeof group->entries[0] + sizeof group->memory[0];
    group = calloc(1, sizeof *group + count * entry);
    if (group == NULL)
        return NULL;
    group->entries = (struct log_entry *)(void *)(group + 1);
    group->memory = (void **)(void *)(group->entries + count);
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
        free(group->memory[i]);
    free(group);
}

static struct log_entry *log_group_entry(struct bide_log_group_ *group, uint64_t number)
{
    return &group->entries[number & group->mask];
}

static enum log_entry_state log_entry_state(const struct log_entry *entry)
{
    return (enum log_entry_state)bide_atomic_load(&entry->state, relaxed); /* under the lock */
}

static void log_entry_become(struct log_entry *entry, enum log_entry_state state)
{
    /* release: the rest of the entry is stored before, also if this thread is killed here. */
    bide_atomic_store(&entry->state, (uint32_t)state, release);
}

/* Frees what a consumer reads. */
static void log_group_forget(struct bide_log_group_ *group, uint64_t number)
{
    if (group->memory == NULL)
        return;
    free(group->memory[number & group->mask]);
    group->memory[number & group->mask] = NULL;
}

/* The entry of a message that is with `owner`, or NULL. */
static struct log_entry *log_group_find(struct bide_log_group_ *group, uint64_t owner,
                                        uint64_t number)
{
    if (number <= group->acknowledged || number >= group->next)
        return NULL;
    struct log_entry *entry = log_group_entry(group, number);
    return log_entry_state(entry) == LOG_ENTRY_WITH && entry->owner == owner ? entry : NULL;
}

static void log_group_deliver(struct bide_log_group_ *group, uint64_t owner, uint64_t number,
                              bide_log_message *message)
{
    struct log_entry *entry = log_group_entry(group, number);
    entry->owner = owner;
    if (entry->deliveries != UINT32_MAX)
        entry->deliveries++;
    log_entry_become(entry, LOG_ENTRY_WITH);
    *message = (bide_log_message){.position = {.low_ = number}, .deliveries = entry->deliveries};
}

uint32_t bide_log_group_take_(struct bide_log_group_ *group, uint64_t owner, uint64_t tail,
                              uint64_t now, bide_log_message *messages, uint32_t max, uint64_t *due)
{
    uint32_t count = 0, left = group->rejected;
    *due = BIDE_FOREVER;
    for (uint64_t at = group->acknowledged + 1; left != 0 && count < max; at++) {
        struct log_entry *entry = log_group_entry(group, at);
        bide_assert(at < group->next);
        if (log_entry_state(entry) != LOG_ENTRY_REJECTED)
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

static void log_group_advance(struct bide_log_group_ *group)
{
    while (group->acknowledged + 1 < group->next &&
           bide_log_group_is_done_(group, group->acknowledged + 1))
        group->acknowledged++;
}

static void log_group_finish(struct bide_log_group_ *group, uint64_t number)
{
    log_entry_become(log_group_entry(group, number), LOG_ENTRY_DONE);
    log_group_forget(group, number);
    log_group_advance(group);
}

bool bide_log_group_acknowledge_(struct bide_log_group_ *group, uint64_t owner, uint64_t number)
{
    bool is_with = log_group_find(group, owner, number) != NULL;
    if (is_with)
        log_group_finish(group, number);
    return is_with;
}

uint32_t bide_log_group_acknowledge_up_to_(struct bide_log_group_ *group, uint64_t owner,
                                           uint64_t number)
{
    uint32_t count = 0;
    for (uint64_t at = group->acknowledged + 1; at <= number && at < group->next; at++)
        count += bide_log_group_acknowledge_(group, owner, at);
    return count;
}

bool bide_log_group_reject_(struct bide_log_group_ *group, uint64_t owner, uint64_t number,
                            uint64_t due)
{
    struct log_entry *entry = log_group_find(group, owner, number);
    if (entry == NULL)
        return false;
    entry->due = due;
    log_entry_become(entry, LOG_ENTRY_REJECTED);
    log_group_forget(group, number);
    group->rejected++;
    return true;
}

void bide_log_group_release_(struct bide_log_group_ *group, uint64_t owner, uint64_t number)
{
    if (bide_log_group_reject_(group, owner, number, 0))
        log_group_entry(group, number)->deliveries--;
}

void bide_log_group_withdraw_(struct bide_log_group_ *group, uint64_t mask, uint64_t owner)
{
    for (uint64_t at = group->acknowledged + 1; at < group->next; at++) {
        uint64_t found = log_group_entry(group, at)->owner;
        if ((found & mask) == (owner & mask))
            bide_log_group_reject_(group, found, at, 0);
    }
}

void bide_log_group_leave_(struct bide_log_group_ *group, uint64_t owner)
{
    bide_log_group_withdraw_(group, UINT64_MAX, owner);
}

void bide_log_group_recount_(struct bide_log_group_ *group)
{
    log_group_advance(group);
    group->rejected = 0;
    for (uint64_t at = group->acknowledged + 1; at < group->next; at++)
        group->rejected += log_entry_state(log_group_entry(group, at)) == LOG_ENTRY_REJECTED;
}

bool bide_log_group_keep_(struct bide_log_group_ *group, uint64_t owner, uint64_t number,
                          void *memory)
{
    bool is_with = log_group_find(group, owner, number) != NULL;
    if (is_with)
        group->memory[number & group->mask] = memory;
    return is_with;
}

void bide_log_group_skip_(struct bide_log_group_ *group, uint64_t oldest)
{
    if (oldest <= group->acknowledged + 1)
        return;
    group->is_changed = true;
    for (uint64_t at = group->acknowledged + 1; at < group->next && at < oldest; at++) {
        if (log_entry_state(log_group_entry(group, at)) == LOG_ENTRY_REJECTED) {
            group->rejected--;
            log_group_finish(group, at);
        }
    }
    if (group->acknowledged + 1 == group->next && group->next < oldest) {
        group->acknowledged = oldest - 1; /* nothing is delivered */
        group->next = oldest;
    }
    while (group->next < oldest && group->next - 1 - group->acknowledged < group->window)
        log_entry_become(log_group_entry(group, group->next++), LOG_ENTRY_DONE);
}

bool bide_log_group_is_done_(const struct bide_log_group_ *group, uint64_t number)
{
    return log_entry_state(&group->entries[number & group->mask]) == LOG_ENTRY_DONE;
}

void bide_log_group_restore_(struct bide_log_group_ *group, uint32_t rejected, uint32_t done)
{
    for (; rejected != 0; rejected--) {
        struct log_entry *entry = log_group_entry(group, group->next++);
        entry->owner = entry->due = 0;
        entry->deliveries = 0;
        log_entry_become(entry, LOG_ENTRY_REJECTED);
        group->rejected++;
    }
    for (; done != 0; done--)
        log_group_finish(group, group->next++);
}

bool bide_log_group_cut_(struct bide_log_group_ *group, uint64_t tail)
{
    bool is_ahead = group->next > tail + 1;
    while (group->next > group->acknowledged + 1 && group->next > tail + 1) {
        group->next--;
        if (log_entry_state(log_group_entry(group, group->next)) == LOG_ENTRY_REJECTED)
            group->rejected--;
    }
    if (group->acknowledged > tail) {
        group->acknowledged = tail;
        group->next = tail + 1;
    }
    return is_ahead;
}

#include "keyspace.h"

#include "record.h"

#include <errno.h>
#include <stdlib.h>

enum { SLICE = 512 }; /* buckets */

static void before_move(void *argument, struct entry *entry);

void keyspace_init(struct keyspace *keyspace, const uint64_t key[2])
{
    *keyspace = (struct keyspace){.keys.keyspace = keyspace};
    table_init(&keyspace->keys.table, key);
    keyspace->keys.table.before_move = before_move;
    keyspace->keys.table.argument = &keyspace->keys;
}

void keyspace_free(struct keyspace *keyspace)
{
    while (keyspace_sweep(keyspace))
        continue;
    while (!table_free_some(&keyspace->keys.table, SLICE))
        continue;
    free(keyspace->keys.times);
}

/* ---- Times ---- */

static void put_time(struct keys *keys, size_t at, struct time_of_end time)
{
    keys->times[at] = time;
    time.entry->expiry = (uint32_t)at + 1;
}

static void rise(struct keys *keys, size_t at, struct time_of_end time)
{
    for (; at > 0 && keys->times[(at - 1) / 4].time > time.time; at = (at - 1) / 4)
        put_time(keys, at, keys->times[(at - 1) / 4]);
    put_time(keys, at, time);
}

static void sink(struct keys *keys, size_t at, struct time_of_end time)
{
    for (;;) {
        size_t min = at, first = 4 * at + 1;
        int64_t min_time = time.time;
        for (size_t i = first; i < first + 4 && i < keys->time_count; i++) {
            if (keys->times[i].time < min_time) {
                min = i;
                min_time = keys->times[i].time;
            }
        }
        if (min == at)
            break;
        put_time(keys, at, keys->times[min]);
        at = min;
    }
    put_time(keys, at, time);
}

static void clear_time(struct keys *keys, struct entry *entry)
{
    size_t at = entry->expiry - 1;
    struct time_of_end last = keys->times[--keys->time_count];
    entry->expiry = 0;
    if (at == keys->time_count)
        return;
    if (at > 0 && keys->times[(at - 1) / 4].time > last.time)
        rise(keys, at, last);
    else
        sink(keys, at, last);
}

static int64_t time_of(const struct keys *keys, const struct entry *entry)
{
    return entry->expiry != 0 ? keys->times[entry->expiry - 1].time : 0;
}

int64_t keyspace_time(const struct keyspace *keyspace, const struct entry *entry)
{
    return time_of(&keyspace->keys, entry);
}

bool keyspace_set_time(struct keyspace *keyspace, struct entry *entry, int64_t time)
{
    struct keys *keys = &keyspace->keys;
    if (entry->expiry == 0 && time == 0)
        return true;
    keyspace_before_change(keyspace, entry);
    if (entry->expiry != 0)
        clear_time(keys, entry);
    if (time == 0)
        return true;
    if (keys->time_count == keys->time_capacity) {
        size_t capacity = keys->time_capacity != 0 ? keys->time_capacity * 2 : 256;
        struct time_of_end *times = realloc(keys->times, capacity * sizeof *times);
        if (times == NULL || capacity > UINT32_MAX)
            return false;
        keys->times = times;
        keys->time_capacity = capacity;
    }
    rise(keys, keys->time_count++, (struct time_of_end){time, entry});
    if (entry->expiry == 1 && keyspace->sooner != NULL)
        keyspace->sooner(keyspace);
    return true;
}

int64_t keyspace_next_time(const struct keyspace *keyspace)
{
    return keyspace->keys.time_count > 0 ? keyspace->keys.times[0].time : INT64_MAX;
}

/* ---- Keys ---- */

static struct entry **find(struct keyspace *keyspace, struct bytes key, uint32_t hash)
{
    struct entry **link = table_find(&keyspace->keys.table, key, hash);
    if (link == NULL || *link == NULL)
        return NULL;
    if ((*link)->expiry != 0 && time_of(&keyspace->keys, *link) <= keyspace->now &&
        !keyspace->is_loading) {
        if (keyspace->expired != NULL)
            keyspace->expired(keyspace, key);
        keyspace->expirations++;
        keyspace_remove(keyspace, link);
        return NULL;
    }
    return link;
}

struct entry **keyspace_find(struct keyspace *keyspace, struct bytes key)
{
    return find(keyspace, key, table_hash(&keyspace->keys.table, key));
}

/* A value of less than a quarter of its room gives some back. */
static bool fits(const struct entry *entry, size_t size)
{
    return size <= entry->room && (entry->room <= 64 || size >= entry->room / 4);
}

struct entry *keyspace_put(struct keyspace *keyspace, struct bytes key, size_t size, bool spare)
{
    struct table *table = &keyspace->keys.table;
    uint32_t hash = table_hash(table, key);
    struct entry **link = find(keyspace, key, hash), *entry;
    if (link == NULL) {
        entry = table_add(table, key, hash, size);
        if (entry == NULL)
            return NULL;
        entry->snapshot = keyspace->snapshot;
    } else {
        keyspace_before_change(keyspace, *link);
        entry = *link;
        if (!fits(entry, size)) {
            entry = table_widen(link, size, spare);
            if (entry == NULL)
                return NULL;
            if (entry->expiry != 0)
                keyspace->keys.times[entry->expiry - 1].entry = entry;
        }
    }
    entry->value_size = (uint32_t)size;
    return entry;
}

void keyspace_remove(struct keyspace *keyspace, struct entry **link)
{
    keyspace_before_change(keyspace, *link);
    if ((*link)->expiry != 0)
        clear_time(&keyspace->keys, *link);
    free(table_take(&keyspace->keys.table, link));
}

void keyspace_remove_all(struct keyspace *keyspace)
{
    struct keys *flushed = malloc(sizeof *flushed);
    if (keyspace->keys.table.count == 0) {
        free(flushed);
        return;
    }
    if (flushed == NULL) { /* at once, then */
        while (!table_free_some(&keyspace->keys.table, SLICE))
            continue;
        keyspace->keys.time_count = 0;
        return;
    }
    *flushed = keyspace->keys;
    flushed->table.argument = flushed;
    flushed->next = keyspace->flushed;
    flushed->snapshot = keyspace->snapshot_to != NULL ? keyspace->snapshot : 0;
    keyspace->flushed = flushed;
    table_init(&keyspace->keys.table, flushed->table.key);
    keyspace->keys.table.generation = flushed->table.generation + 2;
    keyspace->keys.table.before_move = before_move;
    keyspace->keys.table.argument = &keyspace->keys;
    keyspace->keys.times = NULL;
    keyspace->keys.time_count = keyspace->keys.time_capacity = 0;
    if (keyspace->was_flushed != NULL)
        keyspace->was_flushed(keyspace);
}

bool keyspace_sweep(struct keyspace *keyspace)
{
    struct keys *flushed = keyspace->flushed;
    if (flushed != NULL && table_free_some(&flushed->table, SLICE)) {
        keyspace->flushed = flushed->next;
        free(flushed->times);
        free(flushed);
    }
    return keyspace->flushed != NULL;
}

bool keyspace_expire(struct keyspace *keyspace, size_t max)
{
    struct keys *keys = &keyspace->keys;
    for (; max > 0 && keyspace_next_time(keyspace) <= keyspace->now; max--)
        keyspace_find(keyspace, entry_key(keys->times[0].entry));
    return keyspace_next_time(keyspace) <= keyspace->now;
}

/* ---- Snapshots ---- */

/* Gives the snapshot under way the entry, if it has not got it. */
static void keep(struct keys *keys, struct entry *entry)
{
    struct keyspace *keyspace = keys->keyspace;
    if (keyspace->snapshot_to == NULL || entry->snapshot == keyspace->snapshot)
        return;
    if (keys != &keyspace->keys && keys->snapshot != keyspace->snapshot)
        return; /* they were flushed before it began */
    entry->snapshot = keyspace->snapshot;
    if (!record_set(keyspace->snapshot_to, entry_key(entry), entry_value(entry),
                    time_of(keys, entry)))
        keyspace->snapshot_error = -ENOMEM;
}

static void before_move(void *argument, struct entry *entry)
{
    keep(argument, entry);
}

void keyspace_before_change(struct keyspace *keyspace, struct entry *entry)
{
    keep(&keyspace->keys, entry);
}

void keyspace_begin_snapshot(struct keyspace *keyspace, struct buffer *to)
{
    struct table *table = &keyspace->keys.table;
    keyspace->snapshot++;
    keyspace->snapshot_to = to;
    keyspace->snapshot_error = 0;
    keyspace->array = table->sizes[0] != 0 ? 0 : 2;
    keyspace->bucket = 0;
    keyspace->generations[0] = table->generation;
    keyspace->generations[1] = table->generation + (table->buckets[1] != NULL);
}

void keyspace_end_snapshot(struct keyspace *keyspace)
{
    keyspace->snapshot_to = NULL;
}

/*
 * An array that is there no more has nothing that the snapshot has not: its entries were moved, or
 * are freed by sweeping, and either way were kept.
 */
int keyspace_snapshot_slice(struct keyspace *keyspace, size_t size)
{
    struct table *table = &keyspace->keys.table;
    size_t visited = 0;
    for (; keyspace->array < 2; keyspace->array++, keyspace->bucket = 0) {
        uint32_t at = keyspace->generations[keyspace->array] - table->generation;
        if (at > 1 ||
            (keyspace->array == 1 && keyspace->generations[0] == keyspace->generations[1]))
            continue;
        for (; keyspace->bucket < table->sizes[at]; keyspace->bucket++) {
            if (buffer_used(keyspace->snapshot_to) >= size || ++visited > SLICE * 16)
                return keyspace->snapshot_error;
            struct entry *entry = table->buckets[at][keyspace->bucket];
            for (; entry != NULL; entry = entry->next)
                keep(&keyspace->keys, entry);
        }
    }
    while (keyspace->flushed != NULL) {
        if (buffer_used(keyspace->snapshot_to) >= size || ++visited > SLICE)
            return keyspace->snapshot_error;
        keyspace_sweep(keyspace);
    }
    return keyspace->snapshot_error < 0 ? keyspace->snapshot_error : 1;
}

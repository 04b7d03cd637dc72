/* The keys, their expiries and snapshots of them. keyspace.h has the model. One thread. */
#include "keyspace.h"

#include "record.h"

#include <errno.h>

enum {
    SLICE_BUCKETS = 512,      /* buckets */
    MIN_EXPIRY_CAPACITY = 256 /* of the heap of expiries, if it has any */
};

static void before_free_or_move(void *argument, struct entry *entry);
static void before_free(void *argument, struct entry *entry);

void keyspace_init(struct keyspace *keyspace, const uint64_t key[2])
{
    *keyspace = (struct keyspace){.keys.keyspace = keyspace};
    table_init(&keyspace->keys.table, key);
    keyspace->keys.table.before_free_or_move = before_free_or_move;
    keyspace->keys.table.before_free = before_free;
    keyspace->keys.table.argument = &keyspace->keys;
}

void keyspace_free(struct keyspace *keyspace)
{
    while (keyspace_free_some(keyspace, SLICE_BUCKETS) > 0)
        continue;
    bide_assert(keyspace->flushed == NULL && keyspace->snapshot_to == NULL);
    while (!table_free_some(&keyspace->keys.table, SLICE_BUCKETS))
        continue;
    while (keyspace_free_some(keyspace, SLICE_BUCKETS) > 0)
        continue;
    bide_assert(keyspace_unfreed(keyspace) == 0);
    memory_free(keyspace->keys.expiries);
}

/* ---- The heap of expiries ---- */

static void place_expiry(struct keys *keys, size_t at, struct expiry time)
{
    bide_assert(at < keys->expiry_count);
    keys->expiries[at] = time;
    time.entry->expiry = (uint32_t)at + 1;
}

static void sift_up(struct keys *keys, size_t at, struct expiry time)
{
    for (; at > 0 && keys->expiries[(at - 1) / 4].time > time.time; at = (at - 1) / 4)
        place_expiry(keys, at, keys->expiries[(at - 1) / 4]);
    place_expiry(keys, at, time);
    bide_assert(at == 0 || keys->expiries[(at - 1) / 4].time <= keys->expiries[at].time);
}

static void sift_down(struct keys *keys, size_t at, struct expiry time)
{
    for (;;) {
        size_t earliest = at, first = 4 * at + 1;
        int64_t earliest_time = time.time;
        for (size_t i = first; i < first + 4 && i < keys->expiry_count; i++) {
            if (keys->expiries[i].time < earliest_time) {
                earliest = i;
                earliest_time = keys->expiries[i].time;
            }
        }
        if (earliest == at)
            break;
        place_expiry(keys, at, keys->expiries[earliest]);
        at = earliest;
    }
    place_expiry(keys, at, time);
}

static void clear_expiry(struct keys *keys, struct entry *entry)
{
    size_t at = entry->expiry - 1;
    bide_assert(at < keys->expiry_count && keys->expiries[at].entry == entry);
    struct expiry last = keys->expiries[--keys->expiry_count];
    entry->expiry = 0;
    if (at == keys->expiry_count)
        return;
    if (at > 0 && keys->expiries[(at - 1) / 4].time > last.time)
        sift_up(keys, at, last);
    else
        sift_down(keys, at, last);
}

/* Gives back memory of the heap if it is less than a quarter full. Without memory for a smaller one it stays. */
static void shrink_expiries(struct keys *keys)
{
    if (keys->expiry_count == 0) {
        memory_free(keys->expiries);
        keys->expiries = NULL;
        keys->expiry_capacity = 0;
    } else if (keys->expiry_capacity > MIN_EXPIRY_CAPACITY &&
               keys->expiry_count < keys->expiry_capacity / 4) {
        size_t capacity = keys->expiry_capacity / 2;
        struct expiry *expiries = memory_reallocate(keys->expiries, capacity * sizeof *expiries);
        if (expiries == NULL)
            return;
        keys->expiries = expiries;
        keys->expiry_capacity = capacity;
    }
}

static int64_t expiry_of(const struct keys *keys, const struct entry *entry)
{
    if (entry->expiry == 0)
        return 0;
    bide_assert(keys->expiries[entry->expiry - 1].entry == entry);
    return keys->expiries[entry->expiry - 1].time;
}

int64_t keyspace_expiry(const struct keyspace *keyspace, const struct entry *entry)
{
    return expiry_of(&keyspace->keys, entry);
}

bool keyspace_set_expiry(struct keyspace *keyspace, struct entry *entry, int64_t time)
{
    struct keys *keys = &keyspace->keys;
    if (entry->expiry == 0 && time == 0)
        return true;
    keyspace_before_change(keyspace, entry);
    if (entry->expiry != 0)
        clear_expiry(keys, entry);
    if (time == 0) {
        shrink_expiries(keys);
        return true;
    }
    if (keys->expiry_count == keys->expiry_capacity) {
        size_t capacity =
            keys->expiry_capacity != 0 ? keys->expiry_capacity * 2 : MIN_EXPIRY_CAPACITY;
        struct expiry *expiries = memory_reallocate(keys->expiries, capacity * sizeof *expiries);
        if (expiries == NULL || capacity > UINT32_MAX)
            return false;
        keys->expiries = expiries;
        keys->expiry_capacity = capacity;
    }
    sift_up(keys, keys->expiry_count++, (struct expiry){time, entry});
    if (entry->expiry == 1 && keyspace->next_expiry_changed != NULL)
        keyspace->next_expiry_changed(keyspace);
    return true;
}

int64_t keyspace_next_expiry(const struct keyspace *keyspace)
{
    return keyspace->keys.expiry_count > 0 ? keyspace->keys.expiries[0].time : INT64_MAX;
}

/* ---- Keys ---- */

static struct entry **find_unexpired(struct keyspace *keyspace, struct bytes key, uint32_t hash)
{
    struct entry **link = table_find(&keyspace->keys.table, key, hash);
    if (link == NULL || *link == NULL)
        return NULL;
    if ((*link)->expiry != 0 && expiry_of(&keyspace->keys, *link) <= keyspace->now &&
        !keyspace->is_loading) {
        if (keyspace->expired != NULL)
            keyspace->expired(keyspace, key);
        keyspace->expirations++;
        keyspace_remove(keyspace, link);
        return NULL;
    }
    return link;
}

static void use_entry(struct keyspace *keyspace, struct entry *entry)
{
    if (keyspace->uses.are_counted && keyspace->uses.last == entry)
        return;
    keyspace->uses.last = entry;
    entry->used = uses_add(&keyspace->uses, entry->used, keyspace->now);
}

struct entry **keyspace_find(struct keyspace *keyspace, struct bytes key)
{
    struct entry **link = find_unexpired(keyspace, key, table_hash(&keyspace->keys.table, key));
    if (link != NULL)
        use_entry(keyspace, *link);
    return link;
}

struct entry **keyspace_peek(struct keyspace *keyspace, struct bytes key)
{
    return find_unexpired(keyspace, key, table_hash(&keyspace->keys.table, key));
}

int64_t keyspace_idle_time(const struct keyspace *keyspace, const struct entry *entry)
{
    return uses_idle_time(entry->used, keyspace->now);
}

unsigned keyspace_frequency(const struct keyspace *keyspace, const struct entry *entry)
{
    return uses_frequency(&keyspace->uses, entry->used, keyspace->now);
}

/* ---- Collections ---- */

void keyspace_discard(struct keyspace *keyspace, struct collection *collection)
{
    collection->next = keyspace->removed;
    keyspace->removed = collection;
    keyspace->discarded += 1 + collection_count(collection);
    if (keyspace->keys_flushed != NULL)
        keyspace->keys_flushed(keyspace);
}

static void release_collection(struct keyspace *keyspace, const struct entry *entry)
{
    if (entry->type != VALUE_STRING)
        keyspace_discard(keyspace, entry_collection(entry));
}

static void set_collection(struct keyspace *keyspace, struct entry *entry,
                           struct collection *collection)
{
    collection->version = ++keyspace->versions;
    entry->type = collection->type;
    entry->value_size = sizeof collection;
    memcpy(entry->bytes + entry->key_size, &collection, sizeof collection);
}

struct collection *keyspace_change(struct keyspace *keyspace, struct bytes key,
                                   enum value_type type, bool *is_new)
{
    struct entry **link = keyspace_find(keyspace, key), *entry;
    *is_new = link == NULL;
    if (link != NULL) {
        bide_assert((*link)->type == type);
        keyspace_before_change(keyspace, *link);
        entry_collection(*link)->version = ++keyspace->versions;
        return entry_collection(*link);
    }
    struct collection *collection = collection_create(type, keyspace->keys.table.key);
    if (collection == NULL)
        return NULL;
    entry = keyspace_upsert(keyspace, key, sizeof collection, false);
    if (entry != NULL)
        set_collection(keyspace, entry, collection);
    else
        collection_free_some(collection, 1);
    return entry != NULL ? collection : NULL;
}

bool keyspace_assign(struct keyspace *keyspace, struct bytes key, struct collection *collection)
{
    struct entry *entry = keyspace_upsert(keyspace, key, sizeof collection, false);
    bide_assert(collection_count(collection) > 0);
    if (entry == NULL)
        return false;
    set_collection(keyspace, entry, collection);
    return keyspace_set_expiry(keyspace, entry, 0);
}

bool keyspace_remove_if_empty(struct keyspace *keyspace, struct bytes key)
{
    struct entry **link = keyspace_find(keyspace, key);
    if (link == NULL || collection_count(entry_collection(*link)) > 0)
        return false;
    keyspace_remove(keyspace, link);
    return true;
}

/* ---- Strings, and any value ---- */

/* A value that needs less than a quarter of its space gives some back. */
static bool value_fits(const struct entry *entry, size_t size)
{
    return size <= entry->value_capacity &&
           (entry->value_capacity <= 64 || size >= entry->value_capacity / 4);
}

struct entry *keyspace_upsert(struct keyspace *keyspace, struct bytes key, size_t size, bool spare)
{
    struct table *table = &keyspace->keys.table;
    uint32_t hash = table_hash(table, key);
    struct entry **link = find_unexpired(keyspace, key, hash), *entry;
    if (link == NULL) {
        entry = table_add(table, key, hash, size);
        if (entry == NULL)
            return NULL;
        entry->snapshot = keyspace->snapshot;
        entry->used = uses_begin(&keyspace->uses, keyspace->now);
        keyspace->uses.last = entry;
        if (keyspace->added != NULL)
            keyspace->added(keyspace, key);
    } else {
        keyspace_before_change(keyspace, *link);
        entry = *link;
        use_entry(keyspace, entry);
        if (!value_fits(entry, size)) {
            entry = table_grow_value(link, size, spare);
            if (entry == NULL)
                return NULL;
            if (entry->expiry != 0)
                keyspace->keys.expiries[entry->expiry - 1].entry = entry;
            keyspace->uses.last = entry;
        }
        release_collection(keyspace, entry); /* (whose entry is small, so it has only grown) */
        entry->type = VALUE_STRING;
    }
    entry->value_size = (uint32_t)size;
    return entry;
}

struct entry *keyspace_set_range(struct keyspace *keyspace, struct bytes key, size_t offset,
                                 struct bytes part)
{
    struct entry **link = keyspace_find(keyspace, key);
    size_t size = link != NULL ? (*link)->value_size : 0, end = offset + part.size;
    bide_assert(link == NULL || (*link)->type == VALUE_STRING);
    struct entry *entry = keyspace_upsert(keyspace, key, end > size ? end : size, size > 0);
    if (entry == NULL)
        return NULL;
    char *value = entry->bytes + entry->key_size;
    if (offset > size)
        memset(value + size, 0, offset - size);
    memcpy(value + offset, part.data, part.size);
    return entry;
}

/* Copies the value of `source`, or moves a collection. Returns NULL if memory is exhausted. */
static struct entry *assign_copy(struct keyspace *keyspace, struct entry *source, struct bytes to,
                                 bool moves)
{
    struct collection *collection = NULL;
    if (source->type != VALUE_STRING) {
        collection = entry_collection(source);
        if (!moves && (collection = collection_copy(collection)) == NULL)
            return NULL;
    }
    struct entry *copy = keyspace_upsert(keyspace, to, source->value_size, false);
    if (copy != NULL && collection == NULL)
        memcpy(copy->bytes + copy->key_size, entry_value(source).data, source->value_size);
    else if (copy != NULL)
        set_collection(keyspace, copy, collection);
    else
        while (collection != NULL && !moves && !collection_free_some(collection, SIZE_MAX))
            continue;
    return copy;
}

bool keyspace_copy(struct keyspace *keyspace, struct bytes from, struct bytes to, bool moves)
{
    struct entry **link = keyspace_peek(keyspace, from);
    if (link == NULL || bytes_equal(from, to))
        return true;
    struct entry *source = *link; /* (it stays where it is while another key is added) */
    if (moves)
        keyspace_before_change(keyspace, source);
    struct entry *copy = assign_copy(keyspace, source, to, moves);
    bool done =
        copy != NULL && keyspace_set_expiry(keyspace, copy, keyspace_expiry(keyspace, source));
    if (moves && copy != NULL) /* one of the two has the collection */
        (done ? source : copy)->type = VALUE_STRING;
    if (!done) {
        if ((link = keyspace_peek(keyspace, to)) != NULL)
            keyspace_remove(keyspace, link);
        return false;
    }
    copy->used = moves ? source->used : uses_begin(&keyspace->uses, keyspace->now);
    if (moves)
        keyspace_remove(keyspace, keyspace_peek(keyspace, from));
    return true;
}

void keyspace_remove(struct keyspace *keyspace, struct entry **link)
{
    keyspace_before_change(keyspace, *link);
    if ((*link)->expiry != 0) {
        clear_expiry(&keyspace->keys, *link);
        shrink_expiries(&keyspace->keys);
    }
    release_collection(keyspace, *link);
    memory_free(table_unlink(&keyspace->keys.table, link));
}

void keyspace_remove_all(struct keyspace *keyspace)
{
    struct keys *flushed = memory_allocate(sizeof *flushed);
    if (keyspace->keys.table.count == 0) {
        memory_free(flushed);
        return;
    }
    if (flushed == NULL) { /* free them at once instead */
        while (!table_free_some(&keyspace->keys.table, SLICE_BUCKETS))
            continue;
        keyspace->keys.expiry_count = 0;
        shrink_expiries(&keyspace->keys);
        return;
    }
    *flushed = keyspace->keys;
    flushed->table.argument = flushed;
    flushed->next = keyspace->flushed;
    keyspace->discarded += flushed->table.count;
    flushed->snapshot = keyspace->snapshot_to != NULL ? keyspace->snapshot : 0;
    keyspace->flushed = flushed;
    table_init(&keyspace->keys.table, flushed->table.key);
    keyspace->keys.table.generation = flushed->table.generation + 2;
    keyspace->keys.table.before_free_or_move = before_free_or_move;
    keyspace->keys.table.before_free = before_free;
    keyspace->keys.table.argument = &keyspace->keys;
    keyspace->keys.expiries = NULL;
    keyspace->keys.expiry_count = keyspace->keys.expiry_capacity = 0;
    if (keyspace->keys_flushed != NULL)
        keyspace->keys_flushed(keyspace);
}

/* Frees some elements of a removed collection. Returns the steps. */
static size_t free_removed(struct keyspace *keyspace, size_t steps)
{
    struct collection *removed = keyspace->removed, *next = removed->next;
    size_t count = collection_count(removed);
    if (collection_free_some(removed, steps)) {
        keyspace->removed = next;
        keyspace->freed += count + 1;
        return count + 1;
    }
    count -= collection_count(removed);
    keyspace->freed += count;
    return count > steps ? count : steps;
}

/* Frees some flushed keys, whose collections are discarded. Returns the steps. */
static size_t free_flushed(struct keyspace *keyspace, size_t steps)
{
    struct keys *flushed = keyspace->flushed;
    size_t count = flushed->table.count;
    bool is_last = table_free_some(&flushed->table, steps);
    count -= flushed->table.count;
    keyspace->freed += count;
    if (!is_last)
        return count > steps ? count : steps;
    keyspace->flushed = flushed->next;
    memory_free(flushed->expiries);
    memory_free(flushed);
    return count + 1;
}

size_t keyspace_free_some(struct keyspace *keyspace, size_t steps)
{
    size_t taken = 0;
    while (taken < steps && (keyspace->removed != NULL || keyspace->flushed != NULL)) {
        size_t slice = steps - taken < SLICE_BUCKETS ? steps - taken : SLICE_BUCKETS;
        taken += keyspace->removed != NULL ? free_removed(keyspace, slice)
                                           : free_flushed(keyspace, slice);
    }
    return taken;
}

bool keyspace_expire(struct keyspace *keyspace, size_t max_keys)
{
    struct keys *keys = &keyspace->keys;
    for (; max_keys > 0 && keyspace_next_expiry(keyspace) <= keyspace->now; max_keys--)
        keyspace_peek(keyspace, entry_key(keys->expiries[0].entry));
    return keyspace_next_expiry(keyspace) <= keyspace->now;
}

/* ---- Snapshots ---- */

/* Writes the entry to the snapshot in progress, unless that has it already. */
static void save_to_snapshot(struct keys *keys, struct entry *entry)
{
    struct keyspace *keyspace = keys->keyspace;
    if (keyspace->snapshot_to == NULL || entry->snapshot == keyspace->snapshot)
        return;
    if (keys != &keyspace->keys && keys->snapshot != keyspace->snapshot)
        return; /* flushed before the snapshot started */
    bide_assert(entry->snapshot < keyspace->snapshot);
    entry->snapshot = keyspace->snapshot;
    int64_t time = expiry_of(keys, entry);
    struct buffer *to = keyspace->snapshot_to;
    bool done = entry->type == VALUE_STRING
                    ? record_set(to, entry_key(entry), entry_value(entry), time)
                    : record_collection(to, entry_key(entry), entry_collection(entry)) &&
                          (time == 0 || record_expire(to, entry_key(entry), time));
    if (!done)
        keyspace->snapshot_error = -ENOMEM;
}

static void before_free(void *argument, struct entry *entry)
{
    struct keys *keys = argument;
    release_collection(keys->keyspace, entry);
}

static void before_free_or_move(void *argument, struct entry *entry)
{
    save_to_snapshot(argument, entry);
}

void keyspace_before_change(struct keyspace *keyspace, struct entry *entry)
{
    save_to_snapshot(&keyspace->keys, entry);
}

void keyspace_start_snapshot(struct keyspace *keyspace, struct buffer *to)
{
    struct table *table = &keyspace->keys.table;
    bide_assert(keyspace->snapshot_to == NULL);
    keyspace->snapshot++;
    keyspace->snapshot_to = to;
    keyspace->snapshot_error = 0;
    keyspace->array = table->sizes[0] != 0 ? 0 : 2;
    keyspace->bucket = 0;
    keyspace->generations[0] = table->generation;
    keyspace->generations[1] = table->generation + (table->buckets[1] != NULL);
}

void keyspace_stop_snapshot(struct keyspace *keyspace)
{
    keyspace->snapshot_to = NULL;
}

/*
 * An array that no longer exists needs no walk: its entries have been moved, or are being freed as
 * flushed keys, and either way they were written to the snapshot first.
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
            if (buffer_used(keyspace->snapshot_to) >= size || ++visited > SLICE_BUCKETS * 16)
                return keyspace->snapshot_error;
            struct entry *entry = table->buckets[at][keyspace->bucket];
            for (; entry != NULL; entry = entry->next)
                save_to_snapshot(&keyspace->keys, entry);
        }
    }
    while (keyspace->flushed != NULL) {
        if (buffer_used(keyspace->snapshot_to) >= size || ++visited > SLICE_BUCKETS)
            return keyspace->snapshot_error;
        keyspace_free_some(keyspace, SLICE_BUCKETS);
    }
    return keyspace->snapshot_error < 0 ? keyspace->snapshot_error : 1;
}

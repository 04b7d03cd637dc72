/*
 * The keys and their values: a table, a heap of expiry times, and a snapshot that may be in
 * progress. One thread.
 *
 * Expiry. The times are in a heap, so the earliest is known. An expired key is never found. It is
 * removed by the find that meets it, or by keyspace_expire, which removes a limited number at a
 * time.
 *
 * Snapshots. A snapshot has the keys as they were when it started. Each entry stores the number of
 * the last snapshot that has it. Before an entry is changed, moved or removed, it is written to the
 * snapshot in progress unless that has it already. The rest of the table is walked a slice at a
 * time. So each key is copied once at most, and no single step blocks the loop for long.
 *
 * Removing all keys starts with an empty table; the old table is freed a slice at a time, and so is
 * a collection whose key is removed. How much is to be freed is counted, so whoever discards can free as much.
 *
 * A value is a string, whose bytes are in the entry, or a collection (collection.h), to which the
 * entry has a pointer. No collection is empty. A snapshot writes a key in one step.
 */
#ifndef KV_KEYSPACE_H
#define KV_KEYSPACE_H

#include "collection.h"
#include "uses.h"

struct expiry {
    int64_t time; /* milliseconds since 1970 */
    struct entry *entry;
};

struct keys {
    struct table table;
    struct expiry *expiries; /* a heap with four children a node; or NULL */
    size_t expiry_count, expiry_capacity;
    struct keyspace *keyspace;
    struct keys *next; /* the next flushed one */
    uint32_t snapshot; /* in progress at the flush, and needs these keys; or 0 */
};

struct keyspace {
    struct keys keys;
    struct keys *flushed;       /* to be freed, the newest first */
    struct collection *removed; /* to be freed */
    uint64_t discarded, freed;  /* keys, collections and elements: to be freed later, and freed */
    uint64_t versions;          /* of collections: the last one; no two have the same */
    int64_t now;                /* milliseconds since 1970; set by the caller */
    bool is_loading;            /* nothing expires: the records also remove the keys that expired */
    struct uses uses;           /* of keys; set by the caller */

    /* Notifications; each may be NULL. */
    void (*added)(struct keyspace *keyspace, struct bytes key);
    void (*expired)(struct keyspace *keyspace, struct bytes key);
    void (*next_expiry_changed)(struct keyspace *keyspace); /* the earliest expiry has changed */
    void (*keys_flushed)(struct keyspace *keyspace);
    uint64_t hits, misses, expirations;

    /* snapshots */
    uint32_t snapshot;          /* the number of the last one started */
    struct buffer *snapshot_to; /* the output of the one in progress; or NULL */
    int snapshot_error;
    uint32_t generations[2]; /* of the table's arrays when it started */
    size_t array, bucket;    /* the next to be walked */
};

void keyspace_init(struct keyspace *keyspace, const uint64_t key[2]);
void keyspace_free(struct keyspace *keyspace);

/* The link to the key's entry, or NULL. Valid until any call other than keyspace_before_change. The key counts as used. */
struct entry **keyspace_find(struct keyspace *keyspace, struct bytes key);

/* As keyspace_find, but the key does not count as used. */
struct entry **keyspace_peek(struct keyspace *keyspace, struct bytes key);

/* The milliseconds since the key was used (uses.h). */
int64_t keyspace_idle_time(const struct keyspace *keyspace, const struct entry *entry);

/* How often it is used, up to USES_MAX, if uses are counted. */
unsigned keyspace_frequency(const struct keyspace *keyspace, const struct entry *entry);

/* ---- Collections ---- */

static inline struct collection *entry_collection(const struct entry *entry)
{
    struct collection *collection;
    bide_assert(entry->type != VALUE_STRING);
    memcpy(&collection, entry->bytes + entry->key_size, sizeof collection);
    return collection;
}

/*
 * The collection of a key, to be changed: call it before each change. It is created if there is no
 * such key, and then *is_new is true. Returns NULL if memory is exhausted. A key must not have
 * another type.
 */
struct collection *keyspace_change(struct keyspace *keyspace, struct bytes key,
                                   enum value_type type, bool *is_new);

/*
 * Makes a collection that is not empty the value of a key, in place of any other value and without an
 * expiry. Returns false if memory is exhausted; then the collection is still the caller's.
 */
bool keyspace_assign(struct keyspace *keyspace, struct bytes key, struct collection *collection);

/* Leaves a collection that belongs to no key to keyspace_free_some. */
void keyspace_discard(struct keyspace *keyspace, struct collection *collection);

/* Must be called after elements were removed: removes the key, and returns true, if none is left. */
bool keyspace_remove_if_empty(struct keyspace *keyspace, struct bytes key);

/* ---- Strings, and any value ---- */

/*
 * Finds or adds the entry for a key and sets the size of its value, whose bytes the caller writes
 * at once. As much of an old string as fits is kept, and the expiry stays. `spare`: the value will
 * grow. Returns NULL if memory is exhausted.
 */
struct entry *keyspace_upsert(struct keyspace *keyspace, struct bytes key, size_t size, bool spare);

/*
 * Finds or adds the entry for a key and writes a part of its value. Bytes between the old end and
 * the part become zeros. Returns NULL if memory is exhausted.
 */
struct entry *keyspace_set_range(struct keyspace *keyspace, struct bytes key, size_t offset,
                                 struct bytes part);

/*
 * Gives the key `to` the value and the expiry of `from`, and removes `from` if it `moves`. Does
 * nothing if there is no `from`, or if they are the same. Returns false if memory is exhausted; then
 * `from` is still there, and `to` is not.
 */
bool keyspace_copy(struct keyspace *keyspace, struct bytes from, struct bytes to, bool moves);

void keyspace_remove(struct keyspace *keyspace, struct entry **link);
void keyspace_remove_all(struct keyspace *keyspace);

/* The entry's expiry; 0 if it has none. */
int64_t keyspace_expiry(const struct keyspace *keyspace, const struct entry *entry);
/* Sets the entry's expiry; 0 removes it. Returns false if memory is exhausted. */
bool keyspace_set_expiry(struct keyspace *keyspace, struct entry *entry, int64_t time);

/* Must be called before the bytes of a value change in place. */
void keyspace_before_change(struct keyspace *keyspace, struct entry *entry);

/* The earliest expiry, or INT64_MAX. */
int64_t keyspace_next_expiry(const struct keyspace *keyspace);
/* Removes expired keys, `max_keys` at most. Returns true if more are left. */
bool keyspace_expire(struct keyspace *keyspace, size_t max_keys);

/* Flushed keys, and collections that were removed, and the elements of these: how many are to be freed. */
static inline uint64_t keyspace_unfreed(const struct keyspace *keyspace)
{
    return keyspace->discarded - keyspace->freed;
}

/*
 * Frees some of these. Stops behind `steps` elements or empty buckets; fewer if no more is left. Returns how many steps
 * it took, which may be some more.
 */
size_t keyspace_free_some(struct keyspace *keyspace, size_t steps);

/*
 * A snapshot. Records of keys are appended to *to, also between the slices; the caller takes them
 * from there. A slice ends when the buffer has `size` bytes or after a limited number of buckets.
 * It returns 1 when the snapshot is complete, 0 if not, or a negative errno.
 */
void keyspace_start_snapshot(struct keyspace *keyspace, struct buffer *to);
int keyspace_snapshot_slice(struct keyspace *keyspace, size_t size);
void keyspace_stop_snapshot(struct keyspace *keyspace);

#endif

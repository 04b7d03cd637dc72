/*
 * The keys and their values: a table, the times at which keys end, and a snapshot that may be under
 * way.
 *
 * Expiry. The times are a heap, so the next one is known. A key whose time has come is not found
 * any more; a find removes it, or keyspace_expire, which takes so many at a time.
 *
 * Snapshots. A snapshot has the keys as they were when it began. Each entry knows the number of the
 * last snapshot that has it. Whoever is about to change, move or remove an entry that the one under
 * way does not have yet gives it the entry first; and a slice at a time the table is gone through
 * for the others. So no key is copied more than once, and none stops the loop.
 *
 * To remove all keys is to begin with an empty table. The old one is freed a slice at a time.
 */
#ifndef KV_KEYSPACE_H
#define KV_KEYSPACE_H

#include "table.h"

struct time_of_end {
    int64_t time; /* milliseconds since 1970 */
    struct entry *entry;
};

struct keys {
    struct table table;
    struct time_of_end *times; /* a heap, each has four below it; or NULL */
    size_t time_count, time_capacity;
    struct keyspace *keyspace;
    struct keys *next; /* that was flushed */
    uint32_t snapshot; /* that was under way when it was flushed, and is to have them; or 0 */
};

struct keyspace {
    struct keys keys;
    struct keys *flushed; /* to be freed, the last one first */
    int64_t now;          /* milliseconds since 1970, as the caller has set it */
    bool is_loading;      /* nothing ends: what has ended was removed by records, too */

    /* What the keyspace tells of. */
    void (*expired)(struct keyspace *keyspace, struct bytes key);
    void (*sooner)(struct keyspace *keyspace); /* another time is the next */
    void (*was_flushed)(struct keyspace *keyspace);
    uint64_t hits, misses, expirations;

    /* of the snapshot */
    uint32_t snapshot;          /* the number of the last that was begun */
    struct buffer *snapshot_to; /* of the one that is under way; or NULL */
    int snapshot_error;
    uint32_t generations[2]; /* of the arrays that there were when it began */
    size_t array, bucket;    /* to be gone through next */
};

void keyspace_init(struct keyspace *keyspace, const uint64_t key[2]);
void keyspace_free(struct keyspace *keyspace);

/* The link to the key's entry, or NULL. Good until a call other than keyspace_before_change. */
struct entry **keyspace_find(struct keyspace *keyspace, struct bytes key);

/*
 * An entry for the key, which is had or made, whose value has that size and is to be written at
 * once; of an old value, as much as fits is there. `spare`: it is going to grow. Its time stays.
 * NULL: there is no memory.
 */
struct entry *keyspace_put(struct keyspace *keyspace, struct bytes key, size_t size, bool spare);

/* Removes it. */
void keyspace_remove(struct keyspace *keyspace, struct entry **link);
void keyspace_remove_all(struct keyspace *keyspace);

/* Its time: 0 is none. */
int64_t keyspace_time(const struct keyspace *keyspace, const struct entry *entry);
/* Sets its time; 0: none. False: there is no memory. */
bool keyspace_set_time(struct keyspace *keyspace, struct entry *entry, int64_t time);

/* To be called before the bytes of a value are changed in place. */
void keyspace_before_change(struct keyspace *keyspace, struct entry *entry);

/* The next time, or INT64_MAX. */
int64_t keyspace_next_time(const struct keyspace *keyspace);
/* Removes keys whose time has come, `max` at most. True: there are more. */
bool keyspace_expire(struct keyspace *keyspace, size_t max);
/* Frees some of what was flushed. True: there is more. */
bool keyspace_sweep(struct keyspace *keyspace);

/*
 * A snapshot. Records of keys come into *to, also between the slices; the caller takes them from
 * there. A slice goes on until there are `size` bytes. It returns 1 at the end, 0 before, or a
 * negative errno.
 */
void keyspace_begin_snapshot(struct keyspace *keyspace, struct buffer *to);
int keyspace_snapshot_slice(struct keyspace *keyspace, size_t size);
void keyspace_end_snapshot(struct keyspace *keyspace);

#endif

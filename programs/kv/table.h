/*
 * A hash table of keys and values, both bytes, that grows and shrinks a few buckets at a time.
 *
 *     one array      --too full, or too empty-->      two arrays
 *     two arrays     --each operation moves two buckets, until the old one is empty-->    one array
 *
 * While there are two, a key is in either, and new ones go to the new array. No operation takes
 * longer than it does to move two buckets. An entry is one piece of memory: key, and value behind
 * it with room to change in place.
 *
 * A find returns the link that points at the entry; it is good until the next call. Entries keep
 * their address until their value needs more room.
 */
#ifndef KV_TABLE_H
#define KV_TABLE_H

#include "bytes.h"

struct entry {
    struct entry *next; /* in the bucket */
    uint32_t hash;      /* its lower half */
    uint32_t key_size;
    uint32_t value_size;
    uint32_t room;     /* for the value */
    uint32_t expiry;   /* the keyspace's: its place among those that end; 0: it does not */
    uint32_t snapshot; /* the keyspace's: the last snapshot that has it, or that it came after */
    char bytes[];      /* the key, and the value behind it */
};

static inline struct bytes entry_key(const struct entry *entry)
{
    return (struct bytes){entry->bytes, entry->key_size};
}

static inline struct bytes entry_value(const struct entry *entry)
{
    return (struct bytes){entry->bytes + entry->key_size, entry->value_size};
}

struct table {
    struct entry **buckets[2]; /* the second is NULL unless entries move there */
    size_t sizes[2];           /* powers of two */
    size_t moved;              /* buckets of the first that are empty, from 0 */
    size_t count;
    uint32_t generation; /* of the first array: the second's is one more */
    uint64_t key[2];     /* of the hash */

    /* Called before an entry is moved to the other array, or freed with the table; or NULL. */
    void (*before_move)(void *argument, struct entry *entry);
    void *argument;
};

/* An empty table, without memory. */
void table_init(struct table *table, const uint64_t key[2]);

/*
 * Frees the entries of so many buckets, and calls before_move for each. True: that was all, and the
 * table is an empty one. Between two calls nothing else may be done with the table.
 */
bool table_free_some(struct table *table, size_t buckets);

/* The hash that find and add are to be called with. */
static inline uint32_t table_hash(const struct table *table, struct bytes key)
{
    return (uint32_t)bytes_hash(key, table->key);
}

/* The link to the key's entry: *link is NULL if there is none. NULL: the table has no array yet. */
struct entry **table_find(struct table *table, struct bytes key, uint32_t hash);

/* Adds a key that is not there, with room for a value. NULL: there is no memory. */
struct entry *table_add(struct table *table, struct bytes key, uint32_t hash, size_t room);

/* Takes the entry out of the table, and returns it: it is the caller's to free. */
struct entry *table_take(struct table *table, struct entry **link);

/* Gives the entry more room, to grow further cheaply if `spare`. NULL: there is no memory. */
struct entry *table_widen(struct entry **link, size_t room, bool spare);

/*
 * Visits the buckets of one place, for SCAN: begin with 0, go on with what it returns until that is
 * 0. A key that is there all the time is visited at least once, however the table changes.
 */
size_t table_scan(struct table *table, size_t cursor,
                  void (*visit)(void *argument, struct entry *entry), void *argument);

#endif

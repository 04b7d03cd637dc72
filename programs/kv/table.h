/*
 * A hash table of byte strings that grows and shrinks a few buckets at a time.
 *
 *     one array      --too full, or too empty-->      two arrays
 *     two arrays     --each operation moves two buckets, until the old one is empty-->    one array
 *
 * While there are two arrays, a key may be in either, and new keys go to the new array. No
 * operation takes longer than moving two buckets. An entry is one allocation: the key, and behind
 * it the value, with space to change in place.
 *
 * table_find returns the link that points at the entry; the link is valid until the next call.
 * Entries keep their address until their value needs more space.
 */
#ifndef KV_TABLE_H
#define KV_TABLE_H

#include "bytes.h"
#include "memory.h"

/* What an entry's value is. In memory only: files have records. */
enum value_type { VALUE_STRING, VALUE_HASH, VALUE_LIST, VALUE_SET, VALUE_SORTED_SET };

struct entry {
    struct entry *next; /* in the bucket */
    uint32_t hash;      /* the lower half */
    uint32_t key_size;
    uint32_t value_size;
    uint32_t value_capacity; /* of the value */
    uint32_t
        expiry; /* the keyspace's: its index in the heap of expiries, plus 1; 0 if it does not expire */
    uint32_t
        snapshot : 29; /* the keyspace's: the last snapshot that has the entry, or that is older
                               than it */
    uint32_t type : 3; /* the keyspace's: an enum value_type */
    uint32_t used;     /* the keyspace's: when or how often it is used; uses.h */
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
    struct entry **buckets[2]; /* the second is NULL unless a resize is in progress */
    size_t sizes[2];           /* powers of two */
    size_t moved;              /* buckets of the first that are already empty, from 0; or 0 */
    size_t count;
    uint32_t generation; /* of the first array; the second's is one more */
    uint64_t key[2];     /* the key of the hash */

    /* Called before an entry moves to the other array or is freed with the table. May be NULL. */
    void (*before_free_or_move)(void *argument, struct entry *entry);
    /* Called after that one before an entry is freed with the table. May be NULL. */
    void (*before_free)(void *argument, struct entry *entry);
    void *argument;
};

/* Makes an empty table, which has no memory yet. */
void table_init(struct table *table, const uint64_t key[2]);

/*
 * Frees the entries of `buckets` buckets, and calls before_free_or_move for each. Returns true when
 * nothing is left and the table is empty. No other function may use the table between the calls.
 */
bool table_free_some(struct table *table, size_t buckets);

/* The hash of a key, for table_find and table_add. */
static inline uint32_t table_hash(const struct table *table, struct bytes key)
{
    return (uint32_t)bytes_hash(key, table->key);
}

/*
 * The link to the key's entry; *link is NULL if there is none. Returns NULL if the table has no
 * array yet.
 */
struct entry **table_find(struct table *table, struct bytes key, uint32_t hash);

/*
 * Adds a key that is not in the table, with space for a value. Returns NULL if memory is exhausted.
 */
struct entry *table_add(struct table *table, struct bytes key, uint32_t hash,
                        size_t value_capacity);

/* Removes the entry from the table and returns it. The caller frees it, by memory_free. */
struct entry *table_unlink(struct table *table, struct entry **link);

/*
 * Enlarges the space for the entry's value; with `spare`, by more than needed, so that further
 * growth is cheap. Returns NULL if memory is exhausted.
 */
struct entry *table_grow_value(struct entry **link, size_t value_capacity, bool spare);

/*
 * Draws an entry, each with the same probability. `draw` returns random numbers. Adds the number of steps
 * to *steps: on average TABLE_DRAW_PLACES times the buckets for each entry, and at most TABLE_DRAW_TRIES and
 * the buckets. Returns NULL if the table is empty.
 */
enum { TABLE_DRAW_PLACES = 16, TABLE_DRAW_TRIES = 1 << 14 };
struct entry *table_draw(const struct table *table, uint64_t (*draw)(void *argument),
                         void *argument, uint64_t *steps);

/*
 * Takes entries of one bucket after the other, from one that `number` chooses, at most `max` of them. Returns how many: at least one
 * unless the table is empty. Adds the buckets to *steps: TABLE_DRAW_TRIES at most, unless these have no entry.
 */
size_t table_sample(const struct table *table, uint64_t number, struct entry **entries, size_t max,
                    uint64_t *steps);

/*
 * Visits one position of the table, for SCAN. Begin with cursor 0, and continue with the returned
 * cursor until that is 0. A key that is in the table all the time is visited at least once, however
 * the table is resized.
 */
size_t table_scan(struct table *table, size_t cursor,
                  void (*visit)(void *argument, struct entry *entry), void *argument);

/*
 * As table_scan, for cursors that it has returned itself. From cursor 0 to cursor 0 each key is visited at most
 * once, also if the table shrinks or loses the key and gets it again.
 */
size_t table_scan_once(struct table *table, size_t cursor,
                       void (*visit)(void *argument, struct entry *entry), void *argument);

#endif

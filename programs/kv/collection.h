/*
 * Values that have elements: hashes, sets, lists and sorted sets. They know nothing of keys, records or clients. One
 * thread.
 *
 * A hash is a table (table.h), so it grows a few buckets at a time. A list is a ring of pointers:
 * both ends and any index are reached at once. A set is a hash whose fields have empty values.
 * sorted_set.h has sorted sets.
 */
#ifndef KV_COLLECTION_H
#define KV_COLLECTION_H

#include "table.h"

/* An element of a list. */
struct item {
    size_t size;
    char bytes[];
};

/* Item i is items[(first + i) & (capacity - 1)]. */
struct list {
    struct item **items;
    size_t first, count, capacity; /* a power of two, or 0 */
};

struct collection {
    enum value_type type;
    struct collection *next;  /* of those to be freed */
    uint64_t version;         /* the keyspace's: another one before each change */
    struct sorted_node *root; /* of a sorted set's tree; or NULL */
    union {
        struct table fields; /* VALUE_HASH; of sets and sorted sets, the members */
        struct list list;    /* VALUE_LIST */
    };
};

/* Creates an empty one. `key` is that of the hash function. Returns NULL if memory is exhausted. */
struct collection *collection_create(enum value_type type, const uint64_t key[2]);

/* Copies all elements. Returns NULL if memory is exhausted. */
struct collection *collection_copy(struct collection *from);

/* Frees some elements, so many or a few more. Returns true when the collection itself is freed. */
bool collection_free_some(struct collection *collection, size_t elements);

size_t collection_count(const struct collection *collection);

/* True for all but lists. */
static inline bool collection_has_table(const struct collection *collection)
{
    return collection->type != VALUE_LIST;
}

/* ---- Hashes ---- */

/* The field's entry, or NULL. Valid until the next call. */
struct entry *hash_find(struct collection *hash, struct bytes field);

/* Sets a field. Returns 1 if it is new, 0 if not, or -ENOMEM. */
int hash_set(struct collection *hash, struct bytes field, struct bytes value);

/* Returns false if there is no such field. */
bool hash_delete(struct collection *hash, struct bytes field);

/* ---- Sets ---- */

static inline bool set_has(struct collection *set, struct bytes member)
{
    return hash_find(set, member) != NULL;
}

/* Returns 1 if the member is new, 0 if not, or -ENOMEM. */
static inline int set_add(struct collection *set, struct bytes member)
{
    return hash_set(set, member, (struct bytes){"", 0});
}

/* Returns false if there is no such member. */
static inline bool set_remove(struct collection *set, struct bytes member)
{
    return hash_delete(set, member);
}

/* ---- Lists ---- */

static inline struct bytes list_get(const struct collection *list, size_t at)
{
    const struct list *items = &list->list;
    const struct item *item = items->items[(items->first + at) & (items->capacity - 1)];
    return (struct bytes){item->bytes, item->size};
}

/* Inserts before the item `at`, or behind all. Returns false if memory is exhausted. */
bool list_insert(struct collection *list, size_t at, struct bytes value);

/* Replaces the item `at`. Returns false if memory is exhausted. */
bool list_set(struct collection *list, size_t at, struct bytes value);

/* Removes `count` items from `at` on. */
void list_remove(struct collection *list, size_t at, size_t count);

/*
 * Removes the first `max` items that are equal to the value, or with `from_end` the last ones.
 * Returns how many there were.
 */
size_t list_remove_equal(struct collection *list, struct bytes value, size_t max, bool from_end);

#endif

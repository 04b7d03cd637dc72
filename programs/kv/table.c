/* The hash table. While it is resized, each operation moves some buckets to the new array. One thread. */
#include "table.h"

enum {
    MIN_BUCKETS = 16,
    BUCKETS_PER_STEP = 2,        /* with entries, moved by one operation */
    EMPTY_BUCKETS_PER_STEP = 64, /* skipped by one operation */
    SPARSE_FACTOR = 16           /* buckets for each entry, above which the table shrinks */
};

void table_init(struct table *table, const uint64_t key[2])
{
    *table = (struct table){.generation = 1, .key = {key[0], key[1]}};
}

static void free_bucket(struct table *table, struct entry *entry)
{
    for (struct entry *next; entry != NULL; entry = next) {
        next = entry->next;
        if (table->before_free_or_move != NULL)
            table->before_free_or_move(table->argument, entry);
        if (table->before_free != NULL)
            table->before_free(table->argument, entry);
        bide_assert(table->count > 0);
        table->count--;
        memory_free(entry);
    }
}

bool table_free_some(struct table *table, size_t buckets)
{
    for (int i = 0; i < 2; i++) {
        for (; table->sizes[i] > 0 && buckets > 0; buckets--)
            free_bucket(table, table->buckets[i][--table->sizes[i]]);
        if (table->sizes[i] > 0)
            return false;
        memory_free(table->buckets[i]);
        table->buckets[i] = NULL;
    }
    bide_assert(table->count == 0); /* each entry was in one bucket */
    table->moved = 0;
    table->generation += 2;
    return true;
}

/* ---- Changing the size ---- */

/* If memory is exhausted, the table keeps its size and becomes slower. */
static void start_resize(struct table *table, size_t size)
{
    struct entry **buckets = memory_allocate_zeroed(size, sizeof *buckets);
    bide_assert(table->buckets[1] == NULL && (size & (size - 1)) == 0);
    if (buckets == NULL)
        return;
    table->buckets[table->sizes[0] != 0] = buckets;
    table->sizes[table->sizes[0] != 0] = size;
    table->moved = 0;
}

static void finish_resize(struct table *table)
{
    bide_assert(table->moved == table->sizes[0] && table->buckets[1] != NULL);
    memory_free(table->buckets[0]);
    table->buckets[0] = table->buckets[1];
    table->sizes[0] = table->sizes[1];
    table->buckets[1] = NULL;
    table->sizes[1] = 0;
    table->moved = 0;
    table->generation++;
}

static void resize_step(struct table *table)
{
    size_t mask = table->sizes[1] - 1;
    for (int moves = 0, empty = 0; moves < BUCKETS_PER_STEP && empty < EMPTY_BUCKETS_PER_STEP;) {
        if (table->moved == table->sizes[0]) {
            finish_resize(table);
            return;
        }
        struct entry *next, *entry = table->buckets[0][table->moved];
        table->buckets[0][table->moved++] = NULL;
        if (entry == NULL)
            empty++;
        else
            moves++;
        for (; entry != NULL; entry = next) {
            next = entry->next;
            if (table->before_free_or_move != NULL)
                table->before_free_or_move(table->argument, entry);
            entry->next = table->buckets[1][entry->hash & mask];
            table->buckets[1][entry->hash & mask] = entry;
        }
    }
}

/* ---- Operations ---- */

/* The memory of an entry, which is written as a whole struct. */
static size_t entry_memory(size_t key_size, size_t value_capacity)
{
    size_t size = offsetof(struct entry, bytes) + key_size + value_capacity;
    return size > sizeof(struct entry) ? size : sizeof(struct entry);
}

static struct entry **find_in_bucket(struct entry **link, struct bytes key, uint32_t hash)
{
    for (; *link != NULL; link = &(*link)->next) {
        struct entry *entry = *link;
        if (entry->hash == hash && entry->key_size == key.size &&
            memcmp(entry->bytes, key.data, key.size) == 0)
            break;
    }
    return link;
}

struct entry **table_find(struct table *table, struct bytes key, uint32_t hash)
{
    if (table->sizes[0] == 0)
        return NULL;
    if (table->buckets[1] != NULL)
        resize_step(table);
    struct entry **link =
        find_in_bucket(&table->buckets[0][hash & (table->sizes[0] - 1)], key, hash);
    if (*link == NULL && table->buckets[1] != NULL)
        link = find_in_bucket(&table->buckets[1][hash & (table->sizes[1] - 1)], key, hash);
    return link;
}

struct entry *table_add(struct table *table, struct bytes key, uint32_t hash, size_t value_capacity)
{
    if (table->sizes[0] == 0)
        start_resize(table, MIN_BUCKETS);
    else if (table->buckets[1] == NULL && table->count >= table->sizes[0] &&
             table->sizes[0] <= UINT32_MAX / 2)
        start_resize(table, table->sizes[0] * 2);
    if (table->sizes[0] == 0)
        return NULL;
    struct entry *entry = memory_allocate(entry_memory(key.size, value_capacity));
    if (entry == NULL)
        return NULL;
    int array = table->buckets[1] != NULL;
    struct entry **bucket = &table->buckets[array][hash & (table->sizes[array] - 1)];
    *entry = (struct entry){.next = *bucket,
                            .hash = hash,
                            .key_size = (uint32_t)key.size,
                            .value_capacity = (uint32_t)value_capacity};
    memcpy(entry->bytes, key.data, key.size);
    *bucket = entry;
    table->count++;
    return entry;
}

struct entry *table_unlink(struct table *table, struct entry **link)
{
    struct entry *entry = *link;
    bide_assert(table->count > 0);
    *link = entry->next;
    table->count--;
    if (table->buckets[1] == NULL && table->sizes[0] > MIN_BUCKETS &&
        table->count < table->sizes[0] / SPARSE_FACTOR)
        start_resize(table, table->sizes[0] / SPARSE_FACTOR * 2);
    return entry;
}

struct entry *table_grow_value(struct entry **link, size_t value_capacity, bool spare)
{
    size_t key_size = (*link)->key_size;
    struct entry *entry = NULL;
    if (spare && value_capacity <= UINT32_MAX / 2)
        entry = memory_reallocate(*link, entry_memory(key_size, 2 * value_capacity));
    if (entry != NULL)
        value_capacity *= 2;
    else
        entry = memory_reallocate(*link, entry_memory(key_size, value_capacity));
    if (entry == NULL)
        return NULL;
    entry->value_capacity = (uint32_t)value_capacity;
    *link = entry;
    return entry;
}

/* ---- Drawing ---- */

/* A bucket of both arrays; those that have been moved are left out. */
static struct entry *bucket_at(const struct table *table, size_t at)
{
    size_t first = table->sizes[0] - table->moved;
    return at < first ? table->buckets[0][table->moved + at] : table->buckets[1][at - first];
}

/*
 * Entry i of bucket b is found by one pair of numbers (b, i), and pairs without an entry are drawn again,
 * so no entry is preferred. A bucket with more than TABLE_DRAW_PLACES entries is not expected in the
 * lifetime of the universe unless memory for a larger table was exhausted. A table in which so many tries
 * find nothing is only left when memory for a smaller one was exhausted. Then the next entry is taken.
 */
struct entry *table_draw(const struct table *table, uint64_t (*draw)(void *argument),
                         void *argument, uint64_t *steps)
{
    size_t buckets = table->sizes[0] - table->moved + table->sizes[1], at = 0;
    if (table->count == 0)
        return NULL;
    for (int tries = 0; tries < TABLE_DRAW_TRIES; tries++, ++*steps) {
        uint64_t number = draw(argument);
        at = (size_t)(number / TABLE_DRAW_PLACES % buckets);
        struct entry *entry = bucket_at(table, at);
        for (unsigned i = number % TABLE_DRAW_PLACES; i > 0 && entry != NULL; i--)
            entry = entry->next;
        if (entry != NULL)
            return entry;
    }
    for (; bucket_at(table, at) == NULL; ++*steps)
        at = (at + 1) % buckets;
    return bucket_at(table, at);
}

size_t table_sample(const struct table *table, uint64_t number, struct entry **entries, size_t max,
                    uint64_t *steps)
{
    size_t buckets = table->sizes[0] - table->moved + table->sizes[1], count = 0, visited = 0;
    if (table->count == 0)
        return 0;
    for (size_t at = (size_t)(number % buckets); visited < buckets && count < max;
         at = (at + 1) % buckets) {
        struct entry *entry = bucket_at(table, at);
        for (; entry != NULL && count < max; entry = entry->next)
            entries[count++] = entry;
        if (++visited >= TABLE_DRAW_TRIES && count > 0)
            break;
    }
    *steps += visited;
    return count;
}

/* ---- Visiting ---- */

static size_t reverse_bits(size_t bits)
{
    size_t result = 0;
    for (unsigned i = 0; i < 8 * sizeof bits; i++)
        result |= (bits >> i & 1) << (8 * sizeof bits - 1 - i);
    return result;
}

static void visit_bucket(struct entry *entry, void (*visit)(void *, struct entry *), void *argument)
{
    for (; entry != NULL; entry = entry->next)
        visit(argument, entry);
}

/* The array of fewer buckets, 0 or 1. */
static int smaller_array(const struct table *table)
{
    return table->buckets[1] != NULL && table->sizes[1] <= table->sizes[0];
}

/*
 * The cursor counts with its bits reversed. A larger array splits a bucket into buckets that share its
 * lower bits. The cursor visits these one after the other, so visited buckets stay behind it in an array
 * of any size.
 */
size_t table_scan(struct table *table, size_t cursor,
                  void (*visit)(void *argument, struct entry *entry), void *argument)
{
    if (table->sizes[0] == 0)
        return 0;
    int small = smaller_array(table), large = table->buckets[1] != NULL ? !small : small;
    size_t small_mask = table->sizes[small] - 1, large_mask = table->sizes[large] - 1;
    visit_bucket(table->buckets[small][cursor & small_mask], visit, argument);
    if (small != large)
        for (size_t high = 0; high <= large_mask; high += small_mask + 1)
            visit_bucket(table->buckets[large][(cursor & small_mask) | high], visit, argument);
    cursor = reverse_bits(reverse_bits(cursor | ~small_mask) + 1);
    return cursor;
}

struct scan_once {
    size_t from; /* hashes with their bits reversed; those below have been visited */
    void (*visit)(void *argument, struct entry *entry);
    void *argument;
};

static void visit_from(void *argument, struct entry *entry)
{
    struct scan_once *scan = argument;
    if (reverse_bits(entry->hash) >= scan->from)
        scan->visit(scan->argument, entry);
}

/*
 * A position is a range of hashes with their bits reversed, and the cursor is the end of the ranges that have been
 * visited. If the table has shrunk, the range at the cursor may begin before it.
 */
size_t table_scan_once(struct table *table, size_t cursor,
                       void (*visit)(void *argument, struct entry *entry), void *argument)
{
    struct scan_once scan = {reverse_bits(cursor), visit, argument};
    size_t small = table->sizes[smaller_array(table)];
    if (small == 0 || (cursor & ~(small - 1)) == 0)
        return table_scan(table, cursor, visit, argument);
    return table_scan(table, cursor, visit_from, &scan);
}

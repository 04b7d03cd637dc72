#include "table.h"

#include <stdlib.h>

enum { LEAST = 16, MOVES = 2, EMPTY_MOVES = 64, SPARSE = 16 };

void table_init(struct table *table, const uint64_t key[2])
{
    *table = (struct table){.generation = 1, .key = {key[0], key[1]}};
}

static void free_bucket(struct table *table, struct entry *entry)
{
    for (struct entry *next; entry != NULL; entry = next) {
        next = entry->next;
        if (table->before_move != NULL)
            table->before_move(table->argument, entry);
        free(entry);
    }
}

bool table_free_some(struct table *table, size_t buckets)
{
    for (int i = 0; i < 2; i++) {
        for (; table->sizes[i] > 0 && buckets > 0; buckets--)
            free_bucket(table, table->buckets[i][--table->sizes[i]]);
        if (table->sizes[i] > 0)
            return false;
        free(table->buckets[i]);
        table->buckets[i] = NULL;
    }
    table->count = 0;
    table->moved = 0;
    table->generation += 2;
    return true;
}

/* ---- Changing the size ---- */

/* Without memory the table stays as it is, and gets slower. */
static void begin_to_move(struct table *table, size_t size)
{
    struct entry **buckets = calloc(size, sizeof *buckets);
    if (buckets == NULL)
        return;
    table->buckets[table->sizes[0] != 0] = buckets;
    table->sizes[table->sizes[0] != 0] = size;
    table->moved = 0;
}

static void end_to_move(struct table *table)
{
    free(table->buckets[0]);
    table->buckets[0] = table->buckets[1];
    table->sizes[0] = table->sizes[1];
    table->buckets[1] = NULL;
    table->sizes[1] = 0;
    table->generation++;
}

static void move_some(struct table *table)
{
    size_t mask = table->sizes[1] - 1;
    for (int moves = 0, empty = 0; moves < MOVES && empty < EMPTY_MOVES;) {
        if (table->moved == table->sizes[0]) {
            end_to_move(table);
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
            if (table->before_move != NULL)
                table->before_move(table->argument, entry);
            entry->next = table->buckets[1][entry->hash & mask];
            table->buckets[1][entry->hash & mask] = entry;
        }
    }
}

/* ---- Operations ---- */

static struct entry **find_in(struct entry **link, struct bytes key, uint32_t hash)
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
        move_some(table);
    struct entry **link = find_in(&table->buckets[0][hash & (table->sizes[0] - 1)], key, hash);
    if (*link == NULL && table->buckets[1] != NULL)
        link = find_in(&table->buckets[1][hash & (table->sizes[1] - 1)], key, hash);
    return link;
}

struct entry *table_add(struct table *table, struct bytes key, uint32_t hash, size_t room)
{
    if (table->sizes[0] == 0)
        begin_to_move(table, LEAST);
    else if (table->buckets[1] == NULL && table->count >= table->sizes[0] &&
             table->sizes[0] <= UINT32_MAX / 2)
        begin_to_move(table, table->sizes[0] * 2);
    if (table->sizes[0] == 0)
        return NULL;
    struct entry *entry = malloc(sizeof *entry + key.size + room);
    if (entry == NULL)
        return NULL;
    int array = table->buckets[1] != NULL;
    struct entry **bucket = &table->buckets[array][hash & (table->sizes[array] - 1)];
    *entry = (struct entry){
        .next = *bucket, .hash = hash, .key_size = (uint32_t)key.size, .room = (uint32_t)room};
    memcpy(entry->bytes, key.data, key.size);
    *bucket = entry;
    table->count++;
    return entry;
}

struct entry *table_take(struct table *table, struct entry **link)
{
    struct entry *entry = *link;
    *link = entry->next;
    table->count--;
    if (table->buckets[1] == NULL && table->sizes[0] > LEAST &&
        table->count < table->sizes[0] / SPARSE)
        begin_to_move(table, table->sizes[0] / SPARSE * 2);
    return entry;
}

struct entry *table_widen(struct entry **link, size_t room, bool spare)
{
    size_t key_size = (*link)->key_size;
    struct entry *entry = NULL;
    if (spare && room <= UINT32_MAX / 2)
        entry = realloc(*link, sizeof *entry + key_size + 2 * room);
    if (entry != NULL)
        room *= 2;
    else
        entry = realloc(*link, sizeof *entry + key_size + room);
    if (entry == NULL)
        return NULL;
    entry->room = (uint32_t)room;
    *link = entry;
    return entry;
}

/* ---- Visiting ---- */

static size_t reversed(size_t bits)
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

/*
 * The cursor counts with its bits reversed. So the buckets that one becomes in a larger array,
 * which have its lower bits, come one after the other; and what was visited stays behind the
 * cursor in an array of any size.
 */
size_t table_scan(struct table *table, size_t cursor,
                  void (*visit)(void *argument, struct entry *entry), void *argument)
{
    if (table->sizes[0] == 0)
        return 0;
    int large = table->buckets[1] != NULL && table->sizes[1] > table->sizes[0];
    int small = table->buckets[1] != NULL ? !large : large;
    size_t small_mask = table->sizes[small] - 1, large_mask = table->sizes[large] - 1;
    visit_bucket(table->buckets[small][cursor & small_mask], visit, argument);
    if (small != large)
        for (size_t high = 0; high <= large_mask; high += small_mask + 1)
            visit_bucket(table->buckets[large][(cursor & small_mask) | high], visit, argument);
    cursor = reversed(reversed(cursor | ~small_mask) + 1);
    return cursor;
}

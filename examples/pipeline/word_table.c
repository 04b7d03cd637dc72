/* The table of words. Used by one coroutine. */
#include "word_table.h"

#include <bide/compiler.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_SLOTS = 4096, CHUNK_SIZE = 1024 * 1024 };

struct word_chunk {
    struct word_chunk *older;
    char text[];
};

/* Up to eight bytes, equal hashes and lengths mean equal words (word_scan.h). */
static bool is_word(const struct word *slot, uint64_t hash, const char *text, size_t length)
{
    return slot->hash == hash && slot->length == length &&
           (length <= 8 || memcmp(slot->text, text, length) == 0);
}

/* The slot of a word, or the free slot for it. */
BIDE_INLINE struct word *find_slot(const struct word_table *table, uint64_t hash, const char *text,
                                   size_t length)
{
    size_t index = hash & table->mask;
    while (table->slots[index].count != 0 && !is_word(&table->slots[index], hash, text, length))
        index = (index + 1) & table->mask;
    return &table->slots[index];
}

/* Doubles the slots. */
static int grow_table(struct word_table *table)
{
    size_t count = table->mask + 1;
    struct word *old = table->slots;
    struct word *slots = calloc(2 * count, sizeof *slots);
    if (slots == NULL)
        return -ENOMEM;
    table->slots = slots;
    table->mask = 2 * count - 1;
    for (size_t i = 0; i < count; i++) {
        if (old[i].count == 0)
            continue;
        size_t index = old[i].hash & table->mask;
        while (slots[index].count != 0)
            index = (index + 1) & table->mask;
        slots[index] = old[i];
    }
    free(old);
    return 0;
}

/* Copies a word into the arena. Returns NULL if memory is exhausted. */
static const char *store_text(struct word_table *table, const char *text, size_t length)
{
    if (table->free_size < length) {
        size_t size = length > CHUNK_SIZE ? length : CHUNK_SIZE;
        struct word_chunk *chunk = malloc(sizeof *chunk + size);
        if (chunk == NULL)
            return NULL;
        chunk->older = table->chunks;
        table->chunks = chunk;
        table->free = chunk->text;
        table->free_size = size;
    }
    char *stored = memcpy(table->free, text, length);
    table->free += length;
    table->free_size -= length;
    return stored;
}

/* Adds a new word to the table. */
BIDE_COLD static int add_word(struct word_table *table, const char *text, size_t length,
                              uint64_t hash)
{
    if (table->used > table->mask / 2) {
        int error = grow_table(table);
        if (error != 0)
            return error;
    }
    const char *stored = store_text(table, text, length);
    if (stored == NULL)
        return -ENOMEM;
    *find_slot(table, hash, text, length) = (struct word){stored, length, hash, 1};
    table->used++;
    return 0;
}

int word_table_count(struct word_table *table, const char *text, size_t length, uint64_t hash)
{
    struct word *slot = find_slot(table, hash, text, length);
    if (BIDE_UNLIKELY(slot->count == 0))
        return add_word(table, text, length, hash);
    slot->count++;
    return 0;
}

int word_table_init(struct word_table *table)
{
    *table = (struct word_table){.mask = FIRST_SLOTS - 1};
    table->slots = calloc(FIRST_SLOTS, sizeof *table->slots);
    return table->slots != NULL ? 0 : -ENOMEM;
}

void word_table_free(struct word_table *table)
{
    free(table->slots);
    while (table->chunks != NULL) {
        struct word_chunk *older = table->chunks->older;
        free(table->chunks);
        table->chunks = older;
    }
}

uint64_t word_table_total(const struct word_table *table)
{
    uint64_t total = 0;
    for (size_t i = 0; i <= table->mask; i++)
        total += table->slots[i].count;
    return total;
}

static bool comes_before(const struct word *a, const struct word *b)
{
    if (a->count != b->count)
        return a->count > b->count;
    int order = memcmp(a->text, b->text, a->length < b->length ? a->length : b->length);
    return order != 0 ? order > 0 : a->length > b->length;
}

size_t word_table_top(const struct word_table *table, struct word *top, size_t max)
{
    size_t count = 0;
    for (size_t i = 0; i <= table->mask; i++) {
        const struct word *word = &table->slots[i];
        if (word->count == 0)
            continue;
        /* Shifts less frequent words down; if the list is full, the last one is dropped. */
        size_t position = count < max ? count++ : max;
        for (; position > 0 && comes_before(word, &top[position - 1]); position--) {
            if (position < max)
                top[position] = top[position - 1];
        }
        if (position < max)
            top[position] = *word;
    }
    return count;
}

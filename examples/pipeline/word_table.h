/*
 * A table of distinct words with their counts: open addressing, the words' text in an arena.
 */
#ifndef PIPELINE_WORD_TABLE_H
#define PIPELINE_WORD_TABLE_H

#include <stddef.h>
#include <stdint.h>

struct word {
    const char *text; /* in the arena; not terminated */
    size_t length;
    uint64_t hash;
    uint64_t count; /* 0: the slot is free */
};

struct word_chunk;

struct word_table {
    struct word *slots;
    size_t mask; /* how many slots there are, a power of two, less one */
    size_t used;
    struct word_chunk *chunks; /* the arena, newest first */
    char *free;                /* in the newest chunk */
    size_t free_size;
};

/* Makes an empty table. Returns 0 or -ENOMEM. */
int word_table_init(struct word_table *table);

void word_table_free(struct word_table *table);

/* Counts a word once more. `hash` is that of scan_word. Returns 0 or -ENOMEM. */
int word_table_count(struct word_table *table, const char *text, size_t length, uint64_t hash);

/* How many words have been counted, not only distinct ones. */
uint64_t word_table_total(const struct word_table *table);

/*
 * Writes the most frequent words to `top`, at most `max` of them, and returns how many. The more
 * frequent comes first; of two with the same count, the one whose bytes are greater.
 */
size_t word_table_top(const struct word_table *table, struct word *top, size_t max);

#endif

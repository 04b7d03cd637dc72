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
    uint64_t count; /* 0: a free slot */
};

struct word_chunk;

struct word_table {
    struct word *slots;
    size_t mask; /* the number of slots, a power of two, minus 1 */
    size_t used;
    struct word_chunk *chunks; /* the arena, newest first */
    char *free;                /* in the newest chunk */
    size_t free_size;
};

/* Initializes an empty table. Returns 0 or -ENOMEM. */
int word_table_init(struct word_table *table);

void word_table_free(struct word_table *table);

/* Adds one to the count of a word. `hash` is that of scan_word. Returns 0 or -ENOMEM. */
int word_table_count(struct word_table *table, const char *text, size_t length, uint64_t hash);

/* The number of counted words, including repetitions. */
uint64_t word_table_total(const struct word_table *table);

/*
 * Writes the most frequent words to `top`, at most `max`, and returns how many. More frequent words
 * come first; of two with the same count, the greater one in byte order.
 */
size_t word_table_top(const struct word_table *table, struct word *top, size_t max);

#endif

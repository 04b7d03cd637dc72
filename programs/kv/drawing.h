/*
 * Drawing entries of a table at random. Each entry has the same chance.
 *
 *     struct drawing drawing;
 *     if (drawing_begin(&drawing, &table, count, true, draw, argument))
 *         for (uint64_t i = 0; i < count; i++)
 *             use(drawing_next(&drawing));
 *     drawing_end(&drawing);
 *
 * Few entries are drawn from the table's buckets. For many, all entries are listed first, and each draw
 * from the list is one step. So all draws together take no more steps, on average, than the table has
 * buckets and entries, and one for each draw. The table must not change meanwhile. One thread.
 */
#ifndef KV_DRAWING_H
#define KV_DRAWING_H

#include "table.h"

struct drawing {
    struct table *table;
    uint64_t (*draw)(void *argument);
    void *argument;
    bool differ;            /* no entry is drawn twice */
    bool lists_all;         /* `entries` are all of the table */
    struct entry **entries; /* with `differ`, the drawn ones come first, in their order */
    struct entry **places;  /* a hash table of the drawn ones; or NULL */
    size_t count;           /* that were drawn; while they are listed, of those in the list */
    size_t place_count;
    uint64_t steps;
};

/*
 * Prepares for so many draws. With `differ`, the table has as many entries. `draw` returns random numbers. The
 * table is not empty. Returns false if memory is exhausted.
 */
bool drawing_begin(struct drawing *drawing, struct table *table, uint64_t draws, bool differ,
                   uint64_t (*draw)(void *argument), void *argument);

struct entry *drawing_next(struct drawing *drawing);

/* Frees the memory; also if drawing_begin has failed. */
void drawing_end(struct drawing *drawing);

#endif

/* Drawing entries of a table. drawing.h has the model. */
#include "drawing.h"

#include <stdlib.h>

static void list_entry(void *argument, struct entry *entry)
{
    struct drawing *drawing = argument;
    drawing->entries[drawing->count++] = entry;
}

static void list_all(struct drawing *drawing)
{
    struct table *table = drawing->table;
    size_t cursor = 0;
    do
        cursor = table_scan(table, cursor, list_entry, drawing);
    while (cursor != 0);
    bide_assert(drawing->count == table->count);
    drawing->steps += table->sizes[0] + table->sizes[1] + table->count;
    drawing->count = 0;
}

bool drawing_begin(struct drawing *drawing, struct table *table, uint64_t draws, bool differ,
                   uint64_t (*draw)(void *argument), void *argument)
{
    /* Below this part of the entries, draws from buckets take fewer steps than a list: TABLE_DRAW_PLACES. */
    const uint64_t few = table->count / TABLE_DRAW_PLACES;
    bide_assert(table->count > 0 && (!differ || draws <= table->count));
    *drawing = (struct drawing){.table = table,
                                .draw = draw,
                                .argument = argument,
                                .differ = differ,
                                .lists_all = draws > few};
    if (!drawing->lists_all && !differ)
        return true;
    drawing->entries =
        malloc((drawing->lists_all ? table->count : (size_t)draws + 1) * sizeof(struct entry *));
    if (!drawing->lists_all) {
        drawing->place_count = 2 * (size_t)draws + 1;
        drawing->places = calloc(drawing->place_count, sizeof(struct entry *));
    }
    if (drawing->entries == NULL || (!drawing->lists_all && drawing->places == NULL))
        return false;
    if (drawing->lists_all)
        list_all(drawing);
    return true;
}

/* Adds an entry to the hash table. Returns false if it is there. */
static bool add_place(struct drawing *drawing, struct entry *entry)
{
    size_t size = drawing->place_count, at = ((uintptr_t)entry >> 4) * 0x9e3779b1U % size;
    for (; drawing->places[at] != NULL; at = (at + 1) % size) {
        if (drawing->places[at] == entry)
            return false;
    }
    drawing->places[at] = entry;
    return true;
}

static struct entry *draw_from_list(struct drawing *drawing)
{
    size_t all = drawing->table->count, first = drawing->differ ? drawing->count++ : 0;
    size_t at = first + (size_t)(drawing->draw(drawing->argument) % (all - first));
    struct entry *entry = drawing->entries[at];
    drawing->steps++;
    if (drawing->differ) { /* it changes places with the first that was not drawn yet */
        drawing->entries[at] = drawing->entries[first];
        drawing->entries[first] = entry;
    }
    return entry;
}

struct entry *drawing_next(struct drawing *drawing)
{
    struct entry *entry;
    bide_assert(!drawing->differ || drawing->count < drawing->table->count);
    if (drawing->lists_all)
        return draw_from_list(drawing);
    do
        entry = table_draw(drawing->table, drawing->draw, drawing->argument, &drawing->steps);
    while (drawing->differ && !add_place(drawing, entry));
    if (drawing->differ)
        drawing->entries[drawing->count++] = entry;
    return entry;
}

void drawing_end(struct drawing *drawing)
{
    free(drawing->entries);
    free(drawing->places);
}

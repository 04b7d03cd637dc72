/* The tables of the screen: loops and pools, and the groups of tasks with the expanded group's tasks. */
#ifndef TOP_TABLES_H
#define TOP_TABLES_H

#include "view.h"

/* The number of lines of the groups, and the lines of the selected group. */
typedef struct table_lines {
    size_t count;
    size_t selected;
    size_t selected_end;
} table_lines;

/* Both return the number of lines that they have drawn; the second draws `max` lines at most. */
unsigned tables_draw_summary(const picture *picture, canvas *canvas);
unsigned tables_draw_executors(const view *view, const picture *picture, canvas *canvas,
                               unsigned max);

/* One line, above the groups of an arranged view. */
void tables_draw_head(const view *view, const picture *picture, canvas *canvas);

/* The groups of an arranged view, and the tasks of the expanded group. */
table_lines tables_measure(const view *view, const picture *picture);
void tables_draw_groups(const view *view, const picture *picture, canvas *canvas, size_t first,
                        size_t lines);

/* All tasks of the picture. */
void tables_draw_tasks(const picture *picture, canvas *canvas);

#endif

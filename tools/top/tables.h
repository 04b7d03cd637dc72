/* The tables of a screen: loops and pools, and the groups of tasks with what is expanded. */
#ifndef TOP_TABLES_H
#define TOP_TABLES_H

#include "view.h"

/* How many lines they take, and which are the selected group's. */
typedef struct table_lines {
    size_t count;
    size_t selected;
    size_t selected_end;
} table_lines;

/* These two return how many lines they have drawn; the second draws `max`, at most. */
unsigned tables_draw_summary(const picture *picture, canvas *canvas);
unsigned tables_draw_runners(const view *view, const picture *picture, canvas *canvas,
                             unsigned most);

/* One line, above the groups of an arranged view. */
void tables_draw_head(const view *view, canvas *canvas);

/* The groups of an arranged view, and the tasks of the one that is expanded. */
table_lines tables_measure(const view *view, const picture *picture);
void tables_draw_groups(const view *view, const picture *picture, canvas *canvas, size_t first,
                        size_t lines);

/* All tasks that the picture has one by one. */
void tables_draw_tasks(const picture *picture, canvas *canvas);

#endif

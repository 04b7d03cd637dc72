/* What of a picture is to be seen, and how it is drawn. */
#ifndef TOP_VIEW_H
#define TOP_VIEW_H

#include "canvas.h"
#include "picture.h"

enum { MAX_FILTER = 64, MAX_MESSAGE = 256 };

typedef enum view_sort { SORT_TASKS, SORT_STANDS, SORT_NAME, SORT_PLACE, SORTS } view_sort;

typedef struct view {
    view_sort sort;
    bool is_reversed;
    bool shows_workers;
    bool hides_runners;
    bool shows_help;
    bool is_paused;
    bool is_typing; /* the filter */
    char filter[MAX_FILTER];
    uint64_t interval;      /* nanoseconds */
    uint64_t selected;      /* a group; 0: the first */
    uint64_t expanded;      /* a group; 0: none */
    size_t skipped;         /* tasks of that, before the first to be seen */
    size_t first;           /* line of the table that is at its top */
    char message[MAX_MESSAGE]; /* at the bottom; or empty */

    /* of the last drawing */
    const picture_group **order; /* the groups to be seen, as they are sorted */
    size_t order_room, count;
} view;

void view_free(view *view);

/* Sorts and filters: `order` and `count`. */
void view_arrange(view *view, const picture *picture);

/* Goes up or down in the groups, by so many. */
void view_move(view *view, long by);

/* The whole screen, of that size. */
void view_draw(view *view, const picture *picture, canvas *canvas, unsigned columns, unsigned rows);

/* All of it as text, one after the other. */
void view_print(view *view, const picture *picture, canvas *canvas, unsigned columns);

/* The tasks that it has one by one, of whatever groups. */
void view_print_tasks(const picture *picture, canvas *canvas);

#endif

/* The view: which part of a picture is shown, and how it is sorted. */
#ifndef TOP_VIEW_H
#define TOP_VIEW_H

#include "canvas.h"
#include "picture.h"

enum { FILTER_SIZE = 64, MESSAGE_SIZE = 256 };

typedef enum view_sort {
    SORT_TASKS,
    SORT_STANDS,
    SORT_NAME,
    SORT_PLACE,
    SORT_BUSY,
    SORT_RUNS,
    SORT_WAKES,
    SORTS
} view_sort;

typedef struct view {
    view_sort sort;
    bool is_reversed;
    bool shows_workers;
    bool hides_executors;
    bool shows_help;
    bool is_paused;
    bool is_typing; /* the filter */
    char filter[FILTER_SIZE];
    uint64_t interval;          /* nanoseconds */
    uint64_t selected;          /* a group; 0: the first */
    uint64_t expanded;          /* a group; 0: none */
    size_t skipped;             /* tasks of the expanded group that are scrolled away */
    size_t first;               /* the first visible line of the table */
    char message[MESSAGE_SIZE]; /* in the bottom line; or empty */

    /* of the last drawing */
    const picture_group **order; /* the groups that are shown, sorted */
    size_t order_room, count;
} view;

void view_free(view *view);

/* Sorts and filters: `order` and `count`. */
void view_arrange(view *view, const picture *picture);

/* Moves the selection up or down by a number of groups. */
void view_move(view *view, long by);

/* Draws the whole screen. */
void view_draw(view *view, const picture *picture, canvas *canvas, unsigned columns, unsigned rows);

/* Prints everything as text. */
void view_print(view *view, const picture *picture, canvas *canvas, unsigned columns);

/* Prints the picture's tasks, of all groups. */
void view_print_tasks(const picture *picture, canvas *canvas);

#endif

/*
 * Every operation follows the stop source of the coroutine that awaits it. A row is a public operation: it is made so
 * that it waits, for something that never comes. The columns are the requests that reach it:
 *
 *     asked      the source of its coroutine, while it waits
 *     deadline   bide_with_deadline around it, whose time comes while it waits
 *     sibling    bide_when_any around it and an event, which is set
 *     token      bide_with_stop around it, whose source is asked
 *     before     the source of its coroutine, before that begins
 *
 * A row that does not follow says why, and what ends it. tests/base/follows_test.py compares the rows with the headers.
 */
#ifndef BIDE_TESTS_FOLLOWS_H
#define BIDE_TESTS_FOLLOWS_H

#include "sync/primitives.h"

#include "bide/deadline.h"
#include "bide/event.h"
#include "bide/memory_io.h"
#include "bide/sim_loop.h"
#include "bide/spawn.h"
#include "bide/stop.h"
#include "bide/task.h"
#include "bide/when.h"
#include "bide/with_stop.h"

enum { HOUR_IN_SECONDS = 3600, PIECES = 24, WAITS = 1 /* the status of what has not ended */ };

typedef enum column { ASKED, DEADLINE, SIBLING, TOKEN, BEFORE, COLUMNS } column;

typedef struct cell cell;

typedef struct row {
    const char *operation;
    bide_awaiter *(*begin)(cell *c);
    void (*prepare)(cell *c);   /* before its coroutine begins; or NULL */
    const primitive *primitive; /* in place of `begin` */
    const char *completes;      /* why it does not follow; or NULL */
    void (*end)(cell *c);       /* what ends it then; NULL: it ends by itself */
} row;

struct cell {
    bide_task task; /* the coroutine that awaits it */
    const row *row;
    column column;
    bide_sim_loop loop;
    bide_memory_io *io;
    bide_context context;
    bide_stop_source stop, token;
    bide_spawned spawned;
    bide_with_deadline_operation limited;
    bide_with_stop_operation with_stop;
    bide_when when;
    bide_branch branches[2];
    bide_event event;
    bide_event_waiter wait;
    int status;
    void *object;          /* of a primitive */
    void *object_of_clean; /* for the functions of `cleans` */
    void *pieces[PIECES];  /* freed at the end, the newest first */
    size_t pieces_count;
    void (*cleans[PIECES])(cell *c); /* called at the end, the newest first */
    size_t cleans_count;
};

/* Zeroed memory, until the end of the cell. */
void *cell_new(cell *c, size_t size);
#define NEW(type, name) type *name = cell_new(c, sizeof(type))

/* Calls it at the end of the cell, when nothing waits. */
void cell_clean(cell *c, void (*clean)(cell *c));

extern const row rows_of_waits[], rows_of_tasks[], rows_of_io[];
extern const size_t rows_of_waits_count, rows_of_tasks_count, rows_of_io_count;

#define ROW(name)                                 \
    {                                             \
        .operation = #name, .begin = begin_##name \
    }
#define ROW_OF(name, row_of_primitive)                     \
    {                                                      \
        .operation = #name, .primitive = &row_of_primitive \
    }
#define ROW_COMPLETES(name, reason, what_ends_it)                                             \
    {                                                                                         \
        .operation = #name, .begin = begin_##name, .completes = (reason), .end = what_ends_it \
    }

#endif

/*
 * The live tasks, one after the other, as they are read while they run: what dumps and the monitor
 * are made of. Floor: schedule.
 *
 * Everything here is under one lock, that of whoever looks at the live roots: bide_walk_tasks_ holds it.
 */
#ifndef BIDE_INSPECT_WALK_H
#define BIDE_INSPECT_WALK_H

#include "../coroutine/observe.h"

#include "bide/coroutine.h"

enum { WALK_SHOWN = 64, WALK_TEXT = 160 };

/* Printable, and has an end. */
typedef struct walk_text {
    char bytes[WALK_TEXT];
} walk_text;

/* A coroutine of a chain, as it was read. */
typedef struct walk_level {
    walk_text name;
    walk_text file;
    unsigned line;
} walk_level;

typedef enum walk_doing { WALK_NOT_STARTED, WALK_WAITING, WALK_RUNNING } walk_doing;

/* A root, or a branch of a scope, and what it awaits, as they were read. */
typedef struct walk_task {
    const void *address; /* of the root or the branch */
    bool is_branch;
    const bide_scheduler *scheduler; /* that it was begun on */
    walk_text name;
    walk_text context; /* or empty */
    walk_doing doing;
    walk_text waiting_for;

    /* of one that waits: the operation, inside of all wrappers, and its table; for bide_walk_describe_ */
    const bide_awaiter *operation;
    bide_awaiter_ops ops;

    const bide_frame *innermost; /* that was read; or NULL */
    size_t depth;                /* coroutines in the chain; the last WALK_SHOWN of them are in `levels` */
    walk_level levels[WALK_SHOWN];
} walk_task;

/* How many levels there are to be had, and one of those, from the innermost, 0, on. */
size_t bide_walk_levels_(const walk_task *task);
const walk_level *bide_walk_level_of_(const walk_task *task, size_t number);

/*
 * What the operation that a task waits for is on. It may have ended since the task was read; then it
 * is on nothing, or on what has come to be there. In `visit` of bide_walk_tasks_.
 */
void bide_walk_describe_(const walk_task *task, bide_described_ *described);

/*
 * Calls `visit` with each task that lives during the whole call, and some of those that begin or end
 * meanwhile; until it returns false. It may not walk itself. 0, -ENOSYS, or an errno of pipe(2): dump.h.
 */
int bide_walk_tasks_(bool (*visit)(void *argument, const walk_task *task), void *argument);

#endif

/*
 * The live tasks, one after another, as they are read while they run: for dumps and the monitor. Floor:
 * inspect.
 *
 * Everything here is under the lock of readers of the live roots, which bide_walk_tasks_ holds.
 */
#ifndef BIDE_INSPECT_WALK_H
#define BIDE_INSPECT_WALK_H

#include "../coroutine/observe.h"
#include "lock_holder.h"

#include "bide/coroutine.h"

enum { WALK_SHOWN = 64, WALK_TEXT = 160 };

/* Printable, and terminated. */
typedef struct walk_text {
    char bytes[WALK_TEXT];
} walk_text;

/* A coroutine of a chain. */
typedef struct walk_level {
    const bide_frame *frame;
    size_t size; /* of the frame's struct; 0: it is not known */
    walk_text name;
    walk_text file;
    unsigned line;
} walk_level;

/* A lock that a task waits for. */
typedef struct walk_lock {
    const void *lock;
    const void *holder; /* the waiter that has locked it; NULL: it is free */
} walk_lock;

typedef enum walk_doing { WALK_NOT_STARTED, WALK_WAITING, WALK_RUNNING } walk_doing;

/* A root, or a branch of a scope, and what it awaits. */
typedef struct walk_task {
    const void *address; /* of the root or the branch */
    bool is_branch;
    const bide_scheduler *scheduler; /* that it was started on */
    walk_text name;
    walk_text context; /* or empty */
    walk_doing doing;
    walk_text waiting_for;

    /* Of a waiting task: the operation inside all wrappers, and its table; for bide_walk_describe_. */
    const bide_awaiter *operation;
    bide_awaiter_ops ops;
    const bide_lock_layout_ *lock; /* of the lock that it waits for; or NULL */

    const bide_frame *innermost; /* that was read, or NULL */
    size_t depth; /* coroutines in the chain; the last WALK_SHOWN of them are in `levels` */
    walk_level levels[WALK_SHOWN];
} walk_task;

/* The number of levels that are kept, and one of these; 0 is the innermost. */
size_t bide_walk_levels_(const walk_task *task);
const walk_level *bide_walk_level_of_(const walk_task *task, size_t number);

/*
 * Describes the object of the operation that a task waits for, inside `visit` of bide_walk_tasks_. The
 * operation may have ended since the task was read: then this is nothing, or a later object.
 */
void bide_walk_describe_(const walk_task *task, bide_described_ *described);

/*
 * The lock that a task waits for, inside `visit` of bide_walk_tasks_; false: it waits for none whose holder
 * can be known. The operation may have ended since the task was read: then it is any addresses.
 */
bool bide_walk_lock_of_(const walk_task *task, walk_lock *lock);

/*
 * Calls `visit` with each task that lives during the whole call, and with some that start or end
 * meanwhile, until it returns false. It may not walk itself. 0, -ENOSYS, or an errno of pipe(2): dump.h.
 */
int bide_walk_tasks_(bool (*visit)(void *argument, const walk_task *task), void *argument);

#endif

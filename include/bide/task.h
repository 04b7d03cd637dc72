/*
 * A task: a coroutine that starts when it is awaited and ends with 0 or a negative errno. Its results,
 * if any, are members of the user's frame. Floor: coroutine.
 *
 * Source: the lazily started task with symmetric transfer of Lewis Baker's articles on coroutines.
 */
#ifndef BIDE_TASK_H
#define BIDE_TASK_H

#include "bide/coroutine.h"

BIDE_EXTERN_C_BEGIN

/* The first member of a task's frame. */
typedef struct bide_task {
    bide_frame frame;
} bide_task;

/* Nothing is customised: lazily started, errors are passed to who awaits it, who runs next. */
static const bide_coroutine_type bide_task_type = {"task", NULL, NULL, NULL, NULL, NULL, NULL,
                                                   NULL,   NULL, NULL, NULL, NULL, NULL};

/* Opens the definition of a task's body; see bide_coroutine_of. */
#define bide_coroutine(name) bide_coroutine_of(bide_task_type, name)

/* The same for one that bide_declare_body has declared. */
#define bide_declared_coroutine(name) bide_declared_coroutine_of(bide_task_type, name)

/*
 * Makes `task` a task at its start, to be run by `body` (the constant of a bide_coroutine) when it is
 * awaited. Writes the header only. Returns the awaiter to give to bide_await, bide_sync_wait or
 * bide_spawn, once. The frame is the caller's and must stay where it is until the task has ended; after
 * that it may be reused at once. Any thread; does not suspend; cannot fail.
 *
 * Awaiting it runs it on the awaiting thread, in the awaiting coroutine's context, and ends with the
 * task's error.
 */
BIDE_MUST_AWAIT
BIDE_INLINE bide_awaiter *bide_task_init(bide_task *task, const bide_point *body)
{
    return bide_frame_init(&task->frame, body);
}

/* With what the task ended: 0 or a negative errno. Only after it has ended. */
BIDE_INLINE int bide_task_error(const bide_task *task)
{
    return task->frame.error;
}

BIDE_EXTERN_C_END

#endif

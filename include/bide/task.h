/*
 * A task: a coroutine that starts when it is awaited and ends with 0 or a negative errno. Its
 * results, if any, are members of the user's frame. Floor: coroutine.
 *
 *     struct read_line {
 *         bide_task task;                  // header first
 *         int file;                        // then parameters
 *         size_t length;                   // then results
 *     };
 *     bide_coroutine(read_line_body) { ... }
 *
 *     bide_try(bide_call(&self->line, &read_line_body, file = self->file));   // in another body
 *     use(self->line.length);
 *
 * The frame of a child is a member of its parent's frame, or any other memory that stays until the
 * task has ended. A task runs in the context of the coroutine that awaits it, and starts on the
 * same thread, by symmetric transfer. Nothing here allocates. To begin one beside its parent there
 * are scopes (scope.h), bide_when_all (when.h) and bide_spawn (spawn.h).
 *
 * Source: the lazily started task with symmetric transfer of Lewis Baker's articles on coroutines.
 */
#ifndef BIDE_TASK_H
#define BIDE_TASK_H

#include "bide/coroutine.h"
#include "bide/detail/arguments.h"

BIDE_EXTERN_C_BEGIN

/* The first member of a task's frame. */
typedef struct bide_task {
    bide_frame frame;
} bide_task;

/*
 * Nothing is customised: it is started lazily, and its error goes to the awaiting coroutine, which
 * runs next.
 */
static const bide_coroutine_type bide_task_type = {"task", NULL, NULL, NULL, NULL, NULL, NULL,
                                                   NULL,   NULL, NULL, NULL, NULL, NULL, NULL};

/*
 * Opens the definition of a task's body; see bide_coroutine_of.
 * Threads: as bide_coroutine_of.
 */
#define bide_coroutine(name) bide_coroutine_of(bide_task_type, name)

/*
 * The same for one that bide_declare_body has declared.
 * Threads: as bide_coroutine_of.
 */
#define bide_declared_coroutine(name) bide_declared_coroutine_of(bide_task_type, name)

/*
 * Makes `task` a task at its start, to be run by `body` (the constant of a bide_coroutine) when it
 * is awaited. Writes the header only. Returns the awaiter to give to bide_await, bide_sync_wait or
 * bide_spawn, once. The frame is the caller's and must stay where it is until the task has ended;
 * after that it may be reused at once.
 *
 * Awaiting it runs it on the awaiting thread, in the awaiting coroutine's context, and ends with
 * the task's error.
 *
 * If BIDE_DEBUG is 1, a frame that is smaller than the struct of `body` is reported if its size can
 * be seen: it is a variable, allocated memory, or a member that would reach beyond its parent's
 * frame. bide_call always sees it.
 * Threads: any. Errors: those of the body. Suspends: if the body does. Cancel-safe: no, what the
 * body has done stays: its waits end with -ECANCELED, and it continues until it ends by itself.
 * Progress: that of the body.
 */
BIDE_MUST_AWAIT
BIDE_INLINE bide_awaiter *bide_task_init(bide_task *task, const bide_point *body)
{
    return bide_frame_init(&task->frame, body);
}

#define bide_task_init(task, body) bide_task_init(task, BIDE_BODY_FOR_(body, task))

/*
 * Calls a child: writes its parameters into its frame, then bide_task_init. `child` points at the
 * frame, whose header is called `task`, and is evaluated once for each argument. `body` is the
 * address of its constant. Then come up to eight parameters, each as an assignment to a member,
 * which are evaluated in this order.
 *
 *     bide_try(bide_call(&self->parse, &parse_body, text = self->text, length = 10));
 *
 * expands to
 *
 *     bide_try((self->parse.text = self->text, self->parse.length = 10,
 *               bide_task_init(&self->parse.task, &parse_body)));
 *
 * Members that are not named stay as they are. For a child with many callers, an init function that
 * takes the parameters as its own says more.
 * Threads: any. Errors: as bide_task_init. Suspends: as bide_task_init. Cancel-safe: as
 * bide_task_init. Progress: as bide_task_init.
 */
#define bide_call(child, ...) \
    BIDE_COUNTED_(BIDE_CALL_, BIDE_COUNT_(__VA_ARGS__))(child, __VA_ARGS__)
#define BIDE_CALL_1_(child, body) \
    (bide_task_init)(&(child)->task, BIDE_BODY_OF_SIZE_(body, sizeof *(child)))
/* clang-format off */
#define BIDE_CALL_2_(child, body, ...) BIDE_CALL_WITH_(child, body, __VA_ARGS__)
#define BIDE_CALL_3_(child, body, ...) BIDE_CALL_WITH_(child, body, __VA_ARGS__)
#define BIDE_CALL_4_(child, body, ...) BIDE_CALL_WITH_(child, body, __VA_ARGS__)
#define BIDE_CALL_5_(child, body, ...) BIDE_CALL_WITH_(child, body, __VA_ARGS__)
#define BIDE_CALL_6_(child, body, ...) BIDE_CALL_WITH_(child, body, __VA_ARGS__)
#define BIDE_CALL_7_(child, body, ...) BIDE_CALL_WITH_(child, body, __VA_ARGS__)
#define BIDE_CALL_8_(child, body, ...) BIDE_CALL_WITH_(child, body, __VA_ARGS__)
#define BIDE_CALL_9_(child, body, ...) BIDE_CALL_WITH_(child, body, __VA_ARGS__)
/* clang-format on */
#define BIDE_CALL_WITH_(child, body, ...) \
    (BIDE_EACH_(BIDE_CALL_PARAMETER_, child, __VA_ARGS__), BIDE_CALL_1_(child, body))
#define BIDE_CALL_PARAMETER_(child, index, assignment) (child)->assignment

/*
 * With what the task ended: 0 or a negative errno. Only after it has ended.
 * Threads: any that knows of the end. Errors: those of the body. Progress: wait-free.
 */
BIDE_INLINE int bide_task_error(const bide_task *task)
{
    return task->frame.error;
}

BIDE_EXTERN_C_END

#endif

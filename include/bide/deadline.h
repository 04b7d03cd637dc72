/*
 * Deadlines: at a given time, the waits under a deadline are cancelled and end with -ETIMEDOUT.
 * Floor: coroutine.
 *
 *     bide_await_status(status,                               // one operation, for 2 s at most
 *                       bide_with_timeout(&self->limited, BIDE_SECONDS(2), fetch(&self->fetch, url)));
 *     bide_await_status(status,                               // the same until a time
 *                       bide_with_deadline(&self->limited, time, fetch(&self->fetch, url)));
 *
 * A deadline inside another may end with -ETIMEDOUT because of either. bide_with_deadline_passed says
 * whether it was its own, so that a retry ends when the outer time has come:
 *
 *     do {
 *         bide_await_status(status, bide_with_timeout(&self->limited, BIDE_SECONDS(2),
 *                                                     fetch(&self->fetch, url)));
 *     } while (status == -ETIMEDOUT && bide_with_deadline_passed(&self->limited));
 *
 * A bide_deadline is the same for more than one operation. It has a context with a stop source of its
 * own; a coroutine that runs in this context is under the deadline. It must be ended before its memory
 * is freed:
 *
 *     error = bide_deadline_init(&self->deadline, bide_this_context(), time);
 *     ... run one chain of coroutines (stop.h) in self->deadline.context, to its end ...
 *     bide_await(bide_deadline_stop(&self->end, &self->deadline));
 *
 *     init --> SET --the time comes--> its source is asked to stop --> ENDED
 *               +-----------------------stop----------------------------^
 *
 * Any thread may set a deadline, and end it; one thread at a time. The stop is requested on the
 * scheduler of the context that was passed to init. That scheduler must have timers, or init fails
 * with -ENOTSUP. sleep.h says how the inline scheduler keeps time.
 *
 * Times are in nanoseconds of bide_now() (sleep.h): bide_now(bide_this_context()) + BIDE_MILLISECONDS(5) is
 * in 5 ms. A deadline costs setting and clearing one timer. A time that can only be a duration, because it
 * lies far before the process began, is misuse, which debug builds report; 0 is allowed, and has passed.
 *
 * Why it is correct: src/coroutine/deadline.c.
 *
 * Source: Nathaniel J. Smith's article on timeouts and cancellation (cancel scopes).
 */
#ifndef BIDE_DEADLINE_H
#define BIDE_DEADLINE_H

#include "bide/stop.h"
#include "bide/extend/choice.h"
#include "bide/extend/timer.h"

BIDE_EXTERN_C_BEGIN

/* The caller's memory, from init until it has ended. */
typedef struct bide_deadline {
    bide_context context; /* for what is to run under it; constant */
    bide_stop_source source;
    bide_timer timer;
    bide_frame frame; /* runs when the time has come */
    bide_atomic(
        uintptr_t) state; /* BIDE_DEADLINE_SET, BIDE_DEADLINE_ENDED, or the waiter for its end */
} bide_deadline;

#define BIDE_DEADLINE_SET   ((uintptr_t)0)
#define BIDE_DEADLINE_ENDED ((uintptr_t)1)

/* One wait for the end of a deadline. The caller's memory until the wait has ended. */
typedef struct bide_deadline_waiter {
    bide_awaiter awaiter;
    bide_deadline *deadline;
} bide_deadline_waiter;

/*
 * Sets a deadline at `time`, nanoseconds of bide_now(): then deadline->source is asked to
 * stop, with -ETIMEDOUT, on the scheduler of `context`. deadline->context is `context` with that
 * source in place of its own, to which it is attached: a request on that one reaches it too, with
 * its reason. One chain of coroutines may run in it (stop.h). `context` and its source outlive the
 * deadline.
 * Threads: any. Errors: -ENOTSUP (the scheduler has no timers; nothing is set), -EAGAIN (inline, and
 * no thread could be started; nothing is set). Suspends: never. Progress: blocks for a moment at most.
 */
int bide_deadline_init(bide_deadline *deadline, const bide_context *context, uint64_t time);

/* The same in debug builds: reports misuse with its place if `time` can only be a duration. */
int bide_deadline_init_checked_(bide_deadline *deadline, const bide_context *context, uint64_t time,
                                const char *function, const char *file, unsigned line);

#if BIDE_DEBUG
#define bide_deadline_init(deadline, context, time) \
    bide_deadline_init_checked_((deadline), (context), (time), __func__, __FILE__, __LINE__)
#endif

/*
 * Ends a deadline that was set, whether its time has come or not: afterwards nothing refers to it,
 * and its memory may be freed. Nothing runs in its context any more.
 * Threads: any. Errors: none. Suspends: if it is about to ask its source to stop at this moment,
 * until it has. Cancel-safe: yes, it cannot be cancelled. Progress: blocks for a moment at most.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_deadline_stop(bide_deadline_waiter *waiter, bide_deadline *deadline);

/*
 * The same where no await can stand. False: it is about to ask its source to stop at this moment,
 * and has to be ended by bide_deadline_stop, or by this a little later. A deadline of zeros has
 * ended.
 * Threads: any. Suspends: never. Progress: blocks for a moment at most.
 */
bool bide_deadline_try_stop(bide_deadline *deadline);

/*
 * Whether its time came before it was ended. It may then have ended the waits under it; or a request on
 * the source of its context did, before.
 * Threads: one at a time, after it was ended. Progress: wait-free.
 */
BIDE_INLINE bool bide_deadline_passed(const bide_deadline *deadline)
{
    return bide_done(&deadline->frame);
}

/* One operation under a deadline. The caller's memory until the wait has ended. */
typedef struct bide_with_deadline_operation {
    bide_awaiter awaiter;
    bide_awaiter *inner;
    uint64_t time; /* of bide_with_timeout until it begins: how long */
    bool passed;
    bool is_duration; /* `time` is how long, and not begun */
    bool is_late;     /* after a wait as a case of a select: the time has come */
    bool failed;      /* the timer could not be set: wait.status */
    bide_frame frame; /* awaits `inner`, and then the end of the deadline */
    bide_deadline_waiter end;
    bide_deadline deadline;
    bide_wrapper_wait_ wait; /* as a case of a select: under the deadline */
} bide_with_deadline_operation;

/*
 * Runs `inner` (a task, or any operation) in the awaiting coroutine's context with a deadline: from
 * `time` on what it waits for ends with -ETIMEDOUT, as by bide_stop_request_with. Ends when `inner`
 * has ended, with its status, which is its own affair. `operation` must stay until the wait has
 * ended. If the coroutine is destroyed before it learns of the end, what `inner` took is
 * given back. As a case of a select it wins with -ETIMEDOUT when the time has come.
 * Threads: any. Errors: those of `inner`; -ENOTSUP (at once, `inner` is not ready and not begun,
 * because the scheduler has no timers). Suspends: if `inner` does. Cancel-safe: as its inner
 * operation is. Progress: that of `inner`.
 */
BIDE_PASSES_RESULT
BIDE_MUST_AWAIT
bide_awaiter *bide_with_deadline(bide_with_deadline_operation *operation, uint64_t time,
                                 bide_awaiter *inner);

/*
 * The same for `duration` nanoseconds (BIDE_SECONDS and the like) from when the wait begins; BIDE_FOREVER
 * never ends. A negative duration is misuse, which is detected if BIDE_DEBUG is 1.
 * Threads: any. Errors: as bide_with_deadline. Suspends: if `inner` does. Cancel-safe: as its inner
 * operation is. Progress: that of `inner`.
 */
BIDE_PASSES_RESULT
BIDE_MUST_AWAIT
bide_awaiter *bide_with_timeout(bide_with_deadline_operation *operation, uint64_t duration,
                                bide_awaiter *inner);

BIDE_MUST_AWAIT
BIDE_INLINE bide_awaiter *bide_with_timeout_checked_(bide_with_deadline_operation *operation,
                                                     uint64_t duration, bide_awaiter *inner,
                                                     const char *what, const char *function,
                                                     const char *file, unsigned line)
{
    return bide_with_timeout(operation, bide_duration_(duration, what, function, file, line),
                             inner);
}

#if BIDE_DEBUG
#define bide_with_timeout(operation, duration, inner) BIDE_WITH_TIMEOUT_(operation, duration, inner)
#define BIDE_WITH_TIMEOUT_(operation, duration, inner)           \
    bide_with_timeout_checked_((operation), (duration), (inner), \
                               BIDE_MISUSE_("a duration is negative", #operation))
#endif

/*
 * Whether the time of a bide_with_deadline or bide_with_timeout came before its inner operation ended. After
 * -ETIMEDOUT false means that another deadline was the cause, such as one around the coroutine: a retry
 * would end in the same way.
 * Threads: the waiter's, after the wait has ended. Progress: wait-free.
 */
BIDE_INLINE bool bide_with_deadline_passed(const bide_with_deadline_operation *operation)
{
    return operation->passed;
}

BIDE_EXTERN_C_END

#endif

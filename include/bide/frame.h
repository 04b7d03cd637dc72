/*
 * Frames, awaiters, contexts and schedulers: what a suspended coroutine is, and how it is resumed.
 * Floor: coroutine.
 *
 * A frame is the memory of a coroutine: this header, then the members that its type declares. An
 * awaiter is one operation that a frame waits for. They point at each other while the frame waits:
 *
 *        frame                       awaiter
 *     +-----------+               +-----------+
 *     | point     |   link        | ops       |
 *     | link ---------------------> link      |  a neighbour in a list of waiters or a run queue
 *     | frame     | <---------------- frame   |  the frame to run when the operation has ended
 *     | context   |               +-----------+
 *     +-----------+
 *
 * A frame is an awaiter too: awaiting a coroutine runs it, and its `frame` is then the frame that
 * awaits it, its continuation. So a frame costs four words, and a child in its parent's frame needs
 * no awaiter beside it. An operation of your own is a struct with an awaiter at its head, a table,
 * and an init function: docs/internals/frame.md has one.
 *
 *     not started --await--> running <--> suspended (at a point) --> finished
 *         |                                   |                         ^
 *         +------------------- bide_destroy --+-------------------------+
 *
 * The thread that runs a frame may touch it. While the frame is suspended, the waker may, once: the
 * thread that ends the operation that the frame waits for. A frame runs only where its context's
 * scheduler runs it. So an awaiter transfers to a frame of another scheduler by posting
 * (bide_wake), never by returning it from suspend. A waker hands the frame to another thread by a
 * release that the taker acquires (a waiter list, a run queue), so a frame's plain fields need no
 * order of their own.
 */
#ifndef BIDE_FRAME_H
#define BIDE_FRAME_H

#include "bide/compiler.h"
#include "bide/detail/tuning.h"
#include "bide/platform.h"

#include <limits.h>

BIDE_EXTERN_C_BEGIN

typedef struct bide_awaiter bide_awaiter;
typedef struct bide_frame bide_frame;
typedef struct bide_point bide_point;
typedef struct bide_context bide_context;
typedef struct bide_context_value bide_context_value;
typedef struct bide_scheduler bide_scheduler;
typedef struct bide_stop_source bide_stop_source;
typedef struct bide_coroutine_type bide_coroutine_type;
typedef struct bide_timer bide_timer;
typedef struct bide_choice bide_choice;
typedef struct bide_environment bide_environment;
typedef struct bide_io bide_io;

/*
 * How the effect of an operation is undone that has ended, if another operation that it was raced
 * against is chosen: see bide_awaiter_ops.
 */
typedef enum bide_undo {
    BIDE_UNDO_NONE,     /* it is not: a select refuses the operation, unless it has an `attempt` */
    BIDE_UNDO_WITHDRAW, /* `withdraw` gives back what it took; or it took nothing */
    BIDE_UNDO_INNER,    /* a wrapper: as those of its inner operations are, all of them */
    BIDE_UNDO_ATTEMPT   /* it has an `attempt`, which also returns what another thread, that has carried
                           it out, has left as its result (extend/choice.h, rules) */
} bide_undo;

/*
 * The functions of an operation that can be awaited. An operation is an init function that fills its
 * awaiter in place and returns it. The table is a `static const` in the header, so a compiler that
 * sees the init function inlines the whole await. NULL means the behaviour of a frame that has not
 * started. It is checked rather than called, because awaiting a child whose init function is in
 * another file should not take three more indirect calls.
 */
typedef struct bide_awaiter_ops {
    /* Returns true if it has already ended, so the frame need not suspend. NULL: false. */
    bool (*ready)(bide_awaiter *awaiter);

    /*
     * The frame is saved and awaiter->frame is set: start the operation. Returns the frame that
     * runs next: `frame` (it has ended, do not suspend after all), another frame (symmetric
     * transfer), or NULL (back to the resume loop). From the moment when the operation may end
     * elsewhere, neither the awaiter nor the frame may be touched. NULL: the awaiter is a frame; it
     * runs next, in the context of `frame`.
     */
    bide_frame *(*suspend)(bide_awaiter *awaiter, bide_frame *frame);

    /*
     * The frame runs again: take the result. Returns 0 or a negative errno. NULL: the awaiter is a
     * frame; its error.
     */
    int (*resume)(bide_awaiter *awaiter);

    /*
     * Cancels the operation, which was started: removes it from the structure in which it is
     * enlisted, ends it with bide_awaiter_finish_cancelled, and wakes it; or does nothing, if it is
     * already ending. It takes nothing then. NULL: the operation cannot be cancelled.
     *
     * Any thread, once, after suspend has returned, and concurrently with the operation's end. The
     * operation stays until cancel has returned, even if it ends in the meantime (stop.h); its
     * `frame` is then a gate in front of the waiting coroutine's frame. No lock is held.
     */
    void (*cancel)(bide_awaiter *awaiter);

    /*
     * The waiting coroutine is destroyed, and no other thread ends the operation at the same time:
     * removes the operation from the structure in which it is enlisted. On a thread of the
     * coroutine's scheduler. NULL: it cannot be withdrawn; if it is ready it is not written to, and
     * may be a constant.
     *
     * Returns true if nothing refers to it any more. Returns false if it has ended, and was posted
     * to its scheduler; it has then given back what it took, or passed it to the next waiter.
     *
     * Also called, and then false, for an operation that ended without having suspended, or whose
     * result was taken, on behalf of a coroutine that will never know: behind a wrapper
     * (wrapper.h).
     */
    bool (*withdraw)(bide_awaiter *awaiter);

    const char *name; /* for inspection (inspect.h); NULL for a frame */

    /*
     * For operations that a select attempts, rather than awaits (extend/choice.h has the rules):
     * performs the operation if it need not wait, and returns its result. Otherwise does nothing,
     * stores the awaiter to wait for in choice->wait, and returns -EAGAIN. NULL: a select awaits it,
     * if `undo` allows that.
     */
    int (*attempt)(bide_awaiter *awaiter, bide_choice *choice);

    /* How `withdraw` undoes an operation that has ended with 0: for a select that awaits it, and
     * chooses another. */
    bide_undo undo;
} bide_awaiter_ops;

struct bide_awaiter {
    const bide_awaiter_ops *ops;
    bide_awaiter *link; /* the operation's holder's: the next in its list */
    bide_frame *frame;  /* to be run when the operation has ended */
};

/*
 * The header of every coroutine's frame. awaiter.ops is its point (bide_frame_point), awaiter.link
 * what it waits for, awaiter.frame its continuation. Writer: the coroutine, or the thread that
 * begins it.
 */
struct bide_frame {
    bide_awaiter awaiter;
    union {
        const bide_context *context; /* until it has finished */
        int error;                   /* after that: 0 or a negative errno */
    };
};

/*
 * The result of a step: the frame that runs next, or NULL: none, back to the resume loop. A struct,
 * so that no other value can be returned from a body by mistake.
 */
typedef struct bide_next {
    bide_frame *frame;
} bide_next;

/*
 * Runs a frame from its point to where it next stops. `depth` is how many more frames may be
 * stepped by a direct call on this stack; or BIDE_DESTROY_: the frame runs its `finally` part and
 * ends; or, for code that bide_point_sized_ marks, BIDE_ASK_SIZE_: the step only returns the size of
 * its frame, as an address.
 */
#define BIDE_DESTROY_  UINT_MAX
#define BIDE_ASK_SIZE_ (UINT_MAX - 1)
typedef bide_next bide_step(bide_frame *frame, unsigned depth);

/*
 * For step functions written by hand: `return bide_next_frame(frame);` has `frame` run next, or
 * none, if it is NULL.
 * Threads: any. Progress: wait-free.
 */
BIDE_INLINE bide_next bide_next_frame(bide_frame *frame)
{
    bide_next next = {frame};
    return next;
}

/*
 * The same with none to run next: `return bide_next_none();`.
 * Threads: any. Progress: wait-free.
 */
BIDE_INLINE bide_next bide_next_none(void)
{
    return bide_next_frame(NULL);
}

/* A coroutine's code, known by name. */
typedef struct bide_coroutine_code {
    bide_step *step;
    const char *name;
    const char *file;
    const bide_coroutine_type *const *type; /* coroutine_type.h; NULL: written by hand */
    const bide_point *finished;             /* its point at the end; NULL: bide_point_finished */
} bide_coroutine_code;

typedef enum bide_state { BIDE_AT_START, BIDE_AT_AWAIT, BIDE_AT_YIELD, BIDE_AT_END } bide_state;

/*
 * A point at which a coroutine can be: one constant for its start, one for each await and yield, one
 * for its end. A suspended frame's function, file and line are read from here.
 */
struct bide_point {
    bide_awaiter_ops ops; /* how awaiting a frame at this point works */
    const bide_coroutine_code *code;
    const void *label; /* where to continue, with labels as values; NULL at the start */
    uint64_t number;   /* where to continue, in standard C; 0 at the start. At a body's end: the
                          size of its frame's struct, or 0 */
    unsigned line;
    bide_state state;
};

/*
 * For an operation that is made now and awaited later, or begun by hand: suppresses the compiler's
 * warning that it is not awaited (BIDE_MUST_AWAIT).
 * Threads: any. Progress: wait-free.
 */
BIDE_INLINE void bide_await_later(bide_awaiter *awaiter)
{
    (void)awaiter;
}

/* The initialiser of a point where a coroutine can be awaited (its start), and of the others. */
#define BIDE_POINT_START(code) BIDE_POINT_START_READY(NULL, code)
#define BIDE_POINT_START_READY(ready, code) BIDE_POINT_START_OF(ready, NULL, BIDE_UNDO_NONE, code)
/* For an operation that is a coroutine: with its `ready`, `attempt` and `undo`. If it has ended with 0,
 * its type's `release` (coroutine_type.h) gives back what it took. */
#define BIDE_POINT_START_OF(ready, attempt, undo, code)                                       \
    {                                                                                         \
        {ready, NULL, NULL, NULL, bide_frame_withdraw_, NULL, attempt, undo}, code, NULL, 0, \
            __LINE__, BIDE_AT_START                                                           \
    }
#define BIDE_POINT(code, label, number, state)                                                     \
    {                                                                                              \
        {NULL, bide_frame_started_, NULL, NULL, bide_frame_withdraw_, NULL, NULL, BIDE_UNDO_NONE}, \
            code, label, number, __LINE__, state                                                   \
    }

/* The suspend of a frame that has started: to await it again is misuse. */
bide_frame *bide_frame_started_(bide_awaiter *awaiter, bide_frame *frame);

/* The withdraw of a frame: destroys it. It also identifies a frame among awaiters. */
bool bide_frame_withdraw_(bide_awaiter *awaiter);

/* The end of a frame whose code brings no such point. */
extern const bide_point bide_point_finished;

/* The same for the start of a body that was compiled with BIDE_DEBUG 1: its step function knows the
 * size of its frame. */
extern const bide_point bide_point_sized_;

#if BIDE_DEBUG
#define BIDE_POINT_OF_START_ (&bide_point_sized_)
#else
#define BIDE_POINT_OF_START_ NULL
#endif

/*
 * In debug builds: reports misuse if a frame of `size` bytes is smaller than the struct of its body.
 * SIZE_MAX: the size is not known.
 */
void bide_check_frame_size_(const bide_point *body, size_t size, const char *function,
                            const char *file, unsigned line);

BIDE_INLINE const bide_point *bide_body_of_size_(const bide_point *body, size_t size,
                                                 const char *function, const char *file,
                                                 unsigned line)
{
    if (size != SIZE_MAX)
        bide_check_frame_size_(body, size, function, file, line);
    return body;
}

/*
 * BIDE_BODY_OF_SIZE_: `body`, for a frame of `size` bytes. BIDE_BODY_FOR_: for one whose header is at
 * `header`; its size is known where the compiler sees the object, such as a variable or allocated
 * memory. Either reports misuse with its own place in the source.
 */
#if BIDE_DEBUG
#define BIDE_BODY_OF_SIZE_(body, size) \
    bide_body_of_size_((body), (size), __func__, __FILE__, __LINE__)
#else
#define BIDE_BODY_OF_SIZE_(body, size) (body)
#endif
#if BIDE_DEBUG && defined __GNUC__
#define BIDE_BODY_FOR_(body, header) BIDE_BODY_OF_SIZE_(body, __builtin_object_size((header), 0))
#else
#define BIDE_BODY_FOR_(body, header) (body)
#endif

/* A scheduler's replacement for the system's clock, and for its threads for blocking calls. A test
 * loop (sim_loop.h) has one. */
struct bide_environment {
    /* The time by which the scheduler sets its timers. Any thread that runs its coroutines. */
    uint64_t (*now)(bide_scheduler *scheduler);

    /*
     * A coroutine of the scheduler waits for `call`, whose frame is set: has function(argument) be
     * called, once, and then posts `call`, in place of a thread for blocking calls (blocking.h).
     * On a thread of the scheduler.
     */
    void (*begin_call)(bide_scheduler *scheduler, bide_awaiter *call,
                       void (*function)(void *argument), void *argument);

    /*
     * Takes such a call back. True: the function has not been called, and will not be, and nothing
     * refers to the call any more. False: it is being made, or was made.
     */
    bool (*take_call_back)(bide_scheduler *scheduler, bide_awaiter *call);

    /*
     * A coroutine of the scheduler forks a child (fork.h), on the scheduler's only thread: 0: the child
     * runs, and the parent when it has ended; 1: both run, the child first; 2: both, the parent first.
     * NULL: 0.
     */
    unsigned (*fork)(bide_scheduler *scheduler);
};

/* Runs frames. One of each kind of scheduler embeds this at its head. */
struct bide_scheduler {
    /*
     * Takes the operations from `first` to `last`, chained by `link` (last->link is NULL), which
     * have ended: each one's frame is to be resumed, once, in this order. Any thread. Never resumes
     * on the caller's stack. Touch none of them after it.
     */
    void (*post)(bide_scheduler *scheduler, bide_awaiter *first, bide_awaiter *last);

    /*
     * True if one of its coroutines runs at a time, as on one thread. Then nothing resumes a
     * coroutine before its suspend has returned, whichever thread posts it.
     */
    bool one_thread;

    /*
     * Returns true if nothing else could run on the calling thread, which runs one of its
     * coroutines. A coroutine that is about to suspend may then look for a while instead (bide_spin_until_ready).
     * NULL: false.
     */
    bool (*idle)(bide_scheduler *scheduler);

    /* How often to look; it adapts. A hint, so all accesses are relaxed. */
    bide_atomic(uint32_t) patience;

    /*
     * Takes an operation that was posted, and whose frame has not been resumed yet, back out of the
     * queue; for a frame that is destroyed. On the scheduler's own thread, or while none of them
     * runs. False: it is not there. NULL: nothing can be taken back.
     */
    bool (*take_back)(bide_scheduler *scheduler, bide_awaiter *awaiter);

    /*
     * Takes a timer (timer.h) that is not set and whose awaiter has its frame: when its time has
     * come, never before, the awaiter is posted here, once, as an operation that has ended. Timers
     * of one time in the order in which they were set; those of a thread pool only if one worker has
     * set them. Returns 0 or a negative errno; from the
     * moment when it may end elsewhere nothing of the timer is touched. Any thread; the scheduler
     * stays until it has returned. NULL: this scheduler has no timers.
     */
    int (*set_timer)(bide_scheduler *scheduler, bide_timer *timer);

    /*
     * Takes a timer back. True: it was set, will not be posted, and nothing refers to it any more.
     * False: it has been posted, or was never set. Any thread, but not while it is being set; the
     * scheduler and the timer stay until it has returned. NULL with set_timer.
     */
    bool (*clear_timer)(bide_scheduler *scheduler, bide_timer *timer);

    /*
     * Returns true if no other thread could run its coroutines, given what this thread is running.
     * Then no coroutine of it runs while this thread blocks. Any thread. NULL: unknown.
     */
    bool (*runs_here_only)(bide_scheduler *scheduler);

    /*
     * Takes one operation, as post does, whose coroutine yields to others (bide_schedule, and a spent
     * budget): it is resumed behind the ready ones. NULL: `post` does that, because this scheduler
     * resumes in the order of the posts.
     */
    void (*post_last)(bide_scheduler *scheduler, bide_awaiter *awaiter);

    /* NULL: the system itself. Constant. */
    const bide_environment *environment;

    /*
     * Returns the back end of its coroutines' input and output (extend/io.h) on the calling thread,
     * which runs one of them. NULL, or returns NULL: there is none.
     */
    bide_io *(*io)(bide_scheduler *scheduler);

    /* True if its timers go by bide_platform.now(). Then debug builds report a time that can only be a
     * duration (deadline.h). */
    bool real_time;
};

/*
 * Where a coroutine belongs. It is inherited: a coroutine has the context of the coroutine that
 * awaits it. Constant while shared: a coroutine that moves to another scheduler changes to a
 * context of its own, which is bide_this_context() until it moves again. Roots, branches, deadlines
 * and stop callbacks copy the context that they are given. bide_start does not:
 * there the context is the caller's, and outlives the coroutine.
 */
struct bide_context {
    bide_scheduler *scheduler; /* never NULL */
    bide_stop_source *stop;    /* of this one chain of coroutines (stop.h); NULL: never cancelled */
    const char *name;          /* or NULL */

    /*
     * Called once for each coroutine that ended with `error` (a negative errno) without being
     * awaited, on the thread where it ended. `code` identifies it. NULL: such errors are dropped.
     */
    void (*on_unhandled_error)(const bide_context *context, const bide_coroutine_code *code,
                               int error);

    /* Values that are inherited too (context_value.h), the innermost first; or NULL. They stay as
     * long as what runs in the context. */
    const bide_context_value *values;
};

/*
 * Inline resumption, by name: a frame that is woken runs on the waker's thread, not inside the call
 * that woke it but when the frame that runs there has suspended (at once, where none does).
 */
extern bide_scheduler bide_inline_scheduler;

/* The context of what is begun without another: the inline scheduler, no stop source, no name. */
extern const bide_context bide_default_context;

/*
 * How many frames deep an await may step what it awaits by a direct call before it goes back to the
 * resume loop. It bounds the stack of any chain of coroutines.
 */
#ifndef BIDE_DIRECT_DEPTH
#define BIDE_DIRECT_DEPTH 16
#endif

/*
 * The point of `frame`.
 * Threads: any, while the frame is not running. Progress: wait-free.
 */
BIDE_INLINE const bide_point *bide_frame_point(const bide_frame *frame)
{
    return (const bide_point *)(const void *)frame->awaiter.ops;
}

/*
 * Whether the frame has run to its end, or was destroyed.
 * Threads: any, while the frame is not running. Progress: wait-free.
 */
BIDE_INLINE bool bide_done(const bide_frame *frame)
{
    return bide_frame_point(frame)->state == BIDE_AT_END;
}

/*
 * Whether an operation is ready. If so it has ended without having been suspended, which is
 * recorded: bide_awaiter_suspended. For an operation that awaits another on behalf of a coroutine,
 * which may be destroyed before it resumes.
 * Threads: the waiter's. Progress: that of the operation's `ready`.
 */
BIDE_INLINE bool bide_awaiter_had(bide_awaiter *awaiter)
{
    if (awaiter->ops->ready == NULL || !awaiter->ops->ready(awaiter))
        return false;
    if (awaiter->ops->withdraw != NULL) /* otherwise it may be a constant */
        awaiter->frame = NULL;
    return true;
}

/*
 * In an operation's `withdraw`: whether it was suspended. If not it has ended by having been ready.
 * Threads: the waiter's. Progress: wait-free.
 */
BIDE_INLINE bool bide_awaiter_suspended(const bide_awaiter *awaiter)
{
    return awaiter->frame != NULL;
}

/*
 * Whether the awaiter is a frame.
 * Threads: any. Progress: wait-free.
 */
BIDE_INLINE bool bide_awaiter_is_frame(const bide_awaiter *awaiter)
{
    return awaiter->ops->withdraw == bide_frame_withdraw_;
}

/*
 * Makes `frame` a coroutine at the start of `body` (the constant of a bide_coroutine or
 * bide_coroutine_of). For the init functions of kinds of coroutine: the frame is the first member
 * of the kind's struct, and of the user's. Returns the awaiter, to be awaited once; the coroutine runs
 * in the context of the coroutine that awaits it. Writes nothing else of the frame.
 * Threads: any. Errors: those of the body. Suspends: if the body does. Cancel-safe: no, the body's
 * effects stay: its waits end with -ECANCELED, and it runs on until it returns.
 * Progress: that of the body.
 */
BIDE_MUST_AWAIT
BIDE_INLINE bide_awaiter *bide_frame_init(bide_frame *frame, const bide_point *body)
{
    frame->awaiter.ops = &body->ops;
    return &frame->awaiter;
}

/*
 * The same for a coroutine that is not awaited: it has no continuation, and belongs to `context`,
 * which outlives it. To be run by bide_resume, or by bide_frame_step where nothing that it hands
 * over needs a loop. bide_start does this, and then calls the type's hooks for a start.
 * Threads: any. Suspends: never. Progress: wait-free.
 */
BIDE_INLINE void bide_frame_init_in(bide_frame *frame, const bide_point *body,
                                    const bide_context *context)
{
    frame->awaiter.ops = &body->ops;
    frame->awaiter.link = NULL;
    frame->awaiter.frame = NULL;
    frame->context = context;
}

#include "bide/detail/yield_budget.h"

/*
 * In debug builds it is known which operations are in flight (src/coroutine/flights.h). The first: `frame` is about to
 * suspend on `awaiter`; reports misuse if another frame waits for that already. `by` is `frame`, or the
 * frame on whose behalf it waits. The second: it is not in flight any more, if it was.
 */
void bide_flights_begin_(const bide_awaiter *awaiter, const bide_frame *frame,
                         const bide_frame *by);
void bide_flights_remove_(const void *awaiter);

/* Under the model checker each table would multiply the executions. */
#define BIDE_FLIGHTS_ (BIDE_DEBUG && !BIDE_CHECK)

BIDE_INLINE void bide_flight_begins_(const bide_awaiter *awaiter, const bide_frame *frame)
{
#if BIDE_FLIGHTS_
    bide_flights_begin_(awaiter, frame, frame);
#else
    (void)awaiter, (void)frame;
#endif
}

BIDE_INLINE void bide_flight_ends_(const bide_awaiter *awaiter)
{
#if BIDE_FLIGHTS_
    bide_flights_remove_(awaiter);
#else
    (void)awaiter;
#endif
}

/*
 * One step of `frame`, by its code. Returns the frame that runs next, or NULL.
 * Threads: the frame's scheduler's. Progress: that of the body.
 */
BIDE_INLINE bide_frame *bide_frame_step(bide_frame *frame, unsigned depth)
{
    const bide_point *point = bide_frame_point(frame);
#if BIDE_FLIGHTS_
    if (point->state == BIDE_AT_AWAIT)
        bide_flights_remove_(frame->awaiter.link);
#endif
    return point->code->step(frame, depth).frame;
}

/*
 * Resumes a suspended frame on this thread, and then, in turn, everything that is handed over: by
 * symmetric transfer, or by waking under the inline scheduler. Returns when nothing of that is
 * left. The stack does not grow with what is handed over. The frame must be suspended with its
 * operation ended (or not started, with its context set), and handed to no other thread.
 * Threads: the frame's scheduler's. Suspends: never. Progress: that of what it runs.
 */
void bide_resume(bide_frame *frame);

/*
 * The operations chained from `first` by `link` (to NULL) have ended: posts each one's frame to the
 * scheduler of its context. Does not resume on the caller's stack while a frame is running on it.
 * Do not touch them afterwards. Neighbours that have the same scheduler are posted together.
 * Threads: any. Suspends: never. Progress: that of posting to the schedulers; linear in the
 * operations.
 */
void bide_wake(bide_awaiter *first);

/*
 * The same for one operation, whatever its link.
 * Threads: any. Suspends: never. Progress: that of posting to the scheduler.
 */
BIDE_INLINE void bide_wake_one(bide_awaiter *awaiter)
{
    awaiter->link = NULL;
    bide_wake(awaiter);
}

/*
 * The same for a chain from the newest to the oldest, as a list of waiters is taken: the oldest is
 * posted first.
 * Threads: any. Suspends: never. Progress: as bide_wake.
 */
void bide_wake_reversed(bide_awaiter *newest);

/*
 * An awaiter's `ready`, or what NULL stands for.
 * Threads: the waiter's. Progress: that of the operation.
 */
BIDE_INLINE bool bide_awaiter_ready(bide_awaiter *awaiter, const bide_awaiter_ops *ops)
{
    return ops->ready != NULL && ops->ready(awaiter);
}

/* ops->suspend, in a way that a request to the context's source can cancel: see stop.h. */
bide_frame *bide_stop_suspend_(bide_awaiter *awaiter, const bide_awaiter_ops *ops,
                               bide_frame *frame);

/*
 * An awaiter's `suspend` for `frame`, or what NULL stands for. Returns the frame that runs next.
 * Threads: the waiter's. Progress: that of the operation.
 */
BIDE_INLINE bide_frame *bide_awaiter_suspend(bide_awaiter *awaiter, const bide_awaiter_ops *ops,
                                             bide_frame *frame)
{
    if (ops->suspend != NULL) {
        if (ops->cancel != NULL && BIDE_UNLIKELY(frame->context->stop != NULL))
            return bide_stop_suspend_(awaiter, ops, frame);
        return ops->suspend(awaiter, frame);
    }
    bide_frame *child = (bide_frame *)(void *)awaiter;
    BIDE_STORE_ALONE_(child->context, frame->context);
    return child;
}

/*
 * An awaiter's `resume`, or what NULL stands for, once the operation has ended: its status.
 * Threads: the waiter's. Errors: those of the operation. Progress: that of the operation.
 */
BIDE_INLINE int bide_awaiter_resume(bide_awaiter *awaiter, const bide_awaiter_ops *ops)
{
    return ops->resume != NULL ? ops->resume(awaiter) : ((bide_frame *)(void *)awaiter)->error;
}

/*
 * For an operation's suspend, before it enlists: polls whether the operation has ended, as long as
 * the scheduler has nothing else to run and its patience lasts. Returns true if it has ended:
 * suspend then returns its frame. Across two cores a look costs some tens of nanoseconds; suspending
 * and waking cost hundreds, and tens of thousands if the thread sleeps in the meantime.
 * Threads: the waiter's. Suspends: never. Progress: blocks for a moment at most, BIDE_PATIENCE_MAX
 * looks.
 */
bool bide_spin_until_ready(bide_awaiter *awaiter, bide_frame *frame);

/*
 * In debug builds: reports misuse if `awaiter` is NULL, was never initialised, or is on the stack
 * below `top`, in the C frame of the step that awaits it, while `frame` is not. `here` is the point
 * of the await; NULL: the frame's.
 */
void bide_check_awaited_(const bide_frame *frame, const bide_awaiter *awaiter,
                         const bide_point *here, const void *top);

/* In debug builds: reports misuse if `time`, a deadline of the awaiting `frame`, can only be a duration. */
void bide_check_time_(const bide_frame *frame, uint64_t time);

/* The same for an awaiter that is passed to a function: reports one that is NULL or uninitialised. */
void bide_check_given_(const bide_awaiter *awaiter, const char *function, const char *file,
                       unsigned line);

/* For an operation that is not ready: the rest of bide_frame_await_by_. */
BIDE_INLINE bide_frame *bide_frame_await_unready_(bide_frame *frame, bide_awaiter *awaiter,
                                                  const bide_frame *by)
{
#if BIDE_FLIGHTS_
    if (by != NULL)
        bide_flights_begin_(awaiter, frame, by);
#else
    (void)by;
#endif
    awaiter->frame = frame;
    const bide_point *here = bide_frame_point(frame);
    bide_frame *next = bide_awaiter_suspend(awaiter, awaiter->ops, frame);
    if (BIDE_UNLIKELY(next == frame) && bide_budget_spent_() &&
        bide_yield_budget_(frame, awaiter, here, BIDE_YIELDS_SUSPENDED_))
        return NULL;
    return next;
}

/* bide_frame_await. If `by` is not NULL, the operation is in flight meanwhile, on behalf of that. */
BIDE_INLINE bide_frame *bide_frame_await_by_(bide_frame *frame, bide_awaiter *awaiter,
                                             const bide_frame *by)
{
#if BIDE_DEBUG
    bide_check_awaited_(frame, awaiter, NULL, NULL);
#endif
#if BIDE_BUDGET > 0
    if (BIDE_UNLIKELY(bide_budget_ <= 0))
        return bide_frame_await_spent_(frame, awaiter, by);
#endif
    frame->awaiter.link = awaiter;
    if (bide_awaiter_had(awaiter)) {
        (void)bide_budget_spent_();
        return frame;
    }
    return bide_frame_await_unready_(frame, awaiter, by);
}

/*
 * Starts `awaiter` for `frame`, which must be saved at the point where it continues when the
 * operation has ended. Returns the frame that runs next; `frame` itself if the operation has ended already.
 * For frames whose step function is written by hand.
 * Threads: the frame's scheduler's. Progress: that of the operation.
 */
BIDE_INLINE bide_frame *bide_frame_await(bide_frame *frame, bide_awaiter *awaiter)
{
    return bide_frame_await_by_(frame, awaiter, NULL);
}

BIDE_STATIC_ASSERT(sizeof(bide_frame) <= 4 * sizeof(void *), "a frame's header is four words");

BIDE_EXTERN_C_END

#include "bide/detail/awaiter_chain.h"

#endif

/*
 * Fork and join of coroutines: children that may run beside their parent on the workers of a thread
 * pool, in frames from a stack of frames. Floor: schedule.
 *
 *     bide_fork_coroutine(fib_body)       // struct fib { bide_fork_task forking; ... }, header first
 *     {
 *         bide_begin(fib_body, struct fib *self);
 *         *self->result = self->n;
 *         if (self->n < 2)
 *             bide_return(0);
 *         bide_await(bide_fork(self, struct fib, &fib_body, n = self->n - 1, result = &self->one));
 *         bide_try(bide_fork_call(self, struct fib, &fib_body, n = self->n - 2,
 *                                 result = &self->other));
 *         bide_try(bide_fork_join(self));
 *         *self->result = self->one + self->other;
 *         bide_end();
 *     }
 *     bide_sync_wait_in(&in_pool, bide_fork_task_init(&all.forking, &fib_body));     // the first one
 *
 *     bide_fork         the child runs at once; the parent may continue beside it, on another worker
 *     bide_fork_call    the child runs, the parent waits for it: for the last of several
 *     bide_fork_join    waits for all children that the parent has forked
 *
 * The calls are for the coroutine itself, on the thread that runs it. While no worker is idle a
 * fork costs some nanoseconds: no lock, no atomic read-modify-write, no fence, no malloc. "Rules of
 * forking" below has the rest: memory, errors, other schedulers, cancellation, destruction.
 *
 * Why it is correct: docs/internals/fork.md. The numbers below refer to that.
 */
#ifndef BIDE_FORK_H
#define BIDE_FORK_H

#include "bide/coroutine.h"
#include "bide/detail/arguments.h"
#include "bide/detail/join_deque.h"

BIDE_EXTERN_C_BEGIN

/* In what aligned steps frames are cut off a stack. */
enum { BIDE_FORK_ALIGN_ = 16 };

/* In `parent`, below the address. */
enum {
    BIDE_FORK_CALLED_ = 1,  /* the parent waits for it, and gets its error */
    BIDE_FORK_IN_TURN_ = 2, /* forked, but the parent is not on the deque */
    BIDE_FORK_FIRST_ = 4,   /* the first in a segment of its stack */
    BIDE_FORK_ROOT_ = 8,    /* without an address: no forking coroutine's child */
    BIDE_FORK_NODE_ = 8,    /* with one: there is a node in front of it, for stop requests */
    BIDE_FORK_FLAGS_ = 15,
};

/* In `taken`. */
#define BIDE_FORK_FAILED_ (UINT32_C(1) << 31)

/* A stack of frames. Used by the thread that runs its strand. */
typedef struct bide_fork_stack_ {
    unsigned char *top; /* where what is free begins, */
    unsigned char *end; /* NULL: to be asked for each frame (bide_fork_task_grow_) */
} bide_fork_stack_;

/* The first member of a forking coroutine's frame. Writer: the thread that continues it. */
typedef struct bide_fork_task {
    BIDE_ALIGNAS(16) bide_frame frame;
    bide_awaiter awaiter; /* of its forks, calls and joins; `link`: the child that is to begin */
    uintptr_t parent;     /* with flags */
    bide_fork_stack_ *stack;
    bide_fork_stack_ *home; /* on which it lies; only written when it is taken, and in the first */
    uint32_t taken;         /* since the last join; and whether a child has failed */
    int status;             /* of the last call */
    bide_atomic(uint32_t) pending;
    bide_atomic(int) failed; /* the first error of a forked child */
} bide_fork_task;

/* Represents no stack yet; and the deque of a thread that has none: always full. */
extern bide_fork_stack_ bide_fork_task_no_stack_;

/* No room, or whatever else needs to be asked. NULL: there will be no child. */
BIDE_NOINLINE bide_fork_task *bide_fork_task_grow_(bide_fork_task *self, size_t size,
                                                   uintptr_t kind);

/* How a child begins. */
enum {
    BIDE_FORK_WAITS_,  /* its parent waits for its end, or has been posted */
    BIDE_FORK_BESIDE_, /* its parent is to be put on the deque */
    BIDE_FORK_LATER_,  /* it has been posted: its parent runs first */
};

/* A child that is IN_TURN, or has a NODE, begins. Returns how. */
BIDE_NOINLINE int bide_fork_task_begins_(bide_fork_task *child);

/* The end of a frame, in all cases. Returns the frame that runs next. */
BIDE_NOINLINE bide_frame *bide_fork_task_end_slow_(bide_fork_task *self,
                                                   const bide_context *context);

/*
 * A child has ended that lay on the stack, and the parent was not on the deque for it; or was there
 * because of another child.
 */
BIDE_NOINLINE bide_frame *bide_fork_task_detached_(bide_fork_task *parent, bool is_popped,
                                                   bide_fork_stack_ *stack);

/* Takes the parent off the deque of this thread, if it is the last there. */
BIDE_INLINE bool bide_fork_task_pop_(bide_fork_task *parent)
{
    bide_join_deque_ *deque = bide_join_here_;
    if (BIDE_UNLIKELY(deque == NULL))
        return false;
    size_t bottom = bide_atomic_load(&deque->bottom, relaxed) - 1;
    bide_join_half_ *last = bide_atomic_load(&deque->slots[bottom % BIDE_JOIN_SLOTS_], relaxed);
    return BIDE_LIKELY(last == bide_join_of_fork_(parent)) && bide_join_pop_(deque, bottom);
}

/* A join that has to wait, perhaps. */
bide_frame *bide_fork_task_join_suspend_(bide_awaiter *awaiter, bide_frame *frame);

/* The withdraw of a fork, a call and a join: misuse. It is also what tells them among awaiters. */
bool bide_fork_task_withdraw_(bide_awaiter *awaiter);

/* The coroutine is destroyed: misuse if it has forked, or was forked. */
void bide_fork_task_destroyed_(bide_frame *frame);

/* ---- The kind of coroutine ---- */

BIDE_INLINE bide_frame *bide_fork_task_end_(bide_frame *frame, const bide_context *context)
{
    bide_fork_task *self = bide_container_of(frame, bide_fork_task, frame);
    uintptr_t flags = self->parent & BIDE_FORK_FLAGS_;
    if (BIDE_UNLIKELY(self->taken != 0 || frame->error < 0 || flags > BIDE_FORK_CALLED_))
        return bide_fork_task_end_slow_(self, context);
    bide_fork_stack_ *stack = self->stack;
    bide_frame *next = frame->awaiter.frame;
    stack->top = (unsigned char *)self; /* 3 */
    if (flags != 0)
        return next;
    bide_fork_task *parent = (bide_fork_task *)self->parent;
    bool is_popped = bide_fork_task_pop_(parent);
    if (BIDE_LIKELY(is_popped && parent->stack == stack))
        return next; /* 2 */
    return bide_fork_task_detached_(parent, is_popped, stack);
}

static const bide_coroutine_type bide_fork_task_type = {
    "forking coroutine", NULL, NULL, NULL, NULL, NULL, NULL,
    bide_fork_task_end_, NULL, NULL, NULL, NULL, NULL, bide_fork_task_destroyed_};

/*
 * Opens the definition of a forking coroutine's body; see bide_coroutine_of. The bodies of all that
 * is forked and called by the functions below are such.
 * Threads: as bide_coroutine_of.
 */
#define bide_fork_coroutine(name) bide_coroutine_of(bide_fork_task_type, name)

/*
 * The same for one that bide_declare_body has declared.
 * Threads: as bide_coroutine_of.
 */
#define bide_declared_fork_coroutine(name) bide_declared_coroutine_of(bide_fork_task_type, name)

/*
 * Makes `forking` a forking coroutine at its start, to be run by `body` when it is awaited: the
 * first, whose frame is the caller's and stays until it has ended. Returns the awaiter to give to
 * bide_await, bide_spawn or bide_sync_wait, once.
 * Threads: any. Errors: those of the body; if that ends with 0, the first of what it has forked and
 * not joined. Suspends: if the body does. Cancel-safe: no, what the body has done stays. Progress:
 * that of the body.
 */
BIDE_MUST_AWAIT
BIDE_INLINE bide_awaiter *bide_fork_task_init(bide_fork_task *forking, const bide_point *body)
{
    forking->parent = BIDE_FORK_ROOT_;
    forking->stack = &bide_fork_task_no_stack_;
    forking->home = NULL;
    forking->taken = 0;
    bide_atomic_init(&forking->pending, 0);
    bide_atomic_init(&forking->failed, 0);
    return bide_frame_init(&forking->frame, body);
}

/* ---- Fork, call and join ---- */

/* A child's frame, at its start; NULL: it will not run. */
BIDE_INLINE void *bide_fork_task_frame_(bide_fork_task *self, size_t size, const bide_point *body,
                                        uintptr_t kind)
{
    bide_fork_stack_ *stack = self->stack;
    unsigned char *top = stack->top;
    bide_fork_task *child;
    if (kind == BIDE_FORK_CALLED_)
        self->status = 0;
    size = (size + BIDE_FORK_ALIGN_ - 1) & ~(size_t)(BIDE_FORK_ALIGN_ - 1);
    if (BIDE_LIKELY((uintptr_t)top + size <= (uintptr_t)stack->end)) {
        stack->top = top + size;
        child = (bide_fork_task *)(void *)top;
        child->parent = (uintptr_t)self | kind;
        child->stack = stack;
    } else {
        child = bide_fork_task_grow_(self, size, kind);
    }
    if (BIDE_LIKELY(child != NULL)) {
        child->taken = 0;
        bide_atomic_init(&child->pending, 0);
        bide_atomic_init(&child->failed, 0);
        child->frame.awaiter.ops = &body->ops;
    }
    self->awaiter.link = (bide_awaiter *)(void *)child;
    return child;
}

BIDE_INLINE bide_fork_task *bide_fork_task_of_(bide_awaiter *awaiter)
{
    return bide_container_of(awaiter, bide_fork_task, awaiter);
}

/* There is no child that could run. */
BIDE_INLINE bool bide_fork_task_ready_(bide_awaiter *awaiter)
{
    return awaiter->link == NULL;
}

BIDE_INLINE bide_frame *bide_fork_task_suspend_(bide_awaiter *awaiter, bide_frame *frame)
{
    bide_fork_task *self = bide_fork_task_of_(awaiter);
    bide_fork_task *child = (bide_fork_task *)(void *)awaiter->link;
    const bide_awaiter_ops *body = child->frame.awaiter.ops;
    child->frame.awaiter.frame = frame;
    child->frame.context = frame->context;
    int how = BIDE_FORK_BESIDE_;
    if (BIDE_UNLIKELY((child->parent & (BIDE_FORK_IN_TURN_ | BIDE_FORK_NODE_)) != 0))
        how = bide_fork_task_begins_(child);
    if (BIDE_LIKELY(how == BIDE_FORK_BESIDE_)) {
        bide_join_deque_ *deque = bide_join_here_;
        if (BIDE_UNLIKELY(!bide_join_put_(deque, bide_atomic_load(&deque->bottom, relaxed),
                                          bide_join_of_fork_(self))))
            child->parent |= BIDE_FORK_IN_TURN_;
    } else if (how == BIDE_FORK_LATER_) {
        return frame;
    }
    /* The parent may be gone. The child's body is written again so that compilers know it here. */
    child->frame.awaiter.ops = body;
    return &child->frame;
}

BIDE_INLINE int bide_fork_task_resume_(bide_awaiter *awaiter)
{
    (void)awaiter;
    return 0;
}

BIDE_INLINE bide_frame *bide_fork_task_call_suspend_(bide_awaiter *awaiter, bide_frame *frame)
{
    bide_fork_task *child = (bide_fork_task *)(void *)awaiter->link;
    child->frame.awaiter.frame = frame;
    child->frame.context = frame->context;
    return &child->frame;
}

BIDE_INLINE int bide_fork_task_call_resume_(bide_awaiter *awaiter)
{
    return bide_fork_task_of_(awaiter)->status;
}

BIDE_INLINE bool bide_fork_task_join_ready_(bide_awaiter *awaiter)
{
    return bide_fork_task_of_(awaiter)->taken == 0;
}

BIDE_INLINE int bide_fork_task_join_resume_(bide_awaiter *awaiter)
{
    bide_fork_task *self = bide_fork_task_of_(awaiter);
    int failed = bide_atomic_load(&self->failed, relaxed); /* 6, by `pending` */
    if (BIDE_UNLIKELY(failed != 0))
        bide_atomic_store(&self->failed, 0, relaxed);
    return failed;
}

BIDE_MUST_AWAIT
BIDE_INLINE bide_awaiter *bide_fork_task_begin_(bide_fork_task *self)
{
    __extension__ static const bide_awaiter_ops ops = {
        .ready = bide_fork_task_ready_,
        .suspend = bide_fork_task_suspend_,
        .resume = bide_fork_task_resume_,
        .cancel = NULL,
        .withdraw = bide_fork_task_withdraw_,
        .name = "bide_fork",
        .attempt = NULL,
        .undo = BIDE_UNDO_NONE,
    };
    self->awaiter.ops = &ops;
    return &self->awaiter;
}

BIDE_MUST_AWAIT
BIDE_INLINE bide_awaiter *bide_fork_task_begin_call_(bide_fork_task *self)
{
    __extension__ static const bide_awaiter_ops ops = {
        .ready = bide_fork_task_ready_,
        .suspend = bide_fork_task_call_suspend_,
        .resume = bide_fork_task_call_resume_,
        .cancel = NULL,
        .withdraw = bide_fork_task_withdraw_,
        .name = "bide_fork_call",
        .attempt = NULL,
        .undo = BIDE_UNDO_NONE,
    };
    self->awaiter.ops = &ops;
    return &self->awaiter;
}

BIDE_MUST_AWAIT
BIDE_INLINE bide_awaiter *bide_fork_task_begin_join_(bide_fork_task *self)
{
    __extension__ static const bide_awaiter_ops ops = {
        .ready = bide_fork_task_join_ready_,
        .suspend = bide_fork_task_join_suspend_,
        .resume = bide_fork_task_join_resume_,
        .cancel = NULL,
        .withdraw = bide_fork_task_withdraw_,
        .name = "bide_fork_join",
        .attempt = NULL,
        .undo = BIDE_UNDO_NONE,
    };
    self->awaiter.ops = &ops;
    return &self->awaiter;
}

/*
 * In a forking coroutine's body: forks a child, a forking coroutine whose frame is a `type` and
 * whose body has the constant at `body`. Then come up to seven parameters, each as an assignment to
 * a member of the child's frame, which are evaluated in this order; members that are not named are
 * not initialised. `self` points at the frame at hand, whose header is called `forking`, and is
 * evaluated more than once. To be awaited at once, by this coroutine:
 *
 *     bide_await(bide_fork(self, struct fib, &fib_body, n = self->n - 1, result = &self->one));
 *
 * The child runs next, on this thread. The parent continues when the child has ended or waits for
 * something, or at the same time on another worker. So parameters do not point at data that the
 * parent changes before it has joined. The child's frame goes when it ends, so its results are
 * written elsewhere: into the parent's frame, for one. Its error is the join's.
 * Threads: the coroutine's. Errors: none. Suspends: unless the child ends first. Cancel-safe: yes,
 * a request to stop has the join end with -ECANCELED instead. Progress: wait-free, but for what a
 * wake-up or a new segment costs; with a stop source, blocks as bide_stop_source_attach does.
 */
#define bide_fork(self, type, ...) BIDE_FORK_(bide_fork_task_begin_, 0, self, type, __VA_ARGS__)

/*
 * The same, but the parent waits until the child has ended. For the last of what is to run side by
 * side, because there is nothing that the parent could do meanwhile.
 * Threads: the coroutine's. Errors: those of the child's body; -ENOMEM (there is no memory for its
 * frame). Suspends: if the child does. Cancel-safe: no, what the child has done stays. Progress:
 * that of the child.
 */
#define bide_fork_call(self, type, ...) \
    BIDE_FORK_(bide_fork_task_begin_call_, BIDE_FORK_CALLED_, self, type, __VA_ARGS__)

/*
 * Waits until all children that this coroutine has forked have ended. Their writes are
 * visible then. A coroutine may fork and join again and again. A wrapper may be around it: a
 * deadline asks the children to stop ("Rules of forking").
 * Threads: the coroutine's. Errors: those of the children, one of them if several failed; -ENOMEM
 * (there was no memory for one, which has not run), -ECANCELED, -ETIMEDOUT (after a request to stop
 * one was not run). Suspends: if another worker has taken part, and a child runs yet. Cancel-safe:
 * yes: asked to stop, the children are, and it ends when they have. Progress: that of the children.
 */
#define bide_fork_join(self) bide_fork_task_begin_join_(&(self)->forking)

#define BIDE_FORK_(begin, kind, self, type, ...) \
    BIDE_COUNTED_(BIDE_FORK_, BIDE_COUNT_(__VA_ARGS__))(begin, kind, self, type, __VA_ARGS__)
#define BIDE_FORK_1_(begin, kind, self, type, body)                             \
    ((void)bide_fork_task_frame_(&(self)->forking, sizeof(type),                \
                                 BIDE_BODY_OF_SIZE_(body, sizeof(type)), kind), \
     begin(&(self)->forking))
/* clang-format off */
#define BIDE_FORK_2_(...) BIDE_FORK_WITH_(__VA_ARGS__)
#define BIDE_FORK_3_(...) BIDE_FORK_WITH_(__VA_ARGS__)
#define BIDE_FORK_4_(...) BIDE_FORK_WITH_(__VA_ARGS__)
#define BIDE_FORK_5_(...) BIDE_FORK_WITH_(__VA_ARGS__)
#define BIDE_FORK_6_(...) BIDE_FORK_WITH_(__VA_ARGS__)
#define BIDE_FORK_7_(...) BIDE_FORK_WITH_(__VA_ARGS__)
#define BIDE_FORK_8_(...) BIDE_FORK_WITH_(__VA_ARGS__)
#define BIDE_FORK_9_(...) BIDE_FORK_WITH_(__VA_ARGS__)
/* clang-format on */
#define BIDE_FORK_WITH_(begin, kind, self, type, body, ...)                                        \
    (bide_fork_task_frame_(&(self)->forking, sizeof(type), BIDE_BODY_OF_SIZE_(body, sizeof(type)), \
                           kind) != NULL                                                           \
         ? (BIDE_EACH_(BIDE_FORK_PARAMETER_, BIDE_FORK_CHILD_(self, type), __VA_ARGS__), (void)0)  \
         : (void)0,                                                                                \
     begin(&(self)->forking))
#define BIDE_FORK_CHILD_(self, type)                   ((type *)(void *)(self)->forking.awaiter.link)
#define BIDE_FORK_PARAMETER_(child, index, assignment) child->assignment

/*
 * Rules of forking.
 *
 * A child's frame comes from a stack, a list of segments of memory, and returns to it when the
 * child has ended. So results go to the parent's frame, through a pointer among the parameters. The
 * C stack does not grow: memory bounds the depth of recursion. If there is no memory left for a
 * child, the child does not run, and the join (or the call) ends with -ENOMEM.
 *
 * The child runs at once, as a call would; its parent waits on the worker's deque in the meantime.
 * An idle worker takes the oldest parent there, and continues with it. So a loop that forks a
 * million children has one child at a time on each worker, and recursion takes no more memory than
 * it would on one thread, times the workers.
 *
 * A forking coroutine may await anything else too. If that suspends, the worker continues with the
 * parents on its deque, as if they had been taken. A forking coroutine must not move to another
 * scheduler itself, which is misuse; bide_schedule_on runs something else there.
 *
 * On a scheduler that is no pool, or if a worker's deque is full, the parent waits for the child
 * that it forks: everything runs in the order of the program. A deque holds BIDE_JOIN_SLOTS_
 * parents. A test loop (sim_loop.h) draws at each fork whether the parent waits, or runs beside the
 * child, before it or after its first step.
 *
 * A request to stop reaches all that is below: each forked child has a stop source of its own,
 * under that of the coroutine that forked it. A called child has its parent's. Their waits end with
 * the reason, new children do not run, and joins end with an error when the children have ended. A
 * request on the source of a wrapper around a join, such as a deadline, reaches the children of
 * that join; after it the coroutine may fork again.
 *
 * All this needs a stop source in the context of the first coroutine. If that has none, children
 * have none, and a deadline around a join reaches nothing: put it around the first coroutine. With
 * a source a fork costs more.
 *
 * A fork, a call and a join are awaited by the coroutine itself, at once. They are no cases of a
 * select, which refuses them: what a child has done cannot be undone, and a join cannot be
 * withdrawn.
 *
 * A forking coroutine that has forked must not be destroyed before it has ended, whatever it waits
 * for; that is misuse, and detected. If it ends without having joined, it waits for its children at
 * its end, after `finally`.
 */

BIDE_EXTERN_C_END

#endif

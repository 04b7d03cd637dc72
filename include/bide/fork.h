/*
 * Fork and join of coroutines: children that may run beside their parent on the workers of a thread
 * pool, in frames from a stack of frames. Floor: schedule.
 *
 *     struct fib {
 *         bide_fork_task forking;                // header first
 *         unsigned n;                          // parameters
 *         uint64_t *result;                    // a child's frame goes when it ends
 *         uint64_t one, other;
 *     };
 *
 *     bide_fork_coroutine(fib_body)
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
 *
 *     struct fib all = {.n = 30, .result = &result};       // the first: as any child, or spawned
 *     bide_sync_wait_in(&in_pool, bide_fork_task_init(&all.forking, &fib_body));
 *
 *     bide_fork         the child runs at once; the parent may go on beside it, on another worker
 *     bide_fork_call    the child runs, the parent waits for it: for the last of several
 *     bide_fork_join    waits for all that the parent has forked
 *
 * A fork costs some nanoseconds where no worker is idle: no lock, no atomic read-modify-write, no
 * fence and no malloc. Its child runs at once, as a call would; what waits on the worker's deque
 * meanwhile is the parent. An idle worker takes the oldest parent there, and goes on with it. So a
 * loop that forks a million children has one child at a time on each worker, and recursion takes no
 * more memory than it would on one thread, times the workers.
 *
 * A frame comes from a stack, a list of segments of memory, and goes back when its coroutine has
 * ended. The C stack does not grow: memory bounds the depth of recursion. With no memory left for a
 * child it does not run, and the join (or the call) ends with -ENOMEM.
 *
 * A forking coroutine may await anything else too. If that suspends, the worker goes on with the
 * parents that stand on its deque, as if they had been taken. It does not move to another scheduler
 * itself, which is misuse; bide_schedule_on has something else run there.
 *
 * On a scheduler that is no pool, or where a worker's deque is full, the parent waits for what it
 * forks: all runs, in the order of the program. A deque holds BIDE_JOIN_SLOTS_ parents.
 *
 * When the context of the first coroutine is asked to stop, what is forked from then on does not
 * run, and the join ends with -ECANCELED. What runs is not disturbed, and what it waits for is not
 * cut short: below the first fork bide_this_context()->stop is NULL, because a source belongs to
 * one chain of coroutines. With a source a fork costs more.
 *
 * A forking coroutine that has forked is not destroyed before it has ended, whatever it waits for;
 * that is misuse, and told. If it ends without having joined, it waits at its end, after `finally`.
 *
 * Why it is right. A strand is what runs one after the other: a coroutine, the child that it forks
 * or calls, and that one's. Each strand has a stack, whose top frame is the one that runs or waits.
 * `stack` in a frame is that of the strand that runs it, if that has one yet.
 *
 *     parent:   runs --fork--> on the deque --popped by that child's end--> runs
 *                                  |
 *                                  +--taken--> runs, with `taken` + 1 and no stack
 *               runs --join, taken == 0--> runs
 *               runs --join--> `pending` + taken --not 0--> waits --the last child's end--> runs
 *     child:    ends --pops its parent--> the strand goes on with the parent
 *                    --does not--> `pending` - 1; the strand ends, or goes on with the parent if
 *                                  that was the last
 *
 * 1. Each fork puts the parent on a deque once, and it leaves that once: popped by the end of that
 *    child, or taken, by another worker or by the owner at the end of a turn (join_deque.h). So as
 *    many children end without popping it as it was taken since its last join. `pending` is 0 or
 *    less before the join comes to it, and 0 when all have: one of them all makes it 0, either the
 *    join, or a child that finds 1. That one is the last, and goes on with the parent. Each of them
 *    releases what it has done, and the last acquires it.
 * 2. A child knows the fork that put its parent on the deque by two things: the parent stands last
 *    on the deque of this thread, and its `stack` is the one that the child lay on. A parent that
 *    was taken has another since then, because the child's is in use until the child ends. What is
 *    popped belongs to the thread that popped it, so its `stack` may be read; if that is another,
 *    the parent is put back.
 * 3. A frame stands above its parent's on one stack, or at the bottom of its strand's. A strand
 *    ends when its stack has no frames left, or with its last frame's parent at the top. In the
 *    second case the stack is left to the parent, whose `home` it is, until that goes on after its
 *    join. By then what it had instead is empty, because all that was forked from there has ended.
 *    So the frame that ends is at the top of the stack that its `stack` names.
 * 4. `taken`, `stack` and `home` are used by the thread that goes on with the parent. The one that
 *    takes it acquires them from the deque.
 * 5. At the end of a turn nothing of the strand stays on the worker's deque: the worker takes off
 *    what is there, and puts it into its ring, where it is run in its turn. So a worker steals only
 *    with an empty deque, as joins want it (join_deque.h, 5).
 * 6. An error is put into `failed` before the child comes to `pending`, so the join sees it.
 *
 * Source: the taking of parents is that of M. Frigo, C. Leiserson and K. Randall, The
 * implementation of the Cilk-5 multithreaded language, PLDI 1998; stacks of frames that are left to
 * the parent are those of C. Williams and J. Elliott, Libfork, 2024.
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
    BIDE_FORK_ROOT_ = 8,    /* no forking coroutine's child */
    BIDE_FORK_FLAGS_ = 15,
};

/* In `taken`. */
#define BIDE_FORK_FAILED_ (UINT32_C(1) << 31)

/* A stack of frames. Used by the thread that runs its strand. */
typedef struct bide_fork_stack_ {
    unsigned char *top; /* where what is free begins, */
    unsigned char *end; /* NULL: to be asked for each frame (bide_fork_task_grow_) */
} bide_fork_stack_;

/* The first member of a forking coroutine's frame. Writer: the thread that goes on with it. */
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

/* What stands for no stack yet; and for the deque of a thread that has none: always full. */
extern bide_fork_stack_ bide_fork_task_no_stack_;

/* No room, or whatever else needs to be asked. NULL: there will be no child. */
BIDE_NOINLINE bide_fork_task *bide_fork_task_grow_(bide_fork_task *self, size_t size, uintptr_t kind);

/* The end of a frame, in all cases. Returns the frame that runs next. */
BIDE_NOINLINE bide_frame *bide_fork_task_end_slow_(bide_fork_task *self, const bide_context *context);

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
    bide_fork_task_end_,   NULL, NULL, NULL, NULL, NULL, bide_fork_task_destroyed_};

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
    if (BIDE_LIKELY((child->parent & BIDE_FORK_IN_TURN_) == 0)) {
        bide_join_deque_ *deque = bide_join_here_;
        if (BIDE_UNLIKELY(!bide_join_put_(deque, bide_atomic_load(&deque->bottom, relaxed),
                                          bide_join_of_fork_(self))))
            child->parent |= BIDE_FORK_IN_TURN_;
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
 * The child runs next, on this thread. The parent goes on when the child has ended or waits for
 * something, or at the same time on another worker. So parameters do not point at what the parent
 * changes before it has joined. The child's frame goes when it ends, so its results are written
 * elsewhere: into the parent's frame, for one. Its error is the join's.
 * Threads: the coroutine's. Errors: none. Suspends: unless the child ends first. Cancel-safe: yes,
 * a request to stop has the join end with -ECANCELED instead. Progress: wait-free, but for what a
 * wake-up or a new segment costs.
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
 * Waits until all children that this coroutine has forked have ended. What they have written is
 * there then. A coroutine may fork and join again and again.
 * Threads: the coroutine's. Errors: those of the children, one of them if several failed; -ENOMEM
 * (there was no memory for one, which has not run), -ECANCELED, -ETIMEDOUT (after a request to stop
 * one was not run). Suspends: if another worker has taken part, and a child runs yet. Cancel-safe:
 * yes, it cannot be cut short. Progress: that of the children.
 */
#define bide_fork_join(self) bide_fork_task_begin_join_(&(self)->forking)

#define BIDE_FORK_(begin, kind, self, type, ...) \
    BIDE_COUNTED_(BIDE_FORK_, BIDE_COUNT_(__VA_ARGS__))(begin, kind, self, type, __VA_ARGS__)
#define BIDE_FORK_1_(begin, kind, self, type, body) \
    ((void)bide_fork_task_frame_(&(self)->forking, sizeof(type), body, kind), begin(&(self)->forking))
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
#define BIDE_FORK_WITH_(begin, kind, self, type, body, ...)                                       \
    (bide_fork_task_frame_(&(self)->forking, sizeof(type), body, kind) != NULL                      \
         ? (BIDE_EACH_(BIDE_FORK_PARAMETER_, BIDE_FORK_CHILD_(self, type), __VA_ARGS__), (void)0) \
         : (void)0,                                                                               \
     begin(&(self)->forking))
#define BIDE_FORK_CHILD_(self, type)                   ((type *)(void *)(self)->forking.awaiter.link)
#define BIDE_FORK_PARAMETER_(child, index, assignment) child->assignment

BIDE_EXTERN_C_END

#endif

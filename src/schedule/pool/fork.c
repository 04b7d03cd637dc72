/*
 * Forks of coroutines: what is seldom done. The numbered argument is in the header.
 *
 * A stack's memory is a list of segments, each larger than the one before. A frame that is the first
 * in its segment says so (FIRST), and the segment goes when the frame does; the last that went is
 * kept, so that a coroutine which forks again and again at a segment's end does not allocate.
 *
 *     | stack | frames ... |   | segment | frame ...   |   | segment | frame (FIRST) ... top    end |
 *       the first segment  <------ before     <------------- before
 *
 * Stacks without frames are kept by the workers. A root, which is no forking coroutine's child, has
 * a stack from its first fork to its end. The bottom of that holds the context of all that is below
 * the root, so the stack is never without frames before the root has ended.
 */
#include "bide/fork.h"

#include "fork_stacks.h"

#include "bide/stop.h"

#include <errno.h>
#include <stdlib.h>

typedef struct segment segment;
struct segment {
    segment *before;
    unsigned char *begin, *end; /* of the frames in it */
};

/* What a bide_fork_stack_ is part of. */
typedef struct stack {
    bide_fork_stack_ head;
    segment *current;
    segment *spare; /* or NULL */
    bide_scheduler *scheduler;
    bide_stop_source *stop; /* that of the root's context, or NULL */
    bool is_in_pool;        /* if not, or if there is a stop source, `end` is NULL */
    struct stack *next;     /* in the worker's list */
    segment first;
} stack;

bide_fork_stack_ bide_fork_task_no_stack_ = {NULL, NULL};

static stack *stack_of(bide_fork_stack_ *head)
{
    return bide_container_of(head, stack, head);
}

static bide_fork_task *forking_of(uintptr_t parent)
{
    return (bide_fork_task *)(parent &
                            ~(uintptr_t)BIDE_FORK_FLAGS_); /* NOLINT(performance-no-int-to-ptr) */
}

/* The worker of the calling thread, if the scheduler is its pool; NULL otherwise. */
static bide_pool_worker *worker_here(const bide_scheduler *scheduler)
{
    if (bide_join_here_ == NULL)
        return NULL;
    bide_pool_worker *worker = bide_container_of(bide_join_here_, bide_pool_worker, join);
    return &worker->pool->scheduler == scheduler ? worker : NULL;
}

/* ---- Stacks ---- */

static unsigned char *aligned(void *memory)
{
    return (unsigned char *)(((uintptr_t)memory + BIDE_FORK_ALIGN_ -
                              1) & /* NOLINT(performance-no-int-to-ptr) */
                             ~(uintptr_t)(BIDE_FORK_ALIGN_ - 1));
}

/* One that has no frames; NULL: no memory. */
static stack *make_stack(bide_pool_worker *worker)
{
    stack *made = worker != NULL ? worker->stacks : NULL;
    if (made != NULL) {
        worker->stacks = made->next;
        worker->stack_count--;
        return made;
    }
    made = malloc(BIDE_FORK_SEGMENT_);
    if (made == NULL)
        return NULL;
    made->first.before = NULL;
    made->first.begin = aligned(made + 1);
    made->first.end = (unsigned char *)made + BIDE_FORK_SEGMENT_;
    made->current = &made->first;
    made->spare = NULL;
    return made;
}

static void free_stack(stack *freed)
{
    free(freed->spare);
    free(freed);
}

/* The stack has no frames left, or those that it has are not wanted. */
static void give_back(bide_fork_stack_ *head)
{
    stack *given = stack_of(head);
    bide_pool_worker *worker = worker_here(given->scheduler);
    if (worker == NULL || worker->stack_count == BIDE_FORK_STACKS_) {
        free_stack(given);
        return;
    }
    given->next = worker->stacks;
    worker->stacks = given;
    worker->stack_count++;
}

void bide_fork_task_free_stacks_(bide_pool_worker *worker)
{
    while (worker->stacks != NULL) {
        stack *freed = worker->stacks;
        worker->stacks = freed->next;
        free_stack(freed);
    }
    worker->stack_count = 0;
}

static bool is_empty(const stack *asked)
{
    return asked->current == &asked->first && asked->head.top == asked->first.begin;
}

static void set_top(stack *of, unsigned char *top)
{
    of->head.top = top;
    of->head.end = of->stop != NULL || !of->is_in_pool ? NULL : of->current->end;
}

/* A new segment that has room for so much. False: no memory. */
static bool add_segment(stack *to, size_t size)
{
    segment *added = to->spare;
    size_t wanted = sizeof(segment) + BIDE_FORK_ALIGN_ + size;
    size_t usual = 2 * (size_t)(to->current->end - to->current->begin);
    if (wanted < size)
        return false;
    if (added != NULL && (size_t)(added->end - added->begin) >= size) {
        to->spare = NULL;
    } else {
        if (usual > BIDE_FORK_SEGMENT_MAX_)
            usual = BIDE_FORK_SEGMENT_MAX_;
        if (wanted < usual)
            wanted = usual;
        added = malloc(wanted);
        if (added == NULL)
            return false;
        added->begin = aligned(added + 1);
        added->end = (unsigned char *)added + wanted;
    }
    added->before = to->current;
    to->current = added;
    set_top(to, added->begin);
    return true;
}

/* The top of the segment below is where that segment is full: what is left there is left. */
static void drop_segment(stack *of, unsigned char *top)
{
    segment *dropped = of->current;
    of->current = dropped->before;
    free(of->spare);
    of->spare = dropped;
    set_top(of, top);
}

/* What stands in front of the first frame of a segment: where the one below ends. */
typedef struct below {
    BIDE_ALIGNAS(16) unsigned char *top;
} below;

/* Cuts off so much; NULL: no memory. *is_first: it is the first in a segment above the first. */
static void *cut(stack *from, size_t size, bool *is_first)
{
    unsigned char *top = from->head.top;
    *is_first = (size_t)(from->current->end - top) < size;
    if (*is_first) {
        if (size + sizeof(below) < size || !add_segment(from, size + sizeof(below)))
            return NULL;
        ((below *)(void *)from->head.top)->top = top;
        from->head.top += sizeof(below);
    }
    unsigned char *memory = from->head.top;
    set_top(from, memory + size);
    return memory;
}

/* The frame at the top goes. */
static void pop_frame(stack *from, bide_fork_task *frame, bool is_first)
{
    if (is_first)
        drop_segment(from, ((below *)(void *)frame - 1)->top);
    else
        set_top(from, (unsigned char *)frame);
}

/* A stack for the coroutine's strand, which has none; the root's brings a context. NULL: no memory. */
static stack *begin_stack(bide_fork_task *self)
{
    const bide_context *context = self->frame.context;
    bide_pool_worker *worker = worker_here(context->scheduler);
    stack *made = make_stack(worker);
    if (made == NULL)
        return NULL;
    made->scheduler = context->scheduler;
    made->stop = self->home != NULL ? stack_of(self->home)->stop : context->stop;
    made->is_in_pool = worker != NULL;
    set_top(made, made->first.begin);
    if (self->home == NULL) {
        bool is_first;
        bide_context *below_root = cut(
            made, (sizeof *context + BIDE_FORK_ALIGN_ - 1) / BIDE_FORK_ALIGN_ * BIDE_FORK_ALIGN_,
            &is_first);
        *below_root = *context;
        below_root->stop = NULL;
        self->frame.context = below_root;
        self->home = &made->head;
    }
    self->stack = &made->head;
    return made;
}

/* There will be no child. */
static bide_fork_task *refuse(bide_fork_task *self, uintptr_t kind, int error)
{
    if (kind == BIDE_FORK_CALLED_) {
        self->status = error;
    } else {
        int none = 0;
        bide_atomic_compare_exchange(&self->failed, &none, error, relaxed, relaxed);
        self->taken |= BIDE_FORK_FAILED_;
    }
    return NULL;
}

bide_fork_task *bide_fork_task_grow_(bide_fork_task *self, size_t size, uintptr_t kind)
{
    bool is_first;
    stack *from =
        self->stack != &bide_fork_task_no_stack_ ? stack_of(self->stack) : begin_stack(self);
    if (from == NULL)
        return refuse(self, kind, -ENOMEM);
    if (kind != BIDE_FORK_CALLED_ && bide_stop_requested(from->stop))
        return refuse(self, kind, bide_stop_reason(from->stop));
    bide_fork_task *child = cut(from, size, &is_first);
    if (child == NULL)
        return refuse(self, kind, -ENOMEM);
    if (kind != BIDE_FORK_CALLED_ && !from->is_in_pool)
        kind = BIDE_FORK_IN_TURN_;
    child->parent = (uintptr_t)self | kind | (is_first ? BIDE_FORK_FIRST_ : 0);
    child->stack = &from->head;
    return child;
}

/* ---- Parents that are taken ---- */

/* It was taken off a deque, not by its child's end. */
static void take(bide_fork_task *parent)
{
    if ((parent->taken & ~BIDE_FORK_FAILED_) == 0)
        parent->home = parent->stack;
    parent->taken++;
    parent->stack = &bide_fork_task_no_stack_; /* the child has it */
}

void bide_fork_task_go_on_(bide_join_half_ *taken)
{
    bide_fork_task *parent = (bide_fork_task *)(void *)((char *)taken - BIDE_JOIN_FORK_);
    bide_pool_worker *worker = bide_container_of(bide_join_here_, bide_pool_worker, join);
    take(parent);
    bide_resume(&parent->frame);
    bide_fork_task_leave_(worker);
}

void bide_fork_task_take_all_(bide_pool_worker *worker)
{
    bide_join_deque_ *deque = &worker->join;
    bide_awaiter_chain taken = {NULL, NULL};
    while (!bide_join_deque_is_empty_(deque)) {
        size_t bottom = bide_atomic_load(&deque->bottom, relaxed) - 1;
        bide_join_half_ *last = bide_atomic_load(&deque->slots[bottom % BIDE_JOIN_SLOTS_], relaxed);
        if (!bide_join_pop_(deque, bottom))
            break;
        bide_fork_task *parent = (bide_fork_task *)(void *)((char *)last - BIDE_JOIN_FORK_);
        take(parent);
        parent->awaiter.link = NULL;
        bide_awaiter_chain_append(&taken, &parent->awaiter, &parent->awaiter);
    }
    if (taken.first != NULL)
        bide_pool_push_(worker, taken.first, taken.last);
}

/* ---- Ends ---- */

/* True: all children have ended. False: the last of them goes on, and the coroutine may be gone. */
static bool join(bide_fork_task *self)
{
    uint32_t taken = self->taken & ~BIDE_FORK_FAILED_;
    self->taken = 0;
    if (taken == 0)
        return true;
    if (self->stack != &bide_fork_task_no_stack_)
        give_back(self->stack); /* 3 */
    self->stack = self->home;
    /* acquire, release: partners are the others of these; what each has done (1) */
    if (bide_atomic_fetch_add(&self->pending, taken, acq_rel) + taken != 0)
        return false;
    return true;
}

static void note_error(bide_fork_task *parent, int error)
{
    int none = 0;
    if (error < 0)
        bide_atomic_compare_exchange(&parent->failed, &none, error, relaxed, relaxed);
}

/* It stood on the deque because of another child, which waits: there it stays. */
static void put_back(bide_fork_task *parent)
{
    bide_join_deque_ *deque = bide_join_here_;
    bide_join_put_(deque, bide_atomic_load(&deque->bottom, relaxed), bide_join_of_fork_(parent));
}

/*
 * The child comes to the parent's join, or before it. True: as the last. `head` is what it lay on.
 */
static bool arrive(bide_fork_task *parent, bide_fork_stack_ *head)
{
    if (BIDE_UNLIKELY(worker_here(stack_of(head)->scheduler) == NULL))
        bide_misuse_("a forked coroutine has gone to another scheduler", "bide_fork", __FILE__,
                     __LINE__);
    if (is_empty(stack_of(head)))
        give_back(head); /* the parent does not lie on it (3) */
    /* acquire, release: partners are the others of these; what each has done (1) */
    if (bide_atomic_fetch_sub(&parent->pending, 1, acq_rel) != 1)
        return false;
    return true;
}

/* The first has ended; `context` is NULL if it has waited for its children at its end. */
static bide_frame *end_root(bide_fork_task *self, const bide_context *context)
{
    bide_frame *next = self->frame.awaiter.frame;
    int error = self->frame.error;
    if (context == NULL)
        context = (const bide_context *)(void *)stack_of(self->home)->first.begin;
    if (error < 0 && next == NULL)
        bide_frame_unhandled_(context, bide_frame_point(&self->frame)->code, error);
    if (self->home == NULL)
        return next;
    stack_of(self->home)->current = &stack_of(self->home)->first;
    give_back(self->home);
    return next;
}

/* The bodies of `self` and of all that it has forked have ended; and of its parent, and so on. */
static bide_frame *end(bide_fork_task *self, const bide_context *context)
{
    for (;;) {
        uintptr_t flags = self->parent & BIDE_FORK_FLAGS_;
        bide_fork_task *parent = forking_of(self->parent);
        bide_frame *next = self->frame.awaiter.frame;
        int error = self->frame.error;
        int failed = bide_atomic_load(&self->failed, relaxed); /* 6, by `pending` */
        if (error == 0)
            error = self->frame.error = failed;
        if ((flags & BIDE_FORK_ROOT_) != 0)
            return end_root(self, context);
        bide_fork_stack_ *head = self->stack;
        pop_frame(stack_of(head), self, (flags & BIDE_FORK_FIRST_) != 0);
        if ((flags & BIDE_FORK_CALLED_) != 0) {
            parent->status = error;
            return next;
        }
        note_error(parent, error);
        if ((flags & BIDE_FORK_IN_TURN_) != 0) {
            parent->taken |= error < 0 ? BIDE_FORK_FAILED_ : 0;
            return next;
        }
        if (bide_fork_task_pop_(parent)) {
            if (parent->stack == head) {
                parent->taken |= error < 0 ? BIDE_FORK_FAILED_ : 0;
                return next;
            }
            put_back(parent);
        }
        if (!arrive(parent, head))
            return NULL;
        if (!bide_done(&parent->frame))
            return &parent->frame;
        self = parent;
        context = NULL;
    }
}

bide_frame *bide_fork_task_detached_(bide_fork_task *parent, bool is_popped, bide_fork_stack_ *head)
{
    if (is_popped)
        put_back(parent);
    if (!arrive(parent, head))
        return NULL;
    return bide_done(&parent->frame) ? end(parent, NULL) : &parent->frame;
}

bide_frame *bide_fork_task_end_slow_(bide_fork_task *self, const bide_context *context)
{
    return join(self) ? end(self, context) : NULL;
}

bide_frame *bide_fork_task_join_suspend_(bide_awaiter *awaiter, bide_frame *frame)
{
    return join(bide_fork_task_of_(awaiter)) ? frame : NULL;
}

/* Children may run that write into its frame; and its stack goes only at its end. */
void bide_fork_task_destroyed_(bide_frame *frame)
{
    bide_fork_task *self = bide_container_of(frame, bide_fork_task, frame);
    if ((self->parent & BIDE_FORK_ROOT_) == 0 || self->home != NULL)
        bide_misuse_("a coroutine was destroyed that has forked",
                     bide_frame_point(frame)->code->name, __FILE__, __LINE__);
}

bool bide_fork_task_withdraw_(bide_awaiter *awaiter)
{
    bide_misuse_("a coroutine was destroyed that waits for what it has forked", awaiter->ops->name,
                 __FILE__, __LINE__);
    return true;
}

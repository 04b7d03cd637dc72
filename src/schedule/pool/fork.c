/*
 * Forks of coroutines: the slow paths, and the stacks of frames. The numbered argument is in the
 * header. A frame, and the stack it is on, belong to the thread that runs the frame's strand.
 *
 * A stack's memory is a list of segments, each larger than the one before. A frame that is the first
 * in its segment has FIRST set, and the segment is dropped with it. The segment that was dropped last
 * is kept, so a coroutine that forks repeatedly at the end of a segment does not allocate.
 *
 *     | stack | frames ... |   | segment | frame ...   |   | segment | frame (FIRST) ... top    end |
 *       the first segment  <------ before     <------------- before
 *
 * Workers keep stacks without frames. A root, which is not the child of a forking coroutine, has a
 * stack from its first fork to its end. The bottom of that stack holds the root's node, so the stack is
 * never empty before the root has ended.
 *
 * If the root's context has a stop source, each frame has a node in front of it:
 *
 *     the root's source <-- its `children` <-- `source` of a forked child <-- its `children` <-- ...
 */
#include "bide/fork.h"

#include "../../coroutine/internal.h"
#include "fork_stacks.h"

#include "bide/stop.h"

#include <errno.h>
#include <stdlib.h>

typedef struct fork_segment fork_segment;
struct fork_segment {
    fork_segment *before;
    unsigned char *begin, *end; /* the memory for frames */
};

typedef struct fork_stack {
    bide_fork_stack_ head;
    fork_segment *current;
    fork_segment *spare; /* or NULL */
    bide_scheduler *scheduler;
    bool is_in_pool;         /* if false, `end` is NULL */
    bool is_drawn;           /* the scheduler's environment says how forks begin; not in a pool */
    bool has_nodes;          /* its frames have nodes, and `end` is NULL: the root has a source */
    struct fork_stack *next; /* in the worker's list */
    fork_segment first;
} fork_stack;

/*
 * In front of a child's frame, and at the bottom of a root's stack, if the root's context has a stop
 * source (7). The coroutine's thread attaches and detaches both sources.
 */
typedef struct fork_node {
    BIDE_ALIGNAS(16) bide_context context; /* a forked child's, with `source` */
    bide_stop_source source;               /* of its waits; attached to its parent's `children` */
    bide_stop_source
        children; /* attached to the source of the coroutine's context, once it forks */
} fork_node;

bide_fork_stack_ bide_fork_task_no_stack_ = {NULL, NULL};

static fork_stack *fork_stack_of(bide_fork_stack_ *head)
{
    return bide_container_of(head, fork_stack, head);
}

static bide_fork_task *fork_task_of(uintptr_t parent)
{
    return (bide_fork_task *)(parent &
                              ~(uintptr_t)BIDE_FORK_FLAGS_); /* NOLINT(performance-no-int-to-ptr) */
}

/* The worker of the calling thread, if the scheduler is its pool; NULL otherwise. */
static bide_pool_worker *fork_worker(const bide_scheduler *scheduler)
{
    if (bide_join_here_ == NULL)
        return NULL;
    bide_pool_worker *worker = bide_container_of(bide_join_here_, bide_pool_worker, join);
    return &worker->pool->scheduler == scheduler ? worker : NULL;
}

/* ---- Stacks ---- */

static unsigned char *fork_align(void *memory)
{
    return (unsigned char *)(((uintptr_t)memory + BIDE_FORK_ALIGN_ -
                              1) & /* NOLINT(performance-no-int-to-ptr) */
                             ~(uintptr_t)(BIDE_FORK_ALIGN_ - 1));
}

/* A stack without frames; NULL: no memory. */
static fork_stack *fork_make_stack(bide_pool_worker *worker)
{
    fork_stack *made = worker != NULL ? worker->stacks : NULL;
    if (made != NULL) {
        bide_assert(worker->stack_count != 0);
        worker->stacks = made->next;
        worker->stack_count--;
        return made;
    }
    made = malloc(BIDE_FORK_SEGMENT_);
    if (made == NULL)
        return NULL;
    made->first.before = NULL;
    made->first.begin = fork_align(made + 1);
    made->first.end = (unsigned char *)made + BIDE_FORK_SEGMENT_;
    made->current = &made->first;
    made->spare = NULL;
    return made;
}

static void fork_free_stack(fork_stack *freed)
{
    free(freed->spare);
    free(freed);
}

/* The stack has no frames left that are needed. */
static void fork_release_stack(bide_fork_stack_ *head)
{
    fork_stack *given = fork_stack_of(head);
    bide_pool_worker *worker = fork_worker(given->scheduler);
    if (worker == NULL || worker->stack_count == BIDE_FORK_STACKS_) {
        fork_free_stack(given);
        return;
    }
    given->next = worker->stacks;
    bide_assert(worker->stack_count < BIDE_FORK_STACKS_);
    worker->stacks = given;
    worker->stack_count++;
}

void bide_fork_task_free_stacks_(bide_pool_worker *worker)
{
    while (worker->stacks != NULL) {
        fork_stack *freed = worker->stacks;
        worker->stacks = freed->next;
        worker->stack_count--;
        fork_free_stack(freed);
    }
    bide_assert(worker->stack_count == 0);
}

static bool fork_stack_is_empty(const fork_stack *asked)
{
    return asked->current == &asked->first && asked->head.top == asked->first.begin;
}

static void fork_set_top(fork_stack *of, unsigned char *top)
{
    of->head.top = top;
    of->head.end = of->has_nodes || !of->is_in_pool ? NULL : of->current->end;
}

/* A new segment with room for `size` bytes. False: no memory. */
static bool fork_add_segment(fork_stack *to, size_t size)
{
    fork_segment *added = to->spare;
    size_t wanted = sizeof(fork_segment) + BIDE_FORK_ALIGN_ + size;
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
        added->begin = fork_align(added + 1);
        added->end = (unsigned char *)added + wanted;
    }
    added->before = to->current;
    to->current = added;
    fork_set_top(to, added->begin);
    return true;
}

/* `top` is where the segment below was full; the rest of that segment stays unused. */
static void fork_drop_segment(fork_stack *of, unsigned char *top)
{
    fork_segment *dropped = of->current;
    bide_assert(dropped != &of->first && top >= dropped->before->begin &&
                top <= dropped->before->end);
    of->current = dropped->before;
    free(of->spare);
    of->spare = dropped;
    fork_set_top(of, top);
}

/* In front of the first frame of a segment: the top of the segment below. */
typedef struct fork_below {
    BIDE_ALIGNAS(16) unsigned char *top;
} fork_below;

/* Memory for a frame; NULL: none. *is_first: it is the first frame of a segment above the first. */
static void *fork_push_frame(fork_stack *from, size_t size, bool *is_first)
{
    unsigned char *top = from->head.top;
    *is_first = (size_t)(from->current->end - top) < size;
    if (*is_first) {
        if (size + sizeof(fork_below) < size || !fork_add_segment(from, size + sizeof(fork_below)))
            return NULL;
        ((fork_below *)(void *)from->head.top)->top = top;
        from->head.top += sizeof(fork_below);
    }
    unsigned char *memory = from->head.top;
    fork_set_top(from, memory + size);
    return memory;
}

/* Removes what is at the top. */
static void fork_pop_frame(fork_stack *from, void *memory, bool is_first)
{
    if (is_first)
        fork_drop_segment(from, ((fork_below *)memory - 1)->top);
    else
        fork_set_top(from, memory);
}

/* A stack for the coroutine's strand; a root's also holds a context. NULL: no memory. */
static fork_stack *fork_start_stack(bide_fork_task *self)
{
    const bide_context *context = self->frame.context;
    bide_pool_worker *worker = fork_worker(context->scheduler);
    fork_stack *made = fork_make_stack(worker);
    if (made == NULL)
        return NULL;
    made->scheduler = context->scheduler;
    const bide_environment *environment = context->scheduler->environment;
    made->is_in_pool = worker != NULL;
    made->is_drawn = worker == NULL && environment != NULL && environment->fork != NULL;
    made->has_nodes = self->home != NULL
                          ? fork_stack_of(self->home)->has_nodes
                          : (worker != NULL || made->is_drawn) && context->stop != NULL;
    fork_set_top(made, made->first.begin);
    if (self->home == NULL) {
        bool is_first;
        fork_node *below_root = fork_push_frame(made, sizeof *below_root, &is_first);
        below_root->context = *context;
        bide_stop_source_init(&below_root->children);
        self->frame.context = &below_root->context;
        self->home = &made->head;
    }
    self->stack = &made->head;
    return made;
}

/* The fork or call fails: there is no child. */
static bide_fork_task *fork_fail_child(bide_fork_task *self, uintptr_t kind, int error)
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

/* Of a coroutine on a stack with nodes; a root has begun to fork. */
static fork_node *fork_node_of(bide_fork_task *self)
{
    if (self->parent == BIDE_FORK_ROOT_)
        return (fork_node *)(void *)fork_stack_of(self->home)->first.begin;
    return (fork_node *)(void *)self - 1;
}

/*
 * The source above the children of a coroutine. It is asked beside the coroutine's own only by a join
 * that has ended (7): no child is left then, and it begins anew.
 */
static bide_stop_source *fork_children_of(bide_fork_task *self)
{
    bide_stop_source *children = &fork_node_of(self)->children;
    bide_stop_source *own = self->frame.context->stop;
    if (BIDE_UNLIKELY(bide_stop_requested(children)) && !bide_stop_requested(own)) {
        bide_stop_source_detach(children);
        bide_stop_source_init(children);
    }
    if (children->parent == NULL)
        bide_stop_source_attach(children, own);
    return children;
}

static void fork_init_node(bide_fork_task *child, bide_fork_task *parent, uintptr_t kind)
{
    fork_node *node = fork_node_of(child);
    bide_stop_source_init(&node->children);
    bide_stop_source_init(&node->source);
    if (kind == BIDE_FORK_CALLED_)
        return;
    node->context = *parent->frame.context;
    node->context.stop = &node->source;
    bide_stop_source_attach(&node->source, fork_children_of(parent));
}

bide_fork_task *bide_fork_task_grow_(bide_fork_task *self, size_t size, uintptr_t kind)
{
    bool is_first;
    bide_stop_source *stop = self->frame.context->stop;
    fork_stack *from = self->stack != &bide_fork_task_no_stack_ ? fork_stack_of(self->stack)
                                                                : fork_start_stack(self);
    if (from == NULL)
        return fork_fail_child(self, kind, -ENOMEM);
    if (kind != BIDE_FORK_CALLED_ && bide_stop_requested(stop))
        return fork_fail_child(self, kind, bide_stop_reason(stop));
    size_t before = from->has_nodes ? sizeof(fork_node) : 0;
    unsigned char *memory =
        before + size >= size ? fork_push_frame(from, before + size, &is_first) : NULL;
    if (memory == NULL)
        return fork_fail_child(self, kind, -ENOMEM);
    bide_fork_task *child = (bide_fork_task *)(void *)(memory + before);
    if (kind != BIDE_FORK_CALLED_ && !from->is_in_pool)
        kind = BIDE_FORK_IN_TURN_;
    child->parent = (uintptr_t)self | kind | (is_first ? BIDE_FORK_FIRST_ : 0) |
                    (before != 0 ? BIDE_FORK_NODE_ : 0);
    child->stack = &from->head;
    if (before != 0)
        fork_init_node(child, self, kind);
    return child;
}

/* ---- Parents that are taken off a deque ---- */

/* Not by its child's end. */
static void fork_take_parent(bide_fork_task *parent)
{
    if ((parent->taken & ~BIDE_FORK_FAILED_) == 0)
        parent->home = parent->stack;
    parent->taken++;
    parent->stack = &bide_fork_task_no_stack_; /* the child has it */
}

/*
 * On the only thread of a scheduler whose environment draws how a child begins. A parent that runs beside its child
 * has been taken, as by another worker; there is no deque. So the child ends as one whose parent was taken.
 */
static int fork_begin_drawn(bide_fork_task *child)
{
    enum { IN_TURN, CHILD_FIRST, PARENT_FIRST };
    bide_fork_task *parent = fork_task_of(child->parent);
    bide_scheduler *scheduler = child->frame.context->scheduler;
    unsigned drawn = scheduler->environment->fork(scheduler);
    if (drawn == IN_TURN)
        return BIDE_FORK_WAITS_;
    child->parent &= ~(uintptr_t)BIDE_FORK_IN_TURN_;
    fork_take_parent(parent);
    if (drawn == CHILD_FIRST) {
        bide_wake_one(&parent->awaiter);
        return BIDE_FORK_WAITS_;
    }
    bide_assert(drawn == PARENT_FIRST);
    child->awaiter.ops = parent->awaiter.ops;
    child->awaiter.frame = &child->frame;
    bide_wake_one(&child->awaiter);
    return BIDE_FORK_LATER_;
}

int bide_fork_task_begins_(bide_fork_task *child)
{
    if ((child->parent & BIDE_FORK_NODE_) != 0)
        child->frame.context = &fork_node_of(child)->context;
    if ((child->parent & BIDE_FORK_IN_TURN_) == 0)
        return BIDE_FORK_BESIDE_;
    return fork_stack_of(child->stack)->is_drawn ? fork_begin_drawn(child) : BIDE_FORK_WAITS_;
}

void bide_fork_task_continue_(bide_join_half_ *taken)
{
    bide_fork_task *parent = (bide_fork_task *)(void *)((char *)taken - BIDE_JOIN_FORK_);
    bide_pool_worker *worker = bide_container_of(bide_join_here_, bide_pool_worker, join);
    fork_take_parent(parent);
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
        fork_take_parent(parent);
        parent->awaiter.link = NULL;
        bide_awaiter_chain_append(&taken, &parent->awaiter, &parent->awaiter);
    }
    if (taken.first != NULL)
        bide_pool_push_(worker, taken.first, taken.last);
}

/* ---- Joins and ends ---- */

/* True: all children have ended. False: the last child resumes the coroutine, which may be gone. */
static bool fork_join(bide_fork_task *self)
{
    uint32_t taken = self->taken & ~BIDE_FORK_FAILED_;
    self->taken = 0;
    if (taken == 0)
        return true;
    if (self->stack != &bide_fork_task_no_stack_)
        fork_release_stack(self->stack); /* 3 */
    self->stack = self->home;
    /* acquire, release: partners are the other changes of `pending`; the children's writes (1) */
    if (bide_atomic_fetch_add(&self->pending, taken, acq_rel) + taken != 0)
        return false;
    return true;
}

static void fork_note_error(bide_fork_task *parent, int error)
{
    int none = 0;
    if (error < 0)
        bide_atomic_compare_exchange(&parent->failed, &none, error, relaxed, relaxed);
}

/* The parent is on the deque because of another child, which waits: it stays there. */
static void fork_put_back(bide_fork_task *parent)
{
    bide_join_deque_ *deque = bide_join_here_;
    bide_join_put_(deque, bide_atomic_load(&deque->bottom, relaxed), bide_join_of_fork_(parent));
}

/* A child has ended, on the stack `head`; the parent may have reached its join. True: it is last. */
static bool fork_arrive(bide_fork_task *parent, bide_fork_stack_ *head)
{
    if (BIDE_UNLIKELY(fork_worker(fork_stack_of(head)->scheduler) == NULL &&
                      !fork_stack_of(head)->is_drawn))
        bide_misuse_("a forked coroutine has gone to another scheduler", "bide_fork", __FILE__,
                     __LINE__);
    if (fork_stack_is_empty(fork_stack_of(head)))
        fork_release_stack(head); /* the parent is not on it (3) */
    /* acquire, release: partners are the other changes of `pending`; the children's writes (1) */
    if (bide_atomic_fetch_sub(&parent->pending, 1, acq_rel) != 1)
        return false;
    return true;
}

/*
 * The last child of a parent has ended, which waits at its join. Continues with what awaits that: the
 * parent, or a wrapper.
 */
static bide_frame *fork_end_join(bide_fork_task *parent)
{
    bide_frame *frame = parent->awaiter.frame;
    if (BIDE_LIKELY(frame->context->scheduler == parent->frame.context->scheduler))
        return frame;
    bide_wake_one(&parent->awaiter);
    return NULL;
}

/* A root has ended; `context` is NULL if it has waited for its children at its end. */
static bide_frame *fork_end_root(bide_fork_task *self, const bide_context *context)
{
    bide_frame *next = self->frame.awaiter.frame;
    int error = self->frame.error;
    if (context == NULL)
        context = (const bide_context *)(void *)fork_stack_of(self->home)->first.begin;
    if (error < 0 && next == NULL)
        bide_frame_unhandled_(context, bide_frame_point(&self->frame)->code, error);
    if (self->home == NULL)
        return next;
    bide_stop_source_detach(&fork_node_of(self)->children);
    fork_stack_of(self->home)->current = &fork_stack_of(self->home)->first;
    fork_release_stack(self->home);
    return next;
}

/* `self` and its children have ended. Ends it, and then each parent of which this was the last. */
static bide_frame *fork_end(bide_fork_task *self, const bide_context *context)
{
    for (;;) {
        uintptr_t flags = self->parent & BIDE_FORK_FLAGS_;
        bide_fork_task *parent = fork_task_of(self->parent);
        bide_frame *next = self->frame.awaiter.frame;
        int error = self->frame.error;
        int failed = bide_atomic_load(&self->failed, relaxed); /* 6, by `pending` */
        if (error == 0)
            error = self->frame.error = failed;
        if (self->parent == BIDE_FORK_ROOT_)
            return fork_end_root(self, context);
        bide_fork_stack_ *head = self->stack;
        void *memory = self;
        if ((flags & BIDE_FORK_NODE_) != 0) {
            fork_node *node = memory = fork_node_of(self);
            bide_stop_source_detach(&node->children);
            bide_stop_source_detach(&node->source);
        }
        fork_pop_frame(fork_stack_of(head), memory, (flags & BIDE_FORK_FIRST_) != 0);
        if ((flags & BIDE_FORK_CALLED_) != 0) {
            parent->status = error;
            return next;
        }
        fork_note_error(parent, error);
        if ((flags & BIDE_FORK_IN_TURN_) != 0) {
            parent->taken |= error < 0 ? BIDE_FORK_FAILED_ : 0;
            return next;
        }
        if (bide_fork_task_pop_(parent)) {
            if (parent->stack == head) {
                parent->taken |= error < 0 ? BIDE_FORK_FAILED_ : 0;
                return next;
            }
            fork_put_back(parent);
        }
        if (!fork_arrive(parent, head))
            return NULL;
        if (!bide_done(&parent->frame))
            return fork_end_join(parent);
        self = parent;
        context = NULL;
    }
}

bide_frame *bide_fork_task_detached_(bide_fork_task *parent, bool is_popped, bide_fork_stack_ *head)
{
    if (is_popped)
        fork_put_back(parent);
    if (!fork_arrive(parent, head))
        return NULL;
    return bide_done(&parent->frame) ? fork_end(parent, NULL) : fork_end_join(parent);
}

bide_frame *bide_fork_task_end_slow_(bide_fork_task *self, const bide_context *context)
{
    return fork_join(self) ? fork_end(self, context) : NULL;
}

static bide_frame *fork_join_suspend(bide_awaiter *awaiter, bide_frame *frame)
{
    return fork_join(bide_fork_task_of_(awaiter)) ? frame : NULL;
}

/* The join goes on waiting, until the children have ended. The awaiter's frame is the gate. */
static void fork_join_cancel(bide_awaiter *awaiter)
{
    bide_stop_request_with(&fork_node_of(bide_fork_task_of_(awaiter))->children,
                           bide_stop_reason(awaiter->frame->context->stop));
}

/* 7. The coroutine has been taken, so it has a `home`. */
bide_frame *bide_fork_task_join_suspend_(bide_awaiter *awaiter, bide_frame *frame)
{
    static const bide_awaiter_ops gated = {.suspend = fork_join_suspend,
                                           .cancel = fork_join_cancel};
    bide_fork_task *self = bide_fork_task_of_(awaiter);
    bide_stop_source *source = frame->context->stop;
    const bide_awaiter_ops *ops = awaiter->ops;
    if (BIDE_LIKELY(frame == &self->frame) || source == NULL ||
        source == self->frame.context->stop || !fork_stack_of(self->home)->has_nodes)
        return fork_join_suspend(awaiter, frame);
    bide_frame *next = bide_stop_suspend_in_(source, awaiter, &gated, frame);
    if (next != frame || awaiter->ops == ops)
        return next;
    /* It was requested before, and nothing was started. */
    awaiter->ops = ops;
    bide_stop_request_with(&fork_node_of(self)->children, bide_stop_reason(source));
    return fork_join_suspend(awaiter, frame);
}

/* Running children may write into its frame, and its stack is released only at its end. */
void bide_fork_task_destroyed_(bide_frame *frame)
{
    bide_fork_task *self = bide_container_of(frame, bide_fork_task, frame);
    if (self->parent != BIDE_FORK_ROOT_ || self->home != NULL)
        bide_misused_("a coroutine was destroyed that has forked", bide_frame_point(frame));
}

bool bide_fork_task_withdraw_(bide_awaiter *awaiter)
{
    bide_misuse_("a coroutine was destroyed that waits for what it has forked", awaiter->ops->name,
                 __FILE__, __LINE__);
    return true;
}

/*
 * A root is a coroutine written by hand, because its end must not touch its own frame: `ended` may
 * free it. While it is in a run queue it is its own continuation, so that resuming an ended
 * operation's frame runs it. One thread at a time owns it: the thread that begins it, then its
 * scheduler's thread, then the thread that ends its operation. Its context is a copy, which no other
 * thread changes.
 *
 *     at_start --its scheduler--> at_await --> ended(root)
 *                                    +--its operation has moved it--> at_home --its scheduler--^
 */
#include "bide/extend/root.h"

#include "internal.h"
#include "observe.h"
#include "roots.h"

#include "bide/errors.h"

static bide_next root_step(bide_frame *frame, unsigned depth);

const bide_coroutine_code bide_root_code_ = {root_step, "bide_root", __FILE__, &bide_by_hand, NULL};
static const bide_point root_at_start = BIDE_POINT_START(&bide_root_code_);
static const bide_point root_at_await = BIDE_POINT(&bide_root_code_, NULL, 1, BIDE_AT_AWAIT);
static const bide_point at_home = BIDE_POINT(&bide_root_code_, NULL, 2, BIDE_AT_YIELD);

static void root_unregister(bide_root *root)
{
    if (root->context.stop == &root->stop)
        bide_stop_source_detach(&root->stop);
    BIDE_OBSERVE_(task_ends, (root));
#if BIDE_ROOTS
    bide_roots_remove_(root);
#endif
}

/* Posts it in the context that it was given. */
static void root_post(bide_root *root)
{
    bide_scheduler *scheduler = root->context.scheduler;
    bide_awaiter *self = &root->frame.awaiter;
    self->link = NULL;
    self->frame = &root->frame;
    scheduler->post(scheduler, self, self);
}

static void destroy_root(bide_root *root)
{
    bide_frame *frame = &root->frame;
    const bide_point *point = bide_frame_point(frame);
    if (point != &root_at_await && !bide_take_back_from_(root->context.scheduler, &frame->awaiter))
        bide_misused_("a coroutine was destroyed that is about to begin", point);
    if (point == &root_at_start)
        bide_wrapper_abandon(&root->awaited);
    else if (point == &at_home)
        bide_wrapper_release(&root->awaited);
    root->status = -ECANCELED;
    bide_frame_destroyed(frame);
    root_unregister(root);
}

/*
 * Its operation may have moved it to another scheduler: then it returns home for its end, by the
 * queue. It is marked as ended before `ended` is called, which may free it.
 */
static bide_next root_step(bide_frame *frame, unsigned depth)
{
    bide_root *root = bide_container_of(frame, bide_root, frame);
    if (BIDE_UNLIKELY(depth == BIDE_DESTROY_)) {
        destroy_root(root);
        return bide_next_none();
    }
    if (frame->awaiter.ops == &root_at_start.ops) {
        frame->awaiter.ops = &root_at_await.ops;
        return bide_next_frame(bide_frame_await_by_(frame, root->awaited, frame));
    }
    if (frame->awaiter.ops == &root_at_await.ops) {
        root->status = bide_wrapper_take(&root->awaited);
        if (BIDE_UNLIKELY(frame->context->scheduler != root->context.scheduler)) {
            frame->awaiter.ops = &at_home.ops;
            frame->context = &root->context;
            root_post(root);
            return bide_next_none();
        }
    }
    root_unregister(root);
    frame->awaiter.ops = &bide_point_finished.ops;
    frame->error = root->status;
    root->ended(root);
    return bide_next_none();
}

void bide_root_prepare(bide_root *root, const bide_context *context, bide_awaiter *awaited,
                       void (*ended)(bide_root *root), bool is_stoppable)
{
    bide_awaiter *self = &root->frame.awaiter;
    self->ops = &root_at_start.ops;
    self->link = NULL;
    self->frame = &root->frame;
    root->frame.context = &root->context;
    root->awaited = awaited;
    root->ended = ended;
    root->context = *context;
    if (is_stoppable || context->stop != NULL) {
        root->context.stop = &root->stop;
        bide_stop_source_init(&root->stop);
        if (context->stop != NULL)
            bide_stop_source_attach(&root->stop, context->stop);
    }
#if BIDE_ROOTS
    bide_roots_add_(root);
#endif
    BIDE_OBSERVE_(task, (root));
}

void bide_root_post(bide_root *root)
{
    root_post(root);
}

void bide_root_start(bide_root *root, const bide_context *context, bide_awaiter *awaited,
                     void (*ended)(bide_root *root))
{
    bide_root_prepare(root, context, awaited, ended, false);
    bide_root_post(root);
}

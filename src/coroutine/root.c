/*
 * A root is a coroutine written by hand, for its end must not touch its own frame: `ended` may free it.
 * While it is in a run queue to be started it is its own continuation, so that what resumes an ended
 * operation's frame starts it. One thread at a time has it: who begins it, then its scheduler's thread,
 * then whichever ends what it awaits.
 */
#include "bide/root.h"

#include "inside.h"
#include "roots.h"

static bide_next root_step(bide_frame *frame, unsigned depth);

const bide_coroutine_code bide_root_code_ = {root_step, "bide_root", __FILE__, NULL, NULL};
static const bide_point at_start = BIDE_POINT_START(&bide_root_code_);
static const bide_point at_await = BIDE_POINT(&bide_root_code_, NULL, 1, BIDE_AT_AWAIT);

/* Nothing refers to it any more. */
void bide_root_forget_(bide_root *root)
{
    if (root->frame.context == &root->context)
        bide_stop_source_detach(&root->stop);
#if BIDE_ROOTS
    bide_roots_remove_(root);
#endif
}

static bide_next root_step(bide_frame *frame, unsigned depth)
{
    bide_root *root = bide_container_of(frame, bide_root, frame);
    (void)depth;
    if (frame->awaiter.ops == &at_start.ops) {
        frame->awaiter.ops = &at_await.ops;
        return bide_next_frame(bide_frame_await(frame, root->awaited));
    }
    root->status = bide_awaiter_resume(root->awaited, root->awaited->ops);
    bide_root_forget_(root);
    root->ended(root);
    return bide_next_none();
}

void bide_root_prepare(bide_root *root, const bide_context *context, bide_awaiter *awaited,
                       void (*ended)(bide_root *root), bool is_stoppable)
{
    bide_awaiter *self = &root->frame.awaiter;
    self->ops = &at_start.ops;
    self->link = NULL;
    self->frame = &root->frame;
    root->frame.context = context;
    root->awaited = awaited;
    root->ended = ended;
    if (is_stoppable || context->stop != NULL) {
        root->context = *context;
        root->context.stop = &root->stop;
        root->frame.context = &root->context;
        bide_stop_source_init(&root->stop);
        if (context->stop != NULL)
            bide_stop_source_attach(&root->stop, context->stop);
    }
#if BIDE_ROOTS
    bide_roots_add_(root);
#endif
}

void bide_root_post(bide_root *root)
{
    bide_scheduler *scheduler = root->frame.context->scheduler;
    scheduler->post(scheduler, &root->frame.awaiter, &root->frame.awaiter);
}

void bide_root_begin(bide_root *root, const bide_context *context, bide_awaiter *awaited,
                     void (*ended)(bide_root *root))
{
    bide_root_prepare(root, context, awaited, ended, false);
    bide_root_post(root);
}

void bide_root_run(bide_root *root, const bide_context *context, bide_awaiter *awaited,
                   void (*ended)(bide_root *root))
{
    bide_root_prepare(root, context, awaited, ended, false);
    bide_resume(&root->frame);
}

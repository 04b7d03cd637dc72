/*
 * Starting and destroying. A coroutine that is destroyed, its frame, and what it waits for are used by one
 * thread, the caller's.
 */
#include "bide/handle.h"

#include "inside.h"
#include "roots.h"

#include "bide/coroutine.h"
#include "bide/create.h"
#include "bide/stop.h"

void *bide_start(bide_frame *frame, const bide_point *body, const bide_context *context)
{
    const bide_coroutine_type *type = *body->code->type;
    frame->awaiter.ops = &body->ops;
    frame->awaiter.link = NULL;
    frame->awaiter.frame = NULL;
    frame->context = context;
    void *object = type->get_return_object != NULL ? type->get_return_object(frame) : frame;
    if (type->initial_suspend != NULL) {
        bide_frame *next = type->initial_suspend(frame);
        if (next != NULL)
            bide_resume(next);
    }
    return object;
}

bool bide_take_back_(bide_awaiter *awaiter)
{
    bide_scheduler *scheduler = awaiter->frame->context->scheduler;
    return scheduler->take_back != NULL && scheduler->take_back(scheduler, awaiter);
}

bool bide_withdraw_(bide_awaiter *awaiter)
{
    bool (*function)(bide_awaiter *) = awaiter->ops->withdraw;
    return function != NULL && (function(awaiter) || bide_take_back_(awaiter));
}

bool bide_withdraw_ended_(const bide_frame *ended)
{
    bide_awaiter *posted = bide_posted_back_(ended);
    return posted == NULL || bide_take_back_(posted);
}

/* The operation that the frame waits for, if it does, is to leave no trace. */
static void withdraw(bide_frame *frame)
{
    bide_awaiter *awaiter = frame->awaiter.link;
    if (bide_frame_point(frame)->state != BIDE_AT_AWAIT)
        return;
    if (awaiter == &bide_running_)
        bide_misused_("a running coroutine was destroyed", bide_frame_point(frame));
    else if (awaiter->ops->withdraw == NULL && bide_awaited_frame(awaiter) == NULL)
        bide_misused_("a coroutine was destroyed while it waits for what cannot be withdrawn",
                      bide_frame_point(frame));
    else {
        bide_stop_forget_(frame);
        if (!bide_withdraw_(awaiter))
            bide_misused_("a coroutine was destroyed that is about to be resumed",
                          bide_frame_point(frame));
    }
}

/* It waits for nothing any more. */
static void end(bide_frame *frame)
{
    const bide_point *point = bide_frame_point(frame);
    const bide_coroutine_code *code = point->code;
    if (point->state != BIDE_AT_START && code->type != NULL) {
        code->step(frame, BIDE_DESTROY_); /* (returns NULL: nobody's continuation runs) */
        return;
    }
    if (code == &bide_root_code_) {
        bide_root *root = bide_container_of(frame, bide_root, frame);
        if (point->state == BIDE_AT_START) { /* it is in its scheduler's queue */
            if (!bide_take_back_(&frame->awaiter))
                bide_misused_("a coroutine was destroyed that is about to begin",
                              bide_frame_point(frame));
            bide_abandon_(root->awaited);
        }
        bide_root_forget_(root);
    }
    frame->awaiter.ops = code->finished != NULL ? &code->finished->ops : &bide_point_finished.ops;
    frame->error = -ECANCELED;
}

/* The coroutine that a suspended one awaits, if it is one, and has not ended. */
static bide_frame *child_of(bide_frame *frame)
{
    if (bide_frame_point(frame)->state != BIDE_AT_AWAIT)
        return NULL;
    bide_frame *child = bide_awaited_frame(frame->awaiter.link);
    return child != NULL && !bide_done(child) ? child : NULL;
}

/* In a loop, for coroutines may await each other to any depth. */
static void destroy(bide_frame *frame)
{
    bide_frame *innermost = frame;
    for (bide_frame *child; (child = child_of(innermost)) != NULL;)
        innermost = child;
    withdraw(innermost);
    while (innermost != frame) {
        bide_frame *parent = innermost->awaiter.frame;
        end(innermost);
        bide_awaiter_forget_(parent->awaiter.link);
        innermost = parent;
    }
    end(frame);
}

void bide_destroy(bide_frame *frame)
{
    if (!bide_done(frame))
        bide_run_after_(destroy, frame);
}

bool bide_frame_withdraw_(bide_awaiter *awaiter)
{
    bide_frame *frame = (bide_frame *)(void *)awaiter;
    if (bide_done(frame))
        return bide_withdraw_ended_(frame);
    bide_destroy(frame);
    return true;
}

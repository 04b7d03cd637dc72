/* What the files of this floor ask of each other. */
#ifndef BIDE_INSIDE_H
#define BIDE_INSIDE_H

#include "bide/extend/root.h"
#include "bide/extend/wrapper.h"

/* Says that a rule was broken, with the coroutine that stands at `point`. */
void bide_misused_(const char *what, const bide_point *point);

/*
 * The same of what a suspended frame awaits: names the body that awaits it, if there is one, and
 * what stands at `about`, if that is not NULL.
 */
void bide_misused_by_(const char *what, const bide_frame *frame, const bide_point *about);

/* The name of the code that stands at a point. */
BIDE_INLINE const char *bide_point_name_(const bide_point *point)
{
    return point->code != NULL ? point->code->name : "(ended)";
}

/* Is it of a coroutine that a user has written? */
BIDE_INLINE bool bide_point_is_users_(const bide_point *point)
{
    return point->code != NULL && point->code->type != NULL && (*point->code->type)->name != NULL;
}

/*
 * The frame that awaits `frame`; NULL if none does. While a frame is posted to begin it is its own
 * continuation, so that what resumes an ended operation's frame begins it. It stays so if no frame
 * awaits it.
 */
BIDE_INLINE bide_frame *bide_continuation_(const bide_frame *frame)
{
    return frame->awaiter.frame != frame ? frame->awaiter.frame : NULL;
}

/*
 * Calls function(frame), then runs what it has woken inline; inside a coroutine that is left to its
 * loop.
 */
void bide_run_after_(void (*function)(bide_frame *frame), bide_frame *frame);

/*
 * Inside a step: resumes `frame`, and what it transfers to, until that suspends. What is woken
 * inline is left to the resume loop that runs the step.
 */
void bide_run_on_(bide_frame *frame);

/*
 * Takes an operation that was posted back out of the queue of a scheduler; of the one of the frame
 * that is to go on.
 */
bool bide_take_back_from_(bide_scheduler *scheduler, bide_awaiter *awaiter);
bool bide_take_back_(bide_awaiter *awaiter);

/*
 * Runs what has been woken inline on this thread and waits for what runs here to suspend; for a
 * thread that is about to block. False: there was nothing.
 */
bool bide_run_queued_(void);

/*
 * Runs what a chain holds, and what is woken inline by that, on this thread, at once. Meanwhile it
 * is in a queue, as what was posted is.
 */
void bide_run_chain_(const bide_awaiter_chain *chain);

/*
 * The coroutine that runs behind what a suspended frame waits for, also behind wrappers; NULL if
 * none does.
 */
bide_frame *bide_awaited_coroutine_(const bide_frame *frame);

/*
 * What a thread's budget is refilled to, less 1. Tests write it, before other threads begin.
 */
extern int32_t bide_budget_full_;

/* bide_resume, without a new budget where it begins a turn: the caller has set one. */
void bide_resume_with_what_is_left_(bide_frame *frame);

/* Posts an operation that has ended, behind what is ready there: bide_scheduler.post_last. */
BIDE_INLINE void bide_post_last_(bide_scheduler *scheduler, bide_awaiter *awaiter)
{
    awaiter->link = NULL;
    if (scheduler->post_last != NULL)
        scheduler->post_last(scheduler, awaiter);
    else
        scheduler->post(scheduler, awaiter, awaiter);
}

/* The table of bide_owned (create.h). */
extern const bide_wrapper_ops bide_owned_ops_;

/*
 * The type of the frame that stands between a coroutine that has moved and its continuation, and
 * posts that one; when it has, it stands at a point of this number.
 */
extern const bide_coroutine_type bide_moves_back_;
enum { BIDE_POSTED_BACK_ = 1 };

#endif

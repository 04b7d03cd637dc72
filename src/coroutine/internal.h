/*
 * Functions that the files of the coroutine floor share, and the schedulers above them. Not for
 * programs. Each says on which thread it may be called; otherwise the frame's own.
 */
#ifndef BIDE_INSIDE_H
#define BIDE_INSIDE_H

#include "bide/extend/choice.h"
#include "bide/extend/root.h"
#include "bide/extend/wrapper.h"

/* Reports misuse by the coroutine at `point`. */
void bide_misused_(const char *what, const bide_point *point);

/*
 * From `frame`, which is suspended, outwards: the point of the first coroutine that a user has written;
 * otherwise of the first body of the library's; NULL if there is none.
 */
const bide_point *bide_body_of_(const bide_frame *frame);

/*
 * Reports misuse by a suspended frame: names the body that awaits it, if there is one, and the
 * coroutine at `about`, if that is not NULL.
 */
void bide_misused_by_(const char *what, const bide_frame *frame, const bide_point *about);

/*
 * Reports misuse in several words, the last of which is NULL: at a place of the source, as bide_misuse_
 * does; or by the body that awaits a suspended frame, itself or others in between, and by `function` if
 * there is none, or `frame` is NULL.
 */
BIDE_COLD BIDE_NO_RETURN void bide_misuse_in_words_(const char *const *words, const char *function,
                                                    const char *file, unsigned line);
void bide_misused_with_(const char *const *words, const bide_frame *frame, const char *function);

/* The same by the coroutine that awaits `running`, a coroutine of the library's. */
void bide_misused_behind_(const char *what, const bide_frame *running);

/* The name of the code of a point. */
BIDE_INLINE const char *bide_point_name_(const bide_point *point)
{
    return point->code != NULL ? point->code->name : "(ended)";
}

/* Whether it is a point of a coroutine that a user has written. */
BIDE_INLINE bool bide_point_is_users_(const bide_point *point)
{
    return point->code != NULL && point->code->type != NULL && (*point->code->type)->name != NULL;
}

/*
 * In debug builds reports that an operation (bide_choice_refused_) cannot be a case of the select that
 * `awaiting` awaits, or NULL.
 */
void bide_choice_report_refused_(const bide_awaiter *refused, const bide_frame *awaiting,
                                 const char *function);

/*
 * The frame that awaits `frame`; NULL if none does. While a frame is posted to begin it is its own
 * continuation, so that resuming an ended operation's frame begins it. It stays so if no frame
 * awaits it.
 */
BIDE_INLINE bide_frame *bide_continuation_(const bide_frame *frame)
{
    return frame->awaiter.frame != frame ? frame->awaiter.frame : NULL;
}

/*
 * Calls function(frame), then runs the coroutines that it has woken inline. Inside a coroutine, that
 * one's resume loop runs them.
 */
void bide_run_after_(void (*function)(bide_frame *frame), bide_frame *frame);

/*
 * Inside a step: resumes `frame`, and the frames that it transfers to, until one suspends. The resume
 * loop that runs the step also runs the coroutines that are woken inline.
 */
void bide_run_on_(bide_frame *frame);

/*
 * Whether a time of the scheduler's clock can only be a duration that was passed as a deadline: it lies far
 * before the process began. Never where that is not known (0), and not for virtual time. Times below a
 * microsecond stand for one that has passed. Any thread.
 */
BIDE_INLINE bool bide_is_duration_(const bide_scheduler *scheduler, uint64_t time)
{
    return scheduler->real_time && time >= BIDE_MICROSECONDS(1) && time < bide_clock_began_ / 2;
}
#define BIDE_IS_DURATION_                                                             \
    "a deadline lies before the process began: is it a duration (bide_with_timeout, " \
    "bide_sleep_for)?"

/*
 * Takes a posted operation back out of a scheduler's queue; the second: of the scheduler of the frame
 * that it would resume.
 */
bool bide_take_back_from_(bide_scheduler *scheduler, bide_awaiter *awaiter);
bool bide_take_back_(bide_awaiter *awaiter);

/*
 * For a thread that is about to block: runs the coroutines that were woken inline on it, and that
 * wait for its running coroutine to suspend. Returns false if there were none.
 */
bool bide_run_queued_(void);

/*
 * Runs the operations of a chain, and the coroutines that they wake inline, on this thread, at once.
 * In the meantime they are in a queue, as posted ones are.
 */
void bide_run_chain_(const bide_awaiter_chain *chain);

/*
 * The coroutine for which a suspended frame waits, also behind wrappers; NULL if there is none.
 */
bide_frame *bide_awaited_coroutine_(const bide_frame *frame);

/*
 * The full budget of a thread, less 1. Tests write it, before other threads begin.
 */
extern int32_t bide_budget_full_;

/* bide_resume, without a new budget where it begins a turn: the caller has set one. */
void bide_resume_with_what_is_left_(bide_frame *frame);

/*
 * bide_frame_await_by_ at the begin of a turn that is a give-way of the coroutine behind `frame`: an operation
 * that can be cancelled is not begun if that was asked to stop.
 */
bide_frame *bide_frame_await_in_turn_(bide_frame *frame, bide_awaiter *awaiter,
                                      const bide_frame *by);

/* Posts an ended operation behind the ready ones: bide_scheduler.post_last. */
BIDE_INLINE void bide_post_last_(bide_scheduler *scheduler, bide_awaiter *awaiter)
{
    awaiter->link = NULL;
    if (scheduler->post_last != NULL)
        scheduler->post_last(scheduler, awaiter);
    else
        scheduler->post(scheduler, awaiter, awaiter);
}

/*
 * For the `attempt` of the library's wrappers that have a coroutine: bide_wrapper_attempt, if that
 * coroutine may have awaited `wait` before. If it returns -EAGAIN the wrapper ends with a status of its
 * own, or returns bide_wrapper_wait_begin_, which makes `wait` the wait, by the table `ops`.
 * wait->is_used was false before the first call.
 */
BIDE_INLINE int bide_wrapper_attempt_by_(bide_awaiter *wrapper, bide_awaiter *inner,
                                         bide_choice *choice, bide_wrapper_wait_ *wait)
{
    if (choice->again)
        choice->ended = wait->status;
    int status = bide_wrapper_attempt(wrapper, inner, choice);
    if (choice->kept)
        bide_wrapper_discard(&wait->inner);
    choice->kept = false;
    return status;
}

BIDE_INLINE int bide_wrapper_wait_begin_(bide_wrapper_wait_ *wait, const bide_awaiter_ops *ops,
                                         bide_choice *choice)
{
    wait->awaiter.ops = ops;
    wait->inner = choice->wait;
    wait->is_used = true;
    wait->status = -ECANCELED; /* if it is cancelled before it begins */
    choice->wait = &wait->awaiter;
    return -EAGAIN;
}

/* What the coroutine of such a wrapper awaits. */
BIDE_INLINE bide_awaiter **bide_wrapper_awaited_(bide_awaiter **inner, bide_wrapper_wait_ *wait)
{
    return wait->is_used ? &wait->inner : inner;
}

/* The table of bide_owned (create.h). */
extern const bide_wrapper_ops bide_owned_ops_;

/*
 * The type of the frame between a coroutine that has moved and its continuation, which it posts. After
 * that it is at a point of this number.
 */
extern const bide_coroutine_type bide_moves_back_;

/* The type of a frame that only requests a stop: a thread that keeps time steps it at a give-way. */
extern const bide_coroutine_type bide_asks_to_stop_;

/* A coroutine of the inline scheduler gives way: a thread that keeps time looks at the clock. */
void bide_yield_inline_(void);

enum { BIDE_POSTED_BACK_ = 1 };

#endif

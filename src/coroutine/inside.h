/* What the files of this floor ask of each other. */
#ifndef BIDE_INSIDE_H
#define BIDE_INSIDE_H

#include "bide/root.h"

/* Says that a rule was broken, with the coroutine that stands at `point`. */
void bide_misused_(const char *what, const bide_point *point);

/* What an awaiter of bide_owned has; the frame stands behind its bide_owner. */
extern const bide_awaiter_ops bide_owned_ops_;

/* The coroutine in it has ended, was destroyed, or is never started: frees it if it is owned. */
void bide_awaiter_forget_(bide_awaiter *awaiter);

/* A root has ended, or is destroyed. */
void bide_root_forget_(bide_root *root);

/* It will never be started: frees the frame that it owns, if it does. */
void bide_abandon_(bide_awaiter *awaiter);

/* `ended` is a coroutine that has ended: by what its continuation has been posted; NULL if it has not been. */
bide_awaiter *bide_posted_back_(const bide_frame *ended);

/* Calls function(frame), then runs what it has woken inline; inside a coroutine that is left to its loop. */
void bide_run_after_(void (*function)(bide_frame *frame), bide_frame *frame);

/*
 * Runs what has been woken inline on this thread and waits for what runs here to suspend; for a thread that is about to
 * block. False: there was nothing.
 */
bool bide_run_queued_(void);

/* Takes an operation that was posted back out of the queue that its frame's scheduler has. */
bool bide_take_back_(bide_awaiter *awaiter);

/* Ends an operation that a destroyed coroutine waits for, wherever it is. */
bool bide_withdraw_(bide_awaiter *awaiter);

#endif

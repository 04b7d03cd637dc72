/* What the files of this floor ask of each other. */
#ifndef BIDE_INSIDE_H
#define BIDE_INSIDE_H

#include "bide/frame.h"

/* From an awaiter to the coroutine that runs in it: itself, or the one that it owns. NULL if there is none. */
bide_frame *bide_awaited_frame_(bide_awaiter *awaiter);

/* What an awaiter of bide_owned has; the frame stands behind its bide_owner. */
extern const bide_awaiter_ops bide_owned_ops_;

/* The coroutine in it was destroyed: frees it if it is owned. */
void bide_awaiter_forget_(bide_awaiter *awaiter);

/* Steps a frame, the first time with `depth`, and then all that is handed over. */
void bide_frame_run_(bide_frame *frame, unsigned depth);

/* Takes an operation that was posted back out of the queue that its frame's scheduler has. */
bool bide_take_back_(bide_awaiter *awaiter);

/* Ends an operation that a destroyed coroutine waits for, wherever it is. */
bool bide_withdraw_(bide_awaiter *awaiter);

#endif

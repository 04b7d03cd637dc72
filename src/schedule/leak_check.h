/* What is left of a scheduler's when that ends. */
#ifndef BIDE_SCHEDULE_LEFT_H
#define BIDE_SCHEDULE_LEFT_H

#include "bide/extend/timer.h"

/*
 * A scheduler ends: is one of its timers set, or was something begun on it that has not ended? Then
 * that would use it later: misuse, with the name of the coroutine and where it stands. On a thread
 * that sees what its coroutines did, while none of them runs.
 */
void bide_tell_what_is_left_(const bide_scheduler *scheduler, const bide_timers *timers,
                             const char *timer_left, const char *task_left);

#endif

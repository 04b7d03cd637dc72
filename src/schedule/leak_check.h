/* A check for waiters that a scheduler's destruction would leave behind. Floor: schedule. */
#ifndef BIDE_SCHEDULE_LEFT_H
#define BIDE_SCHEDULE_LEFT_H

#include "bide/extend/timer.h"

/*
 * Reports misuse if a timer of the scheduler is set, in `timers` (NULL: none is), or a coroutine that was started on it has not
 * ended: either would use the scheduler later. The report names the coroutine and its place; or the
 * operation, if it is none, and the caller's `file` and `line`. Called
 * when the scheduler is destroyed, by a thread that sees what its coroutines did, while none runs.
 */
void bide_report_leaked_waiters_(const bide_scheduler *scheduler, const bide_timers *timers,
                                 const char *timer_left, const char *task_left, const char *file,
                                 unsigned line);

#endif

/*
 * The wheel's timers, some at a time, for schedulers that run those that they have taken before they take more.
 * Floor: coroutine.
 */
#ifndef BIDE_COROUTINE_TIMERS_SOME_H
#define BIDE_COROUTINE_TIMERS_SOME_H

#include "bide/extend/timer.h"

/*
 * As bide_timers_take_due, but takes no more once it has taken `few`; it may take more than that, because a slot that is
 * due is taken as a whole. Those that are left come after the ones that it has taken. Returns how many those are; if
 * they are fewer than `few`, none is left that is due.
 */
size_t bide_timers_take_some_(bide_timers *timers, uint64_t now, bide_awaiter_chain *due,
                              size_t few);

#endif

/*
 * Timers: operations that end when a time has come, and the heap in which a scheduler keeps them.
 * Floor: coroutine.
 *
 *     bide_timers_insert(&timers, &sleep->timer);             // the scheduler's set_timer
 *     bide_timers_take_due(&timers, bide_platform.now(), &ready);
 *
 *     in no heap --insert--> in the heap --remove, or take_due--> in no heap
 *
 * Times are nanoseconds of bide_platform.now(). Coroutines wait by what is made of it (sleep.h,
 * deadline.h). This is for authors of such operations, which give their timer to
 * bide_scheduler.set_timer, and for authors of schedulers.
 *
 * One thread at a time has a heap and all that is in it; a scheduler sees to that. A timer is the
 * waiter's memory, so the heap allocates nothing.
 *
 * Why it is right: it is a pairing heap. Each timer has a list of those that come after it, itself
 * heaps, so to insert is one comparison. Times that are equal come in the order in which they were
 * inserted, by a number that each timer gets.
 *
 * Source: Fredman, Sedgewick, Sleator, Tarjan, "The pairing heap: a new form of self-adjusting
 * heap", 1986.
 */
#ifndef BIDE_EXTEND_TIMER_H
#define BIDE_EXTEND_TIMER_H

#include "bide/frame.h"

BIDE_EXTERN_C_BEGIN

struct bide_timer {
    bide_awaiter awaiter; /* what is posted when the time has come; its link is the next sibling */
    uint64_t time;        /* constant while it is set; BIDE_FOREVER never comes */
    uint64_t number;      /* of its insertion */
    bide_awaiter *child;  /* the first of those that come after it */
    bide_awaiter **place; /* the pointer that leads here; NULL: in no heap */
};

typedef struct bide_timers {
    bide_awaiter *first; /* the earliest timer, or NULL */
    uint64_t inserted;
} bide_timers;

/*
 * Makes a timer for `time`, in no heap. The awaiter's ops and frame are for the operation that it
 * is part of. The memory may go while it is in no heap.
 * Threads: one at a time. Progress: wait-free.
 */
BIDE_INLINE void bide_timer_init(bide_timer *timer, uint64_t time)
{
    timer->time = time;
    timer->place = NULL;
}

/*
 * Makes a heap without timers. It stays where it is while there are any.
 * Threads: one at a time. Progress: wait-free.
 */
BIDE_INLINE void bide_timers_init(bide_timers *timers)
{
    timers->first = NULL;
    timers->inserted = 0;
}

/*
 * When the earliest timer's time comes; BIDE_FOREVER if there is none.
 * Threads: one at a time. Progress: wait-free.
 */
BIDE_INLINE uint64_t bide_timers_next(const bide_timers *timers)
{
    return timers->first != NULL ? bide_container_of(timers->first, bide_timer, awaiter)->time
                                 : BIDE_FOREVER;
}

/*
 * Inserts a timer that is in no heap. Returns whether it is the earliest now. Constant time.
 * Threads: one at a time. Progress: wait-free.
 */
bool bide_timers_insert(bide_timers *timers, bide_timer *timer);

/*
 * Removes `timer`; false, and nothing is done, if it is in no heap. Amortised logarithmic time.
 * Threads: one at a time. Progress: wait-free.
 */
bool bide_timers_remove(bide_timers *timers, bide_timer *timer);

/*
 * Removes those whose time is `now` or earlier, and appends them to `due`, the earliest first.
 * Amortised logarithmic time for each.
 * Threads: one at a time. Progress: wait-free.
 */
void bide_timers_take_due(bide_timers *timers, uint64_t now, bide_awaiter_chain *due);

BIDE_EXTERN_C_END

#endif

/*
 * Timers: operations that end at a given time, and the structures in which a scheduler keeps them.
 * Floor: coroutine.
 *
 *     bide_timers timers;                                     // in the scheduler
 *     bide_timers_init(&timers);
 *     bide_timers_insert(&timers, &sleep->timer);             // its set_timer
 *     bide_timers_remove(&timers, &sleep->timer);             // its clear_timer
 *     bide_timers_take_due(&timers, bide_platform.now(), &ready);
 *
 *     set nowhere --insert--> set --remove, or take_due--> set nowhere
 *
 * Times are nanoseconds of bide_platform.now(). Coroutines wait by sleep.h and deadline.h. This is for
 * authors of such operations, which pass their timer to bide_scheduler.set_timer, and for authors of
 * schedulers.
 *
 * One thread at a time uses the timers of a scheduler; the scheduler ensures that. A timer is the
 * waiter's memory, so nothing here allocates. There are two structures, with the same functions. Both
 * are exact: nothing is rounded, and equal times keep the order in which they were inserted.
 *
 *     bide_timers       a wheel of lists of heaps: some 4 KB. Inserting or removing a timer takes as
 *                       long beside a million others as beside ten.
 *     bide_timer_heap   one heap: two words and a count, for firmware. The more timers, the longer a
 *                       removal takes.
 *
 * Why it is correct: src/coroutine/timers.c and src/coroutine/timer_tree.h.
 */
#ifndef BIDE_EXTEND_TIMER_H
#define BIDE_EXTEND_TIMER_H

#include "bide/frame.h"
#include "bide/detail/tuning.h"

BIDE_EXTERN_C_BEGIN

struct bide_timer {
    bide_awaiter awaiter; /* what is posted when the time has come; its link is the next sibling */
    uint64_t time;        /* constant while it is set; BIDE_FOREVER never comes */
    uint64_t number;      /* of its insertion, and of the wheel if there are several */
    bide_awaiter *child;  /* the first of the later ones; or a hint, which is odd */
    bide_awaiter **place; /* the pointer that leads here; NULL: set nowhere */
};

/*
 * Makes a timer for `time`, set nowhere. The awaiter's ops and frame are for the operation that it
 * is part of. The memory may go while it is set nowhere.
 * Threads: one at a time. Progress: wait-free.
 */
BIDE_INLINE void bide_timer_init(bide_timer *timer, uint64_t time)
{
    timer->time = time;
    timer->number = 0;
    timer->place = NULL;
}

/* When the timer of this awaiter comes; BIDE_FOREVER of NULL. */
BIDE_INLINE uint64_t bide_timer_time_(const bide_awaiter *awaiter)
{
    return awaiter != NULL ? bide_container_of(awaiter, bide_timer, awaiter)->time : BIDE_FOREVER;
}

/* ---- Many: a wheel ---- */

enum {
    BIDE_TIMERS_SLOTS_ = 1 << BIDE_TIMERS_DIGIT_,
    BIDE_TIMERS_LEVELS_ = (64 - BIDE_TIMERS_FINEST_ + BIDE_TIMERS_DIGIT_ - 1) / BIDE_TIMERS_DIGIT_,
};

typedef struct bide_timers {
    bide_awaiter *first; /* the earliest timer, or NULL */
    uint64_t inserted;
    uint64_t base;   /* the latest time at which it was asked what is due */
    uint32_t levels; /* a bit for each level: is anything in it? */
    /* Of each level, a bit for each slot: is anything in it, and may another than its front be the
     * earliest of it? The second means nothing where the first is not set, nor does the slot. */
    uint64_t slots_used[BIDE_TIMERS_LEVELS_];
    uint64_t slots_mixed[BIDE_TIMERS_LEVELS_];
    bide_awaiter *slots[BIDE_TIMERS_LEVELS_][BIDE_TIMERS_SLOTS_]; /* lists of heaps */
} bide_timers;

/*
 * Makes a wheel without timers. It stays where it is while there are any.
 * Threads: one at a time. Progress: wait-free.
 */
BIDE_INLINE void bide_timers_init(bide_timers *timers)
{
    timers->first = NULL;
    timers->inserted = 0;
    timers->base = 0;
    timers->levels = 0;
    for (unsigned level = 0; level < BIDE_TIMERS_LEVELS_; level++)
        timers->slots_used[level] = timers->slots_mixed[level] = 0;
}

/*
 * When the earliest timer's time comes; BIDE_FOREVER if there is none.
 * Threads: one at a time. Progress: wait-free.
 */
BIDE_INLINE uint64_t bide_timers_next(const bide_timers *timers)
{
    return bide_timer_time_(timers->first);
}

/*
 * Inserts a timer that is set nowhere. Returns whether it is the earliest now. Constant time.
 * Threads: one at a time. Progress: wait-free.
 */
bool bide_timers_insert(bide_timers *timers, bide_timer *timer);

/*
 * Removes `timer`, which is set here or nowhere; false, and nothing is done, if nowhere. Amortised
 * time that is logarithmic in those of the same slot; constant while the slot's turn has not come.
 * Threads: one at a time. Progress: wait-free.
 */
bool bide_timers_remove(bide_timers *timers, bide_timer *timer);

/*
 * Removes those whose time is `now` or earlier, and appends them to `due`, the earliest first.
 * Amortised time for each: once for each level that it has been in, and logarithmic in those of a
 * finest slot. The wheel learns the time from this: the scheduler calls it when the earliest may be
 * due, and may at any other time.
 * Threads: one at a time. Progress: wait-free.
 */
void bide_timers_take_due(bide_timers *timers, uint64_t now, bide_awaiter_chain *due);

/* ---- A few: a heap ---- */

typedef struct bide_timer_heap {
    bide_awaiter *first; /* the earliest timer, or NULL */
    uint64_t inserted;
} bide_timer_heap;

/*
 * Makes a heap without timers. It stays where it is while there are any.
 * Threads: one at a time. Progress: wait-free.
 */
BIDE_INLINE void bide_timer_heap_init(bide_timer_heap *heap)
{
    heap->first = NULL;
    heap->inserted = 0;
}

/*
 * As bide_timers_next.
 * Threads: one at a time. Progress: wait-free.
 */
BIDE_INLINE uint64_t bide_timer_heap_next(const bide_timer_heap *heap)
{
    return bide_timer_time_(heap->first);
}

/*
 * As bide_timers_insert. Constant time.
 * Threads: one at a time. Progress: wait-free.
 */
bool bide_timer_heap_insert(bide_timer_heap *heap, bide_timer *timer);

/*
 * As bide_timers_remove. Amortised logarithmic time.
 * Threads: one at a time. Progress: wait-free.
 */
bool bide_timer_heap_remove(bide_timer_heap *heap, bide_timer *timer);

/*
 * As bide_timers_take_due. Amortised logarithmic time for each.
 * Threads: one at a time. Progress: wait-free.
 */
void bide_timer_heap_take_due(bide_timer_heap *heap, uint64_t now, bide_awaiter_chain *due);

BIDE_EXTERN_C_END

#endif

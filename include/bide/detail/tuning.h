/*
 * Tuning constants: how long to spin, to pause, or to stay biased. They were found by measuring, and
 * affect speed only. Each comment names the benchmark that chose the number: `make bench BENCH=...`.
 * Under the model checker most are as small as possible, because looking again shows nothing new
 * there. Part of the headers that use them. Floor: base.
 */
#ifndef BIDE_DETAIL_TUNING_H
#define BIDE_DETAIL_TUNING_H

#include "bide/compiler.h"

/* ---- Looking, before a coroutine suspends or a thread sleeps ---- */

/*
 * How often a scheduler's coroutines look at what they wait for; it adapts between these. `event`,
 * two threads.
 */
enum {
    BIDE_PATIENCE_MIN = BIDE_CHECK ? 1 : 16,
    BIDE_PATIENCE_MAX = BIDE_CHECK ? 1 : 1024,
};

/*
 * How often a run loop looks for work before its thread sleeps. A look, with its pause, costs some
 * tens of nanoseconds; a sleep and a wake across cores cost some tens of microseconds. So a
 * thousand looks cost no more than the sleep that they may save. A loop that found nothing looks
 * half as long the next time. `event`, `idle`.
 */
enum {
    BIDE_LOOP_SPINS_MIN_ = BIDE_CHECK ? 1 : 32,
    BIDE_LOOP_SPINS_MAX_ = BIDE_CHECK ? 2 : 2048,
};

/*
 * A thread that looks least looks for as long as the longest once after so many sleeps: at first, and at most, since
 * each such trial that is in vain doubles the number. `event`.
 */
enum { BIDE_SPIN_SLEEPS_TO_TRY_ = 16, BIDE_SPIN_SLEEPS_TO_TRY_MAX_ = 4096 };

/* The same of a loop with events, after another thread has woken it. */
enum { BIDE_LOOP_EVENTS_SPINS_ = 256 };

/* The same of a pool's thread, after a first look. `event`, `idle`, `pool`, and a ticker on an idle pool. */
enum { BIDE_POOL_SPINS_MIN_ = BIDE_CHECK ? 0 : 32, BIDE_POOL_SPINS_MAX_ = BIDE_CHECK ? 0 : 1024 };

/*
 * Of these, at how many rings of other workers each looks, so that they take no longer if there are many
 * workers; and in how many it reads the clock once, if a timer is set. A ticker on an idle pool.
 */
enum { BIDE_POOL_SPIN_VICTIMS_ = 4, BIDE_POOL_SPINS_PER_CLOCK_ = 16 };

/*
 * How many coroutines a run loop resumes before it returns to the foreign loop that it is driven
 * by: so many that the system calls in between cost little beside them.
 */
enum { BIDE_LOOP_TURN_ = 1024 };

/*
 * How many coroutines a strand resumes before it goes to the end of its scheduler's queue: so many
 * that the post which that costs, a few hundred nanoseconds on a pool, is little beside them.
 */
enum { BIDE_STRAND_TURN_ = BIDE_CHECK ? 2 : 64 };

/*
 * How many halves of joins wait on a worker's deque, a power of two; and how often a joiner looks at
 * a half that was stolen before it sleeps. `fork`.
 */
enum { BIDE_JOIN_SLOTS_ = BIDE_CHECK ? 2 : 256, BIDE_JOIN_SPINS_ = BIDE_CHECK ? 0 : 1024 };

/*
 * The first segment of a stack of frames of forked coroutines, in bytes; the largest, unless one frame
 * is larger; and how many stacks without frames a worker keeps. `fork`.
 */
enum {
    BIDE_FORK_SEGMENT_ = BIDE_CHECK ? 1024 : 65536,
    BIDE_FORK_SEGMENT_MAX_ = 1 << 20,
    BIDE_FORK_STACKS_ = BIDE_CHECK ? 1 : 16
};

/*
 * A coroutine that was handed over to the worker that runs is another's to take if that one has not
 * suspended meanwhile: for so many pauses, where a worker searches; for so many nanoseconds, where
 * all others sleep. `channel`, of a pool.
 */
enum { BIDE_POOL_STILL_PAUSES_ = BIDE_CHECK ? 1 : 64, BIDE_POOL_WATCH_ = 1000000 };

/*
 * How often a plain thread looks whether its wait has ended before it sleeps; it adapts between
 * these, and one sleep in so many is a trial of the most. `event`, two threads; `channel`,
 * `_blocking`.
 */
enum { BIDE_SYNC_SPINS_MIN_ = 16, BIDE_SYNC_SPINS_MAX_ = 2048, BIDE_SYNC_SLEEPS_TO_TRY_ = 256 };

/*
 * How often a thread looks at a short lock before it yields; a look costs some tens of nanoseconds.
 * `crowd`.
 */
enum { BIDE_SHORT_SPINS_ = BIDE_CHECK ? 1 : 64 };

/*
 * How many pauses of the processor one spin of bide_spin_until is: of some 40 cycles each on x86.
 * `ring`, spinning.
 */
#define BIDE_SPIN_PAUSES 64

/* ---- Timers ---- */

/*
 * The wheel of timers: how many of a time's lowest bits choose no slot, so that a finest slot is
 * 2^FINEST nanoseconds (65 us); and how many bits a digit has, which chooses among a level's slots.
 * Finer slots, or smaller digits, have a timer moved through more levels before it is due; coarser
 * slots have larger heaps. `timer`. It is part of the layout of bide_timers, so it is the same in
 * the library and in a program.
 */
enum { BIDE_TIMERS_FINEST_ = 16, BIDE_TIMERS_DIGIT_ = 6 };

/*
 * How many timers that are due a run loop queues at once, at least: those of a finest slot of the wheel that is due are
 * taken together. They are resumed before the next are taken, while they are in the cache. `timer`.
 */
enum { BIDE_LOOP_TIMERS_ = BIDE_CHECK ? 1 : 256 };

/* ---- Looks ---- */

/*
 * A scheduler that has work looks at the clock, its timers, events and what other threads have posted after this time,
 * in nanoseconds, or after a number of turns if that comes earlier (look_pace.h). `latency`.
 */
enum { BIDE_LOOK_TIME_ = 200000 };

/* ---- Giving way ---- */

/*
 * How many operations a coroutine's thread finds ready, one after another, before the coroutine lets
 * others run (frame.h, bide_yield_budget_), if they take little time: 1 to 10 ns each. Giving way costs
 * more than the 30 ns of a post and a turn: a consumer that has caught up on the way to its next turn
 * suspends, and on a ring it pays a heavy fence for that, of 2 us. A ring on one thread, an element at a
 * time, did 307 million a second with none, 95 with 256, 279 with 4096, and 308 with 16384. 0, as on bare
 * metal: never, and no code. `await`, `channel`, `ring`.
 */
#ifndef BIDE_BUDGET
#define BIDE_BUDGET (__STDC_HOSTED__ && !BIDE_CHECK ? 16384 : 0)
#endif

/*
 * The time, in nanoseconds, for which a coroutine finds operations ready before it lets others run; and after how many
 * operations, of a turn's begin and of a portion, the clock is read at the latest (frame.c). `latency`.
 */
enum { BIDE_BUDGET_TIME_ = 200000, BIDE_BUDGET_FIRST_ = 512 };
#define BIDE_BUDGET_PORTION_ 1024

/* The share of an operation on a descriptor: a system call takes as long as so many. */
enum { BIDE_BUDGET_OF_IO_ = 256 };

/* ---- Being watched: which side pays for the fence ---- */

/*
 * How often in a row an announcer, or a notifier, may pay a full fence for nothing before waiters
 * pay a heavy one again: about what a heavy fence costs. `barrier`, `channel`.
 */
enum {
    BIDE_LIST_UNNEEDED_MAX_ = BIDE_CHECK ? 2 : 64,
    BIDE_EVENT_COUNT_UNNEEDED_MAX_ = BIDE_CHECK ? 1 : 24,
};

/* ---- Pausing, when another thread was faster ---- */

/*
 * After an exchange that was lost: a microsecond, twice as long each time, some ten at most.
 * `queue`, 2/2.
 */
enum { BIDE_MPMC_RING_PAUSES_ = 64, BIDE_MPMC_RING_MAX_PAUSES_ = 1024 };
enum { BIDE_SEGMENT_PAUSES_ = 128, BIDE_SEGMENT_MAX_PAUSES_ = 1024 };

/*
 * How many exchanges that were not lost show that a producer of a segment queue is alone. `queue`,
 * 2/2.
 */
enum { BIDE_SEGMENT_CROWDED_ = 1000 };

/*
 * How often a consumer of a segment queue looks at a cell that its producer has not filled, before
 * it gives it up.
 */
enum { BIDE_SEGMENT_SPINS_ = BIDE_CHECK ? 1 : 200 };

/*
 * When a consumer of a segment queue pauses, so that producers have the lines alone
 * (segment_queue.md, 8). `queue`, 1/1.
 *     FEW              so many cells, or fewer, are few to be found at a look: more than are in a
 *                      line or two, since the processor fetches lines in advance
 *     PATIENCE         how often consumers find few before one pauses
 *     FEW_PAUSES       how long it pauses
 *     PAYS             how many cells have to come meanwhile
 *     LONG_PATIENCE    how often they find few before one pauses again if they did not
 */
enum {
    BIDE_SEGMENT_FEW_ = 256,
    BIDE_SEGMENT_PATIENCE_ = 4,
    BIDE_SEGMENT_FEW_PAUSES_ = 128,
    BIDE_SEGMENT_PAYS_ = 32,
    BIDE_SEGMENT_LONG_PATIENCE_ = 1000,
};

#endif

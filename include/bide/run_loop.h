/*
 * A run loop: the scheduler of one thread. Floor: schedule.
 *
 *     bide_run_loop loop;
 *     bide_run_loop_init(&loop);
 *     status = bide_run_loop_wait(&loop, main_run(&frame));   // runs everything until it has ended
 *
 * Any thread may wake coroutines that belong to the loop. They run on the thread that runs it, in
 * the order in which they were woken: if one wake happened before another, in the sense of C11, its
 * coroutine runs first. Without work the loop looks for some for a while and then sleeps.
 *
 * A loop that has work looks at its timers and events once in 200 us and a turn, or 32 turns. "How late a look may
 * be" is below.
 *
 * A child of fork has a copy of each loop, as the fork found it. It may run the copy if the forking thread ran the
 * loop, or nobody; it may not if another thread did. Threads that belong to the parent wake nothing in it.
 *
 * How late a look may be. A turn is one resumption by the loop: it lasts until the coroutine suspends, and takes in
 * the coroutines that it awaits, and those of the inline scheduler that it wakes. These are the exceptions:
 *
 *     longer turns     If turns suddenly take longer than those before, one look comes after up to 32 of them.
 *     after a sleep    How long turns are is not known then: the first look comes after 4 of them.
 *     ready operations A turn in which all operations are ready ends after 200 us (stop.h). If they suddenly take
 *                      longer, it ends after up to 1,024 of them, or 4 operations on descriptors, that do.
 *     computing        Nothing ends a turn that computes, blocks, or awaits only coroutines that await nothing, or
 *                      one of a coroutine that was just asked to stop: it has 16384 operations, whatever they take.
 *     strands          A turn of a strand on the loop is up to 64 turns of its coroutines.
 *     events           A look leaves them out if the last one was less than 50 us before.
 *     many timers      Of timers that are due a look takes some 256, and the next takes more when these have run.
 *     run_ready        bide_run_loop_run_ready looks at timers when it begins, and when nothing is ready.
 *
 * A coroutine whose timer or event was found runs after the coroutines that were ready before it.
 *
 * Why it is correct: src/schedule/run_loop.c.
 */
#ifndef BIDE_RUN_LOOP_H
#define BIDE_RUN_LOOP_H

#include "bide/extend/timer.h"

#include "bide/detail/system_types.h"

BIDE_EXTERN_C_BEGIN

/* How often a thread looks for work before it sleeps (src/schedule/spin_pace.h). */
typedef struct bide_spin_pace_ {
    uint32_t spins;           /* looks before the next sleep; 0: never any */
    uint16_t sleeps_to_trial; /* sleeps until it looks for longest once, whatever `spins` is */
    uint16_t trial_interval;  /* ... from one such trial to the next */
} bide_spin_pace_;

typedef struct bide_run_loop {
    bide_scheduler scheduler;
    /* {&scheduler, NULL, NULL}. The user may add a stop source and a name before anything runs in
     * it, or copy it. */
    bide_context context;

    /* of the thread that runs the loop: what it has taken and is to resume, the oldest first */
    bide_awaiter_chain ready;
    bide_awaiter *passed; /* before `ready`, the nearest first: a queued coroutine was destroyed */
    bide_spin_pace_ pace; /* how long to look before it sleeps next time */
    bool may_spin;        /* may it look for a while before a coroutine suspends? */
    bool stopping;
    int fd;                                     /* for a foreign loop to poll; -1: none */
    const struct bide_run_loop_events_ *events; /* of the kernel (loop.h); NULL: none */
    struct bide_run_loop *outer; /* that this thread ran before, and continues afterwards */
    bide_frame stop_frame;
    bide_atomic(uint32_t) stop_posted;
    uint64_t deadline; /* when to look for timers that are due */
    uint64_t runs;     /* of a loop with events: resumptions */
    uint64_t longest;  /* of those, in nanoseconds, if they are timed */
    bool times_runs;
    uint32_t turns; /* resumptions until it looks at the clock, while there is something to run */
    uint32_t look_turns;    /* ... from one look to the next */
    uint64_t looked;        /* when it looked; 0: it was out of work since */
    uint64_t events_looked; /* when it looked at its events, without a sleep */
    uint64_t timers_after;  /* after how many `runs` it takes more of the timers that are due */
    bool timers_left;       /* whether there may be more */

    /* of the holder of the lock */
    bide_system_lock_ timers_lock;
    bide_timers timers;
    bool hint_posted;
    bide_frame hint; /* posted by another thread: there is an earlier timer */

    /* of all threads: EMPTY, PARKED, POLLED, or what was posted, newest first */
    BIDE_ALIGNAS(BIDE_CACHE_LINE) bide_atomic(uintptr_t) posted;
} bide_run_loop;

/*
 * Makes a loop with nothing to run. A loop is aligned to BIDE_CACHE_LINE, and so is what contains
 * one: take allocated memory from aligned_alloc. Nothing needs to be freed. The memory may be freed when
 * nothing that belongs to the loop is left; bide_run_loop_destroy tells if something is.
 * Threads: before it is shared. Progress: wait-free.
 */
void bide_run_loop_init(bide_run_loop *loop);

/*
 * Runs the loop on this thread until bide_run_loop_stop; what was posted before the stop runs
 * first. Not from inside one of its coroutines.
 * Threads: one at a time. Progress: blocks.
 */
void bide_run_loop_run(bide_run_loop *loop);

/*
 * Asks the loop to return from run. Once for each run.
 * Threads: any. Progress: lock-free.
 */
void bide_run_loop_stop(bide_run_loop *loop);

/*
 * Runs `awaiter` in loop->context, and meanwhile everything else that belongs to the loop, on this
 * thread, until `awaiter` has ended; returns its status, 0 or a negative errno. Not from inside one
 * of its coroutines.
 * Threads: one at a time. Errors: those of `awaiter`. Progress: blocks.
 */
int bide_run_loop_wait(bide_run_loop *loop, bide_awaiter *awaiter);

/* The rest that a shutdown has left. */
typedef struct bide_run_loop_remaining {
    /* Tasks that were begun on the loop and have not ended: spawned ones, tasks that a thread
     * waits for, and the coroutines of scopes. Always 0 if the library was built with BIDE_ROOTS as
     * 0. */
    size_t tasks;

    size_t ready;    /* coroutines that are ready and do not run */
    bool has_timers; /* whether timers are set, which do not come */
} bide_run_loop_remaining;

/*
 * Runs the loop on this thread until all tasks of the loop have ended, nothing is ready and no timer is set; but no
 * longer than until `deadline` (bide_now), and a turn that runs then. Returns 0 if nothing is left. Until then
 * coroutines of the loop may do what they like, also start others on it, and other threads may end what they wait for.
 * A coroutine that does not suspend holds the thread beyond the deadline: it alone can end its turn.
 *
 * If something is left, puts its numbers in *remaining, unless that is NULL, and returns -ETIMEDOUT. The loop does not
 * run then: suspended coroutines stay suspended, and ready ones are kept. A further call with a
 * later deadline continues; one whose deadline has passed counts. bide_dump_scheduler (dump.h)
 * names the tasks and what they wait for. This thread may destroy the coroutines that remain
 * (bide_destroy in handle.h; of a spawned one its root).
 *
 * It looks whether tasks that other threads run have ended once in 50 us at first, and later once in 10 ms: that is how late it may be.
 * From inside one of the loop's coroutines it is misuse, and reported.
 * Threads: one at a time, as bide_run_loop_run. Errors: -ETIMEDOUT. Progress: blocks, until the deadline.
 */
int bide_run_loop_shutdown(bide_run_loop *loop, uint64_t deadline,
                           bide_run_loop_remaining *remaining);

/* ---- In a foreign loop: run_ready when fd is readable or next_deadline has come ---- */

/*
 * Resumes what is ready, what waits for a time that has come by now, and what becomes ready by
 * that, and never sleeps. Returns how many resumptions it did. Of a loop that has a descriptor it
 * resumes some thousand at most, so that the foreign loop comes to the rest of its work; the
 * descriptor is then still readable. Not from inside one of its coroutines.
 * Threads: one at a time. Progress: blocks for a moment at most, for the lock of the timers.
 */
size_t bide_run_loop_run_ready(bide_run_loop *loop);

/*
 * When bide_run_loop_run_ready is to be called again although nothing was posted: the time of the
 * earliest timer, in nanoseconds of bide_platform.now(), or BIDE_FOREVER. A timer that is set after
 * this call, by whomever, makes the descriptor readable.
 * Threads: any. Progress: blocks for a moment at most.
 */
uint64_t bide_run_loop_next_deadline(bide_run_loop *loop);

/*
 * A descriptor that is readable while bide_run_loop_run_ready has something to do that is not a
 * matter of time: because another thread has woken a coroutine of the loop, or the foreign loop's
 * own callbacks have, and from the beginning. No wake-up is lost between bide_run_loop_run_ready
 * and the poll. To be polled for reading, level-triggered or edge-triggered, and for nothing else:
 * the loop reads it. The first call opens it, later ones return the same, until
 * bide_run_loop_close_fd. It costs each call of bide_run_loop_run_ready one system call, and the
 * first post after one, another. It is closed on exec; a child of fork that continues without exec
 * may not use it.
 * Threads: one at a time. Errors: -EMFILE, -ENFILE, -ENODEV, -ENOMEM.
 */
int bide_run_loop_fd(bide_run_loop *loop);

/*
 * Gives the descriptor up, if there is one: take it out of the foreign loop before. It stays open
 * in the process, for the next run loop that wants one, because another thread may be about to
 * write to it.
 * Threads: one at a time.
 */
void bide_run_loop_close_fd(bide_run_loop *loop);

void bide_run_loop_destroy_checked_(bide_run_loop *loop, const char *what, const char *function,
                                    const char *file, unsigned line);

/*
 * Its memory is about to go; nobody runs it, and no thread is about to wake anything of it. Does
 * nothing; if BIDE_DEBUG is 1 it reports misuse if something is left. That is: the loop runs,
 * something is queued, its descriptor is open, a timer is set, or something that was begun on it has
 * not ended. Of the last two it tells the coroutine's name.
 * Threads: one at a time.
 */
#define bide_run_loop_destroy(loop)                           \
    BIDE_END_OF_LIFE_(bide_run_loop_destroy_checked_, (loop), \
                      "a run loop is destroyed while it is in use", #loop)

BIDE_EXTERN_C_END

#endif

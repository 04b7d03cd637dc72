/*
 * A test loop: a scheduler for tests. From a seed it draws which ready coroutine runs next; its
 * time is virtual; the same seed gives the same run on every compiler and machine. Floor: simulation.
 *
 *     static int two_readers(bide_sim_loop *loop, void *argument)       // one run
 *     {
 *         struct test test = {0};
 *         int status = bide_sim_loop_wait(loop, test_run(&test));
 *         return status < 0 ? status : test.loads == 1 ? 0 : -EINVAL;
 *     }
 *
 *     assert(bide_sim_loop_explore(two_readers, 10000) == 0);           // 10,000 seeds
 *
 * Draws decide which coroutine runs next; how long one is held back; how many ready operations one
 * may pass before it yields (BIDE_BUDGET); whether a timer comes before ready coroutines; how long
 * blocking calls take; whether a test point yields; whether a fault fires (bide_maybe). The value 0
 * of a draw is always the plain one: first come, first served, no fault. A run is the list of its
 * draws, so a failing run is simplified by making draws 0.
 *
 * Time is virtual: it begins at one second, and jumps to the next timer when nothing is ready. If a
 * timer is drawn to come first although something is ready, what is ready is late, as on a busy
 * machine: by no more than `max_late` together, until as many turns have passed as coroutines were
 * ready. So a time-out of a second in a test does not expect it. Time also jumps, by any
 * length, after 500,000 turns without a jump, for a coroutine that only yields may wait for it. A
 * turn in which a coroutine spends its whole budget counts for 50,000. A coroutine reads the time
 * by bide_now(bide_this_context()), see sleep.h; code without a context by bide_test_now(). The loop makes
 * blocking calls (blocking.h) itself, on its thread, at a drawn time.
 *
 * A test loop and everything on it belong to one thread: waking one of its coroutines on another
 * thread is misuse, and detected. Coroutines interleave at their awaits only. Place a test point
 * where another thread could run in between. Check code whose threads share plain words or atomics
 * with the model checker (check.h), which explores all orders rather than some.
 */
#ifndef BIDE_TEST_LOOP_H
#define BIDE_TEST_LOOP_H

#include "bide/sleep.h"
#include "bide/extend/timer.h"

#include <limits.h>
#include "bide/detail/system_types.h"
#include <stdio.h>

BIDE_EXTERN_C_BEGIN

/* A fault that was asked for by its name. */
typedef struct bide_sim_fault {
    const char *name;
    uint64_t asked; /* how often */
    uint64_t fired;
    uint64_t rate_; /* in this run: one in so many; 0: never; not drawn yet: UINT64_MAX */
} bide_sim_fault;

enum { BIDE_SIM_FAULTS_MAX = 128 }; /* names; one more is misuse */

/* By how much a ready coroutine may be late, in nanoseconds: by default, and for one that never is. */
#define BIDE_SIM_LATE     UINT64_C(1000000)
#define BIDE_SIM_NOT_LATE UINT64_MAX

/* A blocking call that the loop makes. The loop's, allocated. */
typedef struct bide_sim_call_ bide_sim_call_;

/* The record of a run, or the source of its draws; of an exploration. */
typedef struct bide_sim_record_ bide_sim_record_;

typedef struct bide_sim_loop {
    bide_scheduler scheduler;
    bide_context context; /* as that of a run loop: {&scheduler, NULL, NULL} */
    uint64_t seed;        /* constant */
    uint64_t turns;       /* resumptions so far */
    uint64_t busy;        /* turns since time has jumped; those of a whole budget count for many */
    uint64_t max_turns;   /* more than these are a livelock; the user may write it. 1,000,000 */
    uint64_t max_late;    /* by how much one may be late; the user may write it. BIDE_SIM_LATE */

    /* The faults asked for by bide_maybe, in the order of the first time. */
    bide_sim_fault faults[BIDE_SIM_FAULTS_MAX];
    size_t faults_count;

    /* of the loop */
    uint64_t now;
    uint64_t random;
    uint64_t user_random; /* of bide_test_random */
    uint64_t style;       /* how it draws: from the seed */
    bide_awaiter_chain ready;
    bide_awaiter *passed; /* before `ready`, the nearest first: a queued coroutine was destroyed */
    size_t ready_count;
    bide_awaiter *held; /* is ready, but held back for so many turns */
    uint32_t held_for;
    bool has_yielded;    /* in this turn a budget was spent */
    uint64_t late;       /* ns that time has jumped by while the same coroutines were ready */
    uint64_t late_until; /* the turn at which those have run */
    bide_timers timers;
    bide_sim_call_ *calls;
    bide_io *io;      /* carries input and output out (memory_io.h); NULL: nothing does */
    bide_system_thread_ thread; /* that made it */
    bide_sim_record_ *record;
    uint32_t named[256];         /* how often each stream of names was drawn from */
    struct bide_sim_loop *outer; /* what ran on this thread before */
} bide_sim_loop;

/*
 * Makes a loop with nothing to run. The memory may go after bide_sim_loop_destroy.
 * Threads: before it is shared. Progress: wait-free.
 */
void bide_sim_loop_init(bide_sim_loop *loop, uint64_t seed);

/*
 * Runs `awaiter` in loop->context, and meanwhile everything else that belongs to the loop, until
 * `awaiter` has ended; returns its status, 0 or a negative errno.
 *
 * -EDEADLK: it never ends, because nothing is ready, no timer is set and no call is being made.
 * -ELOOP: it has not ended in loop->max_turns. Which coroutines wait, where, and for what, is
 * written to stderr. In both cases `awaiter` is destroyed; what else was begun still waits, and is the
 * caller's to destroy. Under bide_sim_loop_explore the run ends there, without returning.
 * Threads: the loop's. Errors: those of `awaiter`; -EDEADLK, -ELOOP, see there. Progress: blocks.
 */
int bide_sim_loop_wait(bide_sim_loop *loop, bide_awaiter *awaiter);

/*
 * Runs what is ready or becomes ready until `time` of the loop's clock, which is then the time, if
 * it was not later. Returns how many resumptions it did; loop->max_turns at most.
 * Threads: the loop's. Progress: blocks.
 */
uint64_t bide_sim_loop_run_until(bide_sim_loop *loop, uint64_t time);

/*
 * Resumes one coroutine that is ready, or whose time has come; false if there is none. Time stays
 * as it is.
 * Threads: the loop's. Progress: that of the coroutine.
 */
bool bide_sim_loop_step(bide_sim_loop *loop);

/*
 * Is anything left that belongs to the loop: ready, waiting for a time or for a call, or begun and
 * not ended? Nothing of the last may be gone.
 * Threads: the loop's. Progress: wait-free, linear in what was begun in the process.
 */
bool bide_sim_loop_is_empty(const bide_sim_loop *loop);

/*
 * Draws a number from 0 to below - 1, for a test's own choices; `below` is 1 to 65536. Make 0 the
 * plain choice: a failing run is made simpler by making draws 0.
 * Threads: the loop's. Progress: wait-free.
 */
uint32_t bide_sim_loop_draw(bide_sim_loop *loop, uint32_t below);

/*
 * The same from the stream `name`, a string that stays: each name has numbers of its own. So a test that
 * draws more or less of one name draws the same as before of all others, from the same seed. Different names may
 * share a stream, with a probability of 1 / 240.
 * Threads: the loop's. Progress: wait-free, linear in the name.
 */
uint32_t bide_sim_loop_draw_named(bide_sim_loop *loop, const char *name, uint32_t below);

void bide_sim_loop_destroy_checked_(bide_sim_loop *loop, const char *what, const char *function,
                                    const char *file, unsigned line);

/*
 * Its memory is about to be freed. Does nothing but free calls; where BIDE_DEBUG is 1 it reports
 * misuse if something is left (bide_sim_loop_is_empty).
 * Threads: the loop's.
 */
#define bide_sim_loop_destroy(loop)                           \
    BIDE_END_OF_LIFE_(bide_sim_loop_destroy_checked_, (loop), \
                      "a test loop is destroyed while it is in use", #loop)

/* ---- Faults and points in the code under test ---- */

/* The test loop that runs on this thread, or NULL. */
extern BIDE_THREAD_LOCAL bide_sim_loop *bide_sim_loop_running_;

bool bide_maybe_(const char *name);

/*
 * Does the fault `name`, a string that stays, fire here? In a test loop it is drawn; in some runs it
 * never fires, in others one time in 2, 8 or 64. Everywhere else it never does, at the cost of a
 * load and a branch.
 *
 *     int error = bide_maybe("disk full") ? -ENOSPC : write_page(page);
 *
 * Threads: any. Progress: wait-free.
 */
BIDE_INLINE bool bide_maybe(const char *name)
{
    return BIDE_UNLIKELY(bide_sim_loop_running_ != NULL) && bide_maybe_(name);
}

/*
 * The clock for code under test: in a test loop its virtual time, everywhere else that of
 * bide_platform.now(). In nanoseconds; it never goes back in one place, and has no relation to the time
 * of day. A coroutine may as well use bide_now(bide_this_context()): on a test loop both are the same.
 * Threads: any. Progress: that of bide_platform.now(), wait-free.
 */
uint64_t bide_test_now(void);

/*
 * Random numbers for code under test: 64 bits, evenly distributed. In a test loop they are a sequence that
 * the seed determines. They are no draws: a failing run has the same ones while it is made simpler, and
 * asking for one more shifts no draw. For choices that should become simple use bide_sim_loop_draw.
 * Everywhere else they come from getrandom(2). Under a test loop they can be predicted, so a program that
 * makes keys of them must not be linked to run on one.
 *
 *     uint64_t delay = base + bide_test_random() % jitter;
 *
 * Threads: any. Errors: none; a system without getrandom is misuse. Progress: that of getrandom(2), which
 * blocks until the system has begun to collect entropy.
 */
uint64_t bide_test_random(void);

/* A place where others may run. The caller's memory until the wait has ended. */
typedef struct bide_sim_point_operation {
    bide_awaiter awaiter;
} bide_sim_point_operation;

/*
 * A test point: in a test loop the coroutine may yield here, if that is drawn, as if another thread
 * had been faster. Everywhere else it is ready.
 * Threads: any. Errors: none. Suspends: if a test loop draws it. Cancel-safe: yes, it cannot be cut
 * short. Progress: that of posting to the scheduler.
 */
BIDE_MUST_AWAIT
bide_awaiter *bide_sim_point(bide_sim_point_operation *point);

/* ---- Exploring ---- */

/*
 * One run of a test: sets up, runs something by bide_sim_loop_wait or bide_sim_loop_run_until,
 * checks, and tears down. Returns 0, or a negative errno if the test has failed.
 */
typedef int bide_sim_body(bide_sim_loop *loop, void *argument);

/* How a run failed. */
typedef enum bide_sim_failure {
    BIDE_SIM_PASSED,
    BIDE_SIM_STATUS,    /* the body returned a negative status */
    BIDE_SIM_DEADLOCK,  /* -EDEADLK: somebody waits, and nothing will happen */
    BIDE_SIM_LIVELOCK,  /* -ELOOP: too many turns */
    BIDE_SIM_LEFT,      /* -EBUSY: the body has returned, and a coroutine of the loop has not */
    BIDE_SIM_CRASH,     /* -EFAULT: a signal: an assertion, misuse, a bad access */
    BIDE_SIM_EXIT,      /* -EFAULT: it ended the process, as sanitizers do */
    BIDE_SIM_HANGS,     /* -ETIME: one run took too long, without a turn */
    BIDE_SIM_NO_FAULT,  /* -ENODATA: all passed, and a fault never fired */
    BIDE_SIM_NOT_ALIKE, /* -EAGAIN: a run that failed does not fail again: something in it is not
                            drawn, such as the address of an object, the time of day, or what an
                            earlier run has left in a static variable */
} bide_sim_failure;

/* How the next coroutine to run is drawn. */
typedef enum bide_sim_strategy {
    /* Each seed has a style: any that is ready; seldom another than the first; or one is held back. */
    BIDE_SIM_UNIFORM,

    /*
     * Probabilistic concurrency testing: each task has a random priority, and the highest runs. `depth` - 1
     * times the task that would run gets the lowest. So a run has few changes of tasks, at any turns. A
     * failure that needs certain d - 1 changes, in a run of n tasks and k turns, is found by a seed with a
     * probability of at least 1 / (n * k^(d - 1)), if `depth` is d and `length` is k. Tasks yield at each
     * test point and, in half of the seeds, at each operation. Of more than 64 that are ready, the oldest
     * 64 compete; a task that had 500 turns in a row while others were ready is lowered too.
     */
    BIDE_SIM_PCT,
} bide_sim_strategy;

/* The result of an exploration. */
typedef struct bide_sim_result {
    bide_sim_failure failure;
    uint64_t seed;    /* of the run that failed */
    int status;       /* of the body, or the number of the signal, or that of the exit */
    uint64_t runs;    /* with seeds of their own, below that of the failing run */
    uint64_t retries; /* runs to make the failing one simpler */
    size_t draws;     /* of the failing one that are not 0, and of the simpler one */
    size_t draws_left;
    size_t preemptions; /* of these: another task runs although the last one could continue */
    size_t preemptions_left;
    bide_sim_fault faults[BIDE_SIM_FAULTS_MAX]; /* of all runs that passed */
    size_t faults_count;
    uint64_t replayed; /* runs of the corpus that passed */
} bide_sim_result;

enum { BIDE_SIM_JOBS_MAX = 64 };

/* As many jobs as there are processors that the process may use. */
#define BIDE_SIM_ALL_PROCESSORS UINT_MAX

/* The comment of a member says what 0 or NULL means. */
typedef struct bide_sim_options {
    void *argument;            /* for the body */
    uint64_t first_seed;       /* 0: 1 */
    uint64_t max_turns;        /* a run; 0: 1,000,000 */
    uint64_t max_late;         /* by how much a coroutine may be late; 0: BIDE_SIM_LATE */
    uint64_t retries;          /* processes to make a failing one simpler, at most; 0: 2,000 */
    unsigned seconds;          /* a run; 0: 60 */
    unsigned simplify_seconds; /* to make a failing one simpler, at most; 0: 30 */
    bool as_found;             /* a failing one is not made simpler */
    bide_sim_strategy strategy;
    unsigned depth;  /* of BIDE_SIM_PCT, at most 16; 0: from 2 to 4, drawn for each seed */
    uint64_t length; /* of BIDE_SIM_PCT, in turns; 0: 16, 32 ... 16,384, drawn for each seed */
    bool isolated;   /* each run has a process of its own; some 10 times slower for short runs */
    unsigned
        jobs; /* processes that run seeds at a time, at most BIDE_SIM_JOBS_MAX; 0: BIDE_TEST_JOBS, or 1 */
    const char *const *faults; /* names, with NULL at the end: each must have fired in some run */
    FILE *out;                 /* what failed, and how; NULL: stderr */
    FILE *trace;               /* both whole traces, of 65,536 lines at most; NULL: nowhere */
    const char *
        corpus; /* a file of seeds that have failed, which run first; new ones are added; NULL: none */
    FILE *progress;          /* how many seeds have passed; NULL: stderr, if that is a terminal */
    bide_sim_result *result; /* or NULL */
} bide_sim_options;

/*
 * Runs `body` with `seeds` seeds, each time on a test loop of its own, until a run fails. Writes of
 * that run, on a screen: how it failed, the faults that fired and the end of the trace of the simplest run
 * found that fails in the same way (not all are tried), and how to run both again. The whole traces go to options.trace.
 *
 *     BIDE_TEST_SEED=n                  runs that seed alone
 *     BIDE_TEST_DRAWS=turn.12:1,own.4:2   ... with these draws, and 0 for all others
 *
 * Lines of `corpus`, a file, are run before the seeds, each in a process of its own: "31500", or
 * "31500 own.4:1", which is run without the draws and with them. A failing run is added to it.
 *
 * With several `jobs` (or BIDE_TEST_JOBS=n, or =all, in the environment) as many processes run seeds.
 * The seed that is reported is the lowest that fails, and so the report is that of one job, unless runs
 * leave something behind in memory. Then only what the failing run prints is seen.
 *
 * Those two, from the environment, are run in this process, where a debugger sees them, and print
 * the trace as it comes. Otherwise runs are made in a child of fork, many in a row: what one leaves
 * behind in memory the next one finds, as with any function that is called again. A run that fails only
 * because of that is -EAGAIN, and the report says so; `isolated` gives each run a child of its own. A
 * crash ends the child, and is a failure of the run. In the child CMOCKA_TEST_ABORT is 1, so that assertions of
 * cmocka abort.
 * Threads: one at a time. Errors: those of `body`; -EDEADLK, -ELOOP, -EBUSY, -EFAULT, -ETIME,
 * -ENODATA, -EAGAIN (see bide_sim_failure; the last also if there is no child), -ENOMEM, -EINVAL (a line
 * of the corpus is wrong), those of reading it. Progress: blocks.
 */
int bide_sim_loop_explore_with(bide_sim_body *body, uint64_t seeds,
                               const bide_sim_options *options);

/*
 * The same as it is without options.
 * Threads: one at a time. Errors: as bide_sim_loop_explore_with. Progress: blocks.
 */
int bide_sim_loop_explore(bide_sim_body *body, uint64_t seeds);

/*
 * Why it is correct: src/simulation/sim_loop.c.
 *
 * Source: FoundationDB's simulation and its BUGGIFY; Rust's loom and madsim; Burckhardt and others,
 * "A randomized scheduler with probabilistic guarantees of finding bugs", 2010; Zeller and
 * Hildebrandt, "Simplifying and isolating failure-inducing input", 2002.
 */

BIDE_EXTERN_C_END

#endif

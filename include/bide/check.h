/*
 * A model checker for concurrent C: runs a small scenario in every way that the memory model of C11
 * allows, and reports the first execution in which something is wrong. Floor: check.
 *
 *     struct state { bide_atomic(uint32_t) flag; int data; };
 *
 *     static void producer(void *p)
 *     {
 *         struct state *s = p;
 *         bide_plain_store(&s->data, 42);
 *         bide_atomic_store(&s->flag, 1, release);
 *     }
 *     static void consumer(void *p) { ... }
 *
 *     static const bide_check_scenario handover = {
 *         .name = "handover", .size = sizeof(struct state), .threads = {producer, consumer}};
 *
 *     int main(int argc, char **argv)
 *     {
 *         const bide_check_scenario *all[] = {&handover, NULL};
 *         return bide_check_main(argc, argv, &(bide_check_suite){all});
 *     }
 *
 * Compile with -DBIDE_CHECK=1, and link with libbide-check in place of libbide. That is the library
 * compiled for the checker, so scenarios may use all of its primitives. To check all plain accesses,
 * marked or not, also compile with -fsanitize=thread, and link without it. Needs gcc or clang, 64-bit
 * pointers and ucontext. One thread at a time runs the checker; it runs the scenario's threads itself.
 *
 * "What is explored" and "Rules of a scenario" are below. bide_check_finding lists what is found.
 */
#ifndef BIDE_CHECK_H
#define BIDE_CHECK_H

#include "bide/atomic.h"
#include "bide/frame.h"

BIDE_EXTERN_C_BEGIN

/*
 * The checker explores every execution that RC11 allows, each once; executions that differ only in
 * the order of independent steps count as one. An execution is what each load reads, and the order
 * of the stores to each location. Loads read stale values where the memory orders allow it, on
 * whatever machine the checker runs.
 *
 * Not explored: load buffering, in which a load reads a store that comes later in its own thread's
 * program order by way of other threads. RC11 excludes it, and compilers do not produce it in practice.
 * Mixed-size accesses are not modelled, except that a thread may sleep on half a word.
 *
 * Rules of a scenario: its functions may depend only on values that they read from their state. They
 * use no clocks, no random numbers (but bide_check_choose), no output, and no memory except the state,
 * their own locals and what they allocate. malloc, and the locks and threads of POSIX and C11, are
 * the checker's in a scenario.
 */
enum { BIDE_CHECK_THREADS = 4 };

/* The faults that a scenario may have. */
typedef enum bide_check_finding {
    BIDE_CHECK_NOTHING,
    BIDE_CHECK_ASSERTION,      /* bide_check_assert failed */
    BIDE_CHECK_RACE,           /* two plain accesses, or a plain and an atomic one, unordered */
    BIDE_CHECK_USE_AFTER_FREE, /* an access to memory that is or may be freed already */
    BIDE_CHECK_DOUBLE_FREE,    /* or a free of what was not allocated */
    BIDE_CHECK_OUT_OF_BOUNDS,  /* an access to allocated memory beside any block */
    BIDE_CHECK_UNINITIALISED,  /* a read of allocated memory to which nothing was written */
    BIDE_CHECK_LEAK,           /* something is still allocated at the end */
    BIDE_CHECK_DEADLOCK,       /* a thread waits for what no thread will do */
    BIDE_CHECK_LIVELOCK,       /* a thread spins for ever, or took more steps than the limit */
    BIDE_CHECK_MISUSE,         /* a rule of the library, or of the locks of POSIX, was broken */
    BIDE_CHECK_CRASH, /* a signal (SIGSEGV, SIGABRT, ...), exit(), or more stack than there is */
    BIDE_CHECK_BAD_SCENARIO /* the scenario itself cannot be checked: it is not repeatable, ... */
} bide_check_finding;

/*
 * The name of a finding: "race", "use after free", ...
 * Threads: any. Progress: wait-free.
 */
const char *bide_check_finding_name(bide_check_finding finding);

/* Something to check. All zero but for `threads` is a good beginning. */
typedef struct bide_check_scenario {
    const char *name;
    size_t size; /* of the state: zeroed, aligned to a cache line, at one address always */
    void (*setup)(void *state);                       /* before the threads; or NULL */
    void (*threads[BIDE_CHECK_THREADS])(void *state); /* at once; the first NULL ends them */
    void (*finish)(void *state);                      /* after they have all ended; or NULL */

    bide_check_finding expected; /* what bide_check_main is to find */

    /* 0: every execution. Otherwise only executions that are equal to one thread running at a time,
     * with at most so many changes while the running one could continue; see bide_check_main. */
    unsigned preemptions;

    size_t stack_size; /* of each thread, in bytes, at most 8128 KiB; 0: 256 KiB. More is a crash */

    unsigned max_steps; /* of one thread, at most 65000; 0: 10000. More is a livelock */

    /* Limits of executions (abandoned ones included) and of time: findings up to then
     * count, and the result says that it is unfinished. 0: no limit. A thread that makes no
     * step for a few seconds after the last second is a livelock. */
    uint64_t max_executions;
    double max_seconds;
    bool must_finish; /* for bide_check_main: to end unfinished is wrong */

    /* How often in an execution each thread meets a compare-exchange that fails for no reason, or a
     * sleep that ends for none. 0: once. */
    unsigned max_spurious;
    bool never_spurious;

    /* How many allocations may fail in each thread of an execution, in `setup`, and in `finish`. Each
     * is explored as one that succeeds and as one that fails, until so many have failed before it.
     * malloc and its kin (where they are the checker's) and bide_check_alloc then return NULL, and
     * errno is ENOMEM. 0: none fails. */
    unsigned failing_allocations;

    /* Reads of allocated memory to which nothing was written are no finding. */
    bool may_read_uninitialised;

    /* A release sequence ends, as in C++20, with the first store that is no read-modify-write, by
     * the same thread too. Without it, as in C11, the thread's own later stores belong to it.
     * C++20's is the weaker rule: what holds under it holds under C11's. */
    bool cxx20_release_sequences;

    /* Threads with one function are equal: if any two of them exchange what they do, that is an
     * execution too, with the same result. bide_check_explore then leaves out executions that differ
     * from another one only in which of them did what. A thread may use its number for a place in an
     * array only if no thread, `finish` included, depends on the order of the places: not if one
     * scans them, or compares numbers or addresses. An equal thread starts no other thread. */
    bool symmetric;
} bide_check_scenario;

/* How executions are drawn: see bide_check_sample. */
typedef struct bide_check_sampling {
    uint64_t runs;  /* the number of executions */
    uint64_t seed;  /* of the first one; that of each other is greater by 1 than the one before */
    unsigned depth; /* of PCT, at most 32; 0: each thread is as likely to take the next step */
} bide_check_sampling;

/* The result of an exploration. */
typedef struct bide_check_result {
    bide_check_finding finding;
    uint64_t executions; /* complete ones */
    uint64_t blocked;    /* given up since a thread would only have waited or spun on */
    bool is_unfinished;  /* nothing was found, and a limit was reached: there may be more */
    bool is_bounded;     /* executions with more preemptions than `preemptions` were left out */
    bool is_sampled;     /* executions were drawn: there may be more */
    uint64_t seed;       /* if they were drawn: that of the finding, or else of the first one */
    double bound;        /* by PCT: see bide_check_sample. 0: none */
    char *message;       /* what was found, in a line; NULL if nothing */
    char *trace;         /* the steps that led there; NULL if nothing. Repeated steps are
                            listed once, except in a replay */
    char *replay;        /* what makes bide_check_replay run just that execution; NULL if nothing */
    char *graph;         /* the steps as a graph, for dot; NULL if nothing, except in a replay */
    char **outcomes;     /* what bide_check_note wrote, each different text once, sorted */
    uint64_t *counts;    /* in how many executions each */
    size_t outcomes_count;
} bide_check_result;

/*
 * Explores a scenario until something is found or all is seen. Fills *result, which is to be given
 * to bide_check_result_free, and returns its finding.
 * Threads: one at a time. Progress: blocks.
 */
bide_check_finding bide_check_explore(const bide_check_scenario *scenario,
                                      bide_check_result *result);

/*
 * Runs executions of a scenario that are drawn from a seed, until something is found or
 * `sampling->runs` were run: for scenarios that are too large to explore. Drawn are the thread of
 * each step, and in half of the executions what each load reads and the place of each store; in the
 * other half they are the newest. Each execution that bide_check_explore reaches may be drawn, and
 * may be drawn again.
 *
 * With a depth d above 0 the schedule is that of PCT, probabilistic concurrency testing: threads
 * run by drawn priorities, which change after d - 1 drawn steps. Let n be the number of threads and
 * k the number of steps. An execution finds a bug with a probability of at least 1/(2 n k^(d-1)) if
 *
 *     - d orderings of steps suffice to show it,
 *     - it shows with the newest values, whatever is chosen,
 *     - no execution has more than k steps, and
 *     - no thread waits in a loop, calls bide_cpu_relax() in two rounds that read the same, or reads
 *       one value twice at one place without a change of its own between: that lowers its priority.
 *
 * One more execution, which comes first and is always the same, measures k. `bound` in *result is
 * that probability. It is 0 if the measuring execution has found something, or if an execution with
 * all the newest values has broken one of the last two conditions.
 *
 * A loop that waits runs until it ends. The limits `preemptions` and `max_executions` of the
 * scenario do not apply; `max_seconds` does. Fills *result, which is to be given to
 * bide_check_result_free, and returns its finding. A sampling with one run and the seed in *result
 * finds the same with the same trace.
 * Threads: one at a time. Progress: blocks.
 */
bide_check_finding bide_check_sample(const bide_check_scenario *scenario,
                                     const bide_check_sampling *sampling,
                                     bide_check_result *result);

/*
 * Runs the one execution of a scenario that `replay` describes: for a debugger. Results as above;
 * BIDE_CHECK_BAD_SCENARIO if the text does not fit.
 * Threads: one at a time. Progress: blocks.
 */
bide_check_finding bide_check_replay(const bide_check_scenario *scenario, const char *replay,
                                     bide_check_result *result);

/*
 * Frees what a result holds.
 * Threads: one at a time.
 */
void bide_check_result_free(bide_check_result *result);

/* Why a weaker order is not used although nothing is found with it. */
typedef struct bide_check_reason {
    const char *function;  /* where the operation stands */
    const char *operation; /* "load", "store", "exchange", ..., as `--weaken` prints it */
    const char *object;    /* as it is written there */

    /* The weaker one: "relaxed", "acquire", ...; after "if failed " for that order. Where the
     * function has several such operations with different orders, the order as written stands
     * before it: "release to relaxed". */
    const char *order;

    const char *why;
} bide_check_reason;

/* Scenarios that belong together. */
typedef struct bide_check_suite {
    const bide_check_scenario *const *scenarios; /* the last is followed by NULL */

    /* For --weaken: the ends of the names of the files whose operations are weakened, the last
     * followed by NULL; NULL itself is all files. And what is known of orders that could be weaker,
     * the last followed by one without a function; or NULL. */
    const char *const *files;
    const bide_check_reason *reasons;
} bide_check_suite;

/*
 * Checks scenarios, and prints for each what was found, with the number of executions; returns 0 if
 * each found what it expects and all its executions were explored ("complete"), 1 if one found
 * something else, 2 for a wrong command line, 3 if one was not finished, 5 if one is "sampled"
 * (executions were drawn) and none is unfinished, and 4 if one is "bounded" (executions with more
 * preemptions were left out) and none is either. A finding that is expected needs no more
 * executions.
 *
 * It shows on stderr how far it has come, with an estimate of what part that is and of the time that
 * is left: on a terminal in one line that changes, elsewhere and with --jobs in a line after 10
 * seconds, and whenever that time has doubled. The last line says how many scenarios are complete,
 * bounded, sampled, unfinished and wrong. Its arguments:
 *
 *     (none)                all scenarios
 *     NAME...               those
 *     --list                only their names
 *     --verbose             the trace of expected findings too
 *     --tap                 a line of TAP for each, for a test harness: what is not finished is
 *                           skipped, and the status is 0 if no finding is wrong
 *     --junit FILE          writes the results to FILE too, in the XML of JUnit: a case for each
 *                           scenario, with its message and trace if the finding is wrong. An
 *                           unfinished scenario is skipped. 2 if FILE cannot be opened, 1 if it
 *                           cannot be written
 *     --replay TEXT NAME    one execution of one, step by step
 *     --dot FILE NAME       writes to FILE, for dot of Graphviz, the graph of the execution in which
 *                           something was found, or that is replayed. 1 if it cannot be written
 *     --time SECONDS        no longer than that for each scenario (1.5 is one and a half), and
 *     --executions N        no more executions of each, and no more than its own limit: otherwise it
 *                           is not finished
 *     --preemptions N       explore only executions with at most N preemptions
 *     --random N            do not explore: draw N executions, as bide_check_sample; 1000 without it
 *     --pct D               draw executions by PCT with the depth D
 *     --seed S              the seed of the first one; otherwise from the clock
 *     --unfinished FILE     each scenario must be finished (`must_finish`), unless it has a limit of
 *                           its own or FILE names it. A line of FILE is NAME, or PROGRAM: NAME for
 *                           the program of that name alone; # begins a comment. 2 if FILE names a
 *                           scenario that does not exist
 *     --progress SECONDS    when the first line of progress is printed, if there is no terminal
 *     --jobs N              in N processes: scenarios side by side, or the rows of --weaken
 *     --weaken              a table: each order is made weaker by one step in turn, and something
 *                           must be found, or there must be a reason; 1 if not
 *
 * Threads: one at a time. Errors: none (see above). Progress: blocks.
 */
int bide_check_main(int argc, char **argv, const bide_check_suite *suite);

/* ---- inside a scenario ---- */

/*
 * States a condition that must be true.
 * Threads: the scenario's.
 */
#define bide_check_assert(condition)                                          \
    ((condition) ? (void)0                                                    \
                 : bide_check_fail_(BIDE_CHECK_ASSERTION, __FILE__, __LINE__, \
                                    "assertion failed: %s", #condition))

/*
 * Memory that is watched: a use after free, a second free and a leak are found. It is not used
 * again within an execution, so that the old and the new block are never confused. It is not
 * initialised, and a read of a number or pointer to which nothing was written is found. NULL if the
 * scenario has `failing_allocations`, and this is one.
 * Threads: the scenario's.
 */
void *bide_check_alloc(size_t size);
void bide_check_free(void *memory);

/*
 * A number from 0 to count - 1; each is explored. A `count` above 65535 is a bad scenario.
 * Threads: the scenario's.
 */
unsigned bide_check_choose(unsigned count);

/*
 * Awaits an operation, as a coroutine with the inline scheduler would, and blocks this thread of
 * the scenario until it has ended; returns its status. A coroutine that is never woken is a
 * deadlock.
 * Threads: the scenario's. Errors: those of `awaiter`. Progress: blocks.
 */
int bide_check_await(bide_awaiter *awaiter);

/*
 * Adds a line to what this execution is remembered by, as printf would; see `outcomes`.
 * Threads: the scenario's.
 */
#if defined __GNUC__
__attribute__((format(printf, 1, 2)))
#endif
void bide_check_note(const char *format, ...);

/*
 * The running thread: 0 in setup and finish, 1 for the first of the threads, and so on.
 * Threads: the scenario's.
 */
unsigned bide_check_thread(void);

#if defined __GNUC__
__attribute__((format(printf, 4, 5), noreturn))
#endif
void bide_check_fail_(bide_check_finding finding, const char *file, unsigned line,
                      const char *format, ...);

BIDE_EXTERN_C_END

#endif

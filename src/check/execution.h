/*
 * The execution that is running: the thread that takes a step, its clock, the order of the steps, and
 * the finding. machine.c runs the execution; the other files use this interface.
 */
#ifndef BIDE_CHECK_EXECUTION_H
#define BIDE_CHECK_EXECUTION_H

#include "fiber.h"
#include "graph.h"

/* The scenario that is being checked; one at a time. */
typedef struct checker {
    const bide_check_scenario *scenario;
    bide_check_result *result;
    unsigned max_steps;
    unsigned max_spurious;
    graph *g;        /* the graph that is being run */
    bool stopped;    /* there is a finding, or a limit is reached */
    bool samples;    /* an execution is sampled, or a sampled one is replayed: see sample.h */
    bool only_grows; /* the graph: an execution is sampled or replayed */

    const struct replay *replay; /* the text that makes the decisions; NULL: the exploration does */
} checker;

extern checker the_checker;

typedef enum thread_state { ABSENT, WAITING_TO_START, READY, BLOCKED, DONE } thread_state;

typedef struct thread_record {
    fiber fiber;
    void (*function)(void *state);
    void *(*spawned)(void *argument);
    void *argument;
    void *result;
    thread_state state;
    unsigned position;          /* how many of its events have been run */
    const bide_check_site_ *at; /* the step that it is about to take */
    bool in_rmw;                /* between the two halves of a read-modify-write: it runs next */
    bool halted;                /* execution_halt() was called */
    vector_clock clock;         /* the events that it has seen */

    /* spin.h */
    bool spins;
    unsigned
        *rounds; /* the positions at which the rounds began, and at which the next one begins */
    unsigned rounds_count, rounds_capacity;
    unsigned period;    /* the position at which the repeated steps begin */
    unsigned idle;      /* rounds without a step */
    bool looks_at_time; /* since the last round began */
    bool on_trial;      /* runs further rounds, without steps, to see whether the loop ends */
    unsigned next;      /* on trial: the next step of the period */
    unsigned more;      /* on trial: the number of further rounds */
    bool rehearses;     /* an earlier round, without steps: see rounds.c */
    bool postpones;     /* the store of a read-modify-write that changes nothing: see machine.c */
} thread_record;

enum { NOBODY = THREADS };

typedef struct execution {
    thread_record threads[THREADS];
    unsigned running; /* or NOBODY */
    bool given_up;
    bool runs_again;        /* given up, to be run along the same graph once more */
    const void *caller;     /* the code that called the running atomic operation */
    const void *c11_caller; /* the same, while c11.c passes the call on; otherwise NULL */
    uint64_t moves;         /* steps, and turns of threads, since the program began */
    unsigned in_checker;    /* a thread of the scenario is in a function that the checker calls */
} execution;

extern execution the_execution;

static inline thread_record *execution_running(void)
{
    return &the_execution.threads[the_execution.running];
}

/* ---- For all files ---- */

/* If no thread of a scenario is running, the operations are plain ones, on memory. */
static inline bool execution_is_running(void)
{
    return the_execution.running != NOBODY;
}

/*
 * Between these, the functions of libc that the checker replaces (posix.c, heap.c) are libc's own: the
 * checker calls something that uses them.
 */
static inline void execution_enter_checker(void)
{
    the_execution.in_checker++;
}

static inline void execution_leave_checker(void)
{
    the_execution.in_checker--;
}

static inline bool execution_is_in_scenario(void)
{
    return execution_is_running() && the_execution.in_checker == 0 && !the_checker.stopped;
}

static inline unsigned execution_thread(void)
{
    return the_execution.running;
}

/* The events that the running thread has seen. */
static inline const vector_clock *execution_clock(void)
{
    return &execution_running()->clock;
}

static inline const event *execution_event(reference r)
{
    return event_at(the_checker.g, r);
}

/* True if the event is a step that the running execution has run. */
static inline bool execution_has_run(reference r)
{
    return is_initial(r) || the_execution.threads[r.thread].position > r.index;
}

/* Ends the running execution with a finding. May be called inside and outside of a thread. */
void execution_found(bide_check_finding finding, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/*
 * The running thread is in an execution that cannot occur, or is equivalent to another one. The
 * thread does not continue; the others do, because their steps may show it another value.
 */
_Noreturn void execution_halt(void);

/*
 * True if the running thread spins, and is on trial to see whether it gives up (spin.h). Its further
 * steps are not part of the execution.
 */
static inline bool execution_is_on_trial(void)
{
    return execution_is_running() && execution_running()->on_trial;
}

/* Ends a trial, if there is one, before an action that cannot be repeated. */
void execution_end_trial(void);

/* Returns the steps of the running execution, in their order. */
const reference *execution_order(unsigned *count);

/*
 * A thread was run after `steps` steps and took none, because it ended, or there was a finding. Its
 * plain accesses have a place among those of the others, so a replay needs the run.
 */
typedef struct idle_run {
    unsigned thread;
    unsigned steps;
} idle_run;

const idle_run *execution_idle_runs(unsigned *count);

/* ---- For machine.c and spin.c ---- */

/* Before each execution. */
void execution_begin(void);

/*
 * Return to the scheduler: until it resumes the running thread; for good; for good, with the thread
 * blocked.
 */
void execution_leave(void);
_Noreturn void execution_give_up(void);
_Noreturn void execution_block(void);

/* The running thread, which is on trial, has left its loop. */
_Noreturn void execution_gave_up_spinning(void);

/* Records that a step was run. */
void execution_add(reference step);

/*
 * Called before and after the running thread is run. The second returns true, and records an idle
 * run, if the thread has taken no step.
 */
void execution_turn_begins(void);
bool execution_turn_was_idle(void);

#endif

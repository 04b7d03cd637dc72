/*
 * The execution that is running: which thread takes a step, what it has seen, in which order steps
 * were run, and what was found. machine.c runs it; files below it ask here.
 */
#ifndef BIDE_CHECK_EXECUTION_H
#define BIDE_CHECK_EXECUTION_H

#include "fiber.h"
#include "graph.h"

/* What is being checked; one at a time. */
typedef struct checker {
    const bide_check_scenario *scenario;
    bide_check_result *result;
    unsigned max_steps;
    unsigned max_spurious;
    graph *g;     /* that is being run */
    bool stopped; /* something was found, or a limit is reached */

    /* replaying a text: the decisions are its, not ours */
    const struct script *script;
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
    bool in_rmw;                /* between the two halves: it goes on before any other */
    bool halted;                /* the execution does not exist, or is like another */
    vector_clock clock;         /* what it has seen */

    /* spin.h */
    bool spins;
    unsigned *rounds; /* the positions at which they began, and the next one does */
    unsigned rounds_count, rounds_capacity;
    unsigned period;    /* where what it spins through begins */
    unsigned idle;      /* how many rounds took no step at all */
    bool looks_at_time; /* since the last round began */
    bool goes_on;       /* to see whether it ever stops: no steps are taken any more */
    unsigned next;      /* then: the step of the period that comes next */
    unsigned more;      /* and how many rounds more there were */
} thread_record;

enum { NOBODY = THREADS };

typedef struct execution {
    thread_record threads[THREADS];
    unsigned running; /* or NOBODY */
    bool given_up;
} execution;

extern execution the_execution;

static inline thread_record *execution_running(void)
{
    return &the_execution.threads[the_execution.running];
}

/* ---- For all ---- */

/* Is a thread of a scenario running? Otherwise the operations are plain ones, on memory. */
static inline bool execution_is_running(void)
{
    return the_execution.running != NOBODY;
}

static inline unsigned execution_thread(void)
{
    return the_execution.running;
}

/* What the running thread has seen. */
static inline const vector_clock *execution_clock(void)
{
    return &execution_running()->clock;
}

/* Everything that is still known of an event. */
static inline const event *execution_event(reference r)
{
    return event_at(the_checker.g, r);
}

/* Is it one of the steps that the running execution has come to? */
static inline bool execution_has_run(reference r)
{
    return is_initial(r) || the_execution.threads[r.thread].position > r.index;
}

/*
 * Ends the running execution, with something found. From inside or outside a thread of the
 * scenario.
 */
void execution_found(bide_check_finding finding, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/*
 * The running thread is in an execution that does not exist, or is like another that is looked at.
 * It goes no further; the others do, for a step of theirs may show it another value.
 */
_Noreturn void execution_halt(void);

/*
 * Is the running thread one that spins, and is let go on to see whether it gives up (spin.h)? What
 * it does then is no part of the execution.
 */
static inline bool execution_goes_on(void)
{
    return execution_is_running() && execution_running()->goes_on;
}

/* Whether it does cannot be seen, since it does what cannot be repeated. */
void execution_stop_going_on(void);

/* The steps of the running execution, in the order in which they were run. */
const reference *execution_order(unsigned *count);

/*
 * A thread was run after so many steps, and took none: it ended, or something was found, before it
 * came to one. Its plain accesses have their place among the others' all the same.
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
 * Back to the scheduler, until it resumes the running thread; for good; and so that it counts as
 * blocked.
 */
void execution_leave(void);
_Noreturn void execution_give_up(void);
_Noreturn void execution_block(void);

/* The running thread, which was let go on, has done something else. */
_Noreturn void execution_gave_up_spinning(void);

/* A step was run. */
void execution_add(reference step);

/*
 * The running thread begins to run; it has left: true if it has taken no step, which is remembered.
 */
void execution_turn_begins(void);
bool execution_turn_was_idle(void);

#endif

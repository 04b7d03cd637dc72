/*
 * Equal threads: of the executions that differ only in which of them did what, only some are explored.
 * docs/internals/checker-symmetry.md shows that nothing is lost.
 *
 *     equal       threads of one function, in a scenario that is `symmetric`
 *     gate        a thread's first read-modify-write outside of its own stack and heap, whether or not it
 *                 succeeds: its load
 *     signal      a thread's first store at its gate or after it; if it ends without one, its last event
 *
 * A thread passes its gate after the signal of the equal thread before it, on which the load then
 * depends, as on an event of its own thread. So locks are taken, and nodes are pushed, in the order
 * of the threads' numbers. If all other threads have ended or wait, a thread may pass its gate
 * without that signal, but stores nothing any more. One of the waiting threads is blocked then: threads are
 * not equal if one ends without an event and another comes to its gate.
 */
#include "symmetry.h"

#include "memory.h"

#include "bide/platform.h"

#include <string.h>

bool symmetry_is_used;

/* The state of a thread in the running execution. */
typedef struct equal_thread {
    unsigned before; /* the equal thread before it, or NOBODY */
    unsigned gate;   /* the position of its gate, if it has passed it */
    bool has_equal;
    bool has_passed; /* its gate */
    bool is_held;    /* at its gate */
    bool is_late;    /* it has passed its gate without a signal */
} equal_thread;

static equal_thread equals[THREADS];

void symmetry_begin(void)
{
    symmetry_is_used =
        the_checker.scenario->symmetric && !the_checker.samples && the_checker.replay == NULL;
    if (!symmetry_is_used)
        return;
    memset(equals, 0, sizeof equals);
    for (unsigned t = 1; t <= BIDE_CHECK_THREADS && the_execution.threads[t].function != NULL;
         t++) {
        equals[t].before = NOBODY;
        for (unsigned other = t; --other != SETUP && equals[t].before == NOBODY;) {
            if (the_execution.threads[other].function == the_execution.threads[t].function) {
                equals[t].before = other;
                equals[t].has_equal = equals[other].has_equal = true;
            }
        }
    }
}

/* Sets the thread's signal, and returns true, if the graph has it. */
static bool find_signal(unsigned thread, reference *signal)
{
    const thread_events *events = &the_checker.g->threads[thread];
    *signal = last_event(the_checker.g, thread);
    for (unsigned i = equals[thread].gate; equals[thread].has_passed && i < events->count; i++) {
        if (events->events[i].kind == EVENT_STORE) {
            *signal = (reference){(uint16_t)thread, (uint16_t)i};
            return true;
        }
    }
    return the_execution.threads[thread].state == DONE && events->count != 0 &&
           !equals[thread].is_late;
}

bool symmetry_has_equal(void)
{
    return equals[the_execution.running].has_equal;
}

operation symmetry_pass(const operation *op, uintptr_t address, const event *again)
{
    unsigned self = the_execution.running;
    equal_thread *e = &equals[self];
    operation gated = *op;
    if (!e->has_equal || e->has_passed || memory_thread_of(address) == self)
        return gated;
    e->has_passed = true;
    e->gate = execution_running()->position;
    if (again != NULL) {
        e->is_late = again->op.is_late;
    } else if (e->before != NOBODY) {
        reference signal;
        e->is_held = true;
        while (symmetry_holds(self))
            execution_leave();
        e->is_held = false;
        if (!e->is_late && find_signal(e->before, &signal))
            gated.after = signal;
        gated.is_late = e->is_late;
    }
    return gated;
}

bool symmetry_holds(unsigned thread)
{
    reference signal;
    const equal_thread *e = &equals[thread];
    return symmetry_is_used && e->is_held && !e->is_late && !find_signal(e->before, &signal);
}

static bool is_one_blocked(void)
{
    unsigned t = 1;
    while (t < LAST && the_execution.threads[t].state != BLOCKED)
        t++;
    return t < LAST;
}

unsigned symmetry_release(void)
{
    for (unsigned t = 1; t < LAST; t++) {
        if (symmetry_holds(t)) {
            if (!is_one_blocked()) {
                execution_found(BIDE_CHECK_BAD_SCENARIO, "the threads are not equal");
                return NOBODY;
            }
            equals[t].is_late = true;
            return t;
        }
    }
    return NOBODY;
}

void symmetry_store(void)
{
    if (!equals[the_execution.running].is_late)
        return;
    the_checker.result->blocked++;
    execution_give_up();
}
